//! A front at work: answers calls until something ends it, and leaves in order.
//!
//! ```text
//! serves --SIGTERM, SIGINT--> no new jobs, no new callers --last job has ended--> callers have a moment to leave --> gone
//!    |                               '--a second one--> the jobs are asked to end
//!    |--SIGUSR2--> gone; the jobs go on
//!    |--the one caller has left (--stdio)--> the jobs are killed --> gone
//!    '--the command beside it has ended--> the jobs are asked to end --> gone
//! ```

use super::agent_service::AgentService;
use super::birth::Nursery;
use super::command::{self, Beside};
use super::connection::Callers;
use super::refusal;
use super::registry::Registry;
use super::service::Service;
use super::signals::{Signal, Signals};
use super::{Incoming, LARGEST_MESSAGE, ServeFault};
use crate::job_process::Ask;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tonic::transport::Server;
use tower::layer::util::{Identity, Stack};
use tower::util::MapResponseLayer;

/// What a caller may have on its way to it that it has not taken: a slow path needs more than the 64 KiB of HTTP/2.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
/// A connection whose other end is gone is noticed after these.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// After this long without a job a front is idle.
#[cfg(target_os = "linux")]
const IDLE: Duration = Duration::from_millis(250);
/// How long callers may take to ask and leave when the last job has ended.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long jobs may take to end that were killed.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// Everything that a front at work needs.
#[derive(Debug)]
pub struct Serving<'a> {
    pub nursery: Arc<Nursery>,
    pub registry: Arc<Registry>,
    pub signals: Signals,
    /// To be removed when nobody new may come. `None`: there is one caller, on standard input and output, and never another.
    pub socket: Option<&'a Path>,
    pub callers: Callers,
    pub command: &'a [OsString],
}

type Answer = tonic::codegen::http::Response<tonic::body::Body>;
type Layers = Stack<MapResponseLayer<fn(Answer) -> Answer>, Identity>;

/// How a front leaves.
enum Leave {
    AtOnce,
    /// When its callers have.
    Politely,
    With(ExitStatus),
}

impl Serving<'_> {
    pub async fn answer(mut self, incoming: Incoming) -> Result<Option<ExitStatus>, ServeFault> {
        let is_leaving = Arc::new(AtomicBool::new(false));
        let service =
            Service { registry: Arc::clone(&self.registry), nursery: Arc::clone(&self.nursery), is_leaving: Arc::clone(&is_leaving) };
        #[cfg(target_os = "linux")]
        tokio::spawn(rest(Arc::clone(&self.registry)));
        let callers = self.callers.clone();
        let mut serving = std::pin::pin!(router(service).await.serve_with_incoming(incoming));
        let leave = tokio::select! {
            served = &mut serving => return Ok(served.map(|()| None)?),
            leave = self.until_leaving(&is_leaving) => leave?,
        };
        match leave {
            Leave::AtOnce => Ok(None),
            Leave::Politely => {
                // Whoever has followed to the end may ask how it ended. They are served until they leave.
                let gone = async {
                    tokio::select! {
                        _ = &mut serving => {}
                        () = callers.are_gone() => {}
                    }
                };
                let _ = tokio::time::timeout(FAREWELL, gone).await;
                Ok(None)
            }
            Leave::With(status) => Ok(Some(status)),
        }
    }

    async fn until_leaving(&mut self, is_leaving: &AtomicBool) -> Result<Leave, ServeFault> {
        if !self.command.is_empty() {
            return self.until_command_ends().await;
        }
        let signal = tokio::select! {
            signal = self.signals.next() => signal,
            () = self.callers.are_gone(), if self.socket.is_none() => {
                self.registry.ask_all(Ask::EndNow);
                let _ = tokio::time::timeout(LAST_PATIENCE, self.registry.until_idle()).await;
                return Ok(Leave::AtOnce);
            }
        };
        self.close_door();
        if signal == Signal::LeaveJobs {
            return Ok(Leave::AtOnce);
        }
        eprintln!("received '{}' signal; shutting down.", signal.name());
        is_leaving.store(true, Ordering::Relaxed);
        loop {
            tokio::select! {
                () = self.registry.until_idle() => return Ok(Leave::Politely),
                signal = self.signals.next() => match signal {
                    Signal::LeaveJobs => return Ok(Leave::AtOnce),
                    Signal::Terminate | Signal::Interrupt => self.registry.ask_all(Ask::End),
                },
            }
        }
    }

    async fn until_command_ends(&mut self) -> Result<Leave, ServeFault> {
        let system = |what| move |source| ServeFault::System { what, source };
        let is_wanted = tokio::select! {
            is_wanted = command::is_wanted() => is_wanted,
            _ = self.signals.next() => false,
        };
        let leave = if is_wanted {
            let mut beside = Beside::start(self.command, &self.nursery.environment).map_err(system("starting the command"))?;
            loop {
                tokio::select! {
                    status = beside.ended() => break Leave::With(status.map_err(system("waiting for the command"))?),
                    _ = self.signals.next() => beside.ask(),
                }
            }
        } else {
            Leave::AtOnce
        };
        self.close_door();
        self.registry.ask_all(Ask::End);
        self.registry.until_idle().await;
        Ok(leave)
    }

    /// Nobody new finds us from here on.
    fn close_door(&self) {
        if let Some(socket) = self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// Both services, and what a caller finds out about them: reflection in both of its versions, and health.
async fn router(service: Service) -> tonic::transport::server::Router<Layers> {
    use ci_proto::agent::agent_server::AgentServer;
    use ci_proto::step_runner::step_runner_server::StepRunnerServer;
    let agent = AgentService { registry: Arc::clone(&service.registry), nursery: Arc::clone(&service.nursery), started: SystemTime::now() };
    let step_runner = StepRunnerServer::new(service).max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE);
    let agent = AgentServer::new(agent).max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE);
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<StepRunnerServer<Service>>().await;
    health.set_serving::<AgentServer<AgentService>>().await;
    let reflection = || tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(ci_proto::FILE_DESCRIPTOR_SET);
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .layer(MapResponseLayer::new(refusal::name_limit as fn(Answer) -> Answer))
        .add_service(step_runner)
        .add_service(agent)
        .add_service(health_service)
        // Descriptors that do not fit together are found by the first test that starts a front; serving goes on without.
        .add_optional_service(reflection().build_v1().ok())
        .add_optional_service(reflection().build_v1alpha().ok())
}

/// A front that has no job takes as little memory as it can.
#[cfg(target_os = "linux")]
async fn rest(registry: Arc<Registry>) {
    loop {
        registry.until_idle().await;
        // Between two jobs of a busy front it is not worth it.
        if tokio::time::timeout(IDLE, registry.until_busy()).await.is_err() {
            crate::system::footprint::let_go();
            registry.until_busy().await;
        }
    }
}

/// The first process of a system has to take leave of every orphan.
pub async fn reap_orphans() {
    let Ok(mut children) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child()) else { return };
    while children.recv().await.is_some() {
        // Job processes are no exception: what they have to say they say over their links.
        crate::system::reap_adopted(&HashSet::new());
    }
}
