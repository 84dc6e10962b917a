//! Our second service, `step_runner.v1.Agent`: results, payloads, and what the agent is doing. All of it is read from the directories of jobs,
//! on threads for blocking work.

use super::birth::Nursery;
use super::refusal;
use super::registry::{Job, Phase, Registry};
use super::service::timestamp;
use crate::job_process::journal::{self, Follower};
use crate::served_directory::ServedDirectory;
use crate::system_error;
use bytes::{Bytes, BytesMut};
use ci_proto::agent as wire;
use ci_proto::agent::agent_server::Agent;
use futures::Stream;
use futures::stream::try_unfold;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;
use step_client::wire::kept_request;
use tonic::{Code, Request, Response, Status};

/// Of a result in one message.
const PIECE: usize = 256 << 10;
/// Two readings of a journal that grows meanwhile are no one state; so often it is read again.
const READINGS: usize = 5;

/// The service, one for all connections.
#[derive(Debug, Clone)]
pub struct AgentService {
    pub registry: Arc<Registry>,
    pub nursery: Arc<Nursery>,
    pub started: SystemTime,
}

/// A result as it was at one moment.
struct State {
    /// Unnamed: a tree may be larger than what a front should hold in memory.
    file: File,
    total: u64,
    /// Where the journal ended then.
    revision: u64,
}

impl AgentService {
    fn find(&self, id: &str) -> Result<Arc<Job>, Status> {
        self.registry.find(id).ok_or_else(|| refusal::unknown_job(id))
    }

    fn capabilities(&self) -> Vec<String> {
        let framing = if self.nursery.stamped { "stamped" } else { "raw" };
        ["cancel", "plan", "result", "payload", framing].map(str::to_owned).to_vec()
    }
}

#[tonic::async_trait]
impl Agent for AgentService {
    type ResultStream = Pin<Box<dyn Stream<Item = Result<wire::ResultChunk, Status>> + Send>>;

    async fn result(&self, request: Request<wire::ResultRequest>) -> Result<Response<Self::ResultStream>, Status> {
        let wire::ResultRequest { id, offset, revision } = request.into_inner();
        let job = self.find(&id)?;
        job.reached(|phase| *phase != Phase::Born).await;
        // Asked before the journal is read: a job that is over has no other state.
        let is_final = job.phase().is_over();
        let directory = job.directory().clone();
        let state = blocking(&id, "reading the result", move || state_of(&directory)).await?;
        if revision != 0 && revision != state.revision {
            let message = format!("the result of job {id:?} has changed since revision {revision}: begin again at offset 0");
            return Err(refusal::status(Code::Aborted, "REVISION_GONE", message, &[("id", &id)]));
        }
        let position = u64::try_from(offset).ok().filter(|offset| *offset <= state.total);
        let Some(position) = position else {
            let message = format!("the result of job {id:?} has {} bytes, there is no offset {offset} in it", state.total);
            return Err(refusal::status(Code::InvalidArgument, "BAD_OFFSET", message, &[("id", &id)]));
        };
        Ok(Response::new(Box::pin(chunks(id, state, position, is_final))))
    }

    async fn payload(&self, request: Request<wire::PayloadRequest>) -> Result<Response<wire::PayloadResponse>, Status> {
        let id = request.into_inner().id;
        let job = self.find(&id)?;
        job.reached(|phase| *phase != Phase::Born).await;
        let path = job.directory().request();
        let kept = blocking(&id, "reading the request", move || {
            let bytes = std::fs::read(path)?;
            kept_request::read(&bytes).map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))
        });
        let kept = kept.await?;
        Ok(Response::new(wire::PayloadResponse { request: Some(kept.request), withheld: kept.withheld }))
    }

    async fn inspect(&self, request: Request<wire::InspectRequest>) -> Result<Response<wire::InspectResponse>, Status> {
        let id = request.into_inner().id;
        let jobs = if id.is_empty() { self.registry.all() } else { vec![self.find(&id)?] };
        let jobs = blocking(&id, "inspecting", move || Ok(jobs.iter().filter_map(|job| inspected(job)).collect())).await?;
        let started = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Response::new(wire::InspectResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: self.capabilities(),
            started: Some(timestamp(i64::try_from(started.as_nanos()).unwrap_or(i64::MAX))),
            jobs,
        }))
    }
}

async fn blocking<T: Send + 'static>(id: &str, what: &str, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Status> {
    let fault = |why: String| refusal::status(Code::Unavailable, "MACHINE", format!("{what} of job {id:?}: {why}"), &[("id", id)]);
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(|error| fault(system_error::text(&error))),
        Err(stopped) => Err(fault(stopped.to_string())),
    }
}

/// The result as the journal has it now; of steps that were handed over, what the job process left for whoever handed them over.
fn state_of(directory: &ServedDirectory) -> io::Result<State> {
    let inner = directory.inner();
    let length = || Ok::<u64, io::Error>(std::fs::metadata(inner.join(journal::FILE))?.len());
    // What was handed over goes back with its values in clear (docs/design/0007).
    if let Ok(file) = File::open(directory.result()) {
        let total = file.metadata()?.len();
        return Ok(State { file, total, revision: length()? });
    }
    let mut before = length()?;
    let mut reading = journal::read(&inner).map_err(io::Error::other)?;
    for _ in 1..READINGS {
        let after = length()?;
        if after == before {
            break;
        }
        before = after;
        reading = journal::read(&inner).map_err(io::Error::other)?;
    }
    let mut out = BufWriter::new(tempfile::tempfile_in(&inner)?);
    let total = reading.write_result(&mut out)?;
    Ok(State { file: out.into_inner().map_err(io::IntoInnerError::into_error)?, total, revision: before })
}

/// At least one, so that a caller learns of the revision.
fn chunks(id: String, state: State, position: u64, is_final: bool) -> impl Stream<Item = Result<wire::ResultChunk, Status>> + Send {
    let total = i64::try_from(state.total).unwrap_or(i64::MAX);
    try_unfold((state, position, true), move |(state, position, is_first)| {
        let id = id.clone();
        async move {
            if position >= state.total && !is_first {
                return Ok(None);
            }
            let data = piece(&state.file, position, state.total).map_err(|error| {
                let message = format!("reading the result of job {id:?}: {}", system_error::text(&error));
                refusal::status(Code::Unavailable, "MACHINE", message, &[("id", &id)])
            })?;
            let next = position + data.len() as u64;
            let chunk = wire::ResultChunk { data, revision: state.revision, total, r#final: is_final };
            Ok(Some((chunk, (state, next, false))))
        }
    })
}

fn piece(file: &File, position: u64, total: u64) -> io::Result<Bytes> {
    let mut bytes = BytesMut::zeroed(usize::try_from(total - position).unwrap_or(PIECE).min(PIECE));
    file.read_exact_at(&mut bytes, position)?;
    Ok(bytes.freeze())
}

/// `None`: it was refused.
fn inspected(job: &Job) -> Option<wire::inspect_response::Job> {
    let news = job.news.borrow().clone();
    let mut inspected = wire::inspect_response::Job {
        id: job.id.clone(),
        pid: job.pid.load(Ordering::Relaxed),
        log_bytes: i64::try_from(news.log.bytes).unwrap_or(i64::MAX),
        log_cut: news.log.is_cut,
        followers: u32::try_from(job.followers.load(Ordering::Relaxed)).unwrap_or(u32::MAX),
        ..wire::inspect_response::Job::default()
    };
    match news.phase {
        Phase::Refused(_) => return None,
        Phase::Born | Phase::Accepted => {}
        Phase::Running { start } => {
            inspected.set_status(ci_proto::step_runner::step_result::Status::Running);
            inspected.started = Some(timestamp(start));
            let inner = job.directory().inner();
            let running = Follower::open(&inner).ok().and_then(|mut journal| journal.advance().ok().map(|_| journal.standing().running()));
            inspected.step = running.unwrap_or_default();
        }
        Phase::Ended(summary) => {
            inspected.status = summary.status.into();
            inspected.started = summary.start.map(timestamp);
        }
    }
    Some(inspected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_steps_that_were_handed_over_is_the_one_that_was_left_for_the_caller() {
        let parent = tempfile::tempdir().unwrap();
        let (directory, _lock) = ServedDirectory::create(parent.path(), "1").unwrap().unwrap();
        journal::Journal::create(&directory.inner()).unwrap();
        assert_eq!(state_of(&directory).unwrap().total, 0, "nothing has started");
        std::fs::write(directory.result(), b"in clear").unwrap();
        let state = state_of(&directory).unwrap();
        let mut found = vec![0; 8];
        state.file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!((found.as_slice(), state.total), (&b"in clear"[..], 8));
        assert_ne!(state.revision, 0);
    }
}
