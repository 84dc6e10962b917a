//! What must outlive the process: one record per job.

use crate::id::{Generation, InstanceName, JobId};
use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use step_model::time::Timestamp;

/// The part of a job's record that this crate decides with. What carries effects out keeps the rest beside it (payload, token, connection hints, offsets of
/// the log), and seals both into the owner record that travels with the job, so that an agent gives it back to a process that has lost its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub job: JobId,
    pub stage: Stage,
    /// The server knows that it runs (two-phase), or was told so before it asked.
    pub accepted: bool,
    /// What the job needs of its environment, for a provider that is asked per job.
    #[serde(default)]
    pub requirements: Requirements,
    /// The server's limit for the job, counted from its dispatch.
    pub timeout: Duration,
    #[serde(with = "nanoseconds")]
    pub offered_at: Timestamp,
    /// When the time limit ends, once it is running.
    #[serde(with = "optional_nanoseconds")]
    pub ends_by: Option<Timestamp>,
    /// Why it is being ended, if it is.
    pub stopping: Option<StopReason>,
    /// Of the process that wrote this.
    pub generation: Generation,
}

/// How far a job has come, as far as it matters to a process that finds the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// No agent has been asked to run it: it may be given to any environment.
    Offered,
    /// An agent may have been asked. Durable before it is: otherwise the next process could run the job a second time elsewhere.
    Dispatching { instance: InstanceName },
    /// The agent has it.
    Running { instance: InstanceName },
    /// All of it that is needed is here: log in the spool, outcome classified. Only the server has to hear of it, and the agent to let go.
    Ended {
        /// `None`: the server wants no report.
        report: Option<Report>,
        /// Where an agent may still hold it.
        instance: Option<InstanceName>,
    },
}

impl Stage {
    pub fn instance(&self) -> Option<&InstanceName> {
        match self {
            Self::Offered => None,
            Self::Dispatching { instance } | Self::Running { instance } => Some(instance),
            Self::Ended { instance, .. } => instance.as_ref(),
        }
    }
}

/// What a job needs of its environment, as the payload says it: `image`, `tags`, `cpu`. Only providers read it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Requirements(pub BTreeMap<String, String>);

/// Why a job is ended before its own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The server said `canceling`: end the script, run what always runs, report.
    Canceled,
    /// The server wants nothing more of it (`canceled`, `failed`, 403, 404): end everything at once, report nothing.
    Aborted,
    /// Its time limit has passed.
    TimedOut,
    /// The manager is being stopped.
    Interrupted,
}

mod nanoseconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use step_model::time::Timestamp;

    pub fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        time.nanoseconds().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_nanoseconds)
    }
}

mod optional_nanoseconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use step_model::time::Timestamp;

    pub fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(Timestamp::nanoseconds).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(Timestamp::from_nanoseconds))
    }
}
