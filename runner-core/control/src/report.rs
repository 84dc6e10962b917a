//! How a job ended: as the agent says it, as it is classified, and as the server is told.

use serde::{Deserialize, Serialize};

/// What the server is told in the end, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// `None`: the job succeeded.
    pub failure: Option<FailureReason>,
    /// Of the process that failed; zero is not sent.
    pub exit_code: i32,
    /// A line for people, for the end of the log, where the log does not say it already: why the environment was lost. Nothing secret.
    pub message: Option<String>,
}

impl Report {
    pub const fn success() -> Self {
        Self { failure: None, exit_code: 0, message: None }
    }

    pub const fn failed(reason: FailureReason) -> Self {
        Self { failure: Some(reason), exit_code: 0, message: None }
    }

    pub fn because(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }
}

/// The reasons that a runner gives, by the names that `retry:when` uses. Splitting one breaks users' rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    ScriptFailure,
    RunnerSystemFailure,
    JobExecutionTimeout,
    JobCanceled,
    RunnerInterrupted,
    ImagePullFailure,
    RunnerConfigurationError,
    RunnerExternalDependencyFailure,
    RunnerUnsupported,
    UnknownFailure,
}

/// What an agent says of a job that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Success,
    Failure {
        kind: OutcomeKind,
        /// Of the process whose failure failed the job, if it was one. Windows gives numbers above 2^31.
        exit_code: Option<i64>,
        /// The original's text: `step "a": exec: exit status 1`.
        message: String,
    },
}

/// Why a job failed, as the agent tells it (its failure kinds, and what went wrong on the way to a container).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    StepFailure,
    BadInput,
    /// By lock or policy.
    Refused,
    Cancelled,
    Timeout,
    Internal,
    /// The process that ran the job died.
    Interrupted,
    /// The image of the job could not be had; the message says why.
    Image,
    /// The agent gave a kind that is not known here.
    Unknown,
}
