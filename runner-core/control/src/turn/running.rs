//! While an agent has the job: it is followed, and ended when it should be.

use super::Turn;
use crate::backoff::Backoff;
use crate::classify::Cause;
use crate::effect::{CancelHow, Effect};
use crate::event::FollowEnd;
use crate::id::{EffectId, InstanceName};
use crate::job::Phase;
use crate::record::StopReason;

impl Turn<'_> {
    pub(super) fn running(&mut self) {
        let Phase::Running { instance } = &self.job.phase else { return };
        let instance = instance.clone();
        if let Some(cause) = self.job.loss.take() {
            return self.end_lost(cause);
        }
        if self.job.ends_at.is_some_and(|deadline| deadline.has_passed(self.now())) {
            self.job.stop(StopReason::TimedOut, self.now());
        }
        if self.end_what_should_end(&instance) {
            return;
        }
        if self.job.follow.is_open() {
            return;
        }
        self.wait_for_its_fate(&instance);
        if matches!(self.job.phase, Phase::Running { .. }) && self.is_up(&instance) {
            let (job, place, generation) = (self.id, self.instance_id(&instance), self.desk.generation);
            self.desk.attempt(&mut self.job.follow, |id| Effect::Follow { id, job: job.clone(), instance: place, generation });
        }
    }

    /// True: nobody waits for the agent's word any more.
    fn end_what_should_end(&mut self, instance: &InstanceName) -> bool {
        let now = self.now();
        let Some(stop) = &mut self.job.stop else { return false };
        if stop.reason == StopReason::Aborted || stop.give_up_at.has_passed(now) {
            // Closing kills it.
            self.end(&Cause::Stopped);
            return true;
        }
        if stop.kill_at.is_some_and(|deadline| deadline.has_passed(now)) {
            stop.kill_at = None;
            stop.is_sent = false;
        }
        let how = if stop.kill_at.is_some() { CancelHow::Gracefully } else { CancelHow::AtOnce };
        if !stop.is_sent && self.is_up(instance) {
            let (job, place, generation) = (self.id, self.instance_id(instance), self.desk.generation);
            let effect = |id| Effect::Cancel { id, job: job.clone(), instance: place, how, generation };
            if self.desk.attempt(&mut self.job.cancel, effect)
                && let Some(stop) = &mut self.job.stop
            {
                stop.is_sent = true;
            }
        }
        false
    }

    pub fn on_cancel_sent(&mut self, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.job.cancel.succeeded(),
            Err(reason) => {
                self.job.trouble = Some(reason);
                self.desk.failed(&mut self.job.cancel, Backoff::AGENT);
                if let Some(stop) = &mut self.job.stop {
                    stop.is_sent = false;
                }
            }
        }
    }

    pub fn on_followed(&mut self, end: FollowEnd) {
        let Phase::Running { instance } = &self.job.phase else { return };
        let instance = instance.clone();
        match end {
            FollowEnd::Ended(outcome) => self.end(&Cause::Finished(outcome)),
            FollowEnd::UnknownJob => self.end_lost("the agent does not know the job any more".to_owned()),
            FollowEnd::Broken { reason } => {
                self.job.trouble = Some(reason);
                self.desk.failed(&mut self.job.follow, Backoff::AGENT);
                self.suspect(&instance);
            }
            // Somebody else saw to that.
            FollowEnd::Fenced => {}
        }
    }

    /// The agent answers again, and has the job.
    pub fn on_found(&mut self, instance: &InstanceName) {
        let is_here = self.job.instance() == Some(instance);
        if is_here && matches!(self.job.phase, Phase::Placed { .. }) {
            self.has_begun(instance.clone());
        }
        if is_here {
            self.job.follow.hurry();
        }
    }

    /// The agent answers again, and does not have it. `asked`: what found that out; what was handed over later it cannot know.
    pub fn on_not_found(&mut self, instance: &InstanceName, asked: EffectId) {
        if self.job.instance() != Some(instance) {
            return;
        }
        match &self.job.phase {
            Phase::Placed { is_uncertain: true, .. } if self.job.told_since < asked => {
                self.job.lost_by = None;
                self.job.enter(Phase::Placed { instance: instance.clone(), is_uncertain: false }, self.now());
                self.job.dispatch.hurry();
            }
            Phase::Running { .. } if !self.job.follow.is_open() && self.job.told_since < asked => {
                self.end_lost("the agent does not know the job any more".to_owned());
            }
            _ => {}
        }
    }
}
