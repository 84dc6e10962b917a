//! What an operator may see: views of the controller at this moment.

use crate::controller::Controller;
use crate::event::InstanceState;
use crate::fleet::instance::{Contact, Instance, Retired};
use crate::id::{InstanceId, InstanceName, JobId, RunnerId};
use crate::job::{Job, Phase};
use crate::record::StopReason;
use crate::report::Report;
use crate::runner::{HeldBack, Runner};
use serde::{Deserialize, Serialize};
use step_model::time::Timestamp;

/// One job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    pub job: JobId,
    pub phase: JobPhase,
    pub instance: Option<InstanceName>,
    /// When it entered this phase.
    pub since: Timestamp,
    pub offered_at: Timestamp,
    /// The server knows that it runs.
    pub is_accepted: bool,
    pub stopping: Option<StopReason>,
    /// How it ended, while the server does not have the report.
    pub report: Option<Report>,
    /// Bytes of its log that are here.
    pub bytes: u64,
    /// What went wrong last, while it is tried again.
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobPhase {
    Waiting,
    Placed,
    Dispatching,
    Running,
    /// It runs, and its agent cannot be reached.
    OutOfContact,
    Ended,
}

/// One environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceView {
    pub instance: InstanceId,
    pub state: InstanceState,
    pub is_reachable: bool,
    /// It was reached before, and is not now.
    pub is_suspect: bool,
    pub jobs: Vec<JobId>,
    /// Jobs of others, which its agent holds.
    pub foreign_jobs: u32,
    pub uses: u32,
    /// Why it gets no more jobs.
    pub retired: Option<Retired>,
}

/// One entry of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerView {
    pub runner: RunnerId,
    pub name: String,
    pub jobs: u32,
    pub waiting: u32,
    pub polls: u32,
    pub instances: u32,
    /// Places for jobs that are free now.
    pub free: u32,
    /// Why no job is asked for at this moment, beyond the polls that are open.
    pub held_back: Option<HeldBack>,
    /// What the provider did not do last.
    pub trouble: Option<String>,
}

impl Controller {
    /// All jobs that are not over, by number.
    pub fn jobs(&self) -> impl Iterator<Item = JobView> {
        self.all_jobs().map(|(id, job)| self.view_of(id, job))
    }

    pub fn job(&self, id: &JobId) -> Option<JobView> {
        self.get_job(id).map(|job| self.view_of(id, job))
    }

    pub fn instances(&self) -> impl Iterator<Item = InstanceView> {
        self.all_runners().flat_map(|(id, runner)| {
            runner.fleet.instances().map(move |(name, instance)| view_of_instance(InstanceId::new(id, name), instance))
        })
    }

    pub fn runners(&self) -> impl Iterator<Item = RunnerView> {
        self.all_runners().map(|(id, runner)| self.view_of_runner(id, runner))
    }

    fn view_of(&self, id: &JobId, job: &Job) -> JobView {
        let is_out_of_contact = matches!(job.phase, Phase::Running { .. }) && !job.follow.is_open();
        JobView {
            job: id.clone(),
            phase: match &job.phase {
                Phase::Waiting => JobPhase::Waiting,
                Phase::Placed { .. } => JobPhase::Placed,
                Phase::Dispatching { .. } => JobPhase::Dispatching,
                Phase::Running { .. } if is_out_of_contact => JobPhase::OutOfContact,
                Phase::Running { .. } => JobPhase::Running,
                Phase::Ended(_) => JobPhase::Ended,
            },
            instance: job.instance().cloned(),
            since: job.since,
            offered_at: job.record.offered_at,
            is_accepted: job.record.accepted,
            stopping: job.record.stopping,
            report: match &job.phase {
                Phase::Ended(ended) => ended.report.clone(),
                _ => None,
            },
            bytes: job.bytes,
            trouble: job.trouble.clone(),
        }
    }

    fn view_of_runner(&self, id: &RunnerId, runner: &Runner) -> RunnerView {
        RunnerView {
            runner: id.clone(),
            name: runner.settings.name.clone(),
            jobs: runner.jobs,
            waiting: u32::try_from(runner.queue.len()).unwrap_or(u32::MAX),
            polls: runner.open(),
            instances: runner.fleet.len(),
            free: runner.fleet.counts.free,
            held_back: self.holds_back(id),
            trouble: runner.fleet.trouble.clone(),
        }
    }
}

fn view_of_instance(id: InstanceId, instance: &Instance) -> InstanceView {
    InstanceView {
        instance: id,
        state: instance.state,
        is_reachable: instance.is_up(),
        is_suspect: matches!(instance.contact, Contact::Suspect { .. }),
        jobs: instance.jobs.iter().cloned().collect(),
        foreign_jobs: instance.foreign,
        uses: instance.uses,
        retired: instance.retired,
    }
}
