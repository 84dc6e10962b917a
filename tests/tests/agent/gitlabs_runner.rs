//! GitLab's runner 19.4 as the caller: what it sends, in its order, and what it reads out of the answers (original.md S 1.2).

use super::served::{Served, job};
use ci_proto::step_runner as wire;
use std::time::Duration;

/// What the runner makes of a log line; `None`: it drops it. Lines that go on are joined to the one before.
fn runner_lines(log: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in log.split(|byte| *byte == b'\n') {
        if line.len() <= 32 {
            continue;
        }
        let text = String::from_utf8_lossy(line);
        let (header, body) = text.split_at(32);
        assert!(header.as_bytes()[10] == b'T' && header.ends_with([' ', '+']) && &header[26..28] == "Z ", "{header:?}");
        assert!(header[28..30].bytes().all(|digit| digit.is_ascii_hexdigit()) && ["O", "E"].contains(&&header[30..31]), "{header:?}");
        match lines.last_mut().filter(|_| header.ends_with('+')) {
            Some(last) => last.push_str(body),
            None => lines.push(body.to_owned()),
        }
    }
    lines
}

/// The request of a job: preamble and list, all variables, the limit of the job, both directories.
fn request(served: &Served, id: &str, steps: &str) -> wire::RunRequest {
    let dir = served.workshop.path("work").display().to_string();
    let variables = vec![
        wire::Variable { key: "CI_JOB_ID".into(), value: id.into(), ..wire::Variable::default() },
        wire::Variable { key: "TOKEN".into(), value: "glpat-very-secret".into(), masked: true, file: false },
    ];
    wire::RunRequest {
        work_dir: dir.clone(),
        job: Some(wire::Job { variables, build_dir: dir }),
        timeout: Some(prost_types::Duration { seconds: 3600, nanos: 0 }),
        ..job(id, &format!("run:\n{steps}"))
    }
}

#[test]
fn a_job_with_functions_ends_before_its_deadline_with_its_exit_code_in_the_message() {
    let served = Served::with(&[]);
    let steps = "    - name: a\n      env: {T: \"${{ vars.TOKEN }}\"}\n      script: echo token $T; echo; printf 'section\\rheader\\n'\n    - name: b\n      script: exit 42\n";
    served.run(request(&served, "1042", steps)).unwrap();
    let lines = runner_lines(&served.log("1042"));
    assert_eq!(lines, ["Running step name=a", "token [MASKED]", "section\rheader", "Running step name=b"]);
    let status = served.status("1042");
    assert_eq!(
        (status.status(), status.error.as_ref().map(|error| error.kind())),
        (wire::step_result::Status::Failure, Some(wire::status_error::Kind::StepFailure))
    );
    // It takes what follows the first `exit status`, to the end.
    assert_eq!(status.message.split_once("exit status ").map(|(_, code)| code), Some("42"));
    served.close("1042");
}

#[test]
fn after_cancel_the_log_ends_and_then_the_status_says_cancelled() {
    let served = Served::with(&[]);
    served.run(request(&served, "1043", "    - name: a\n      script: echo ready; sleep 1000\n")).unwrap();
    let mut following = served.follow("1043");
    let before = following.until("ready");
    // On the same connection, while the log is open.
    served.wait(async {
        let mut cancel = tonic::Request::new(wire::CancelRequest { id: "1043".into() });
        cancel.set_timeout(Duration::from_secs(5));
        served.calls().cancel(cancel).await.unwrap()
    });
    let log = [before, following.rest().unwrap()].concat();
    assert_eq!(runner_lines(&log)[..2], ["Running step name=a", "ready"]);
    let status = served.status("1043");
    assert_eq!(status.status(), wire::step_result::Status::Cancelled);
    assert_eq!(status.error.map(|error| error.kind()), Some(wire::status_error::Kind::Cancelled));
    assert!(status.message.starts_with("job \"1043\" cancelled: "), "{}", status.message);
    served.close("1043");
    assert!(served.statuses("1043").is_err());
}
