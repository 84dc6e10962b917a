//! Everything that a program needs to have jobs run by an agent, here or elsewhere: a client of the API over any byte stream, run requests in,
//! logs and results out.
//!
//! ```no_run
//! use step_client::{AgentClient, RunRequest, connect::UnixSocket};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = AgentClient::new(UnixSocket::new("/tmp/step-runner.sock"));
//! let request = RunRequest {
//!     id: "42".into(),
//!     steps: "{}\n---\nrun: [{name: hello, script: echo hello}]\n".into(),
//!     ..RunRequest::default()
//! };
//! let ended = agent.run_to_end(request, |log| std::io::Write::write_all(&mut std::io::stdout(), &log)).await?;
//! println!("{:?}, exit code {:?}", ended.status.status, ended.status.exit_code);
//! ended.status.outcome().into_result()?;
//! # Ok(())
//! # }
//! ```
//!
//! The client works with agents of GitLab too, which have only the four methods of the first API: what such an agent cannot do is
//! [`CallFailed::Missing`], by name. It needs a runtime of tokio with IO and time; one thread is enough and best.

mod agent_client;
mod call;
pub mod connect;
mod follow;
mod job_result;
mod job_status;
pub mod logs;
mod retry;
mod run_to_end;
mod service;
pub mod wire;

pub use agent_client::{AgentClient, Payload};
pub use call::{CallFailed, Code};
/// What an agent is asked to run, as it travels.
pub use ci_proto::step_runner::RunRequest;
pub use follow::LogStream;
pub use job_result::JobResult;
pub use job_status::{JobFailure, JobStatus, Outcome, exit_code_at_the_end};
pub use run_to_end::{Ended, NotRunToEnd};
