//! What is sent of a trace and when, as a machine over values.
//!
//! ```text
//!   Following --answer: aborted--> Stopped --Ended--> Ending --final answer--> Done
//!       |  ^                                            ^ |
//!       |  '-- every interval: pieces, or a touch       | '- 202: later; 412: all again; failed: later and later
//!       '---------------------- Ended ------------------'
//! ```
//!
//! At most one call is open: each [`Effect::Patch`], [`Effect::Touch`] and [`Effect::Final`] gets one [`Event::Patched`] or [`Event::Updated`].

use crate::answer::{PatchOutcome, Patched, UpdateOutcome, Updated};
use crate::request::{Finished, TraceDigest};
use std::time::Duration;
use step_model::time::{Deadline, Now};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendingSettings {
    /// The most that is sent at once.
    pub piece: u64,
    /// Between two sendings, until the server says otherwise.
    pub interval: Duration,
    /// A server hears of a job at least this often.
    pub force: Force,
    /// So many attempts to report an end belong to the job; later ones go on behind it (`job_status_final_update_retry_limit`).
    pub tries: u32,
    pub least_backoff: Duration,
    pub most_backoff: Duration,
    /// How long the end of a job is tried to be reported at all.
    pub give_up: Duration,
}

/// How long a server may hear nothing of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    Fixed(Duration),
    /// Four intervals, from 30 s to 30 minutes (`FF_USE_DYNAMIC_TRACE_FORCE_SEND_INTERVAL`).
    Dynamic,
}

/// Servers may ask for less often than this, and are not followed.
const LONGEST_INTERVAL: Duration = Duration::from_secs(15 * 60);

impl Default for SendingSettings {
    fn default() -> Self {
        Self {
            piece: 1 << 20,
            interval: Duration::from_secs(3),
            force: Force::Fixed(Duration::from_secs(30)),
            tries: 10,
            least_backoff: Duration::from_secs(1),
            most_backoff: Duration::from_secs(3600),
            give_up: Duration::from_secs(24 * 3600),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The trace has this much now.
    Written(TraceDigest),
    /// The job has ended, and its trace is complete. Only the first one counts.
    Ended(Finished),
    /// The open call about the trace was answered.
    Patched(Patched),
    /// The open call about the job was answered.
    Updated(Updated),
    /// Time has passed.
    Woken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send this part of the trace.
    Patch { first: u64, length: u64 },
    /// Say that the job runs.
    Touch { trace: TraceDigest },
    /// Say how it ended.
    Final { finished: Finished, trace: TraceDigest },
    /// The job is to be cancelled gracefully. Once.
    Cancel,
    /// The job was ended on the server: everything is to stop. Once.
    Abort,
    /// The end could not be reported within its tries. What the job used can be given back; reporting goes on.
    Overdue,
    /// Nothing follows.
    Done(Delivered),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// The server knows the end.
    Reported,
    /// The server had ended the job, or does not know it.
    Refused,
    /// It was tried for a day.
    GaveUp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Following,
    /// The server wants nothing more, and the job has not ended yet.
    Stopped,
    Ending(Ending),
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ending {
    finished: Finished,
    /// Nothing is sent before.
    wait: Deadline,
    failed: u32,
    give_up: Deadline,
    /// The server takes no more of the trace.
    skips_trace: bool,
}

/// Sends one trace.
#[derive(Debug, Clone)]
pub struct Sending {
    settings: SendingSettings,
    interval: Duration,
    trace: TraceDigest,
    /// What the server has, as far as is known.
    sent: u64,
    /// Pieces are sent until here, one after the other.
    until: u64,
    /// No sending before.
    due: Deadline,
    /// The server is touched when it passes.
    touch: Deadline,
    is_open: bool,
    was_cancelled: bool,
    was_aborted: bool,
    phase: Phase,
}

impl Sending {
    /// `sent` may be less than what the server has: it says so itself.
    pub fn start(settings: SendingSettings, trace: TraceDigest, sent: u64, now: Now) -> Self {
        let mut sending = Self {
            interval: settings.interval,
            settings,
            trace,
            sent,
            until: sent,
            due: Deadline::after(now, settings.interval),
            touch: Deadline::after(now, settings.interval),
            is_open: false,
            was_cancelled: false,
            was_aborted: false,
            phase: Phase::Following,
        };
        sending.heard(now);
        sending
    }

    pub fn on(&mut self, event: Event, now: Now) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Written(trace) => self.trace = trace,
            Event::Ended(finished) => self.end(finished, now),
            Event::Patched(patched) => {
                self.is_open = false;
                self.note(patched.cancel_requested, patched.interval, &mut effects);
                self.patched(&patched.outcome, now, &mut effects);
            }
            Event::Updated(updated) => {
                self.is_open = false;
                self.note(updated.cancel_requested, updated.interval, &mut effects);
                self.updated(&updated.outcome, now, &mut effects);
            }
            Event::Woken => {}
        }
        self.tidy(now, &mut effects);
        effects
    }

    /// `Woken` is due no later than this.
    pub fn next_deadline(&self) -> Option<Deadline> {
        match &self.phase {
            _ if self.is_open => None,
            Phase::Following if self.sent < self.trace.bytes => Some(self.due),
            Phase::Following => Some(self.touch.max(self.due)),
            Phase::Ending(ending) => Some(ending.wait),
            Phase::Stopped | Phase::Done => None,
        }
    }

    /// What the server has, as far as is known.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    fn end(&mut self, finished: Finished, now: Now) {
        if matches!(self.phase, Phase::Following | Phase::Stopped) {
            // The server is asked anew how often it wants to hear of the end.
            self.interval = self.settings.interval;
            let give_up = Deadline::after(now, self.settings.give_up);
            let wait = Deadline::after(now, Duration::ZERO);
            self.phase = Phase::Ending(Ending { finished, wait, failed: 0, give_up, skips_trace: false });
        }
    }

    fn note(&mut self, cancel_requested: bool, interval: Option<Duration>, effects: &mut Vec<Effect>) {
        if let Some(interval) = interval.filter(|interval| !interval.is_zero()) {
            self.interval = interval.min(LONGEST_INTERVAL);
        }
        if cancel_requested && !self.was_cancelled && self.phase == Phase::Following {
            self.was_cancelled = true;
            effects.push(Effect::Cancel);
        }
    }

    /// The server has heard of the job.
    fn heard(&mut self, now: Now) {
        let force = match self.settings.force {
            Force::Fixed(force) => force,
            Force::Dynamic => (self.interval * 4).clamp(Duration::from_secs(30), Duration::from_secs(30 * 60)),
        };
        self.touch = Deadline::after(now, force);
        self.due = Deadline::after(now, self.interval);
    }

    fn abort(&mut self, effects: &mut Vec<Effect>) {
        self.phase = Phase::Stopped;
        if !std::mem::replace(&mut self.was_aborted, true) {
            effects.push(Effect::Abort);
        }
    }

    fn patched(&mut self, outcome: &PatchOutcome, now: Now, effects: &mut Vec<Effect>) {
        match outcome {
            PatchOutcome::Accepted { end } => self.sent = *end,
            PatchOutcome::RangeMismatch { server_has } => (self.sent, self.until) = (*server_has, *server_has),
            _ => self.until = self.sent,
        }
        let interval = self.interval;
        match &mut self.phase {
            Phase::Following => match outcome {
                PatchOutcome::Aborted => self.abort(effects),
                PatchOutcome::Accepted { .. } | PatchOutcome::RangeMismatch { .. } => self.heard(now),
                PatchOutcome::NotFound | PatchOutcome::Failed { .. } => self.due = Deadline::after(now, interval),
            },
            Phase::Ending(ending) => match outcome {
                PatchOutcome::Accepted { .. } => {}
                PatchOutcome::RangeMismatch { .. } => ending.wait = Deadline::after(now, interval),
                PatchOutcome::Aborted | PatchOutcome::NotFound => ending.skips_trace = true,
                PatchOutcome::Failed { .. } => self.failed(now, effects),
            },
            Phase::Stopped | Phase::Done => {}
        }
    }

    fn updated(&mut self, outcome: &UpdateOutcome, now: Now, effects: &mut Vec<Effect>) {
        let interval = self.interval;
        match &mut self.phase {
            Phase::Following => match outcome {
                UpdateOutcome::Aborted => self.abort(effects),
                UpdateOutcome::Succeeded | UpdateOutcome::NotComplete => self.heard(now),
                // Its time has not passed: it is tried again after the interval.
                UpdateOutcome::TraceInvalid | UpdateOutcome::Failed { .. } => self.due = Deadline::after(now, interval),
            },
            Phase::Ending(ending) => match outcome {
                UpdateOutcome::Succeeded => self.done(Delivered::Reported, effects),
                UpdateOutcome::Aborted => self.done(Delivered::Refused, effects),
                UpdateOutcome::NotComplete => ending.wait = Deadline::after(now, interval),
                UpdateOutcome::TraceInvalid => {
                    (ending.wait, ending.skips_trace) = (Deadline::after(now, interval), false);
                    (self.sent, self.until) = (0, 0);
                }
                UpdateOutcome::Failed { .. } => self.failed(now, effects),
            },
            Phase::Stopped | Phase::Done => {}
        }
    }

    /// An attempt to report the end has failed: the next one comes later and later.
    fn failed(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Phase::Ending(ending) = &mut self.phase else { return };
        ending.failed += 1;
        let doubled = self.settings.least_backoff.saturating_mul(2u32.saturating_pow(ending.failed - 1));
        ending.wait = Deadline::after(now, doubled.min(self.settings.most_backoff));
        if ending.failed == self.settings.tries {
            effects.push(Effect::Overdue);
        }
    }

    fn done(&mut self, how: Delivered, effects: &mut Vec<Effect>) {
        self.phase = Phase::Done;
        effects.push(Effect::Done(how));
    }

    /// Whatever can be sent now.
    fn tidy(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.is_open {
            return;
        }
        let unsent = self.trace.bytes.saturating_sub(self.sent);
        match &self.phase {
            Phase::Following => {
                // Somebody watches: a whole piece need not wait.
                let is_pressing = unsent >= self.settings.piece && self.interval <= self.settings.interval && self.until > 0;
                if unsent > 0 && (self.due.has_passed(now) || is_pressing) {
                    self.until = self.trace.bytes;
                }
                if self.sent < self.until {
                    self.patch(self.until, effects);
                } else if unsent == 0 && self.touch.has_passed(now) && self.due.has_passed(now) {
                    self.open(Effect::Touch { trace: self.trace }, effects);
                }
            }
            Phase::Ending(ending) if ending.give_up.has_passed(now) => self.done(Delivered::GaveUp, effects),
            Phase::Ending(ending) if !ending.wait.has_passed(now) => {}
            Phase::Ending(ending) if unsent > 0 && !ending.skips_trace => self.patch(self.trace.bytes, effects),
            Phase::Ending(ending) => {
                let effect = Effect::Final { finished: ending.finished.clone(), trace: self.trace };
                self.open(effect, effects);
            }
            Phase::Stopped | Phase::Done => {}
        }
    }

    fn patch(&mut self, until: u64, effects: &mut Vec<Effect>) {
        let length = (until - self.sent).min(self.settings.piece);
        self.open(Effect::Patch { first: self.sent, length }, effects);
    }

    fn open(&mut self, effect: Effect, effects: &mut Vec<Effect>) {
        self.is_open = true;
        effects.push(effect);
    }
}

#[cfg(test)]
mod tests;
