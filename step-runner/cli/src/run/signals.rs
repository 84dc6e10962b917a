//! Signals become asks: the first one asks the job to end, the second one ends it at once.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use step_agent::job_process::Ask;
use step_console::exit::Exit;
use tokio::sync::mpsc::UnboundedSender;

/// A signal that ends a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Interrupt,
    Terminate,
    HangUp,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Interrupt, Self::Terminate, Self::HangUp];

    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::HangUp => "SIGHUP",
        }
    }

    pub fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate => Exit::Terminated,
            Self::HangUp => Exit::HungUp,
        }
    }
}

/// What was asked so far, for whoever reports it.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The first signal in the low two bits (0: none), and in the next one whether there was a second.
    state: Arc<AtomicU8>,
}

impl Asked {
    /// The first signal, and whether another one followed.
    pub fn so_far(&self) -> Option<(Signal, bool)> {
        let state = self.state.load(Ordering::Relaxed);
        let first = Signal::ALL.get(usize::from(state & 3).checked_sub(1)?)?;
        Some((*first, state & 4 != 0))
    }

    /// What a signal asks for, after those before it.
    pub fn note(&self, signal: Signal) -> Ask {
        if self.so_far().is_some() {
            self.state.fetch_or(4, Ordering::Relaxed);
            return Ask::EndNow;
        }
        self.state.store(signal as u8 + 1, Ordering::Relaxed);
        Ask::End
    }
}

/// The signals of this process from now on: none of them ends it any more.
#[derive(Debug)]
pub struct Signals(system::Signals);

impl Signals {
    /// Needs a runtime with IO.
    /// # Errors
    /// The system refuses.
    pub fn catch() -> io::Result<Self> {
        system::Signals::catch().map(Self)
    }

    pub async fn next(&mut self) -> Signal {
        self.0.next().await
    }

    /// Passes signals on as asks for as long as it is polled.
    pub async fn pass_on(mut self, asks: UnboundedSender<Ask>, asked: Asked) -> Infallible {
        loop {
            let ask = asked.note(self.next().await);
            // Nobody listens any more when the job is over, and then nothing is left to end.
            let _ = asks.send(ask);
        }
    }
}

#[cfg(unix)]
mod system {
    use super::Signal;
    use std::io;
    use tokio::signal::unix::{SignalKind, signal};

    #[derive(Debug)]
    pub struct Signals {
        interrupt: tokio::signal::unix::Signal,
        terminate: tokio::signal::unix::Signal,
        hang_up: tokio::signal::unix::Signal,
    }

    impl Signals {
        pub fn catch() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
            })
        }

        pub async fn next(&mut self) -> Signal {
            tokio::select! {
                _ = self.interrupt.recv() => Signal::Interrupt,
                _ = self.terminate.recv() => Signal::Terminate,
                _ = self.hang_up.recv() => Signal::HangUp,
            }
        }
    }
}

#[cfg(windows)]
mod system {
    use super::Signal;
    use std::io;
    use tokio::signal::windows;

    #[derive(Debug)]
    pub struct Signals {
        interrupt: windows::CtrlC,
        terminate: windows::CtrlBreak,
        close: windows::CtrlClose,
    }

    impl Signals {
        pub fn catch() -> io::Result<Self> {
            Ok(Self { interrupt: windows::ctrl_c()?, terminate: windows::ctrl_break()?, close: windows::ctrl_close()? })
        }

        pub async fn next(&mut self) -> Signal {
            tokio::select! {
                _ = self.interrupt.recv() => Signal::Interrupt,
                _ = self.terminate.recv() => Signal::Terminate,
                _ = self.close.recv() => Signal::HangUp,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_asks_and_the_second_insists() {
        let asked = Asked::default();
        assert_eq!(asked.so_far(), None);
        assert_eq!(asked.note(Signal::HangUp), Ask::End);
        assert_eq!(asked.so_far(), Some((Signal::HangUp, false)));
        assert_eq!(asked.note(Signal::Interrupt), Ask::EndNow);
        assert_eq!(asked.note(Signal::Interrupt), Ask::EndNow);
        assert_eq!(asked.so_far(), Some((Signal::HangUp, true)));
    }
}
