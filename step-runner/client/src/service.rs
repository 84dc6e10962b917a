//! The door to gRPC: a channel over streams of ours, and its errors in our words.

use crate::call::{CallFailed, Code};
use crate::connect::Connector;
use ci_proto::agent::agent_client::AgentClient as AgentService;
use ci_proto::step_runner::step_runner_client::StepRunnerClient;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt as _;

/// A slow path fills at most one window a round trip: 64 KiB, the default, would cap a log at 640 KiB/s over 100 ms.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Messages of 64 MiB, and what surrounds them.
const LARGEST_MESSAGE: usize = (64 << 20) + (1 << 20);

/// GitLab's service and ours, over one connection that is made anew when it was lost.
#[derive(Debug, Clone)]
pub struct Service {
    pub jobs: StepRunnerClient<Channel>,
    pub agent: AgentService<Channel>,
}

impl Service {
    /// Connects at the first call.
    /// # Panics
    /// Outside of a runtime of tokio.
    pub fn new(connector: Arc<dyn Connector>, keep_alive: Option<Duration>) -> Self {
        let mut endpoint = Endpoint::from_static("http://localhost")
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        if let Some(interval) = keep_alive {
            endpoint = endpoint.http2_keep_alive_interval(interval).keep_alive_timeout(interval).keep_alive_while_idle(true);
        }
        let channel = endpoint.connect_with_connector_lazy(tower::service_fn(move |_| {
            let connecting = connector.connect();
            async move { connecting.await.map(TokioIo::new).map_err(|fault| NoConnection(Arc::new(fault))) }
        }));
        Self {
            jobs: StepRunnerClient::new(channel.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            agent: AgentService::new(channel).max_decoding_message_size(LARGEST_MESSAGE),
        }
    }
}

/// Marks a failed attempt to connect, so that it is found again below what the layers above make of it.
#[derive(Debug, Clone)]
struct NoConnection(Arc<io::Error>);

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for NoConnection {}

/// What a failed call of `method` means.
pub fn failure(method: &'static str, status: &tonic::Status) -> CallFailed {
    // Only what happened on this side has a source: an answer of the agent is plain text.
    if let Some(source) = status.source() {
        return below(source);
    }
    let message = status.message();
    // What a front that was killed in the middle of a reply looks like.
    if message.contains("missing grpc-status") {
        return CallFailed::Lost { why: "it ended in the middle of an answer".into() };
    }
    if status.code() == tonic::Code::Unimplemented {
        return CallFailed::Missing { method };
    }
    let code = Code::of(status.code() as i32);
    let message = if message.is_empty() { format!("the agent answered {code} to {method}") } else { message.to_owned() };
    CallFailed::Refused { code, reason: status.get_details_error_info().map(|info| info.reason), message }
}

fn below(mut fault: &(dyn Error + 'static)) -> CallFailed {
    loop {
        if let Some(NoConnection(fault)) = fault.downcast_ref::<NoConnection>() {
            return CallFailed::NotConnected { kind: fault.kind(), why: words(&fault.to_string()) };
        }
        match fault.source() {
            Some(inner) => fault = inner,
            // The innermost says what happened; those around it only that something did.
            None => return CallFailed::Lost { why: words(&fault.to_string()) },
        }
    }
}

/// What the system says, without its number.
fn words(text: &str) -> String {
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
