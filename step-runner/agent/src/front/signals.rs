//! The signals of a front: the first asks it to end with its last job, a second one ends the jobs, SIGUSR2 leaves them to another front.

use std::io;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    Interrupt,
    /// The jobs go on without us.
    LeaveJobs,
}

impl Signal {
    /// As Go's library calls it, and the original with it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminate => "terminated",
            Self::Interrupt => "interrupt",
            Self::LeaveJobs => "user defined signal 2",
        }
    }
}

/// From now on none of them ends this process by itself.
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    leave_jobs: tokio::signal::unix::Signal,
}

impl Signals {
    /// # Errors
    /// The system refuses.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            leave_jobs: signal(SignalKind::user_defined2())?,
        })
    }

    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.leave_jobs.recv() => Signal::LeaveJobs,
        }
    }
}
