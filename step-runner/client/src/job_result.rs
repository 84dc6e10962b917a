//! The result tree of a job, fetched in chunks. A lost connection costs nothing that has arrived.

use crate::agent_client::AgentClient;
use crate::call::{CallFailed, Code};
use crate::service::failure;
use crate::wire::result::{OwnedTree, Unreadable, read_message};
use ci_proto::agent::ResultRequest;

/// A result tree as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobResult {
    /// A serialized `proto.StepResult`.
    pub message: Vec<u8>,
    /// Counts the states of the tree while the job runs.
    pub revision: u64,
    /// The job is over: there will be no other revision.
    pub is_final: bool,
}

impl JobResult {
    /// # Errors
    /// The bytes are no result: the agent is a stranger.
    pub fn tree(&self) -> Result<OwnedTree, Unreadable> {
        read_message(&self.message)
    }
}

/// Where to go on: the pure part.
#[derive(Debug, Default)]
struct Collected {
    result: JobResult,
    /// How often the tree has changed under our feet.
    changes: u32,
}

/// A tree that changes faster than it can be fetched is given up: five times in a row nobody is that slow.
const MOST_CHANGES: u32 = 5;

impl Collected {
    fn request(&self, id: &str) -> ResultRequest {
        let offset = i64::try_from(self.result.message.len()).unwrap_or(i64::MAX);
        let revision = if offset == 0 { 0 } else { self.result.revision };
        ResultRequest { id: id.to_owned(), offset, revision }
    }

    fn add(&mut self, data: &[u8], revision: u64, is_final: bool) {
        self.result.message.extend_from_slice(data);
        self.result.revision = revision;
        self.result.is_final = is_final;
    }

    /// Whether to begin again: the revision is gone.
    fn begin_again(&mut self, failed: &CallFailed) -> bool {
        let is_gone = matches!(failed, CallFailed::Refused { code: Code::Aborted, .. });
        self.changes += 1;
        if is_gone && self.changes < MOST_CHANGES {
            self.result = JobResult::default();
            return true;
        }
        false
    }
}

pub async fn fetch(agent: &AgentClient, id: &str) -> Result<JobResult, CallFailed> {
    let (mut collected, mut retry, mut was_lost) = (Collected::default(), agent.retry(), false);
    loop {
        let before = collected.result.message.len();
        let Err(failed) = attempt(agent, id, &mut collected).await else { return Ok(collected.result) };
        if collected.result.message.len() > before {
            retry.has_worked();
        }
        was_lost |= agent.has_lost(&failed);
        if collected.begin_again(&failed) {
            continue;
        }
        if !(was_lost && failed.may_pass() && agent.pause(&mut retry).await) {
            return Err(failed);
        }
    }
}

async fn attempt(agent: &AgentClient, id: &str, collected: &mut Collected) -> Result<(), CallFailed> {
    let failed = |status: tonic::Status| failure("Result", &status);
    let response = agent.service.agent.clone().result(collected.request(id)).await;
    let mut chunks = agent.noted("Result", response)?.into_inner();
    while let Some(chunk) = chunks.message().await.map_err(failed)? {
        collected.add(&chunk.data, chunk.revision, chunk.r#final);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_goes_on_at_the_right_byte_of_the_same_revision() {
        let mut collected = Collected::default();
        assert_eq!(collected.request("7"), ResultRequest { id: "7".into(), offset: 0, revision: 0 });
        collected.add(b"abc", 4, false);
        assert_eq!(collected.request("7"), ResultRequest { id: "7".into(), offset: 3, revision: 4 });
    }

    #[test]
    fn a_revision_that_is_gone_is_fetched_anew_but_not_for_ever() {
        let gone = CallFailed::Refused { code: Code::Aborted, reason: None, message: "gone".into() };
        let mut collected = Collected::default();
        collected.add(b"abc", 4, false);
        assert!(collected.begin_again(&gone));
        assert_eq!(collected.request("7").offset, 0);
        assert_eq!((0..9).filter(|_| collected.begin_again(&gone)).count(), 3);
        let other = CallFailed::Refused { code: Code::Unknown, reason: None, message: "no job".into() };
        assert!(!Collected::default().begin_again(&other));
    }
}
