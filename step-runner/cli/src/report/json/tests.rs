use super::*;
use step_model::result::Usage;
use step_model::time::Timestamp;

#[derive(Debug, Default)]
struct Paper(Vec<u8>);

impl Surface for Paper {
    fn output(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
    fn say(&mut self, lines: &str) {
        panic!("{lines:?} is no JSON");
    }
    fn running(&mut self, _label: Option<&str>) {}
    fn tick(&mut self) {}
}

fn lines() -> Lines<Paper> {
    Lines::new(Paper::default())
}

fn told(lines: &Lines<Paper>) -> &str {
    std::str::from_utf8(&lines.surface.0).expect("JSON is UTF-8")
}

fn compile() -> Headline {
    Headline {
        name: "compile".into(),
        parent: Some(StepId(0)),
        depth: 1,
        what: Kind::Exec,
        status: Status::Running,
        failure: None,
        exit_code: None,
        signal: None,
        command: vec!["make".into()],
        work_dir: None,
        start: Some(Timestamp::from_nanoseconds(1_700_000_000_120_000_000)),
        end: None,
        usage: None,
        allowed_to_fail: false,
        limits: Vec::new(),
        filtered: None,
        trace: None,
    }
}

#[test]
fn every_event_is_a_line_with_a_version() {
    let mut lines = lines();
    let not_done = step_payload::NotDone { part: "cache", what: "no cache".into(), way_out: "fill it".into(), refused: false };
    lines.not_done(&not_done).expect("paper is patient");
    lines.note("the work tree is another commit", true).expect("paper is patient");
    let problem = diagnostic::Problem::error("unknown-key", "`envv` is not known", None).with_hint("did you mean `env`?");
    lines.problem("a/step.yml", &problem).expect("paper is patient");
    lines.started(StepId(1), &compile());
    lines.said(StepId(1), "Running step name=compile", false);
    lines.output(StepId(1), Stream::Output, "grüße\n".as_bytes()).expect("paper is patient");
    let failure = Failure { kind: FailureKind::StepFailure, message: "exec: exit status 2".into() };
    let ended = Headline {
        status: Status::Failure,
        failure: Some(failure.clone()),
        exit_code: Some(2),
        end: Some(Timestamp::from_nanoseconds(1_700_000_001_120_000_000)),
        usage: Some(Usage {
            cpu_user: Duration::from_millis(40),
            cpu_system: Duration::from_millis(2),
            peak_memory: 4096,
            ..Usage::default()
        }),
        ..compile()
    };
    lines.ended(StepId(1), &ended, b"not repeated");
    lines.ended_job(Status::Failure, Some(&failure), Some(StepId(1)), 1, Some(Duration::from_millis(1500))).expect("paper is patient");
    insta::assert_snapshot!(told(&lines), @r#"
    {"version":1,"event":"not_done","part":"cache","what":"no cache","way_out":"fill it","refused":false}
    {"version":1,"event":"note","message":"the work tree is another commit","warning":true}
    {"version":1,"event":"problem","verdict":"error","code":"unknown-key","file":"a/step.yml","message":"`envv` is not known","hint":"did you mean `env`?"}
    {"version":1,"event":"started","step":1,"parent":0,"name":"compile","path":"compile","kind":"exec","time":"2023-11-14T22:13:20.12Z"}
    {"version":1,"event":"said","step":1,"line":"Running step name=compile","warning":false}
    {"version":1,"event":"output","step":1,"stream":"stdout","text":"grüße\n"}
    {"version":1,"event":"ended","step":1,"name":"compile","path":"compile","status":"failure","exit_code":2,"failure":{"kind":"step_failure","message":"exec: exit status 2"},"start":"2023-11-14T22:13:20.12Z","end":"2023-11-14T22:13:21.12Z","cpu_seconds":0.042,"peak_memory_bytes":4096}
    {"version":1,"event":"finished","status":"failure","exit_code":1,"failed_step":1,"failure":{"kind":"step_failure","message":"exec: exit status 2"},"seconds":1.5}
    "#);
}

#[test]
fn a_job_that_never_ran_says_why() {
    let mut lines = lines();
    lines.error("no step specified", &["name one".into()]).expect("paper is patient");
    lines.finished("not run", 2).expect("paper is patient");
    insta::assert_snapshot!(told(&lines), @r#"
    {"version":1,"event":"error","message":"no step specified","hints":["name one"]}
    {"version":1,"event":"finished","status":"not run","exit_code":2}
    "#);
}

#[test]
fn a_character_that_is_split_over_pieces_stays_text() {
    let mut lines = lines();
    for byte in "aü€𝄞z".bytes() {
        lines.output(StepId(1), Stream::Both, &[byte]).expect("paper is patient");
    }
    let text: String = told(&lines)
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["text"].as_str().expect("text").to_owned())
        .collect();
    assert_eq!(text, "aü€𝄞z");
}

#[test]
fn what_is_no_text_is_kept_byte_by_byte() {
    let mut lines = lines();
    lines.output(StepId(1), Stream::Error, b"a\xff\xfeb").expect("paper is patient");
    lines.output(StepId(1), Stream::Output, b"\xe2\x82").expect("paper is patient");
    lines.ended(StepId(1), &compile(), b"");
    insta::assert_snapshot!(told(&lines), @r#"
    {"version":1,"event":"output","step":1,"stream":"stderr","base64":"Yf/+Yg=="}
    {"version":1,"event":"output","step":1,"stream":"stdout","base64":"4oI="}
    {"version":1,"event":"ended","step":1,"name":"compile","path":"compile","status":"running","start":"2023-11-14T22:13:20.12Z"}
    "#);
}

#[test]
fn the_beginning_of_a_character_is_told_from_strange_bytes() {
    assert_eq!(begun_character("é".as_bytes()), 0);
    assert_eq!(begun_character(b"a\xc3"), 1);
    assert_eq!(begun_character(b"\xf0\x9d\x84"), 3);
    assert_eq!(begun_character(b"\x80\x80\x80\x80"), 0);
    assert_eq!(begun_character(b"\xff"), 0);
    assert_eq!(begun_character(b""), 0);
}
