//! What must be true in the end.

use super::Simulation;
use super::server::{Done, ServerJob, State};
use crate::id::JobId;
use crate::report::{FailureReason, Outcome, Report};

/// What happened over many worlds: a simulation that never meets a case proves nothing about it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub events: u64,
    pub deaths: u64,
    pub amnesias: u64,
    pub vanished: u64,
    jobs: u64,
    success: u64,
    script_failure: u64,
    lost: u64,
    canceled: u64,
    timeout: u64,
    interrupted: u64,
    no_environment: u64,
    unreported: u64,
    stuck: u64,
}

impl Tally {
    pub fn check(&self) {
        for (what, count) in [
            ("deaths", self.deaths),
            ("lost state", self.amnesias),
            ("vanished environments", self.vanished),
            ("success", self.success),
            ("script failure", self.script_failure),
            ("lost", self.lost),
            ("canceled", self.canceled),
            ("timeout", self.timeout),
            ("interrupted", self.interrupted),
        ] {
            assert!(count >= 100, "{what} happened {count} times only: the simulation does not look there");
        }
        assert!(self.success > self.jobs / 3, "most jobs succeed: {self:?}");
    }
}

impl Simulation {
    pub(super) fn check_outcome(&mut self) {
        let jobs = std::mem::take(&mut self.server.jobs);
        for (id, job) in &jobs {
            self.tally.jobs += 1;
            assert!(self.cloud.runs.get(id).is_none_or(|runs| *runs == 1), "{id} ran twice");
            assert!(job.finals <= 1, "{id} was reported {} times", job.finals);
            self.check_job(id, job);
        }
        for (id, machine) in &self.cloud.instances {
            let is_deleted = self.settings.runners[&id.runner].environments.delete_on_shutdown;
            assert!(!is_deleted || machine.is_going(), "{id} is left: {machine:?}");
            assert!(machine.jobs.is_empty(), "the agent of {id} still holds {:?}", machine.jobs.keys());
        }
    }

    fn check_job(&mut self, id: &JobId, job: &ServerJob) {
        match &job.state {
            State::Done(Done::Reported(report)) => self.check_report(id, report),
            State::Done(Done::Canceled | Done::Aborted) => self.tally.unreported += 1,
            State::Done(Done::Stuck) => {
                assert!(job.is_excused, "{id} was lost: {job:?}");
                self.tally.stuck += 1;
            }
            State::Queued | State::Claimed | State::Running | State::Canceling => panic!("{id} is not done: {job:?}"),
        }
    }

    /// The server was told what is true.
    fn check_report(&mut self, id: &JobId, report: &Report) {
        let outcome = self.cloud.outcomes.get(id);
        let message = report.message.as_deref().unwrap_or_default();
        match report.failure {
            None => {
                assert_eq!(outcome, Some(&Outcome::Success), "{id} is said to have succeeded");
                self.tally.success += 1;
            }
            Some(FailureReason::ScriptFailure) => {
                assert!(matches!(outcome, Some(Outcome::Failure { exit_code: Some(1), .. })), "{id} is said to have failed: {outcome:?}");
                self.tally.script_failure += 1;
            }
            Some(FailureReason::RunnerSystemFailure) if message.contains("was lost") => {
                // One that was never begun was on its way when its environment vanished.
                let is_gone =
                    self.cloud.lost.contains_key(id) || !self.cloud.runs.contains_key(id) || message.contains("could not be reached");
                assert!(is_gone, "{id} is said to be lost: {message}");
                self.tally.lost += 1;
            }
            Some(FailureReason::RunnerSystemFailure) => {
                assert!(message.contains("no environment"), "{id}: {message}");
                assert!(!self.cloud.runs.contains_key(id), "{id} had an environment");
                self.tally.no_environment += 1;
            }
            Some(FailureReason::JobCanceled) => {
                // A process that was stopped may have died before it could write down why it killed the job.
                assert!(self.canceled.contains(id) || self.was_stopped, "nobody cancelled {id}");
                self.tally.canceled += 1;
            }
            Some(FailureReason::JobExecutionTimeout) => self.tally.timeout += 1,
            Some(FailureReason::RunnerInterrupted) => self.tally.interrupted += 1,
            other => panic!("{id} was reported as {other:?}"),
        }
    }
}
