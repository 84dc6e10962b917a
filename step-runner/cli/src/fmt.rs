//! Brings definitions and tests into their usual form.

use crate::complain;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use step_console::exit::{Exit, Stop};
use step_console::given::{self, words};
use step_model::document::format::{NoForm, format};

#[derive(Debug, clap::Args)]
pub struct FmtArguments {
    /// Files, or directories below which all definitions and tests are formatted; `-` formats standard input. The current directory
    /// when there is none.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write nothing; end with 1 when a file is not in its usual form.
    #[arg(long)]
    check: bool,
}

/// # Errors
/// A file cannot be read or written, or is not YAML.
pub fn run(arguments: &FmtArguments) -> anyhow::Result<Exit> {
    let current = [PathBuf::from(".")];
    let paths = if arguments.paths.is_empty() { &current[..] } else { &arguments.paths };
    let mut out = anstream::stdout().lock();
    if paths == [PathBuf::from("-")] {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Stop::bad_input(format!("could not read standard input: {}", words(&error))))?;
        let formatted = format(&text).map_err(|why| no_form(&why, "standard input", &text))?;
        if arguments.check {
            return Ok(if formatted == text { Exit::Done } else { Exit::Failed });
        }
        out.write_all(formatted.as_bytes()).map_err(not_written)?;
        return Ok(Exit::Done);
    }
    let mut files = Vec::new();
    for path in paths {
        find(path, &mut files).map_err(|error| Stop::bad_input(format!("could not read `{}`: {}", path.display(), words(&error))))?;
    }
    let (mut is_refused, mut is_stale) = (false, false);
    for path in files {
        let shown = path.strip_prefix(".").unwrap_or(&path).display().to_string();
        let text = given::file(&path)?.text;
        let formatted = match format(&text) {
            Ok(formatted) => formatted,
            Err(NoForm::Unreadable(problems)) => {
                is_refused = true;
                for problem in &problems {
                    write!(out, "{}", complain::shown(problem, &shown, Some(&text), false)).map_err(not_written)?;
                }
                continue;
            }
            Err(why) => return Err(no_form(&why, &shown, &text).into()),
        };
        if formatted == text {
            continue;
        }
        is_stale = true;
        if arguments.check {
            writeln!(out, "{shown} is not in its usual form: run `step-runner fmt {shown}`").map_err(not_written)?;
            continue;
        }
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        let written = fs::metadata(&path).and_then(|metadata| {
            fs::write(&aside, formatted)?;
            fs::set_permissions(&aside, metadata.permissions())?;
            fs::rename(&aside, &path)
        });
        written.map_err(|error| {
            let _nothing_there = fs::remove_file(&aside);
            Stop::new(Exit::Fault, format!("could not write `{shown}`: {}", words(&error)))
        })?;
        writeln!(out, "formatted {shown}").map_err(not_written)?;
    }
    Ok(match (is_refused, is_stale && arguments.check) {
        (true, _) => Exit::BadInput,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Done,
    })
}

/// Definitions and tests below a directory, or the file that is named.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && !matches!(name.as_str(), "target" | "node_modules" | "vendor") {
            find(&entry.path(), files)?;
        } else if kind.is_file() && (matches!(name.as_str(), "func.yml" | "step.yml") || name.ends_with("_test.yml")) {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn no_form(why: &NoForm, name: &str, text: &str) -> Stop {
    match why {
        NoForm::Unreadable(problems) => {
            let shown: String = problems.iter().map(|problem| complain::shown(problem, name, Some(text), false)).collect();
            let _told = write!(anstream::stderr(), "{shown}");
            Stop::told(Exit::BadInput)
        }
        NoForm::Different => {
            Stop::new(Exit::Fault, format!("could not format `{name}`: {why}")).with_hint("the file is as it was; please report it")
        }
    }
}

fn not_written(error: std::io::Error) -> Stop {
    Stop::new(Exit::Fault, format!("could not write to standard output: {}", words(&error)))
}
