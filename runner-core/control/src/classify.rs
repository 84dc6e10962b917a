//! Why a job failed, in the words that users' `retry:when` rules know. A loss is never a script failure: that would disable their retries.

use crate::record::StopReason;
use crate::report::{FailureReason, Outcome, OutcomeKind, Report};

/// How a job came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The agent told its outcome.
    Finished(Outcome),
    /// Its environment is gone, or the agent there does not know it any more, and with it what the job did.
    Lost { cause: String },
    /// There was no environment in time.
    NoEnvironment { reason: String },
    /// The provider will never give one for this job.
    Impossible { reason: String },
    /// It was ended before it ran, or the agent did not say in time how it ended.
    Stopped,
}

/// What the server is told. `stop`: why it was being ended, if it was; what the agent did because of that is no failure of its own.
pub fn classify(cause: &Cause, stop: Option<StopReason>) -> Report {
    match (cause, stop) {
        // Whatever was asked for, it was done before.
        (Cause::Finished(Outcome::Success), _) => Report::success(),
        (_, Some(StopReason::Canceled)) => Report::failed(FailureReason::JobCanceled),
        (_, Some(StopReason::TimedOut)) => {
            Report::failed(FailureReason::JobExecutionTimeout).because("the job ran longer than its time limit")
        }
        (_, Some(StopReason::Interrupted)) => Report::failed(FailureReason::RunnerInterrupted).because("the runner was stopped"),
        // Nothing is sent for an aborted job; should a caller ask, it is a cancel.
        (_, Some(StopReason::Aborted)) => Report::failed(FailureReason::JobCanceled),
        (Cause::Finished(Outcome::Failure { kind, exit_code, message }), None) => of_failure(*kind, *exit_code, message),
        (Cause::Lost { cause }, None) => {
            Report::failed(FailureReason::RunnerSystemFailure).because(format!("the job's environment was lost: {cause}"))
        }
        (Cause::NoEnvironment { reason }, None) => {
            Report::failed(FailureReason::RunnerSystemFailure).because(format!("no environment for the job: {reason}"))
        }
        (Cause::Impossible { reason }, None) => {
            Report::failed(FailureReason::RunnerConfigurationError).because(format!("no environment for the job: {reason}"))
        }
        (Cause::Stopped, None) => Report::failed(FailureReason::UnknownFailure),
    }
}

fn of_failure(kind: OutcomeKind, code: Option<i64>, message: &str) -> Report {
    let exit_code = code.map_or(0, normalized);
    match kind {
        // Without a code there was no process: why, nobody else says.
        OutcomeKind::StepFailure if code.is_none() => Report::failed(FailureReason::ScriptFailure).because(message),
        OutcomeKind::StepFailure => Report { exit_code, ..Report::failed(FailureReason::ScriptFailure) },
        // The original's code for a payload that cannot run.
        OutcomeKind::BadInput => Report { exit_code: 3, ..Report::failed(FailureReason::RunnerSystemFailure) }.because(message),
        OutcomeKind::Refused => Report::failed(FailureReason::RunnerConfigurationError).because(message),
        OutcomeKind::Cancelled => Report::failed(FailureReason::JobCanceled),
        OutcomeKind::Timeout => Report::failed(FailureReason::JobExecutionTimeout),
        OutcomeKind::Internal => Report::failed(FailureReason::RunnerSystemFailure).because(message),
        OutcomeKind::Interrupted => {
            Report::failed(FailureReason::RunnerSystemFailure).because(format!("the process that ran the job died: {message}"))
        }
        OutcomeKind::Image => Report::failed(of_image_pull(message)),
        OutcomeKind::Unknown => Report::failed(FailureReason::UnknownFailure).because(message),
    }
}

/// An image that cannot be pulled: the registry was not reached, or it is not there for us.
pub fn of_image_pull(message: &str) -> FailureReason {
    let message = message.to_lowercase();
    let unreached = [
        "dial tcp",
        "connection refused",
        "no such host",
        "i/o timeout",
        "tls handshake",
        "client.timeout exceeded",
        "request canceled",
        "connection reset",
    ];
    let missing = ["not found", "manifest unknown", "unauthorized", "denied", "authentication required", "no basic auth"];
    if unreached.iter().any(|sign| message.contains(sign)) {
        FailureReason::RunnerExternalDependencyFailure
    } else if missing.iter().any(|sign| message.contains(sign)) {
        FailureReason::RunnerConfigurationError
    } else {
        FailureReason::ImagePullFailure
    }
}

/// The 32 bits that a process ended with: Windows' codes above 2^31 become negative, as GitLab shows them.
fn normalized(exit_code: i64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower 32 bits are what an exit code is")]
    let exit_code = exit_code as i32;
    exit_code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: OutcomeKind, exit_code: Option<i64>) -> Cause {
        Cause::Finished(Outcome::Failure { kind, exit_code, message: "why".into() })
    }

    #[test]
    fn a_failed_script_keeps_its_exit_code() {
        let report = classify(&failure(OutcomeKind::StepFailure, Some(42)), None);
        assert_eq!(report, Report { failure: Some(FailureReason::ScriptFailure), exit_code: 42, message: None });
        assert_eq!(classify(&failure(OutcomeKind::StepFailure, Some(0xc000_013a)), None).exit_code, -1_073_741_510);
    }

    #[test]
    fn runner_190_a_failure_has_its_own_reason_and_any_other_fault_is_the_runners() {
        let reason = |kind| classify(&failure(kind, None), None).failure;
        assert_eq!(reason(OutcomeKind::Timeout), Some(FailureReason::JobExecutionTimeout));
        assert_eq!(reason(OutcomeKind::Cancelled), Some(FailureReason::JobCanceled));
        assert_eq!(reason(OutcomeKind::Refused), Some(FailureReason::RunnerConfigurationError));
        assert_eq!(reason(OutcomeKind::Internal), Some(FailureReason::RunnerSystemFailure));
        assert_eq!(reason(OutcomeKind::Unknown), Some(FailureReason::UnknownFailure));
    }

    #[test]
    fn a_payload_that_cannot_run_is_the_runners_failure_with_code_three() {
        let report = classify(&failure(OutcomeKind::BadInput, None), None);
        assert_eq!((report.failure, report.exit_code), (Some(FailureReason::RunnerSystemFailure), 3));
    }

    #[test]
    fn a_loss_is_never_a_script_failure() {
        let causes = [Cause::Lost { cause: "it is gone".into() }, failure(OutcomeKind::Interrupted, None)];
        for cause in causes {
            assert_eq!(classify(&cause, None).failure, Some(FailureReason::RunnerSystemFailure));
        }
        let report = classify(&Cause::Lost { cause: "instance unexpectedly removed".into() }, None);
        assert_eq!(report.message.as_deref(), Some("the job's environment was lost: instance unexpectedly removed"));
    }

    #[test]
    fn why_a_job_was_ended_wins_over_what_that_did_to_it() {
        let killed = failure(OutcomeKind::StepFailure, Some(137));
        for (stop, reason) in [
            (StopReason::Canceled, FailureReason::JobCanceled),
            (StopReason::TimedOut, FailureReason::JobExecutionTimeout),
            (StopReason::Interrupted, FailureReason::RunnerInterrupted),
        ] {
            assert_eq!(classify(&killed, Some(stop)).failure, Some(reason));
            assert_eq!(classify(&Cause::Lost { cause: "x".into() }, Some(stop)).failure, Some(reason));
            assert_eq!(classify(&Cause::Finished(Outcome::Success), Some(stop)).failure, None, "it was done before");
        }
    }

    #[test]
    fn an_image_is_missing_or_its_registry_was_not_reached() {
        assert_eq!(of_image_pull("Get https://r/: dial tcp 1.2.3.4:443: i/o timeout"), FailureReason::RunnerExternalDependencyFailure);
        assert_eq!(of_image_pull("manifest unknown"), FailureReason::RunnerConfigurationError);
        assert_eq!(of_image_pull("something else"), FailureReason::ImagePullFailure);
    }
}
