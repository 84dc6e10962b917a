//! Carries out what the engine decides: processes, files, logs, time. One job process, and the front that serves many.

mod around;
#[cfg(unix)]
pub mod bootstrap;
pub mod definitions;
#[cfg(unix)]
mod frame;
#[cfg(unix)]
pub mod front;
pub mod handover;
pub mod job_directory;
pub mod job_process;
mod limits;
pub mod process;
#[cfg(unix)]
mod served_directory;
pub mod static_program;
#[cfg(unix)]
mod summary;
pub mod surroundings;
mod system;
mod system_error;
pub mod variables;

/// To be called first in every program whose image starts steps: it may have been started to become a step with limits.
#[cfg(target_os = "linux")]
pub use system::confined::take_over;
