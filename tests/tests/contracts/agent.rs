//! What a client may rely on, whatever agent answers. The fake and the real one pass the same suite.

use super::fake_agent::FakeAgent;
use ci_proto::step_runner::RunRequest;
use step_client::{AgentClient, CallFailed};
use step_model::result::{FailureKind, Status};

/// A job of one script.
pub fn script(id: &str, script: &str) -> RunRequest {
    let steps = format!("{{}}\n---\nrun: [{{name: t, script: \"{script}\"}}]\n");
    RunRequest { id: id.into(), steps, ..RunRequest::default() }
}

/// The log from `offset` on, to its end.
pub async fn log_of(agent: &AgentClient, id: &str, offset: u64) -> Result<String, CallFailed> {
    let (mut log, mut stream) = (Vec::new(), agent.follow(id, offset));
    while let Some(bytes) = stream.next().await? {
        log.extend_from_slice(&bytes);
    }
    assert_eq!(stream.offset(), offset + log.len() as u64);
    Ok(String::from_utf8(log).expect("text"))
}

/// Everything in this suite holds for GitLab's agent of v0.44 as well.
pub async fn keeps_the_contract(agent: &AgentClient) {
    a_job_runs_to_its_end(agent).await;
    a_failure_says_why(agent).await;
    an_id_starts_one_job(agent).await;
    an_unknown_job_is_said_and_closed_in_peace(agent).await;
    a_cancelled_job_ends_its_log(agent).await;
    a_refused_request_leaves_no_job(agent).await;
}

async fn a_job_runs_to_its_end(agent: &AgentClient) {
    agent.run(script("whole", "echo one; echo two")).await.expect("it is taken");
    let log = log_of(agent, "whole", 0).await.expect("a log");
    assert!(log.contains("Running step name=t") && log.contains("one\n") && log.contains("two\n"), "{log}");
    assert_eq!(log_of(agent, "whole", 5).await.expect("a log"), log[5..], "the same bytes from an offset");
    assert_eq!(log_of(agent, "whole", 1 << 40).await.expect("a log"), "", "nothing from beyond the end");
    let status = agent.status("whole").await.expect("it is known");
    assert_eq!((status.status, status.message.as_str(), status.kind), (Status::Success, "", None));
    assert!(status.start <= status.end && status.end.is_some(), "{status:?}");
    assert!(status.is_over() && status.outcome().into_result().is_ok());
    agent.close("whole").await.expect("it is closed");
    assert!(agent.status("whole").await.expect_err("it is forgotten").is_unknown_job());
}

async fn a_failure_says_why(agent: &AgentClient) {
    let ended = agent.run_to_end(script("bad", "echo last; exit 7"), |_| Ok(())).await.expect("it ends");
    let failure = ended.status.outcome().into_result().expect_err("a failure");
    assert_eq!((failure.status, failure.kind, failure.exit_code), (Status::Failure, Some(FailureKind::StepFailure), Some(7)));
    assert_eq!(failure.to_string(), "step \"t\": exec: exit status 7");
    assert!(ended.log_bytes > 0);
    assert!(agent.status("bad").await.expect_err("it was closed").is_unknown_job());
}

async fn an_id_starts_one_job(agent: &AgentClient) {
    agent.run(script("twice", "echo first")).await.expect("it is taken");
    agent.run(script("twice", "echo second")).await.expect("the second changes nothing");
    let log = log_of(agent, "twice", 0).await.expect("a log");
    assert!(log.contains("first") && !log.contains("second"), "{log}");
    assert_eq!(agent.jobs().await.expect("a list").iter().filter(|job| job.id == "twice").count(), 1);
    agent.close("twice").await.expect("it is closed");
}

async fn an_unknown_job_is_said_and_closed_in_peace(agent: &AgentClient) {
    let said = agent.status("nobody").await.expect_err("there is none");
    assert_eq!(said.to_string(), "no job with id \"nobody\"");
    assert!(said.is_unknown_job());
    assert!(log_of(agent, "nobody", 0).await.expect_err("there is none").is_unknown_job());
    agent.close("nobody").await.expect("nothing to do");
}

async fn a_cancelled_job_ends_its_log(agent: &AgentClient) {
    agent.run(script("long", "echo ready; sleep 1000")).await.expect("it is taken");
    let mut stream = agent.follow("long", 0);
    let mut log = Vec::new();
    while !String::from_utf8_lossy(&log).contains("ready\n") {
        log.extend(stream.next().await.expect("more").expect("it does not end yet"));
    }
    agent.cancel("long").await.expect("it is asked");
    while stream.next().await.expect("it ends in order").is_some() {}
    let status = agent.status("long").await.expect("it is known");
    assert_eq!((status.status, status.kind), (Status::Cancelled, Some(FailureKind::Cancelled)), "{status:?}");
    assert!(status.message.starts_with("job \"long\" cancelled: "), "{}", status.message);
    agent.close("long").await.expect("it is closed");
}

async fn a_refused_request_leaves_no_job(agent: &AgentClient) {
    let empty = RunRequest { id: "empty".into(), ..RunRequest::default() };
    let refused = agent.run(empty).await.expect_err("there are no steps");
    assert!(matches!(&refused, CallFailed::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().starts_with("loading step: reading steps \"\""), "{refused}");
    assert!(agent.status("empty").await.expect_err("there is none").is_unknown_job());
}

#[tokio::test]
async fn the_fake_agent_keeps_the_contract() {
    keeps_the_contract(&AgentClient::new(FakeAgent::default())).await;
}
