//! The engine, asked: the only module that knows bollard, with [`crate::trouble`]. Every method is one question and decides nothing.
//!
//! Paths are sent without a version, so the engine answers with its own: nothing later than API 1.41 is asked for, so that engines from
//! Docker 20.10 on understand it, and podman.

mod archive;
mod attached;
mod container;
mod images;
mod made;
mod tunnel;
mod volumes;

pub use archive::{Sent, WorkspaceFault};
pub use attached::Attached;
pub use container::{Ended, Running};
pub use made::{Kind, Made};

use crate::address::Address;
use crate::trouble::Trouble;
use bollard::errors::Error as EngineError;
use bollard::{API_DEFAULT_VERSION, Docker};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use step_sdk::Failure;

/// Our own clock says when an engine hangs, and not the client's: a pull may take long.
const CLIENT_TIMEOUT: u64 = 24 * 3600;

/// An engine that is at an address. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Engine {
    docker: Docker,
    address: Address,
    timeout: Duration,
    /// Kept as long as the engine is used.
    _tunnel: Option<Arc<tunnel::Tunnel>>,
}

impl Engine {
    /// Nothing is sent yet, so an engine that is not there is found by the first question.
    /// # Errors
    /// The certificates cannot be read, or there is no way to such an address on this system.
    pub fn at(address: Address, timeout: Duration) -> Result<Self, Failure> {
        let mut tunnel = None;
        let docker = match &address {
            Address::Unix(path) => unix(&path.to_string_lossy()),
            Address::Pipe(name) => pipe(name),
            Address::Tcp { authority, certificates: None } => Docker::connect_with_http(authority, CLIENT_TIMEOUT, API_DEFAULT_VERSION),
            Address::Tcp { authority, certificates: Some(directory) } => {
                // The second time it is there already.
                let _ours_or_earlier = rustls::crypto::aws_lc_rs::default_provider().install_default();
                let file = |name: &str| directory.join(name);
                let (key, cert, ca) = (file("key.pem"), file("cert.pem"), file("ca.pem"));
                Docker::connect_with_ssl(authority, &key, &cert, &ca, CLIENT_TIMEOUT, API_DEFAULT_VERSION)
            }
            Address::Ssh { destination, port } => {
                let made = tunnel::Tunnel::new(destination, *port)
                    .map_err(|error| Failure::step(format!("could not open a way to the engine at {address}: {error}")))?;
                let socket = made.socket().to_string_lossy().into_owned();
                tunnel = Some(Arc::new(made));
                unix(&socket)
            }
        };
        match docker {
            Ok(docker) => Ok(Self { docker, address, timeout, _tunnel: tunnel }),
            Err(error) => Err(Trouble::of(error, timeout).while_doing("use the engine", &address)),
        }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// One question that is answered at once or not at all.
    async fn ask<T>(&self, question: impl Future<Output = Result<T, EngineError>>) -> Result<T, Trouble> {
        match tokio::time::timeout(self.timeout, question).await {
            Ok(answer) => answer.map_err(|error| Trouble::of(error, self.timeout)),
            Err(_) => Err(Trouble::Hangs { after: self.timeout }),
        }
    }

    /// Returns when the engine has died or hangs: asked again and again beside whatever else is done with it.
    pub async fn until_silent(&self) -> Trouble {
        loop {
            tokio::time::sleep(self.timeout / 3).await;
            if let Err(trouble) = self.ask(self.docker.ping()).await {
                return trouble;
            }
        }
    }

    /// Its processor, in Go's words: `amd64`. Empty: it does not say.
    /// # Errors
    /// It does not answer.
    pub async fn architecture(&self) -> Result<String, Trouble> {
        Ok(self.ask(self.docker.version()).await?.arch.unwrap_or_default())
    }
}

#[cfg(unix)]
fn unix(path: &str) -> Result<Docker, EngineError> {
    Docker::connect_with_unix(path, CLIENT_TIMEOUT, API_DEFAULT_VERSION)
}

#[cfg(not(unix))]
fn unix(path: &str) -> Result<Docker, EngineError> {
    Err(EngineError::UnsupportedURISchemeError { uri: path.to_owned() })
}

#[cfg(windows)]
fn pipe(name: &str) -> Result<Docker, EngineError> {
    Docker::connect_with_named_pipe(name, CLIENT_TIMEOUT, API_DEFAULT_VERSION)
}

#[cfg(not(windows))]
fn pipe(name: &str) -> Result<Docker, EngineError> {
    Err(EngineError::UnsupportedURISchemeError { uri: format!("npipe://{name}") })
}
