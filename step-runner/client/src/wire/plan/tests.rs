//! Plans on their way: what is written is read again, and nothing else is.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use step_model::document::{Action, AllowFailure, Body, Dialect, ScriptLegacy, Step, StepDocument, ValueTemplate, When, raw};
use step_model::expression::Template;
use step_model::plan::{HandedOver, Level, Places, PlannedDocument, Provenance, Target};
use step_model::value::Value;

const FUNCTION: &str = r#"
spec:
  inputs:
    who: {type: string, default: world, description: whom}
    list: {type: array, template: true, default: []}
    pin: {type: number, default: 1.5, sensitive: true}
  outputs: {said: {type: string, default: nothing}}
---
env: {A: "${{ inputs.who }}", "${{ 'B' }}": "\\${{ plain"}
exec: {command: [greet, "${{ inputs.who }}", "a ${{ vars.X }} b"], work_dir: "${{ func_dir }}"}
"#;

const SEQUENCE: &str = r#"
spec: {outputs: delegate}
---
run:
  - {name: one, func: ./greet, inputs: {who: "${{ vars.N }}", list: [1, {a: "${{ env.B }}", b: null}], "${{ 'pin' }}": 2}}
  - {name: two, script: "echo ${{ steps.one.outputs.said }}", env: {C: 1.10}}
  - {name: three, func: registry.example/a/b:1 dir/func.yml}
  - {name: four, func: "https://host.example/p@v1"}
  - {name: five, func: builtin://docker, inputs: {image: x}}
  - {name: six, func: "./${{ vars.DIR }}"}
outputs: {o: "${{ steps.one.outputs.said }}"}
delegate: one
"#;

fn document(text: &str, name: &str) -> Arc<StepDocument> {
    let reading = raw::read(text, name);
    let mut document = (*reading.document.unwrap_or_else(|| panic!("{:?}", reading.problems))).clone();
    if let Body::Sequence(sequence) = &mut document.definition.body {
        // Places are those of a text that does not travel.
        sequence.steps.iter_mut().for_each(|step| Arc::make_mut(step).place = None);
    }
    Arc::new(document)
}

fn values(pairs: &[(&str, Value)]) -> BTreeMap<Arc<str>, Value> {
    pairs.iter().map(|(name, value)| ((*name).into(), value.clone())).collect()
}

fn plan() -> Plan {
    let leaf = PlannedDocument {
        file: "func.yml".into(),
        digest: Some(Digest::of(b"leaf")),
        provenance: Some(Provenance { commit: "0a1b".into(), dirty: true }),
        ..PlannedDocument::of_job(document(FUNCTION, "func.yml"), "/w/greet".into())
    };
    let leaf = Arc::new(leaf);
    let hole = || Target::Hole { seen: None };
    let targets = vec![Target::Document(Arc::clone(&leaf)), Target::Script, hole(), hole(), hole(), hole()];
    let mut inner = (*document(SEQUENCE, "func.yml")).clone();
    let Body::Sequence(sequence) = &mut inner.definition.body else { panic!("a sequence") };
    let legacy = ScriptLegacy { lines: vec!["echo '${{ raw }}'".into()], echo: true, debug_trace: false, job_status: true };
    let mut step = Step::new("legacy", Action::ScriptLegacy(legacy));
    step.when = When::Always;
    step.allow_failure = AllowFailure::ExitCodes(vec![1, 3]);
    step.timeout = Some(Duration::from_millis(1500));
    step.env = vec![(Template::literal("T"), Template::literal("${{ not an expression"))];
    step.inputs = vec![(Template::literal("s"), ValueTemplate::Scalar(Value::array([Value::from("x").sensitive()])))];
    step.inner = Some(Arc::new(StepDocument::of_steps(Dialect::Steps, [Step::new("deep", Action::Script(Template::literal("x")))])));
    sequence.steps.push(Arc::new(step));
    let targets = targets.into_iter().chain([Target::Hole { seen: Some(Arc::clone(&leaf)) }]).collect();
    let root = PlannedDocument {
        targets,
        handovers: BTreeMap::from([(0, leaf)]),
        file: "func.yml".into(),
        ..PlannedDocument::of_job(Arc::new(inner), "/w".into())
    };
    Plan {
        request_env: values(&[("E", "e".into()), ("S", Value::from("secret").sensitive())]),
        variables: values(&[("KEY", "/tmp/KEY".into()), ("N", Value::from("n").sensitive())]),
        file_variables: BTreeMap::from([("KEY".into(), "content".into())]),
        grace_period: Duration::new(10, 500),
        level: Level::V0_12,
        strict: true,
        handover: Some(HandedOver {
            inputs: [("tag".into(), Value::object([("a", Value::from(1.0).sensitive())]))].into_iter().collect(),
            enclosing_env: values(&[("X", "x".into())]),
        }),
        ..Plan::of(Arc::new(root), Places { work_dir: "/w".into(), build_dir: "/w".into(), files_dir: "".into() })
    }
}

#[test]
fn a_plan_arrives_as_it_was_sent() {
    let sent = plan();
    let arrived = decode(&encode(&sent)).unwrap();
    assert_eq!(arrived, sent);
    let (Target::Document(first), Target::Hole { seen: Some(last) }) = (&arrived.root.targets[0], &arrived.root.targets[6]) else {
        panic!()
    };
    assert!(Arc::ptr_eq(first, last), "a document that several steps name is there once");
    assert_eq!(encode(&arrived), encode(&sent), "the same plan gives the same bytes");
}

#[test]
fn builtin_steps_are_those_of_the_receiver() {
    let mut sent = plan();
    let root = Arc::make_mut(&mut sent.root);
    let builtin = PlannedDocument { builtin: true, ..PlannedDocument::of_job(document(FUNCTION, "func.yml"), "".into()) };
    root.targets[4] = Target::Document(Arc::new(builtin));
    assert_eq!(decode(&encode(&sent)).unwrap().root.targets[4], Target::Hole { seen: None });
}

fn refused(bytes: &[u8]) -> String {
    decode(bytes).unwrap_err().to_string()
}

#[test]
fn what_is_damaged_or_of_another_version_is_refused() {
    let bytes = encode(&plan());
    assert_eq!(refused(b""), "the plan is damaged: it has no version");
    assert_eq!(refused(&bytes[..bytes.len() - 1]), "the plan is damaged: it is no message of this kind");
    let message = HandoverPlan::decode(bytes.as_slice()).unwrap();
    let with = |message: HandoverPlan| refused(&message.encode_to_vec());
    assert_eq!(with(HandoverPlan { version: 2, ..message.clone() }), "the plan is of version 2, and this program knows version 1");
    let mut content = message.content.clone();
    content[10] ^= 1;
    assert_eq!(with(HandoverPlan { content, ..message }), "the plan is damaged: its digest is another");
}

/// A plan of a program that lies, with a digest that fits.
fn forged(change: impl FnOnce(&mut ci_proto::agent::Handover)) -> String {
    let mut content = encode::handover(&plan());
    change(&mut content);
    let content = content.encode_to_vec();
    let digest = Digest::of(&content).bytes().to_vec();
    refused(&HandoverPlan { version: VERSION, content, digest }.encode_to_vec())
}

#[test]
fn what_cannot_be_right_is_refused() {
    let said = [
        forged(|plan| plan.documents.clear()),
        forged(|plan| plan.documents[0].targets.push(Default::default())),
        forged(|plan| plan.documents[1].targets[0].planned = 2),
        forged(|plan| plan.documents.truncate(1)),
        forged(|plan| plan.level = 7),
        forged(|plan| drop(plan.files.insert("../x".into(), String::new()))),
        forged(|plan| plan.request_env[0].name = "A=B".into()),
        forged(|plan| plan.variables.push(plan.variables[0].clone())),
        forged(|plan| plan.documents[0].digest.truncate(3)),
    ];
    insta::assert_snapshot!(said.join("\n"), @r#"
    the plan cannot be right: it has no document
    the plan cannot be right: a sequence of 0 steps has 1 targets
    the plan cannot be right: a step refers to a document that does not stand before it
    the plan cannot be right: its outermost document is no sequence
    the plan cannot be right: there is no level 7
    the plan cannot be right: the file variable "../x" cannot be a file of that name
    the plan cannot be right: "A=B" cannot be the name of an environment variable
    the plan cannot be right: a name is given twice
    the plan cannot be right: a digest has 32 bytes
    "#);
}

#[test]
fn a_plan_that_nests_too_deep_is_refused() {
    let deep = (0..100).fold(plan().root, |inner, _| {
        let step = Step::new("s", Action::Script(Template::literal("x")));
        let document = Arc::new(StepDocument::of_steps(Dialect::Functions, [step]));
        Arc::new(PlannedDocument { targets: vec![Target::Document(inner)], ..PlannedDocument::of_job(document, "/w".into()) })
    });
    assert_eq!(refused(&encode(&Plan { root: deep, ..plan() })), "the plan cannot be right: steps nest deeper than 64 levels");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        // Past the digest, where it would be looked into.
        let digest = Digest::of(&bytes).bytes().to_vec();
        let _ = decode(&HandoverPlan { version: VERSION, content: bytes, digest }.encode_to_vec());
    }

    #[test]
    fn a_plan_that_was_changed_anywhere_is_read_or_refused(at in any::<proptest::sample::Index>(), to in any::<u8>()) {
        let mut content = encode::handover(&plan()).encode_to_vec();
        let index = at.index(content.len());
        content[index] = to;
        let digest = Digest::of(&content).bytes().to_vec();
        let _ = decode(&HandoverPlan { version: VERSION, content, digest }.encode_to_vec());
    }

    #[test]
    fn values_and_marks_arrive_as_they_were_sent(name in "[A-Z_]{1,8}", text in ".{0,20}", number in any::<f64>(), sensitive in any::<bool>()) {
        prop_assume!(!number.is_nan());
        let value = Value::object([("t", Value::from(text.as_str()).marked(sensitive)), ("n", Value::array([number.into(), Value::NULL]))]);
        let variables = BTreeMap::from([(Arc::from(name), value)]);
        let sent = Plan { variables, ..plan() };
        prop_assert_eq!(decode(&encode(&sent)).unwrap(), sent);
    }
}
