//! A log, followed to its end whatever happens to the connection.

use crate::agent_client::AgentClient;
use crate::call::CallFailed;
use crate::retry::Retry;
use crate::service::failure;
use bytes::Bytes;
use ci_proto::step_runner::{FollowLogsRequest, FollowLogsResponse};

/// The log of one job. Dropped, it lets the agent know that nobody follows any more.
///
/// What it gives is what the agent sends: raw, or stamped line by line; the offset counts these bytes.
#[derive(Debug)]
pub struct LogStream {
    agent: AgentClient,
    id: String,
    offset: u64,
    stream: Option<tonic::Streaming<FollowLogsResponse>>,
    retry: Retry,
    /// It was connected once: an agent that is gone now may come back.
    was_connected: bool,
}

impl LogStream {
    pub(crate) fn new(agent: AgentClient, id: String, offset: u64) -> Self {
        let retry = agent.retry();
        Self { agent, id, offset, stream: None, retry, was_connected: false }
    }

    /// The next bytes; `None`: the log has ended, and so has the job. May be dropped and called again without losing any.
    /// # Errors
    /// There is no such job, or the agent did not come back in time. Called again, it tries again.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallFailed> {
        loop {
            let failed = match self.attempt().await {
                Ok(Some(bytes)) if bytes.is_empty() => continue,
                Ok(bytes) => return Ok(bytes),
                Err(failed) => failed,
            };
            self.stream = None;
            self.was_connected |= self.agent.has_lost(&failed);
            if !(self.was_connected && failed.may_pass() && self.agent.pause(&mut self.retry).await) {
                return Err(failed);
            }
        }
    }

    async fn attempt(&mut self) -> Result<Option<Bytes>, CallFailed> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let offset = i64::try_from(self.offset).unwrap_or(i64::MAX);
                let request = FollowLogsRequest { id: self.id.clone(), offset };
                let response = self.agent.service.jobs.clone().follow_logs(request).await;
                let response = self.agent.noted("FollowLogs", response)?;
                self.was_connected = true;
                self.stream.insert(response.into_inner())
            }
        };
        let message = stream.message().await.map_err(|status| failure("FollowLogs", &status))?;
        let Some(message) = message else { return Ok(None) };
        self.retry.has_worked();
        self.offset += message.data.len() as u64;
        Ok(Some(message.data))
    }

    /// Where the next byte stands in the log.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Begins again at the offset, after the end: the log of a job that turned out not to be over may have grown.
    pub(crate) fn reopen(&mut self) {
        self.stream = None;
    }
}
