//! The client against an agent that loses connections, comes late, or is an old one.

use super::agent::{log_of, script};
use super::fake_agent::{FakeAgent, Faults};
use std::io;
use std::time::Duration;
use step_client::connect::Once;
use step_client::{AgentClient, CallFailed, NotRunToEnd};
use step_model::result::{ResultTree as _, Status, StepId};

fn client(agent: &FakeAgent) -> AgentClient {
    AgentClient::new(agent.clone())
}

#[tokio::test(start_paused = true)]
async fn api_43_a_run_that_is_asked_for_before_the_agent_is_there_waits_for_it() {
    let agent = FakeAgent::with(Faults { refused_connections: 5, ..Faults::default() });
    client(&agent).run(script("7", "echo x")).await.expect("it waits");
    assert_eq!(agent.calls(), ["Run 7"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_come_is_waited_for_as_long_as_was_said() {
    let agent = FakeAgent::with(Faults { refused_connections: usize::MAX, ..Faults::default() });
    let began = tokio::time::Instant::now();
    let failed = client(&agent).waiting(Duration::from_secs(9)).run(script("7", "echo x")).await.expect_err("nobody is there");
    assert_eq!(failed, CallFailed::NotConnected { kind: io::ErrorKind::ConnectionRefused, why: "connection refused".into() });
    assert_eq!(began.elapsed().as_secs(), 9);
    let began = tokio::time::Instant::now();
    assert!(client(&agent).status("7").await.is_err());
    assert_eq!(began.elapsed(), Duration::ZERO, "only a run waits");
}

#[tokio::test(start_paused = true)]
async fn a_log_survives_connections_that_break_and_loses_no_byte() {
    let agent = FakeAgent::with(Faults { log_bytes_per_connection: Some(7), ..Faults::default() });
    let client = client(&agent);
    client.run(script("7", "echo the quick brown fox; echo jumps")).await.expect("it is taken");
    assert_eq!(log_of(&client, "7", 0).await.expect("a log"), "Running step name=t\nthe quick brown fox\njumps\n");
    let follows: Vec<String> = agent.calls().into_iter().filter(|call| call.starts_with("FollowLogs")).collect();
    assert!(follows.len() > 4 && follows[1] == "FollowLogs 7 from 7", "{follows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_ends_before_its_job_is_followed_on() {
    let agent = FakeAgent::with(Faults { log_ends_early: Some(4), ..Faults::default() });
    let client = client(&agent);
    client.run(script("7", "sleep 1000")).await.expect("it is taken");
    let mut log = Vec::new();
    let ended = client.follow_to_end("7", 0, |bytes| {
        log.extend_from_slice(&bytes);
        if log.ends_with(b"=t\n") {
            agent.wake("7");
        }
        Ok(())
    });
    assert_eq!(ended.await.expect("it ends").status.status, Status::Success);
    assert_eq!(log, b"Running step name=t\n");
}

#[tokio::test]
async fn a_whole_run_calls_run_follow_logs_status_and_close_in_this_order() {
    let agent = FakeAgent::default();
    client(&agent).run_to_end(script("7", "echo x"), |_| Ok(())).await.expect("it ends");
    assert_eq!(agent.calls(), ["Run 7", "FollowLogs 7 from 0", "Status 7", "Close 7"]);
}

#[tokio::test]
async fn api_22_a_follower_whose_writer_fails_says_so_after_the_first_bytes() {
    let agent = FakeAgent::default();
    let (client, mut taken) = (client(&agent), 0);
    let failed = client.run_to_end(script("7", "echo x; sleep 1000"), |_| {
        taken += 1;
        Err(io::Error::other("the disk is full"))
    });
    let failed = failed.await.expect_err("the writer fails");
    assert_eq!(failed.to_string(), "following logs for job \"7\": streaming logs: the disk is full");
    assert!(matches!(failed, NotRunToEnd::LogNotTaken { .. }));
    assert_eq!(taken, 1);
}

#[tokio::test]
async fn api_32_a_follower_that_leaves_after_the_first_line_is_let_go_at_once() {
    let agent = FakeAgent::default();
    let client = client(&agent);
    client.run(script("7", "echo x; sleep 1000")).await.expect("it is taken");
    let mut stream = client.follow("7", 0);
    assert!(stream.next().await.expect("a first piece").is_some());
    agent.has_followers(1).await;
    drop(stream);
    agent.has_followers(0).await;
}

#[tokio::test]
async fn what_an_old_agent_cannot_do_is_named() {
    let agent = FakeAgent::with(Faults { is_old: true, ..Faults::default() });
    let client = client(&agent);
    client.run(script("7", "echo x; sleep 1000")).await.expect("it is taken");
    let missing = |method| Err(CallFailed::Missing { method });
    assert_eq!(client.cancel("7").await, missing("Cancel"));
    assert_eq!(client.result("7").await.map(drop), missing("Result"));
    assert_eq!(client.payload("7").await.map(drop), missing("Payload"));
    assert_eq!(client.inspect("7").await.map(drop), missing("Inspect"));
    assert_eq!(client.cancel("7").await.expect_err("missing").to_string(), "this agent cannot do that: it has no `Cancel`");
    client.close("7").await.expect("this it can");
}

#[tokio::test(start_paused = true)]
async fn a_result_is_fetched_on_after_a_break_and_anew_after_a_change() {
    let agent = FakeAgent::with(Faults { result_breaks: true, ..Faults::default() });
    let client = client(&agent);
    client.run(script("7", "exit 3")).await.expect("it is taken");
    let result = client.result("7").await.expect("a result");
    assert!(result.is_final);
    let root = result.tree().expect("a tree").node(StepId::ROOT);
    assert_eq!(root.status, Status::Failure);
    assert_eq!(agent.calls()[1..], ["Result 7 from 0 of 0", "Result 7 from 1 of 3"]);

    let agent = FakeAgent::with(Faults { result_changes: true, ..Faults::default() });
    let client = AgentClient::new(agent.clone());
    client.run(script("7", "exit 3")).await.expect("it is taken");
    assert_eq!(client.result("7").await.expect("a result"), result);
    assert_eq!(agent.calls()[1..], ["Result 7 from 0 of 0", "Result 7 from 0 of 0"]);
}

#[tokio::test]
async fn the_owner_record_comes_back_as_it_was_given() {
    let client = client(&FakeAgent::default());
    let record = b"\x00opaque\xff".to_vec();
    let request = ci_proto::step_runner::RunRequest { owner_record: record.clone(), ..script("7", "echo x") };
    client.run(request).await.expect("it is taken");
    assert_eq!(client.status("7").await.expect("it is known").owner_record, record);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_given_once_is_not_waited_for_when_it_has_ended() {
    let (ours, theirs) = tokio::io::duplex(1024);
    drop(theirs);
    let client = AgentClient::new(Once::new(ours, "a stream"));
    let failed = client.run(script("7", "echo x")).await.expect_err("it has ended");
    insta::assert_snapshot!(failed, @"could not reach the agent: the stream has ended, and there is no other");
    assert_eq!(client.place(), "a stream");
}

#[tokio::test(start_paused = true)]
async fn something_that_is_no_agent_is_said() {
    let (ours, mut theirs) = tokio::io::duplex(1024);
    tokio::spawn(async move {
        let _ = tokio::io::AsyncWriteExt::write_all(&mut theirs, b"Permission denied (publickey).\n").await;
    });
    let client = AgentClient::new(Once::new(ours, "a stream")).waiting(Duration::ZERO);
    let failed = client.run(script("7", "echo x")).await.expect_err("no agent");
    assert!(matches!(failed, CallFailed::Lost { .. }), "{failed:?}");
}
