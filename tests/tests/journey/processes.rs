//! Processes: nothing is left behind, nothing hangs, and output arrives whole.

use ci_tests::workshop::{Ends, Workshop};
use rustix::process::Signal;
use std::time::Duration;

fn is_alive(pid: &str) -> bool {
    // A zombie that nobody has reaped is dead too.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A grandchild that left its process group and session, and whose pipes are closed: only a subreaper or a cgroup finds it.
const RUNAWAY: &str = "setsid sh -c 'echo $$ >runaway.pid; exec sleep 1000' </dev/null >/dev/null 2>&1 & \
                       until [ -s runaway.pid ]; do :; done";

#[test]
fn a_grandchild_that_changed_its_session_ends_with_the_job() {
    let workshop = Workshop::new();
    workshop.file("job/step.yml", format!("{{}}\n---\nexec: {{command: [sh, -c, \"{RUNAWAY}\"]}}\n"));
    workshop.step_runner(&["run", "./job", "--grace", "1s"]).ends(0);
    let pid = workshop.read("runaway.pid");
    assert!(!is_alive(pid.trim()), "process {pid} lives on");
}

#[test]
fn nothing_is_left_after_ctrl_c() {
    let workshop = Workshop::new();
    workshop.file("job/step.yml", format!("{{}}\n---\nexec: {{command: [sh, -c, \"{RUNAWAY}; echo ready; sleep 1000\"]}}\n"));
    let mut run = workshop.step_runner(&["run", "./job", "--grace", "1s"]).start();
    run.wait_for("ready\n");
    run.signal(Signal::INT);
    run.finish().exits(130);
    let pid = workshop.read("runaway.pid");
    assert!(!is_alive(pid.trim()), "process {pid} lives on");
}

#[test]
fn a_server_that_a_step_leaves_running_serves_later_steps() {
    let workshop = Workshop::new();
    let job = "{}\n---\nrun:\n  - name: start\n    script: |\n      sleep 1000 >/dev/null 2>&1 & echo $! >server.pid\n  - name: use\n    script: kill -0 \"$(cat server.pid)\" && echo it serves\n";
    workshop.run_definition(job, &["--grace", "1s"]).ends(0).prints("it serves");
    let pid = workshop.read("server.pid");
    assert!(!is_alive(pid.trim()), "the server outlived the job");
}

#[test]
fn a_background_child_that_keeps_the_pipe_open_does_not_hang_the_run() {
    let workshop = Workshop::new();
    let job = "{}\n---\nrun:\n  - {name: a, script: \"sleep 1000 & echo started\"}\n  - {name: b, script: echo second}\n";
    let finished = workshop.run_definition(job, &["--grace", "500ms"]).ends(0).prints("started\n").prints("second\n");
    assert!(finished.elapsed < Duration::from_secs(20), "{finished}");
}

#[test]
fn binary_output_arrives_as_it_was_written() {
    let workshop = Workshop::new();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(300_000).collect();
    workshop.file("bytes", &bytes);
    let finished = workshop.run_definition("{}\n---\nexec: {command: [cat, bytes]}\n", &["--quiet"]).ends(0);
    assert!(finished.stdout == bytes, "{} of {} bytes, or others", finished.stdout.len(), bytes.len());
}

#[test]
fn an_endless_line_is_passed_on() {
    let workshop = Workshop::new();
    let job = "{}\n---\nexec: {command: [sh, -c, \"head -c 20000000 /dev/zero | tr '\\\\0' x\"]}\n";
    let finished = workshop.run_definition(job, &["--quiet"]).ends(0);
    assert_eq!(finished.stdout.len(), 20_000_000);
    assert!(finished.stdout.iter().all(|byte| *byte == b'x'));
}

#[test]
fn both_streams_keep_their_order() {
    let workshop = Workshop::new();
    let job = "{}\n---\nexec: {command: [sh, -c, \"for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done\"]}\n";
    let finished = workshop.run_definition(job, &["--quiet"]).ends(0);
    let expected: String = (1..10).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(finished.stdout(), expected);
}

#[test]
fn a_last_line_without_a_newline_is_kept() {
    let workshop = Workshop::new();
    let finished = workshop.run_definition("{}\n---\nexec: {command: [printf, no end]}\n", &["--quiet"]).ends(0);
    assert_eq!(finished.stdout(), "no end");
}

#[test]
fn a_step_reads_nothing_from_standard_input() {
    let workshop = Workshop::new();
    workshop.run_definition("{}\n---\nexec: {command: [cat]}\n", &[]).input("secret").ends(0);
}

#[test]
fn a_closed_standard_output_ends_the_job() {
    let workshop = Workshop::new();
    workshop.file("job/step.yml", "{}\n---\nexec: {command: [sh, -c, \"while echo line; do :; done\"]}\n");
    let finished = workshop
        .shell("{ step-runner run ./job --result r.json; echo \"code $?\" >&2; } | head -n 1; echo over")
        .limit(Duration::from_secs(30))
        .finish();
    assert!(finished.stdout().ends_with("over\n"), "{finished}");
    assert!(!finished.stderr().contains("panicked"), "{finished}");
    assert!(finished.stderr().contains("code 1\n"), "not a fault of ours: {finished}");
    assert!(workshop.result("r.json")["status"].is_string());
}

#[test]
fn a_full_standard_output_is_said() {
    let workshop = Workshop::new();
    workshop.file("job/step.yml", "{}\n---\nexec: {command: [echo, hello]}\n");
    let finished = workshop.shell("step-runner run ./job >/dev/full").finish();
    assert!(finished.status.code() == Some(70) && finished.stderr().contains("no space left on device"), "{finished}");
    assert!(!finished.stderr().contains("panicked"), "{finished}");
    let finished = workshop.shell("step-runner run ./job >&-").finish();
    assert!(!finished.stderr().contains("panicked"), "{finished}");
    let finished = workshop.shell("step-runner run ./job 2>&-").finish();
    assert_eq!(finished.status.code(), Some(0), "{finished}");
}

#[test]
fn a_step_gets_no_descriptor_that_its_runner_opened() {
    let workshop = Workshop::new();
    // What the caller of the test left open is there with and without a runner.
    let without = workshop.shell("ls /proc/self/fd | wc -l").ends(0).stdout();
    let job = "{}\n---\nexec: {command: [sh, -c, \"ls /proc/self/fd | wc -l\"]}\n";
    let with = workshop.run_definition(job, &["--quiet"]).ends(0).stdout();
    assert_eq!(with, without);
}

#[test]
fn a_step_starts_with_no_signal_blocked_and_pipes_that_end_it() {
    let workshop = Workshop::new();
    let job = "{}\n---\nexec: {command: [grep, -E, '^Sig(Blk|Ign)', /proc/self/status]}\n";
    let printed = workshop.run_definition(job, &["--quiet"]).ends(0).stdout();
    let mask = |name: &str| {
        let line = printed.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{printed}"));
        u64::from_str_radix(line.split_whitespace().last().unwrap_or_default(), 16).expect("a mask")
    };
    assert_eq!(mask("SigBlk"), 0, "{printed}");
    let pipe = 1 << (Signal::PIPE.as_raw() - 1);
    assert_eq!(mask("SigIgn") & pipe, 0, "{printed}");
}
