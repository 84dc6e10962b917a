//! GitLab's service, `proto.StepRunner`: each call looks a job up, and answers with what is known of it.

use super::birth::{self, Nursery};
use super::ending;
use super::following;
use super::refusal;
use super::registry::{Job, Phase, Registry};
use crate::job_process::Ask;
use bytes::Bytes;
use ci_proto::step_runner as wire;
use ci_proto::step_runner::step_runner_server::StepRunner;
use futures::Stream;
use prost::Message as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tonic::{Request, Response, Status};

/// The service, one for all connections.
#[derive(Debug, Clone)]
pub struct Service {
    pub registry: Arc<Registry>,
    pub nursery: Arc<Nursery>,
    /// No new jobs: the front was asked to end.
    pub is_leaving: Arc<AtomicBool>,
}

impl Service {
    fn find(&self, id: &str) -> Result<Arc<Job>, Status> {
        self.registry.find(id).ok_or_else(|| refusal::unknown_job(id))
    }

    /// The job of this request: a new one, or the one that has its id.
    fn take(&self, request: &wire::RunRequest) -> Result<Arc<Job>, Status> {
        birth::check_id(&request.id)?;
        let is_new = self.registry.find(&request.id).is_none();
        if is_new && self.is_leaving.load(Ordering::Relaxed) {
            return Err(refusal::leaving());
        }
        Ok(self.registry.find_or_add(&request.id, || self.begin(request)))
    }

    /// The job goes its way whether or not its caller stays to hear of it.
    fn begin(&self, request: &wire::RunRequest) -> Arc<Job> {
        let directory = crate::served_directory::ServedDirectory::of(&self.nursery.directory, &request.id);
        let (job, asked) = Job::new(&request.id, directory);
        job.set_owner_record(request.owner_record.clone());
        let request = Bytes::from(request.encode_to_vec());
        let alive = self.registry.begin();
        tokio::spawn(birth::live(Arc::clone(&self.nursery), Arc::clone(&self.registry), Arc::clone(&job), asked, request, alive));
        job
    }
}

#[tonic::async_trait]
impl StepRunner for Service {
    async fn run(&self, request: Request<wire::RunRequest>) -> Result<Response<wire::RunResponse>, Status> {
        let job = self.take(request.get_ref())?;
        drop(request);
        match job.reached(|phase| *phase != Phase::Born).await {
            Phase::Refused(refused) => Err(refusal::refused(&job.id, &refused)),
            _ => Ok(Response::new(wire::RunResponse {})),
        }
    }

    async fn close(&self, request: Request<wire::CloseRequest>) -> Result<Response<wire::CloseResponse>, Status> {
        if let Some(job) = self.registry.find(&request.get_ref().id) {
            // Also when the caller does not wait for it.
            let (nursery, registry) = (Arc::clone(&self.nursery), Arc::clone(&self.registry));
            let _ = tokio::spawn(async move { ending::close(&nursery, &registry, job).await }).await;
        }
        Ok(Response::new(wire::CloseResponse {}))
    }

    type FollowLogsStream = Pin<Box<dyn Stream<Item = Result<wire::FollowLogsResponse, Status>> + Send>>;

    async fn follow_logs(&self, request: Request<wire::FollowLogsRequest>) -> Result<Response<Self::FollowLogsStream>, Status> {
        let request = request.get_ref();
        let job = self.find(&request.id)?;
        job.reached(|phase| *phase != Phase::Born).await;
        Ok(Response::new(Box::pin(following::follow(job, request.offset)?)))
    }

    async fn status(&self, request: Request<wire::StatusRequest>) -> Result<Response<wire::StatusResponse>, Status> {
        let id = &request.get_ref().id;
        let jobs = if id.is_empty() { self.registry.all() } else { vec![self.find(id)?] };
        Ok(Response::new(wire::StatusResponse { jobs: jobs.iter().filter_map(|job| status_of(job)).collect() }))
    }

    async fn cancel(&self, request: Request<wire::CancelRequest>) -> Result<Response<wire::CancelResponse>, Status> {
        let job = self.find(&request.get_ref().id)?;
        let _ = job.asks.send(Ask::End);
        Ok(Response::new(wire::CancelResponse {}))
    }
}

/// `None`: there is no such job (yet).
fn status_of(job: &Job) -> Option<wire::Status> {
    let news = job.news.borrow().clone();
    let mut status = wire::Status {
        id: job.id.clone(),
        log_bytes: i64::try_from(news.log.bytes).unwrap_or(i64::MAX),
        owner_record: job.owner_record().to_vec(),
        ..wire::Status::default()
    };
    match news.phase {
        Phase::Refused(_) => return None,
        Phase::Born | Phase::Accepted => {}
        Phase::Running { start } => {
            status.set_status(wire::step_result::Status::Running);
            status.start_time = Some(timestamp(start));
        }
        Phase::Ended(summary) => {
            status.status = summary.status.into();
            status.start_time = summary.start.map(timestamp);
            status.end_time = summary.end.map(timestamp);
            status.failure_kind = summary.failure.into();
            status.exit_code = summary.exit_code.unwrap_or_default();
            status.error = error_of(summary.failure, &summary.message);
            status.message = summary.message;
        }
    }
    Some(status)
}

/// What readers of the original's later versions look for: 2 and 3 are step failures to them, 7 is unknown (docs/reference/api.md).
fn error_of(failure: u8, message: &str) -> Option<wire::StatusError> {
    use wire::failure::Kind;
    use wire::status_error::Kind as Theirs;
    let kind = match Kind::try_from(i32::from(failure)).ok()? {
        Kind::Unspecified => return None,
        Kind::StepFailure | Kind::BadInput | Kind::Refused => Theirs::StepFailure,
        Kind::Cancelled => Theirs::Cancelled,
        Kind::Timeout => Theirs::Timeout,
        Kind::Internal => Theirs::Internal,
        Kind::Interrupted => Theirs::Unknown,
    };
    Some(wire::StatusError { kind: kind.into(), message: message.to_owned() })
}

pub fn timestamp(nanoseconds: i64) -> prost_types::Timestamp {
    let nanos = i32::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or(0);
    prost_types::Timestamp { seconds: nanoseconds.div_euclid(1_000_000_000), nanos }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served_directory::ServedDirectory;
    use crate::summary::Summary;

    fn job() -> Arc<Job> {
        Job::new("7", ServedDirectory::at("/nowhere".into())).0
    }

    #[test]
    fn api_02_a_job_that_was_accepted_and_has_not_begun_has_no_status() {
        let job = job();
        job.set_phase(Phase::Accepted);
        let expected = wire::Status { id: "7".into(), ..wire::Status::default() };
        assert_eq!(status_of(&job), Some(expected));
    }

    #[test]
    fn api_25_a_job_whose_process_left_no_word_has_failed() {
        let job = job();
        let summary = Summary { status: 3, failure: 7, message: "interrupted".into(), ..Summary::default() };
        job.set_phase(Phase::Ended(summary));
        let status = status_of(&job).unwrap();
        assert_eq!((status.status(), status.failure_kind()), (wire::step_result::Status::Failure, wire::failure::Kind::Interrupted));
        assert_eq!(status.error.unwrap().kind(), wire::status_error::Kind::Unknown);
    }
}
