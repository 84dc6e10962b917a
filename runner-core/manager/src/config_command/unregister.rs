//! `unregister`: a server forgets a runner, and its entry goes from the configuration.

use super::entry_file::EntryFile;
use super::register::not_changed;
use super::verify::chosen;
use super::{WhichFile, server};
use clap::Args;
use runner_config::edit;
use runner_config::settings::{Executor, Runner};
use runner_gitlab::Token;
use runner_gitlab::answer::Removal;
use std::io::Write as _;
use step_console::complaint::plain;
use step_console::exit::{Exit, Stop};

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Of a runner that was created in GitLab (glrt-...) only this manager is removed there; the runner itself stays until it is deleted in GitLab."
)]
pub struct UnregisterArguments {
    #[command(flatten)]
    which: WhichFile,
    /// The runner of this name.
    #[arg(short, long, env = "RUNNER_NAME", required_unless_present_any = ["token", "all_runners"])]
    name: Option<String>,
    /// The runner with this token.
    #[arg(short, long, env = "CI_SERVER_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// All runners of the file.
    #[arg(long, conflicts_with_all = ["name", "token"])]
    all_runners: bool,
}

/// Ends with 1 when a server did not let one go; its entry stays.
/// # Errors
/// The file cannot be used or changed, or there is no such runner.
pub fn run(arguments: &UnregisterArguments) -> anyhow::Result<Exit> {
    let mut file = EntryFile::read(&arguments.which)?;
    let is_meant = |runner: &Runner| {
        let by_name = arguments.name.as_ref().is_none_or(|name| runner.name.as_ref() == Some(name));
        by_name && arguments.token.as_ref().is_none_or(|token| runner.token.expose() == token)
    };
    let mut out = anstream::stdout();
    let mut exit = Exit::Done;
    for runner in chosen(&file, is_meant)? {
        let name = plain(&runner.phrase());
        // Before the server: an entry without a runner can be removed by hand, a runner without an entry is lost.
        let aside = file.aside()?;
        let text = edit::unregister(&file.text, &runner, &file.variables).map_err(|fault| not_changed(&file, &fault))?;
        match removed(&file, &runner)? {
            Removal::Removed => writeln!(out, "{name}: is unregistered")?,
            Removal::NotFound => writeln!(out, "{name}: was not known to {} any more", plain(&runner.url))?,
            Removal::Refused { why } | Removal::Failed { why } => {
                exit = Exit::Failed;
                writeln!(out, "{name}: could not be unregistered, and its entry stays: {}", plain(&why))?;
                continue;
            }
        }
        file.replace(aside, text)?;
    }
    Ok(exit)
}

fn removed(file: &EntryFile, runner: &Runner) -> Result<Removal, Stop> {
    if runner.token.is_blank() || runner.url.is_empty() {
        return Ok(Removal::NotFound);
    }
    let client = server::client(&runner.url, runner.executor.map_or("", Executor::name), &runner.tls, &file.directory())?;
    let token = Token::new(runner.token.expose());
    server::wait(async {
        match token.is_of_created_runner() {
            true => client.unregister_manager(&token).await,
            false => client.unregister(&token).await,
        }
    })
}
