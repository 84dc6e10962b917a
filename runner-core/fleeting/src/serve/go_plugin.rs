//! What every plugin of go-plugin serves beside its own service.

use super::output::Printed;
use ci_proto::fleeting::go_plugin::grpc_broker_server::GrpcBroker;
use ci_proto::fleeting::go_plugin::grpc_controller_server::GrpcController;
use ci_proto::fleeting::go_plugin::grpc_stdio_server::GrpcStdio;
use ci_proto::fleeting::go_plugin::{ConnInfo, Empty, StdioData, stdio_data};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Ends the process.
pub struct Controller {
    end: watch::Sender<bool>,
}

impl Controller {
    pub fn new(end: watch::Sender<bool>) -> Self {
        Self { end }
    }
}

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.end.send_replace(true);
        Ok(Response::new(Empty {}))
    }
}

/// What the plugin's code prints, for the first who asks.
pub struct Stdio {
    printed: Mutex<Option<mpsc::Receiver<Printed>>>,
    ended: watch::Receiver<bool>,
}

impl Stdio {
    pub fn new(printed: Option<mpsc::Receiver<Printed>>, ended: watch::Receiver<bool>) -> Self {
        Self { printed: Mutex::new(printed), ended }
    }
}

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    type StreamStdioStream = Answers<StdioData>;

    async fn stream_stdio(&self, _request: Request<()>) -> Result<Response<Self::StreamStdioStream>, Status> {
        let taken = self.printed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut printed) = taken else { return Ok(Response::new(silence(self.ended.clone()))) };
        let mut ended = self.ended.clone();
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(async move {
            loop {
                let piece = tokio::select! {
                    piece = printed.recv() => piece,
                    _ = ended.wait_for(|ended| *ended) => return,
                };
                let Some(piece) = piece else { return };
                let channel = if piece.to_stderr { stdio_data::Channel::Stderr } else { stdio_data::Channel::Stdout };
                let data = StdioData { channel: channel as i32, data: piece.bytes.into() };
                if sender.send(Ok(data)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))))
    }
}

/// Further channels; nobody needs one.
pub struct Broker {
    ended: watch::Receiver<bool>,
}

impl Broker {
    pub fn new(ended: watch::Receiver<bool>) -> Self {
        Self { ended }
    }
}

#[tonic::async_trait]
impl GrpcBroker for Broker {
    type StartStreamStream = Answers<ConnInfo>;

    async fn start_stream(&self, _request: Request<Streaming<ConnInfo>>) -> Result<Response<Self::StartStreamStream>, Status> {
        Ok(Response::new(silence(self.ended.clone())))
    }
}

/// Open until the plugin ends, so that its end is not held up.
fn silence<T: Send + 'static>(mut ended: watch::Receiver<bool>) -> Answers<T> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => {}
            () = sender.closed() => {}
        }
    });
    Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))
}
