//! What the runner itself says in the trace of a job, in the words of GitLab's runner where it has them.

use runner_control::report::{FailureReason, Report};

const GREEN: &str = "\x1b[32;1m";
const RED: &str = "\x1b[31;1m";
const BOLD: &str = "\x1b[0;m";

/// The first line.
pub fn beginning(version: &str, name: &str, short_token: &str) -> String {
    format!("{BOLD}Running with runner-core {version}\n  on {name} {short_token}{BOLD}\n")
}

/// The last lines.
pub fn ending(report: &Report) -> String {
    let Some(reason) = report.failure else { return format!("{GREEN}Job succeeded{BOLD}\n") };
    let why = match (&report.message, report.exit_code) {
        (Some(message), _) => message.clone(),
        (None, code) if code != 0 => format!("exit code {code}"),
        (None, _) => described(reason).to_owned(),
    };
    match reason {
        FailureReason::JobCanceled => format!("{RED}ERROR: Job failed: canceled{BOLD}\n"),
        FailureReason::RunnerSystemFailure => format!("{RED}ERROR: Job failed (system failure): {why}{BOLD}\n"),
        _ => format!("{RED}ERROR: Job failed: {why}{BOLD}\n"),
    }
}

/// After the end of a job that failed: how a person sees what ran, and runs it again.
pub fn what_ran(job: u64) -> String {
    format!("What ran: runner-core result {job}; on a laptop: runner-core payload {job} && step-runner run job-{job}.json\n")
}

fn described(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::JobExecutionTimeout => "execution took longer than its time limit",
        FailureReason::RunnerInterrupted => "aborted: the runner was stopped",
        FailureReason::ScriptFailure => "a step failed",
        FailureReason::ImagePullFailure => "the image could not be had",
        FailureReason::RunnerUnsupported => "the runner cannot run this job",
        _ => "the runner could not run it",
    }
}

/// Reasons by the names that GitLab knows.
pub fn reason(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::ScriptFailure => "script_failure",
        FailureReason::RunnerSystemFailure => "runner_system_failure",
        FailureReason::JobExecutionTimeout => "job_execution_timeout",
        FailureReason::JobCanceled => "job_canceled",
        FailureReason::RunnerInterrupted => "runner_interrupted",
        FailureReason::ImagePullFailure => "image_pull_failure",
        FailureReason::RunnerConfigurationError => "runner_configuration_error",
        FailureReason::RunnerExternalDependencyFailure => "runner_external_dependency_failure",
        FailureReason::RunnerUnsupported => "runner_unsupported",
        FailureReason::UnknownFailure => "unknown_failure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_trace_says_how_the_job_ended() {
        assert_eq!(ending(&Report::success()), "\x1b[32;1mJob succeeded\x1b[0;m\n");
        let failed = Report { exit_code: 3, ..Report::failed(FailureReason::ScriptFailure) };
        assert!(ending(&failed).contains("ERROR: Job failed: exit code 3"));
        let lost = Report::failed(FailureReason::RunnerSystemFailure).because("the instance is gone");
        assert!(ending(&lost).contains("(system failure): the instance is gone"));
    }
}
