//! Table EXP of the conformance cases: the language of v0.12.

use super::*;
use crate::document::Dialect::Steps;
use crate::document::ValueTemplate;
use crate::testing::{Contexts, contexts};

fn scope() -> Contexts {
    contexts(&json!({
        "job": {"n": "7"},
        "env": {"FILM": "up", "AT": "home"},
        "inputs": {"who": "Ann Lee", "bike": {"colour": "red", "n": 3}, "crew": ["x", "y"], "x": {"a": "<b>"}, "three": 3},
        "steps": {"a": {"outputs": {"s": "hidden"}}},
    }))
}

fn value(source: &str) -> Result<Json, String> {
    evaluated(source, Steps, &scope())
}

fn expression(source: &str) -> Result<Json, String> {
    evaluate_expression(source, Steps, &scope()).map(|value| value.to_json()).map_err(|error| error.message)
}

#[test]
fn exp_01_a_path_is_looked_up() {
    assert_eq!(expression("job.n"), Ok(json!("7")));
}

#[test]
fn exp_02_white_space_around_an_expression_is_trimmed() {
    assert_eq!(expression("  job.n  "), Ok(json!("7")));
}

#[test]
fn exp_03_a_missing_key_is_named() {
    assert_eq!(expression("job.nope"), Err("job.nope: the \"nope\" was not found".to_owned()));
}

#[test]
fn exp_05_an_expression_in_a_text_is_replaced() {
    assert_eq!(text("${{ job.n }}", Steps, &scope()), Ok("7".to_owned()));
}

#[test]
fn exp_07_a_missing_key_in_a_text_is_named() {
    assert_eq!(value("${{ job.nope }}"), Err("job.nope: the \"nope\" was not found".to_owned()));
}

/// v0.12 takes the whole inner text for one path; as Moa the string inside is a template, and what it reads is missing.
#[test]
fn exp_08_an_expression_in_a_string_in_an_expression_is_evaluated() {
    assert_eq!(value(r#"${{ job["${{ job.k }}"] }}"#), Err("job.k: the \"k\" was not found".to_owned()));
}

/// An error at v0.12.
#[test]
fn exp_10_a_plain_closing_is_text() {
    assert_eq!(value("${{ job.n }} }}"), Ok(json!("7 }}")));
}

#[test]
fn exp_11_an_object_as_text_is_compact_json() {
    assert_eq!(text("${{inputs.bike}}", Steps, &scope()), Ok(r#"{"colour":"red","n":3}"#.to_owned()));
}

#[test]
fn exp_13_the_empty_text_stays_empty() {
    assert_eq!(value(""), Ok(json!("")));
}

#[test]
fn exp_14_an_environment_variable_is_a_string() {
    assert_eq!(value("${{env.AT}}"), Ok(json!("home")));
}

#[test]
fn exp_16_an_object_among_text_is_text() {
    assert_eq!(value("A ${{inputs.bike}} B"), Ok(json!(r#"A {"colour":"red","n":3} B"#)));
}

#[test]
fn exp_17_a_single_expression_keeps_its_type() {
    assert_eq!(value("${{inputs.crew}}"), Ok(json!(["x", "y"])));
}

#[test]
fn exp_19_a_text_in_an_array_is_expanded() {
    let who = Template::parse("${{inputs.who}}", Steps).unwrap();
    let array = ValueTemplate::Array(vec![ValueTemplate::Text(who)]);
    assert_eq!(array.evaluate(&scope()).unwrap().to_json(), json!(["Ann Lee"]));
}

#[test]
fn exp_20_text_around_an_expression_stays() {
    assert_eq!(value("Dear ${{inputs.who}}. Bye."), Ok(json!("Dear Ann Lee. Bye.")));
}

#[test]
fn exp_22_a_plain_string_has_no_keys() {
    assert_eq!(value("${{ env.AT.x }}"), Err("env.AT.x: \"string\" is not supported".to_owned()));
}

#[test]
fn exp_23_a_key_of_a_map_is_found() {
    assert_eq!(value("${{ env.FILM }}"), Ok(json!("up")));
}

#[test]
fn exp_25_a_key_of_an_object_is_found() {
    assert_eq!(value("${{ inputs.bike.colour }}"), Ok(json!("red")));
}

#[test]
fn exp_26_a_sensitive_value_is_refused_where_a_plain_one_is_wanted() {
    assert_eq!(sensitive_refusal(&["outputs.s"]), "non-sensitive input cannot derive value using sensitive value(s) \"outputs.s\"");
    let outputs = Value::object([("outputs", Value::object([("s", Value::from("hidden").sensitive())]))]);
    let scope = scope().with("steps", Value::object([("a", outputs)]));
    let template = ValueTemplate::Text(Template::parse("${{ inputs.who }} ${{ steps.a.outputs.s }}", Steps).unwrap());
    assert!(template.evaluate(&scope).unwrap().is_sensitive());
    assert_eq!(template.sensitive_paths(&scope), ["steps.a.outputs.s"]);
}

/// An error at v0.12.
#[test]
fn exp_28_a_template_of_another_language_is_text() {
    let source = "docker inspect -f \"{{.Id}}\"";
    assert_eq!(value(source), Ok(json!(source)));
}

/// An error at v0.12.
#[test]
fn exp_29_whole_contexts_are_values() {
    assert_eq!(value("${{ env }}"), Ok(json!({"FILM": "up", "AT": "home"})));
    assert_eq!(value("${{ steps.a.outputs }}"), Ok(json!({"s": "hidden"})));
}

#[test]
fn exp_31_json_in_text_is_escaped_as_the_original_does() {
    assert_eq!(value("v=${{inputs.x}}"), Ok(json!(r#"v={"a":"\u003cb\u003e"}"#)));
}

#[test]
fn exp_32_a_whole_number_in_text_has_no_decimal_point() {
    assert_eq!(value("${{inputs.three}} "), Ok(json!("3 ")));
}
