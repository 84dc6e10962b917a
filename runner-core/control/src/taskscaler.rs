//! Taskscaler: how many instances there should be at a moment, by GitLab's two published semantics (taskscaler's, which counts slots for jobs, and
//! docker+machine's, which counts machines), and which task gets which slot. A library of its own, for any kind of environment: it knows nothing of machines,
//! and `examples/desks.rs` scales something that is none.
//!
//! ```text
//!  schedule --last that matches--> policy --idle target--> required --+- throttle, back-off after failures --> grow by so many now
//!                                                                      '- idle longer than idle time --------> these may go
//! ```
//!
//! [`Taskscaler`] is the machine for whoever has tasks and instances and nothing else. The controller of this crate takes its parts, since its instances have
//! agents that must be reached and its tasks are jobs with lives of their own.

mod event;
mod line;
mod machine;
pub mod policy;
mod pool;
pub mod required;
pub mod scaler;
pub mod schedule;
pub mod throttle;

pub use event::{Effect, Event, NoCapacity, Settings};
pub use line::Owner;
pub use machine::Taskscaler;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
