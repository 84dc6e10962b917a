//! What has been made for jobs, found by its labels, and removed.

use super::Engine;
use crate::owner::OWNER_LABEL;
use crate::trouble::Trouble;
use bollard::models::{NetworkCreateRequest, NetworkDisconnectRequest};
use bollard::query_parameters::{
    InspectNetworkOptions, ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptionsBuilder,
};
use std::collections::{BTreeMap, HashMap};

/// In the order in which they can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Container,
    Network,
    Volume,
}

/// Something that carries our labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub kind: Kind,
    pub id: String,
    pub labels: BTreeMap<String, String>,
}

impl Engine {
    /// Everything with a label, `KEY` or `KEY=VALUE`: containers, then networks, then volumes.
    pub async fn made(&self, label: &str) -> Result<Vec<Made>, Trouble> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let labels = |labels: Option<HashMap<String, String>>| labels.unwrap_or_default().into_iter().collect();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let containers = self.ask(self.docker.list_containers(Some(options))).await?;
        let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
        let networks = self.ask(self.docker.list_networks(Some(options))).await?;
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let volumes = self.ask(self.docker.list_volumes(Some(options))).await?.volumes.unwrap_or_default();
        let containers =
            containers.into_iter().map(|made| Made { kind: Kind::Container, id: made.id.unwrap_or_default(), labels: labels(made.labels) });
        let networks =
            networks.into_iter().map(|made| Made { kind: Kind::Network, id: made.id.unwrap_or_default(), labels: labels(made.labels) });
        let volumes = volumes.into_iter().map(|made| Made { kind: Kind::Volume, id: made.name, labels: labels(Some(made.labels)) });
        Ok(containers.chain(networks).chain(volumes).collect())
    }

    /// Everything of ours, whoever owns it.
    pub async fn all_made(&self) -> Result<Vec<Made>, Trouble> {
        self.made(OWNER_LABEL).await
    }

    /// One that is not there is fine.
    pub async fn remove_made(&self, made: &Made) -> Result<(), Trouble> {
        let removed = match made.kind {
            Kind::Container => return self.remove(&made.id).await,
            Kind::Network => self.remove_network(&made.id).await,
            Kind::Volume => {
                let options = RemoveVolumeOptionsBuilder::default().force(true).build();
                self.ask(self.docker.remove_volume(&made.id, Some(options))).await
            }
        };
        match removed {
            Err(trouble) if trouble.is_absent() => Ok(()),
            other => other,
        }
    }

    /// Members of it are let go first: whoever made them also removes them.
    async fn remove_network(&self, id: &str) -> Result<(), Trouble> {
        match self.ask(self.docker.remove_network(id)).await {
            Err(Trouble::Refused { status: 403, .. }) => {}
            other => return other,
        }
        let network = self.ask(self.docker.inspect_network(id, None::<InspectNetworkOptions>)).await?;
        for container in network.containers.unwrap_or_default().into_keys() {
            let request = NetworkDisconnectRequest { container, force: Some(true) };
            // One that has gone by itself is gone.
            let _gone = self.ask(self.docker.disconnect_network(id, request)).await;
        }
        self.ask(self.docker.remove_network(id)).await
    }

    /// A network whose members find each other by their names.
    pub async fn create_network(&self, name: &str, labels: &BTreeMap<String, String>) -> Result<(), Trouble> {
        let request = NetworkCreateRequest {
            name: name.to_owned(),
            driver: Some("bridge".to_owned()),
            labels: Some(labels.clone().into_iter().collect()),
            ..NetworkCreateRequest::default()
        };
        self.ask(self.docker.create_network(request)).await.map(drop)
    }
}
