//! GitLab as a runner sees it: the API client, the trace, the job as it was received.
//!
//! What decides is pure and gets time as an argument: what an answer means ([`answer`]), whether a call is made again ([`retry`], [`redirect`]), what
//! is sent of a trace and when ([`trace`]), when a token is renewed ([`rotation`]). Around it the [`client`] makes calls.

mod address;
pub mod answer;
pub mod cell;
pub mod client;
mod environment_key;
mod info;
pub mod job;
pub mod reason;
pub mod redirect;
pub mod request;
pub mod retry;
pub mod rotation;
pub mod session_address;
mod system_id;
mod token;
pub mod trace;

pub use address::{BadServerUrl, ServerUrl};
pub use client::{Client, ClientSettings, JobAccess, Poll};
pub use environment_key::{EnvironmentKey, NotAnEnvironmentKey};
pub use info::{Features, InfoConfig, RunnerInfo};
pub use job::{JobFacts, ReceivedJob};
pub use request::{Finished, JobState, Session, TraceDigest, Update};
pub use system_id::SystemId;
pub use token::Token;
