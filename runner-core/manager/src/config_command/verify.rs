//! `verify`: whether the server of each runner still knows it.

use super::entry_file::EntryFile;
use super::register::not_changed;
use super::{WhichFile, server};
use clap::Args;
use runner_config::edit;
use runner_config::settings::{Executor, Runner};
use runner_gitlab::Token;
use runner_gitlab::answer::Verified;
use std::io::Write as _;
use step_console::complaint::plain;
use step_console::exit::{Exit, Stop};

#[derive(Debug, Clone, Args)]
pub struct VerifyArguments {
    #[command(flatten)]
    which: WhichFile,
    /// Only runners of this name.
    #[arg(short, long, env = "RUNNER_NAME")]
    name: Option<String>,
    /// Remove entries that their server does not know any more.
    #[arg(long)]
    delete: bool,
}

/// Ends with 1 when a runner is not known.
/// # Errors
/// The file cannot be used, or there is no such runner.
pub fn run(arguments: &VerifyArguments) -> anyhow::Result<Exit> {
    let mut file = EntryFile::read(&arguments.which)?;
    let chosen = chosen(&file, |runner| arguments.name.as_ref().is_none_or(|name| runner.name.as_ref() == Some(name)))?;
    let mut out = anstream::stdout();
    let mut exit = Exit::Done;
    for runner in chosen {
        let name = plain(&runner.phrase());
        match verified(&file, &runner)? {
            Verified::Good(_) => writeln!(out, "{name}: is known to {}", plain(&runner.url))?,
            Verified::Unknown { why } => {
                exit = Exit::Failed;
                writeln!(out, "{name}: could not be verified: {}", plain(&why))?;
            }
            Verified::Bad if arguments.delete => {
                let text = edit::unregister(&file.text, &runner, &file.variables).map_err(|fault| not_changed(&file, &fault))?;
                let aside = file.aside()?;
                file.replace(aside, text)?;
                writeln!(out, "{name}: is not known to {}, and its entry was removed", plain(&runner.url))?;
            }
            Verified::Bad => {
                exit = Exit::Failed;
                writeln!(out, "{name}: is not known to {}: `--delete` removes the entry", plain(&runner.url))?;
            }
        }
    }
    Ok(exit)
}

/// # Errors
/// There is none.
pub(super) fn chosen(file: &EntryFile, is_meant: impl Fn(&Runner) -> bool) -> Result<Vec<Runner>, Stop> {
    let chosen: Vec<Runner> = file.entries()?.into_iter().filter(is_meant).collect();
    if chosen.is_empty() {
        return Err(Stop::bad_input(format!("there is no such runner in `{}`", file.shown())).with_hint("`runner-core list` shows all"));
    }
    Ok(chosen)
}

fn verified(file: &EntryFile, runner: &Runner) -> Result<Verified, Stop> {
    if runner.token.is_blank() || runner.url.is_empty() {
        return Ok(Verified::Unknown { why: "the entry has no url or no token".to_owned() });
    }
    let client = server::client(&runner.url, runner.executor.map_or("", Executor::name), &runner.tls, &file.directory())?;
    let token = Token::new(runner.token.expose());
    server::wait(async { client.verify(&token).await })
}
