//! A shell where a step failed, with exactly the environment and the directory that the step had.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::Command;
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use step_model::result::StepResult;
use step_model::value::Value;

/// The shell that every system of its kind has.
#[cfg(unix)]
const EVERYWHERE: &str = "/bin/sh";
#[cfg(not(unix))]
const EVERYWHERE: &str = "cmd.exe";

/// Whether somebody can type into a shell.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Opens a shell and waits for its end. `work_dir` is where the step would have run if it says nothing itself.
/// # Errors
/// There is no shell, or no such directory.
pub fn open(step: &StepResult, work_dir: &str, shell: Option<&str>) -> Result<(), Stop> {
    let dir = step.exec.as_ref().and_then(|exec| exec.work_dir.as_str()).filter(|dir| !dir.is_empty()).unwrap_or(work_dir);
    let program = shell.filter(|program| Path::new(program).is_file()).unwrap_or(EVERYWHERE);
    let env = if step.env.is_empty() { &step.given_env } else { &step.env };
    let mut command = Command::new(program);
    command.current_dir(dir).env_clear().envs(env.iter().map(|(name, value)| (&**name, text(value))));
    let fault = |fault: &std::io::Error| Stop::new(Exit::Fault, format!("could not open `{program}` in `{dir}`: {}", words(fault)));
    command.status().map(drop).map_err(|error| fault(&error))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_json().to_string(), str::to_owned)
}
