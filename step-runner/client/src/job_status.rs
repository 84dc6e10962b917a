//! What an agent says of a job, and how a job has ended.

use crate::wire;
use ci_proto::step_runner::{Status as StatusMessage, status_error};
use std::fmt;
use step_model::result::{FailureKind, Status};
use step_model::time::Timestamp;

/// A job as its agent sees it now.
#[derive(Debug, Clone, PartialEq)]
pub struct JobStatus {
    pub id: String,
    pub status: Status,
    /// Why it did not succeed, in the original's words. Empty while it runs and when it succeeded.
    pub message: String,
    pub start: Option<Timestamp>,
    /// Present when the job is over.
    pub end: Option<Timestamp>,
    /// `None`: nothing failed, or the agent does not say.
    pub kind: Option<FailureKind>,
    /// Of the step that failed the job; from the text where the agent does not say. `None`: none is known.
    pub exit_code: Option<i64>,
    /// Bytes that are in the log. Zero at agents of GitLab.
    pub log_bytes: u64,
    /// What the caller gave along with the job.
    pub owner_record: Vec<u8>,
}

impl JobStatus {
    pub fn of_message(message: StatusMessage) -> Self {
        let status = wire::result::status(message.status());
        let error = message.error.as_ref().filter(|_| status != Status::Success);
        let text =
            if message.message.is_empty() { error.map(|error| error.message.clone()).unwrap_or_default() } else { message.message.clone() };
        let typed = Some(i64::from(message.exit_code)).filter(|code| *code != 0);
        Self {
            status,
            kind: wire::result::failure_kind(message.failure_kind()).or_else(|| kind(status, error.map(status_error_kind))),
            exit_code: typed.or_else(|| exit_code_at_the_end(&text)),
            start: message.start_time.as_ref().map(wire::result::timestamp),
            end: message.end_time.as_ref().map(wire::result::timestamp),
            log_bytes: u64::try_from(message.log_bytes).unwrap_or(0),
            owner_record: message.owner_record,
            id: message.id,
            message: text,
        }
    }

    /// Nothing about this job will change any more.
    pub fn is_over(&self) -> bool {
        matches!(self.status, Status::Success | Status::Failure | Status::Cancelled)
    }

    /// How the job has ended. A job that is not over has not succeeded.
    pub fn outcome(&self) -> Outcome {
        match self.status {
            Status::Success => Outcome::Success,
            status => Outcome::Failure(JobFailure { status, kind: self.kind, exit_code: self.exit_code, message: self.message.clone() }),
        }
    }
}

fn status_error_kind(error: &ci_proto::step_runner::StatusError) -> status_error::Kind {
    error.kind()
}

/// What is known of the failure from what agents of GitLab say. `error`: the kind of later ones.
fn kind(status: Status, error: Option<status_error::Kind>) -> Option<FailureKind> {
    match (status, error) {
        (Status::Success | Status::Running | Status::Unspecified, _) => None,
        (_, Some(status_error::Kind::Timeout)) => Some(FailureKind::Timeout),
        (_, Some(status_error::Kind::Cancelled)) | (Status::Cancelled, _) => Some(FailureKind::Cancelled),
        (_, Some(status_error::Kind::Internal)) => Some(FailureKind::Internal),
        (_, Some(status_error::Kind::StepFailure)) | (Status::Failure, None) => Some(FailureKind::StepFailure),
        (_, Some(status_error::Kind::Unknown)) => None,
    }
}

/// How a job has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Failure(JobFailure),
}

/// Why a job did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFailure {
    /// Failure or cancelled; anything else when the job is not over.
    pub status: Status,
    /// `None`: the agent does not know.
    pub kind: Option<FailureKind>,
    pub exit_code: Option<i64>,
    pub message: String,
}

impl Outcome {
    /// # Errors
    /// The job did not succeed.
    pub fn into_result(self) -> Result<(), JobFailure> {
        match self {
            Self::Success => Ok(()),
            Self::Failure(failure) => Err(failure),
        }
    }
}

/// The message, or the state where there is none.
impl fmt::Display for JobFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.status {
            Status::Unspecified => "unspecified",
            Status::Running => "running",
            Status::Success => "success",
            Status::Failure => "failure",
            Status::Cancelled => "cancelled",
        };
        f.write_str(if self.message.is_empty() { state } else { &self.message })
    }
}

impl std::error::Error for JobFailure {}

/// The exit code that a message ends in, as GitLab's runner reads it (original.md B.5): what follows the first `exit status` must be a number,
/// decimal or hexadecimal, and nothing else.
pub fn exit_code_at_the_end(message: &str) -> Option<i64> {
    let (_, number) = message.split_once("exit status")?;
    let number = number.trim();
    let (sign, digits) = number.strip_prefix('-').map_or((1, number), |digits| (-1, digits));
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    if digits.starts_with(['+', '-']) { None } else { Some(sign * value.ok()?) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ci_proto::step_runner::{StatusError, failure, step_result};

    fn message(status: step_result::Status, text: &str) -> StatusMessage {
        StatusMessage { status: status.into(), message: text.to_owned(), ..StatusMessage::default() }
    }

    fn outcome(status: step_result::Status, text: &str) -> Result<(), String> {
        JobStatus::of_message(message(status, text)).outcome().into_result().map_err(|failure| failure.to_string())
    }

    #[test]
    fn wire_08_a_status_becomes_nothing_or_an_error_that_says_why() {
        assert_eq!(outcome(step_result::Status::Success, ""), Ok(()));
        assert_eq!(
            outcome(step_result::Status::Cancelled, "job \"7\" cancelled: signal: killed"),
            Err("job \"7\" cancelled: signal: killed".into())
        );
        assert_eq!(outcome(step_result::Status::Failure, "step \"a\": exec: exit status 3"), Err("step \"a\": exec: exit status 3".into()));
        assert_eq!(outcome(step_result::Status::Failure, ""), Err("failure".into()));
        assert_eq!(outcome(step_result::Status::Running, ""), Err("running".into()));
    }

    #[test]
    fn wire_11_an_exit_code_is_read_from_the_end_of_a_message_decimal_or_hexadecimal() {
        assert_eq!(exit_code_at_the_end("step \"s\": exec: exit status 7"), Some(7));
        assert_eq!(exit_code_at_the_end("exec: exit status 0xc000013a"), Some(0xc000_013a));
        assert_eq!(exit_code_at_the_end("exec: exit status -1"), Some(-1));
        assert_eq!(exit_code_at_the_end("exec: exit status 7\n"), Some(7));
        assert_eq!(exit_code_at_the_end("exec: exit status 7 and more"), None);
        assert_eq!(exit_code_at_the_end("exit status 1: exec: exit status 7"), None);
        assert_eq!(exit_code_at_the_end("exec: exit status +-7"), None);
        assert_eq!(exit_code_at_the_end("exec: signal: killed"), None);
    }

    #[test]
    fn the_typed_exit_code_wins_over_the_text() {
        let typed = StatusMessage { exit_code: 9, ..message(step_result::Status::Failure, "exit status 7") };
        assert_eq!(JobStatus::of_message(typed).exit_code, Some(9));
    }

    #[test]
    fn the_kind_is_ours_then_the_later_one_of_gitlab_then_what_the_status_says() {
        let failed = || message(step_result::Status::Failure, "x");
        let error = |kind: status_error::Kind| Some(StatusError { kind: kind.into(), message: "from the error".into() });
        let kind = |message| JobStatus::of_message(message).kind;
        assert_eq!(kind(failed()), Some(FailureKind::StepFailure));
        assert_eq!(kind(message(step_result::Status::Cancelled, "x")), Some(FailureKind::Cancelled));
        assert_eq!(kind(StatusMessage { error: error(status_error::Kind::Timeout), ..failed() }), Some(FailureKind::Timeout));
        assert_eq!(kind(StatusMessage { error: error(status_error::Kind::Unknown), ..failed() }), None);
        let ours =
            StatusMessage { failure_kind: failure::Kind::BadInput.into(), error: error(status_error::Kind::StepFailure), ..failed() };
        assert_eq!(kind(ours), Some(FailureKind::BadInput));
        assert_eq!(kind(message(step_result::Status::Success, "")), None);
        let only_error = StatusMessage { message: String::new(), error: error(status_error::Kind::Internal), ..failed() };
        assert_eq!(JobStatus::of_message(only_error).message, "from the error");
    }
}
