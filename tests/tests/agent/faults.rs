//! What goes wrong around an agent: callers that vanish without a word, deadlines, fronts that leave, schedulers that starve.

use super::served::{Served, job, refusal, script_job};
use ci_proto::step_runner as wire;
use ci_proto::step_runner::failure::Kind;
use ci_proto::step_runner::step_result::Status as JobStatus;
use ci_tests::program::Invocation;
use ci_tests::skipped;
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tonic::Code;

/// The beginning of every HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[test]
fn connections_that_say_nothing_or_half_of_it_disturb_nobody() {
    let served = Served::raw();
    let connect = || UnixStream::connect(served.socket()).unwrap();
    // Nothing at all; a part of the greeting; the greeting, and no more is sent; a frame that is cut off.
    let silent = connect();
    let mut begun = connect();
    begun.write_all(&PREFACE[..10]).unwrap();
    let mut half = connect();
    half.write_all(PREFACE).unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    let mut torn = connect();
    torn.write_all(&[PREFACE, &[0, 0, 100, 1, 4, 0]].concat()).unwrap();
    served.run_script("1", "echo hello");
    assert_eq!(served.log_text("1"), "Running step \"s\"\nhello\n");
    // One that was half closed gets what is meant for it, and then the end.
    let mut answered = Vec::new();
    half.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    half.read_to_end(&mut answered).unwrap();
    drop((silent, begun, torn));
    served.run_script("2", "echo again");
    assert_eq!(served.ended("2").status(), JobStatus::Success);
}

#[test]
fn a_follower_that_vanishes_costs_the_job_nothing() {
    let served = Served::raw();
    served.run_script("1", "echo ready; until [ -e go-on ]; do sleep 0.01; done; seq 100000");
    let mut client = served.connect();
    let mut stream = served.wait(client.follow_logs(wire::FollowLogsRequest { id: "1".into(), offset: 0 })).unwrap().into_inner();
    served.wait(stream.message()).unwrap();
    // In the middle of a stream, without a word.
    drop((stream, client));
    served.workshop.file("work/go-on", "");
    assert!(served.log_text("1").ends_with("\n100000\n"));
    assert_eq!(served.status("1").status(), JobStatus::Success);
}

#[test]
fn a_job_ends_at_the_deadline_of_its_agent_and_callers_of_the_original_see_a_cancel() {
    let served = Served::with(&["--log", "raw", "--level", "0.12", "--job-timeout", "300ms", "--grace", "5s"]);
    served.run_script("1", "sleep 1000");
    let status = served.ended("1");
    assert_eq!((status.status(), status.failure_kind()), (JobStatus::Cancelled, Kind::Timeout));
    assert_eq!(status.message, "job \"1\" cancelled: step \"s\": exec: signal: terminated");
    assert_eq!(status.error.map(|error| error.kind()), Some(wire::status_error::Kind::Timeout));
    // The request's own limit goes before the agent's.
    let longer =
        wire::RunRequest { timeout: Some(prost_types::Duration { seconds: 60, nanos: 0 }), ..script_job("2", "sleep 0.5; echo done") };
    served.run(longer).unwrap();
    assert_eq!(served.ended("2").status(), JobStatus::Success);
}

#[test]
fn a_finished_job_is_forgotten_when_it_was_kept_long_enough() {
    let served = Served::with(&["--log", "raw", "--keep-finished", "200ms"]);
    served.run_script("1", "echo hello");
    // Whoever follows to the end sees all of it, however short it is kept.
    assert_eq!(served.log_text("1").lines().last(), Some("hello"));
    let directory = served.directory("1");
    while served.statuses("1").is_ok() || directory.exists() {
        std::thread::yield_now();
    }
    let (code, reason, text) = refusal(&served.statuses("1").unwrap_err());
    assert_eq!((code, reason.as_str(), text.as_str()), (Code::NotFound, "NO_SUCH_JOB", "no job with id \"1\""));
    served.run_script("1", "echo the id is free");
    served.close("1");
}

#[test]
fn a_front_that_is_told_to_leave_its_jobs_leaves_them_and_the_next_finds_them() {
    let mut served = Served::raw();
    served.run_script("1", "echo ready; until [ -e go-on ]; do sleep 0.01; done; echo done");
    served.follow("1").until("ready\n");
    served.front().signal(Signal::USR2);
    served.take_front().finish().exits(0);
    assert!(!served.socket().exists());
    served.start(&["--log", "raw"]);
    assert_eq!(served.status("1").status(), JobStatus::Running);
    served.workshop.file("work/go-on", "");
    assert_eq!(served.log_text("1"), "Running step \"s\"\nready\ndone\n");
}

#[test]
fn the_log_of_every_job_ends_under_a_real_time_scheduler() {
    let chrt = Path::new("/usr/bin/chrt");
    let may = chrt.exists() && Invocation::of(chrt, ["-f", "1", "true"]).finish().status.success();
    if !may {
        skipped::because("no real-time scheduling here: chrt of util-linux, and the right to it (CAP_SYS_NICE)");
        return;
    }
    let served = Served::raw();
    // The front, and every job process that it starts from now on.
    let fronts = std::fs::read_dir(format!("/proc/{}/task", served.pid())).unwrap();
    for task in fronts.flatten() {
        let task = task.file_name().to_string_lossy().into_owned();
        Invocation::of(chrt, ["-f", "-p", "1", &task]).finish().exits(0);
    }
    for number in 0..60 {
        let id = number.to_string();
        served.run_script(&id, "echo line; echo more >&2");
    }
    for number in 0..60 {
        let id = number.to_string();
        assert!(served.log_text(&id).contains("line\n"), "{id}");
        assert_eq!(served.status(&id).status(), JobStatus::Success, "{id}");
    }
}

#[test]
fn limits_of_a_request_hold_every_step_of_a_served_job() {
    let served = Served::raw();
    let limits = wire::Limits { pids: 50, memory: 64 << 20, no_network: true, ..wire::Limits::default() };
    let script = "head -c 300000000 /dev/zero | tail";
    let request = wire::RunRequest { limits: Some(limits), ..job("1", &format!("run: [{{name: s, script: {script}}}]\n")) };
    served.run(request).unwrap();
    let status = served.ended("1");
    assert_eq!((status.status(), status.failure_kind()), (JobStatus::Failure, Kind::StepFailure), "{status:?}");
    if !status.message.contains("out of memory (the limit is 64MiB)") {
        skipped::because("no control group may be made here");
    }
    let groups = std::fs::read_to_string(served.directory("1").join(".job/groups"));
    assert!(groups.is_err(), "the groups of a job that is over are gone: {groups:?}");
    let bad = wire::RunRequest { limits: Some(wire::Limits { pids: -1, ..wire::Limits::default() }), ..script_job("2", "true") };
    let (code, reason, text) = refusal(&served.run(bad).unwrap_err());
    assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "BAD_LIMITS"));
    assert!(text.contains("the limit `pids` is negative: -1"), "{text}");
}

#[test]
fn groups_of_a_job_whose_process_was_killed_are_removed_with_what_is_in_them() {
    let served = Served::raw();
    let limits = wire::Limits { pids: 50, ..wire::Limits::default() };
    // Without its environment nobody would know whose it is, but for the group.
    let script = "echo $PPID >job.pid; env -i setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >left; echo ready; wait";
    served.run(wire::RunRequest { limits: Some(limits), ..script_job("1", script) }).unwrap();
    served.follow("1").until("ready\n");
    let groups = std::fs::read(served.directory("1").join(".job/groups")).unwrap_or_default();
    let groups: Vec<String> = String::from_utf8_lossy(&groups).split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    let there = groups.iter().filter(|group| Path::new(group).exists()).count();
    if there == 0 {
        skipped::because("no control group may be made here");
        return;
    }
    let pid: i32 = served.workshop.read("work/job.pid").trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    assert_eq!(served.ended("1").failure_kind(), Kind::Interrupted);
    assert!(groups.iter().all(|group| !Path::new(group).exists()), "{groups:?}");
    let left = served.workshop.read("work/left");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", left.trim()));
    assert!(!stat.is_ok_and(|stat| !stat.contains(") Z ")), "{left} runs on");
}
