//! What a process of a job needs, for hosts other than the job process: its command in the system's terms, and the two files of its step.

pub use crate::job_process::command::{Command, Places};
pub use crate::job_process::step_files::{prepare, remove, take};
