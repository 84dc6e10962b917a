//! Before an agent has the job: it waits for a place, is accepted, and is handed over.

use super::Turn;
use crate::backoff::Backoff;
use crate::classify::Cause;
use crate::effect::{Ask, Effect};
use crate::event::DispatchFault;
use crate::id::InstanceName;
use crate::job::{BUSY_LIMIT, LOSS_PATIENCE, Phase, ServerMind};
use crate::record::{Stage, StopReason};
use crate::settings::Shape;
use step_model::time::Deadline;

impl Turn<'_> {
    pub(super) fn waiting(&mut self) {
        if self.job.stop.is_some() {
            return self.end_unstarted();
        }
        if self.job.acquire_by.has_passed(self.now()) {
            return self.give_up();
        }
        self.beat();
        // A server without the second phase counts it as running: it is told, as it always was.
        if self.job.server == ServerMind::Legacy {
            self.accept();
        }
        self.provide();
    }

    /// Asks a provider of single environments for one.
    fn provide(&mut self) {
        let fleet = &mut self.runner.fleet;
        let is_wanted = self.runner.settings.environments.shape == Shape::PerJob && fleet.is_known && fleet.made_for(self.id).is_none();
        if !is_wanted {
            return;
        }
        let (id, requirements) = (self.id, &self.job.record.requirements);
        let ask = || Ask::ForJob { job: id.clone(), requirements: requirements.clone() };
        let is_asked =
            self.desk.attempt(&mut self.job.provide, |effect| Effect::Increase { id: effect, runner: id.runner.clone(), ask: ask() });
        if let Some(effect) = self.job.provide.latest().filter(|_| is_asked) {
            fleet.asked_for.insert(effect, id.clone());
        }
    }

    /// Ended before any agent was asked. A server that waits for `running` and hears nothing takes it back by itself, which is kinder than a failure where the
    /// fault is ours; one that asked for the end is answered.
    fn end_unstarted(&mut self) {
        let reason = self.job.stop.as_ref().map(|stop| stop.reason);
        if reason == Some(StopReason::Interrupted) && self.is_taken_back() {
            self.let_go();
        } else {
            self.end(&Cause::Stopped);
            self.release();
        }
    }

    /// No environment in time.
    fn give_up(&mut self) {
        if self.is_taken_back() {
            return self.let_go();
        }
        let reason = self.job.trouble.clone().unwrap_or_else(|| "none was ready in time".to_owned());
        self.end(&Cause::NoEnvironment { reason });
    }

    /// The server waits for `running` and will take the job back. One that was told may have heard it, whatever came of the answer.
    fn is_taken_back(&self) -> bool {
        self.job.server == ServerMind::TwoPhase && !self.job.record.accepted && self.job.accept.latest().is_none()
    }

    /// No beat follows; the server will notice.
    fn let_go(&mut self) {
        self.end_with(None);
        self.release();
    }

    /// The provider answered for good.
    pub fn on_impossible(&mut self, reason: String) {
        if matches!(self.job.phase, Phase::Waiting) {
            self.end(&Cause::Impossible { reason });
        }
    }

    pub(super) fn placed(&mut self) {
        let Phase::Placed { instance, is_uncertain } = &self.job.phase else { return };
        let (instance, is_uncertain) = (instance.clone(), *is_uncertain);
        if is_uncertain {
            return self.placed_uncertain(&instance);
        }
        if self.job.stop.is_some() {
            return self.end_unstarted();
        }
        if !self.is_up(&instance) {
            return self.requeue();
        }
        if self.job.acquire_by.has_passed(self.now()) && self.is_taken_back() {
            self.give_up();
            return self.release();
        }
        self.beat();
        self.accept();
        let is_durable = matches!(&self.job.save.durable, Some(Stage::Dispatching { instance: durable }) if *durable == instance);
        if self.job.record.accepted && is_durable {
            self.dispatch(&instance);
        }
    }

    /// An agent may have it: nothing is decided before it has been asked, or is gone.
    fn placed_uncertain(&mut self, instance: &InstanceName) {
        if let Some(cause) = self.job.loss.take() {
            return self.end_lost(cause);
        }
        if self.job.stop.as_ref().is_some_and(|stop| stop.reason == StopReason::Aborted) {
            return self.end(&Cause::Stopped);
        }
        if self.is_up(instance) {
            // What proved it was asked too early to say.
            self.suspect(instance);
        }
        self.wait_for_its_fate(instance);
    }

    fn dispatch(&mut self, instance: &InstanceName) {
        let (job, place) = (self.id, self.instance_id(instance));
        let (time_limit, generation) = (self.job.record.timeout, self.desk.generation);
        let effect = |id| Effect::Dispatch { id, job: job.clone(), instance: place, time_limit, generation };
        if self.desk.attempt(&mut self.job.dispatch, effect) {
            self.job.enter(Phase::Dispatching { instance: instance.clone() }, self.now());
        }
    }

    /// Its outcome will come: a job that is ended meanwhile must not be born after that.
    pub(super) fn dispatching(&mut self) {
        if let Some(cause) = self.job.loss.take() {
            self.job.dispatch.give_up();
            self.end_lost(cause);
        }
    }

    pub fn on_dispatched(&mut self, outcome: Result<(), DispatchFault>) {
        let Phase::Dispatching { instance } = &self.job.phase else { return };
        let instance = instance.clone();
        self.job.told_since = self.desk.latest();
        match outcome {
            Ok(()) => self.has_begun(instance),
            Err(DispatchFault::Unreachable { reason }) => {
                self.suspect(&instance);
                self.job.trouble = Some(reason);
                self.job.enter(Phase::Placed { instance, is_uncertain: true }, self.now());
            }
            Err(DispatchFault::Busy { reason }) => {
                self.job.trouble = Some(reason);
                self.job.enter(Phase::Placed { instance: instance.clone(), is_uncertain: false }, self.now());
                self.desk.failed(&mut self.job.dispatch, Backoff::AGENT);
                if self.job.dispatch.failures() >= BUSY_LIMIT {
                    self.suspect(&instance);
                    self.requeue();
                }
            }
            Err(DispatchFault::Refused { outcome }) => {
                self.end(&Cause::Finished(outcome));
                self.release();
            }
            // Somebody else saw to that.
            Err(DispatchFault::Fenced) => {}
        }
    }

    /// The agent has it.
    pub fn has_begun(&mut self, instance: InstanceName) {
        let now = self.now();
        let left = self.job.record.timeout + crate::job::LIMIT_GRACE;
        self.job.ends_at.get_or_insert_with(|| Deadline::after(now, left));
        if self.job.record.ends_by.is_none() {
            let nanoseconds = i64::try_from(left.as_nanos()).unwrap_or(i64::MAX);
            let ends_by = now.wall.nanoseconds().saturating_add(nanoseconds);
            self.job.record.ends_by = Some(step_model::time::Timestamp::from_nanoseconds(ends_by));
        }
        self.job.trouble = None;
        self.job.lost_by = None;
        self.job.accepted();
        self.job.enter(Phase::Running { instance }, now);
    }

    /// Without contact it waits for its environment's fate, so long and no longer unless the environment is known to live.
    pub(super) fn wait_for_its_fate(&mut self, instance: &InstanceName) {
        let now = self.now();
        let may_be_gone = self.runner.fleet.get(instance).is_none_or(crate::fleet::instance::Instance::may_be_gone);
        if self.is_up(instance) {
            self.job.lost_by = None;
        } else if !may_be_gone || self.job.lost_by.is_none() {
            self.job.lost_by = Some(Deadline::after(now, LOSS_PATIENCE));
        } else if self.job.lost_by.is_some_and(|deadline| deadline.has_passed(now)) {
            self.end_lost("it could not be reached any more".to_owned());
        }
    }

    pub(super) fn end_lost(&mut self, cause: String) {
        self.end(&Cause::Lost { cause });
    }
}
