use super::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use step_model::document::raw;
use step_model::document::{Body, StepDocument};
use step_model::masking::Secrets;
use step_model::plan::Provenance;
use step_model::reference::Digest;
use step_model::result::{ExecResult, Failure, FailureKind, ResultTree as _, Status, StepId, StepResult, Traffic, Usage};
use step_model::time::Timestamp;
use step_model::value::Value;

const ROOT: &str = "{}
---
env: {P: \"${{ env.R }}\"}
run:
  - name: greet
    step: ./greet
    inputs: {name: \"${{ env.N }}\"}
";
const GREET: &str =
    "spec: {inputs: {name: {type: string}, pin: {type: string, default: hunter2, sensitive: true}}, outputs: {o: {type: number}}}
---
exec: {command: [sh, -c, \"echo ${{ inputs.name }}\"], work_dir: \"${{ work_dir }}\"}
";

fn document(text: &str) -> Arc<StepDocument> {
    let reading = raw::read(text, "step.yml");
    reading.document.unwrap_or_else(|| panic!("{text}: {:?}", reading.problems))
}

fn values(entries: &[(&str, Value)]) -> Vec<(Arc<str>, Value)> {
    entries.iter().map(|(name, value)| ((*name).into(), value.clone())).collect()
}

fn env(entries: &[(&str, &str)]) -> BTreeMap<Arc<str>, Value> {
    entries.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn node(name: &str, status: Status) -> StepResult {
    StepResult {
        limits: Vec::new(),
        filtered: None,
        name: name.into(),
        step: None,
        document: None,
        inputs: Vec::new(),
        given_env: BTreeMap::new(),
        env: BTreeMap::new(),
        status,
        outputs: Vec::new(),
        exports: Vec::new(),
        exec: None,
        start: None,
        end: None,
        usage: None,
        digest: None,
        provenance: None,
        failure: None,
        allowed_to_fail: false,
        sensitive_outputs: Vec::new(),
        trace: None,
    }
}

/// What a run of `ROOT` leaves when `greet` exits with 7.
fn tree() -> OwnedTree {
    let root_document = document(ROOT);
    let Body::Sequence(sequence) = &root_document.definition.body else { panic!("a sequence") };
    let step = Arc::clone(&sequence.steps[0]);
    let failure = |message: &str| Some(Failure { kind: FailureKind::StepFailure, message: message.into() });
    let mut tree = OwnedTree::of(StepResult {
        document: Some(Arc::clone(&root_document)),
        given_env: env(&[("N", "you"), ("R", "r")]),
        env: env(&[("N", "you"), ("P", "r"), ("R", "r")]),
        failure: failure("step \"greet\": exec: exit status 7"),
        ..node("", Status::Failure)
    });
    let greet = StepResult {
        step: Some(step),
        document: Some(document(GREET)),
        inputs: values(&[("name", "you".into())]),
        given_env: env(&[("N", "you"), ("P", "r"), ("R", "r")]),
        env: env(&[("N", "you"), ("P", "r"), ("R", "r")]),
        outputs: values(&[("o", 1.5.into()), ("s", "hidden".into())]),
        exec: Some(ExecResult {
            command: ["sh", "-c", "echo you"].into_iter().map(Value::from).collect(),
            work_dir: "/w".into(),
            exit_code: 7,
            signal: None,
        }),
        start: Some(Timestamp::from_nanoseconds(1_700_000_000_120_000_000)),
        end: Some(Timestamp::from_nanoseconds(1_700_000_001_000_000_000)),
        trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok(),
        allowed_to_fail: true,
        usage: Some(Usage {
            cpu_user: Duration::from_millis(1500),
            cpu_system: Duration::from_secs(2),
            peak_memory: 5_000_000_000,
            disk: Some(Traffic { incoming: 512, outgoing: 1024 }),
            ..Usage::default()
        }),
        digest: Some(Digest::of(b"x")),
        provenance: Some(Provenance { commit: "0a1b".into(), dirty: true }),
        failure: failure("exec: exit status 7"),
        sensitive_outputs: vec!["s".into()],
        ..node("greet", Status::Failure)
    };
    tree.add(StepId::ROOT, greet);
    tree
}

fn redaction(secrets: &[&str]) -> Redaction {
    let mut known = Secrets::default();
    secrets.iter().for_each(|secret| known.add(secret).unwrap());
    Redaction::new(known, b"key".as_slice())
}

fn written(tree: &OwnedTree, format: Format, our_fields: bool, redaction: &Redaction) -> String {
    let mut out = Vec::new();
    write(&mut out, tree, StepId::ROOT, Writing { format, our_fields, redaction }).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(tree: &OwnedTree, our_fields: bool) -> String {
    written(tree, Format::Json, our_fields, &redaction(&[]))
}

#[test]
fn res_01_definitions_are_unexpanded_and_the_rest_is_expanded() {
    insta::assert_snapshot!(json(&tree(), false), @r#"{"step":{},"specDefinition":{"spec":{"spec":{"outputMethod":"outputs"}},"definition":{"type":"steps","steps":[{"name":"greet","step":{"protocol":"local","path":[".","greet"],"filename":"step.yml"},"inputs":{"name":"${{ env.N }}"}}],"env":{"P":"${{ env.R }}"}}},"status":"failure","env":{"N":"you","P":"r","R":"r"},"subStepResults":[{"step":{"name":"greet","step":{"protocol":"local","path":[".","greet"],"filename":"step.yml"},"env":{"N":"you","P":"r","R":"r"},"inputs":{"name":"you"}},"specDefinition":{"spec":{"spec":{"inputs":{"name":{"type":"string"},"pin":{"type":"string","default":"[MASKED string 3bafd2ef]","sensitive":true}},"outputs":{"o":{"type":"number"}},"outputMethod":"outputs"}},"definition":{"type":"exec","exec":{"command":["sh","-c","echo ${{ inputs.name }}"],"workDir":"${{ work_dir }}"}}},"status":"failure","outputs":{"o":1.5,"s":"[MASKED string e437c61d]"},"env":{"N":"you","P":"r","R":"r"},"execResult":{"command":["sh","-c","echo you"],"workDir":"/w","exitCode":7}}]}"#);
}

#[test]
fn our_fields_follow_those_of_the_original() {
    let all = json(&tree(), true);
    let ours = all.strip_prefix(&json(&tree(), false)[..all.find(r#""outputs":{"o":"#).unwrap()]);
    assert!(ours.is_some());
    insta::assert_snapshot!(all.split(r#""exitCode":7}"#).nth(1).unwrap(), @r#","startTime":"2023-11-14T22:13:20.12Z","endTime":"2023-11-14T22:13:21Z","usage":{"cpuUser":"1.5s","cpuSystem":"2s","peakMemory":"5000000000","diskRead":"512","diskWritten":"1024","means":"process"},"digest":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","failureKind":"step_failure","commit":"0a1b","dirty":true,"sensitiveOutputs":["s"],"failureMessage":"exec: exit status 7","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","failureAllowed":true}],"failureKind":"step_failure","failureMessage":"step \"greet\": exec: exit status 7"}"#);
}

#[test]
fn the_fields_are_those_of_the_message() {
    let description = ci_proto::message("StepResult").unwrap();
    let mut reader = serde_json::Deserializer::from_str(Box::leak(json(&tree(), true).into_boxed_str()));
    let message = prost_reflect::DynamicMessage::deserialize(description.clone(), &mut reader).unwrap();
    let theirs: ci_proto::step_runner::StepResult = message.transcode_to().unwrap();
    let expected = ci_proto::step_runner::StepResult { ..tree_message(&tree(), StepId::ROOT) };
    assert_eq!(theirs.sub_step_results[0].usage, expected.sub_step_results[0].usage);
    assert_eq!(theirs.sub_step_results[0].exec_result, expected.sub_step_results[0].exec_result);
    assert_eq!(theirs.sub_step_results[0].step, expected.sub_step_results[0].step);

    for format in [Format::Text, Format::PrettyText] {
        let text = written(&tree(), format, true, &redaction(&[]));
        let message = prost_reflect::DynamicMessage::parse_text_format(description.clone(), &text).unwrap();
        assert_eq!(message.transcode_to::<ci_proto::step_runner::StepResult>().unwrap(), theirs, "{text}");
    }
    let pretty = written(&tree(), Format::PrettyJson, true, &redaction(&[]));
    let compact: serde_json::Value = serde_json::from_str(&json(&tree(), true)).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&pretty).unwrap(), compact);
}

#[test]
fn json_can_be_written_for_people() {
    let tree = OwnedTree::of(StepResult { outputs: values(&[("a", Value::array([1.0.into()]))]), ..node("", Status::Success) });
    insta::assert_snapshot!(written(&tree, Format::PrettyJson, true, &redaction(&[])), @r#"
    {
      "step": {},
      "status": "success",
      "outputs": {
        "a": [
          1
        ]
      }
    }
    "#);
    insta::assert_snapshot!(written(&tree, Format::PrettyText, true, &redaction(&[])), @r#"
    step: {}
    status: success
    outputs: {
      key: "a"
      value: {
        list_value: {
          values: {
            number_value: 1
          }
        }
      }
    }
    "#);
}

#[test]
fn text_format_escapes_what_it_must() {
    let outputs = values(&[
        ("a", "tab\t \"quoted\" back\\slash\nbell\u{7} ä".into()),
        ("b", Value::object([("k", Value::array([Value::NULL, true.into(), 1e21.into()]))])),
    ]);
    let tree = OwnedTree::of(StepResult { outputs, ..node("", Status::Success) });
    insta::assert_snapshot!(written(&tree, Format::Text, false, &redaction(&[])), @r#"step:{} status:success outputs:{key:"a" value:{string_value:"tab\t \"quoted\" back\\slash\nbell\007 ä"}} outputs:{key:"b" value:{struct_value:{fields:{key:"k" value:{list_value:{values:{null_value:NULL_VALUE} values:{bool_value:true} values:{number_value:1e+21}}}}}}}"#);
}

#[test]
fn res_02_a_step_carries_inputs_and_environment() {
    let message = message_of(&tree().node(StepId(1)), step_model::document::Dialect::Steps, None);
    let step = message.step.unwrap();
    assert_eq!(step.inputs.keys().collect::<Vec<_>>(), ["name"]);
    assert_eq!(step.env["N"], "you");
    assert_eq!(step.name, "greet");
}

#[test]
fn res_04_the_outermost_has_no_name_and_no_reference() {
    let message = message_of(&tree().node(StepId::ROOT), step_model::document::Dialect::Steps, None);
    assert_eq!(message.step, Some(ci_proto::step_runner::Step::default()));
    assert!(json(&tree(), true).starts_with(r#"{"step":{},"specDefinition":{"spec":{"spec":{"outputMethod":"outputs"}},"#));
}

#[test]
fn a_process_that_never_started_has_the_code_minus_one_and_a_good_one_none() {
    let exec = |exit_code, signal| StepResult {
        exec: Some(ExecResult { command: vec!["x".into()], work_dir: "/w".into(), exit_code, signal }),
        ..node("", Status::Failure)
    };
    let written = json(&OwnedTree::of(exec(-1, Some(9))), true);
    assert_eq!(
        written,
        "{\"step\":{},\"status\":\"failure\",\"execResult\":{\"command\":[\"x\"],\"workDir\":\"/w\",\"exitCode\":-1},\"signal\":9}\n"
    );
    assert!(!json(&OwnedTree::of(exec(0, None)), true).contains("exitCode"));
}

#[test]
fn sensitive_values_are_replaced_everywhere() {
    let secret = || Value::from("correct horse").sensitive();
    let tree = OwnedTree::of(StepResult {
        document: Some(document(GREET)),
        inputs: values(&[("a", Value::object([("k", secret()), ("n", Value::from(1234.0).sensitive()), ("plain", "x".into())]))]),
        given_env: [("A".into(), secret())].into(),
        env: [("A".into(), secret()), ("URL".into(), "https://hunter2@host/?p=aHVudGVyMg".into()), ("B".into(), "hunter2".into())].into(),
        outputs: values(&[("o", secret())]),
        exports: values(&[("E", secret())]),
        exec: Some(ExecResult {
            command: vec!["curl".into(), secret(), "-H hunter2".into()],
            work_dir: secret(),
            exit_code: 1,
            signal: None,
        }),
        failure: Some(Failure { kind: FailureKind::StepFailure, message: "exec: no hunter2".into() }),
        ..node("s", Status::Failure)
    });
    let redaction = redaction(&["hunter2"]);
    for format in [Format::Json, Format::PrettyJson, Format::Text, Format::PrettyText] {
        let written = written(&tree, format, true, &redaction);
        for secret in ["horse", "hunter2", "aHVudGVyMg", "1234"] {
            assert!(!written.contains(secret), "{secret}: {written}");
        }
    }
    insta::assert_snapshot!(written(&tree, Format::Json, true, &redaction), @r#"{"step":{"name":"s","env":{"A":"[MASKED string 0ba59821]"},"inputs":{"a":{"k":"[MASKED string 0ba59821]","n":"[MASKED number 7252c8da]","plain":"x"}}},"specDefinition":{"spec":{"spec":{"inputs":{"name":{"type":"string"},"pin":{"type":"string","default":"[MASKED string 3bafd2ef]","sensitive":true}},"outputs":{"o":{"type":"number"}},"outputMethod":"outputs"}},"definition":{"type":"exec","exec":{"command":["sh","-c","echo ${{ inputs.name }}"],"workDir":"${{ work_dir }}"}}},"status":"failure","outputs":{"o":"[MASKED string 0ba59821]"},"exports":{"E":"[MASKED string 0ba59821]"},"env":{"A":"[MASKED string 0ba59821]","B":"[MASKED string 3bafd2ef]","URL":"https://[MASKED]@host/?p=[MASKED]"},"execResult":{"command":["curl","[MASKED string 0ba59821]","-H [MASKED]"],"workDir":"[MASKED string 0ba59821]","exitCode":1},"failureKind":"step_failure","failureMessage":"exec: no [MASKED]"}"#);
}

#[test]
fn names_digests_and_words_of_the_format_are_never_masked() {
    let tree = tree();
    let digest = Digest::of(b"x").to_string();
    let redaction = redaction(&["failure", "greet", "name", "0a1b", &digest[10..30], "step_failure", "exec"]);
    for (format, name) in [(Format::Json, r#""name":"greet""#), (Format::Text, r#"name:"greet""#)] {
        let written = written(&tree, format, true, &redaction);
        for kept in [name, "step_failure", "0a1b", &digest, "exitCode".trim_end_matches("Code")] {
            assert!(written.contains(kept), "{kept}: {written}");
        }
        assert!(!written.contains("./greet") && written.contains("[MASKED]: exit status 7"), "{written}");
    }
    assert_eq!(read(&written(&tree, Format::Json, true, &redaction)).unwrap().node(StepId(1)).status, Status::Failure);
}

#[test]
fn a_mark_tells_values_apart_only_with_the_key() {
    let (one, other) = (Redaction::new(Secrets::default(), b"1".as_slice()), Redaction::new(Secrets::default(), b"2".as_slice()));
    assert_eq!(one.mark(&"hunter2".into()), one.mark(&Value::from("hunter2").sensitive()));
    assert_ne!(one.mark(&"hunter2".into()), one.mark(&"hunter3".into()));
    assert_ne!(one.mark(&"hunter2".into()), other.mark(&"hunter2".into()));
    assert_ne!(one.mark(&"1".into()), one.mark(&1.0.into()));
    assert!(redaction::is_mark(&one.mark(&Value::array([]))));
    assert!(!redaction::is_mark("[MASKED]"));
}

#[test]
fn a_result_comes_back_as_it_was() {
    for our_fields in [true, false] {
        let first = json(&tree(), our_fields);
        let back = read(&first).unwrap();
        assert_eq!(json(&back, our_fields), first);
        assert_eq!(back.children(StepId::ROOT), [StepId(1)]);
        assert_eq!(&*back.node(StepId(1)).name, "greet");
    }
}

#[test]
fn what_was_redacted_stays_sensitive_when_it_is_read() {
    let first = OwnedTree::of(StepResult { outputs: values(&[("o", Value::from("secret").sensitive())]), ..node("", Status::Success) });
    let back = read(&json(&first, false)).unwrap().node(StepId::ROOT);
    assert!(back.outputs[0].1.is_sensitive());
}

#[test]
fn a_report_of_gitlab_is_read() {
    let report = r#"{"step":{},"specDefinition":{"spec":{"spec":{}},"definition":{"type":"steps","steps":[{"name":"x","step":{"protocol":"zip"}}]}},
        "status":"failure","env":{"A":"b"},"unheardOf":{"a":[1]},"sub_step_results":[{"step":{"step":{"protocol":"local","path":["."],
        "filename":"step.yml"},"env":{"A":"b"}},"status":"failure","execResult":{"command":["sh","-c","exit 7"],"workDir":"/w","exitCode":7}}]}"#;
    let tree = read(report).unwrap();
    assert_eq!(tree.len(), 2);
    let leaf = tree.node(StepId(1));
    assert_eq!((leaf.status, leaf.exec.unwrap().exit_code, leaf.failure), (Status::Failure, 7, None));
    assert!(leaf.step.is_some());
}

#[test]
fn what_is_no_result_says_why() {
    let why = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(why(""), "it is empty");
    assert_eq!(why(r#"{"step":{},"sta"#), "it is cut off: the JSON has no end (line 1, column 15)");
    assert_eq!(why("[]"), "it is not an object");
    assert_eq!(why(r#"{"id": 1}"#), "it has neither `status` nor `step`");
    assert_eq!(why(&"[".repeat(10_000)), "it nests deeper than 400 levels");
    let wrong = why(r#"{"status":"success","subStepResults":[{"status":"success","env":7}]}"#);
    assert!(wrong.starts_with("`result.subStepResults[0]` is not what a result has there: "), "{wrong}");
}

#[test]
fn sixty_four_levels_of_steps_with_deep_values_are_read() {
    let deep = (0..32).fold(Value::NULL, |inner, _| Value::object([("k", inner)]));
    let mut tree = OwnedTree::of(node("", Status::Success));
    let mut parent = StepId::ROOT;
    for _ in 0..64 {
        let inner = StepResult { outputs: values(&[("o", deep.clone())]), ..node("s", Status::Success) };
        parent = tree.add(parent, inner).unwrap();
    }
    let text = json(&tree, true);
    assert_eq!(read(&text).map(|tree| tree.len()), Ok(65));
}

/// A stream that is full, or closed, after some bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let redaction = redaction(&[]);
    let length = json(&tree(), true).len();
    for room in 0..length {
        for format in [Format::Json, Format::PrettyText] {
            let writing = Writing { format, our_fields: true, redaction: &redaction };
            let fault = write(&mut Full(room.min(length / 2)), &tree(), StepId::ROOT, writing).unwrap_err();
            assert_eq!(fault.kind(), std::io::ErrorKind::StorageFull);
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    /// A result of which any part is cut out, doubled or changed.
    #[test]
    fn a_damaged_result_is_safe_to_read(at in 0..2000_usize, length in 0..60_usize, put in "[\\[\\]{}\",:\\\\a0 ]{0,6}") {
        let mut text = json(&tree(), true);
        let start = at.min(text.len());
        text.replace_range(start..(start + length).min(text.len()), &put);
        if let Ok(tree) = read(&text) {
            proptest::prop_assert_eq!(read(&json(&tree, true)).map(|tree| tree.len()), Ok(tree.len()));
        }
    }
}
