//! An agent in memory: it answers as the real one, runs nothing, and loses connections when a test asks for it.
//!
//! It understands scripts of three commands, separated by semicolons: `echo TEXT`, `exit N`, and `sleep N`, which ends when the job does.

use bytes::Bytes;
use ci_proto::agent::agent_server::{Agent, AgentServer};
use ci_proto::agent::{InspectRequest, InspectResponse, PayloadRequest, PayloadResponse, ResultChunk, ResultRequest};
use ci_proto::step_runner::step_runner_server::{StepRunner, StepRunnerServer};
use ci_proto::step_runner::{
    CancelRequest, CancelResponse, CloseRequest, CloseResponse, FollowLogsRequest, FollowLogsResponse, RunRequest, RunResponse,
    Status as StatusMessage, StatusRequest, StatusResponse, StepResult, step_result,
};
use prost::Message as _;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use step_client::connect::{ByteStream, Connecting, Connector};
use tokio::sync::{Notify, watch};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

/// Clones are the same agent.
#[derive(Debug, Clone, Default)]
pub struct FakeAgent(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something about a job has changed.
    changed: Notify,
    /// Counts up when all connections are to break.
    broken: watch::Sender<u32>,
}

#[derive(Debug, Default)]
struct State {
    jobs: BTreeMap<String, Job>,
    /// Every call, in order: `Run 7`, `FollowLogs 7 from 0`.
    calls: Vec<String>,
    faults: Faults,
    connections: usize,
    followers: usize,
}

/// What goes wrong.
#[derive(Debug, Default, Clone)]
pub struct Faults {
    /// It knows only the four methods of June 2025.
    pub is_old: bool,
    /// Attempts to connect that fail first.
    pub refused_connections: usize,
    /// A follower's connection breaks after this many bytes; each time.
    pub log_bytes_per_connection: Option<usize>,
    /// A follower's stream ends in order after this many bytes, although the job goes on; once.
    pub log_ends_early: Option<usize>,
    /// A result's connection breaks after its first chunk; once.
    pub result_breaks: bool,
    /// The revision is gone after the first chunk; once.
    pub result_changes: bool,
}

#[derive(Debug, Clone, Default)]
struct Job {
    request: RunRequest,
    log: Vec<u8>,
    status: step_result::Status,
    message: String,
}

impl Job {
    fn new(request: RunRequest) -> Self {
        let mut job = Self { status: step_result::Status::Running, log: b"Running step name=t\n".to_vec(), request, ..Self::default() };
        let script = job.request.steps.split_once("script: ").map_or("", |(_, rest)| rest);
        let script = script.trim().trim_end_matches(['}', ']', '\n']).trim_matches('"').to_owned();
        for command in script.split(';').map(str::trim) {
            match command.split_once(' ') {
                Some(("echo", text)) => job.log.extend(format!("{text}\n").bytes()),
                Some(("exit", "0")) => {}
                Some(("exit", code)) => {
                    job.end(step_result::Status::Failure, format!("step \"t\": exec: exit status {code}"));
                    return job;
                }
                Some(("sleep", _)) => return job,
                _ => {}
            }
        }
        job.end(step_result::Status::Success, String::new());
        job
    }

    fn is_over(&self) -> bool {
        self.status != step_result::Status::Running
    }

    fn end(&mut self, status: step_result::Status, message: String) {
        (self.status, self.message) = (status, message);
    }

    fn result(&self) -> Vec<u8> {
        StepResult { status: self.status.into(), failure_message: self.message.clone(), ..StepResult::default() }.encode_to_vec()
    }
}

impl FakeAgent {
    pub fn with(faults: Faults) -> Self {
        let agent = Self::default();
        agent.state().faults = faults;
        agent
    }

    /// The calls that arrived, in order.
    pub fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Waits until so many follow a log.
    pub async fn has_followers(&self, count: usize) {
        loop {
            let changed = self.0.changed.notified();
            if self.state().followers == count {
                return;
            }
            changed.await;
        }
    }

    /// Wakes a job that sleeps: it succeeds.
    pub fn wake(&self, id: &str) {
        if let Some(job) = self.state().jobs.get_mut(id) {
            job.end(step_result::Status::Success, String::new());
        }
        self.0.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no test panics in here")
    }

    fn note(&self, call: String) {
        self.state().calls.push(call);
    }

    fn unknown(id: &str) -> Status {
        Status::unknown(format!("no job with id {id:?}"))
    }

    /// More of a log from `offset` on, when there is more; `None`: it has ended.
    async fn more(&self, id: &str, offset: usize) -> Option<Bytes> {
        loop {
            let changed = self.0.changed.notified();
            {
                let state = self.state();
                let job = state.jobs.get(id)?;
                if offset < job.log.len() {
                    return Some(Bytes::copy_from_slice(&job.log[offset..]));
                }
                if job.is_over() {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Connector for FakeAgent {
    fn connect(&self) -> Connecting {
        let agent = self.clone();
        Box::pin(async move {
            {
                let mut state = agent.state();
                if state.faults.refused_connections > 0 {
                    state.faults.refused_connections -= 1;
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                state.connections += 1;
            }
            let (ours, mut cable) = tokio::io::duplex(64 * 1024);
            let (mut plug, theirs) = tokio::io::duplex(64 * 1024);
            let mut broken = agent.0.broken.subscribe();
            let is_old = agent.state().faults.is_old;
            let router = tonic::transport::Server::builder()
                .add_service(StepRunnerServer::new(agent.clone()))
                .add_optional_service((!is_old).then(|| AgentServer::new(agent)));
            let incoming = tokio_stream::once(io::Result::Ok(theirs)).chain(tokio_stream::pending());
            tokio::spawn(router.serve_with_incoming(incoming));
            tokio::spawn(async move {
                tokio::select! {
                    _ = broken.changed() => {}
                    _ = tokio::io::copy_bidirectional(&mut cable, &mut plug) => {}
                }
            });
            Ok(Box::new(ours) as Box<dyn ByteStream>)
        })
    }

    fn place(&self) -> String {
        "memory".into()
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Counts a follower as long as it lives.
struct Follower(FakeAgent);

impl Follower {
    fn new(agent: FakeAgent) -> Self {
        agent.state().followers += 1;
        agent.0.changed.notify_waiters();
        Self(agent)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.state().followers -= 1;
        self.0.0.changed.notify_waiters();
    }
}

#[tonic::async_trait]
impl StepRunner for FakeAgent {
    async fn run(&self, request: Request<RunRequest>) -> Result<Response<RunResponse>, Status> {
        let request = request.into_inner();
        self.note(format!("Run {}", request.id));
        if !request.steps.contains("run:") {
            return Err(Status::unknown(format!("loading step: reading steps {:?}: unmarshaling: decoding: EOF", request.steps)));
        }
        self.state().jobs.entry(request.id.clone()).or_insert_with(|| Job::new(request));
        Ok(Response::new(RunResponse {}))
    }

    async fn close(&self, request: Request<CloseRequest>) -> Result<Response<CloseResponse>, Status> {
        let id = request.into_inner().id;
        self.note(format!("Close {id}"));
        self.state().jobs.remove(&id);
        self.0.changed.notify_waiters();
        Ok(Response::new(CloseResponse {}))
    }

    type FollowLogsStream = Answers<FollowLogsResponse>;

    async fn follow_logs(&self, request: Request<FollowLogsRequest>) -> Result<Response<Self::FollowLogsStream>, Status> {
        let FollowLogsRequest { id, offset } = request.into_inner();
        self.note(format!("FollowLogs {id} from {offset}"));
        let offset = usize::try_from(offset).map_err(|_| Status::unknown(format!("following logs for job {id:?}: seeking log file")))?;
        if !self.state().jobs.contains_key(&id) {
            return Err(Self::unknown(&id));
        }
        let follower = Follower::new(self.clone());
        let (mut at, agent) = (offset, self.clone());
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            let _follower = follower;
            loop {
                let more = tokio::select! {
                    () = sender.closed() => return,
                    more = agent.more(&id, at) => more,
                };
                let Some(mut bytes) = more else { return };
                let (breaks, ends) = {
                    let faults = &mut agent.state().faults;
                    (faults.log_bytes_per_connection, faults.log_ends_early.take())
                };
                let left = breaks.or(ends).map(|limit| limit.saturating_sub(at - offset));
                bytes.truncate(left.unwrap_or(usize::MAX));
                at += bytes.len();
                let is_last = left.is_some_and(|left| left <= bytes.len());
                let _ = sender.send(Ok(FollowLogsResponse { data: bytes })).await;
                if is_last && breaks.is_some() {
                    // What was sent has to leave before the connection breaks: everybody else has had their turn by then.
                    let _ = sender.reserve().await;
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                    agent.0.broken.send_modify(|count| *count += 1);
                    sender.closed().await;
                    return;
                }
                if is_last {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))))
    }

    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let id = request.into_inner().id;
        self.note(format!("Status {id}"));
        let state = self.state();
        let jobs: Vec<StatusMessage> = state
            .jobs
            .iter()
            .filter(|(known, _)| id.is_empty() || **known == id)
            .map(|(id, job)| StatusMessage {
                id: id.clone(),
                status: job.status.into(),
                message: job.message.clone(),
                start_time: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
                end_time: job.is_over().then_some(prost_types::Timestamp { seconds: 2, nanos: 0 }),
                owner_record: job.request.owner_record.clone(),
                ..StatusMessage::default()
            })
            .collect();
        if jobs.is_empty() && !id.is_empty() { Err(Self::unknown(&id)) } else { Ok(Response::new(StatusResponse { jobs })) }
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        let id = request.into_inner().id;
        self.note(format!("Cancel {id}"));
        let mut state = self.state();
        if state.faults.is_old {
            return Err(Status::unimplemented("unknown method Cancel for service proto.StepRunner"));
        }
        let job = state.jobs.get_mut(&id).ok_or_else(|| Self::unknown(&id))?;
        if !job.is_over() {
            job.end(step_result::Status::Cancelled, format!("job {id:?} cancelled: step \"t\": exec: signal: terminated"));
        }
        drop(state);
        self.0.changed.notify_waiters();
        Ok(Response::new(CancelResponse {}))
    }
}

#[tonic::async_trait]
impl Agent for FakeAgent {
    type ResultStream = Answers<ResultChunk>;

    async fn result(&self, request: Request<ResultRequest>) -> Result<Response<Self::ResultStream>, Status> {
        let ResultRequest { id, offset, revision } = request.into_inner();
        self.note(format!("Result {id} from {offset} of {revision}"));
        let mut state = self.state();
        let job = state.jobs.get(&id).ok_or_else(|| Self::unknown(&id))?;
        let (data, is_over) = (Bytes::from(job.result()), job.is_over());
        let (breaks, changes) = (std::mem::take(&mut state.faults.result_breaks), std::mem::take(&mut state.faults.result_changes));
        let total = i64::try_from(data.len()).expect("small");
        let chunk = move |data: Bytes| Ok(ResultChunk { data, revision: 3, total, r#final: is_over });
        let from = usize::try_from(offset).expect("an offset that we gave");
        let middle = (from + 1).min(data.len());
        let mut chunks: Vec<Result<ResultChunk, Status>> = vec![chunk(data.slice(from..middle)), chunk(data.slice(middle..))];
        if breaks {
            chunks[1] = Err(Status::unknown("protocol error: missing grpc-status trailer"));
        }
        if changes {
            chunks[1] = Err(Status::aborted("revision 3 is gone"));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }

    async fn payload(&self, request: Request<PayloadRequest>) -> Result<Response<PayloadResponse>, Status> {
        let id = request.into_inner().id;
        let state = self.state();
        let job = state.jobs.get(&id).ok_or_else(|| Self::unknown(&id))?;
        Ok(Response::new(PayloadResponse { request: Some(job.request.clone()), withheld: Vec::new() }))
    }

    async fn inspect(&self, _request: Request<InspectRequest>) -> Result<Response<InspectResponse>, Status> {
        Ok(Response::new(InspectResponse { version: "fake".into(), ..InspectResponse::default() }))
    }
}
