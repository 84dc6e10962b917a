//! Images: what they say of themselves, and how they come.

use super::Engine;
use super::container::tcp_port;
use crate::credentials::Login;
use crate::image_reference::ImageReference;
use crate::specification::ImageFacts;
use crate::trouble::Trouble;
use bollard::auth::DockerCredentials;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt as _;

impl Engine {
    /// `None`: the engine does not have it.
    pub async fn image(&self, name: &str) -> Result<Option<ImageFacts>, Trouble> {
        let image = match self.ask(self.docker.inspect_image(name)).await {
            Ok(image) => image,
            Err(trouble) if trouble.is_absent() => return Ok(None),
            Err(trouble) => return Err(trouble),
        };
        let config = image.config.unwrap_or_default();
        let test = config.healthcheck.and_then(|check| check.test).unwrap_or_default();
        Ok(Some(ImageFacts {
            id: image.id.unwrap_or_else(|| name.to_owned()),
            os: image.os.unwrap_or_default(),
            architecture: image.architecture.unwrap_or_default(),
            entrypoint: config.entrypoint.unwrap_or_default(),
            command: config.cmd.unwrap_or_default(),
            ports: config.exposed_ports.unwrap_or_default().iter().filter_map(|port| tcp_port(port)).collect(),
            has_health_check: test.first().is_some_and(|first| first != "NONE"),
        }))
    }

    /// Takes as long as it takes.
    pub async fn pull(&self, image: &ImageReference, platform: &str, login: Option<Login>) -> Result<(), Trouble> {
        let (name, version) = image.to_pull();
        let options = CreateImageOptionsBuilder::default().from_image(&name).tag(&version).platform(platform).build();
        let credentials = login.map(|login| DockerCredentials {
            username: Some(login.username),
            password: Some(login.password),
            identitytoken: login.identity_token,
            serveraddress: Some(image.registry.clone()),
            ..DockerCredentials::default()
        });
        let mut progress = self.docker.create_image(Some(options), None, credentials);
        while let Some(step) = progress.next().await {
            step.map_err(|error| Trouble::of(error, self.timeout))?;
        }
        Ok(())
    }
}
