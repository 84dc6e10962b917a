//! One plugin in one process, from its start to its end.

use super::calls::Calls;
use super::process::{Process, StartFault};
use super::{Options, connection, output, reflection};
use crate::certificate::Identity;
use crate::instance_group::{
    Answer, Change, Changed, ConnectInfo, Failure, Health, Instance, InstanceGroup, InstanceId, ProviderInfo, Settings,
};
use crate::records::Level;
use ci_proto::fleeting::go_plugin::grpc_controller_client::GrpcControllerClient;
use ci_proto::fleeting::go_plugin::grpc_stdio_client::GrpcStdioClient;
use ci_proto::fleeting::go_plugin::{Empty, StdioData, stdio_data};
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// Every plugin of go-plugin answers to this name.
const HEALTH_SERVICE: &str = "plugin";
/// What needs no cloud is answered at once.
const HEALTH_LIMIT: Duration = Duration::from_secs(5);
/// A connection breaks a moment before its process is seen to have ended.
const END_IS_SEEN: Duration = Duration::from_millis(200);

/// A plugin that was started. When this is dropped, its process is killed.
#[derive(Debug)]
pub struct Plugin {
    process: Process,
    channel: Channel,
    calls: Calls,
    stdio: JoinHandle<()>,
    grace: Duration,
}

impl Plugin {
    /// Starts the program of a plugin and connects to it. [`InstanceGroup::init`] comes next.
    /// # Errors
    /// See [`StartFault`]. Nothing is left running.
    pub async fn start(program: &Path, options: &Options) -> Result<Self, StartFault> {
        let identity = if options.tls { Some(Identity::generate()?) } else { None };
        let (process, line) = Process::start(program, options, identity.as_ref()).await?;
        let tls = match (&identity, line.certificate) {
            (Some(identity), Some(certificate)) => Some(identity.client(certificate)?),
            _ => None,
        };
        let connected = connection::connect(&line.address, tls).await;
        let unreachable = |reason| StartFault::Connect { program: program.to_owned(), reason };
        let channel = connected.map_err(unreachable)?;
        let stdio = tokio::spawn(listen(channel.clone(), options.clone()));
        let plugin = Self {
            calls: Calls::new(channel.clone(), options.limits, options.name.clone()),
            process,
            channel,
            stdio,
            grace: options.grace,
        };
        let not_serving = |reason| StartFault::NotServing { program: program.to_owned(), reason };
        plugin.health().await.map_err(not_serving)?;
        Ok(plugin)
    }

    /// Whether it serves. A plugin need not know the question.
    /// # Errors
    /// It says no, or nothing.
    pub async fn health(&self) -> Result<(), String> {
        let mut client = HealthClient::new(self.channel.clone());
        let request = HealthCheckRequest { service: HEALTH_SERVICE.to_owned() };
        let answer = timeout(HEALTH_LIMIT, client.check(request)).await;
        match answer.map_err(|_| format!("no answer within {HEALTH_LIMIT:?}"))? {
            Ok(answer) if answer.get_ref().status() == ServingStatus::Serving => Ok(()),
            Ok(answer) => Err(format!("its health is {:?}", answer.get_ref().status())),
            // The Go host never asks, so there are plugins that do not know.
            Err(status) if status.code() == Code::Unimplemented && std::error::Error::source(&status).is_none() => Ok(()),
            Err(status) => Err(std::error::Error::source(&status).map_or_else(|| status.to_string(), connection::root)),
        }
    }

    /// The names of all its services, as it tells them by reflection: what it has beyond those that it must. `None`: it does not tell.
    pub async fn services(&self) -> Option<Vec<String>> {
        timeout(HEALTH_LIMIT, reflection::services(self.channel.clone())).await.ok().flatten()
    }

    /// Asks it to end, and kills it when it does not. The group's own `shutdown` is another matter and comes before. Returns whether it
    /// ended by itself.
    pub async fn end(self) -> bool {
        let mut client = GrpcControllerClient::new(self.channel.clone());
        // It stops serving at once, so its answer is often lost.
        let asked = timeout(self.grace, client.shutdown(Empty {}));
        let _ = asked.await;
        drop(client);
        drop(self.channel);
        drop(self.calls);
        self.stdio.abort();
        let by_itself = self.process.end(self.grace).await;
        if !by_itself {
            tracing::warn!(target: "fleeting", "plugin failed to exit gracefully");
        }
        by_itself
    }

    /// At once. Calls that wait for it fail.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// That a plugin is gone is explained by how its process has ended.
    async fn explain<T>(&self, answer: Result<T, Failure>) -> Result<T, Failure> {
        match answer {
            Err(Failure::Gone { reason, again }) => match self.process.ended_within(END_IS_SEEN).await {
                Some(status) => Err(Failure::Gone { reason: format!("it has ended ({status})"), again }),
                None => Err(Failure::Gone { reason, again }),
            },
            other => other,
        }
    }
}

/// What the plugin's code prints. A plugin that serves no such stream prints elsewhere, which is fine; one whose stream nobody reads would stop.
async fn listen(channel: Channel, options: Options) {
    let mut client = GrpcStdioClient::new(channel).max_decoding_message_size(crate::wire::LARGEST_MESSAGE);
    let mut stream = match client.stream_stdio(()).await {
        Ok(stream) => stream.into_inner(),
        Err(status) => {
            let text = format!("the plugin does not tell what it prints: {}", status.message());
            return (options.log)(&options.name, &output::plain(Level::Debug, text));
        }
    };
    let (out_writer, out_reader) = tokio::io::duplex(64 << 10);
    let (err_writer, err_reader) = tokio::io::duplex(64 << 10);
    tokio::spawn(output::follow(out_reader, options.name.clone(), options.log.clone()));
    tokio::spawn(output::follow(err_reader, options.name, options.log));
    let (mut out, mut err) = (out_writer, err_writer);
    while let Ok(Some(StdioData { channel, data })) = stream.message().await {
        let to = if channel == stdio_data::Channel::Stderr as i32 { &mut err } else { &mut out };
        if tokio::io::AsyncWriteExt::write_all(to, &data).await.is_err() {
            return;
        }
    }
}

impl InstanceGroup for Plugin {
    fn init<'a>(&'a self, config: &'a serde_json::Value, settings: &'a Settings) -> Answer<'a, ProviderInfo> {
        Box::pin(async move { self.explain(self.calls.init(config, settings).await).await })
    }

    fn update(&self) -> Answer<'_, Vec<Instance>> {
        Box::pin(async move { self.explain(self.calls.update().await).await })
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        Box::pin(async move { self.explain(self.calls.change(change).await).await })
    }

    fn connect_info<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, ConnectInfo> {
        Box::pin(async move { self.explain(self.calls.connect_info(instance).await).await })
    }

    fn heartbeat<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, Health> {
        Box::pin(async move { self.explain(self.calls.heartbeat(instance).await).await })
    }

    fn shutdown(&self) -> Answer<'_, ()> {
        Box::pin(async move { self.explain(self.calls.shutdown().await).await })
    }
}
