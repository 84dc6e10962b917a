//! What the answer to `PUT jobs/:id` means: for a job under way or at its end, for its acceptance, for a beat before it.

use super::{Answer, Answered};
use std::time::Duration;

/// What came of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    pub outcome: UpdateOutcome,
    /// The job is to be cancelled gracefully: its after-script runs, and its end is reported.
    pub cancel_requested: bool,
    /// How often the server wants to hear of the job from now on.
    pub interval: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome {
    Succeeded,
    /// The server has not put the trace together yet: ask again after the interval (202).
    NotComplete,
    /// What the server has does not match the checksum: all of it is sent again (412).
    TraceInvalid,
    /// The job was ended on the server, or is unknown there: nothing more is wanted.
    Aborted,
    Failed {
        why: String,
    },
}

/// Decides what an answer means. The first rule that fits counts.
pub fn updated(answered: &Answered) -> Updated {
    let answer = match answered {
        Ok(answer) => answer,
        // GitLab's runner gives a job up when its settings are broken; so would a file that is being replaced end jobs. Ours waits.
        Err(fault) => {
            return Updated { outcome: UpdateOutcome::Failed { why: fault.to_string() }, cancel_requested: false, interval: None };
        }
    };
    Updated { outcome: outcome(answer), cancel_requested: answer.wants_cancel(), interval: answer.interval() }
}

fn outcome(answer: &Answer) -> UpdateOutcome {
    if answer.is_aborted() {
        return UpdateOutcome::Aborted;
    }
    match answer.status {
        200 => UpdateOutcome::Succeeded,
        202 => UpdateOutcome::NotComplete,
        412 => UpdateOutcome::TraceInvalid,
        404 => UpdateOutcome::Aborted,
        _ => UpdateOutcome::Failed { why: answer.describe() },
    }
}

/// What came of the update that accepts a job: `running`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It is ours, and runs.
    Running,
    /// It is ours, and was cancelled meanwhile: it ends without beginning.
    Canceling,
    /// It is not ours: ended, unknown, or nobody waited for us any more. Nothing more is sent.
    Gone,
    /// The server did not say. It may have accepted: ask again.
    Unknown { why: String },
}

/// Decides what the answer to `running` means. 400: the time in which the server waited is over.
pub fn accepted(answered: &Answered) -> Accepted {
    let updated = updated(answered);
    match (&updated.outcome, answered) {
        (UpdateOutcome::Aborted, _) => Accepted::Gone,
        (UpdateOutcome::Succeeded | UpdateOutcome::NotComplete, _) if updated.cancel_requested => Accepted::Canceling,
        (UpdateOutcome::Succeeded | UpdateOutcome::NotComplete, _) => Accepted::Running,
        (_, Ok(answer)) if answer.status == 400 => Accepted::Gone,
        (UpdateOutcome::Failed { why }, _) => Accepted::Unknown { why: why.clone() },
        (UpdateOutcome::TraceInvalid, _) => Accepted::Unknown { why: "status 412".to_owned() },
    }
}

/// What came of a beat: `pending`, while an environment is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beat {
    /// The server waits for another two minutes.
    Waits,
    /// The job was cancelled: it ends without beginning.
    Canceling,
    /// The server does not know beats, or has put the job down as ours already: no more beats, everything else as ever.
    NotNeeded,
    /// The server gave the job up: give the environment back and send nothing more.
    Gone,
    /// The server did not say. The next beat may.
    Unknown { why: String },
}

/// Decides what the answer to a beat means. `is_late`: more than two minutes have passed since the server last answered one.
pub fn beaten(answered: &Answered, is_late: bool) -> Beat {
    let answer = match answered {
        Ok(answer) => answer,
        Err(fault) => return Beat::Unknown { why: fault.to_string() },
    };
    if answer.is_aborted() {
        return Beat::Gone;
    }
    match answer.status {
        200 | 202 if answer.wants_cancel() => Beat::Canceling,
        200 | 202 => Beat::Waits,
        400 if is_late => Beat::Gone,
        400 | 409 => Beat::NotNeeded,
        404 => Beat::Gone,
        _ => Beat::Unknown { why: answer.describe() },
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answer, no_answer, with_job_status};
    use super::*;

    fn outcome(status: u16) -> UpdateOutcome {
        updated(&Ok(answer(status))).outcome
    }

    #[test]
    fn runner_95_what_each_status_means() {
        assert_eq!(outcome(200), UpdateOutcome::Succeeded);
        assert_eq!(outcome(202), UpdateOutcome::NotComplete);
        assert_eq!(outcome(412), UpdateOutcome::TraceInvalid);
        assert_eq!(outcome(403), UpdateOutcome::Aborted);
        assert_eq!(outcome(404), UpdateOutcome::Aborted);
        assert_eq!(outcome(400), UpdateOutcome::Failed { why: "status 400".to_owned() });
        assert!(matches!(updated(&Err(no_answer())).outcome, UpdateOutcome::Failed { .. }));
    }

    #[test]
    fn runner_96_a_job_that_ended_on_the_server_is_aborted() {
        for status in ["canceled", "failed"] {
            assert_eq!(updated(&Ok(with_job_status(200, status))).outcome, UpdateOutcome::Aborted);
        }
        let running = updated(&Ok(with_job_status(200, "running")));
        assert_eq!((running.outcome, running.cancel_requested), (UpdateOutcome::Succeeded, false));
    }

    #[test]
    fn a_cancel_is_seen_in_every_answer() {
        let canceling = updated(&Ok(with_job_status(200, "canceling")));
        assert_eq!((canceling.outcome, canceling.cancel_requested), (UpdateOutcome::Succeeded, true));
        assert_eq!(accepted(&Ok(with_job_status(200, "canceling"))), Accepted::Canceling);
        assert_eq!(beaten(&Ok(with_job_status(200, "canceling")), false), Beat::Canceling);
    }

    #[test]
    fn a_job_is_accepted_or_not() {
        assert_eq!(accepted(&Ok(answer(200))), Accepted::Running);
        assert_eq!(accepted(&Ok(answer(400))), Accepted::Gone);
        assert_eq!(accepted(&Ok(answer(403))), Accepted::Gone);
        assert_eq!(accepted(&Ok(answer(404))), Accepted::Gone);
        assert!(matches!(accepted(&Ok(answer(502))), Accepted::Unknown { .. }));
        assert!(matches!(accepted(&Err(no_answer())), Accepted::Unknown { .. }));
    }

    #[test]
    fn a_beat_that_a_server_does_not_know_is_not_repeated() {
        assert_eq!(beaten(&Ok(answer(200)), false), Beat::Waits);
        assert_eq!(beaten(&Ok(answer(400)), false), Beat::NotNeeded);
        assert_eq!(beaten(&Ok(answer(409)), false), Beat::NotNeeded);
    }

    #[test]
    fn a_beat_that_comes_too_late_gives_the_job_up() {
        assert_eq!(beaten(&Ok(answer(400)), true), Beat::Gone);
        assert_eq!(beaten(&Ok(answer(403)), false), Beat::Gone);
        assert!(matches!(beaten(&Ok(answer(500)), true), Beat::Unknown { .. }));
    }
}
