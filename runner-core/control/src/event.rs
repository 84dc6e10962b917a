//! What happened.

use crate::id::{EffectId, InstanceId, InstanceName, JobId, RunnerId};
use crate::record::{Record, Requirements};
use crate::report::{Outcome, Report};
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Outcomes of effects, and what comes from outside. Any event at any time is legal; an outcome that nobody waits for is ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Of `Take`, from the source. `was_retried`: an answer on the way was one that asks to slow down (408, 429, 5xx).
    Polled { id: EffectId, runner: RunnerId, answer: PollAnswer, was_retried: bool },
    /// Of `Verify`, from the source.
    Verified { id: EffectId, runner: RunnerId, is_served: bool },
    /// Of `Save`, from the store.
    Saved { id: EffectId, job: JobId, outcome: Result<(), String> },
    /// Of `Heartbeat`, from the source.
    Beaten { id: EffectId, job: JobId, answer: Acknowledgement },
    /// Of `Accept`, from the source.
    Accepted { id: EffectId, job: JobId, answer: Acknowledgement },
    /// Of `Increase`, from the provider.
    Increased { id: EffectId, runner: RunnerId, outcome: Result<Granted, Refusal> },
    /// Of `Decrease`, from the provider: what it agreed to remove. The instances are gone when an `Updated` no longer lists them.
    Decreased { id: EffectId, runner: RunnerId, outcome: Result<Vec<InstanceName>, Refusal> },
    /// Of `Update`, from the provider: all that there are. Believed over memory. A failed one takes nothing away.
    Updated { id: EffectId, runner: RunnerId, outcome: Result<Vec<(InstanceName, InstanceState)>, String> },
    /// Of `Inspect`, from the provider.
    Inspected { id: EffectId, instance: InstanceId, health: Health },
    /// Of `Connect`, from the connector: the agent answers, and these are the jobs that it holds, all of them.
    Connected { id: EffectId, instance: InstanceId, outcome: Result<Vec<Found>, Refusal> },
    /// From the connector, unasked: the connection broke. Jobs that are followed hear of their own streams by `Followed`.
    Disconnected { instance: InstanceId, reason: String },
    /// Of `Dispatch`, from the agent.
    Dispatched { id: EffectId, job: JobId, outcome: Result<(), DispatchFault> },
    /// While `Follow` is open: so many bytes of the log are durable here. For people; nothing is decided by it.
    Progressed { job: JobId, bytes: u64 },
    /// Of `Follow`: the job's end, or the stream's.
    Followed { id: EffectId, job: JobId, end: FollowEnd },
    /// Of `Cancel`, from the agent.
    CancelSent { id: EffectId, job: JobId, outcome: Result<(), String> },
    /// Of `Close`, from the agent.
    Closed { id: EffectId, job: JobId, outcome: Result<(), String> },
    /// Of `Report`, from the source.
    Reported { id: EffectId, job: JobId, answer: ReportAnswer },
    /// From the source, unasked: what an answer to a patch or touch said about the job.
    ServerSaid { job: JobId, word: ServerWord },
    /// From the source, unasked: so many jobs of this runner are known to come and are not ready to run. The latest word counts, for ten minutes.
    Announced { runner: RunnerId, jobs: u32 },
    /// A new configuration: counts, limits and times hold from now on; runners that are gone take no more jobs; running jobs are not touched. Health is
    /// forgotten.
    Reloaded { settings: Box<Settings> },
    /// SIGQUIT: take no more jobs, end when the last one has ended. Again: nothing.
    Drain,
    /// SIGTERM, SIGINT: end all jobs, and the process within `shutdown_timeout`. Again: exit at once.
    Stop,
    /// Leave the jobs running and exit as soon as each has its record.
    Detach,
    /// Time has passed: due no later than `Controller::next_deadline`.
    Woken,
}

/// What a poll brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PollAnswer {
    /// The loop keeps the payload, under the job's number.
    Job(Box<Offer>),
    /// No job, or another manager was faster.
    Nothing,
    /// 403, or a client that cannot be built: counts towards the limit of unhealthy polls.
    Refused { reason: String },
    /// Not reached, not understood, unavailable: healthy, and asked again after a while.
    Failed { reason: String },
}

/// A job as it is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub number: u64,
    /// The server's time limit for the job.
    pub timeout: Duration,
    pub requirements: Requirements,
    /// What forbids to run it, found when its payload was read: unsupported options, steps that cannot be read. It is accepted and reported, and never runs.
    pub fault: Option<Report>,
}

/// The server's answer to `PUT pending` and `PUT running`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acknowledgement {
    /// 200.
    Good,
    /// 400 or 409: already running, already recorded, nobody is waiting. What it means follows from what was sent when.
    Refused { reason: String },
    /// 200 with `Job-Status: canceling`.
    Canceling,
    /// 403, 404, `Job-Status: canceled` or `failed`: the server wants nothing more.
    Aborted,
    /// No answer, or one that says nothing: it may have been heard.
    Failed { reason: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Granted {
    /// So many instances are coming.
    Count(u32),
    /// The environment for the job that was asked for; it is there.
    Instance(InstanceName),
}

/// Why a provider, a connector or an agent did not do it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: String,
    /// Asking again will not help: no such image, no permission, wrong credentials.
    pub is_final: bool,
}

/// An instance, as its group reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    Creating,
    Running,
    Deleting,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    Alive,
    /// It does not exist any more, or will never answer again.
    Gone {
        cause: String,
    },
    /// Nobody could say.
    Unknown {
        reason: String,
    },
}

/// A job that an agent holds, as a new connection finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub job: JobId,
    /// What travelled with the job, unsealed. `None`: it cannot be read (another runner's, or damaged), and the job is left alone.
    pub record: Option<Box<Record>>,
}

/// Why an agent did not take a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DispatchFault {
    /// The connection broke: it may have taken it.
    Unreachable { reason: String },
    /// It did not, and would not the next time.
    Refused { outcome: Outcome },
    /// It did not, and may the next time: full, ending.
    Busy { reason: String },
    /// A later manager drives this job.
    Fenced,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FollowEnd {
    /// The job has ended; all of its log is durable here, and its result.
    Ended(Outcome),
    /// The stream broke. The job may go on.
    Broken { reason: String },
    /// The agent answers, and does not know the job.
    UnknownJob,
    /// A later manager drives this job.
    Fenced,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportAnswer {
    /// The server has it.
    Delivered,
    /// The server wants nothing of it: it had it already, or the job is gone.
    Unwanted,
    /// Not delivered within the loop's limits; it will be asked again.
    Failed { reason: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerWord {
    /// `Job-Status: canceling`.
    Canceling,
    /// `Job-Status: canceled` or `failed`, 403, 404.
    Aborted,
}
