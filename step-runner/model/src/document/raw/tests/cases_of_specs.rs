//! Table SPC: the first document.

use super::*;

#[test]
fn spc_01_an_empty_file_is_refused() {
    assert_refused(&read("", "step.yml"), "decoding: EOF");
    assert_refused(&read("# only a comment\n", "step.yml"), "decoding: EOF");
}

#[test]
fn spc_02_an_empty_spec_is_valid() {
    for spec in ["{}", "spec:", "spec: {}", "spec: {inputs: , outputs: }"] {
        let reading = spec_of(spec);
        assert_valid(&reading);
        assert_eq!(reading.document.unwrap().spec, Spec::default(), "{spec}");
    }
}

/// The schema refuses it; reading is lenient there as the original is (original.md A.1), and says so.
#[test]
fn spc_04_an_unknown_key_in_spec_is_reported() {
    let reading = spec_of("spec: {colour: red}");
    assert!(reading.document.is_some());
    assert_eq!(
        shown(&reading.problems),
        "warning[unknown-key] line 1, column 8: unknown key `colour` in `spec` is ignored\n    hint: `spec` has the keys `inputs` and `outputs`"
    );
}

#[test]
fn spc_05_inputs_have_five_types() {
    let document = sound(
        "spec: {inputs: {a: {type: string}, b: {type: number}, c: {type: array}, d: {type: struct}, e: {type: boolean}}}\n---\nexec: {command: [prog]}",
        "step.yml",
    );
    let kinds: Vec<_> = document.spec.inputs.iter().map(|(name, input)| (&**name, input.kind)).collect();
    assert_eq!(kinds, [("a", Kind::String), ("b", Kind::Number), ("c", Kind::Array), ("d", Kind::Struct), ("e", Kind::Boolean)]);
}

#[test]
fn spc_07_an_input_without_a_body_is_refused() {
    assert_refused(&spec_of("spec: {inputs: {a: }}"), "expected object, but got null");
}

#[test]
fn spc_08_outputs_have_five_types() {
    let document = sound(
        "spec: {outputs: {a: {type: string}, b: {type: number}, c: {type: array}, d: {type: struct}, e: {type: boolean}}}\n---\nexec: {command: [prog]}",
        "step.yml",
    );
    let Outputs::Declared(outputs) = &document.spec.outputs else { panic!("declared") };
    let kinds: Vec<_> = outputs.iter().map(|(name, output)| (&**name, output.kind)).collect();
    assert_eq!(kinds, [("a", Kind::String), ("b", Kind::Number), ("c", Kind::Array), ("d", Kind::Struct), ("e", Kind::Boolean)]);
}

#[test]
fn spc_10_an_output_without_a_body_is_refused() {
    assert_refused(&spec_of("spec: {outputs: {a: }}"), "expected object, but got null");
}

#[test]
fn spc_11_outputs_can_be_delegated() {
    let document = sound("spec: {outputs: delegate}\n---\nexec: {command: [prog]}", "step.yml");
    assert_eq!(document.spec.outputs, Outputs::Delegate);
    assert_refused(&spec_of("spec: {outputs: delegated}"), "or the word `delegate`, not `delegated`");
}

#[test]
fn spc_13_the_name_of_an_input_is_an_identifier() {
    assert_refused(&spec_of("spec: {inputs: {\"two words\": {}}}"), "additionalProperties 'two words' not allowed");
    assert_refused(&spec_of("spec: {inputs: {a-b: {type: string}}}"), "additionalProperties 'a-b' not allowed");
    assert_refused(&spec_of("spec: {inputs: {1a: {type: string}}}"), "additionalProperties '1a' not allowed");
}

#[test]
fn spc_14_the_name_of_an_output_is_an_identifier() {
    assert_refused(&spec_of("spec: {outputs: {\"two words\": {}}}"), "additionalProperties 'two words' not allowed");
}

#[test]
fn spc_16_outputs_are_the_same_as_json_and_as_yaml() {
    let yaml = spec_of("spec:\n  outputs:\n    who:\n      type: string");
    let json = spec_of(r#"{"spec": {"outputs": {"who": {"type": "string"}}}}"#);
    assert_valid(&yaml);
    assert_eq!(yaml.document.unwrap().spec, json.document.unwrap().spec);
}

#[test]
fn spc_17_delegated_outputs_are_the_same_as_json_and_as_yaml() {
    let yaml = spec_of("spec:\n  outputs: delegate");
    let json = spec_of(r#"{"spec": {"outputs": "delegate"}}"#);
    assert_valid(&yaml);
    assert_eq!(yaml.document.unwrap().spec, json.document.unwrap().spec);
}
