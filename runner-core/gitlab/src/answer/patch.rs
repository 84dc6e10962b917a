//! What the answer to `PATCH jobs/:id/trace` means.

use super::Answered;
use std::time::Duration;

/// What came of sending a piece of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    pub outcome: PatchOutcome,
    pub cancel_requested: bool,
    pub interval: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchOutcome {
    /// The server has everything before this offset.
    Accepted {
        end: u64,
    },
    /// The server has another length than the one sent for: go on from here. This is also how a new process learns where it stands.
    RangeMismatch {
        server_has: u64,
    },
    Aborted,
    NotFound,
    Failed {
        why: String,
    },
}

/// Decides what an answer means. `end` is where the piece that was sent ends.
pub fn patched(answered: &Answered, end: u64) -> Patched {
    let answer = match answered {
        Ok(answer) => answer,
        Err(fault) => return Patched { outcome: PatchOutcome::Failed { why: fault.to_string() }, cancel_requested: false, interval: None },
    };
    let outcome = match answer.status {
        _ if answer.is_aborted() => PatchOutcome::Aborted,
        202 => PatchOutcome::Accepted { end },
        416 => PatchOutcome::RangeMismatch { server_has: answer.headers.range.as_deref().and_then(server_has).unwrap_or(0) },
        404 => PatchOutcome::NotFound,
        _ => PatchOutcome::Failed { why: answer.describe() },
    };
    Patched { outcome, cancel_requested: answer.wants_cancel(), interval: answer.interval() }
}

/// `0-N`, where N is the length that the server has.
fn server_has(range: &str) -> Option<u64> {
    let (first, length) = range.split_once('-')?;
    (first.trim() == "0").then(|| length.trim().parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answer, no_answer, with_job_status};
    use super::super::{Answer, Headers};
    use super::*;

    fn out_of_range(range: Option<&str>) -> PatchOutcome {
        let headers = Headers { range: range.map(str::to_owned), ..Headers::default() };
        patched(&Ok(Answer { status: 416, headers, ..Answer::default() }), 17).outcome
    }

    #[test]
    fn runner_63_what_is_accepted_moves_the_offset() {
        assert_eq!(patched(&Ok(answer(202)), 17).outcome, PatchOutcome::Accepted { end: 17 });
    }

    #[test]
    fn runner_69_a_cancel_comes_with_a_piece_that_is_accepted() {
        let patched = patched(&Ok(with_job_status(202, "canceling")), 17);
        assert_eq!((patched.outcome, patched.cancel_requested), (PatchOutcome::Accepted { end: 17 }, true));
    }

    #[test]
    fn runner_70_a_job_that_has_ended_is_aborted() {
        for status in ["canceled", "failed"] {
            assert_eq!(patched(&Ok(with_job_status(202, status)), 17).outcome, PatchOutcome::Aborted);
        }
        assert_eq!(patched(&Ok(answer(403)), 17).outcome, PatchOutcome::Aborted);
    }

    #[test]
    fn runner_72_the_server_says_where_it_stands() {
        assert_eq!(out_of_range(Some("0-10")), PatchOutcome::RangeMismatch { server_has: 10 });
    }

    #[test]
    fn runner_75_a_server_that_does_not_say_where_it_stands_has_nothing() {
        for range in [None, Some(""), Some("bytes"), Some("3-10"), Some("0-x"), Some("0--4")] {
            assert_eq!(out_of_range(range), PatchOutcome::RangeMismatch { server_has: 0 }, "{range:?}");
        }
    }

    #[test]
    fn anything_else_fails_and_moves_nothing() {
        assert_eq!(patched(&Ok(answer(404)), 17).outcome, PatchOutcome::NotFound);
        for answered in [Ok(answer(500)), Ok(answer(429)), Ok(answer(200)), Err(no_answer())] {
            assert!(matches!(patched(&answered, 17).outcome, PatchOutcome::Failed { .. }), "{answered:?}");
        }
    }
}
