//! From the request for a job to its end.

use crate::{TOKEN, client, client_of, scenario, server, settings, token};
use bytes::Bytes;
use runner_gitlab::answer::{Accepted, Beat, PatchOutcome, Polled, UpdateOutcome};
use runner_gitlab::{Client, Finished, JobAccess, JobState, Token, TraceDigest, Update};
use runner_mock_gitlab::{JobKey, Server, Stage};

const JOB: JobKey = JobKey { cell: 1, id: 1 };

async fn take(client: &Client) -> JobAccess {
    client.request_job(&token(), None).await.access().expect("a job")
}

/// Takes and accepts one.
async fn begin(client: &Client) -> JobAccess {
    let job = take(client).await;
    assert_eq!(client.accept(&job).await, Accepted::Running);
    job
}

async fn patch(client: &Client, job: &JobAccess, first: u64, text: &str) -> PatchOutcome {
    client.patch_trace(job, first, Bytes::copy_from_slice(text.as_bytes()), false).await.outcome
}

fn end_of(trace: &str) -> Update {
    let digest = TraceDigest { bytes: trace.len() as u64, crc: crc32fast::hash(trace.as_bytes()) };
    Update { state: JobState::Finished(Finished::success()), trace: Some(digest) }
}

fn trace(server: &Server) -> String {
    server.look(|world| String::from_utf8_lossy(&world.jobs()[&JOB].trace).into_owned())
}

#[tokio::test]
async fn a_job_is_taken_accepted_followed_and_ended() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = begin(&client).await;
    assert_eq!(patch(&client, &job, 0, "hello\n").await, PatchOutcome::Accepted { end: 6 });
    let touched = client.update_job(&job, &Update { state: JobState::Running, trace: None }).await;
    assert_eq!((touched.outcome, touched.interval.map(|interval| interval.as_secs())), (UpdateOutcome::Succeeded, Some(3)));
    assert_eq!(client.update_job(&job, &end_of("hello\n")).await.outcome, UpdateOutcome::Succeeded);
    let report = server.report();
    assert!(report.is_clean(), "{report}");
    assert_eq!(trace(&server), "hello\n");
}

#[tokio::test]
async fn runner_15_a_ticket_is_kept_for_an_address_and_a_token_and_the_next_request_is_held() {
    let server = server(0, "long_poll = 0.05").await;
    let client = client(&server);
    let held = |server: &Server| server.look(|world| world.record().len());
    assert_eq!(client.request_job(&token(), None).await.polled, Polled::NoJob);
    // This one has the ticket: it comes back when the time is over, or when there is a job.
    assert_eq!(client.request_job(&token(), None).await.polled, Polled::NoJob);
    assert_eq!(held(&server), 2);
    let other = client.request_job(&Token::new("glrt-unknown"), None).await;
    assert!(matches!(other.polled, Polled::Forbidden { .. }));
}

#[tokio::test]
async fn a_request_that_is_held_brings_the_job_that_comes_meanwhile() {
    let server = server(0, "long_poll = 600").await;
    let client = client(&server);
    assert_eq!(client.request_job(&token(), None).await.polled, Polled::NoJob);
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.request_job(&token(), None).await }
    });
    server.plan(&runner_mock_gitlab::Burst::default());
    assert!(matches!(asking.await.expect("it ends").polled, Polled::Job(_)));
}

#[tokio::test]
async fn runner_17_the_first_request_ever_has_no_ticket() {
    // A server that holds every request with its ticket would not answer in time.
    let server = server(0, "long_poll = 600").await;
    assert_eq!(client(&server).request_job(&token(), None).await.polled, Polled::NoJob);
}

#[tokio::test]
async fn runner_18_forbidden_is_unhealthy() {
    let server = server(1, "").await;
    let poll = client(&server).request_job(&Token::new("glrt-wrong"), None).await;
    assert!(!poll.polled.is_healthy(), "{poll:?}");
}

#[tokio::test]
async fn runner_35_beats_keep_a_job_until_it_is_accepted() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = take(&client).await;
    for _ in 0..3 {
        assert_eq!(client.beat(&job, false).await, Beat::Waits);
    }
    assert_eq!(client.accept(&job).await, Accepted::Running);
    server.look(|world| assert_eq!((world.jobs()[&JOB].beats, &world.jobs()[&JOB].stage), (3, &Stage::Running)));
    assert_eq!(client.beat(&job, false).await, Beat::NotNeeded);
}

#[tokio::test]
async fn runner_36_what_nobody_has_accepted_cannot_succeed() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = take(&client).await;
    assert_eq!(client.update_job(&job, &end_of("")).await.outcome, UpdateOutcome::Failed { why: "status 400: 400 Bad request".to_owned() });
}

#[tokio::test]
async fn a_job_whose_beats_stop_is_gone() {
    let server = server(1, "beat = 0.001").await;
    let client = client(&server);
    let job = take(&client).await;
    server.until(|world| world.jobs()[&JOB].stage == Stage::Ended).await;
    assert_eq!(client.beat(&job, true).await, Beat::Gone);
    assert_eq!(client.accept(&job).await, Accepted::Gone);
}

#[tokio::test]
async fn a_server_without_two_phases_does_not_need_beats() {
    let server = server(1, "two_phase = false").await;
    let client = client(&server);
    let job = take(&client).await;
    assert_eq!(client.beat(&job, false).await, Beat::NotNeeded);
    assert_eq!(client.accept(&job).await, Accepted::Running);
}

#[tokio::test]
async fn a_cancel_between_offer_and_start_is_seen_and_the_job_ends_as_cancelled() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = take(&client).await;
    server.cancel(JOB, false);
    assert_eq!(client.beat(&job, false).await, Beat::Canceling);
    assert_eq!(client.accept(&job).await, Accepted::Canceling);
    let mut update = end_of("");
    update.state = JobState::Finished(Finished::failure("job_canceled", 0));
    assert_eq!(client.update_job(&job, &update).await.outcome, UpdateOutcome::Succeeded);
    server.look(|world| assert_eq!(world.jobs()[&JOB].status(), "canceled"));
    assert!(server.report().is_clean(), "{}", server.report());
}

#[tokio::test]
async fn runner_69_a_cancel_comes_with_a_piece_of_the_trace() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = begin(&client).await;
    server.cancel(JOB, false);
    let patched = client.patch_trace(&job, 0, Bytes::from_static(b"hello"), false).await;
    assert_eq!((patched.outcome, patched.cancel_requested), (PatchOutcome::Accepted { end: 5 }, true));
}

#[tokio::test]
async fn runner_70_a_job_that_was_killed_takes_nothing_more() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = begin(&client).await;
    server.cancel(JOB, true);
    assert_eq!(patch(&client, &job, 0, "hello").await, PatchOutcome::Aborted);
    assert_eq!(client.update_job(&job, &end_of("")).await.outcome, UpdateOutcome::Aborted);
}

#[tokio::test]
async fn runner_64_a_piece_is_sent_with_its_range_and_its_length() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = begin(&client).await;
    assert_eq!(patch(&client, &job, 0, "tra").await, PatchOutcome::Accepted { end: 3 });
    assert_eq!(patch(&client, &job, 3, "ce trace trace").await, PatchOutcome::Accepted { end: 17 });
    assert_eq!(ranges(&server), ["0-2 3", "3-16 14"]);
    assert!(server.report().violations.is_empty(), "{}", server.report());
}

fn ranges(server: &Server) -> Vec<String> {
    server.look(|world| {
        world.record().iter().filter(|entry| entry.call == "trace").map(|entry| format!("{} {}", entry.detail, entry.bytes)).collect()
    })
}

#[tokio::test]
async fn runner_66_an_empty_piece_is_not_sent() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = begin(&client).await;
    let mut offset = 0;
    let mut ends = Vec::new();
    for text in ["test", "", " ", "test"] {
        let PatchOutcome::Accepted { end } = patch(&client, &job, offset, text).await else { panic!("accepted") };
        offset = end;
        ends.push(end);
    }
    assert_eq!(ends, [4, 4, 5, 9]);
    assert_eq!(ranges(&server), ["0-3 4", "4-4 1", "5-8 4"]);
}

#[tokio::test]
async fn runner_67_the_last_byte_of_a_range_is_counted() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = begin(&client).await;
    patch(&client, &job, 0, "a").await;
    patch(&client, &job, 1, "bc").await;
    assert_eq!(ranges(&server), ["0-0 1", "1-2 2"]);
}

#[tokio::test]
async fn runner_72_a_piece_that_begins_elsewhere_brings_the_true_length() {
    let server = server(1, "").await;
    let client = client(&server);
    let job = begin(&client).await;
    patch(&client, &job, 0, "0123456789").await;
    assert_eq!(patch(&client, &job, 11, "x").await, PatchOutcome::RangeMismatch { server_has: 10 });
    assert_eq!(patch(&client, &job, 0, "x").await, PatchOutcome::RangeMismatch { server_has: 10 });
    assert_eq!(patch(&client, &job, 10, "x").await, PatchOutcome::Accepted { end: 11 });
}

#[tokio::test]
async fn runner_73_the_address_says_whether_the_trace_is_for_debugging() {
    // The paths of requests are recorded without what stands behind the question mark, so a fault for one of two shows nothing: look at the client.
    let server = wiremock::MockServer::start().await;
    for (debug, query) in [(false, "false"), (true, "true")] {
        wiremock::Mock::given(wiremock::matchers::query_param("debug_trace", query))
            .respond_with(wiremock::ResponseTemplate::new(202))
            .expect(1)
            .mount(&server)
            .await;
        let client = client_of(settings(&server.uri()));
        let job = JobAccess { server: client.settings().url.clone(), id: 1, token: Token::new("t") };
        let patched = client.patch_trace(&job, 0, Bytes::from_static(b"x"), debug).await;
        assert_eq!(patched.outcome, PatchOutcome::Accepted { end: 1 });
    }
}

#[tokio::test]
async fn a_trace_that_is_too_long_fails_the_job() {
    let server = server(1, "trace_limit = 8").await;
    let client = client(&server);
    let job = begin(&client).await;
    assert_eq!(patch(&client, &job, 0, "0123456789").await, PatchOutcome::Aborted);
    server.look(|world| assert_eq!(world.jobs()[&JOB].ended.as_ref().and_then(|end| end.reason.as_deref()), Some("trace_size_exceeded")));
}

#[tokio::test]
async fn two_cells_behind_one_address_may_both_have_a_job_1() {
    let text = r#"
        [[cell]]
        id = 1
        [[cell]]
        id = 2
        [[runner]]
        token = "glrt-one"
        [[runner]]
        token = "glrt-two"
        cell = 2
        [[jobs]]
        name = "first"
        [[jobs]]
        name = "second"
        cell = 2
    "#;
    let server = Server::start(runner_mock_gitlab::Scenario::parse(text).expect("a scenario")).await.expect("a port");
    let client = client(&server);
    for (runner, output) in [("glrt-two", "of two"), ("glrt-one", "of one")] {
        let job = client.request_job(&Token::new(runner), None).await.access().expect("a job");
        assert_eq!(job.id, 1);
        assert_eq!(client.accept(&job).await, Accepted::Running);
        patch(&client, &job, 0, output).await;
        assert_eq!(client.update_job(&job, &end_of(output)).await.outcome, UpdateOutcome::Succeeded);
    }
    assert!(server.report().is_clean(), "{}", server.report());
    server.look(|world| assert_eq!(world.jobs()[&JobKey { cell: 2, id: 1 }].trace, b"of two"));
}

#[tokio::test]
async fn a_job_that_is_offered_twice_is_the_same_job() {
    let mut scenario = scenario(1, "");
    scenario.bursts[0].offers = 2;
    let server = Server::start(scenario).await.expect("a port");
    let client = client(&server);
    assert_eq!(take(&client).await, take(&client).await);
    assert_eq!(client.request_job(&token(), None).await.polled, Polled::NoJob);
    assert_eq!(TOKEN, token().expose());
}
