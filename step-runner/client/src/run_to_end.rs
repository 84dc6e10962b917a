//! A job from its start to its end, as GitLab's client does it: Run, FollowLogs, Status, Close.

use crate::agent_client::AgentClient;
use crate::call::CallFailed;
use crate::job_status::JobStatus;
use bytes::Bytes;
use ci_proto::step_runner::RunRequest;
use std::io;

/// A job that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Its [`outcome`](JobStatus::outcome) says whether it succeeded.
    pub status: JobStatus,
    /// How many bytes of log came.
    pub log_bytes: u64,
}

/// Why the end of a job was not seen. The job itself may go on: ask for its status, or close it.
#[derive(Debug, thiserror::Error)]
pub enum NotRunToEnd {
    #[error(transparent)]
    Call(#[from] CallFailed),
    /// Whoever takes the log takes no more.
    #[error("following logs for job {id:?}: streaming logs: {cause}")]
    LogNotTaken { id: String, cause: io::Error },
}

impl AgentClient {
    /// Runs a job, gives its log to `log` as it comes, and returns when the job is over, has been asked for its status and was closed. Survives
    /// lost connections and agents that are replaced. To end the job early, `cancel` it from a clone of this client.
    /// # Errors
    /// The request is refused, the agent does not come back, or `log` fails. How the job ended is no error: see [`JobStatus::outcome`].
    pub async fn run_to_end(&self, request: RunRequest, log: impl FnMut(Bytes) -> io::Result<()>) -> Result<Ended, NotRunToEnd> {
        let id = request.id.clone();
        self.run(request).await?;
        let ended = self.follow_to_end(&id, 0, log).await?;
        // As GitLab's client: that a job could not be forgotten does not change how it ended.
        let _ = self.close(&id).await;
        Ok(ended)
    }

    /// Gives the log of a job from `offset` on to `log`, and returns when the job is over. It is not closed.
    /// # Errors
    /// As for [`AgentClient::run_to_end`].
    pub async fn follow_to_end(&self, id: &str, offset: u64, mut log: impl FnMut(Bytes) -> io::Result<()>) -> Result<Ended, NotRunToEnd> {
        let mut stream = self.follow(id, offset);
        let mut retry = self.retry();
        loop {
            let before = stream.offset();
            while let Some(bytes) = stream.next().await? {
                log(bytes).map_err(|cause| NotRunToEnd::LogNotTaken { id: id.to_owned(), cause })?;
            }
            let status = self.status(id).await?;
            let log_bytes = stream.offset() - offset;
            if status.is_over() {
                return Ok(Ended { status, log_bytes });
            }
            // The log of a front that leaves its jobs to the next one ends before they do.
            if stream.offset() > before {
                retry.has_worked();
            }
            if !self.pause(&mut retry).await {
                return Ok(Ended { status, log_bytes });
            }
            stream.reopen();
        }
    }
}
