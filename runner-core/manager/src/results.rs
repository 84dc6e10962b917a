//! The results of jobs: what ran, with which parameters, and how it ended. Each is kept here for `runner-core result` and `runner-core payload`, and
//! given to the results service where the configuration names one.
//!
//! ```text
//! a job ends --keep--> results/RUNNER~JOB.result --deliver--> service      the mark in results/unsent goes when the service has answered
//!                        '--- too old, too many, too large: removed, the oldest first; one that nobody took is told
//! ```
//!
//! A result has a name that is the same however often it is sent, and is marked as unsent before it is there: a runner that is killed at any
//! moment sends it, and the service knows one that it has.

mod artifact;
mod composed;
mod delivery;
mod opened;
mod payload;
mod reading;
mod shelf;
mod store;

pub use composed::Ended;
pub use reading::{PayloadArguments, ResultArguments, payload, result};

use delivery::Delivery;
use runner_config::settings::Results as Settings;
use runner_gitlab::client::Artifact;
use shelf::Limits;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use step_console::given::words;
use store::Store;
use tokio::task::JoinHandle;

/// The directory in the state.
pub const DIRECTORY: &str = "results";

/// How long a runner that ends waits for results that are on their way.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// The results of one runner process.
#[derive(Debug)]
pub struct Results {
    store: Arc<Store>,
    delivery: Option<(Delivery, JoinHandle<()>)>,
    is_artifact: bool,
}

impl Results {
    /// Begins to send what another process left, where there is a service. Needs a runtime.
    /// # Errors
    /// The directory cannot be used, or the service cannot be one.
    pub fn open(state: &Path, settings: &Settings) -> Result<Self, String> {
        let limits = Limits { age: settings.keep_for, count: settings.keep_count, bytes: settings.keep_bytes };
        let store = Store::open(&state.join(DIRECTORY), limits);
        let store = Arc::new(store.map_err(|fault| format!("the results of jobs cannot be kept: {}", words(&fault)))?);
        let delivery = settings.address.as_deref().map(|address| Delivery::new(address, settings, store.clone())).transpose()?;
        let delivery = delivery.map(|delivery| {
            let running = tokio::spawn(delivery.clone().run());
            (delivery, running)
        });
        Ok(Self { store, is_artifact: settings.is_artifact && delivery.is_none(), delivery })
    }

    /// Keeps the result of a job that has ended. One that is kept already stays as it is.
    /// # Errors
    /// The disk is full, for example.
    pub async fn keep(&self, ended: Ended) -> io::Result<()> {
        let (store, is_unsent) = (self.store.clone(), self.delivery.is_some());
        // Reads, writes and waits for the disk: not where the loop is.
        let is_new = tokio::task::spawn_blocking(move || store.put(&ended.name(), || ended.compose(), is_unsent)).await;
        if is_new.map_err(io::Error::other)?? {
            self.delivery.iter().for_each(|(delivery, _)| delivery.wake());
        }
        Ok(())
    }

    /// Whether results become artifacts: the configuration wants that, and there is no service.
    pub fn is_artifact(&self) -> bool {
        self.is_artifact
    }

    /// The result of a job as an artifact of it. `None`: there is no tree.
    /// # Errors
    /// It is not kept, or cannot be read.
    pub async fn artifact(&self, ended: &Ended) -> io::Result<Option<Artifact>> {
        let (store, name) = (self.store.clone(), ended.name());
        tokio::task::spawn_blocking(move || artifact::of(&store.find(&name)?)).await.map_err(io::Error::other)?
    }

    /// What has not been taken by the service yet. Zero without one.
    pub fn unsent(&self) -> usize {
        self.store.unsent().len()
    }

    /// Waits a moment for what is on its way. What is not taken then, the next process sends.
    pub async fn finish(&self) {
        let Some((delivery, running)) = &self.delivery else { return };
        let _ = tokio::time::timeout(LAST_MOMENT, delivery.until_idle()).await;
        running.abort();
        match self.unsent() {
            0 => {}
            unsent => tracing::warn!(unsent, "results of jobs were not taken by the service: the next run sends them"),
        }
    }
}
