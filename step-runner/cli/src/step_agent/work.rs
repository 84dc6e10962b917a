//! What the commands of `step-agent` do: the same functions of the agent that `step-runner` calls.

use crate::FAULT;
use crate::command::{Command, Serve};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use step_agent::bootstrap;
use step_agent::front::{self, Callers, Settings};
use step_agent::job_process::served::{self, Builtins};

/// A directory or a file that cannot be used, as in `step-runner`.
const BAD_INPUT: u8 = 3;

type Outcome = Result<ExitCode, (u8, Box<dyn Error>)>;

/// Does what was asked for, and says what went wrong.
pub fn carry_out(command: Command) -> ExitCode {
    let outcome = match command {
        Command::Serve(serve) => carry_out_serve(serve),
        Command::Proxy { socket } => {
            let socket = socket.unwrap_or_else(|| std::env::temp_dir().join(front::SOCKET));
            done(front::proxy::run(&socket), FAULT)
        }
        Command::Bootstrap(directory) => done(bootstrap::into_directory(&directory), BAD_INPUT),
        Command::BootstrapFile(file) => done(bootstrap::to_file(&file), BAD_INPUT),
        // No step is compiled into this program.
        Command::Job => done(served::main(&Builtins::default()), FAULT),
        Command::Version | Command::Help => Ok(ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|(code, fault)| {
        eprintln!("error: {fault}");
        ExitCode::from(code)
    })
}

fn done<E: Error + 'static>(outcome: Result<(), E>, code: u8) -> Outcome {
    outcome.map(|()| ExitCode::SUCCESS).map_err(|fault| (code, fault.into()))
}

fn carry_out_serve(serve: Serve) -> Outcome {
    let settings = settings(serve).map_err(|fault| (BAD_INPUT, fault))?;
    let ready = || {
        if let Callers::Socket(socket) = &settings.callers {
            eprintln!("step-runner is listening on socket {}", socket.display());
        }
    };
    let ended = front::serve(&settings, ready).map_err(|fault| (FAULT, fault.into()))?;
    Ok(ended.map_or(ExitCode::SUCCESS, of_command))
}

fn settings(serve: Serve) -> Result<Settings, Box<dyn Error>> {
    let directory = match &serve.socket {
        Some(socket) => front::directory_beside(socket)?,
        None => directory(serve.directory)?,
    };
    let mut settings = Settings::of(directory, std::env::current_dir()?);
    if let Some(socket) = serve.socket {
        settings.callers = Callers::Socket(socket);
    }
    if serve.stdio {
        settings.callers = Callers::StandardStreams;
    }
    if serve.level_of_2025 {
        settings.set_level_of_2025();
    }
    settings.stamped = !serve.raw;
    settings.replace = serve.replace;
    settings.command = serve.command;
    Ok(settings)
}

fn directory(given: Option<PathBuf>) -> Result<PathBuf, String> {
    let Some(given) = given else { return Ok(std::env::temp_dir()) };
    if given == Path::new("") {
        return Err("invalid empty socket dir".to_owned());
    }
    given.canonicalize().ok().filter(|dir| dir.is_dir()).ok_or_else(|| format!("invalid socket dir {}", given.display()))
}

/// As a shell tells it.
fn of_command(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
