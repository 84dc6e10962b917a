//! `status` and `jobs`: what a runner on this machine says of itself.

use super::SOCKET;
use super::status::Status;
use crate::run::configuration::{default_path, environment};
use clap::Args;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use step_console::exit::{Exit, Stop};
use step_console::given::words;

#[derive(Debug, Clone, Args)]
pub struct StatusArguments {
    /// The configuration of the runner. [default: as for `run`]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Its state, where `run` was given one.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

pub type JobsArguments = StatusArguments;

/// Runners, instances and jobs.
/// # Errors
/// No runner answers.
pub fn status(arguments: &StatusArguments) -> anyhow::Result<Exit> {
    let status = ask(arguments)?;
    print(&if arguments.json { serde_json::to_string(&status)? + "\n" } else { status.shown() })
}

/// A line per job.
/// # Errors
/// As for [`status`].
pub fn jobs(arguments: &JobsArguments) -> anyhow::Result<Exit> {
    let status = ask(arguments)?;
    print(&if arguments.json {
        serde_json::to_string(&status.jobs)? + "\n"
    } else {
        status.jobs.iter().map(super::status::Job::line).collect()
    })
}

/// On standard output.
/// # Errors
/// Nobody reads it any more.
pub fn print(text: &str) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Exit::Done)
}

fn ask(arguments: &StatusArguments) -> Result<Status, Stop> {
    answer(arguments, "/status")
}

/// What the runner answers on this path.
/// # Errors
/// No runner answers, or one of another version.
pub fn answer<T: serde::de::DeserializeOwned>(arguments: &StatusArguments, path: &str) -> Result<T, Stop> {
    let socket = state_directory(arguments.config.as_deref(), arguments.state.as_deref()).join(SOCKET);
    let body = get(&socket, path).map_err(|fault| {
        Stop::new(Exit::Failed, format!("no runner answers on `{}`: {}", socket.display(), words(&fault)))
            .with_hint("`--config FILE` or `--state DIR` as they were given to `runner-core run`")
    })?;
    serde_json::from_str(&body).map_err(|fault| Stop::new(Exit::Fault, format!("what the runner answered cannot be read: {fault}")))
}

/// Where a runner keeps its state: as it was given to `run`, or beside its configuration.
pub fn state_directory(config: Option<&Path>, state: Option<&Path>) -> PathBuf {
    if let Some(state) = state {
        return state.to_path_buf();
    }
    let config = config.map_or_else(|| default_path(&environment()), Path::to_path_buf);
    config.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new(".")).join(".runner-core")
}

/// The body of an answer. The server ends the connection after it, so its end is that of the body.
fn get(socket: &Path, path: &str) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: runner-core\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::InvalidData)?;
    if head.split_whitespace().nth(1) != Some("200") {
        return Err(std::io::Error::other(format!("it answered `{}`", head.lines().next().unwrap_or_default())));
    }
    Ok(body.to_owned())
}
