//! What the answer to `POST jobs/request` means.

use super::Answered;
use crate::job::{NotAJob, ReceivedJob};

/// What came of asking for a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Polled {
    Job(Box<ReceivedJob>),
    NoJob,
    /// The server knows neither token nor runner, or does not let it in.
    Forbidden {
        why: String,
    },
    /// Another manager was faster (409).
    Conflict,
    /// The instance is away for a moment, maintenance for example (503).
    Unavailable,
    /// Anything else: a limit, an orphaned runner, a proxy's page, no network. The next poll may well succeed.
    Failed {
        why: String,
    },
    /// Nothing was sent: the settings of this runner cannot be used.
    Unusable {
        why: String,
    },
}

impl Polled {
    /// Whether the runner counts as healthy after it. A server that cannot be reached is no fault of the runner.
    pub fn is_healthy(&self) -> bool {
        !matches!(self, Self::Forbidden { .. } | Self::Unusable { .. })
    }
}

/// Decides what an answer means.
pub fn polled(answered: &Answered) -> Polled {
    let answer = match answered {
        Ok(answer) => answer,
        Err(fault) if fault.is_of_settings() => return Polled::Unusable { why: fault.to_string() },
        Err(fault) => return Polled::Failed { why: fault.to_string() },
    };
    match answer.status {
        201 => match answer.json().map_err(NotAJob::from).and_then(|payload| ReceivedJob::read(&payload, answer.body.clone())) {
            Ok(job) => Polled::Job(Box::new(job)),
            Err(fault) => Polled::Failed { why: fault.to_string() },
        },
        204 => Polled::NoJob,
        403 => Polled::Forbidden { why: answer.describe() },
        409 => Polled::Conflict,
        503 => Polled::Unavailable,
        _ => Polled::Failed { why: answer.describe() },
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answer, json, no_answer};
    use super::super::{Answer, NoAnswer};
    use super::*;
    use bytes::Bytes;

    #[test]
    fn runner_14_a_job_is_taken_as_it_was_received() {
        let text = r#"{"id":10,"token":"job-token","git_info":{"repo_url":"https://gitlab-ci-token:job-token@gitlab.example/a.git"}}"#;
        let Polled::Job(job) = polled(&Ok(json(201, text))) else { panic!("a job") };
        assert_eq!((job.id, job.token.expose(), job.payload), (10, "job-token", Bytes::from_static(text.as_bytes())));
    }

    #[test]
    fn runner_15_no_job_is_healthy() {
        let polled = polled(&Ok(answer(204)));
        assert_eq!(polled, Polled::NoJob);
        assert!(polled.is_healthy());
    }

    #[test]
    fn runner_18_forbidden_is_unhealthy() {
        let polled = polled(&Ok(json(403, r#"{"message":"403 Forbidden"}"#)));
        assert_eq!(polled, Polled::Forbidden { why: "status 403: 403 Forbidden".to_owned() });
        assert!(!polled.is_healthy());
    }

    #[test]
    fn runner_20_an_instance_that_is_away_does_not_make_a_runner_unhealthy() {
        let polled = polled(&Ok(answer(503)));
        assert_eq!((polled.is_healthy(), polled), (true, Polled::Unavailable));
    }

    #[test]
    fn runner_21_a_limit_does_not_make_a_runner_unhealthy() {
        let polled = polled(&Ok(answer(429)));
        assert_eq!((polled.is_healthy(), polled), (true, Polled::Failed { why: "status 429".to_owned() }));
    }

    #[test]
    fn a_race_that_is_lost_is_none_of_our_faults() {
        assert_eq!(polled(&Ok(answer(409))), Polled::Conflict);
        assert!(polled(&Ok(answer(409))).is_healthy());
    }

    #[test]
    fn what_is_no_job_fails_and_the_runner_is_healthy() {
        let page = Answer { body: Bytes::from_static(b"<html>"), ..answer(201) };
        for answered in
            [Ok(page), Ok(json(201, "{\"id\":")), Ok(json(201, "[]")), Ok(json(201, r#"{"id":"x"}"#)), Ok(answer(422)), Err(no_answer())]
        {
            let polled = polled(&answered);
            assert!(matches!(polled, Polled::Failed { .. }) && polled.is_healthy(), "{answered:?}");
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_unhealthy() {
        let polled = polled(&Err(NoAnswer::Settings { why: "no certificate in ca.pem".to_owned() }));
        assert!(matches!(polled, Polled::Unusable { .. }) && !polled.is_healthy());
    }
}
