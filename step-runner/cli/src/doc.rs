//! Writes the table of a step's inputs and outputs into its README, between markers.

pub mod table;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use step_console::exit::{Complaint, Exit, Stop};
use step_console::given::{self, words};
use step_model::document::StepDocument;
use step_testing::subject::{NoSubject, Subject};

#[derive(Debug, clap::Args)]
pub struct DocArguments {
    /// Steps: directories or definition files; the current directory when there is none.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write nothing; end with 1 when a README is not up to date.
    #[arg(long)]
    check: bool,
    /// Print the table instead.
    #[arg(long, conflicts_with = "check")]
    print: bool,
    /// The file that gets the table, beside the definition.
    #[arg(long, value_name = "FILE", default_value = "README.md")]
    file: PathBuf,
}

/// # Errors
/// A definition has problems, or a README cannot be read or written.
pub fn run(arguments: &DocArguments) -> anyhow::Result<Exit> {
    let current = [PathBuf::from(".")];
    let mut out = anstream::stdout().lock();
    let mut problems = Vec::new();
    let mut is_stale = false;
    for path in if arguments.paths.is_empty() { &current[..] } else { &arguments.paths } {
        let subject = match Subject::read(path) {
            Ok(subject) => subject,
            Err(fault) => {
                problems.push(complaint(fault, path));
                continue;
            }
        };
        if arguments.print {
            out.write_all(table::of(&subject.document).as_bytes()).map_err(|error| fault(path, &error))?;
            continue;
        }
        let readme = if path.is_dir() { path.join(&arguments.file) } else { path.with_file_name(&arguments.file) };
        let shown = readme.strip_prefix(".").unwrap_or(&readme).display().to_string();
        let before = if readme.exists() { Some(given::file(&readme)?.text) } else { None };
        let after = match with_table(before.as_deref(), &subject.document, &title(path)) {
            Ok(after) => after,
            Err(why) => {
                problems
                    .push(Complaint::new(format!("`{shown}` {why}")).with_hint(format!("write one `{BEGIN}` and one `{END}` after it")));
                continue;
            }
        };
        if before.as_deref() == Some(&*after) {
            continue;
        }
        is_stale = true;
        let told = if arguments.check {
            writeln!(out, "{shown} is not up to date: run `step-runner doc {}`", path.display())
        } else {
            write_aside(&readme, &after).map_err(|error| fault(&readme, &error))?;
            writeln!(out, "wrote {shown}")
        };
        told.map_err(|error| fault(&readme, &error))?;
    }
    if !problems.is_empty() {
        return Err(Stop::all(Exit::BadInput, problems).into());
    }
    Ok(if is_stale && arguments.check { Exit::Failed } else { Exit::Done })
}

const BEGIN: &str = "<!-- step-runner doc: the table is written by `step-runner doc` -->";
const END: &str = "<!-- step-runner doc: end -->";

/// The README with the table in it: between the markers, else at the end, else in a new file.
/// # Errors
/// The markers do not belong together.
fn with_table(readme: Option<&str>, document: &StepDocument, title: &str) -> Result<String, &'static str> {
    let table = table::of(document);
    let block = format!("{BEGIN}\n\n{table}\n{END}");
    let Some(readme) = readme else { return Ok(format!("# {title}\n\n{block}\n")) };
    let begins: Vec<usize> = readme.match_indices(BEGIN).map(|(at, _)| at).collect();
    let ends: Vec<usize> = readme.match_indices(END).map(|(at, _)| at).collect();
    match (&begins[..], &ends[..]) {
        ([], []) => Ok(format!("{}\n\n{block}\n", readme.trim_end())),
        ([begin], [end]) if begin < end => Ok(format!("{}{block}{}", &readme[..*begin], &readme[end + END.len()..])),
        ([_], []) => Err("has a first marker and no last one"),
        ([], [_]) => Err("has a last marker and no first one"),
        _ => Err("has markers that do not belong together"),
    }
}

fn title(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let dir = if real.is_dir() { real.as_path() } else { real.parent().unwrap_or(&real) };
    dir.file_name().map_or_else(|| "step".into(), |name| name.to_string_lossy().into_owned())
}

fn complaint(fault: NoSubject, path: &Path) -> Complaint {
    match fault {
        NoSubject::Problems { file, problems, .. } => {
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            Complaint::new(format!("`{file}` has problems, the first in {first}"))
                .with_hint(format!("`step-runner check {}` shows all", path.display()))
        }
        other => Complaint::new(other.to_string()),
    }
}

fn write_aside(path: &Path, text: &str) -> std::io::Result<()> {
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&aside, text).and_then(|()| fs::rename(&aside, path)).inspect_err(|_| drop(fs::remove_file(&aside)))
}

fn fault(path: &Path, error: &std::io::Error) -> Stop {
    Stop::new(Exit::Fault, format!("could not write `{}`: {}", path.display(), words(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_model::document::raw::read;

    fn document() -> StepDocument {
        let text = "spec:\n  inputs:\n    who: {type: string, default: \"a|b\", description: \"Whom\\nto greet.\"}\n    token: {type: string, sensitive: true}\n  outputs:\n    greeting: {type: string, description: What was said.}\n---\nexec: {command: [a]}\n";
        StepDocument::clone(&read(text, "func.yml").document.expect("a document"))
    }

    #[test]
    fn the_table_lies_between_the_markers_and_what_is_around_stays() {
        let readme = format!("# Greet\n\n{BEGIN}\nold\n{END}\n\nMore.\n");
        let text = with_table(Some(&readme), &document(), "x").expect("markers");
        insta::assert_snapshot!(text, @r"
        # Greet

        <!-- step-runner doc: the table is written by `step-runner doc` -->

        | input | type | default | |
        |---|---|---|---|
        | `who` | string | `a\|b` | Whom to greet. |
        | `token` | string, sensitive | required | |

        | output | type | |
        |---|---|---|
        | `greeting` | string | What was said. |

        <!-- step-runner doc: end -->

        More.
        ");
        assert_eq!(with_table(Some(&text), &document(), "x").as_deref(), Ok(&*text), "a second time changes nothing");
    }

    #[test]
    fn without_markers_it_stands_at_the_end_and_torn_ones_are_refused() {
        assert!(with_table(Some("# A\n"), &document(), "x").expect("appended").starts_with(&format!("# A\n\n{BEGIN}\n\n| input")));
        assert!(with_table(None, &document(), "greet").expect("made").starts_with("# greet\n\n"));
        assert_eq!(with_table(Some(BEGIN), &document(), "x"), Err("has a first marker and no last one"));
        assert!(with_table(Some(&format!("{END} {BEGIN}")), &document(), "x").is_err());
    }
}
