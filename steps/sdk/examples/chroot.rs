//! A step that runs its steps below another root directory of this machine. docs/guide/delegating-step.md explains it.

use serde::Deserialize;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use step_sdk::{Cancellation, DelegatedResult, Environment, Failure, Step};
use tokio::process::Command;

#[derive(Deserialize)]
struct Inputs {
    /// The directory that becomes `/`.
    root: String,
}

fn main() -> ExitCode {
    step_sdk::delegating(|step, cancellation| async move { in_chroot(&step, &cancellation).await })
}

async fn in_chroot(step: &Step, cancellation: &Cancellation) -> Result<DelegatedResult, Failure> {
    let Inputs { root } = step.inputs()?;
    let failed = |what: &str, error: &std::io::Error| Failure::step(format!("could not {what} `{root}`: {error}"));

    // The agent goes where the steps will be, in a directory that whoever ends the job removes.
    let name = format!("/step-agent-{}", std::process::id());
    let place = format!("{}{name}", root.trim_end_matches('/'));
    step.clean_up_later(["rm", "-rf", "--", &place])?;
    std::fs::create_dir(&place).map_err(|error| failed("put the agent into", &error))?;
    let agent = step_sdk::agent_binary("linux", std::env::consts::ARCH)?;
    std::fs::copy(agent, Path::new(&place).join("step-agent")).map_err(|error| failed("put the agent into", &error))?;

    // Its two ends are the byte stream.
    let mut chroot = Command::new("chroot");
    chroot.args([&root, &format!("{name}/step-agent"), "serve", "--stdio", &name]);
    chroot.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = chroot.spawn().map_err(|error| failed("enter", &error))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { return Err(Failure::internal("no pipes")) };
    let environment = Environment { name: format!("the root `{root}`"), work_dir: "/".to_owned(), timeout: None };
    let mut result = step.hand_over(tokio::io::join(output, input), &environment, cancellation).await?;

    result.filter("steps whose names begin with `_` are not shown", |path| path.iter().all(|name| !name.starts_with('_')));
    // The stream is closed, so the agent ends. One that does not is ended: its steps have.
    if tokio::time::timeout(Duration::from_secs(1), child.wait()).await.is_err() {
        child.kill().await.map_err(|error| failed("end the agent in", &error))?;
    }
    std::fs::remove_dir_all(&place).map_err(|error| failed("remove the agent from", &error))?;
    Ok(result)
}
