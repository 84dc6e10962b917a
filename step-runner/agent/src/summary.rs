//! How a job stands, as its callers see it: what `Status` answers.

use serde::{Deserialize, Serialize};
use step_model::result::{Failure, FailureKind, Status};
use step_model::time::Timestamp;

/// A job that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Numbers as on the wire.
    pub status: u8,
    /// The original's text, empty after a success. It ends in `exit status N` where there is one.
    #[serde(default)]
    pub message: String,
    /// Nanoseconds since 1970, as `end`. `None`: it did not begin.
    #[serde(default)]
    pub start: Option<i64>,
    #[serde(default)]
    pub end: Option<i64>,
    /// Numbers as on the wire; zero after a success.
    #[serde(default)]
    pub failure: u8,
    #[serde(default)]
    pub exit_code: Option<i32>,
}

impl Summary {
    /// What is told of a job that ended so. `exit_code`: of the step that failed.
    pub fn of(
        id: &str,
        status: Status,
        failure: Option<&Failure>,
        exit_code: Option<i32>,
        start: Option<Timestamp>,
        end: Option<Timestamp>,
    ) -> Self {
        let message = match failure {
            None => String::new(),
            // The original's words for a job that was ended from outside (original.md H.3).
            Some(Failure { kind: FailureKind::Cancelled, message }) => format!("job \"{id}\" cancelled: {message}"),
            Some(failure) => failure.message.clone(),
        };
        Self {
            status: status as u8,
            message,
            start: start.map(Timestamp::nanoseconds),
            end: end.map(Timestamp::nanoseconds),
            failure: failure.map_or(0, |failure| failure.kind as u8),
            exit_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_was_ended_from_outside_says_so_in_the_words_of_the_original() {
        let failure = Failure { kind: FailureKind::Cancelled, message: "step \"s\": exec: signal: killed".into() };
        let summary = Summary::of("7", Status::Cancelled, Some(&failure), None, None, None);
        assert_eq!(summary.message, "job \"7\" cancelled: step \"s\": exec: signal: killed");
        assert_eq!((summary.status, summary.failure), (4, 4));
    }
}
