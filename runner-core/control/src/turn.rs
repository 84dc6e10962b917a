//! A job is moved on as far as it can go: what should be open is opened, what is due is done.

mod before;
mod ended;
mod running;

use crate::backoff::Backoff;
use crate::classify::{Cause, classify};
use crate::desk::Desk;
use crate::effect::Effect;
use crate::event::Acknowledgement;
use crate::fleet::instance::{Instance, Retired};
use crate::id::{InstanceId, InstanceName, JobId};
use crate::job::{BEAT, BEAT_WINDOW, CLOSE_PATIENCE, REPORT_PATIENCE};
use crate::job::{Ended, Job, Phase, ServerMind};
use crate::record::StopReason;
use crate::report::{Outcome, OutcomeKind, Report};
use crate::runner::Runner;
use step_model::time::{Deadline, Now};

/// One job and what it may touch. Written by conditions and not by events: whatever happened, and in whatever order, the same is missing. So restarts, repeats
/// and lost outcomes need no code of their own.
pub(crate) struct Turn<'a> {
    pub id: &'a JobId,
    pub job: &'a mut Job,
    pub runner: &'a mut Runner,
    pub desk: &'a mut Desk,
}

/// What becomes of the job after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Stays,
    /// Nobody needs to know of it any more.
    Over,
    /// Another manager drives it.
    Disowned,
}

impl Turn<'_> {
    /// `is_leaving`: the process will exit and leave the job as it is; only its record matters.
    pub fn advance(&mut self, is_leaving: bool) -> Fate {
        self.job.refresh(self.now());
        self.save();
        if is_leaving {
            return Fate::Stays;
        }
        // Each round enters another phase, so few follow each other.
        loop {
            let before = std::mem::discriminant(&self.job.phase);
            match &self.job.phase {
                Phase::Waiting => self.waiting(),
                Phase::Placed { .. } => self.placed(),
                Phase::Dispatching { .. } => self.dispatching(),
                Phase::Running { .. } => self.running(),
                Phase::Ended(_) => return self.ended(),
            }
            if before == std::mem::discriminant(&self.job.phase) {
                self.save();
                return Fate::Stays;
            }
        }
    }

    fn now(&self) -> Now {
        self.desk.now
    }

    fn save(&mut self) {
        let job = &mut *self.job;
        if job.save.is_due() {
            let generation = self.desk.generation;
            let record = &mut job.record;
            record.generation = generation;
            if self.desk.attempt(&mut job.save.attempt, |id| Effect::Save { id, record: Box::new(record.clone()) }) {
                job.save.asked(&job.record.stage);
            }
        }
    }

    /// Tells the server that it runs. Nothing is told before the record is durable.
    fn accept(&mut self) {
        if !self.job.record.accepted && self.job.save.durable.is_some() {
            let job = self.id;
            self.desk.attempt(&mut self.job.accept, |id| Effect::Accept { id, job: job.clone() });
        }
    }

    /// Tells the server that it is being prepared.
    fn beat(&mut self) {
        let wants = self.runner.settings.beats && !self.job.record.accepted && self.job.server != ServerMind::Legacy;
        if wants && self.job.save.durable.is_some() {
            let job = self.id;
            self.desk.attempt(&mut self.job.beat, |id| Effect::Heartbeat { id, job: job.clone() });
        }
    }

    pub fn on_beaten(&mut self, answer: Acknowledgement) {
        let now = self.now();
        match answer {
            // `running` was faster.
            Acknowledgement::Refused { .. } if self.job.record.accepted => {}
            Acknowledgement::Good => {
                self.job.server = ServerMind::TwoPhase;
                self.job.window = Deadline::after(now, BEAT_WINDOW);
                self.job.beat.succeeded();
                self.job.beat.not_before(Deadline::after(now, BEAT));
            }
            // Nobody waits any more: the server has taken it back.
            Acknowledgement::Refused { .. } if self.job.window.has_passed(now) => self.drop_unaccepted(),
            Acknowledgement::Refused { .. } => self.job.server = ServerMind::Legacy,
            Acknowledgement::Canceling => self.job.stop(StopReason::Canceled, now),
            Acknowledgement::Aborted => self.job.stop(StopReason::Aborted, now),
            Acknowledgement::Failed { reason } => {
                self.job.trouble = Some(reason);
                self.desk.failed(&mut self.job.beat, Backoff::SERVER);
            }
        }
    }

    pub fn on_accepted(&mut self, answer: Acknowledgement) {
        let now = self.now();
        match answer {
            Acknowledgement::Good => self.job.accepted(),
            Acknowledgement::Refused { .. } => self.drop_unaccepted(),
            Acknowledgement::Canceling => {
                self.job.accepted();
                self.job.stop(StopReason::Canceled, now);
            }
            Acknowledgement::Aborted => {
                self.job.stop(StopReason::Aborted, now);
                self.forget_report();
            }
            Acknowledgement::Failed { reason } => {
                self.job.trouble = Some(reason);
                self.desk.failed(&mut self.job.accept, Backoff::SERVER);
            }
        }
    }

    /// The server has given it to somebody else, or to nobody: nothing is told to it any more.
    fn drop_unaccepted(&mut self) {
        if self.job.has_ended() {
            self.forget_report();
        } else {
            self.end_with(None);
        }
    }

    fn forget_report(&mut self) {
        if let Phase::Ended(ended) = &mut self.job.phase {
            ended.report = None;
        }
    }

    /// It has ended for this cause; what an agent may still hold is closed, and the server is told unless it wants to hear nothing.
    pub fn end(&mut self, cause: &Cause) {
        let mut stop = self.job.stop.as_ref().map(|stop| stop.reason);
        if matches!(cause, Cause::Finished(Outcome::Failure { kind: OutcomeKind::Cancelled, .. })) {
            // The process before this one asked for it.
            stop = stop.or(self.job.record.stopping);
        }
        let report = (stop != Some(StopReason::Aborted)).then(|| classify(cause, stop));
        self.end_with(report);
    }

    fn end_with(&mut self, report: Option<Report>) {
        let now = self.now();
        self.leave_queue();
        let instance = self.job.instance().cloned();
        let ended =
            Ended { report, instance, close_by: Deadline::after(now, CLOSE_PATIENCE), report_by: Deadline::after(now, REPORT_PATIENCE) };
        self.job.enter(Phase::Ended(ended), now);
        self.job.follow.give_up();
        self.job.cancel.give_up();
    }

    fn leave_queue(&mut self) {
        if matches!(self.job.phase, Phase::Waiting) {
            self.runner.queue.remove(&self.job.arrival);
            self.desk.touch_runner(&self.id.runner);
            if let Some(instance) = self.runner.fleet.made_for(self.id).cloned() {
                self.unclaim(&instance);
            }
        }
    }

    /// Back to the queue: nothing has run.
    fn requeue(&mut self) {
        self.release();
        self.runner.queue.insert(self.job.arrival, self.id.clone());
        self.job.loss = None;
        self.job.lost_by = None;
        self.job.enter(Phase::Waiting, self.now());
        self.desk.touch_runner(&self.id.runner);
    }

    /// Takes a slot of this instance.
    pub fn place(&mut self, instance: InstanceName) {
        self.runner.queue.remove(&self.job.arrival);
        let id = self.id;
        self.change(&instance, |instance| {
            instance.jobs.insert(id.clone());
            instance.uses += 1;
            instance.idle_since = None;
        });
        self.job.dispatch = crate::attempt::Attempt::default();
        self.job.enter(Phase::Placed { instance, is_uncertain: false }, self.now());
        self.desk.touch_job(id);
    }

    /// Gives the slot back.
    fn release(&mut self) {
        if let Some(instance) = self.job.instance().cloned() {
            let (id, now) = (self.id, self.now());
            self.change(&instance, |instance| {
                instance.jobs.remove(id);
                instance.note_idle(now);
            });
            self.unclaim(&instance);
        }
        if let Phase::Ended(ended) = &mut self.job.phase {
            ended.instance = None;
        }
    }

    /// Nothing of it is driven from here any more.
    pub fn leave(&mut self) {
        self.leave_queue();
        self.release();
    }

    /// An environment that was made for this job has no other use.
    fn unclaim(&mut self, instance: &InstanceName) {
        let id = self.id;
        self.change(instance, |instance| {
            if instance.for_job.as_ref() == Some(id) {
                instance.for_job = None;
                instance.retire(Retired::Unclaimed);
            }
        });
    }

    fn change<T>(&mut self, name: &InstanceName, change: impl FnOnce(&mut Instance) -> T) -> Option<T> {
        self.desk.touch_runner(&self.id.runner);
        self.desk.touch_instance(&self.instance_id(name));
        self.runner.fleet.change(name, &self.runner.settings.environments, change)
    }

    fn instance_id(&self, name: &InstanceName) -> InstanceId {
        InstanceId::new(&self.id.runner, name)
    }

    /// The agent did not answer as it should: no more slots there until it has been proven again.
    pub fn suspect(&mut self, name: &InstanceName) {
        let patience = Deadline::after(self.now(), self.runner.settings.environments.ready_timeout);
        self.change(name, |instance| instance.suspect(patience));
        // Those that are not handed over yet look for another place.
        if let Some(instance) = self.runner.fleet.get(name) {
            instance.jobs.iter().for_each(|job| self.desk.touch_job(job));
        }
    }

    fn is_up(&self, name: &InstanceName) -> bool {
        self.runner.fleet.get(name).is_some_and(Instance::is_up)
    }
}
