use super::*;
use std::time::Duration;
use step_model::result::Usage;
use step_model::time::Timestamp;

fn headline(status: Status) -> Headline {
    Headline {
        name: "compile".into(),
        parent: None,
        depth: 1,
        what: Kind::Exec,
        status,
        failure: None,
        exit_code: None,
        signal: None,
        command: vec!["sh".into(), "-c".into(), "exit 7".into()],
        work_dir: Some("/builds/x".into()),
        start: Some(Timestamp::from_nanoseconds(0)),
        end: Some(Timestamp::from_nanoseconds(1_240_000_000)),
        usage: Some(Usage {
            cpu_user: Duration::from_millis(900),
            cpu_system: Duration::from_millis(20),
            peak_memory: 12_300_000,
            ..Usage::default()
        }),
        allowed_to_fail: false,
        limits: Vec::new(),
        filtered: None,
        trace: None,
    }
}

fn failed(kind: FailureKind, message: &str) -> Headline {
    Headline { failure: Some(Failure { kind, message: message.into() }), ..headline(Status::Failure) }
}

fn stripped(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn the_end_of_a_step_is_one_line() {
    let timeout = failed(FailureKind::Timeout, "step \"compile\": timed out after 2 s");
    let signal = Headline { signal: Some(9), exit_code: Some(-1), ..failed(FailureKind::StepFailure, "exec: signal: killed") };
    let code = Headline { exit_code: Some(7), ..failed(FailureKind::StepFailure, "exec: exit status 7") };
    let allowed = Headline { allowed_to_fail: true, ..code.clone() };
    let missing = failed(FailureKind::StepFailure, "exec: exec: \"nope\": executable file not found in $PATH");
    let passed_on = Headline { what: Kind::Sequence, ..failed(FailureKind::StepFailure, "step \"a\": exec: exit status 7") };
    let cancelled = failed(FailureKind::Cancelled, "");
    let lines = [headline(Status::Success), code, allowed, signal, missing, passed_on, timeout, cancelled];
    let text: String = lines.iter().map(|headline| stripped(&ended("build/compile", headline, false))).collect();
    insta::assert_snapshot!(text, @r#"
    step build/compile: ok in 1.24s
    step build/compile: failed in 1.24s: exit status 7
    step build/compile: failed in 1.24s: exit status 7 (allowed to fail)
    step build/compile: failed in 1.24s: signal 9 (SIGKILL)
    step build/compile: failed in 1.24s: exec: exec: "nope": executable file not found in $PATH
    step build/compile: failed in 1.24s
    step build/compile: timed out in 1.24s: timed out after 2 s
    step build/compile: cancelled in 1.24s
    "#);
    insta::assert_snapshot!(stripped(&ended("a", &headline(Status::Success), true)), @"step a: ok in 1.24s (cpu 920ms, memory 12.3 MB)");
}

#[test]
fn the_style_is_a_part_of_the_words() {
    let line = ended("a", &headline(Status::Success), false).replace('\x1b', "ESC");
    insta::assert_snapshot!(line, @"ESC[2mstepESC[0m ESC[1maESC[0mESC[2m:ESC[0m ESC[32mokESC[0m in 1.24s");
}

#[test]
fn a_failure_shows_command_directory_and_last_lines() {
    let code = Headline { exit_code: Some(7), ..failed(FailureKind::StepFailure, "exec: exit status 7") };
    let tail = b"\x1b[31mone\x1b[0m\r\n10%\r20%\r100%\ntwo\x07\xff\n\n";
    insta::assert_snapshot!(stripped(&failure("step \"build\": exec: exit status 7", Some(&circumstances("build/compile", &code, tail)))), @r#"
    error: step "build": exec: exit status 7
      step: build/compile
      command: sh -c 'exit 7'
      directory: /builds/x
      last lines:
        | one
        | 100%
        | two
    "#);
    let long: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    insta::assert_snapshot!(stripped(&circumstances("build/compile", &code, long.as_bytes())), @r"
    step: build/compile
    command: sh -c 'exit 7'
    directory: /builds/x
    last lines:
      | line 21
      | line 22
      | line 23
      | line 24
      | line 25
      | line 26
      | line 27
      | line 28
      | line 29
      | line 30
    ");
    let never_ran =
        Headline { command: Vec::new(), work_dir: None, ..failed(FailureKind::BadInput, "step \"a\": failed to load: no such file") };
    insta::assert_snapshot!(stripped(&circumstances("a", &never_ran, b"")), @"  step: a");
}

#[test]
fn a_script_is_shown_line_by_line() {
    let script =
        |entries: &[Value]| Headline { what: Kind::Script, command: entries.to_vec(), work_dir: None, ..headline(Status::Failure) };
    insta::assert_snapshot!(stripped(&command_and_directory(&script(&["make test".into()]))), @"  script: make test");
    let two = script(&["make\n\nmake\ttest\n".into(), Value::from("pw").sensitive()]);
    insta::assert_snapshot!(stripped(&command_and_directory(&two)), @r"
    script:
      | make
      | make\ttest
      | [MASKED]
    ");
    let long: String = (1..=12).map(|number| format!("line {number}\n")).collect();
    assert!(stripped(&command_and_directory(&script(&[long.into()]))).ends_with("    | line 10\n    | and 2 lines more\n"));
}

#[test]
fn what_is_said_around_a_job_is_one_line_each() {
    let part =
        NotDone { part: "cache", what: "the cache `k` is not fetched".into(), way_out: "fill `target` yourself".into(), refused: false };
    let said = [not_done(&part), asked(Signal::Interrupt, false), asked(Signal::Terminate, true), failure("no\tway", None)];
    insta::assert_snapshot!(stripped(&said.concat()), @r"
    not done: the cache `k` is not fetched; fill `target` yourself
    SIGINT: the steps are asked to end; once again, and they are killed
    SIGTERM: once more: the steps are killed
    error: no\tway
    ");
}

#[test]
fn a_command_can_be_pasted_and_hides_what_is_sensitive() {
    let words = ["go".into(), "it's".into(), "".into(), Value::from("pw").sensitive(), 2.0.into(), "a\nb".into(), "x=$Y".into()];
    insta::assert_snapshot!(command(&words), @r"go 'it'\''s' '' [MASKED] 2 'a\nb' 'x=$Y'");
}

#[test]
fn bytes_are_counted_in_powers_of_ten() {
    let told = [0, 999, 1_000, 1_449, 99_999, 100_000, 1_400_000, 17_000_000_000, u64::MAX];
    insta::assert_snapshot!(told.map(bytes).join(", "), @"0 B, 999 B, 1.0 kB, 1.4 kB, 99.9 kB, 100 kB, 1.4 MB, 17.0 GB, 18446744 TB");
}

#[test]
fn a_job_ends_with_one_line() {
    let failure = |kind| Failure { kind, message: String::new() };
    let took = Some(Duration::from_millis(1400));
    let text = [
        job(Status::Success, None, took, None),
        job(Status::Failure, Some(&failure(FailureKind::StepFailure)), took, None),
        job(Status::Failure, Some(&failure(FailureKind::Timeout)), took, None),
        job(Status::Cancelled, Some(&failure(FailureKind::Cancelled)), None, None),
    ];
    insta::assert_snapshot!(stripped(&text.concat()), @r"
    job succeeded in 1.40s
    job failed in 1.40s
    job timed out in 1.40s
    job was cancelled
    ");
}
