use super::*;
use std::sync::Arc;
use step_model::document::raw;
use step_model::limits::Limits;
use step_model::reference::LocalReference;
use step_model::request::{RunRequest, Variable};
use step_payload::NotDone;

fn planned(text: &str, targets: Vec<Target>) -> Arc<PlannedDocument> {
    let reading = raw::read(text, "func.yml");
    let document = reading.document.unwrap_or_else(|| panic!("{:?}", reading.problems));
    Arc::new(PlannedDocument { targets, ..PlannedDocument::of_job(document, "/w".into()) })
}

fn job(root: &PlannedDocument, is_wrapped: bool) -> Job {
    let variable = |key: &str, file, masked| Variable { key: key.into(), value: "a-value".into(), file, masked };
    Job {
        request: RunRequest {
            id: "".into(),
            work_dir: None,
            build_dir: None,
            env: [("LANG".into(), "a-value".into())].into(),
            variables: vec![variable("TOKEN", false, true), variable("CERT", true, false), variable("CI_X", false, false)],
            steps: root.document.clone(),
            timeout: None,
            limits: Default::default(),
            trace_parent: None,
            plan: None,
        },
        title: "./job".into(),
        is_wrapped,
        definition: None,
        not_done: vec![NotDone { part: "cache", what: "no cache".into(), way_out: "fill it".into(), refused: false }],
        checks_out: false,
        commit: None,
        has_variables: false,
        missing: vec!["SECRET".into()],
        warnings: Vec::new(),
    }
}

fn here() -> Directories {
    Directories { work_dir: "/w".into(), build_dir: "/w".into(), note: None }
}

#[test]
fn a_plan_shows_what_would_run_and_no_values() {
    let compile = planned("{}\n---\nexec: {command: [go, build, \"${{ env.X }}\"]}\n", Vec::new());
    let build = planned("{}\n---\nrun:\n  - {name: compile, func: ./compile}\n", vec![Target::Document(compile.clone())]);
    let text = "{}\n---\nrun:\n  - {name: build, func: ./build}\n  - {name: test, script: \"set -e\\nmake test\\n\"}\n  - {name: later, func: ./later}\n  - {name: far, func: host.example/a/b@v1}\n  - {name: dynamic, func: \"${{ env.STEP }}\"}\n";
    let targets = vec![
        Target::Document(build),
        Target::Script,
        Target::Hole { seen: Some(compile) },
        Target::Hole { seen: None },
        Target::Hole { seen: None },
    ];
    let root = planned(text, targets);
    let plan = of(&job(&root, false), &root, &here(), Limits::default()).to_string();
    assert!(!plan.contains("a-value"), "{plan}");
    insta::assert_snapshot!(plan, @r"
    steps:
      build: ./build
        compile: ./compile
          exec: go build ${{ env.X }}
      test: $ set -e; make test
      later: ./later (as it is now; read again when the run reaches it)
        exec: go build ${{ env.X }}
      far: https://host.example/a/b@v1 steps (read when the run reaches it)
      dynamic: ${{ env.STEP }} (read when the run reaches it)
    directory:
      /w
    job variables:
      CERT (file)
      CI_X
      TOKEN (masked)
    environment:
      LANG
    missing values:
      SECRET
    not done here:
      no cache; fill it
    contacts:
      https://host.example/a/b@v1 steps
    ");
}

#[test]
fn the_level_that_nobody_wrote_is_not_shown() {
    let greet = planned("{}\n---\nexec: {command: [echo, hi]}\n", Vec::new());
    let reference = StepReference::Local(LocalReference { path: vec![".".into(), "greet".into()], file: None });
    let step = step_model::document::Step::new("", Action::Reference(reference));
    let root = PlannedDocument {
        document: Arc::new(StepDocument::of_steps(step_model::document::Dialect::Functions, [step])),
        targets: vec![Target::Document(greet.clone())],
        ..(*greet).clone()
    };
    let mut job = job(&root, true);
    job.request.variables.clear();
    job.request.env.clear();
    job.not_done.clear();
    job.missing.clear();
    insta::assert_snapshot!(of(&job, &root, &here(), Limits::default()), @r"
    steps:
      ./job: ./greet
        exec: echo hi
    directory:
      /w
    contacts:
      nothing
    ");
}

#[test]
fn run_20_an_exec_is_described_by_its_command() {
    let root = planned("{}\n---\nexec: {command: [go, run, .]}\n", Vec::new());
    assert!(of(&job(&root, false), &root, &here(), Limits::default()).to_string().starts_with("steps:\n  exec: go run .\n"));
}

#[test]
fn programs_get_the_plan_as_fields() {
    let compile = planned("{}\n---\nexec: {command: [go, build]}\n", Vec::new());
    let text = "{}\n---\nrun:\n  - {name: first, func: ./compile}\n  - {name: again, func: ./compile}\n  - {name: far, func: \"${{ env.STEP }}\"}\n";
    let targets = vec![Target::Document(compile.clone()), Target::Hole { seen: Some(compile) }, Target::Hole { seen: None }];
    let root = planned(text, targets);
    let plan = serde_json::to_value(of(&job(&root, false), &root, &here(), Limits::default())).expect("it is plain data");
    let steps = serde_json::json!([
        {"name": "first", "action": "./compile", "read": "now", "command": ["go", "build"]},
        {"name": "again", "action": "./compile", "read": "now_and_again", "command": ["go", "build"]},
        {"name": "far", "action": "${{ env.STEP }}", "read": "later"},
    ]);
    assert_eq!(plan["steps"], steps);
    assert_eq!(plan["variables"][0], serde_json::json!({"name": "CERT", "file": true, "masked": false}));
    assert_eq!(plan["not_done"], serde_json::json!([{"part": "cache", "what": "no cache", "way_out": "fill it"}]));
    assert_eq!(plan["contacts"], serde_json::json!([]));
}
