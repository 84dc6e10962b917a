//! Both sides of the plug: hosts fleeting plugins, and serves them.
//!
//! ```text
//! manager --> InstanceGroup --> Hosted --> Plugin == gRPC on a socket ==> serve --> InstanceGroup (yours)
//!             (the trait)       restarts   one process
//! ```
//!
//! A plugin is an implementation of [`InstanceGroup`], and whoever uses one sees the same trait, whether the plugin runs in this process or
//! in one of its own, in Rust or in Go. Types of the gRPC library do not leave this crate.
//!
//! Sources: "observed F.n" is a section of what public programs, GitLab's and the Go library, were seen to do; docs/reference/fleeting.md has what

mod certificate;
pub mod config;
pub mod conformance;
pub mod contract;
pub mod fake;
mod handshake;
mod host;
mod instance_group;
mod records;
mod serve;
mod stream;
mod wire;

pub use host::{Hosted, Limits, Locate, NotFound, Options, Plugin, StartFault, locate};
pub use instance_group::{
    Answer, Change, Changed, ConnectInfo, ConnectorConfig, Failure, Health, Instance, InstanceGroup, InstanceId, ProviderInfo, Secret,
    Settings, State, protocol,
};
pub use records::{Level, Record};
pub use serve::{About, platform, serve};
