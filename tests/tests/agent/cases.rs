//! The cases of `tests/cases/service.md` that a caller of the service sees.

use super::served::{Served, job, refusal, script_job};
use ci_proto::step_runner as wire;
use ci_proto::step_runner::step_result::Status as JobStatus;
use std::collections::BTreeMap;
use tonic::Code;

fn variable(key: &str, value: &str, file: bool) -> wire::Variable {
    wire::Variable { key: key.into(), value: value.into(), file, masked: false }
}

fn with_variables(request: wire::RunRequest, variables: Vec<wire::Variable>) -> wire::RunRequest {
    wire::RunRequest { job: Some(wire::Job { variables, ..wire::Job::default() }), ..request }
}

#[test]
fn api_04_a_job_that_is_cancelled_without_grace_was_killed() {
    let served = Served::with(&["--grace", "0s"]);
    served.run_script("1", "echo ready; sleep 1000");
    served.follow("1").until("ready");
    served.cancel("1").unwrap();
    let status = served.ended("1");
    assert_eq!((status.status(), status.message.as_str()), (JobStatus::Cancelled, "job \"1\" cancelled: step \"s\": exec: signal: killed"));
    assert_eq!(status.error.map(|error| error.kind()), Some(wire::status_error::Kind::Cancelled));
}

#[test]
fn api_05_the_environment_of_the_request_reaches_expressions_and_processes() {
    let served = Served::raw();
    let env = BTreeMap::from([("FOO".into(), "foo".into()), ("BAR".into(), "bar".into())]);
    served.run(wire::RunRequest { env, ..script_job("1", "echo ${{ env.FOO }} $BAR >file") }).unwrap();
    assert_eq!(served.ended("1").status(), JobStatus::Success);
    assert_eq!(served.workshop.read("work/file"), "foo bar\n");
}

#[test]
fn api_07_the_expression_of_a_file_variable_is_the_path_of_its_content() {
    let served = Served::raw();
    served.run(with_variables(script_job("1", "cat ${{ job.KEY }}"), vec![variable("KEY", "the content\n", true)])).unwrap();
    let log = served.log_text("1");
    assert!(log.ends_with("Running step \"s\"\n[MASKED]\n"), "{log}");
}

#[test]
fn api_08_the_same_id_twice_is_one_job() {
    let served = Served::raw();
    served.run_script("1", "echo ran >>file");
    served.run_script("1", "echo ran >>file");
    served.ended("1");
    served.run_script("1", "echo ran >>file");
    assert_eq!(served.workshop.read("work/file"), "ran\n");
}

#[test]
fn two_simultaneous_first_calls_with_one_id_start_one_job() {
    let served = Served::raw();
    for round in 0..10 {
        let id = format!("job-{round}");
        let calls: Vec<_> = (0..8).map(|_| served.connect()).collect();
        let request = script_job(&id, &format!("echo ran >>file-{round}"));
        let both = calls.into_iter().map(|mut caller| {
            let request = request.clone();
            async move { caller.run(request).await.map(drop) }
        });
        let outcomes = served.wait(futures::future::join_all(both));
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        served.ended(&id);
        assert_eq!(served.workshop.read(&format!("work/file-{round}")), "ran\n");
    }
}

#[test]
fn api_10_a_log_says_which_step_runs_and_ends() {
    let served = Served::raw();
    served.run(job("1", "run: [{name: T, script: echo a line}]")).unwrap();
    assert_eq!(served.log_text("1"), "Running step \"T\"\na line\n");
}

#[test]
fn api_11_the_status_of_a_finished_job_has_both_times() {
    let served = Served::raw();
    served.run_script("1", "true");
    served.log("1");
    let statuses = served.statuses("1").unwrap();
    let [status] = &statuses[..] else { panic!("{statuses:?}") };
    assert_eq!((status.status(), status.message.as_str()), (JobStatus::Success, ""));
    assert!(status.start_time.is_some() && status.end_time.is_some());
}

#[test]
fn api_13_a_job_that_was_closed_is_unknown() {
    let served = Served::raw();
    served.run_script("1", "sleep 1000");
    served.close("1");
    assert_eq!(refusal(&served.statuses("1").unwrap_err()).1, "NO_SUCH_JOB");
}

#[test]
fn api_14_an_empty_id_asks_for_all_jobs() {
    let served = Served::raw();
    served.run_script("b", "true");
    served.run_script("a", "true");
    let ids: Vec<String> = served.statuses("").unwrap().into_iter().map(|status| status.id).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn api_16_an_unknown_id_is_an_error_but_for_close() {
    let served = Served::raw();
    let expected = (Code::NotFound, "NO_SUCH_JOB".to_owned(), "no job with id \"nope\"".to_owned());
    assert_eq!(refusal(&served.statuses("nope").unwrap_err()), expected);
    assert_eq!(refusal(&served.follow_from("nope", 0).err().unwrap()), expected);
    assert_eq!(refusal(&served.cancel("nope").unwrap_err()), expected);
    served.close("nope");
}

#[test]
fn api_17_a_missing_command_fails_with_127() {
    let served = Served::raw();
    served.run_script("1", "no-such-command");
    let status = served.ended("1");
    assert_eq!((status.status(), status.exit_code), (JobStatus::Failure, 127));
    assert!(status.message.ends_with("exec: exit status 127"), "{}", status.message);
}

#[test]
fn api_23_a_follower_gets_all_lines_and_no_error_however_the_job_ends() {
    let served = Served::raw();
    served.run_script("good", "seq 3");
    assert_eq!(served.log_text("good"), "Running step \"s\"\n1\n2\n3\n");
    served.run_script("bad", "seq 3; sleep 1000");
    let mut following = served.follow("bad");
    following.until("3\n");
    served.cancel("bad").unwrap();
    assert_eq!(following.rest().unwrap(), b"");
}

#[test]
fn api_31_a_follower_begins_at_its_offset() {
    let served = Served::raw();
    served.run_script("1", "echo one; echo two; echo three");
    let log = served.log("1");
    assert_eq!(served.follow_from("1", 11).unwrap().rest().unwrap(), &log[11..]);
    assert_eq!(served.follow_from("1", log.len() as i64).unwrap().rest().unwrap(), b"");
    assert_eq!(served.follow_from("1", i64::MAX).unwrap().rest().unwrap(), b"");
    let (code, reason, text) = refusal(&served.follow_from("1", -1).err().unwrap());
    assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "BAD_OFFSET"));
    assert!(text.starts_with("following logs for job \"1\": seeking log file \"") && text.ends_with(": invalid argument"), "{text}");
}

#[test]
fn api_34_followers_get_the_same() {
    let served = Served::raw();
    served.run_script("1", "seq 2000; until [ -e go-on ]; do sleep 0.01; done; seq 2000 4000");
    let mut following: Vec<_> = (0..500).map(|_| served.follow("1")).collect();
    served.workshop.file("work/go-on", "");
    let first = following[0].rest().unwrap();
    assert!(first.ends_with(b"\n3999\n4000\n"));
    for follower in &mut following[1..] {
        assert!(follower.rest().unwrap() == first);
    }
}

#[test]
fn api_35_a_plain_variable_is_its_value_and_a_file_variable_its_path() {
    let served = Served::raw();
    let variables = vec![variable("PLAIN", "value", false), variable("FILE", "content", true)];
    served.run(with_variables(script_job("1", "echo ${{ job.PLAIN }} ${{ job.FILE }}"), variables)).unwrap();
    let path = served.directory("1").canonicalize().unwrap_or(served.directory("1")).join("FILE");
    let log = served.log_text("1");
    assert!(log.ends_with(&format!("Running step \"s\"\nvalue {}\n", path.display())), "{log}");
}

#[test]
fn api_37_only_file_variables_lie_on_the_disk_as_long_as_the_job_runs() {
    use std::os::unix::fs::PermissionsExt as _;
    let served = Served::raw();
    let variables = vec![variable("A", "1", false), variable("B", "2", false), variable("FILE", "content", true)];
    served.run(with_variables(script_job("1", "echo ready; until [ -e go-on ]; do sleep 0.01; done"), variables)).unwrap();
    served.follow("1").until("ready");
    let mut names: Vec<String> =
        std::fs::read_dir(served.directory("1")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, [".job", "FILE", "logs"]);
    let file = served.directory("1").join("FILE");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "content");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(served.directory("1").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    served.workshop.file("work/go-on", "");
    served.ended("1");
    assert!(!file.exists(), "it goes when the run ends");
}

#[test]
fn api_38_a_request_without_a_job_has_no_variables() {
    let served = Served::raw();
    let request = script_job("1", "echo none");
    assert_eq!(request.job, None);
    served.run(request).unwrap();
    assert_eq!(served.ended("1").status(), JobStatus::Success);
}

#[test]
fn api_49_empty_lines_are_delivered() {
    let served = Served::raw();
    served.run_script("1", "echo; echo; echo a; echo");
    assert_eq!(served.log_text("1"), "Running step \"s\"\n\n\na\n\n");
}

#[test]
fn names_of_file_variables_that_lead_elsewhere_are_refused() {
    let served = Served::raw();
    for key in ["../../x", "", "..", "logs", ".job", "a/b"] {
        let request = with_variables(script_job("1", "true"), vec![variable(key, "content", true)]);
        let (code, reason, text) = refusal(&served.run(request).unwrap_err());
        assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "UNSAFE_VARIABLE"), "{text}");
    }
    assert!(served.statuses("").unwrap().is_empty());
}
