//! Ctrl-C while tests run: what runs is killed, temporary files are removed, and the exit code tells the signal.

use crate::run::signals::{Signal, Signals};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use step_console::exit::{Exit, Stop};

/// Signals are caught from here on.
pub struct Interrupt {
    first: Arc<Mutex<Option<Signal>>>,
}

impl Interrupt {
    /// Sets `cancelled` at the first signal.
    /// # Errors
    /// The system refuses.
    pub fn watch(cancelled: Arc<AtomicBool>) -> Result<Self, Stop> {
        let fault = |error: std::io::Error| Stop::new(Exit::Fault, format!("could not watch for signals: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(fault)?;
        let mut signals = runtime.block_on(async { Signals::catch() }).map_err(fault)?;
        let first = Arc::new(Mutex::new(None));
        let note = Arc::clone(&first);
        let watch = move || {
            runtime.block_on(async {
                loop {
                    let signal = signals.next().await;
                    note.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(signal);
                    cancelled.store(true, Ordering::Relaxed);
                }
            })
        };
        std::thread::Builder::new().name("signals".into()).spawn(watch).map_err(fault)?;
        Ok(Self { first })
    }

    pub fn first(&self) -> Option<Signal> {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
