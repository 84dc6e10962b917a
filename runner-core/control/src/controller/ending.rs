//! How the process ends: drained, stopped, or gone without its jobs.

use super::Controller;
use crate::agenda::Subject;
use crate::effect::{Effect, Exit};
use crate::fleet::instance::Retired;
use crate::id::{InstanceId, JobId};
use crate::record::StopReason;
use step_model::time::Deadline;

/// ```text
///  Serving --Drain--> Draining --------no job is left--------.
///     |  '---Stop------. |                                   v
///     |                v v Stop                       environments are removed
///     |              Stopping --no job is left-------> where that is wanted --> Exited
///     |                 |----shutdown_timeout---------------------------------^ ^ ^
///     |                 '----Stop again-----------------------------------------' |
///     '---Detach--> Detaching --every record is durable---------------------------'
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Serving,
    /// No new jobs; those that are here are finished.
    Draining,
    /// Every job is ended.
    Stopping,
    /// Jobs are left as they are.
    Detaching,
    Exited,
}

impl Controller {
    pub(super) fn on_drain(&mut self) {
        if self.mode == Mode::Serving {
            self.mode = Mode::Draining;
            self.desk.touch(Subject::Process);
        }
    }

    pub(super) fn on_stop(&mut self) {
        match self.mode {
            Mode::Serving | Mode::Draining => {
                self.mode = Mode::Stopping;
                self.begin_deadline();
                self.withdraw_polls();
                let (now, desk) = (self.desk.now, &mut self.desk);
                for (id, job) in &mut self.jobs {
                    job.stop(StopReason::Interrupted, now);
                    desk.touch_job(id);
                }
                self.desk.touch(Subject::Process);
            }
            Mode::Stopping | Mode::Detaching => self.exit(Exit::AtOnce),
            Mode::Exited => {}
        }
    }

    pub(super) fn on_detach(&mut self) {
        if matches!(self.mode, Mode::Serving | Mode::Draining) {
            self.mode = Mode::Detaching;
            self.begin_deadline();
            self.withdraw_polls();
            self.unsaved = self.jobs.iter().filter(|(_, job)| job.save.is_due()).map(|(id, _)| id.clone()).collect();
            self.desk.touch(Subject::Process);
        }
    }

    fn begin_deadline(&mut self) {
        self.end_by = Some(Deadline::after(self.desk.now, self.settings.shutdown_timeout));
    }

    fn withdraw_polls(&mut self) {
        for take in self.runners.values().flat_map(|runner| &runner.intake.open) {
            self.desk.tell(Effect::Withdraw { take: *take });
        }
    }

    pub(super) fn advance_ending(&mut self) {
        if self.end_by.is_some_and(|deadline| deadline.has_passed(self.desk.now)) {
            return self.exit(if self.mode == Mode::Detaching { Exit::Detached } else { Exit::TimedOut });
        }
        // Jobs of before that are not found yet are jobs too, as long as somebody waits for the end of jobs.
        let is_searching = self.mode == Mode::Draining && self.runners.values().any(|runner| runner.is_recovering(self.desk.now));
        let is_quiet = self.polls == 0 && self.jobs.is_empty() && !is_searching;
        match self.mode {
            Mode::Serving | Mode::Exited => {}
            // A poll that was withdrawn may still bring a job, which needs its record.
            Mode::Detaching if self.unsaved.is_empty() && self.polls == 0 => self.exit(Exit::Detached),
            Mode::Draining | Mode::Stopping if is_quiet => self.remove_environments(),
            Mode::Draining | Mode::Stopping | Mode::Detaching => {}
        }
        self.desk.agenda.set(&Subject::Process, self.end_by);
    }

    /// The last thing, where it is wanted; it takes no longer than a forced stop may.
    fn remove_environments(&mut self) {
        let mut is_over = true;
        for (id, runner) in self.runners.iter_mut().filter(|(_, runner)| runner.settings.environments.delete_on_shutdown) {
            is_over &= runner.fleet.is_known && runner.fleet.is_empty() && runner.fleet.requested == 0 && runner.fleet.asked_for.is_empty();
            if runner.fleet.is_closing {
                continue;
            }
            runner.fleet.is_closing = true;
            let names: Vec<_> = runner.fleet.instances().map(|(name, _)| name.clone()).collect();
            for name in names {
                runner.fleet.change(&name, &runner.settings.environments, |instance| instance.retire(Retired::ShuttingDown));
                self.desk.touch_instance(&InstanceId::new(id, &name));
            }
            self.desk.touch_runner(id);
        }
        if is_over {
            self.exit(Exit::Done);
        } else if self.end_by.is_none() {
            self.begin_deadline();
        }
    }

    fn exit(&mut self, how: Exit) {
        self.mode = Mode::Exited;
        self.desk.tell(Effect::Exit { how });
    }

    /// After a job's turn, while the process leaves.
    pub(super) fn note_unsaved(&mut self, id: &JobId) {
        let is_due = self.jobs.get(id).is_some_and(|job| job.save.is_due());
        if is_due {
            self.unsaved.insert(id.clone());
        } else {
            self.unsaved.remove(id);
        }
        self.desk.touch(Subject::Process);
    }
}
