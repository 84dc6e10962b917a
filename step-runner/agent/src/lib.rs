//! Carries out what the engine decides: processes, files, logs, time. One job process.

pub mod definitions;
pub mod job_directory;
pub mod job_process;
pub mod static_program;
mod system;
mod system_error;
