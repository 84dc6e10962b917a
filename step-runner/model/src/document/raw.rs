//! The YAML as it was written, both dialects, read into a document with every problem at once.

use super::{Dialect, Step, StepDocument};
use crate::diagnostic::Problem;
use std::sync::Arc;

/// A document as far as it could be read, and all of its problems. There is no document where a problem is an error.
#[derive(Debug, Clone)]
pub struct Reading {
    pub document: Option<Arc<StepDocument>>,
    pub problems: Vec<Problem>,
}

/// Reads a definition file: two YAML documents. The file's name decides the dialect, with the rule of agent.md 0.1.
pub fn read(_text: &str, _file_name: &str) -> Reading {
    todo!()
}

/// Reads the list of a job-level `run:` (JSON or YAML).
pub fn read_steps(_text: &str, _dialect: Option<Dialect>) -> (Vec<Step>, Vec<Problem>) {
    todo!()
}
