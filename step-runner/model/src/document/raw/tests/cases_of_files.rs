//! Table RD: files of two documents.

use super::*;
use crate::document::ValueTemplate;

#[test]
fn rd_01_documents_in_the_wrong_order_are_refused() {
    let reading = read("exec: {command: [prog]}\n---\nspec: {}\n", "step.yml");
    assert_refused(&reading, "field exec not found in type schema.Spec");
    assert_refused(&reading, "at least one of `script`, `action`, `run` or `exec` must be provided");
    assert!(shown(&reading.problems).contains("hint: the two documents are in the wrong order: `spec:` comes first"));
}

#[test]
fn rd_02_a_definition_alone_is_refused() {
    let reading = read("type: exec\nexec: {command: [prog]}\n", "step.yml");
    assert_refused(&reading, "field exec not found in type schema.Spec");
    assert_refused(&reading, "decoding: EOF");
}

#[test]
fn rd_07_an_unknown_key_of_the_first_document_is_refused() {
    assert_refused(&spec_of("type: exec\nspec: {}"), "field type not found in type schema.Spec");
    assert_refused(&spec_of("sepc: {}"), "field sepc not found in type schema.Spec");
}

#[test]
fn rd_08_scalars_are_taken_as_their_source_text() {
    let document = sound(
        "{}\n---\nenv: {PORT: 80, ON: true, OFF: no, N: , V: 1.50}\nexec: {command: [echo, 2, true, 1.50, 0x10, 0777, 1_000, 2024-01-01]}",
        "step.yml",
    );
    let env: Vec<_> = document.definition.env.iter().map(|(name, value)| (name.source(), value.source())).collect();
    assert_eq!(env, [("PORT", "80"), ("ON", "true"), ("OFF", "no"), ("N", ""), ("V", "1.50")]);
    let command: Vec<_> = exec(&document).command.iter().map(crate::expression::Template::source).collect();
    assert_eq!(command, ["echo", "2", "true", "1.50", "0x10", "0777", "1_000", "2024-01-01"]);
}

#[test]
fn rd_10_an_empty_text_is_a_default() {
    let document = sound("spec: {inputs: {a: {type: string, default: \"\"}}}\n---\nexec: {command: [prog]}", "step.yml");
    assert_eq!(document.spec.inputs[0].1.default, Some(Value::from("")));
}

#[test]
fn rd_11_a_default_of_another_type_is_refused() {
    assert_refused(
        &spec_of("spec: {outputs: {a: {type: array, default: {}}}}"),
        "output type \"array\" and default value type \"struct\" must match",
    );
    assert_refused(
        &spec_of("spec: {inputs: {a: {type: string, default: 1.10}}}"),
        "input type \"string\" and default value type \"number\" must match",
    );
}

#[test]
fn falsy_defaults_are_defaults_and_null_is_none() {
    let document = sound(
        "spec:\n  inputs:\n    a: {type: number, default: 0}\n    b: {type: boolean, default: false}\n    c: {type: array, default: []}\n    d: {type: struct, default: {}}\n---\nexec: {command: [prog]}",
        "step.yml",
    );
    assert!(document.spec.inputs.iter().all(|(_, input)| input.default.is_some()));
    let reading = spec_of("spec: {inputs: {a: {type: number, default: null}}}");
    assert_eq!(shown(&reading.problems).lines().next(), Some("warning[null-default] line 1, column 35: a default of null is no default"));
    assert_eq!(reading.document.unwrap().spec.inputs[0].1.default, None);
}

#[test]
fn a_list_of_no_steps_is_no_list() {
    assert_refused(&definition_of("run: []"), "at least one of `script`, `action`, `run` or `exec` must be provided");
    assert_valid(&definition_of("run: []\nexec: {command: [prog]}"));
}

#[test]
fn what_follows_the_second_document_is_ignored() {
    let reading = read("{}\n---\nexec: {command: [prog]}\n---\n]: [broken\n", "step.yml");
    assert!(reading.document.is_some());
    assert_eq!(
        shown(&reading.problems),
        "warning[more-documents] line 4, column 1: what follows is ignored: a definition ends with its second document\n    hint: remove it, or move it to a file of its own"
    );
}

#[test]
fn both_documents_are_checked_when_the_first_cannot_be_read() {
    let reading = read("spec: [\n---\nexec: {command: []}\n", "step.yml");
    assert_refused(&reading, "not YAML: unclosed bracket '['");
    assert_refused(&reading, "minimum 1 items required");
}

#[test]
fn inputs_keep_their_types_and_order() {
    let document = sound(
        "spec: {inputs: {x: {type: string}}}\n---\nrun:\n  - name: s\n    step: ./x\n    inputs: {z: 1, a: 1.5, t: on, n: null, l: [1, a], o: {k: \"${{ inputs.x }}\"}, q: \"1\"}\n",
        "step.yml",
    );
    let inputs: Vec<_> = sequence(&document).steps[0].inputs.iter().map(|(name, value)| (name.source(), value.clone())).collect();
    let template = |text: &str| ValueTemplate::Text(crate::expression::Template::parse(text, Dialect::Steps).unwrap());
    let scalar = |value: Value| ValueTemplate::Scalar(value);
    assert_eq!(
        inputs,
        [
            ("z", scalar(1.0.into())),
            ("a", scalar(1.5.into())),
            ("t", template("on")),
            ("n", scalar(Value::NULL)),
            ("l", ValueTemplate::Array(vec![scalar(1.0.into()), template("a")])),
            ("o", ValueTemplate::Object(vec![(crate::expression::Template::literal("k"), template("${{ inputs.x }}"))])),
            ("q", template("1")),
        ]
    );
}

#[test]
fn aliases_and_merge_keys_are_applied() {
    let document =
        sound("{}\n---\nenv: &env {A: 1, B: 2}\nrun:\n  - name: s\n    script: x\n    env:\n      B: 3\n      <<: *env\n", "step.yml");
    let env: Vec<_> = sequence(&document).steps[0].env.iter().map(|(name, value)| (name.source(), value.source())).collect();
    assert_eq!(env, [("B", "3"), ("A", "1")]);
}
