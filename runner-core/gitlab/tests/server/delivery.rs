//! A trace goes to a server, whatever the server does: not a byte is lost or sent twice, and the end is reported once.

use crate::{client, scenario, token};
use runner_gitlab::answer::Accepted;
use runner_gitlab::trace::deliver::{Delivery, Signal, Told};
use runner_gitlab::trace::framed::Headers;
use runner_gitlab::trace::sanitise::Prefixes;
use runner_gitlab::trace::sending::{Delivered, Force, SendingSettings};
use runner_gitlab::trace::spool::{Trace, TraceSettings};
use runner_gitlab::{Client, Finished, JobAccess};
use runner_mock_gitlab::{JobKey, Server, Stage};
use std::path::Path;
use std::time::Duration;
use step_model::masking::Secrets;
use tokio::sync::{mpsc, watch};

const JOB: JobKey = JobKey { cell: 1, id: 1 };

/// Without the waits of a real one.
fn hasty() -> SendingSettings {
    let short = Duration::from_millis(1);
    SendingSettings {
        interval: short,
        least_backoff: short,
        most_backoff: short,
        piece: 1000,
        force: Force::Fixed(short),
        ..SendingSettings::default()
    }
}

fn open(directory: &Path) -> Trace {
    let settings = TraceSettings { limit: 1 << 20, headers: Headers::Full, prefixes: Prefixes::new(&[]), secrets: Secrets::default() };
    Trace::open(directory, settings).expect("a trace")
}

fn log(lines: usize) -> String {
    (0..lines).map(|number| format!("2021-01-01T01:00:00.020010Z 01O line {number} of the log\n")).collect()
}

async fn begin(server: &Server) -> (Client, JobAccess) {
    let client = client(server);
    let job = client.request_job(&token(), None).await.access().expect("a job");
    assert_eq!(client.accept(&job).await, Accepted::Running);
    (client, job)
}

fn delivery(client: &Client, job: &JobAccess, trace: &Trace) -> Delivery {
    let trace = trace.reader().expect("it is there");
    Delivery { client: client.clone(), job: job.clone(), trace, debug_trace: false, settings: hasty(), sent: 0 }
}

/// Delivers all of a trace and its end.
async fn deliver(client: &Client, job: &JobAccess, trace: &Trace) -> Delivered {
    let told = Told { trace: trace.digest(), finished: Some(Finished::success()) };
    // Told after the start, as it is in life.
    let (sender, receiver) = watch::channel(Told::default());
    sender.send_replace(told);
    delivery(client, job, trace).run(receiver, mpsc::unbounded_channel().0).await
}

/// With a scenario, a log of so many lines arrives whole and the report is clean.
async fn arrives_whole(more: &str, change: impl FnOnce(&mut runner_mock_gitlab::Scenario)) {
    let mut scenario = scenario(1, &format!("trace_interval = 0\n{more}"));
    change(&mut scenario);
    let server = Server::start(scenario).await.expect("a port");
    let (client, job) = begin(&server).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut trace = open(directory.path());
    trace.push(log(100).as_bytes()).expect("written");
    trace.finish().expect("written");
    deliver(&client, &job, &trace).await;
    let report = server.report();
    assert!(report.is_clean(), "{report}");
    server.look(|world| {
        assert_eq!(String::from_utf8_lossy(&world.jobs()[&JOB].trace), log(100));
        assert_eq!(world.jobs()[&JOB].ended.as_ref().map(|end| (end.status, end.by_runner)), Some(("success", true)));
    });
}

#[tokio::test]
async fn a_trace_arrives_whole_and_the_end_is_reported_once() {
    arrives_whole("", |_| {}).await;
}

#[tokio::test]
async fn pieces_that_fail_are_sent_again() {
    arrives_whole("[[fault]]\ncall = \"trace\"\ntimes = 0\nevery = 2\nkind = \"status\"\nstatus = 400", |_| {}).await;
}

#[tokio::test]
async fn pieces_whose_answers_are_lost_are_not_sent_twice() {
    arrives_whole("[[fault]]\ncall = \"trace\"\ntimes = 0\nevery = 3\nkind = \"lost\"", |_| {}).await;
}

#[tokio::test]
async fn limits_of_a_server_are_borne() {
    arrives_whole("[[fault]]\ncall = \"any\"\nskip = 2\ntimes = 0\nevery = 2\nkind = \"status\"\nstatus = 429", |_| {}).await;
}

#[tokio::test]
async fn an_end_whose_answer_is_lost_is_reported_once() {
    arrives_whole("[[fault]]\ncall = \"final\"\ntimes = 3\nkind = \"lost\"", |_| {}).await;
}

#[tokio::test]
async fn a_server_that_puts_a_trace_together_is_waited_for() {
    arrives_whole("archive = 0.05", |_| {}).await;
}

#[tokio::test]
async fn a_trace_that_arrived_wrong_is_sent_again() {
    arrives_whole("", |scenario| scenario.bursts[0].corrupt = true).await;
}

#[tokio::test]
async fn pages_half_answers_and_wrong_types_do_no_harm() {
    for kind in ["html", "half", "wrong_types", "close"] {
        arrives_whole(
            &format!(
                "[[fault]]\ncall = \"trace\"\ntimes = 3\nkind = \"{kind}\"\n[[fault]]\ncall = \"final\"\ntimes = 3\nkind = \"{kind}\""
            ),
            |_| {},
        )
        .await;
    }
}

#[tokio::test]
async fn a_cancel_and_an_abort_are_told_while_the_job_runs() {
    for (hard, expected) in [(false, Signal::Cancel), (true, Signal::Abort)] {
        let server = Server::start(scenario(1, "trace_interval = 0")).await.expect("a port");
        let (client, job) = begin(&server).await;
        let directory = tempfile::tempdir().expect("a directory");
        let mut trace = open(directory.path());
        let (told, receiver) = watch::channel(Told::default());
        let (sender, mut signals) = mpsc::unbounded_channel();
        let running = tokio::spawn(delivery(&client, &job, &trace).run(receiver, sender));
        server.cancel(JOB, hard);
        trace.push(log(1).as_bytes()).expect("written");
        told.send_replace(Told { trace: trace.digest(), finished: None });
        assert_eq!(signals.recv().await, Some(expected));
        told.send_replace(Told { trace: trace.digest(), finished: Some(Finished::failure("job_canceled", 0)) });
        let how = running.await.expect("it ends");
        assert_eq!(how, if hard { Delivered::Refused } else { Delivered::Reported });
        server.look(|world| assert_eq!(world.jobs()[&JOB].status(), "canceled"));
    }
}

#[tokio::test]
async fn a_process_that_is_killed_at_any_moment_is_followed_by_one_that_goes_on_at_the_byte() {
    let server = Server::start(scenario(1, "trace_interval = 0")).await.expect("a port");
    let (client, job) = begin(&server).await;
    let directory = tempfile::tempdir().expect("a directory");
    let log = log(300);
    for read in (0..log.len()).step_by(701) {
        let mut trace = open(directory.path());
        let offset = usize::try_from(trace.agent_offset()).expect("small");
        trace.push(&log.as_bytes()[offset..read.max(offset)]).expect("written");
        let (_told, receiver) = watch::channel(Told { trace: trace.digest(), finished: None });
        let mut killed = tokio::spawn(delivery(&client, &job, &trace).run(receiver, mpsc::unbounded_channel().0));
        // At a moment of its own each time: after so many more requests.
        let until = server.look(|world| world.record().len()) + read % 3;
        tokio::select! {
            () = server.until(|world| world.record().len() >= until) => killed.abort(),
            how = &mut killed => panic!("{how:?}"),
        }
    }
    let mut trace = open(directory.path());
    let offset = usize::try_from(trace.agent_offset()).expect("small");
    trace.push(&log.as_bytes()[offset..]).expect("written");
    trace.finish().expect("written");
    assert_eq!(deliver(&client, &job, &trace).await, Delivered::Reported);
    let report = server.report().without_offsets();
    assert!(report.is_clean(), "{report}");
    server.look(|world| {
        assert_eq!(String::from_utf8_lossy(&world.jobs()[&JOB].trace), log);
        assert_eq!(world.jobs()[&JOB].stage, Stage::Ended);
    });
}
