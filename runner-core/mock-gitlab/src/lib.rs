//! A GitLab server for tests and demonstrations, with scenarios.
//!
//! A [`World`](world::World) is the server as values: requests and time go in, answers come out, and it remembers what runners did. A [`Server`]
//! puts it behind a socket. A [`Scenario`](scenario::Scenario) says which jobs come, and what goes wrong. It shares no code with the client that
//! it judges: what the API is stands here a second time, on purpose.

pub mod checker;
pub mod message;
pub mod payload;
pub mod record;
pub mod scenario;
mod server;
mod tls;
pub mod world;

pub use checker::{Fault, Report, Violation};
pub use scenario::{BadScenario, Burst, Scenario};
pub use server::Server;
pub use tls::Certificates;
pub use world::{Job, JobKey, Stage};
