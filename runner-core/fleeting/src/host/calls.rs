//! The calls to a plugin as they go over the wire: each has an end, and each answer is checked before it is believed.

use super::Limits;
use super::connection::root;
use crate::instance_group::{Change, Changed, ConnectInfo, Failure, Health, Instance, InstanceId, ProviderInfo, Settings};
use crate::wire;
use ci_proto::fleeting::instance_group as message;
use ci_proto::fleeting::instance_group::instance_group_client::InstanceGroupClient;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

/// More instances than any group has: a plugin that goes on and on must not fill the host's memory.
const MOST_INSTANCES: usize = 1_000_000;

/// One connection, as the service sees it.
#[derive(Debug, Clone)]
pub struct Calls {
    client: InstanceGroupClient<Channel>,
    limits: Limits,
    name: String,
}

impl Calls {
    pub fn new(channel: Channel, limits: Limits, name: String) -> Self {
        let client = InstanceGroupClient::new(channel);
        let client = client.max_decoding_message_size(wire::LARGEST_MESSAGE).max_encoding_message_size(wire::LARGEST_MESSAGE);
        Self { client, limits, name }
    }

    pub async fn init(&self, config: &serde_json::Value, settings: &Settings) -> Result<ProviderInfo, Failure> {
        // A Go plugin refuses zero bytes, and takes an empty object for none.
        let config = if config.is_null() { "{}".to_owned() } else { config.to_string() };
        let request = message::InitRequest { config: config.into_bytes(), settings: Some(wire::settings_out(settings)) };
        let mut client = self.client.clone();
        let info = bounded("Init", self.limits.init, request, async |request| client.init(request).await).await?;
        Ok(wire::provider_in(info))
    }

    pub async fn update(&self) -> Result<Vec<Instance>, Failure> {
        let mut client = self.client.clone();
        let limit = self.limits.update;
        let found = bounded("Update", limit, message::Empty {}, async |request| {
            let mut stream = client.update(request).await?.into_inner();
            let mut found = Vec::new();
            while let Some(instance) = stream.message().await? {
                found.push(wire::instance_in(instance));
                if found.len() > MOST_INSTANCES {
                    return Err(Status::internal(format!("more than {MOST_INSTANCES} instances")));
                }
            }
            Ok(Response::new(found))
        });
        Ok(self.checked(found.await?))
    }

    /// The last word about an instance counts, and one without a name cannot be spoken about.
    fn checked(&self, mut found: Vec<Instance>) -> Vec<Instance> {
        let mut known = BTreeSet::new();
        found.reverse();
        found.retain(|instance| {
            let keep = !instance.id.0.is_empty() && known.insert(instance.id.clone());
            if !keep {
                tracing::warn!(target: "fleeting", plugin = self.name, instance = %instance.id, "the plugin has reported an instance twice, or one without an id");
            }
            keep
        });
        found.reverse();
        found
    }

    pub async fn change(&self, change: Change) -> Result<Changed, Failure> {
        let (limit, mut client) = (self.limits.change, self.client.clone());
        match change {
            Change::Increase(n) => {
                let request = message::IncreaseRequest { n };
                let answer = bounded("Increase", limit, request, async |request| client.increase(request).await).await?;
                Ok(Changed::count(self.no_more_than(n, answer.succeeded)))
            }
            Change::Decrease(ids) => {
                let request = message::DecreaseRequest { instances: wire::ids_out(&ids) };
                let answer = bounded("Decrease", limit, request, async |request| client.decrease(request).await).await?;
                Ok(self.asked_for("Decrease", &ids, answer.succeeded))
            }
            Change::Suspend(ids) => {
                let request = message::SuspendRequest { instances: wire::ids_out(&ids) };
                let answer = partly("Suspend", limit, request, async |request| {
                    client.suspend(request).await.map(|reply| reply.map(|reply| reply.succeeded))
                });
                self.in_part("Suspend", &ids, answer.await)
            }
            Change::Resume(ids) => {
                let request = message::ResumeRequest { instances: wire::ids_out(&ids) };
                let answer = partly("Resume", limit, request, async |request| {
                    client.resume(request).await.map(|reply| reply.map(|reply| reply.succeeded))
                });
                self.in_part("Resume", &ids, answer.await)
            }
        }
    }

    fn no_more_than(&self, asked: u32, succeeded: u32) -> u32 {
        if succeeded > asked {
            tracing::warn!(target: "fleeting", plugin = self.name, asked, succeeded, "the plugin says that it made more instances than it was asked for");
        }
        succeeded.min(asked)
    }

    fn asked_for(&self, call: &'static str, asked: &[InstanceId], succeeded: Vec<String>) -> Changed {
        let asked: BTreeSet<&InstanceId> = asked.iter().collect();
        let (known, others): (Vec<_>, Vec<_>) = wire::ids_in(succeeded).into_iter().partition(|id| asked.contains(id));
        if !others.is_empty() {
            tracing::warn!(target: "fleeting", plugin = self.name, call, ?others, "the plugin names instances that it was not asked about");
        }
        Changed::instances(known)
    }

    fn in_part(&self, call: &'static str, asked: &[InstanceId], answer: Result<Changed, Failure>) -> Result<Changed, Failure> {
        let Changed { instances, trouble, .. } = answer?;
        Ok(Changed { trouble, ..self.asked_for(call, asked, wire::ids_out(&instances)) })
    }

    pub async fn connect_info(&self, id: &InstanceId) -> Result<ConnectInfo, Failure> {
        let (mut client, limit) = (self.client.clone(), self.limits.connect_info);
        let request = message::ConnectInfoRequest { instance: id.0.clone() };
        let info = bounded("ConnectInfo", limit, request, async |request| client.connect_info(request).await).await?;
        wire::connect_info_in(id, info)
    }

    pub async fn heartbeat(&self, id: &InstanceId) -> Result<Health, Failure> {
        let (mut client, limit) = (self.client.clone(), self.limits.heartbeat);
        let request = message::HeartbeatRequest { instance: id.0.clone() };
        let answer = bounded("Heartbeat", limit, request, async |request| client.heartbeat(request).await).await;
        wire::health_in(answer.map(|_: message::Empty| ()))
    }

    pub async fn shutdown(&self) -> Result<(), Failure> {
        let (mut client, limit) = (self.client.clone(), self.limits.shutdown);
        match bounded("Shutdown", limit, message::Empty {}, async |request| client.shutdown(request).await).await {
            Ok(message::Empty {}) | Err(Failure::NotSupported { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

async fn bounded<T, A>(
    call: &'static str,
    limit: Duration,
    request: T,
    send: impl AsyncFnOnce(Request<T>) -> Result<Response<A>, Status>,
) -> Result<A, Failure> {
    let begun = Instant::now();
    answered(limit, request, send).await.map_err(|status| failure(call, &status, limit, begun))
}

/// For suspend and resume, whose failure may carry what was done.
async fn partly<T>(
    call: &'static str,
    limit: Duration,
    request: T,
    send: impl AsyncFnOnce(Request<T>) -> Result<Response<Vec<String>>, Status>,
) -> Result<Changed, Failure> {
    let begun = Instant::now();
    match answered(limit, request, send).await {
        Ok(done) => Ok(Changed::instances(wire::ids_in(done))),
        Err(status) => wire::partial_in(&status).ok_or_else(|| failure(call, &status, limit, begun)),
    }
}

async fn answered<T, A>(
    limit: Duration,
    request: T,
    send: impl AsyncFnOnce(Request<T>) -> Result<Response<A>, Status>,
) -> Result<A, Status> {
    let mut request = Request::new(request);
    // The plugin is told how long it has, and may stop what nobody waits for.
    request.set_timeout(limit);
    match tokio::time::timeout(limit, send(request)).await {
        Ok(answer) => answer.map(Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded("")),
    }
}

fn failure(call: &'static str, status: &Status, limit: Duration, begun: Instant) -> Failure {
    if begun.elapsed() >= limit {
        return Failure::Late { call, limit };
    }
    // A status that the plugin has sent has no source; this one was made here, of a connection that broke.
    match std::error::Error::source(status) {
        Some(source) if status.code() != Code::Unimplemented => Failure::Gone { reason: root(source), again: None },
        _ => wire::failure_in(call, status, limit),
    }
}
