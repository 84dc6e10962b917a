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
            // The original's words for a job that was ended from outside or by its deadline (original.md H.3).
            Some(Failure { kind: FailureKind::Cancelled | FailureKind::Timeout, message }) => format!("job \"{id}\" cancelled: {message}"),
            Some(failure) => failure.message.clone(),
        };
        let is_timed_out = failure.is_some_and(|failure| failure.kind == FailureKind::Timeout);
        Self {
            status: if is_timed_out { Status::Cancelled } else { status } as u8,
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

    fn ended(status: Status, kind: Option<FailureKind>, message: &str) -> (u8, String) {
        let failure = kind.map(|kind| Failure { kind, message: message.into() });
        let summary = Summary::of("7", status, failure.as_ref(), None, None, None);
        (summary.status, summary.message)
    }

    #[test]
    fn api_19_a_step_that_ended_well_or_not() {
        assert_eq!(ended(Status::Success, None, ""), (2, String::new()));
        assert_eq!(ended(Status::Failure, Some(FailureKind::StepFailure), "FOO"), (3, "FOO".into()));
    }

    #[test]
    fn api_20_a_job_that_was_cancelled_says_by_which_id() {
        let expected = (4, "job \"7\" cancelled: signal: killed".to_owned());
        assert_eq!(ended(Status::Cancelled, Some(FailureKind::Cancelled), "signal: killed"), expected);
    }

    #[test]
    fn a_job_that_was_ended_by_its_deadline_is_cancelled_and_its_kind_says_why() {
        let failure = Failure { kind: FailureKind::Timeout, message: "step \"s\": exec: signal: terminated".into() };
        let summary = Summary::of("7", Status::Failure, Some(&failure), None, None, None);
        assert_eq!((summary.status, summary.failure), (4, 5));
        assert_eq!(summary.message, "job \"7\" cancelled: step \"s\": exec: signal: terminated");
    }

    #[test]
    fn api_26_final_statuses_stay() {
        assert_eq!(ended(Status::Success, None, "").0, 2);
        assert_eq!(ended(Status::Cancelled, Some(FailureKind::Cancelled), "x").0, 4);
    }

    #[test]
    fn api_28_a_kill_that_somebody_asked_for_is_a_cancel() {
        assert_eq!(ended(Status::Cancelled, Some(FailureKind::Cancelled), "step \"s\": exec: signal: killed").0, 4);
    }

    #[test]
    fn api_29_a_kill_that_nobody_asked_for_is_a_failure() {
        let text = "step \"s\": exec: signal: killed";
        assert_eq!(ended(Status::Failure, Some(FailureKind::StepFailure), text), (3, text.into()));
    }
}
