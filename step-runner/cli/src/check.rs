//! Reads definitions, follows their local references, and reports every problem of every file.

mod report;
pub mod walk;

use crate::builtins;
use std::io::Write;
use std::path::PathBuf;
use step_console::exit::{Exit, Stop};
use walk::Walk;

#[derive(Debug, clap::Args)]
pub struct CheckArguments {
    /// Definition files, or directories with `func.yml` or `step.yml`; the current directory when there is none.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Every warning is an error.
    #[arg(long)]
    strict: bool,
    /// `json`: a line of JSON for each problem, for editors.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Problems go to standard output: they are what the command is asked for.
/// # Errors
/// A path cannot be read as a definition, or standard output is closed.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let mut walk = Walk::from(&here, builtins::all());
    let current = [PathBuf::from(".")];
    for path in if arguments.paths.is_empty() { &current[..] } else { &arguments.paths } {
        walk.begin(path);
    }
    let files = walk.finish();
    let mut out = anstream::stdout().lock();
    let written = match arguments.output {
        Format::Text => report::text(&mut out, &files, arguments.strict),
        Format::Json => report::json(&mut out, &files, arguments.strict),
    };
    written.and_then(|()| out.flush()).map_err(|error| Stop::new(Exit::Fault, format!("could not write the problems: {error}")))?;
    let is_refused = files.iter().flat_map(|file| &file.problems).any(|problem| problem.is_error() || arguments.strict);
    Ok(if is_refused { Exit::BadInput } else { Exit::Done })
}

#[cfg(test)]
mod tests;
