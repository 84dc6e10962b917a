//! The end before the end: cancel, timeouts, a log that cannot be written.
//!
//! ```text
//! Cancel, a limit    frames from where it applies take no more steps ---> the process is asked ---> grace period ---> killed
//!                    a step that always runs is spared, and what is above it, until it has ended
//! CancelNow          nothing is spared; the process is killed
//! log failed         nothing is spared; the process is asked
//! ```

use crate::effect::Effect;
use crate::run::Run;
use crate::run::frame::{Phase, Reason, Stop};
use std::time::Duration;
use step_model::time::{Deadline, Now};

/// How long a step may take that runs although the job should end, where nothing else limits it. What the runner gives an `after_script`.
pub(super) const ALWAYS_LIMIT: Duration = Duration::from_secs(5 * 60);

impl Run {
    /// Ends what is above and at the frame `from`.
    pub(super) fn stop_from(&mut self, from: usize, stop: Stop, now: Now) {
        let spared = if stop.spares_always() { (from + 1..self.stack.len()).find(|index| self.stack[*index].is_always) } else { None };
        let end = spared.unwrap_or(self.stack.len());
        for frame in self.stack.get_mut(from..end).into_iter().flatten() {
            let earlier = frame.stop.unwrap_or(stop);
            frame.stop = Some(Stop { reason: earlier.reason.max(stop.reason), at_once: earlier.at_once || stop.at_once });
        }
        match spared {
            Some(index) => {
                let frame = &mut self.stack[index];
                frame.deadline.get_or_insert(Deadline::after(now, ALWAYS_LIMIT));
            }
            None => self.stop_innermost(stop, now),
        }
    }

    fn stop_innermost(&mut self, stop: Stop, now: Now) {
        self.give_up_what_is_not_begun(stop);
        let grace_period = self.plan.grace_period;
        let Some(step) = self.stack.last().map(|frame| frame.id) else { return };
        match &mut self.phase {
            Phase::Process(process) if process.killed => {}
            Phase::Process(process) if stop.at_once || grace_period.is_zero() => {
                process.stopped.get_or_insert(stop);
                process.kill_at = None;
                process.killed = true;
                self.effects.push(Effect::Kill { step });
            }
            Phase::Process(process) if process.stopped.is_none() => {
                process.stopped = Some(stop);
                process.kill_at = Some(Deadline::after(now, grace_period));
                self.effects.push(Effect::Terminate { step });
            }
            // Asked already; or its work is done, and the files are being read.
            Phase::Process(_)
            | Phase::Reading(_)
            | Phase::Loading(_)
            | Phase::HandingOver(_)
            | Phase::Preparing(_)
            | Phase::Ready
            | Phase::Finished => {}
        }
    }

    /// A step that is being loaded or prepared does not begin, unless it always runs. What was asked for may still come; nobody waits for it.
    fn give_up_what_is_not_begun(&mut self, stop: Stop) {
        let Some(frame) = self.stack.last_mut() else { return };
        // The step that is being loaded or prepared is the one before the next.
        let last = frame.next.wrapping_sub(1);
        let last_when = frame.sequence().and_then(|sequence| Some(sequence.steps.get(last)?.when));
        let goes_on = match &self.phase {
            Phase::Loading(_) | Phase::HandingOver(_) | Phase::Preparing(Some(_)) => last_when.is_some_and(|when| frame.admits(when)),
            Phase::Preparing(None) => stop.spares_always(),
            Phase::Process(_) | Phase::Reading(_) | Phase::Ready | Phase::Finished => true,
        };
        if goes_on {
            return;
        }
        if !matches!(self.phase, Phase::Preparing(None)) {
            // It is looked at again, and counts as one that did not run.
            frame.next = last;
        }
        self.phase = Phase::Ready;
    }

    /// Acts on every deadline that has passed.
    pub(super) fn keep_deadlines(&mut self, now: Now) {
        for index in 0..self.stack.len() {
            let frame = &mut self.stack[index];
            if frame.deadline.is_some_and(|deadline| deadline.has_passed(now)) {
                frame.deadline = None;
                self.say_limit(index);
                self.stop_from(index, Stop { reason: Reason::Timeout, at_once: false }, now);
            }
        }
        if let Phase::Process(process) = &mut self.phase
            && process.kill_at.is_some_and(|deadline| deadline.has_passed(now))
        {
            process.kill_at = None;
            process.killed = true;
            if let Some(frame) = self.stack.last() {
                self.effects.push(Effect::Kill { step: frame.id });
            }
        }
    }

    fn say_limit(&mut self, index: usize) {
        let id = self.stack[index].id;
        let (what, limit) = match &self.nodes[id.0 as usize].step {
            Some(step) => (format!("step `{}`", step.name), step.timeout.or(Some(ALWAYS_LIMIT))),
            None => ("the job".to_owned(), self.plan.timeout),
        };
        let limit = limit.unwrap_or_default();
        self.warn(id, format!("{what} has reached its limit of {limit:?} and is ended"));
    }
}
