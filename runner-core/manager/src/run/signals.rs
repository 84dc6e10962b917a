//! What a signal asks for.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// SIGQUIT.
    Drain,
    /// SIGTERM, SIGINT.
    Stop,
    /// SIGUSR2.
    Detach,
    /// SIGHUP.
    Reload,
}

/// The signals of this process from now on: none of them ends it by itself.
#[derive(Debug)]
pub struct Signals {
    quit: Signal,
    terminate: Signal,
    interrupt: Signal,
    detach: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Needs a runtime with IO.
    /// # Errors
    /// The system refuses.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            detach: signal(SignalKind::user_defined2())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.quit.recv() => Asked::Drain,
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.detach.recv() => Asked::Detach,
            _ = self.hang_up.recv() => Asked::Reload,
        }
    }
}
