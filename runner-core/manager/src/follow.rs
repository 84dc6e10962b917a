//! Moves the log of a job from its agent to its source, from the first byte that is missing there to the end.

use crate::drive::id_at_agent;
use crate::ports::{Job, JobLog, JobSource};
use runner_control::event::FollowEnd;
use runner_control::report::{Outcome, OutcomeKind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use step_client::{AgentClient, JobStatus, NotRunToEnd};
use step_model::result::FailureKind;

/// Progress is for people: so often is enough.
const PROGRESS: Duration = Duration::from_secs(1);

/// Returns when the job has ended and everything of it is here, or when that cannot be.
pub async fn to_end(agent: &AgentClient, job: &Arc<Job>, source: &dyn JobSource, progress: &(dyn Fn(u64) + Sync)) -> FollowEnd {
    let mut log = match source.log(job) {
        Ok(log) => log,
        Err(fault) => return FollowEnd::Broken { reason: format!("the log cannot be kept: {fault}") },
    };
    let id = id_at_agent(&job.id);
    let mut told = Instant::now();
    let followed = agent
        .follow_to_end(&id, log.offset(), |bytes| {
            log.write(&bytes)?;
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                progress(log.offset());
            }
            Ok(())
        })
        .await;
    match followed {
        Ok(ended) if ended.status.is_over() => end(agent, &id, &ended.status, &mut *log).await,
        Ok(_) => FollowEnd::Broken { reason: "the log has ended before the job".to_owned() },
        Err(NotRunToEnd::Call(failed)) if failed.is_unknown_job() => FollowEnd::UnknownJob,
        Err(fault) => FollowEnd::Broken { reason: fault.to_string() },
    }
}

async fn end(agent: &AgentClient, id: &str, status: &JobStatus, log: &mut dyn JobLog) -> FollowEnd {
    let result = match agent.result(id).await {
        Ok(result) => Some(result),
        // An agent of GitLab has none.
        Err(step_client::CallFailed::Missing { .. }) => None,
        Err(failed) => return FollowEnd::Broken { reason: format!("the result cannot be had: {failed}") },
    };
    match log.end(status, result.as_ref()) {
        Ok(()) => FollowEnd::Ended(outcome(status)),
        Err(fault) => FollowEnd::Broken { reason: format!("the log cannot be kept: {fault}") },
    }
}

/// How a job has ended, as its agent says it.
fn outcome(status: &JobStatus) -> Outcome {
    let Err(failure) = status.outcome().into_result() else { return Outcome::Success };
    let kind = match failure.kind {
        Some(FailureKind::StepFailure) => OutcomeKind::StepFailure,
        Some(FailureKind::BadInput) => OutcomeKind::BadInput,
        Some(FailureKind::Refused) => OutcomeKind::Refused,
        Some(FailureKind::Cancelled) => OutcomeKind::Cancelled,
        Some(FailureKind::Timeout) => OutcomeKind::Timeout,
        Some(FailureKind::Internal) => OutcomeKind::Internal,
        Some(FailureKind::Interrupted) => OutcomeKind::Interrupted,
        None => OutcomeKind::Unknown,
    };
    Outcome::Failure { kind, exit_code: failure.exit_code, message: failure.to_string() }
}
