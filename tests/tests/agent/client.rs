//! The client library against the agent that serves.

use super::served::{Served, job, script_job};
use crate::contracts::agent::{keeps_the_contract, log_of};
use ci_proto::step_runner::{Job, RunRequest, Variable};
use rustix::process::Signal;
use step_client::connect::{CommandStream, UnixSocket};
use step_client::logs::{LogReader, Stream};
use step_client::{AgentClient, NotRunToEnd};
use step_model::result::{ResultTree as _, Status, StepId};

/// A client of the agent; made inside of a runtime.
fn client(served: &Served) -> AgentClient {
    AgentClient::new(UnixSocket::new(served.socket()))
}

async fn log_text(agent: &AgentClient, request: RunRequest) -> (String, step_client::Ended) {
    let mut log = Vec::new();
    let ended = agent.run_to_end(request, |bytes| {
        log.extend_from_slice(&bytes);
        Ok(())
    });
    let ended = ended.await.expect("it ends");
    (String::from_utf8(log).expect("text"), ended)
}

#[test]
fn the_agent_that_serves_keeps_the_contract() {
    let served = Served::with(&["--log", "raw"]);
    served.wait(async { keeps_the_contract(&client(&served)).await });
}

#[test]
fn api_40_one_long_line_arrives_whole_behind_the_line_of_the_log() {
    let served = Served::raw();
    let long = "x".repeat(70_000);
    let request = script_job("7", &format!("echo {long}"));
    let (log, ended) = served.wait(async { log_text(&client(&served), request).await });
    assert_eq!(log, format!("Running step \"s\"\n{long}\n"));
    assert_eq!(ended.log_bytes, log.len() as u64);
}

#[test]
fn api_41_a_writer_that_stops_after_twenty_bytes_goes_on_at_that_byte() {
    let served = Served::raw();
    served.wait(async {
        let agent = client(&served);
        agent.run(script_job("7", "echo one; echo two")).await.expect("it is taken");
        let (mut first, mut stream) = (Vec::new(), agent.follow("7", 0));
        while let Some(bytes) = stream.next().await.expect("a log") {
            first.extend_from_slice(&bytes);
        }
        let whole = first.clone();
        first.truncate(20);
        let stopped = agent.follow_to_end("7", 0, |_| Err(std::io::Error::other("enough"))).await;
        assert!(matches!(stopped, Err(NotRunToEnd::LogNotTaken { .. })));
        let rest = log_of(&agent, "7", 20).await.expect("a log");
        assert_eq!([&first[..], rest.as_bytes()].concat(), whole);
    });
}

#[test]
fn api_44_a_job_gets_its_environment_and_its_file_variable() {
    let served = Served::raw();
    let definition = "run:\n  - {name: s, script: 'echo FOO=$FOO; echo ${{ job.KEY }}; tr a-z A-Z < ${{ job.KEY }}'}\n";
    let variables = vec![Variable { key: "KEY".into(), value: "the content of a file".into(), file: true, masked: false }];
    let request = RunRequest {
        env: [("FOO".to_owned(), "bar".to_owned())].into(),
        job: Some(Job { variables, ..Job::default() }),
        ..job("7", definition)
    };
    let (log, ended) = served.wait(async { log_text(&client(&served), request).await });
    assert!(log.contains("FOO=bar\n"), "{log}");
    assert!(log.contains(&format!("{}\n", served.directory("7").join("KEY").display())), "{log}");
    assert!(log.contains("THE CONTENT OF A FILE"), "{log}");
    assert_eq!(ended.status.status, Status::Success);
}

#[test]
fn api_46_an_unknown_command_is_no_error_of_the_client() {
    let served = Served::raw();
    let (_, ended) = served.wait(async { log_text(&client(&served), job("7", "run:\n  - {name: bash, script: nope-nope}\n")).await });
    let failure = ended.status.outcome().into_result().expect_err("it fails");
    assert_eq!((failure.status, failure.to_string().as_str()), (Status::Failure, "step \"bash\": exec: exit status 127"));
    assert_eq!(failure.exit_code, Some(127));
}

#[test]
fn api_47_two_jobs_at_once_keep_their_environments_and_logs_apart() {
    let served = Served::raw();
    let request = |id: &str| RunRequest {
        env: [("WHO".to_owned(), format!("this is {id}"))].into(),
        ..script_job(id, "for i in 1 2 3 4 5; do echo $WHO; done")
    };
    let (one, two) = served.wait(async {
        let agent = client(&served);
        tokio::join!(log_text(&agent, request("one")), log_text(&agent, request("two")))
    });
    assert_eq!((one.0.matches("this is one").count(), one.0.matches("this is two").count()), (5, 0));
    assert_eq!((two.0.matches("this is two").count(), two.0.matches("this is one").count()), (5, 0));
}

#[test]
fn wire_07_a_nested_dispatch_gets_the_variables_of_the_job_in_its_references() {
    let served = Served::raw();
    served.workshop.file("work/steps/hello/step.yml", "{}\n---\nexec: {command: [echo, hello from inside]}\n");
    let variables = vec![Variable { key: "WHICH".into(), value: "hello".into(), ..Variable::default() }];
    let request = RunRequest {
        job: Some(Job { variables, ..Job::default() }),
        ..job("42-run", "run:\n  - {name: inner, func: './steps/${{ vars.WHICH }}'}\n")
    };
    let (log, ended) = served.wait(async { log_text(&client(&served), request).await });
    assert_eq!(ended.status.status, Status::Success, "{:?}\n{log}", ended.status);
    assert!(log.contains("hello from inside\n"), "{log}");
}

#[test]
fn wire_10_a_line_that_goes_on_is_joined_to_the_one_before_it() {
    let served = Served::with(&[]);
    served.run_script("7", "printf 'section_start\\rheader\\nnext\\n'; head -c 20000 /dev/zero | tr '\\0' x; echo");
    let log = served.log("7");
    assert!(log.windows(2).any(|pair| pair == b"O+"), "{}", String::from_utf8_lossy(&log));
    let (mut reader, mut output) = (LogReader::new(), Vec::new());
    let mut take = |piece: step_client::logs::Piece<'_>| {
        assert_eq!(piece.stream, Stream::Output);
        output.extend_from_slice(piece.bytes);
    };
    reader.push(&log, &mut take);
    reader.finish(&mut take);
    let expected = format!("Running step name=s\nsection_start\rheader\nnext\n{}\n", "x".repeat(20_000));
    assert_eq!(String::from_utf8(output).expect("text"), expected);
}

#[test]
fn a_client_goes_on_where_it_was_when_the_front_is_killed_and_comes_back() {
    let mut served = Served::raw();
    let script = "for i in $(seq 400); do echo line $i; done; until [ -e go-on ]; do sleep 0.02; done; echo last";
    let (request, socket) = (script_job("7", script), served.socket());
    let (told, waiting) = std::sync::mpsc::channel();
    let follower = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let agent = AgentClient::new(UnixSocket::new(socket));
            let mut log = Vec::new();
            let ended = agent.run_to_end(request, |bytes| {
                log.extend_from_slice(&bytes);
                if log.ends_with(b"line 400\n") {
                    let _ = told.send(());
                }
                Ok(())
            });
            let ended = ended.await.expect("it ends");
            (String::from_utf8(log).expect("text"), ended.status.status)
        })
    });
    waiting.recv_timeout(std::time::Duration::from_secs(60)).expect("the log comes");
    served.front().signal(Signal::KILL);
    served.take_front().finish();
    served.start(&["--log", "raw", "--level", "0.12"]);
    served.workshop.file("work/go-on", "");
    let (log, status) = follower.join().expect("no panic");
    let lines: String = (1..=400).map(|number| format!("line {number}\n")).collect();
    assert_eq!(log, format!("Running step \"s\"\n{lines}last\n"));
    assert_eq!(status, Status::Success);
}
#[test]
fn a_result_arrives_as_a_tree_and_a_payload_as_it_was_given() {
    let served = Served::raw();
    let request = script_job("7", "exit 3");
    served.wait(async {
        let agent = client(&served);
        agent.run(request.clone()).await.expect("it is taken");
        log_of(&agent, "7", 0).await.expect("a log");
        let result = agent.result("7").await.expect("a result");
        let tree = result.tree().expect("a tree");
        assert!(result.is_final);
        let step = tree.node(tree.children(StepId::ROOT)[0]);
        assert_eq!((&*step.name, step.status, step.exec.map(|exec| exec.exit_code)), ("s", Status::Failure, Some(3)));
        let payload = agent.payload("7").await.expect("a payload");
        assert_eq!((payload.request.id.as_str(), payload.request.steps), ("7", request.steps));
        assert!(agent.inspect("7").await.expect("it tells").capabilities.iter().any(|capability| capability == "result"));
    });
}

#[test]
fn the_two_ends_of_a_proxy_are_a_connection() {
    let served = Served::raw();
    let program = ci_tests::program::path("STEP_RUNNER");
    let tmp = served.workshop.path("tmp");
    let line = format!("TMPDIR={} exec {} proxy", tmp.display(), program.display());
    served.wait(async {
        let agent = AgentClient::new(CommandStream::new("sh", ["-c", &line]));
        let (log, ended) = log_text(&agent, script_job("7", "echo through a pipe")).await;
        assert!(log.contains("through a pipe\n"), "{log}");
        assert_eq!(ended.status.status, Status::Success);
    });
}
