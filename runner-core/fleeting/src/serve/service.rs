//! The service of the plugin: requests become calls of the group.

use crate::instance_group::{Change, Changed, Failure, Health, InstanceGroup, InstanceId};
use crate::wire;
use ci_proto::fleeting::instance_group as message;
use ci_proto::fleeting::instance_group::instance_group_server as server;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

/// What hosts compare with their own constant; it travels as text alone.
const UNHEALTHY: &str = "instance is unhealthy";

pub struct Service {
    group: Arc<dyn InstanceGroup>,
    /// Update and change never run side by side, whoever calls.
    turn: Mutex<()>,
}

impl Service {
    pub fn new(group: Arc<dyn InstanceGroup>) -> Self {
        Self { group, turn: Mutex::new(()) }
    }

    pub fn server(self) -> server::InstanceGroupServer<Self> {
        let server = server::InstanceGroupServer::new(self);
        server.max_decoding_message_size(wire::LARGEST_MESSAGE).max_encoding_message_size(wire::LARGEST_MESSAGE)
    }

    async fn changed(&self, change: Change) -> Result<Changed, Status> {
        let _turn = self.turn.lock().await;
        let call = change.name();
        let changed = self.group.change(change).await.map_err(|failure| told(call, &failure))?;
        if let Some(trouble) = &changed.trouble {
            tracing::warn!(call, trouble, done = changed.count, "not everything was done");
        }
        Ok(changed)
    }
}

/// A failure in the log and on the wire.
fn told(call: &'static str, failure: &Failure) -> Status {
    match failure {
        Failure::NotSupported { .. } => tracing::debug!(call, "{failure}"),
        _ => tracing::error!(call, "{failure}"),
    }
    wire::failure_out(call, failure)
}

/// A host drops the result of one that fails, so what was done in part is no failure. Nothing at all is one.
fn all_or_some(changed: Changed) -> Result<Changed, Status> {
    match (changed.count, &changed.trouble) {
        (0, Some(trouble)) => Err(Status::unknown(trouble.clone())),
        _ => Ok(changed),
    }
}

fn ids(instances: Vec<String>) -> Vec<InstanceId> {
    wire::ids_in(instances)
}

#[tonic::async_trait]
impl server::InstanceGroup for Service {
    type UpdateStream = Pin<Box<dyn Stream<Item = Result<message::UpdateResponse, Status>> + Send>>;

    async fn init(&self, request: Request<message::InitRequest>) -> Result<Response<message::InitResponse>, Status> {
        let message::InitRequest { config, settings } = request.into_inner();
        let config = match config.as_slice() {
            [] => serde_json::Value::Null,
            bytes => serde_json::from_slice(bytes).map_err(|error| Status::unknown(format!("unmarshaling config: {error}")))?,
        };
        let settings = wire::settings_in(settings);
        let info = self.group.init(&config, &settings).await.map_err(|failure| told("Init", &failure))?;
        Ok(Response::new(wire::provider_out(info)))
    }

    async fn update(&self, _request: Request<message::Empty>) -> Result<Response<Self::UpdateStream>, Status> {
        let _turn = self.turn.lock().await;
        let found = self.group.update().await.map_err(|failure| told("Update", &failure))?;
        let messages = found.into_iter().map(|instance| Ok(wire::instance_out(instance)));
        Ok(Response::new(Box::pin(tokio_stream::iter(messages.collect::<Vec<_>>()))))
    }

    async fn increase(&self, request: Request<message::IncreaseRequest>) -> Result<Response<message::IncreaseResponse>, Status> {
        let changed = all_or_some(self.changed(Change::Increase(request.into_inner().n)).await?)?;
        Ok(Response::new(message::IncreaseResponse { succeeded: changed.count }))
    }

    async fn decrease(&self, request: Request<message::DecreaseRequest>) -> Result<Response<message::DecreaseResponse>, Status> {
        let changed = all_or_some(self.changed(Change::Decrease(ids(request.into_inner().instances))).await?)?;
        Ok(Response::new(message::DecreaseResponse { succeeded: wire::ids_out(&changed.instances) }))
    }

    async fn connect_info(&self, request: Request<message::ConnectInfoRequest>) -> Result<Response<message::ConnectInfoResponse>, Status> {
        let id = InstanceId(request.into_inner().instance);
        let info = self.group.connect_info(&id).await.map_err(|failure| told("ConnectInfo", &failure))?;
        Ok(Response::new(wire::connect_info_out(&info)))
    }

    async fn heartbeat(&self, request: Request<message::HeartbeatRequest>) -> Result<Response<message::Empty>, Status> {
        let id = InstanceId(request.into_inner().instance);
        match self.group.heartbeat(&id).await.map_err(|failure| told("Heartbeat", &failure))? {
            Health::Healthy => Ok(Response::new(message::Empty {})),
            Health::Unhealthy { reason } if reason.is_empty() => Err(Status::unknown(UNHEALTHY)),
            Health::Unhealthy { reason } => Err(Status::unknown(format!("{UNHEALTHY}: {reason}"))),
        }
    }

    async fn suspend(&self, request: Request<message::SuspendRequest>) -> Result<Response<message::SuspendResponse>, Status> {
        let changed = self.changed(Change::Suspend(ids(request.into_inner().instances))).await?;
        match changed.trouble {
            Some(trouble) => Err(wire::partial_out(false, &changed.instances, trouble)),
            None => Ok(Response::new(message::SuspendResponse { succeeded: wire::ids_out(&changed.instances) })),
        }
    }

    async fn resume(&self, request: Request<message::ResumeRequest>) -> Result<Response<message::ResumeResponse>, Status> {
        let changed = self.changed(Change::Resume(ids(request.into_inner().instances))).await?;
        match changed.trouble {
            Some(trouble) => Err(wire::partial_out(true, &changed.instances, trouble)),
            None => Ok(Response::new(message::ResumeResponse { succeeded: wire::ids_out(&changed.instances) })),
        }
    }

    async fn shutdown(&self, _request: Request<message::Empty>) -> Result<Response<message::Empty>, Status> {
        self.group.shutdown().await.map_err(|failure| told("Shutdown", &failure))?;
        Ok(Response::new(message::Empty {}))
    }
}
