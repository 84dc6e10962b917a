//! Jobs of before: found in the store, or with the agents that run them when the store is gone.

use super::Controller;
use super::ending::Mode;
use crate::event::{Found, InstanceState};
use crate::fleet::instance::Instance;
use crate::id::{EffectId, InstanceId, InstanceName, JobId};
use crate::job::{CLOSE_PATIENCE, Ended, Job, Phase, REPORT_PATIENCE, Save};
use crate::record::{Record, Stage, StopReason};
use std::time::Duration;
use step_model::time::{Deadline, Now, Timestamp};

impl Controller {
    /// Takes up a job where its record left it. Nothing is done for it before the provider has said what there is.
    pub(super) fn recover(&mut self, record: Record) {
        let (now, arrival) = (self.desk.now, self.count());
        let id = record.job.clone();
        let Some(runner) = self.runners.get_mut(&id.runner) else { return self.unserved.push(id) };
        let phase = match &record.stage {
            Stage::Offered => Phase::Waiting,
            Stage::Dispatching { instance } => Phase::Placed { instance: instance.clone(), is_uncertain: true },
            Stage::Running { instance } => Phase::Running { instance: instance.clone() },
            Stage::Ended { report, instance } => Phase::Ended(Ended {
                report: report.clone(),
                instance: instance.clone(),
                close_by: Deadline::after(now, CLOSE_PATIENCE),
                report_by: Deadline::after(now, REPORT_PATIENCE.saturating_sub(now.wall.since(record.offered_at))),
            }),
        };
        let mut job = Job::new(record, phase, arrival, runner.settings.environments.acquire_timeout, now);
        job.save = Save::found(job.record.stage.clone());
        job.ends_at = job.record.ends_by.map(|ends_by| deadline_at(ends_by, now));
        // The server has heard nothing for as long as nobody was here.
        job.beat.hurry();
        match job.record.stopping {
            // Whoever stopped the process before has started this one: a job that its end did not reach may go on.
            Some(StopReason::Interrupted) | None => {}
            Some(reason) => job.stop(reason, now),
        }
        if matches!(job.phase, Phase::Waiting) {
            runner.queue.insert(arrival, id.clone());
        }
        runner.jobs += 1;
        if let Some(instance) = job.instance().cloned() {
            self.hold(&InstanceId::new(&id.runner, &instance), &id);
        }
        self.jobs.insert(id.clone(), job);
        self.desk.touch_job(&id);
    }

    /// A slot is taken, by a job that has it already.
    fn hold(&mut self, instance: &InstanceId, job: &JobId) {
        let Some(runner) = self.runners.get_mut(&instance.runner) else { return };
        let (name, environments): (&InstanceName, _) = (&instance.name, &runner.settings.environments);
        if runner.fleet.get(name).is_none() {
            // What is asked first will tell whether it is still there.
            runner.fleet.insert(name.clone(), Instance::new(InstanceState::Running, EffectId(0)), environments);
        }
        runner.fleet.change(name, environments, |instance| {
            instance.jobs.insert(job.clone());
            instance.uses = instance.uses.saturating_add(1);
            instance.idle_since = None;
        });
        self.desk.touch_instance(instance);
    }

    /// An agent holds a job that nobody here knows: the state is gone, and the record came back with the job.
    pub(super) fn on_found(&mut self, instance: &InstanceId, found: Found) {
        let (now, generation) = (self.desk.now, self.desk.generation);
        if self.jobs.contains_key(&found.job) || self.over.known.contains(&found.job) {
            return;
        }
        let is_ours = |record: &Record| record.job == found.job && record.job.runner == instance.runner && record.generation <= generation;
        let Some(record) = found.record.map(|record| *record).filter(is_ours) else {
            if let Some(runner) = self.runners.get_mut(&instance.runner) {
                runner.fleet.change(&instance.name, &runner.settings.environments, |known| known.foreign += 1);
            }
            return;
        };
        let arrival = self.count();
        let Some(runner) = self.runners.get_mut(&instance.runner) else { return };
        let phase = Phase::Running { instance: instance.name.clone() };
        let mut job = Job::new(record, phase, arrival, runner.settings.environments.acquire_timeout, now);
        job.record.stage = Stage::Running { instance: instance.name.clone() };
        // It travelled with a job that was accepted before it was handed over.
        job.record.accepted = true;
        job.ends_at = job.record.ends_by.map(|ends_by| deadline_at(ends_by, now));
        job.save.changed();
        if self.mode == Mode::Stopping {
            job.stop(StopReason::Interrupted, now);
        }
        runner.jobs += 1;
        let id = found.job;
        self.jobs.insert(id.clone(), job);
        self.hold(instance, &id);
        self.desk.touch_job(&id);
    }
}

/// A moment by the clock on the wall, as a deadline of this process.
fn deadline_at(moment: Timestamp, now: Now) -> Deadline {
    let left = moment.since(now.wall);
    Deadline::after(now, left.max(Duration::from_millis(1)))
}
