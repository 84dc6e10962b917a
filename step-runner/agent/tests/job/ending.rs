//! How processes end, and that none is left.

use crate::world::{Job, Outcome, runs, runtime};
use std::time::Duration;
use step_agent::job_process::{self, Ask};
use step_model::result::{FailureKind, Status, StepId};

/// Runs the job and asks for its end as soon as it writes something.
fn ended_by(job: &Job, ask: Ask) -> Outcome {
    job.run_with(move |_, _, asks| {
        let _ = asks.send(ask);
        Ok(())
    })
}

#[test]
fn exit_codes_and_signals_are_reported() {
    for code in [1, 7, 255] {
        assert_eq!(Job::exec(&["sh", "-c", &format!("exit {code}")]).run().message, format!("exec: exit status {code}"));
    }
    assert_eq!(Job::exec(&["sh", "-c", "kill -9 $$"]).run().message, "exec: signal: killed");
    let outcome = Job::exec(&["sh", "-c", "kill -SEGV $$"]).run();
    assert_eq!(outcome.message, "exec: signal: segmentation fault");
    assert_eq!(outcome.ended.run.result().headline(StepId::ROOT).signal, Some(11));
}

#[test]
fn what_a_step_has_used_is_reported() {
    let script = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; head -c 30000000 /dev/zero | tail -c 25000000 > /dev/null";
    let outcome = Job::exec(&["sh", "-c", script]).run().succeeded();
    let usage = outcome.ended.run.result().headline(StepId::ROOT).usage.unwrap();
    assert!(usage.cpu_user > Duration::ZERO && usage.peak_memory > 20_000_000, "{usage:?}");
}

#[test]
fn a_step_that_is_asked_to_end_may_clean_up() {
    let job = Job::script("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done");
    let outcome = ended_by(&job, Ask::End);
    assert_eq!((outcome.status, &*outcome.text_of_the_script()), (Status::Cancelled, "up\nbye\n"));
}

#[test]
fn a_step_that_ignores_being_asked_is_killed_after_the_grace_period() {
    let job = Job::script("trap '' TERM; echo $$ > pid; echo up; while :; do sleep 0.01; done");
    let job = job.changed(|job| job.grace_period = Duration::from_millis(100));
    assert_eq!(ended_by(&job, Ask::End).status, Status::Cancelled);
    assert!(!runs(&job.work_dir.join("pid")));
}

#[test]
fn a_job_that_must_end_now_is_killed() {
    let job = Job::script("trap '' TERM; echo $$ > pid; echo up; while :; do sleep 0.01; done");
    assert_eq!(ended_by(&job, Ask::EndNow).status, Status::Cancelled);
    assert!(!runs(&job.work_dir.join("pid")));
}

#[test]
fn a_step_over_its_time_is_asked_and_then_killed() {
    let job = Job::script("trap 'echo asked' TERM; while :; do sleep 0.01; done").changed(|job| {
        job.grace_period = Duration::from_millis(100);
        job.timeout = Some(Duration::from_millis(100));
    });
    let outcome = job.run();
    assert_eq!(outcome.ended.run.failure().unwrap().kind, FailureKind::Timeout);
    assert_eq!(outcome.text_of_the_script(), "asked\n");
}

#[test]
fn a_stopped_process_hears_that_it_is_to_end() {
    let job = Job::script("trap 'echo bye; exit 0' TERM; echo up; kill -STOP $$; echo never");
    let outcome = ended_by(&job, Ask::End);
    assert_eq!((outcome.status, outcome.text_of_the_script().replace("never\n", "")), (Status::Cancelled, "up\nbye\n".to_owned()));
}

#[test]
fn what_the_group_of_a_step_still_does_after_being_asked_belongs_to_the_step() {
    // The shell ends at once, its child a little later.
    let child = "trap 'sleep 0.1; echo child is done; exit' TERM; echo up; while :; do sleep 0.01; done";
    let job = Job::script(&format!("sh -c \"{child}\" & wait; echo never"));
    let outcome = ended_by(&job, Ask::End);
    assert_eq!(
        (&*outcome.text_of_the_script(), outcome.log.order[2..].join(", ")),
        ("up\nchild is done\n", "output a, end a, end ".to_owned())
    );
}

#[test]
fn the_group_of_a_step_is_killed_when_its_leader_has_gone_before() {
    let job = Job::script("sh -c \"trap '' TERM; echo \\$\\$ > pid; echo up; while :; do sleep 0.01; done\" & wait");
    let job = job.changed(|job| job.grace_period = Duration::from_millis(100));
    assert_eq!(ended_by(&job, Ask::End).status, Status::Cancelled);
    assert!(!runs(&job.work_dir.join("pid")));
}

#[test]
fn nothing_is_left_of_a_job_whatever_group_or_session_it_moved_to() {
    let daemon = "setsid sh -c 'sh -c \"echo \\$\\$ > daemon; exec sleep 1000\" & exit' & sh -c 'echo $$ > child; exec sleep 1000' &";
    let job = Job::scripts(&[daemon, "while [ ! -e daemon ] || [ ! -e child ]; do sleep 0.01; done"]);
    job.run().succeeded();
    assert!(!runs(&job.work_dir.join("daemon")) && !runs(&job.work_dir.join("child")));
}

#[test]
fn what_is_left_and_ignores_being_asked_is_killed() {
    let stubborn = "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; while :; do sleep 0.01; done' &";
    let job = Job::scripts(&[stubborn, "while [ ! -e daemon ]; do sleep 0.01; done"]);
    let job = job.changed(|job| job.grace_period = Duration::from_millis(50));
    job.run().succeeded();
    assert!(!runs(&job.work_dir.join("daemon")));
}

#[test]
fn what_is_left_may_clean_up_and_is_heard() {
    let server = "setsid sh -c 'trap \"echo shut down; exit\" TERM; touch up; while :; do sleep 0.01; done' &";
    let outcome = Job::scripts(&[server, "while [ ! -e up ]; do sleep 0.01; done"]).run().succeeded();
    assert_eq!(outcome.text_of_the_script(), "shut down\n");
}

#[test]
fn a_stopped_process_that_is_left_ends_too() {
    let job = Job::scripts(&["sh -c 'echo $$ > pid; kill -STOP $$' &", "while [ ! -s pid ]; do sleep 0.01; done"]);
    job.run().succeeded();
    assert!(!runs(&job.work_dir.join("pid")));
}

#[test]
fn orphans_that_end_while_the_job_runs_do_not_stay_as_zombies() {
    let outcome = Job::scripts(&[
        "for i in 1 2 3; do setsid true & done",
        "sleep 0.1",
        "true",
        &format!("ps -o stat= --ppid {}", std::process::id()),
    ]);
    let text = outcome.run().succeeded().text();
    assert!(!text.contains('Z'), "{text}");
}

#[test]
fn a_run_that_is_dropped_leaves_nothing() {
    let job = Job::script("echo $$ > pid; setsid sh -c 'echo $$ > daemon; exec sleep 1000' & sleep 1000");
    let (_asks, receiver) = tokio::sync::mpsc::unbounded_channel();
    runtime().block_on(async {
        let run = job_process::run(job.plan(), job.settings.clone(), Quiet, receiver);
        let up = async {
            while ["pid", "daemon"].iter().any(|file| std::fs::read(job.work_dir.join(file)).unwrap_or_default().is_empty()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = run => panic!("it ended by itself"),
            () = up => {}
        }
    });
    assert!(!runs(&job.work_dir.join("pid")) && !runs(&job.work_dir.join("daemon")));
}

struct Quiet;

impl job_process::Audience for Quiet {
    fn started(&mut self, _: StepId, _: &step_engine::run::Headline) {}
    fn output(&mut self, _: StepId, _: job_process::Stream, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
    fn said(&mut self, _: StepId, _: &str, _: bool) {}
    fn ended(&mut self, _: StepId, _: &step_engine::run::Headline, _: &[u8]) {}
}
