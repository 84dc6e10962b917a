use super::*;
use step_model::result::{Failure, FailureKind};
use step_model::time::Timestamp;

/// Everything in order, with what went to standard output in braces.
#[derive(Debug, Default)]
struct Paper(String);

impl Surface for Paper {
    fn output(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.push_str(&format!("{{{}}}\n", String::from_utf8_lossy(bytes).escape_debug()));
        Ok(())
    }
    fn say(&mut self, lines: &str) {
        self.0.push_str(&anstream::adapter::strip_str(lines).to_string());
    }
    fn running(&mut self, label: Option<&str>) {
        self.0.push_str(&format!("[{}]\n", label.unwrap_or_default()));
    }
    fn tick(&mut self) {}
}

fn step(name: &str, parent: Option<u32>, what: Kind) -> Headline {
    Headline {
        name: name.into(),
        parent: parent.map(StepId),
        depth: 0,
        what,
        status: Status::Running,
        failure: None,
        exit_code: None,
        signal: None,
        command: vec!["make".into()],
        work_dir: Some("/w".into()),
        start: Some(Timestamp::from_nanoseconds(0)),
        end: None,
        usage: None,
        allowed_to_fail: false,
        limits: Vec::new(),
        filtered: None,
        trace: None,
    }
}

fn done(headline: &Headline) -> Headline {
    Headline { status: Status::Success, end: Some(Timestamp::from_nanoseconds(2_000_000)), ..headline.clone() }
}

fn failed(headline: &Headline, code: i32) -> Headline {
    let failure = Failure { kind: FailureKind::StepFailure, message: format!("exec: exit status {code}") };
    Headline { status: Status::Failure, failure: Some(failure), exit_code: Some(code), ..done(headline) }
}

/// A nested job whose last step fails.
fn play(talk: Talk) -> Text<Paper> {
    let mut text = Text::new(Paper::default(), talk, Asked::default());
    let root = step("", None, Kind::Sequence);
    let build = step("build", Some(0), Kind::Sequence);
    let compile = step("compile", Some(1), Kind::Exec);
    let test = step("test", Some(0), Kind::Script);
    text.started(StepId(0), &root);
    text.started(StepId(1), &build);
    text.started(StepId(2), &compile);
    text.said(StepId(2), "Running step name=compile", false);
    text.output(StepId(2), Stream::Both, b"cc\xff\n").expect("paper is patient");
    text.ended(StepId(2), &done(&compile), b"cc\n");
    text.ended(StepId(1), &done(&build), b"");
    text.started(StepId(3), &test);
    text.said(StepId(3), "`vars.X` is not declared", true);
    text.ended(StepId(3), &failed(&test, 2), b"one\ntwo\n");
    text.ended(StepId(0), &failed(&root, 2), b"");
    text
}

#[test]
fn nesting_is_told_by_paths() {
    insta::assert_snapshot!(play(Talk::Normal).surface.0, @r"
    step build: started
    [build]
    [build/compile]
    Running step name=compile
    {cc�\n}
    step build/compile: ok in 2.0ms
    [build]
    step build: ok in 2.0ms
    []
    [test]
    warning: `vars.X` is not declared
    step test: failed in 2.0ms: exit status 2
    []
    ");
}

#[test]
fn quiet_leaves_the_output_alone() {
    insta::assert_snapshot!(play(Talk::Quiet).surface.0, @r"
    [build]
    [build/compile]
    {cc�\n}
    [build]
    []
    [test]
    []
    ");
}

#[test]
fn a_failure_is_kept_for_the_end() {
    let text = play(Talk::Quiet);
    let failure = text.failure_of(StepId(3)).expect("a failure");
    insta::assert_snapshot!(anstream::adapter::strip_str(failure).to_string(), @r"
    step: test
    script: make
    directory: /w
    last lines:
      | one
      | two
    ");
    assert_eq!(text.failure_of(StepId(2)), None);
}

#[test]
fn the_step_without_a_name_is_called_as_it_was_typed() {
    let mut text = Text::new(Paper::default(), Talk::Normal, Asked::default());
    text.set_title("./greet");
    let greet = step("", Some(0), Kind::Sequence);
    let hello = step("hello", Some(1), Kind::Exec);
    text.started(StepId(0), &step("", None, Kind::Sequence));
    text.started(StepId(1), &greet);
    text.started(StepId(2), &hello);
    text.ended(StepId(2), &done(&hello), b"");
    text.ended(StepId(1), &done(&greet), b"");
    insta::assert_snapshot!(text.surface.0, @r"
    [./greet]
    [hello]
    step hello: ok in 2.0ms
    [./greet]
    step ./greet: ok in 2.0ms
    []
    ");
}
