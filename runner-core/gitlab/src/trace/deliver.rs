//! Sends a trace, and the end of its job, to the server. What is sent and when is decided by [`Sending`]; here it is done.

use super::sending::{Delivered, Effect, Event, Sending, SendingSettings};
use super::spool::TraceReader;
use crate::request::{Finished, JobState, TraceDigest, Update};
use crate::{Client, JobAccess};
use std::time::{Duration, Instant};
use step_model::time::{Now, Timestamp};
use tokio::sync::{mpsc, watch};

/// What the sender is told of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    pub trace: TraceDigest,
    /// Set when the trace is complete.
    pub finished: Option<Finished>,
}

/// What the server wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Cancel the job gracefully: its after-script runs.
    Cancel,
    /// Stop everything at once: the server has ended the job.
    Abort,
    /// The end could not be reported within its tries. What the job used can be given back; reporting goes on.
    Overdue,
}

/// What is to be delivered.
#[derive(Debug)]
pub struct Delivery {
    pub client: Client,
    pub job: JobAccess,
    pub trace: TraceReader,
    /// `CI_DEBUG_TRACE` is on.
    pub debug_trace: bool,
    pub settings: SendingSettings,
    /// Up to where the server is believed to have it. Too little does no harm.
    pub sent: u64,
}

impl Delivery {
    /// Sends until the server knows the end. Dropping the future leaves it where it is; a later one goes on. `told` may be dropped when the end has
    /// been told. Who does not listen to signals drops the other end.
    pub async fn run(mut self, mut told: watch::Receiver<Told>, signals: mpsc::UnboundedSender<Signal>) -> Delivered {
        let clock = Instant::now();
        let mut sending = Sending::start(self.settings, told.borrow().trace, self.sent, now(clock));
        let mut known = Told { trace: told.borrow_and_update().trace, finished: None };
        let mut events = vec![Event::Woken];
        let mut is_told = true;
        loop {
            events.extend(news(&mut known, &mut told));
            for event in std::mem::take(&mut events) {
                for effect in sending.on(event, now(clock)) {
                    match effect {
                        Effect::Done(how) => return how,
                        // Who does not listen does not want to know.
                        Effect::Cancel => drop(signals.send(Signal::Cancel)),
                        Effect::Abort => drop(signals.send(Signal::Abort)),
                        Effect::Overdue => drop(signals.send(Signal::Overdue)),
                        effect => events.extend(self.call(effect).await),
                    }
                }
            }
            if !events.is_empty() {
                continue;
            }
            let wait = sending.next_deadline().map_or(Duration::MAX, |deadline| deadline.remaining(now(clock)));
            tokio::select! {
                changed = told.changed(), if is_told => is_told = changed.is_ok(),
                () = sleep(wait) => {}
            }
            events.push(Event::Woken);
        }
    }

    async fn call(&mut self, effect: Effect) -> Option<Event> {
        let update = match effect {
            Effect::Patch { first, length } => {
                let piece = match self.trace.read(first, length) {
                    Ok(piece) => piece,
                    Err(fault) => {
                        tracing::warn!(job = self.job.id, "{fault}");
                        let outcome = crate::answer::PatchOutcome::Failed { why: fault.to_string() };
                        return Some(Event::Patched(crate::answer::Patched { outcome, cancel_requested: false, interval: None }));
                    }
                };
                return Some(Event::Patched(self.client.patch_trace(&self.job, first, piece, self.debug_trace).await));
            }
            Effect::Touch { trace } => Update { state: JobState::Running, trace: Some(trace) },
            Effect::Final { finished, trace } => Update { state: JobState::Finished(finished), trace: Some(trace) },
            Effect::Cancel | Effect::Abort | Effect::Overdue | Effect::Done(_) => return None,
        };
        Some(Event::Updated(self.client.update_job(&self.job, &update).await))
    }
}

/// What was told and is not known yet.
fn news(known: &mut Told, told: &mut watch::Receiver<Told>) -> Vec<Event> {
    let told = told.borrow_and_update().clone();
    let mut events = Vec::new();
    if told.trace != known.trace {
        events.push(Event::Written(told.trace));
    }
    if told.finished != known.finished {
        events.extend(told.finished.clone().map(Event::Ended));
    }
    *known = told;
    events
}

async fn sleep(wait: Duration) {
    // Longer than a day is for ever: whatever is waited for is looked at again.
    tokio::time::sleep(wait.min(Duration::from_secs(24 * 3600))).await;
}

fn now(clock: Instant) -> Now {
    // Nothing that is decided here depends on the wall.
    Now { monotonic: clock.elapsed(), wall: Timestamp::default() }
}
