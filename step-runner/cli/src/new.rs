//! Begins a step: a definition, a test that passes, and a README.

mod ask;
mod templates;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use step_model::document::Dialect;
use templates::{Kind, files};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("kind"))]
pub struct NewArguments {
    /// The directory of the step; its last part is the step's name.
    #[arg(value_name = "NAME")]
    name: Option<PathBuf>,
    /// The step runs a command.
    #[arg(long, group = "kind")]
    exec: bool,
    /// The step runs other steps.
    #[arg(long, group = "kind")]
    run: bool,
    /// The step is a script for the shell.
    #[arg(long, group = "kind")]
    script: bool,
    /// `func` for `func.yml`, `step` for the older `step.yml`.
    #[arg(long, value_name = "DIALECT", value_enum, default_value_t = File::Func)]
    dialect: File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum File {
    Func,
    Step,
}

/// What is not given is asked for on a terminal; elsewhere a step is a command.
/// # Errors
/// There is something of that name, or it cannot be written.
pub fn run(arguments: &NewArguments) -> anyhow::Result<Exit> {
    let typed = match (arguments.exec, arguments.run, arguments.script) {
        (true, ..) => Some(Kind::Exec),
        (_, true, _) => Some(Kind::Run),
        (.., true) => Some(Kind::Script),
        _ => None,
    };
    let is_silent = arguments.name.is_some() && typed.is_some();
    let mut person = ask::Person::at_the_terminal().filter(|_| !is_silent);
    let name = match (&arguments.name, &mut person) {
        (Some(name), _) => name.clone(),
        (None, Some(person)) => PathBuf::from(person.ask("Name of the step (a directory)", "greet")?),
        (None, None) => return Err(Stop::usage("a step has a name").with_hint("`step-runner new greet --exec`").into()),
    };
    let kind = match (typed, &mut person) {
        (Some(kind), _) => kind,
        (None, Some(person)) => person.choose()?,
        (None, None) => Kind::Exec,
    };
    let dialect = match arguments.dialect {
        File::Func => Dialect::Functions,
        File::Step => Dialect::Steps,
    };
    let title = title_of(&name)?;
    create(&name, &files(&title, kind, dialect))?;
    if !is_silent {
        let shown = name.display();
        writeln!(anstream::stdout(), "made {shown}: definition, test and README\nnext: step-runner test {shown}")
            .map_err(|error| fault(&name, &error))?;
    }
    Ok(Exit::Done)
}

fn title_of(name: &Path) -> Result<String, Stop> {
    let title = name.file_name().and_then(|title| title.to_str()).unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if title.is_empty() || title.starts_with(['.', '-']) || !title.chars().all(is_plain) {
        let stop = Stop::usage(format!("`{}` is no name for a step", name.display()));
        return Err(stop.with_hint("a name has letters, digits, `-` and `_`: `step-runner new greet`"));
    }
    Ok(title.to_owned())
}

/// All files or none: they are made aside, and the directory gets its name at the end.
fn create(dir: &Path, files: &[(String, String)]) -> Result<(), Stop> {
    let is_taken = fs::symlink_metadata(dir).is_ok() && !fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    if is_taken {
        let stop = Stop::bad_input(format!("`{}` is there already", dir.display()));
        return Err(stop.with_hint("take another name, or remove it"));
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| fault(parent, &error))?;
    let aside = tempfile::Builder::new().prefix(".step-new-").tempdir_in(parent).map_err(|error| fault(parent, &error))?;
    for (name, text) in files {
        let path = aside.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| fault(parent, &error))?;
        }
        fs::write(&path, text).map_err(|error| fault(&path, &error))?;
        #[cfg(unix)]
        if text.starts_with("#!") {
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&path, executable).map_err(|error| fault(&path, &error))?;
        }
    }
    #[cfg(unix)]
    fs::set_permissions(aside.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).map_err(|error| fault(dir, &error))?;
    // An empty directory gives way.
    fs::rename(aside.path(), dir).map_err(|error| fault(dir, &error))
}

fn fault(path: &Path, error: &std::io::Error) -> Stop {
    Stop::new(Exit::Fault, format!("could not write `{}`: {}", path.display(), words(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_model::document::raw;

    #[test]
    fn every_template_is_read_without_a_problem() {
        for kind in [Kind::Exec, Kind::Run, Kind::Script] {
            for dialect in [Dialect::Functions, Dialect::Steps] {
                for (name, text) in files("greet", kind, dialect) {
                    if name.ends_with("_test.yml") {
                        assert_eq!(step_model::testing::read::read(&text).problems, [], "{text}");
                    } else if name.ends_with(".yml") {
                        assert_eq!(raw::read(&text, &name).problems, [], "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_name_that_could_be_something_else_is_refused() {
        for name in ["..", ".hidden", "-x", "a b", "a\nb", "/"] {
            assert!(title_of(Path::new(name)).is_err(), "{name}");
        }
        assert_eq!(title_of(Path::new("steps/greet-2")), Ok("greet-2".to_owned()));
    }
}
