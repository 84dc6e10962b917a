//! `serve`: the agent on a socket, or on its standard input and output. And `job`, which it starts for each of its jobs.

use clap::Args;
use std::path::PathBuf;
#[cfg(unix)]
use step_agent::front::{Callers, Settings};
#[cfg(unix)]
use step_console::exit::Complaint;
use step_console::exit::{Exit, Stop};

/// What can be typed.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "The socket is DIR/step-runner.sock; without DIR, that of $TMPDIR. Only the user who serves may connect.\n\n\
SIGTERM and SIGINT: no new jobs, end with the last one; a second one ends the jobs.\nSIGUSR2: leave the jobs to the next `serve`.")]
pub struct ServeArguments {
    /// Where the socket and the directories of jobs are.
    #[arg(value_name = "DIR")]
    pub dir: Option<std::ffi::OsString>,
    /// Serve one caller on standard input and output; when it leaves, the jobs and the program end.
    #[arg(long)]
    pub stdio: bool,
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
    serve(&settings(arguments)?)
}

/// `steps serve`: the same, as GitLab's runner calls it.
/// # Errors
/// As [`run`].
#[cfg(unix)]
pub fn steps(socket: Option<PathBuf>, command: Vec<std::ffi::OsString>) -> anyhow::Result<Exit> {
    let mut settings = settings(&ServeArguments::default())?;
    if let Some(socket) = socket {
        // Several may serve side by side, each with jobs of its own.
        settings.directory = step_agent::front::directory_beside(&socket)
            .map_err(|error| Stop::bad_input(format!("could not make a directory beside {}: {error}", socket.display())))?;
        settings.callers = Callers::Socket(socket);
    }
    settings.command = command;
    serve(&settings)
}

#[cfg(unix)]
fn serve(settings: &Settings) -> anyhow::Result<Exit> {
    let ready = || {
        if let Callers::Socket(socket) = &settings.callers {
            eprintln!("step-runner is listening on socket {}", socket.display());
        }
    };
    let ended = step_agent::front::serve(settings, ready).map_err(complaint)?;
    Ok(ended.map_or(Exit::Done, of_command))
}

/// As a shell tells it.
#[cfg(unix)]
fn of_command(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    if code == 0 { Exit::Done } else { Exit::OfStep(u8::try_from(code).unwrap_or(1)) }
}

/// `proxy`: standard input and output to the socket of an agent.
/// # Errors
/// Nobody answers there.
#[cfg(unix)]
pub fn proxy(socket: Option<PathBuf>) -> anyhow::Result<Exit> {
    let socket = socket.unwrap_or_else(|| std::env::temp_dir().join(step_agent::front::SOCKET));
    step_agent::front::proxy::run(&socket).map_err(|error| {
        let message = format!("could not reach an agent on {}: {}", socket.display(), step_console::given::words(&error));
        Stop::new(Exit::Fault, message).with_hint("start one by `step-runner serve`")
    })?;
    Ok(Exit::Done)
}

/// `bootstrap`: this program, somewhere else.
/// # Errors
/// It cannot be put there.
#[cfg(unix)]
pub fn bootstrap(directory: &std::path::Path) -> anyhow::Result<Exit> {
    step_agent::bootstrap::into_directory(directory).map_err(|fault| Stop::bad_input(fault.to_string()))?;
    Ok(Exit::Done)
}

/// `steps bootstrap`: the same, with the name of the file.
/// # Errors
/// As [`bootstrap`].
#[cfg(unix)]
pub fn bootstrap_file(file: &std::path::Path) -> anyhow::Result<Exit> {
    step_agent::bootstrap::to_file(file).map_err(|fault| Stop::bad_input(fault.to_string()))?;
    Ok(Exit::Done)
}

#[cfg(unix)]
fn settings(arguments: &ServeArguments) -> Result<Settings, Stop> {
    use crate::run::settings::{level, time};
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
    let directory = directory(arguments.dir.clone().map(PathBuf::from))?;
    let work_dir = std::env::current_dir();
    let work_dir = work_dir.map_err(|error| Stop::bad_input(format!("could not find the current directory: {error}")))?;
    let defaults = Settings::of(directory, work_dir);
    Ok(Settings {
        callers: if arguments.stdio { Callers::StandardStreams } else { defaults.callers },
        level: level(arguments.level),
        stamped: arguments.log == Log::Stamped,
        grace_period: grace_period.unwrap_or(defaults.grace_period),
        job_timeout,
        keep_finished: keep_finished.unwrap_or(defaults.keep_finished),
        replace: arguments.replace,
        ..defaults
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

/// Serving on a named pipe comes later.
#[cfg(not(unix))]
mod elsewhere {
    use super::{Exit, PathBuf, ServeArguments, Stop};
    use std::ffi::OsString;
    use std::path::Path;

    fn not_here() -> anyhow::Result<Exit> {
        let stop = Stop::new(Exit::Usage, "jobs are not served on this system yet");
        Err(stop.with_hint("`step-runner run` runs a job here").into())
    }

    pub fn run(_arguments: &ServeArguments) -> anyhow::Result<Exit> {
        not_here()
    }

    pub fn steps(_socket: Option<PathBuf>, _command: Vec<OsString>) -> anyhow::Result<Exit> {
        not_here()
    }

    pub fn proxy(_socket: Option<PathBuf>) -> anyhow::Result<Exit> {
        not_here()
    }

    pub fn bootstrap(_directory: &Path) -> anyhow::Result<Exit> {
        not_here()
    }

    pub fn bootstrap_file(_file: &Path) -> anyhow::Result<Exit> {
        not_here()
    }

    pub fn job() -> anyhow::Result<Exit> {
        not_here()
    }
}
#[cfg(not(unix))]
pub use elsewhere::{bootstrap, bootstrap_file, job, proxy, run, steps};
