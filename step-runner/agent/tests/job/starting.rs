//! How a process begins, and why it may not.

use crate::world::Job;
use std::sync::Arc;
use step_model::document::{Action, Dialect, ScriptLegacy, Step, StepDocument};
use step_model::result::{FailureKind, Status};
use step_model::value::Value;

fn fault(job: &Job) -> String {
    let outcome = job.run();
    assert_eq!(outcome.status, Status::Failure);
    assert_eq!(outcome.ended.run.failure().unwrap().kind, FailureKind::StepFailure);
    assert_eq!(outcome.ended.run.result().headline(step_model::result::StepId::ROOT).signal, None);
    assert_eq!(std::fs::read_dir(job.files_dir()).unwrap().count(), 0, "no file stays");
    outcome.message
}

#[test]
fn run_26_a_program_that_is_not_in_the_path_of_the_step() {
    assert_eq!(fault(&Job::exec(&["nope-nope"])), "exec: exec: \"nope-nope\": executable file not found in $PATH");
    let empty = Job::exec(&["sh"]).changed(|job| job.env.clear());
    assert_eq!(fault(&empty), "exec: exec: \"sh\": executable file not found in $PATH");
    let relative = Job::exec(&["p"]).with_program("p", "").changed(|job| drop(job.env.insert("PATH".into(), Value::from("."))));
    assert_eq!(fault(&relative), "exec: exec: \"p\": cannot run executable found relative to current directory");
}

#[test]
fn a_program_that_cannot_be_executed() {
    assert_eq!(fault(&Job::exec(&["./p"]).with_file("p", "#!/bin/sh\n")), "exec: fork/exec ./p: permission denied");
    assert_eq!(fault(&Job::exec(&["./p"])), "exec: fork/exec ./p: no such file or directory");
    assert_eq!(fault(&Job::exec(&["./d"]).with_file("d/x", "")), "exec: fork/exec ./d: permission denied");
    assert_eq!(fault(&Job::exec(&["./p"]).with_program("p", "text")), "exec: fork/exec ./p: exec format error");
    let no_interpreter = Job::exec(&["./p"]).with_program("p", "#!/nope/python -x\n");
    let text = "exec: fork/exec ./p: no such file or directory (its first line names the interpreter \"/nope/python\", which is not there)";
    assert_eq!(fault(&no_interpreter), text);
    assert_eq!(fault(&Job::exec(&[""])), "exec: exec: no command");
}

#[test]
fn a_work_directory_that_is_none() {
    assert_eq!(fault(&Job::new("exec: {command: [pwd], work_dir: /nope}")), "exec: chdir /nope: no such file or directory");
    let file = Job::new("exec: {command: [pwd], work_dir: f}").with_file("f", "");
    assert_eq!(fault(&file), "exec: chdir /T/work/f: not a directory");
}

#[test]
fn arguments_that_the_system_does_not_take() {
    let long = "x".repeat(200_000);
    let text = "argument list too long (argument 2 has 200000 bytes, the system takes fewer than 131072)";
    assert_eq!(fault(&Job::exec(&["/bin/echo", "a", &long])), format!("exec: fork/exec /bin/echo: {text}"));
    let variable = Job::exec(&["/bin/echo"]).changed(|job| drop(job.env.insert("LONG".into(), Value::from(&*long))));
    let text = "argument list too long (the variable LONG has 200000 bytes, the system takes fewer than 131072)";
    assert_eq!(fault(&variable), format!("exec: fork/exec /bin/echo: {text}"));
    let zero = Job::exec(&["/bin/echo", "a\0b"]);
    assert_eq!(fault(&zero), "exec: fork/exec /bin/echo: invalid argument (argument 1 contains a zero byte)");
}

#[test]
fn a_process_gets_its_environment_and_nothing_else() {
    let job = Job::exec(&["/usr/bin/env"]).changed(|job| {
        job.env.clear();
        job.env.insert("B".into(), Value::from("two\nlines"));
        job.env.insert("A.b c".into(), Value::from(""));
    });
    let outcome = job.run().succeeded();
    let span = outcome.ended.run.result().headline(step_model::result::StepId::ROOT).trace.unwrap();
    // The word of the job is random.
    let text: String = outcome.text().split_inclusive('\n').filter(|line| !line.starts_with("STEP_RUNNER_JOB=")).collect();
    assert_eq!(text, format!("A.b c=\nB=two\nlines\nPWD={}\nTRACEPARENT={span}\n", job.work_dir.display()));
}

#[test]
fn a_process_has_an_empty_input_and_a_group_of_its_own() {
    let script = "cat; read -r line; echo \"read $?\"; set -- $(cat /proc/$$/stat); [ \"$5\" = $$ ] && echo group";
    assert_eq!(Job::script(script).run().succeeded().text(), "read 1\ngroup\n");
}

#[test]
fn a_program_is_found_in_the_path_of_the_step_and_sees_the_name_that_was_written() {
    let job = Job::exec(&["hello", "you"]).with_program("bin/hello", "#!/bin/sh\necho hello $1\n");
    let path = job.work_dir.join("bin");
    let job = job.changed(|job| drop(job.env.insert("PATH".into(), Value::from(path.to_str().unwrap()))));
    assert_eq!(job.run().succeeded().text(), "hello you\n");
    assert_eq!(Job::exec(&["sh", "-c", "echo $0"]).run().succeeded().text(), "sh\n");
}

#[test]
fn a_relative_work_directory_belongs_to_the_job() {
    let job = Job::new("exec: {command: [./p], work_dir: sub}").with_program("sub/p", "#!/bin/sh\npwd; echo $PWD\n");
    let sub = job.work_dir.join("sub");
    assert_eq!(job.run().succeeded().text(), format!("{0}\n{0}\n", sub.display()));
}

#[test]
fn run_11_a_script_runs_in_a_shell_without_errexit() {
    let script = "false; false | true; case $- in *e*) echo errexit;; esac; echo $0 | tr -d '\\n'; echo \" $PWD\"";
    let job = Job::script(script);
    let text = job.run().succeeded().text();
    assert!(
        ["/usr/local/bin/bash", "/usr/bin/bash", "/bin/bash"].iter().any(|shell| text == format!("{shell} {}\n", job.work_dir.display()))
    );
}

#[test]
fn a_script_of_any_length_runs() {
    for length in [131_000, 131_070, 131_080, 3_000_000] {
        let script = format!("x='{}'\necho ${{#x}} $0 $# \"$BASH_SOURCE\"; exit 3", "y".repeat(length - 60));
        let job = Job::script(&script);
        let outcome = job.run();
        assert!(outcome.text().starts_with(&format!("{} ", length - 60)), "{length}: {}", outcome.message);
        assert_eq!(outcome.message, "step \"a\": exec: exit status 3");
        assert_eq!(std::fs::read_dir(job.files_dir()).unwrap().count(), 0);
    }
}

fn legacy(lines: &[&str], echo: bool, debug_trace: bool) -> Job {
    let lines = lines.iter().map(|line| Arc::from(*line)).collect();
    let script = ScriptLegacy { lines, echo, debug_trace, ..ScriptLegacy::default() };
    Job::of(Arc::new(StepDocument::of_steps(Dialect::Functions, [Step::new("a", Action::ScriptLegacy(script))])))
}

#[test]
fn the_script_of_a_gitlab_job_shows_its_entries_and_stops_at_the_first_that_fails() {
    let outcome = legacy(&["X='it is'", "  echo \"$X\"\necho two  ", "(exit 5)", "echo never"], true, false).run();
    let expected = "$ X='it is'\n$ echo \"$X\" # collapsed multi-line command\nit is\ntwo\n$ (exit 5)\n";
    assert_eq!((&*outcome.text(), &*outcome.message), (expected, "step \"a\": exec: exit status 5"));
}

#[test]
fn the_script_of_a_gitlab_job_fails_with_any_part_of_a_pipe() {
    assert_eq!(legacy(&["false | true", "echo never"], false, false).run().message, "step \"a\": exec: exit status 1");
    assert_eq!(legacy(&["echo ok"], false, true).run().succeeded().text(), "+ echo ok\nok\n");
}
