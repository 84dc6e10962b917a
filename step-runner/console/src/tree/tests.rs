use super::*;

fn line(name: &str, status: Status, milliseconds: u64) -> Line {
    Line {
        name: name.to_owned(),
        status,
        failure: None,
        allowed_to_fail: false,
        duration: Some(Duration::from_millis(milliseconds)),
        details: Vec::new(),
    }
}

fn failed(name: &str, kind: FailureKind, message: &str) -> Line {
    let failure = Some(Failure { kind, message: message.to_owned() });
    Line { failure, ..line(name, Status::Failure, 700) }
}

/// The tree without styles. `parents[n]` is the parent of node n + 1.
fn drawn(lines: &[Line], parents: &[u32]) -> String {
    let children = |id: StepId| {
        let of = parents.iter().zip(1..).filter(|(parent, _)| **parent == id.0);
        of.map(|(_, child)| StepId(child)).collect()
    };
    let mut out = anstream::StripStream::new(Vec::new());
    write(&mut out, StepId::ROOT, &|id| lines[id.0 as usize].clone(), &children).unwrap();
    String::from_utf8(out.into_inner()).unwrap()
}

#[test]
fn a_tree_shows_what_ran_and_where_it_failed() {
    let lines = [
        failed("", FailureKind::StepFailure, "step \"test\": exec: exit status 1"),
        Line { details: vec!["path = \"/tmp/a\\nb\"".into()], ..line("build", Status::Success, 510) },
        line("compile", Status::Success, 400),
        line("link", Status::Success, 3),
        Line { allowed_to_fail: true, ..failed("lint", FailureKind::StepFailure, "exec: signal: killed") },
        failed("test", FailureKind::StepFailure, "step \"test\": exec: exit status 1"),
    ];
    insta::assert_snapshot!(drawn(&lines, &[0, 1, 1, 0, 0]), @r#"
    failed        700ms  job
    ok            510ms  ├─ build
                         │  │  path = "/tmp/a\nb"
    ok            400ms  │  ├─ compile
    ok            3.0ms  │  └─ link
    failed        700ms  ├─ lint: exec: signal: killed (allowed to fail)
    failed        700ms  └─ test: exec: exit status 1
    "#);
}

#[test]
fn every_outcome_has_a_word() {
    let lines = [
        Line { duration: None, ..line("a", Status::Running, 0) },
        Line { duration: None, ..line("b", Status::Unspecified, 0) },
        Line { status: Status::Cancelled, ..failed("c", FailureKind::Cancelled, "") },
        failed("d", FailureKind::Timeout, "timed out after 1m"),
        failed("e", FailureKind::Interrupted, "the job process died"),
        failed("f", FailureKind::Refused, "two\nlines\u{1b}[2J"),
    ];
    insta::assert_snapshot!(drawn(&lines, &[0, 0, 0, 0, 0]), @"
    running              a
    not begun            ├─ b
    cancelled     700ms  ├─ c
    timed out     700ms  ├─ d: timed out after 1m
    interrupted   700ms  ├─ e: the job process died
    refused       700ms  └─ f: two lines [2J
    ");
}

#[test]
fn durations_are_short() {
    let written = [0, 400, 9_940, 520_000, 999_700, 1_234_000, 125_000_000, 3_725_000_000].map(|us| in_words(Duration::from_micros(us)));
    assert_eq!(written, ["0.0ms", "0.4ms", "9.9ms", "520ms", "1.00s", "1.23s", "2m05s", "1h02m"]);
}

#[test]
fn steps_in_a_message_are_left_out() {
    assert_eq!(without_steps("step \"a\": step \"b\": exec: exit status 1"), "exec: exit status 1");
    assert_eq!(without_steps("step \"a"), "step \"a");
}
