use super::*;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use step_model::document::{Action, AllowFailure, Body, ScriptLegacy, Step, StepDocument, When};
use step_model::expression::Template;
use step_model::request::Variable;

const STEPS: &str = "{}\\n---\\nrun:\\n  - {name: a, script: echo 1}\\n";

fn accepted(json: &str) -> RunRequest {
    match read(json) {
        Ok((request, warnings)) => {
            assert_eq!(warnings, [], "{json}");
            request
        }
        Err(problems) => panic!("{json}: {problems:?}"),
    }
}

/// Line, column and text of each problem.
fn refused(json: &str) -> Vec<String> {
    read(json).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn every_field_is_read() {
    let json = format!(
        r#"{{"id": "7", "workDir": "/w", "env": {{"A": "b"}}, "steps": "{STEPS}", "timeout": "90.5s", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "job": {{"buildDir": "/b", "variables": [{{"key": "K", "value": "v", "file": true}}, {{"key": "../p", "value": "", "masked": true}}]}}}}"#
    );
    let request = accepted(&json);
    assert_eq!((&*request.id, request.work_dir.as_deref(), request.build_dir.as_deref()), ("7", Some("/w"), Some("/b")));
    assert_eq!(request.env.into_iter().collect::<Vec<_>>(), [("A".into(), "b".into())]);
    assert_eq!(
        request.variables,
        [
            Variable { key: "K".into(), value: "v".into(), file: true, masked: false },
            Variable { key: "../p".into(), value: "".into(), file: false, masked: true },
        ]
    );
    assert_eq!(request.timeout, Some(Duration::from_millis(90_500)));
    assert!(matches!(&request.steps.definition.body, Body::Sequence(sequence) if &*sequence.steps[0].name == "a"));
}

#[test]
fn names_in_either_form_are_read_and_null_is_absent() {
    let json = format!(r#"{{"work_dir": "/w", "job": {{"build_dir": "/b", "variables": null}}, "env": null, "steps": "{STEPS}"}}"#);
    let request = accepted(&json);
    assert_eq!((request.work_dir.as_deref(), request.build_dir.as_deref()), (Some("/w"), Some("/b")));
    let both = refused(&format!(r#"{{"workDir": "/w", "work_dir": "/x", "steps": "{STEPS}"}}"#));
    assert_eq!(both, ["line 1, column 13: the field is given twice, as `workDir` and as `work_dir`"]);
}

#[test]
fn an_empty_id_is_fine_on_a_laptop() {
    assert_eq!(&*accepted(&format!(r#"{{"steps": "{STEPS}"}}"#)).id, "");
}

#[test]
fn unknown_fields_are_said_and_skipped() {
    let (request, warnings) = read(&format!(r#"{{"steps": "{STEPS}", "gracefulExit": {{"a": [1]}}, "timeuot": "1s"}}"#)).unwrap();
    assert_eq!(request.timeout, None);
    let said: Vec<_> = warnings.iter().map(|warning| (warning.message.as_str(), warning.hint.as_deref())).collect();
    assert_eq!(
        said,
        [
            ("the field `gracefulExit` is not known and has no effect", None),
            ("the field `timeuot` is not known and has no effect", Some("did you mean `timeout`?")),
        ]
    );
}

#[test]
fn ids_and_file_variables_that_leave_the_directory_are_refused() {
    for id in ["..", ".", "../evil", "a/b", "a\\\\b", "a\\u0000", "C:x"] {
        let problems = refused(&format!(r#"{{"id": "{id}", "steps": "{STEPS}"}}"#));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("line 1, column 8: the id "), "{problems:?}");
    }
    for key in ["", "..", "../../x", "C:\\\\x"] {
        let job = format!(r#"{{"variables": [{{"key": "OK", "file": true}}, {{"key": "{key}", "file": true}}]}}"#);
        let problems = refused(&format!(r#"{{"steps": "{STEPS}", "job": {job}}}"#));
        assert!(problems[0].contains("the file variable "), "{problems:?}");
    }
    assert_eq!(
        refused(&format!(r#"{{"id": "..", "steps": "{STEPS}"}}"#)),
        ["line 1, column 8: the id \"..\" cannot name a directory: it is a directory already"]
    );
}

#[test]
fn every_problem_is_found_at_once_and_has_its_place() {
    let json = r#"{
  "id": 7,
  "env": {"A=B": "x", "C": true},
  "job": {"variables": [{"key": "K", "value": 1}, 2]},
  "timeout": "1 hour",
  "policy": "AAA=",
  "steps": "spec: {inputs: {needed: {type: string}}}\n---\nrun:\n  - {name: a, step: '${{ ( }}'}\n"
}"#;
    insta::assert_snapshot!(refused(json).join("\n"), @r#"
    line 2, column 9: `id` must be a text, but is a number
    line 3, column 18: "A=B" cannot be the name of an environment variable
    line 3, column 28: `env.C` must be a text, but is a boolean
    line 4, column 47: `job.variables[0].value` must be a text, but is a number
    line 4, column 51: `job.variables[1]` must be an object, but is a number
    line 5, column 14: `timeout` must be a duration such as `3600s`, but is another text
    line 6, column 13: the request carries a policy, and policies cannot be applied here yet
    line 7, column 93: `steps` line 4: expected a value, found `}}`
    "#);
}

#[test]
fn a_problem_inside_a_text_is_placed_behind_its_escapes() {
    let json = "{\"steps\": \"{}\\n---\\nrun:\\n  - {name: a, env: {A: \\\"\\u00e4\\ud83d\\ude00\\\"}, step: ./x, inptus: {}}\"}";
    let (_, warnings) = read(json).map_err(|problems| panic!("{problems:?}")).unwrap();
    let spans: Vec<_> = warnings.iter().filter_map(|warning| warning.place.as_ref()).map(|place| &json[place.span.clone()]).collect();
    assert!(spans.contains(&"inptus"), "{spans:?} {warnings:?}");
    assert!(warnings.iter().any(|warning| warning.message.starts_with("`steps` line 4: ")), "{warnings:?}");
}

#[test]
fn bad_json_is_said_with_its_place() {
    assert_eq!(
        refused("{\"id\": \"7\", \"ste"),
        ["line 1, column 17: the request cannot be read: it is cut off: the JSON has no end (line 1, column 16)"]
    );
    assert_eq!(refused(""), ["the request cannot be read: it is empty"]);
    assert_eq!(refused(&"[".repeat(10_000)), ["the request cannot be read: it nests deeper than 100 levels"]);
    assert_eq!(refused("[]"), ["line 1, column 1: a run request must be an object, but is a list"]);
    let large = format!("{{\"steps\": \"{}\"}}", " ".repeat(MAXIMUM_SIZE));
    assert_eq!(refused(&large), ["the request has 64 MiB; at most 64 are read"]);
}

#[test]
fn what_cannot_be_done_is_refused_and_not_left_out() {
    assert_eq!(
        refused(&format!(r#"{{"steps": "{STEPS}", "policy": "e30"}}"#)),
        [r#"line 1, column 71: the request carries a policy, and policies cannot be applied here yet"#]
    );
    let plan = refused(r#"{"plan": "e30="}"#);
    assert_eq!(plan, ["line 1, column 10: the plan is damaged: it is no message of this kind"]);
    assert!(refused(&format!(r#"{{"steps": "{STEPS}", "jobSteps": {{}}}}"#))[0].contains("only one of `steps` and `jobSteps`"));
}

#[test]
fn a_timeout_of_zero_is_none_and_a_negative_one_is_refused() {
    let with = |timeout: &str| format!(r#"{{"steps": "{STEPS}", "timeout": "{timeout}"}}"#);
    assert_eq!(accepted(&with("0s")).timeout, None);
    assert_eq!(accepted(&with("0.000000001s")).timeout, Some(Duration::from_nanos(1)));
    assert!(refused(&with("-1s"))[0].ends_with("the timeout is negative or no duration"));
    assert!(refused(&with("-0.5s"))[0].ends_with("the timeout is negative or no duration"));
    for no_duration in ["1", "s", "1.s5", "1m", "1.0000000001s", "--1s", "+1s"] {
        assert!(refused(&with(no_duration))[0].contains("must be a duration such as `3600s`, but is another text"), "{no_duration}");
    }
}

/// What the service of the original says, by original.md S 2.3.
#[test]
fn a_refusal_has_the_words_of_the_original() {
    let said = |steps: &str| {
        let message = RunRequestMessage { id: "7".into(), steps: steps.into(), ..RunRequestMessage::default() };
        refusal(&message, &of_message(&message, Dialect::Steps).unwrap_err())
    };
    assert!(said("").starts_with("loading step: reading steps \"\": unmarshaling: decoding: EOF"), "{}", said(""));
    assert!(said("{}").starts_with("loading step: reading steps \"{}\": unmarshaling: "), "{}", said("{}"));
    assert_eq!(
        said("spec: {inputs: {a: {type: string}}}\n---\nexec: {command: [x]}\n"),
        "failed to start step runner service: failed to parse spec definition: input \"a\" required, but not defined"
    );
    let evil = RunRequestMessage { id: "../evil".into(), steps: "{}\n---\nexec: {command: [x]}\n".into(), ..RunRequestMessage::default() };
    assert_eq!(
        refusal(&evil, &of_message(&evil, Dialect::Steps).unwrap_err()),
        "initializing request: the id \"../evil\" cannot name a directory: it is a path"
    );
}

fn request(steps: StepDocument) -> RunRequest {
    RunRequest {
        plan: None,
        id: "7".into(),
        work_dir: Some("/w".into()),
        build_dir: None,
        env: [("A".into(), "b\n".into())].into(),
        variables: vec![
            Variable { key: "TOKEN".into(), value: "hunter2".into(), file: false, masked: true },
            Variable { key: "KEY".into(), value: "hunter3".into(), file: true, masked: false },
            Variable { key: "PLAIN".into(), value: "x".into(), file: false, masked: false },
        ],
        steps: Arc::new(steps),
        timeout: Some(Duration::from_millis(1500)),
        limits: step_model::limits::Limits::parse("cpu=0.5,memory=64MiB,network=none").expect("limits"),
        trace_parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok(),
    }
}

fn assert_round_trip(first: &RunRequest) {
    let json = to_json(first, Values::InClear);
    let back = accepted(&json);
    assert_eq!(to_json(&back, Values::InClear), json);
    assert_eq!(
        (&back.id, &back.work_dir, &back.env, &back.variables, back.timeout, back.trace_parent),
        (&first.id, &first.work_dir, &first.env, &first.variables, first.timeout, first.trace_parent)
    );
    let shape = |request: &RunRequest| crate::wire::definition::compile(&request.steps);
    assert_eq!(shape(&back), shape(first));
}

#[test]
fn a_request_is_written_and_read_again() {
    let script = Step::new("a", Action::Script(Template::parse("echo ${{ work_dir }}", Dialect::Functions).unwrap()));
    let request = request(StepDocument::of_steps(Dialect::Functions, [script]));
    assert_round_trip(&request);
    insta::assert_snapshot!(to_json(&request, Values::Named), @r#"{"id":"7","workDir":"/w","env":{"A":"b\n"},"job":{"variables":[{"key":"TOKEN","value":"[MASKED TOKEN]","masked":true},{"key":"KEY","value":"[MASKED KEY]","file":true},{"key":"PLAIN","value":"x"}]},"steps":"{}\n---\nrun:\n    - name: a\n      script: echo ${{ work_dir }}\n","timeout":"1.5s","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","limits":{"cpus":0.5,"memory":"67108864","noNetwork":true}}"#);
}

#[test]
fn what_no_file_can_say_travels_beside_the_text() {
    let legacy = ScriptLegacy { lines: vec!["make".into(), "${{ kept".into()], echo: true, debug_trace: true, job_status: true };
    let mut first = Step::new("script", Action::ScriptLegacy(legacy));
    first.env = vec![(Template::literal("E"), Template::literal("v"))];
    first.timeout = Some(Duration::from_secs(60));
    let mut after = Step::new("after", Action::Script(Template::literal("echo done")));
    (after.when, after.allow_failure) = (When::Always, AllowFailure::ExitCodes(vec![1, 137]));
    let mut any = Step::new("any", Action::Script(Template::literal("echo")));
    (any.when, any.allow_failure) = (When::OnFailure, AllowFailure::Any);
    let mut document = StepDocument::of_steps(Dialect::Functions, [first, after, any]);
    document.definition.env = vec![(Template::literal("CI"), Template::literal("true"))];
    let request = request(document);
    assert_round_trip(&request);

    let back = accepted(&to_json(&request, Values::InClear));
    let Body::Sequence(sequence) = &back.steps.definition.body else { panic!("a sequence") };
    let Body::Sequence(written) = &request.steps.definition.body else { panic!("a sequence") };
    let kept = |step: &Arc<Step>| (step.when, step.allow_failure.clone(), step.timeout, step.name.clone());
    assert_eq!(sequence.steps.iter().map(kept).collect::<Vec<_>>(), written.steps.iter().map(kept).collect::<Vec<_>>());
    assert_eq!(sequence.steps[0].action, written.steps[0].action);
    insta::assert_snapshot!(to_json(&request, Values::Named), @r#"{"id":"7","workDir":"/w","env":{"A":"b\n"},"job":{"variables":[{"key":"TOKEN","value":"[MASKED TOKEN]","masked":true},{"key":"KEY","value":"[MASKED KEY]","file":true},{"key":"PLAIN","value":"x"}]},"timeout":"1.5s","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","limits":{"cpus":0.5,"memory":"67108864","noNetwork":true},"jobSteps":{"steps":[{"step":{"name":"script","env":{"E":"v"}},"timeout":"60s","scriptLegacy":{"lines":["make","${{ kept"],"echo":true,"debugTrace":true,"jobStatus":true}},{"step":{"name":"after","step":{"protocol":"dist","path":["script"],"filename":"step.yml"},"inputs":{"script":"echo done"}},"when":"always","allowFailure":{"exitCodes":[1,137]}},{"step":{"name":"any","step":{"protocol":"dist","path":["script"],"filename":"step.yml"},"inputs":{"script":"echo"}},"when":"on_failure","allowFailure":{}}],"env":{"CI":"true"},"functionsDialect":true}}"#);
}

#[test]
fn faults_of_steps_that_no_file_wrote_are_found() {
    let faults = refused(r#"{"jobSteps": {"steps": [{"step": {"name": "a", "step": {"protocol": "zip"}}}, {"step": {"name": "b"}}]}}"#);
    assert_eq!(
        faults,
        [
            "line 1, column 25: step \"a\": unknown step reference protocol: zip",
            "line 1, column 79: step \"b\": unknown step reference protocol: step_reference_protocol_unspecified",
        ]
    );
    assert!(refused(r#"{"jobSteps": {"steps": 7}}"#)[0].contains("`jobSteps` is no list of steps: "));
}

#[test]
fn a_trace_that_is_none_is_a_warning() {
    let text = r#"{"id": "1", "steps": "{}\n---\nrun: [{name: a, script: x}]\n", "traceparent": "yes"}"#;
    let (request, warnings) = read(text).unwrap();
    assert_eq!(request.trace_parent, None);
    assert_eq!(warnings.iter().map(|warning| warning.code).collect::<Vec<_>>(), ["bad-traceparent"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_safe_to_read(text in "\\PC{0,60}") {
        let _ = read(&text);
    }

    /// A whole request of which any part is cut out, doubled or changed.
    #[test]
    fn a_damaged_request_is_safe_to_read(at in 0..400_usize, length in 0..40_usize, put in "[\\[\\]{}\",:\\\\a0 ]{0,6}") {
        let script = Step::new("a", Action::Script(Template::literal("echo")));
        let mut json = to_json(&request(StepDocument::of_steps(Dialect::Steps, [script])), Values::InClear);
        let start = at.min(json.len());
        json.replace_range(start..(start + length).min(json.len()), &put);
        if let Err(problems) = read(&json) {
            prop_assert!(problems.iter().any(Problem::is_error));
            for place in problems.iter().filter_map(|problem| problem.place.as_ref()) {
                prop_assert!(json.get(place.span.clone()).is_some());
            }
        }
    }

    #[test]
    fn a_part_of_a_text_is_found_in_its_json(before in "\\PC{0,12}", part in "\\PC{1,8}", after in "\\PC{0,12}", controls in "[\n\t\u{1}\"\\\\]{0,4}") {
        let text = format!("{controls}{before}{part}{controls}{after}");
        let json = serde_json::to_string(&text).unwrap();
        let start = controls.len() + before.len();
        let found = locate::in_string(&json, &(0..json.len()), &(start..start + part.len()));
        let written = format!("\"{}\"", &json[found]);
        prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), part);
    }
}
