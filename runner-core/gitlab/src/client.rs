//! Speaks to a server: makes calls, repeats them where an answer says so, and hands the answers to those who decide what they mean.
//!
//! One client for each server and set of TLS files; it is cheap to clone and lives as long as the process. The token goes into headers and, where
//! the API asks for that, into bodies: never into an address, a log or an error.

mod artifacts;
mod call;
mod connections;
mod jobs;
mod runners;
mod trust;

pub use artifacts::{Artifact, Uploaded};
pub use connections::{Proxy, TlsFiles};
pub use jobs::{JobAccess, Poll};
pub use trust::BadTls;

use crate::cell::{self, CellId};
use crate::retry::RetryPolicy;
use crate::{RunnerInfo, ServerUrl, SystemId, Token};
use connections::Connections;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How a server is spoken to.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    pub url: ServerUrl,
    /// Addresses of cells, where they are not reached by way of `url`.
    pub cells: BTreeMap<CellId, ServerUrl>,
    pub info: RunnerInfo,
    pub system_id: SystemId,
    pub tls: TlsFiles,
    pub proxy: Proxy,
    pub timeouts: Timeouts,
    pub retry: RetryPolicy,
    pub limits: Limits,
}

impl ClientSettings {
    /// With the numbers of GitLab's runner.
    pub fn new(url: ServerUrl, info: RunnerInfo, system_id: SystemId) -> Self {
        Self {
            url,
            cells: BTreeMap::new(),
            info,
            system_id,
            tls: TlsFiles::default(),
            proxy: Proxy::Environment,
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            limits: Limits::default(),
        }
    }
}

/// How long a server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect; also between the probes of an idle connection.
    pub connect: Duration,
    /// Until the head of the answer. A server holds a request for a job for up to a minute on purpose.
    pub answer: Duration,
    /// For all of one attempt.
    pub whole: Duration,
    /// An unused connection is closed after this time.
    pub idle: Duration,
    /// All connections are opened anew after this time, so that a server behind a changed name is found (`connection_max_age`).
    pub connection_age: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            answer: Duration::from_secs(10 * 60),
            whole: Duration::from_secs(60 * 60),
            idle: Duration::from_secs(90),
            connection_age: Duration::from_secs(15 * 60),
        }
    }
}

/// How much a server may answer, in bytes. What is longer is an error: memory is bounded whatever stands behind an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A job; variables of 10 MB have been seen.
    pub job: usize,
    pub other: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { job: 64 << 20, other: 1 << 20 }
    }
}

/// Hears of every answer, for metrics.
pub trait Watch: Send + Sync {
    /// `status` is `None` where there was no answer.
    fn answered(&self, endpoint: Endpoint, status: Option<u16>, took: Duration);
    fn retried(&self, endpoint: Endpoint);
}

/// Which call it is, by the names of GitLab's metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    RequestJob,
    UpdateJob,
    PatchTrace,
    RegisterRunner,
    VerifyRunner,
    UnregisterRunner,
    UnregisterRunnerManager,
    ResetToken,
    CreateRunner,
    UploadArtifacts,
}

impl Endpoint {
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestJob => "request_job",
            Self::UpdateJob => "update_job",
            Self::PatchTrace => "patch_trace",
            Self::RegisterRunner => "register_runner",
            Self::VerifyRunner => "verify_runner",
            Self::UnregisterRunner => "unregister_runner",
            Self::UnregisterRunnerManager => "unregister_runner_manager",
            Self::ResetToken => "reset_token",
            Self::CreateRunner => "create_runner",
            Self::UploadArtifacts => "upload_artifacts",
        }
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn answered(&self, _: Endpoint, _: Option<u16>, _: Duration) {}
    fn retried(&self, _: Endpoint) {}
}

#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    settings: ClientSettings,
    connections: Connections,
    /// The last `X-GitLab-Last-Update` of an address and a token: the server holds the next request until there is something newer.
    tickets: Mutex<BTreeMap<(ServerUrl, Token), String>>,
    watch: Arc<dyn Watch>,
}

impl Client {
    pub fn new(settings: ClientSettings, watch: Arc<dyn Watch>) -> Self {
        let connections = Connections::new(&settings);
        Self { inner: Arc::new(Inner { settings, connections, tickets: Mutex::default(), watch }) }
    }

    pub fn settings(&self) -> &ClientSettings {
        &self.inner.settings
    }

    /// Where calls with this token go.
    fn address(&self, token: &Token) -> &ServerUrl {
        cell::address(token, &self.inner.settings.cells, &self.inner.settings.url)
    }

    fn ticket(&self, address: &ServerUrl, token: &Token) -> Option<String> {
        let tickets = self.inner.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.get(&(address.clone(), token.clone())).cloned()
    }

    fn keep_ticket(&self, address: &ServerUrl, token: &Token, ticket: &str) {
        let mut tickets = self.inner.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.insert((address.clone(), token.clone()), ticket.to_owned());
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.inner.settings.url)
    }
}
