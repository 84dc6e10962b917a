//! What is kept of a job, before it is sealed: what the controller decides with, and what its source needs beside it.

use runner_control::record::Record;
use serde::{Deserialize, Serialize};

/// To be written.
#[derive(Debug, Serialize)]
pub struct KeptJob<'a> {
    pub record: &'a Record,
    /// Of the source; see [`crate::ports::Job::kept`].
    pub kept: &'a str,
}

/// As it was read.
#[derive(Debug, Deserialize)]
pub struct FoundJob {
    pub record: Record,
    pub kept: String,
}

impl KeptJob<'_> {
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl FoundJob {
    /// # Errors
    /// It was written by another version, in another form.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}
