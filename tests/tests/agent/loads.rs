//! Large requests, slow callers, and what our second service tells.

use super::served::{Served, job, refusal, script_job};
use ci_proto::agent as wire;
use ci_proto::agent::agent_client::AgentClient;
use ci_proto::step_runner::StepResult;
use ci_proto::step_runner::step_result::Status as JobStatus;
use prost::Message as _;
use tonic::Code;

#[test]
fn a_request_of_many_megabytes_runs_and_one_over_the_limit_names_it() {
    let served = Served::raw();
    let mut request = script_job("1", "echo small");
    let value = "x".repeat(60 << 20);
    request.job = Some(ci_proto::step_runner::Job {
        variables: vec![ci_proto::step_runner::Variable { key: "LARGE".into(), value, ..Default::default() }],
        ..Default::default()
    });
    served.run(request.clone()).unwrap();
    assert_eq!(served.ended("1").status(), JobStatus::Success);
    request.id = "2".into();
    request.env.insert("MORE".into(), "x".repeat(5 << 20));
    let (code, _, text) = refusal(&served.run(request).unwrap_err());
    assert_eq!(code, Code::ResourceExhausted, "{text}");
    assert!(text.contains("67108864"), "{text}");
}

#[test]
fn fields_that_are_not_known_are_skipped() {
    let served = Served::raw();
    // Field 77 of a later release, and a field of ours that does not exist yet.
    let unknown = [0xea, 0x04, 0x03, b'n', b'e', b'w', 0xf2, 0x4e, 0x01, b'x'];
    let bytes = [script_job("1", "echo ran").encode_to_vec(), unknown.to_vec()].concat();
    let mut client = served.connect_raw();
    served.wait(client.run(bytes)).unwrap();
    assert_eq!(served.log_text("1"), "Running step \"s\"\nran\n");
}

#[test]
fn a_caller_that_stops_reading_holds_nobody_up() {
    let served = Served::raw();
    served.run_script("1", "head -c 50000000 /dev/zero | tr '\\0' x; echo end");
    let idle = served.follow("1");
    let log = served.log("1");
    assert!(log.ends_with(b"xend\n"));
    served.run_script("2", "echo quick");
    assert_eq!(served.log_text("2"), "Running step \"s\"\nquick\n");
    drop(idle);
}

#[test]
fn the_result_of_a_job_comes_in_pieces_and_can_be_resumed() {
    let served = Served::raw();
    served.run(job("1", "run:\n  - {name: a, script: 'true'}\n  - {name: b, script: exit 3}\n")).unwrap();
    served.log("1");
    let mut agent = AgentClient::new(served.channel());
    let chunk = |offset, revision| wire::ResultRequest { id: "1".into(), offset, revision };
    let mut stream = served.wait(agent.result(chunk(0, 0))).unwrap().into_inner();
    let first = served.wait(stream.message()).unwrap().unwrap();
    assert!(first.r#final && first.total as usize == first.data.len() && served.wait(stream.message()).unwrap().is_none());
    let result = StepResult::decode(first.data.clone()).unwrap();
    let statuses: Vec<JobStatus> = result.sub_step_results.iter().map(StepResult::status).collect();
    assert_eq!((result.status(), statuses), (JobStatus::Failure, vec![JobStatus::Success, JobStatus::Failure]));
    let mut stream = served.wait(agent.result(chunk(10, first.revision))).unwrap().into_inner();
    assert_eq!(served.wait(stream.message()).unwrap().unwrap().data, first.data.slice(10..));
    let gone = served.wait(agent.result(chunk(10, first.revision + 1))).err().unwrap();
    assert_eq!((gone.code(), refusal(&gone).1.as_str()), (Code::Aborted, "REVISION_GONE"));
    let beyond = served.wait(agent.result(chunk(first.total + 1, 0))).err().unwrap();
    assert_eq!(refusal(&beyond).1, "BAD_OFFSET");
}

#[test]
fn the_payload_is_the_request_without_its_secrets() {
    let served = Served::raw();
    let mut request = script_job("1", "echo open sesame");
    request.job = Some(ci_proto::step_runner::Job {
        variables: vec![ci_proto::step_runner::Variable {
            key: "TOKEN".into(),
            value: "open sesame".into(),
            masked: true,
            ..Default::default()
        }],
        ..Default::default()
    });
    served.run(request).unwrap();
    let mut agent = AgentClient::new(served.channel());
    let payload = served.wait(agent.payload(wire::PayloadRequest { id: "1".into() })).unwrap().into_inner();
    assert_eq!(payload.withheld, ["TOKEN"]);
    let text = format!("{:?}", payload.request.unwrap());
    assert!(!text.contains("open sesame") && text.contains("TOKEN"), "{text}");
    assert_eq!(served.log_text("1"), "Running step \"s\"\n[MASKED]\n");
}

#[test]
fn an_agent_tells_what_it_is_and_does() {
    let served = Served::raw();
    served.run_script("1", "echo ready; sleep 1000");
    let mut following = served.follow("1");
    following.until("ready");
    let mut agent = AgentClient::new(served.channel());
    let inspected = served.wait(agent.inspect(wire::InspectRequest::default())).unwrap().into_inner();
    let [job] = &inspected.jobs[..] else { panic!("{inspected:?}") };
    assert_eq!((job.status(), job.step.as_slice(), job.followers), (JobStatus::Running, &["s".to_owned()][..], 1));
    assert!(job.pid > 0 && job.log_bytes > 0 && inspected.capabilities.contains(&"raw".to_owned()));
}
