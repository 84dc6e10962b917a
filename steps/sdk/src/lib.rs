//! What a step that is a program needs: typed inputs, outputs, clean-up, and handing steps over into an environment.
//!
//! The host starts the program and tells it in its environment where everything lies; [`Step::from_environment`] reads that once. The rest is
//! asked of the [`Step`]:
//!
//! ```no_run
//! use serde::Deserialize;
//! use step_sdk::{Failure, Step};
//!
//! #[derive(Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Inputs {
//!     greeting: String,
//!     times: Option<u32>,
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     step_sdk::end(greet())
//! }
//!
//! fn greet() -> Result<(), Failure> {
//!     let step = Step::from_environment();
//!     let inputs: Inputs = step.inputs()?;
//!     step_sdk::say(&inputs.greeting);
//!     step.output("times", f64::from(inputs.times.unwrap_or(1)))?;
//!     step.export("GREETED", "yes")
//! }
//! ```
//!
//! A step that takes steps makes an environment, and hands them over with [`Step::hand_over`]; docs/guide/delegating-step.md writes one.
//! docs/reference/step-programs.md is the contract in words; it is the same for a program in any language.

mod agent_binary;
mod cancellation;
mod delegating;
mod failure;
mod handover;
mod step;

pub use agent_binary::{agent_binary, agent_name};
pub use cancellation::Cancellation;
pub use delegating::delegating;
pub use failure::{Failure, FailureKind, end};
pub use handover::{DelegatedResult, Environment, HandoverFailure};
pub use step::Step;
pub use step_client::connect::ByteStream;

/// A line of the step's own in the log of the job.
pub fn say(line: &str) {
    use std::io::Write as _;
    // A log that nobody reads any more is no reason to stop: whoever closed it also sends a signal.
    let _unread = writeln!(std::io::stderr(), "{line}");
}
