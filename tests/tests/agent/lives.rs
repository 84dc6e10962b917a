//! Jobs outlive their callers and their front; a front that leaves takes nobody with it.

use super::served::{Served, refusal, script_job};
use ci_proto::step_runner::step_result::Status as JobStatus;
use rustix::process::Signal;
use tonic::Code;

/// Writes a thousand numbered lines, and waits in the middle until it is told to go on.
const COUNTING: &str = "for i in $(seq 500); do echo line $i; done; touch half; until [ -e go-on ]; do sleep 0.01; done; \
                        for i in $(seq 501 1000); do echo line $i; done";

fn counted() -> String {
    let lines: String = (1..=1000).map(|i| format!("line {i}\n")).collect();
    format!("Running step \"s\"\n{lines}")
}

#[test]
fn a_front_that_is_killed_loses_no_byte_of_a_job_that_runs() {
    let mut served = Served::raw();
    let request = ci_proto::step_runner::RunRequest { owner_record: b"mine".to_vec(), ..script_job("1", COUNTING) };
    served.run(request).unwrap();
    let before = served.follow("1").until("line 500\n");
    served.front().signal(Signal::KILL);
    served.take_front().finish();
    served.start(&["--log", "raw"]);
    let status = served.status("1");
    assert_eq!((status.status(), status.owner_record.as_slice()), (JobStatus::Running, &b"mine"[..]));
    served.workshop.file("work/go-on", "");
    let rest = served.follow_from("1", before.len() as i64).unwrap().rest().unwrap();
    assert_eq!(String::from_utf8([before, rest].concat()).unwrap(), counted());
    assert_eq!(served.log_text("1"), counted());
    assert_eq!(served.status("1").status(), JobStatus::Success);
    served.close("1");
    assert!(!served.directory("1").exists());
}

#[test]
fn a_front_finds_jobs_that_ended_while_nobody_was_there() {
    let mut served = Served::raw();
    served.run_script("1", COUNTING);
    served.run_script("2", "exit 3");
    served.ended("2");
    served.follow("1").until("line 500\n");
    served.front().signal(Signal::KILL);
    served.take_front().finish();
    served.workshop.file("work/go-on", "");
    let lock = std::fs::File::open(served.directory("1").join(".job/lock")).unwrap();
    lock.lock().unwrap();
    drop(lock);
    served.start(&["--log", "raw"]);
    assert_eq!(served.log_text("1"), counted());
    assert_eq!(served.status("1").status(), JobStatus::Success);
    let second = served.status("2");
    assert_eq!((second.message.as_str(), second.exit_code), ("step \"s\": exec: exit status 3", 3));
    assert!(second.start_time.is_some() && second.end_time.is_some());
}

#[test]
fn a_second_front_takes_the_place_of_the_first_and_the_jobs_go_on() {
    let mut served = Served::raw();
    served.run_script("1", COUNTING);
    served.follow("1").until("line 500\n");
    served.invocation(&[]).finish().exits(70).says("step-runner.sock: bind: address already in use").says(" hint: `--replace`");
    let first = served.take_front();
    served.start(&["--replace"]);
    first.finish().exits(0);
    served.workshop.file("work/go-on", "");
    assert_eq!(served.log_text("1"), counted());
}

#[test]
fn cli_14_a_front_without_jobs_stops_cleanly_when_it_is_asked() {
    let mut served = Served::raw();
    assert_eq!(served.statuses("").unwrap(), []);
    served.front().signal(Signal::TERM);
    served.take_front().finish().exits(0).says("received 'terminated' signal; shutting down.");
    assert!(!served.socket().exists());
}

#[test]
fn a_front_that_was_asked_to_end_waits_for_its_jobs_and_takes_no_new_ones() {
    let mut served = Served::raw();
    let mut front = served.take_front();
    served.run_script("1", COUNTING);
    let mut following = served.follow("1");
    let before = following.until("line 500\n");
    front.signal(Signal::TERM);
    front.wait_for("shutting down.");
    let (code, reason, _) = refusal(&served.run(script_job("2", "true")).unwrap_err());
    assert_eq!((code, reason.as_str()), (Code::Unavailable, "LEAVING"));
    served.workshop.file("work/go-on", "");
    let rest = following.rest().unwrap();
    assert_eq!(String::from_utf8([before, rest].concat()).unwrap(), counted());
    assert_eq!(served.status("1").status(), JobStatus::Success, "who followed to the end may ask how it ended");
    front.finish().exits(0);
}

#[test]
fn a_second_signal_ends_the_jobs() {
    let mut served = Served::raw();
    served.run_script("1", "echo ready; sleep 1000");
    served.follow("1").until("ready");
    served.front().signal(Signal::TERM);
    served.front().wait_for("shutting down.");
    served.front().signal(Signal::INT);
    served.take_front().finish().exits(0);
}

#[test]
fn a_job_process_that_is_killed_is_an_interrupted_job_and_no_other_job_notices() {
    let served = Served::raw();
    served.run_script("other", COUNTING);
    served.run_script("1", "echo $PPID >job.pid; echo ready; printf torn; sleep 1000");
    served.follow("1").until("torn");
    let pid: i32 = served.workshop.read("work/job.pid").trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let log = served.log_text("1");
    assert!(log.starts_with("Running step \"s\"\nready\ntorn\n"), "the torn line is ended: {log}");
    let status = served.status("1");
    assert_eq!(status.status(), JobStatus::Failure);
    assert_eq!(status.failure_kind(), ci_proto::step_runner::failure::Kind::Interrupted);
    assert!(status.message.starts_with("step \"s\": interrupted"), "{}", status.message);
    assert!(!status.message.contains("exit status"));
    served.workshop.file("work/go-on", "");
    assert_eq!(served.log_text("other"), counted());
}

#[test]
fn cancel_asks_the_steps_to_end_and_the_log_ends() {
    let served = Served::raw();
    served.run_script("1", "trap 'echo cleaning up; exit 1' TERM; echo ready; sleep 1000 & wait");
    let mut following = served.follow("1");
    following.until("ready");
    served.cancel("1").unwrap();
    assert_eq!(String::from_utf8(following.rest().unwrap()).unwrap(), "cleaning up\n");
    let status = served.status("1");
    assert_eq!(status.status(), JobStatus::Cancelled);
    assert!(status.message.starts_with("job \"1\" cancelled: "), "{}", status.message);
    assert_eq!(refusal(&served.cancel("nope").unwrap_err()).0, Code::NotFound);
}
