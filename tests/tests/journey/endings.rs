//! How a run ends: done, failed, timed out, cancelled, killed. Each has its exit code and leaves a whole result.

use ci_tests::workshop::{Ends, Workshop};
use rustix::process::Signal;
use std::time::Duration;

const SLEEPER: &str = "{}\n---\nexec: {command: [sh, -c, \"echo ready; sleep 1000\"]}\n";
/// Ignores being asked.
const STUBBORN: &str = "{}\n---\nexec: {command: [sh, -c, \"trap '' TERM INT HUP; echo ready; sleep 1000; sleep 1000\"]}\n";

#[test]
fn a_failed_step_gives_1_or_its_own_code_and_a_result() {
    let workshop = Workshop::new();
    let failing = "{}\n---\nexec: {command: [sh, -c, \"echo last words; exit 7\"]}\n";
    workshop.run_definition(failing, &["--result", "r.json"]).ends(1).says("exit status 7");
    let tree = workshop.result("r.json");
    assert_eq!(tree["status"], "failure");
    assert!(tree.to_string().contains("\"exitCode\":7"), "{tree}");
    workshop.run_definition(failing, &["--pass-exit-code"]).ends(7);
    assert!(workshop.left_behind().is_empty(), "{:?}", workshop.left_behind());
}

#[test]
fn a_time_limit_gives_124_and_a_result() {
    let workshop = Workshop::new();
    let finished = workshop.run_definition(SLEEPER, &["--timeout", "300ms", "--result", "r.json"]).ends(124);
    assert!(finished.elapsed < Duration::from_secs(20), "{finished}");
    assert_eq!(workshop.result("r.json")["status"], "failure");
    assert!(workshop.left_behind().is_empty(), "{:?}", workshop.left_behind());
}

#[test]
fn a_first_signal_asks_and_the_result_is_whole() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let workshop = Workshop::new();
        let mut run = workshop.run_definition(SLEEPER, &["--result", "r.json"]).start();
        run.wait_for("ready\n");
        run.signal(signal);
        let finished = run.finish().exits(code);
        assert!(finished.elapsed < Duration::from_secs(20), "the grace period was waited for although the step had ended\n{finished}");
        let tree = workshop.result("r.json");
        assert!(tree["status"].is_string(), "{tree}");
        assert!(workshop.left_behind().is_empty(), "{:?}", workshop.left_behind());
    }
}

#[test]
fn ctrl_c_in_a_terminal_reaches_the_whole_group_and_gives_130() {
    let workshop = Workshop::new();
    let mut run = workshop.run_definition(SLEEPER, &[]).start();
    run.wait_for("ready\n");
    run.signal_group(Signal::INT);
    run.finish().exits(130);
}

#[test]
fn a_second_signal_kills_at_once() {
    let workshop = Workshop::new();
    let mut run = workshop.run_definition(STUBBORN, &["--grace", "10m", "--result", "r.json"]).start();
    run.wait_for("ready\n");
    run.signal(Signal::INT);
    // Nothing shows that the first one has arrived but what it says, and that is the point: it says how to hurry.
    run.wait_for("again");
    run.signal(Signal::INT);
    run.finish().exits(130);
    assert!(workshop.result("r.json").to_string().contains("subStepResults"));
}

#[test]
fn a_step_that_ignores_being_asked_is_killed_after_the_grace_period() {
    let workshop = Workshop::new();
    let finished = workshop.run_definition(STUBBORN, &["--timeout", "200ms", "--grace", "300ms"]).ends(124);
    assert!(finished.elapsed < Duration::from_secs(20), "{finished}");
}

#[test]
fn a_step_that_a_signal_ends_is_reported_with_it() {
    let workshop = Workshop::new();
    workshop
        .run_definition("{}\n---\nexec: {command: [sh, -c, \"kill -9 $$\"]}\n", &["--result", "r.json"])
        .ends(1)
        .says("exec: signal: killed");
    let tree = workshop.result("r.json").to_string();
    assert!(tree.contains("\"exitCode\":-1") && tree.contains("\"signal\":9"), "{tree}");
}

/// Two steps, the second of which runs, beside something that the first has left in a session of its own.
const TWO: &str = "{}\n---\nrun:\n  - {name: first, script: \"setsid sleep 1000 >/dev/null 2>&1 & echo $! >left.pid\"}\n  \
                   - {name: second, script: \"echo $$ >step.pid; echo ready; sleep 1000\"}\n";

/// One that has ended, and that nobody has reaped, does not run.
fn runs(workshop: &Workshop, file: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", workshop.read(file).trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn shown(workshop: &Workshop) -> String {
    let directory = workshop.left_behind().into_iter().find(|name| name.starts_with("step-runner")).expect("the job's directory is left");
    workshop.step_runner(&["show", &format!("tmp/{directory}")]).ends(0).stdout()
}

#[test]
fn what_a_job_runs_ends_when_its_runner_is_killed_and_show_prints_what_the_journal_holds() {
    let workshop = Workshop::new();
    let _also_when_this_fails = EndsWhatIsLeft(&workshop);
    let mut run = workshop.run_definition(TWO, &[]).start();
    run.wait_for("ready\n");
    assert!(runs(&workshop, "left.pid") && runs(&workshop, "step.pid"));
    run.signal(Signal::KILL);
    // Its output ends when nobody holds it any more: the step is gone then too.
    let killed = run.finish();
    assert_eq!(killed.status.code(), None, "{killed}");
    until(|| !runs(&workshop, "left.pid") && !runs(&workshop, "step.pid"));
    until(|| watchers(&workshop).is_empty());
    let shown = shown(&workshop);
    assert!(
        shown.contains("first") && shown.contains("interrupted: `second` was running when the process that ran the job died"),
        "{shown}"
    );
}

#[test]
fn the_next_run_ends_what_a_killed_one_left_running_when_its_watcher_was_killed_too() {
    let workshop = Workshop::new();
    let _also_when_this_fails = EndsWhatIsLeft(&workshop);
    let mut run = workshop.run_definition(TWO, &[]).start();
    run.wait_for("ready\n");
    let watchers = watchers(&workshop);
    assert_eq!(watchers.len(), 1);
    watchers.into_iter().for_each(|pid| rustix::process::kill_process(pid, Signal::KILL).expect("it runs"));
    run.signal(Signal::KILL);
    run.finish();
    assert!(runs(&workshop, "left.pid") && runs(&workshop, "step.pid"), "nobody was there to end them");
    workshop.run_definition("{}\n---\nexec: {command: [\"true\"]}\n", &[]).ends(0);
    assert!(!runs(&workshop, "left.pid") && !runs(&workshop, "step.pid"));
    let shown = shown(&workshop);
    assert!(shown.contains("interrupted: `second` was running when the process that ran the job died"), "{shown}");
}

#[test]
fn nobody_watches_over_a_job_that_is_over() {
    let workshop = Workshop::new();
    workshop.run_definition("{}\n---\nexec: {command: [\"false\"]}\n", &["--keep"]).ends(1);
    until(|| watchers(&workshop).is_empty());
    let kept = workshop.left_behind().into_iter().find(|name| name.starts_with("step-runner")).expect("it was kept");
    assert!(!workshop.path(&format!("tmp/{kept}/lock")).exists());
}

/// Waits for what comes soon; a test that waits for ever is ended by its own limit.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

/// The processes of our program in the workshop that lead a session and have left its directory.
fn watchers(workshop: &Workshop) -> Vec<rustix::process::Pid> {
    let temporary = format!("TMPDIR={}", workshop.path("tmp").display());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let is_watcher = |process: &std::fs::DirEntry| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == temporary.as_bytes())
            && std::fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == ci_tests::program::path("STEP_RUNNER"))
            && std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == std::path::Path::new("/"))
    };
    let pid = |process: std::fs::DirEntry| rustix::process::Pid::from_raw(process.file_name().to_string_lossy().parse().ok()?);
    processes.filter(is_watcher).filter_map(pid).collect()
}

/// Ends processes whose working directory is the workshop: those that a killed runner could not end.
struct EndsWhatIsLeft<'a>(&'a Workshop);

impl Drop for EndsWhatIsLeft<'_> {
    fn drop(&mut self) {
        // A process may start another while the list is read: only an empty round is the last.
        while end_processes_in(self.0.dir()) > 0 {}
    }
}

fn end_processes_in(directory: &std::path::Path) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    processes
        .filter(|process| std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)))
        .filter_map(|process| rustix::process::Pid::from_raw(process.file_name().to_string_lossy().parse().ok()?))
        .filter(|pid| rustix::process::kill_process(*pid, Signal::KILL).is_ok())
        .count()
}

#[test]
fn usage_errors_give_2() {
    let workshop = Workshop::new();
    workshop.step_runner(&["run", "--no-such-flag"]).ends(2);
    workshop.step_runner(&["no-such-command"]).ends(2);
    workshop.step_runner(&["run"]).ends(2).says("no step specified");
    workshop.step_runner(&["run", "./x", "--timeout", "soon"]).ends(2);
    workshop.step_runner(&["run", "./x", "--step-results-format", "xml"]).ends(2).says("unsupported format: xml");
}

#[test]
fn a_result_that_cannot_be_written_is_a_fault_and_said() {
    let workshop = Workshop::new();
    let job = "{}\n---\nexec: {command: [echo, hello]}\n";
    workshop.run_definition(job, &["--result", "no/such/directory/r.json"]).ends(70).says("no/such/directory/r.json");
}

#[test]
fn every_program_has_a_version_a_completion_and_a_manual() {
    let workshop = Workshop::new();
    workshop.step_runner(&["--version"]).ends(0).prints("step-runner ");
    workshop.step_runner(&["completion", "bash"]).ends(0).prints("step-runner");
    workshop.step_runner(&["man"]).ends(0).prints(".TH");
}
