//! Servers that misbehave: clear, bounded, nothing lost.

use crate::{client, client_of, server, settings, token};
use bytes::Bytes;
use runner_gitlab::answer::{PatchOutcome, Polled, UpdateOutcome};
use runner_gitlab::client::Limits;
use runner_gitlab::{Client, Finished, JobState, Update};
use runner_mock_gitlab::Server;
use std::time::Duration;

async fn why(client: &Client) -> String {
    match client.request_job(&token(), None).await.polled {
        Polled::Failed { why } => why,
        other => panic!("{other:?}"),
    }
}

fn fault(call: &str, more: &str) -> String {
    format!("[[fault]]\ncall = \"{call}\"\n{more}\n")
}

#[tokio::test]
async fn runner_01_a_good_answer_is_one_request() {
    let server = server(1, "").await;
    assert!(!client(&server).request_job(&token(), None).await.was_retried);
    assert_eq!(requests(&server), 1);
}

fn requests(server: &Server) -> usize {
    server.look(|world| world.record().len())
}

#[tokio::test]
async fn runner_02_a_broken_connection_is_not_tried_again_and_names_method_and_address() {
    let server = server(1, &fault("request", "kind = \"close\"")).await;
    let why = why(&client(&server)).await;
    assert!(why.starts_with(&format!("could not POST {}/api/v4/jobs/request: ", server.url())), "{why}");
    assert_eq!(requests(&server), 1);
}

#[tokio::test]
async fn runner_04_a_server_error_is_tried_again_with_the_whole_body() {
    let server = server(1, &fault("trace", "times = 2\nkind = \"status\"\nstatus = 500")).await;
    let client = client(&server);
    let job = client.request_job(&token(), None).await.access().expect("a job");
    client.accept(&job).await;
    let patched = client.patch_trace(&job, 0, Bytes::from_static(b"somebody"), false).await;
    assert_eq!(patched.outcome, PatchOutcome::Accepted { end: 8 });
    let bodies: Vec<usize> =
        server.look(|world| world.record().iter().filter(|entry| entry.call == "trace").map(|entry| entry.bytes).collect());
    assert_eq!(bodies, [8, 8, 8]);
}

#[tokio::test]
async fn runner_10_a_limit_that_stays_is_handed_up_after_five_attempts() {
    let server = server(1, &fault("request", "times = 0\nkind = \"status\"\nstatus = 429")).await;
    let poll = client(&server).request_job(&token(), None).await;
    assert_eq!((poll.polled.is_healthy(), poll.was_retried, requests(&server)), (true, true, 5));
    assert_eq!(poll.polled, Polled::Failed { why: "status 429".to_owned() });
}

#[tokio::test]
async fn runner_11_the_connection_of_an_answer_that_is_thrown_away_is_used_again() {
    let server = server(1, &fault("request", "times = 4\nkind = \"status\"\nstatus = 429")).await;
    assert!(matches!(client(&server).request_job(&token(), None).await.polled, Polled::Job(_)));
}

#[tokio::test]
async fn runner_20_an_instance_that_is_away_is_waited_for_and_does_not_make_the_runner_unhealthy() {
    let server = server(1, &fault("request", "times = 0\nkind = \"status\"\nstatus = 503")).await;
    let poll = client(&server).request_job(&token(), None).await;
    assert_eq!((poll.polled.is_healthy(), poll.polled, requests(&server)), (true, Polled::Unavailable, 5));
}

#[tokio::test]
async fn another_manager_that_was_faster_is_no_error() {
    let server = server(1, &fault("request", "kind = \"status\"\nstatus = 409")).await;
    assert_eq!(client(&server).request_job(&token(), None).await.polled, Polled::Conflict);
    assert_eq!(requests(&server), 1);
}

#[tokio::test]
async fn the_page_of_a_proxy_is_said_to_be_one() {
    let server = server(1, &fault("request", "kind = \"html\"")).await;
    assert_eq!(
        why(&client(&server)).await,
        "the answer is not JSON but `text/html; charset=utf-8`: is there a proxy or a login page in front of the server?"
    );
}

#[tokio::test]
async fn half_an_answer_is_none() {
    let server = server(1, &fault("request", "kind = \"half\"")).await;
    let why = why(&client(&server)).await;
    assert!(why.starts_with("could not POST") && !why.contains("glcbt-"), "{why}");
}

#[tokio::test]
async fn values_of_other_types_are_no_job() {
    let server = server(1, &fault("request", "kind = \"wrong_types\"")).await;
    assert_eq!(why(&client(&server)).await, "the job has no id");
}

#[tokio::test]
async fn ten_megabytes_of_json_are_taken_and_a_limit_is_kept() {
    let server = server(1, &fault("request", "times = 2\nkind = \"large\"\nbytes = 10_000_000")).await;
    let Polled::Job(job) = client(&server).request_job(&token(), None).await.polled else { panic!("a job") };
    assert!(job.payload.len() > 10_000_000);
    let mut settings = settings(&server.url());
    settings.limits = Limits { job: 1 << 20, other: 1 << 20 };
    let why = why(&client_of(settings)).await;
    assert!(why.ends_with("the answer is longer than 1048576 bytes"), "{why}");
}

#[tokio::test]
async fn a_server_that_hangs_is_left() {
    let server = server(1, &fault("request", "kind = \"hang\"")).await;
    let mut settings = settings(&server.url());
    settings.timeouts.answer = Duration::from_millis(50);
    let why = why(&client_of(settings)).await;
    assert!(why.ends_with("no answer within 0.05 s"), "{why}");
}

#[tokio::test]
async fn runner_32_a_request_that_hangs_is_given_up_at_once_when_nobody_wants_it_any_more() {
    let server = server(1, &fault("request", "times = 0\nkind = \"hang\"")).await;
    let client = client(&server);
    let asking = tokio::spawn(async move { client.request_job(&token(), None).await });
    server.until(|world| !world.record().is_empty()).await;
    asking.abort();
    assert!(asking.await.expect_err("it was given up").is_cancelled());
}

#[tokio::test]
async fn an_answer_that_is_lost_leaves_the_runner_where_the_server_can_tell_it() {
    let server = server(1, &format!("{}{}", fault("trace", "kind = \"lost\""), fault("final", "kind = \"lost\""))).await;
    let client = client(&server);
    let job = client.request_job(&token(), None).await.access().expect("a job");
    client.accept(&job).await;
    assert!(matches!(client.patch_trace(&job, 0, Bytes::from_static(b"hello"), false).await.outcome, PatchOutcome::Failed { .. }));
    assert_eq!(
        client.patch_trace(&job, 0, Bytes::from_static(b"hello"), false).await.outcome,
        PatchOutcome::RangeMismatch { server_has: 5 }
    );
    let end = Update {
        state: JobState::Finished(Finished::success()),
        trace: Some(runner_gitlab::TraceDigest { bytes: 5, crc: crc32fast::hash(b"hello") }),
    };
    assert!(matches!(client.update_job(&job, &end).await.outcome, UpdateOutcome::Failed { .. }));
    // Said again, the server has closed the job already: that is an end as well.
    assert_eq!(client.update_job(&job, &end).await.outcome, UpdateOutcome::Aborted);
    assert!(server.report().is_clean(), "{}", server.report());
}

#[tokio::test]
async fn nobody_listens() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let why = why(&client_of(settings(&format!("http://{address}")))).await;
    assert!(why.contains("onnection refused"), "{why}");
}

#[tokio::test]
async fn a_redirect_to_another_server_is_not_followed_and_the_token_stays() {
    let server = server(
        1,
        &fault("request", "times = 0\nkind = \"status\"\nstatus = 307\nheaders = { location = \"https://elsewhere.example/x\" }"),
    )
    .await;
    let why = why(&client(&server)).await;
    assert!(
        why.ends_with(
            "the server redirects to `https://elsewhere.example`, which is another server: if that is right, make it the url of the runner"
        ),
        "{why}"
    );
}

#[tokio::test]
async fn a_redirect_on_the_same_server_is_followed_with_the_body() {
    let server = server(1, &fault("request", "kind = \"status\"\nstatus = 307\nheaders = { location = \"/api/v4/jobs/request\" }")).await;
    assert!(matches!(client(&server).request_job(&token(), None).await.polled, Polled::Job(_)));
}
