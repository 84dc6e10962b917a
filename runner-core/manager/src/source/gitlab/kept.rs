//! What another process needs to go on with a job of GitLab: its payload, which holds its token, and what the runner gave it.

use crate::source::slots::Slot;
use bytes::Bytes;
use runner_gitlab::ReceivedJob;
use serde::{Deserialize, Serialize};
use step_model::time::Timestamp;

/// As JSON, before it is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    payload: String,
    pub slot: Slot,
    /// When the job was received: the first line of its trace says so, and says the same whoever writes it.
    began: i64,
}

/// Why it cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    #[error("it is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Job(#[from] runner_gitlab::job::NotAJob),
}

impl Kept {
    pub fn of(received: &ReceivedJob, slot: Slot, began: Timestamp) -> Self {
        Self { payload: String::from_utf8_lossy(&received.payload).into_owned(), slot, began: began.nanoseconds() }
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// # Errors
    /// Another version wrote it.
    pub fn read(text: &str) -> Result<Self, NotKept> {
        Ok(serde_json::from_str(text)?)
    }

    pub fn began(&self) -> Timestamp {
        Timestamp::from_nanoseconds(self.began)
    }

    /// # Errors
    /// The payload is damaged.
    pub fn received(&self) -> Result<ReceivedJob, NotKept> {
        let payload = serde_json::from_str(&self.payload)?;
        Ok(ReceivedJob::read(&payload, Bytes::from(self.payload.clone()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_comes_back_as_it_was_received() {
        let payload = r#"{"id": 7, "token": "job-token", "job_info": {"name": "x"}}"#;
        let received = ReceivedJob::read(&serde_json::from_str(payload).expect("JSON"), Bytes::from(payload)).expect("a job");
        let kept = Kept::of(&received, Slot { of_runner: 1, of_project: 2 }, Timestamp::from_nanoseconds(5));
        let again = Kept::read(&kept.to_text()).expect("kept");
        assert_eq!((again.received().expect("a job"), again.slot, again.began().nanoseconds()), (received, kept.slot, 5));
        assert!(Kept::read("{").is_err());
    }
}
