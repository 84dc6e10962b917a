//! `steps serve CMD`: a command beside the front, which ends when the command does (original.md H.7).

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// After the command was asked to end, how long it may take.
const GRACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// A command that runs, with our standard streams.
#[derive(Debug)]
pub struct Beside {
    child: std::process::Child,
    kill_at: Option<tokio::time::Instant>,
}

/// Waits for the first byte of standard input, which the command reads. `false`: the input has ended, and the command is not to run.
pub async fn is_wanted() -> bool {
    let look = || {
        let stdin = rustix::stdio::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        while rustix::event::poll(&mut polled, None) == Err(rustix::io::Errno::INTR) {}
        rustix::io::ioctl_fionread(stdin).is_ok_and(|bytes| bytes > 0)
    };
    tokio::task::spawn_blocking(look).await.unwrap_or(false)
}

impl Beside {
    /// # Errors
    /// It cannot be started.
    pub fn start(words: &[OsString], environment: &[(String, std::path::PathBuf)]) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let environment = environment.iter().map(|(name, value)| (name, value));
        Ok(Self { child: Command::new(program).args(arguments).envs(environment).spawn()?, kill_at: None })
    }

    /// Asks it to end.
    pub fn ask(&mut self) {
        self.signal(Signal::TERM);
        self.kill_at.get_or_insert_with(|| tokio::time::Instant::now() + GRACE);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// How it ended. May be dropped and called again.
    /// # Errors
    /// As waitpid(2).
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if self.kill_at.is_some_and(|at| tokio::time::Instant::now() >= at) {
                let _ = self.child.kill();
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
