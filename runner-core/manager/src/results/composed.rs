//! What a result is made of when a job has ended.

use super::payload::without_secrets;
use super::store::{Named, name};
use bytes::Bytes;
use ci_proto::results::head::{Job, Runner};
use ci_proto::results::{Head, KeptResult};
use runner_control::id::JobId;
use runner_control::report::Report;
use std::io;
use std::path::PathBuf;
use step_model::time::Timestamp;

/// A job that has ended, as its source knows it.
#[derive(Debug, Clone)]
pub struct Ended {
    pub job: JobId,
    /// The address that its server is asked at.
    pub server: String,
    /// As the server sent it.
    pub payload: Bytes,
    /// As the server is told.
    pub report: Report,
    /// `script_failure`. Empty: it succeeded.
    pub reason: String,
    pub runner: Runner,
    pub received: Timestamp,
    pub ended: Timestamp,
    /// A serialized `proto.StepResult`. It may not be there: nothing ran, or the environment was lost.
    pub tree: PathBuf,
}

impl Ended {
    /// The same for the same job, whichever process says so.
    pub(super) fn name(&self) -> Named {
        let JobId { runner, number } = &self.job;
        Named { file: name(runner.as_str(), *number), id: format!("{runner}/{number}@{}", self.received.nanoseconds()) }
    }

    /// # Errors
    /// The tree is there and cannot be read.
    pub(super) fn compose(self) -> io::Result<KeptResult> {
        let tree = match std::fs::read(&self.tree) {
            Ok(tree) => tree,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(fault) => return Err(fault),
        };
        let id = self.name().id;
        let head = Head {
            id,
            job: Some(self.job()),
            runner: Some(self.runner),
            state: if self.report.failure.is_none() { "success" } else { "failed" }.to_owned(),
            failure_reason: self.reason,
            exit_code: self.report.exit_code,
            message: self.report.message.unwrap_or_default(),
            received: Some(message_of(self.received)),
            ended: Some(message_of(self.ended)),
            tree_bytes: tree.len() as u64,
        };
        let payload = without_secrets(&self.payload).unwrap_or_default();
        Ok(KeptResult { head: Some(head), tree: tree.into(), payload })
    }

    fn job(&self) -> Job {
        let payload: serde_json::Value = serde_json::from_slice(&self.payload).unwrap_or_default();
        let info = &payload["job_info"];
        let text = |name: &str| info[name].as_str().unwrap_or_default().to_owned();
        let project = Some(text("project_full_path")).filter(|path| !path.is_empty()).unwrap_or_else(|| text("project_name"));
        Job {
            server: self.server.clone(),
            number: self.job.number,
            name: text("name"),
            project,
            pipeline: info["pipeline_id"].as_u64().unwrap_or(0),
        }
    }
}

fn message_of(time: Timestamp) -> prost_types::Timestamp {
    let (seconds, nanos) = (time.nanoseconds().div_euclid(1_000_000_000), time.nanoseconds().rem_euclid(1_000_000_000));
    prost_types::Timestamp { seconds, nanos: i32::try_from(nanos).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_control::id::RunnerId;
    use runner_control::report::FailureReason;

    fn ended(tree: PathBuf) -> Ended {
        Ended {
            job: JobId::new(&RunnerId::new("https://gitlab.example#1"), 7),
            server: "https://gitlab.example".to_owned(),
            payload: Bytes::from_static(
                br#"{"id": 7, "token": "secret-token", "job_info": {"name": "build", "project_full_path": "a/b", "pipeline_id": 3}}"#,
            ),
            report: Report { exit_code: 2, ..Report::failed(FailureReason::ScriptFailure) },
            reason: "script_failure".to_owned(),
            runner: Runner::default(),
            received: Timestamp::from_nanoseconds(1_500_000_000),
            ended: Timestamp::from_nanoseconds(2_000_000_000),
            tree,
        }
    }

    #[test]
    fn a_result_says_what_it_is_of_and_how_it_ended() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("result");
        std::fs::write(&path, "tree").expect("written");
        let kept = ended(path).compose().expect("a result");
        let head = kept.head.expect("a head");
        let job = head.job.expect("a job");
        assert_eq!((job.name.as_str(), job.project.as_str(), job.pipeline, job.number), ("build", "a/b", 3, 7));
        assert_eq!(
            (head.state.as_str(), head.failure_reason.as_str(), head.exit_code, head.tree_bytes),
            ("failed", "script_failure", 2, 4)
        );
        assert_eq!(head.received, Some(prost_types::Timestamp { seconds: 1, nanos: 500_000_000 }));
        assert_eq!(head.id, "https://gitlab.example#1/7@1500000000");
        assert!(!kept.payload.contains("secret-token"), "{}", kept.payload);
    }

    #[test]
    fn a_job_whose_environment_was_lost_has_a_result_without_a_tree() {
        let kept = ended("/nowhere/result".into()).compose().expect("a result");
        assert_eq!((kept.tree.len(), kept.head.expect("a head").tree_bytes), (0, 0));
    }
}
