//! Carries out what the engine decides: processes, files, logs, time. One job process, and the front that serves many.

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
