//! Carries out what the engine decides: processes, files, logs, time. One job process.

pub mod job_process;
