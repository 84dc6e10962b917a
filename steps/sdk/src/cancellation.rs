//! The host asks a step to end: SIGTERM, and SIGINT from a terminal.

use tokio::sync::watch;

/// Whether the step has been asked to end. Copies tell the same.
#[derive(Debug, Clone)]
pub struct Cancellation {
    asked: watch::Receiver<bool>,
}

/// Asks the step to end in place of a signal.
#[derive(Debug)]
pub struct Ask(watch::Sender<bool>);

impl Ask {
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

impl Cancellation {
    /// Listens to the signals of the program from now on; they no longer end it. To be called inside the runtime.
    /// # Errors
    /// The system gives no handler.
    pub fn of_signals() -> std::io::Result<Self> {
        let (ask, cancellation) = Self::by_hand();
        let wait = signals()?;
        tokio::spawn(async move {
            wait.await;
            ask.cancel();
            // Kept, so that the copies do not take the end of this task for "never".
            std::future::pending::<()>().await;
        });
        Ok(cancellation)
    }

    /// One that is asked by a value, for tests and for programs with reasons of their own.
    pub fn by_hand() -> (Ask, Self) {
        let (sender, asked) = watch::channel(false);
        (Ask(sender), Self { asked })
    }

    pub fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Returns once the step is asked to end; at once when it was asked before.
    pub async fn asked(&self) {
        let mut asked = self.asked.clone();
        // Nobody is left who could ask.
        if asked.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn signals() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn signals() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_copy_hears_what_was_asked_before_it_was_made() {
        let (ask, cancellation) = Cancellation::by_hand();
        assert!(!cancellation.is_asked());
        ask.cancel();
        let copy = cancellation.clone();
        copy.asked().await;
        assert!(cancellation.is_asked());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_signal_asks() {
        let cancellation = Cancellation::of_signals().unwrap();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        cancellation.asked().await;
    }
}
