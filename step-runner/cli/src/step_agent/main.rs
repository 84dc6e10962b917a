//! The program `step-agent`: what is put into a container or a machine to run steps there. It knows the agent and nothing else: no files of
//! people, no colours, no TLS. Its few arguments are read by hand, which costs no start-up time.

mod command;
#[cfg(unix)]
mod work;

use command::Command;
use std::io::Write as _;
use std::process::ExitCode;

/// Exit codes as `step-runner` has them: see `docs/compatibility.md`.
const USAGE: u8 = 2;
const FAULT: u8 = 70;

fn main() -> ExitCode {
    step_agent::static_program::pin_name_services();
    #[cfg(target_os = "linux")]
    if let Some(code) = step_agent::take_over() {
        return code;
    }
    match Command::of(std::env::args_os()) {
        Ok(Command::Version) => say(concat!("step-agent ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Command::Help) => say(command::HELP),
        #[cfg(unix)]
        Ok(command) => work::carry_out(command),
        #[cfg(not(unix))]
        Ok(_) => {
            eprintln!("error: jobs are not served on this system yet\n hint: `step-runner run` runs a job here");
            ExitCode::from(USAGE)
        }
        Err(misuse) => {
            eprintln!("error: {misuse}\n hint: `step-agent --help` lists the commands");
            ExitCode::from(USAGE)
        }
    }
}

fn say(text: &str) -> ExitCode {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: could not write to standard output: {error}");
            ExitCode::from(FAULT)
        }
    }
}
