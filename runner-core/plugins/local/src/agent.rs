//! The process of an instance: started so that it owes us nothing, and ended for certain.

use crate::directory::InstanceDirectory;
use crate::settings::LocalSettings;
use rustix::process::{Pid, Signal};
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::Instant;

const LOOK: Duration = Duration::from_millis(5);
/// The second request must not be merged with the first, which a signal that still waits would be.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(200);
/// After a kill there is only the kernel to wait for.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// Starts the agent of an instance, by way of the command `before` it, which becomes it. It lives on when the returned value is dropped.
/// # Errors
/// The program cannot be started.
pub fn start(instance: &InstanceDirectory, settings: &LocalSettings, before: &[String]) -> io::Result<Child> {
    let log = instance.log()?;
    let mut command = match before {
        [] => Command::new(&settings.program),
        [program, rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest).arg(&settings.program);
            command
        }
    };
    command.arg("serve").arg(instance.path()).args(&settings.arguments);
    command.current_dir(instance.work()).env_clear().envs(&settings.environment);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    detach(&mut command);
    command.spawn()
}

#[expect(unsafe_code, reason = "there is no other way to begin a session before the program runs")]
fn detach(command: &mut Command) {
    let begin_session = || {
        // The end of a terminal's or a remote session ends what belongs to it.
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: setsid is safe to call between fork and exec, and nothing else happens there.
    unsafe { command.pre_exec(begin_session) };
}

/// Ends the agent, its jobs with it, and removes the directory. Can be begun anew at any time.
/// # Errors
/// The directory stays.
pub async fn end(instance: &InstanceDirectory, limit: Duration) -> io::Result<()> {
    let until = Instant::now() + limit;
    // Once: no new jobs. Twice: the jobs are asked to end.
    for _ in 0..2 {
        signal(instance, Signal::TERM);
        wait(instance, until.min(Instant::now() + BETWEEN_REQUESTS)).await;
    }
    wait(instance, until).await;
    if instance.agent().is_some() {
        tracing::warn!(instance = %instance.id, ?limit, "the agent has not ended in time and is killed");
        signal(instance, Signal::KILL);
        wait(instance, Instant::now() + AFTER_KILL).await;
    }
    instance.remove()
}

async fn wait(instance: &InstanceDirectory, until: Instant) {
    while instance.agent().is_some() && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
    }
}

/// The number in the lock is only believed while it is held, and the process only while it is the one that was looked at.
fn signal(instance: &InstanceDirectory, signal: Signal) {
    let Some(agent) = instance.agent() else { return };
    if let Err(error) = send(instance, agent, signal) {
        tracing::debug!(instance = %instance.id, %error, "the agent was not there any more");
    }
}

#[cfg(target_os = "linux")]
fn send(instance: &InstanceDirectory, agent: Pid, signal: Signal) -> io::Result<()> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let process = pidfd_open(agent, PidfdFlags::empty())?;
    if instance.agent() != Some(agent) {
        return Ok(());
    }
    Ok(pidfd_send_signal(process, signal)?)
}

#[cfg(not(target_os = "linux"))]
fn send(_instance: &InstanceDirectory, agent: Pid, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process(agent, signal)?)
}
