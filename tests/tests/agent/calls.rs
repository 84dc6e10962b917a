//! Run, follow, status, close, cancel: what each call does, and what it says when it cannot.

use super::served::{Served, job, refusal, script_job};
use ci_proto::step_runner::step_result::Status as JobStatus;
use tonic::Code;

#[test]
fn api_01_a_job_runs_to_its_end_and_close_leaves_nothing() {
    let served = Served::raw();
    served.run_script("1", "echo hi");
    assert_eq!(served.log_text("1"), "Running step \"s\"\nhi\n");
    let status = served.status("1");
    assert_eq!((status.status(), status.message.as_str()), (JobStatus::Success, ""));
    assert!(served.directory("1").is_dir());
    served.close("1");
    assert!(!served.directory("1").exists());
    assert_eq!(served.statuses("1").unwrap_err().message(), "no job with id \"1\"");
}

#[test]
fn blank_lines_carriage_returns_and_a_last_line_without_an_end_are_kept() {
    let served = Served::raw();
    served.run_script("1", r"printf 'a\n\n\nb\rc\n\nend'");
    assert_eq!(served.log_text("1"), "Running step \"s\"\na\n\n\nb\rc\n\nend");
}

#[test]
fn a_line_over_64_kib_passes() {
    let served = Served::raw();
    served.run_script("1", "head -c 300000 /dev/zero | tr '\\0' x; echo; echo after");
    let log = served.log_text("1");
    assert!(log.ends_with("x\nafter\n") && log.len() == "Running step \"s\"\n".len() + 300_000 + 1 + 6, "{} bytes", log.len());
}

#[test]
fn close_ends_a_running_job_with_all_its_processes_and_releases_its_followers() {
    let served = Served::raw();
    served.run_script("1", "sleep 1000 & echo $! >pid; echo ready; wait");
    let mut following = served.follow("1");
    following.until("ready");
    served.close("1");
    assert_eq!(following.rest().unwrap(), b"", "the stream ends, and ends well");
    let pid = served.workshop.read("work/pid");
    assert!(!is_alive(pid.trim()), "process {pid} lives on");
    assert!(!served.directory("1").exists());
    served.close("1");
}

#[test]
fn ids_that_are_no_name_are_refused() {
    let served = Served::raw();
    for id in ["", ".", "..", "a/b", "../evil", "a\\b", "a\0b", "C:x"] {
        let (code, reason, text) = refusal(&served.run(script_job(id, "true")).unwrap_err());
        assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "UNSAFE_ID"), "{id:?}: {text}");
        assert!(text.starts_with(&format!("initializing request: the id {id:?} cannot name a directory: ")), "{text}");
    }
    assert_eq!(served.statuses("").unwrap(), []);
}

#[test]
fn a_request_without_steps_is_refused_in_the_words_of_the_original() {
    let served = Served::raw();
    let (code, reason, text) =
        refusal(&served.run(ci_proto::step_runner::RunRequest { id: "1".into(), ..Default::default() }).unwrap_err());
    assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "BAD_STEPS"));
    assert!(text.starts_with("loading step: reading steps \"\": unmarshaling: decoding: EOF"), "{text}");
    assert!(!served.directory("1").exists());
    served.run(job("1", "run: [{name: s, script: echo now}]")).unwrap();
    assert_eq!(served.ended("1").status(), JobStatus::Success);
}

fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
