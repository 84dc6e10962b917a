//! What a person reads, whole: each text as it stands on standard error.

use crate::bench::Bench;
use snapbox::{Data, assert_data_eq, str};

/// Times differ from run to run.
fn said(stderr: &str) -> String {
    let mut told = String::new();
    for line in stderr.lines() {
        let words: Vec<String> = line.split(' ').map(without_time).collect();
        told.push_str(words.join(" ").trim_end());
        told.push('\n');
    }
    while told.contains("  TIME") {
        told = told.replace("  TIME", " TIME");
    }
    told
}

fn without_time(word: &str) -> String {
    let number = word.trim_end_matches([':', ',']);
    let is_time = number.starts_with(|c: char| c.is_ascii_digit()) && (number.ends_with("ms") || number.ends_with('s'));
    let is_time = is_time && number.trim_end_matches(['m', 's']).chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_time { word.replace(number, "TIME") } else { word.to_owned() }
}

fn text(text: String) -> Data {
    Data::text(text)
}

#[test]
fn a_job_that_fails_shows_where_and_why() {
    let bench = Bench::with_greet();
    bench.file("steps/outer/step.yml", "{}\n---\nrun:\n  - {name: inner, step: ../greet, inputs: {name: kim}}\n");
    bench.job("run:\n  - {name: outer, step: ../steps/outer}\n  - {name: breaks, script: 'echo the reason; exit 9'}\n  - {name: never, script: x}\n");
    let finished = bench.run(&["run", "./job"]).exits(1);
    assert_eq!(finished.stdout, "kim is 1 (hungry: false) and likes {\"color\":\"red\"}\nthe reason\n");
    let told = said(&finished.stderr).replace(&bench.path(".").canonicalize().expect("a directory").display().to_string(), "HERE");
    assert_data_eq!(
        text(told),
        str![[r#"
step outer: started
Running step name=inner
step outer/inner: ok in TIME
step outer: ok in TIME
Running step name=breaks
step breaks: failed in TIME: exit status 9
step ./job: failed in TIME

failed TIME  ./job
ok TIME  ├─ outer
ok TIME  │  └─ inner
failed TIME  └─ breaks: exec: exit status 9
error: step "breaks": exec: exit status 9
  step: breaks
  script: echo the reason; exit 9
  directory: HERE
  last lines:
    | the reason
job failed in TIME

"#]]
    );
}

#[test]
fn one_step_needs_no_tree() {
    let bench = Bench::with_greet();
    let finished = bench.run(&["run", "./steps/greet", "--verbose"]).exits(0);
    assert!(said(&finished.stderr).starts_with("journal: "), "{}", finished.stderr);
    let finished = bench.run(&["run", "./steps/greet"]).exits(0);
    assert_data_eq!(
        text(said(&finished.stderr)),
        str![[r#"
Running step name=
step ./steps/greet: ok in TIME
job succeeded in TIME

"#]]
    );
}

#[test]
fn a_plan_is_printed_and_nothing_runs() {
    let bench = Bench::new();
    bench.file("steps/greet/step.yml", "{}\n---\nexec: {command: [echo, \"${{ env.B }}\"]}\n");
    bench.job("run:\n  - {name: greet, step: ../steps/greet}\n  - {name: s, script: echo hi}\n");
    let finished = bench.run(&["run", "./job", "--dry-run", "--job", "A=1", "--env", "B=2"]).exits(0);
    let plan = finished.stdout.replace(&bench.path(".").canonicalize().expect("a directory").display().to_string(), "HERE");
    assert_data_eq!(
        text(plan),
        str![[r#"
steps:
  ./job: ./job
    greet: ../steps/greet
      exec: echo ${{ env.B }}
    s: $ echo hi
directory:
  HERE
job variables:
  A
environment:
  B
contacts:
  nothing

"#]]
    );
    assert_eq!(finished.stderr, "");
}

#[test]
fn every_event_is_a_line_of_json() {
    let bench = Bench::new();
    bench.job("run:\n  - {name: a, script: 'printf \"x\\377\"; echo e >&2'}\n");
    let finished = bench.run(&["run", "./job", "--output", "json"]).exits(0);
    let events: Vec<serde_json::Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(events.iter().all(|event| event["version"] == 1), "{}", finished.stdout);
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert!(of("output").iter().any(|event| event["stream"] == "stdout" && event["base64"] == "eP8="), "{}", finished.stdout);
    assert!(of("output").iter().any(|event| event["stream"] == "stderr" && event["text"] == "e\n"), "{}", finished.stdout);
    assert_eq!(of("finished")[0]["exit_code"], 0);
    let refused = bench.run(&["run", "./nope", "--output", "json"]).exits(3);
    let last: serde_json::Value = serde_json::from_str(refused.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!((last["event"].as_str(), last["exit_code"].as_u64()), (Some("finished"), Some(3)));
}

#[test]
fn problems_of_a_definition_are_underlined() {
    let bench = Bench::new();
    bench.job("envv: {A: b}\nexec: {command: [echo, hi]}\n");
    let finished = bench.run(&["run", "./job"]).exits(0);
    assert_data_eq!(
        text(said(&finished.stderr)),
        str![[r#"
warning: unknown key `envv` in a definition is ignored
 --> job/step.yml:3:1
  |
3 | envv: {A: b}
  | ^^^^
  |
  = hint: did you mean `env`?
Running step name=
step ./job: ok in TIME
job succeeded in TIME

"#]]
    );
}

#[test]
fn a_step_that_is_not_there_is_said_once_with_the_way_out() {
    let bench = Bench::new();
    let finished = bench.run(&["run", "./nope"]).exits(3);
    let directory = bench.path(".").canonicalize().expect("it is there");
    let said = said(&finished.stderr).replace(&*directory.to_string_lossy(), "DIR");
    assert_data_eq!(
        text(said),
        str![[r#"
error: failed to load: loading file "DIR/nope/step.yml": reading file: open DIR/nope/step.yml: no such file or directory
 hint: a step is a directory with a `func.yml` or a `step.yml` in it; `./nope` was looked for in DIR
job failed in TIME

"#]]
    );
}

#[test]
fn without_a_first_step_there_is_no_result() {
    let bench = Bench::new();
    bench.job("exec: {}\n");
    bench.file("old.json", "{}");
    bench.run(&["run", "./job", "--result", "old.json"]).exits(3);
    assert_eq!(bench.json("old.json"), serde_json::json!({}), "an earlier one stays");
    bench.run(&["run", "./job", "--result", "new.json"]).exits(3);
    assert!(!bench.path("new.json").exists());
}
