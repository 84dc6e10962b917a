//! Prints a result as a tree.

mod html;
mod journal;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use step_client::wire::result::{Format, OwnedTree, Redaction, Writing, read, write};
use step_console::exit::{Exit, Stop};
use step_console::given;
use step_console::output::to_standard_output;
use step_console::tree::{self, node};
use step_model::masking::Secrets;
use step_model::result::{ResultTree as _, StepId};
use step_payload::recognise::{Recognised, recognise};

#[derive(Debug, clap::Args)]
pub struct ShowArguments {
    /// A result that `run --result` or `--step-results-file` wrote, or the directory of a job that runs or was killed; `-` is standard input.
    #[arg(value_name = "RESULT")]
    result: PathBuf,
    /// Also commands, exports, used resources and where the definitions came from.
    #[arg(long, short)]
    verbose: bool,
    /// The form: `text` for people, `json` for programs (the result itself, read and written again on one line).
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Text, hide_default_value = true)]
    output: Form,
    /// Write the result as one page for a browser to this file, which needs nothing but itself; `-` is standard output.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "verbose"])]
    html: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    Text,
    Json,
}

/// # Errors
/// There is no result to read, or standard output cannot be written.
pub fn run(arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let (tree, last_step) = tree_of(arguments)?;
    match arguments.html.as_deref() {
        Some(file) if file != Path::new("-") => write_page(file, &page_of(&tree, last_step.as_deref(), arguments))?,
        Some(_) => to_standard_output(|out| out.write_all(page_of(&tree, last_step.as_deref(), arguments).as_bytes()))?,
        None => print(&tree, last_step.as_deref(), arguments.verbose, arguments.output)?,
    }
    Ok(Exit::Done)
}

/// Prints a result to standard output.
/// # Errors
/// Standard output cannot be written.
pub fn print(tree: &OwnedTree, last_step: Option<&str>, verbose: bool, form: Form) -> Result<(), Stop> {
    to_standard_output(|out| show(out, tree, last_step, verbose, form))
}

fn show(out: &mut dyn Write, tree: &OwnedTree, last_step: Option<&str>, verbose: bool, form: Form) -> io::Result<()> {
    match form {
        Form::Text => {
            let detail = tree::Detail::of_result(verbose);
            let line = |id| node::line(&tree.node(id), id == StepId::ROOT, detail);
            tree::write(out, StepId::ROOT, &line, &|id| tree.children(id))?;
            last_step.map_or(Ok(()), |last_step| writeln!(out, "\n{last_step}"))
        }
        Form::Json => {
            // What is secret was redacted when the result was written; only its marks are left.
            let redaction = Redaction::new(Secrets::default(), Vec::new());
            write(out, tree, StepId::ROOT, Writing { format: Format::Json, our_fields: true, redaction: &redaction })
        }
    }
}

fn page_of(tree: &OwnedTree, last_step: Option<&str>, arguments: &ShowArguments) -> String {
    let name = arguments.result.file_name().map(|name| name.to_string_lossy());
    let title = match name {
        Some(name) if name != "-" => format!("Job: {name}"),
        _ => "Job".to_owned(),
    };
    html::page(tree, &title, last_step)
}

/// Written aside, flushed and renamed: a page of that name is a whole one.
fn write_page(file: &Path, page: &str) -> Result<(), Stop> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = tempfile::Builder::new().prefix(".step-runner-page-").tempfile_in(dir).and_then(|mut aside| {
        aside.write_all(page.as_bytes())?;
        aside.as_file().sync_all()?;
        aside.persist(file).map(drop).map_err(|fault| fault.error)
    });
    written.map_err(|fault| Stop::new(Exit::Fault, format!("could not write the page to `{}`: {}", file.display(), given::words(&fault))))
}

/// The tree, and for a job that has not ended the step that ran last.
fn tree_of(arguments: &ShowArguments) -> Result<(OwnedTree, Option<String>), Stop> {
    if arguments.result.is_dir() {
        return journal::read(&arguments.result);
    }
    let source = if arguments.result.as_os_str() == "-" { given::standard_input()? } else { given::file(&arguments.result)? };
    read(&source.text).map(|tree| (tree, None)).map_err(|fault| {
        let stop = Stop::bad_input(format!("`{}` is no result: {fault}", source.name));
        match recognise(&source.text) {
            Recognised::Unknown => stop.with_hint("`show` takes the file that `step-runner run JOB --result FILE` writes"),
            _ => stop.with_hint(format!("it can be run: `step-runner run {}`", source.name)),
        }
    })
}

#[cfg(test)]
mod tests;
