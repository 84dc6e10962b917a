//! What the controller wants done.

use crate::id::{EffectId, Generation, InstanceId, InstanceName, JobId, RunnerId};
use crate::record::{Record, Requirements};
use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What should happen. Whoever carries effects out starts one task for each and waits for none. An effect with an `id` gets exactly one outcome with the
/// same id while the loop lives: the event that its comment names. Effects about one job are given in an order that may be kept or not, but for `Save` and
/// `Forget` of one job, which are carried out one after another.
///
/// Bytes of logs do not pass through here: the loop moves them from agent to server, and tells ends and offsets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Ask the source of this runner for one job. A slot, a request slot and capacity are reserved until the outcome is told. `open`: how many polls of
    /// the runner are open, with this one. Outcome: `Polled`.
    Take { id: EffectId, runner: RunnerId, open: u32 },
    /// Give up a poll that is open. No outcome of its own; the poll still has one (a job that came meanwhile, or none).
    Withdraw { take: EffectId },
    /// Ask with a small request whether the server serves this runner again, while it is not polled (`POST runners/verify`). Outcome: `Verified`.
    Verify { id: EffectId, runner: RunnerId },
    /// Make the record durable, together with what is kept beside it. Outcome: `Saved`.
    Save { id: EffectId, record: Box<Record> },
    /// Tell the server that the job is being prepared (`PUT pending`). Outcome: `Beaten`.
    Heartbeat { id: EffectId, job: JobId },
    /// Tell the server that the job runs (`PUT running`). From a good answer on, the loop keeps the job's log and its touches going until `Report` is done or
    /// `Forget`. Outcome: `Accepted`.
    Accept { id: EffectId, job: JobId },
    /// Ask for environments. Outcome: `Increased`. They exist when an `Updated` lists them, or the outcome names one.
    Increase { id: EffectId, runner: RunnerId, ask: Ask },
    /// Remove environments. They hold no job. Outcome: `Decreased`.
    Decrease { id: EffectId, runner: RunnerId, instances: Vec<InstanceName> },
    /// List the environments of the runner with their states. Outcome: `Updated`.
    Update { id: EffectId, runner: RunnerId },
    /// Ask whether one environment lives: a forced update and a heartbeat. Outcome: `Inspected`.
    Inspect { id: EffectId, instance: InstanceId },
    /// Make the environment usable and prove it: dial, put the agent there unless it is, speak to it, and ask which jobs it holds. A connection that is there
    /// is proven again. Outcome: `Connected`.
    Connect { id: EffectId, instance: InstanceId, generation: Generation },
    /// Drop what is kept for reaching this environment: it is gone. No outcome.
    Disconnect { instance: InstanceId },
    /// Have the agent run the job. Asking twice is harmless: an agent that has the job says so. `time_limit`: what the agent enforces. Outcome: `Dispatched`.
    Dispatch { id: EffectId, job: JobId, instance: InstanceId, time_limit: Duration, generation: Generation },
    /// Move the job's log from the first byte that is not in the spool, to its end, and get the result. Outcome: `Followed`, after the last byte is durable.
    Follow { id: EffectId, job: JobId, instance: InstanceId, generation: Generation },
    /// Have the agent end the job. Asking twice is harmless. Outcome: `CancelSent`; how the job ends is told by `Followed`.
    Cancel { id: EffectId, job: JobId, instance: InstanceId, how: CancelHow, generation: Generation },
    /// Have the agent forget the job; a job that runs is killed; a job that it does not know is no fault. Outcome: `Closed`.
    Close { id: EffectId, job: JobId, instance: InstanceId, generation: Generation },
    /// Send what is left of the log and the final state, as often as it takes within the loop's own limits. Outcome: `Reported`.
    Report { id: EffectId, job: JobId, report: Report },
    /// The job is over for this process: end its touches, remove record and spool. No outcome; nothing about this job follows.
    Forget { job: JobId },
    /// End the job's touches and keep record and spool: another manager drives the job. No outcome; nothing about this job follows.
    Disown { job: JobId },
    /// The process may end. The last effect, exactly once.
    Exit { how: Exit },
}

impl Effect {
    /// What its outcome will carry.
    pub fn id(&self) -> Option<EffectId> {
        match self {
            Self::Take { id, .. }
            | Self::Verify { id, .. }
            | Self::Save { id, .. }
            | Self::Heartbeat { id, .. }
            | Self::Accept { id, .. }
            | Self::Increase { id, .. }
            | Self::Decrease { id, .. }
            | Self::Update { id, .. }
            | Self::Inspect { id, .. }
            | Self::Connect { id, .. }
            | Self::Dispatch { id, .. }
            | Self::Follow { id, .. }
            | Self::Cancel { id, .. }
            | Self::Close { id, .. }
            | Self::Report { id, .. } => Some(*id),
            Self::Withdraw { .. } | Self::Disconnect { .. } | Self::Forget { .. } | Self::Disown { .. } | Self::Exit { .. } => None,
        }
    }
}

/// The two shapes of the port that gives environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// So many more of a group of equal instances.
    Count(u32),
    /// One for this job.
    ForJob { job: JobId, requirements: Requirements },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelHow {
    /// Ask the running step to end, then run what always runs (`after_script`).
    Gracefully,
    /// Kill.
    AtOnce,
}

/// How a manager ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Every job has ended and was reported.
    Done,
    /// `shutdown timed out`: jobs or environments are left; records of the jobs are kept.
    TimedOut,
    /// Somebody asked a second time.
    AtOnce,
    /// Jobs go on in their environments; each has its record.
    Detached,
}
