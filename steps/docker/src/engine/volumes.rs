//! The volume that holds the agent: one for each agent and engine, filled once.
//!
//! A volume says by its being there that it was made, not that it was filled, and its labels never change. So there are two: the one that is filled
//! has a name that nobody else knows, and when it is full a second one is made, empty, whose well-known name is that of the agent and whose label
//! names the first. Of two that fill at the same time one gets the name; the other removes its own.

use super::Engine;
use crate::specification::AGENT_DIRECTORY;
use crate::trouble::Trouble;
use bollard::body_full;
use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::{CreateContainerOptions, UploadToContainerOptionsBuilder};
use std::collections::HashMap;

/// Which volume is full.
const FULL_LABEL: &str = "step-runner.agent.volume";
/// Which agent is in it.
const AGENT_LABEL: &str = "step-runner.agent";

impl Engine {
    /// The volume with this agent. `None`: there is none yet.
    pub async fn agent_volume(&self, digest: &str) -> Result<Option<String>, Trouble> {
        let named = match self.ask(self.docker.inspect_volume(&name(digest))).await {
            Ok(volume) => volume.labels.get(FULL_LABEL).cloned(),
            Err(trouble) if trouble.is_absent() => None,
            Err(trouble) => return Err(trouble),
        };
        let Some(full) = named else { return Ok(None) };
        // Somebody may have removed it alone.
        match self.ask(self.docker.inspect_volume(&full)).await {
            Ok(_) => Ok(Some(full)),
            Err(trouble) if trouble.is_absent() => {
                self.remove_volume(&name(digest)).await?;
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Fills a volume and gives its name. `image`: any that the engine has; a container of it is made for this, and never started.
    pub async fn fill_agent_volume(&self, digest: &str, agent: Vec<u8>, image: &str, unique: &str) -> Result<String, Trouble> {
        let full = format!("{}-{unique}", name(digest));
        let labels = HashMap::from([(AGENT_LABEL.to_owned(), digest.to_owned())]);
        let request = VolumeCreateRequest { name: Some(full.clone()), labels: Some(labels.clone()), ..VolumeCreateRequest::default() };
        self.ask(self.docker.create_volume(request)).await?;
        if let Err(trouble) = self.copy_agent(&full, agent, image).await {
            // What it holds is incomplete; nobody has its name.
            let _as_far_as_possible = self.remove_volume(&full).await;
            return Err(trouble);
        }
        let marked = labels.into_iter().chain([(FULL_LABEL.to_owned(), full.clone())]).collect();
        let request = VolumeCreateRequest { name: Some(name(digest)), labels: Some(marked), ..VolumeCreateRequest::default() };
        let marker = self.ask(self.docker.create_volume(request)).await?;
        let first = marker.labels.get(FULL_LABEL).cloned().unwrap_or_else(|| full.clone());
        if first != full {
            self.remove_volume(&full).await?;
        }
        Ok(first)
    }

    async fn copy_agent(&self, volume: &str, agent: Vec<u8>, image: &str) -> Result<(), Trouble> {
        let mount = Mount {
            typ: Some(MountType::VOLUME),
            source: Some(volume.to_owned()),
            target: Some(AGENT_DIRECTORY.to_owned()),
            ..Mount::default()
        };
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            // Never run, but an image without a command cannot be made a container of without one.
            entrypoint: Some(vec![format!("{AGENT_DIRECTORY}/step-agent")]),
            host_config: Some(HostConfig { mounts: Some(vec![mount]), ..HostConfig::default() }),
            ..ContainerCreateBody::default()
        };
        let container = self.ask(self.docker.create_container(None::<CreateContainerOptions>, body)).await?.id;
        let options = UploadToContainerOptionsBuilder::default().path(AGENT_DIRECTORY).build();
        let copied = self.ask(self.docker.upload_to_container(&container, Some(options), body_full(archive(&agent).into()))).await;
        self.remove(&container).await?;
        copied
    }

    async fn remove_volume(&self, name: &str) -> Result<(), Trouble> {
        self.remove_made(&super::Made { kind: super::Kind::Volume, id: name.to_owned(), labels: std::collections::BTreeMap::new() }).await
    }
}

fn name(digest: &str) -> String {
    format!("step-runner-agent-{}", digest.get(..16).unwrap_or(digest))
}

/// One file that everybody may run.
fn archive(agent: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_size(agent.len() as u64);
    header.set_mode(0o755);
    header.set_entry_type(tar::EntryType::Regular);
    let mut builder = tar::Builder::new(Vec::with_capacity(agent.len() + 2048));
    // Both write into memory.
    let _infallible = builder.append_data(&mut header, "step-agent", agent);
    builder.into_inner().unwrap_or_default()
}
