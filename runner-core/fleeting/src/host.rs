//! The host's side: starts plugins, talks to them, and replaces those that fail.
//!
//! Whatever a plugin does, nothing else suffers: every call has an end, its output is read for ever and never waited for, its process group can be
//! killed, and one that dies, hangs or talks nonsense is started again after a while.

mod calls;
mod connection;
mod hosted;
mod locate;
mod output;
mod plugin;
mod process;
mod reflection;
mod vigil;

pub use hosted::Hosted;
pub use locate::{Locate, NotFound, locate};
pub use plugin::Plugin;
pub use process::StartFault;

use crate::instance_group::Texts;
use crate::records::Record;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a plugin is started and what it is given time for.
#[derive(Clone)]
pub struct Options {
    /// What the plugin is called in logs.
    pub name: String,
    /// Added to the host's environment, which plugins rely on for credentials.
    pub environment: Texts,
    /// The connection is encrypted, and each side knows the other. Plugins on the Go library can; GitLab's runner does not ask for it.
    pub tls: bool,
    /// Until the plugin says where it listens.
    pub start_limit: Duration,
    pub limits: Limits,
    /// Between being asked to end and being killed: what the Go library gives.
    pub grace: Duration,
    /// Takes the plugin's log.
    pub log: LogSink,
}

/// Where records of a plugin go.
pub type LogSink = Arc<dyn Fn(&str, &Record) + Send + Sync>;

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of the environment may be secrets.
        let environment: Vec<&String> = self.environment.keys().collect();
        let mut debug = formatter.debug_struct("Options");
        debug.field("name", &self.name).field("environment", &environment).field("tls", &self.tls).field("limits", &self.limits);
        debug.finish_non_exhaustive()
    }
}

impl Options {
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            environment: Texts::new(),
            tls: false,
            start_limit: Duration::from_secs(60),
            limits: Limits::default(),
            grace: Duration::from_secs(2),
            log: Arc::new(output::to_tracing),
        }
    }
}

/// How long each call may take. The Go host has no limits; what waits for a cloud needs minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub init: Duration,
    pub update: Duration,
    /// Some plugins wait until every machine runs.
    pub change: Duration,
    /// The password of a Windows machine takes ten minutes to appear.
    pub connect_info: Duration,
    pub heartbeat: Duration,
    /// Some plugins wait for ever.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Self {
            init: minutes(1),
            update: minutes(5),
            change: minutes(10),
            connect_info: minutes(11),
            heartbeat: minutes(1),
            shutdown: Duration::from_secs(30),
        }
    }
}
