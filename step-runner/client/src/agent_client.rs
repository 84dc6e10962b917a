//! The client: one method for each call, over one connection that comes back.

use crate::call::CallFailed;
use crate::connect::Connector;
use crate::follow::LogStream;
use crate::job_result::{self, JobResult};
use crate::job_status::JobStatus;
use crate::retry::Retry;
use crate::service::{Service, failure};
use ci_proto::agent::{InspectRequest, InspectResponse, PayloadRequest};
use ci_proto::step_runner::{CancelRequest, CloseRequest, RunRequest, StatusRequest};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long an agent may take to start, when nothing else is said: a container is pulled and started in this time, or something is wrong.
const WAIT: Duration = Duration::from_secs(30);

/// How long an agent may be away between two answers: it is replaced by another version, or a network changes.
const RECONNECT: Duration = Duration::from_secs(60);

/// Talks to one agent. Clones share the connection.
///
/// Calls that only read, and those that may be made twice (`run` with an id, `cancel`, `close`), are made again after the connection was lost.
#[derive(Debug, Clone)]
pub struct AgentClient {
    pub(crate) service: Service,
    wait: Duration,
    reconnect: Duration,
    epoch: Instant,
    place: Arc<str>,
    /// The agent has answered something: one that is gone now may come back. Before, the way to it may just be wrong.
    has_answered: Arc<AtomicBool>,
}

/// A job as the agent received it.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// Masked and file values are replaced by their names: `[MASKED NAME]`.
    pub request: RunRequest,
    /// The names of these variables.
    pub withheld: Vec<String>,
}

impl AgentClient {
    /// Connects at the first call.
    /// # Panics
    /// Outside of a runtime of tokio.
    pub fn new(connector: impl Connector) -> Self {
        Self::with_keep_alive(connector, None)
    }

    /// Asks for a sign of life after this time without one, and takes the connection for lost when none comes in the same time again. Only for
    /// agents of ours: GitLab's ends a connection on which it is asked more often than every five minutes.
    /// # Panics
    /// Outside of a runtime of tokio.
    pub fn with_keep_alive(connector: impl Connector, interval: Option<Duration>) -> Self {
        let place = connector.place().into();
        Self {
            service: Service::new(Arc::new(connector), interval),
            wait: WAIT,
            reconnect: RECONNECT,
            epoch: Instant::now(),
            place,
            has_answered: Arc::default(),
        }
    }

    /// How long [`AgentClient::run`] waits for an agent that is not there yet. Zero: not at all.
    #[must_use]
    pub fn waiting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// How long calls and followers try to come back to an agent after the connection was lost. Zero: not at all.
    #[must_use]
    pub fn reconnecting(self, reconnect: Duration) -> Self {
        Self { reconnect, ..self }
    }

    /// What people call the place of the agent.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Starts a job; it runs on whatever happens to us. Waits for the agent to be there. A job of the same id is started once only: a
    /// repeated call changes nothing.
    /// # Errors
    /// The request is refused, or the agent does not come.
    pub async fn run(&self, request: RunRequest) -> Result<(), CallFailed> {
        let mut retry = Retry::new(self.wait);
        let may_repeat = !request.id.is_empty();
        loop {
            let outcome = self.service.jobs.clone().run(request.clone()).await;
            let Err(failed) = self.noted("Run", outcome) else { return Ok(()) };
            let is_safe = matches!(failed, CallFailed::NotConnected { .. }) || may_repeat;
            if !(is_safe && failed.may_pass() && self.pause(&mut retry).await) {
                return Err(failed);
            }
        }
    }

    /// The log of a job from `offset` on, in bytes of what the agent sends, to the end of the job. Comes back after the connection was lost,
    /// and goes on at the right byte.
    pub fn follow(&self, id: impl Into<String>, offset: u64) -> LogStream {
        LogStream::new(self.clone(), id.into(), offset)
    }

    /// One job.
    /// # Errors
    /// There is none of this id ([`CallFailed::is_unknown_job`]), or the agent is gone.
    pub async fn status(&self, id: &str) -> Result<JobStatus, CallFailed> {
        let jobs = self.statuses(id).await?;
        let unknown = || CallFailed::Refused { code: crate::Code::Unknown, reason: None, message: format!("no job with id {id:?}") };
        jobs.into_iter().find(|job| job.id == id).ok_or_else(unknown)
    }

    /// All jobs, ordered by id.
    /// # Errors
    /// The agent is gone.
    pub async fn jobs(&self) -> Result<Vec<JobStatus>, CallFailed> {
        let mut jobs = self.statuses("").await?;
        jobs.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(jobs)
    }

    async fn statuses(&self, id: &str) -> Result<Vec<JobStatus>, CallFailed> {
        let response = self
            .again("Status", || {
                let mut jobs = self.service.jobs.clone();
                async move { jobs.status(StatusRequest { id: id.to_owned() }).await }
            })
            .await?;
        Ok(response.jobs.into_iter().map(JobStatus::of_message).collect())
    }

    /// Asks a job to end: its steps are given their grace period. The log ends when the job has.
    /// # Errors
    /// [`CallFailed::Missing`] at agents of GitLab before v0.44: only `close` ends a job there.
    pub async fn cancel(&self, id: &str) -> Result<(), CallFailed> {
        self.again("Cancel", || {
            let mut jobs = self.service.jobs.clone();
            async move { jobs.cancel(CancelRequest { id: id.to_owned() }).await }
        })
        .await
        .map(drop)
    }

    /// Ends a job at once, if it still runs, and forgets it with its log and result. An unknown id is no error.
    /// # Errors
    /// The agent is gone.
    pub async fn close(&self, id: &str) -> Result<(), CallFailed> {
        self.again("Close", || {
            let mut jobs = self.service.jobs.clone();
            async move { jobs.close(CloseRequest { id: id.to_owned() }).await }
        })
        .await
        .map(drop)
    }

    /// The result tree as it is now; it grows while the job runs.
    /// # Errors
    /// There is no such job, or the agent is GitLab's: it has no results.
    pub async fn result(&self, id: &str) -> Result<JobResult, CallFailed> {
        job_result::fetch(self, id).await
    }

    /// The job as it was received, so that it runs again elsewhere.
    /// # Errors
    /// There is no such job, or the agent is GitLab's: it keeps no payloads.
    pub async fn payload(&self, id: &str) -> Result<Payload, CallFailed> {
        let response = self
            .again("Payload", || {
                let mut agent = self.service.agent.clone();
                async move { agent.payload(PayloadRequest { id: id.to_owned() }).await }
            })
            .await?;
        Ok(Payload { request: response.request.unwrap_or_default(), withheld: response.withheld })
    }

    /// What the agent is, can, and does. An empty id: all jobs.
    /// # Errors
    /// There is no such job, or the agent is GitLab's.
    pub async fn inspect(&self, id: &str) -> Result<InspectResponse, CallFailed> {
        self.again("Inspect", || {
            let mut agent = self.service.agent.clone();
            async move { agent.inspect(InspectRequest { id: id.to_owned() }).await }
        })
        .await
    }

    /// A call that may be made twice, made again when the connection was lost. An agent that was not there at the first attempt is not waited
    /// for: only `run` does that.
    async fn again<M, C, F>(&self, method: &'static str, call: C) -> Result<M, CallFailed>
    where
        C: Fn() -> F,
        F: Future<Output = Result<tonic::Response<M>, tonic::Status>>,
    {
        let (mut retry, mut was_lost) = (Retry::new(self.reconnect), false);
        loop {
            let failed = match self.noted(method, call().await) {
                Ok(response) => return Ok(response.into_inner()),
                Err(failed) => failed,
            };
            was_lost |= self.has_lost(&failed);
            if !(was_lost && failed.may_pass() && self.pause(&mut retry).await) {
                return Err(failed);
            }
        }
    }

    /// The outcome of a call in our words, remembering that there was an answer.
    pub(crate) fn noted<M>(&self, method: &'static str, outcome: Result<M, tonic::Status>) -> Result<M, CallFailed> {
        let outcome = outcome.map_err(|status| failure(method, &status));
        if matches!(outcome, Ok(_) | Err(CallFailed::Refused { .. } | CallFailed::Missing { .. })) {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Whether this failure is the end of a connection to an agent that was there.
    pub(crate) fn has_lost(&self, failed: &CallFailed) -> bool {
        matches!(failed, CallFailed::Lost { .. }) && self.has_answered.load(Ordering::Relaxed)
    }

    /// Waits before the next attempt. False: there should be none.
    pub(crate) async fn pause(&self, retry: &mut Retry) -> bool {
        let Some(pause) = retry.after_failure(self.epoch.elapsed()) else { return false };
        tokio::time::sleep(pause).await;
        true
    }

    /// How long it may take to come back.
    pub(crate) fn retry(&self) -> Retry {
        Retry::new(self.reconnect)
    }
}
