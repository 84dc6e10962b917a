//! `serve`: the agent on a socket. And `job`, which it starts for each of its jobs.

use crate::exit::{Complaint, Exit, Stop};
use clap::Args;
use std::path::PathBuf;

/// What can be typed.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "The socket is DIR/step-runner.sock; without DIR, that of $TMPDIR. Only the user who serves may connect.\n\n\
SIGTERM and SIGINT: no new jobs, end with the last one; a second one ends the jobs.\nSIGUSR2: leave the jobs to the next `serve`.")]
pub struct ServeArguments {
    /// Where the socket and the directories of jobs are.
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The form of logs: `stamped`, with time and stream before every line, or `raw`.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Log::Stamped, hide_default_value = true)]
    pub log: Log,
    /// The release of GitLab's step-runner whose texts are used. [default: 0.44]
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub level: Option<crate::run::typed::TypedLevel>,
    /// End a job that names no limit after this time, `90s`, `5m`, `1h30m`.
    #[arg(long, value_name = "TIME")]
    pub job_timeout: Option<String>,
    /// How long a step may take to end after it was asked to, before it is killed. [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub grace: Option<String>,
    /// How long a job that nobody closes is known after its end. [default: 24h]
    #[arg(long, value_name = "TIME")]
    pub keep_finished: Option<String>,
    /// Take the place of the `serve` that is there; its jobs go on.
    #[arg(long)]
    pub replace: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Log {
    #[default]
    Stamped,
    Raw,
}

/// Serves until it is asked to leave.
/// # Errors
/// The command line makes no sense, or nobody can be served here.
#[cfg(unix)]
pub fn run(arguments: &ServeArguments) -> anyhow::Result<Exit> {
    let settings = settings(arguments)?;
    let socket = settings.socket.display().to_string();
    step_agent::front::serve(settings, || eprintln!("step-runner is listening on socket {socket}")).map_err(complaint)?;
    Ok(Exit::Done)
}

#[cfg(unix)]
fn settings(arguments: &ServeArguments) -> Result<step_agent::front::Settings, Stop> {
    use crate::run::settings::{GRACE_PERIOD, level, time};
    use std::time::Duration;
    let mut problems = Vec::new();
    let mut take = |flag, text: &Option<String>| {
        time(flag, text.as_deref()).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    };
    let job_timeout = take("--job-timeout", &arguments.job_timeout);
    let grace_period = take("--grace", &arguments.grace);
    let keep_finished = take("--keep-finished", &arguments.keep_finished);
    if job_timeout == Some(Duration::ZERO) {
        problems.push(Complaint::new("`--job-timeout` must be longer than zero"));
    }
    if !problems.is_empty() {
        return Err(Stop::all(Exit::Usage, problems));
    }
    let directory = directory(arguments.dir.clone())?;
    let work_dir = std::env::current_dir();
    let work_dir = work_dir.map_err(|error| Stop::bad_input(format!("could not find the current directory: {error}")))?;
    Ok(step_agent::front::Settings {
        socket: directory.join("step-runner.sock"),
        directory,
        work_dir,
        level: level(arguments.level),
        stamped: arguments.log == Log::Stamped,
        grace_period: grace_period.unwrap_or(GRACE_PERIOD),
        job_timeout,
        keep_finished: keep_finished.unwrap_or(Duration::from_secs(24 * 60 * 60)),
        replace: arguments.replace,
    })
}

/// In the original's words.
#[cfg(unix)]
fn directory(given: Option<PathBuf>) -> Result<PathBuf, Stop> {
    let Some(given) = given else { return Ok(std::env::temp_dir()) };
    if given.as_os_str().is_empty() {
        return Err(Stop::bad_input("invalid empty socket dir").with_hint("name a directory, or none for that of $TMPDIR"));
    }
    let found = given.canonicalize().ok().filter(|dir| dir.is_dir());
    found.ok_or_else(|| Stop::bad_input(format!("invalid socket dir {}", given.display())).with_hint("make the directory first"))
}

#[cfg(unix)]
fn complaint(fault: step_agent::front::ServeFault) -> Stop {
    use step_agent::front::{ServeFault, SocketFault};
    let stop = Stop::new(Exit::Fault, fault.to_string());
    match fault {
        ServeFault::Socket(SocketFault::InUse(_)) => {
            stop.with_hint("`--replace` takes the place of the agent that is there; its jobs go on")
        }
        ServeFault::Socket(SocketFault::NoSocket(_)) => stop.with_hint("remove what is there, or serve in another directory"),
        ServeFault::Socket(SocketFault::TooLong(_)) => stop.with_hint("serve in a directory with a shorter path"),
        _ => stop,
    }
}

/// Runs the job of the `serve` that started this process.
/// # Errors
/// Somebody else has started it.
#[cfg(unix)]
pub fn job() -> anyhow::Result<Exit> {
    let hint = "this is for `step-runner serve`; to run a job use `step-runner run`";
    step_agent::job_process::served::main(&crate::builtins::all())
        .map_err(|fault| Stop::usage(format!("could not be a job: {fault}")).with_hint(hint))?;
    Ok(Exit::Done)
}

#[cfg(not(unix))]
pub fn run(_arguments: &ServeArguments) -> anyhow::Result<Exit> {
    Err(not_here().into())
}

#[cfg(not(unix))]
pub fn job() -> anyhow::Result<Exit> {
    Err(not_here().into())
}

#[cfg(not(unix))]
fn not_here() -> Stop {
    Stop::new(Exit::Usage, "jobs are not served on this system yet").with_hint("`step-runner run` runs a job here")
}
