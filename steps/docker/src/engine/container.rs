//! One container: made as specified, started, looked at, removed.

use super::{Attached, Engine};
use crate::settings::{Mount, MountSource};
use crate::specification::Specification;
use crate::trouble::Trouble;
use bollard::models::{
    ContainerCreateBody, EndpointSettings, HealthStatusEnum, HostConfig, HostConfigLogConfig, Mount as EngineMount, MountType,
    NetworkingConfig, PortBinding,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions, KillContainerOptions, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions, WaitContainerOptionsBuilder,
};
use futures::StreamExt as _;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub exit_code: i64,
    /// Something in it was killed for memory.
    pub out_of_memory: bool,
    /// What the engine says, when the first process could not be started.
    pub error: String,
}

/// A container as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Running {
    pub is_running: bool,
    /// On the engine's machine. Zero: it does not run.
    pub pid: u32,
    /// `None`: it has no health check, or none that has begun.
    pub healthy: Option<bool>,
    /// What its last health check printed.
    pub health_said: String,
    /// Of the networks that it is in, by their names.
    pub addresses: BTreeMap<String, IpAddr>,
    /// Its own ports and those of the engine's machine.
    pub published: BTreeMap<u16, u16>,
}

impl Engine {
    /// Gives the id, and what the engine warns of.
    pub async fn create(&self, specification: &Specification) -> Result<(String, Vec<String>), Trouble> {
        let options = CreateContainerOptionsBuilder::default().name(&specification.name).build();
        let answer = self.ask(self.docker.create_container(Some(options), body(specification))).await?;
        // Whether swap is counted is nobody's fault here, and the limit of memory holds without.
        let warnings = answer.warnings.into_iter().filter(|warning| !warning.to_ascii_lowercase().contains("swap"));
        Ok((answer.id, warnings.collect()))
    }

    /// Both directions, from now on. To be called before the start, so that nothing is missed.
    pub async fn attach(&self, id: &str) -> Result<Attached, Trouble> {
        let options = AttachContainerOptionsBuilder::default().stream(true).stdin(true).stdout(true).stderr(true).build();
        self.ask(self.docker.attach_container(id, Some(options))).await.map(Attached::new)
    }

    pub async fn start(&self, id: &str) -> Result<(), Trouble> {
        self.ask(self.docker.start_container(id, None::<StartContainerOptions>)).await
    }

    /// One that has ended, or is not there, is fine.
    pub async fn kill(&self, id: &str) -> Result<(), Trouble> {
        match self.ask(self.docker.kill_container(id, None::<KillContainerOptions>)).await {
            Err(trouble) if trouble.is_absent() || trouble.is_conflict() => Ok(()),
            other => other,
        }
    }

    /// Waits for its end, however long that takes.
    pub async fn wait(&self, id: &str) -> Result<(), Trouble> {
        let options = WaitContainerOptionsBuilder::default().condition("not-running").build();
        match self.docker.wait_container(id, Some(options)).next().await {
            // An exit code that is not zero is an error there.
            None | Some(Ok(_) | Err(bollard::errors::Error::DockerContainerWaitError { .. })) => Ok(()),
            Some(Err(error)) => Err(Trouble::of(error, self.timeout)),
        }
    }

    /// How it ended. `None`: it has not.
    pub async fn ended(&self, id: &str) -> Result<Option<Ended>, Trouble> {
        let inspected = self.ask(self.docker.inspect_container(id, None::<InspectContainerOptions>)).await?;
        let state = inspected.state.unwrap_or_default();
        if state.running == Some(true) {
            return Ok(None);
        }
        Ok(Some(Ended {
            exit_code: state.exit_code.unwrap_or_default(),
            out_of_memory: state.oom_killed.unwrap_or_default(),
            error: state.error.unwrap_or_default(),
        }))
    }

    pub async fn running(&self, id: &str) -> Result<Running, Trouble> {
        let inspected = self.ask(self.docker.inspect_container(id, None::<InspectContainerOptions>)).await?;
        let state = inspected.state.unwrap_or_default();
        let health = state.health.unwrap_or_default();
        let networks = inspected.network_settings.clone().and_then(|settings| settings.networks).unwrap_or_default();
        let ports = inspected.network_settings.and_then(|settings| settings.ports).unwrap_or_default();
        Ok(Running {
            is_running: state.running.unwrap_or_default(),
            pid: state.pid.and_then(|pid| pid.try_into().ok()).unwrap_or_default(),
            healthy: match health.status {
                Some(HealthStatusEnum::HEALTHY) => Some(true),
                Some(HealthStatusEnum::STARTING | HealthStatusEnum::UNHEALTHY) => Some(false),
                _ => None,
            },
            health_said: health.log.and_then(|log| log.last()?.output.clone()).unwrap_or_default(),
            addresses: networks.into_iter().filter_map(|(name, endpoint)| Some((name, endpoint.ip_address?.parse().ok()?))).collect(),
            published: ports
                .into_iter()
                .filter_map(|(port, bindings)| {
                    let of_host = bindings?.iter().find_map(|binding| binding.host_port.as_ref()?.parse().ok())?;
                    Some((tcp_port(&port)?, of_host))
                })
                .collect(),
        })
    }

    /// The end of what it printed.
    pub async fn last_lines(&self, id: &str, count: u32) -> String {
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).tail(&count.to_string()).build();
        let mut logs = self.docker.logs(id, Some(options));
        let mut text = Vec::new();
        let reading = async {
            while let Some(Ok(output)) = logs.next().await {
                text.extend_from_slice(&output.into_bytes());
            }
        };
        let _as_far_as_it_came = tokio::time::timeout(self.timeout, reading).await;
        String::from_utf8_lossy(&text).into_owned()
    }

    /// With its volumes without a name. One that is not there is fine.
    pub async fn remove(&self, id: &str) -> Result<(), Trouble> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.ask(self.docker.remove_container(id, Some(options))).await {
            // Somebody else is at it.
            Err(trouble) if trouble.is_absent() || trouble.is_conflict() => Ok(()),
            other => other,
        }
    }
}

/// `5432/tcp`.
pub(super) fn tcp_port(text: &str) -> Option<u16> {
    let (port, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    port.parse().ok().filter(|_| protocol == "tcp")
}

fn body(specification: &Specification) -> ContainerCreateBody {
    let some = |items: &Vec<String>| Some(items.clone()).filter(|items| !items.is_empty());
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let map = |map: &BTreeMap<String, String>| map.clone().into_iter().collect::<HashMap<_, _>>();
    let (is_attached, limits) = (specification.is_attached, &specification.limits);
    let ports = specification.published.iter().map(|port| {
        // A free one is chosen by the engine.
        (format!("{port}/tcp"), Some(vec![PortBinding { host_ip: None, host_port: Some(String::new()) }]))
    });
    let endpoint = EndpointSettings { aliases: some(&specification.aliases), ..EndpointSettings::default() };
    ContainerCreateBody {
        image: Some(specification.image.clone()),
        entrypoint: some(&specification.entrypoint),
        cmd: some(&specification.command),
        env: some(&specification.environment),
        user: text(&specification.user),
        working_dir: text(&specification.work_dir),
        hostname: text(&specification.hostname),
        labels: Some(map(&specification.labels)),
        open_stdin: is_attached.then_some(true),
        stdin_once: is_attached.then_some(true),
        attach_stdin: is_attached.then_some(true),
        attach_stdout: is_attached.then_some(true),
        attach_stderr: is_attached.then_some(true),
        exposed_ports: Some(specification.published.iter().map(|port| format!("{port}/tcp")).collect()),
        networking_config: (!specification.aliases.is_empty())
            .then(|| NetworkingConfig { endpoints_config: Some(HashMap::from([(specification.network.clone(), endpoint)])) }),
        host_config: Some(HostConfig {
            mounts: Some(specification.mounts.iter().map(mount).collect()),
            tmpfs: Some(map(&specification.tmpfs)),
            network_mode: text(&specification.network),
            port_bindings: Some(ports.collect()),
            extra_hosts: some(&specification.extra_hosts),
            dns: some(&specification.dns),
            dns_search: some(&specification.dns_search),
            nano_cpus: limits.nano_cpus,
            memory: limits.memory,
            memory_swap: limits.memory,
            pids_limit: limits.pids,
            shm_size: limits.shm_size,
            privileged: specification.privileged.then_some(true),
            cap_add: some(&specification.cap_add),
            cap_drop: some(&specification.cap_drop),
            readonly_rootfs: specification.read_only.then_some(true),
            // What an attached one prints goes to whoever is attached, and would be kept a second time.
            log_config: Some(HostConfigLogConfig { typ: Some(if is_attached { "none" } else { "local" }.to_owned()), config: None }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

fn mount(mount: &Mount) -> EngineMount {
    let (typ, source) = match &mount.source {
        MountSource::Path(path) => (MountType::BIND, path),
        MountSource::Volume(name) => (MountType::VOLUME, name),
    };
    EngineMount {
        typ: Some(typ),
        source: Some(source.clone()),
        target: Some(mount.target.clone()),
        read_only: Some(mount.read_only),
        ..EngineMount::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Limits;

    #[test]
    fn only_what_is_specified_is_asked_of_the_engine() {
        let specification = Specification {
            image: "sha256:1".into(),
            network: "net".into(),
            aliases: vec!["a".into()],
            limits: Limits { memory: Some(1024), ..Limits::default() },
            is_attached: true,
            ..Specification::default()
        };
        insta::assert_snapshot!(serde_json::to_string_pretty(&body(&specification)).unwrap(), @r#"
        {
          "AttachStdin": true,
          "AttachStdout": true,
          "AttachStderr": true,
          "ExposedPorts": {},
          "OpenStdin": true,
          "StdinOnce": true,
          "Image": "sha256:1",
          "Labels": {},
          "HostConfig": {
            "Memory": 1024,
            "MemorySwap": 1024,
            "LogConfig": {
              "Type": "none"
            },
            "NetworkMode": "net",
            "PortBindings": {},
            "Mounts": [],
            "Tmpfs": {}
          },
          "NetworkingConfig": {
            "EndpointsConfig": {
              "net": {
                "Aliases": [
                  "a"
                ]
              }
            }
          }
        }
        "#);
    }

    #[test]
    fn only_ports_of_tcp_are_ports() {
        assert_eq!([tcp_port("5432/tcp"), tcp_port("80"), tcp_port("53/udp"), tcp_port("x/tcp")], [Some(5432), Some(80), None, None]);
    }
}
