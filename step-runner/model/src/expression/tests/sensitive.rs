//! Marks travel with everything that tells something about a sensitive value, and no message holds one.

use super::*;
use crate::document::Dialect::{Functions, Steps};
use crate::document::ValueTemplate;
use crate::testing::Contexts;

fn scope() -> Contexts {
    let secret = || Value::from("hunter2").sensitive();
    let inputs = Value::object([
        ("secret", secret()),
        ("plain", Value::from("plain")),
        ("number", Value::from(4711.0).sensitive()),
        ("none", Value::from("").sensitive()),
        ("list", Value::array([secret(), Value::from("open")])),
        ("object", Value::object([("hidden", secret()), ("open", Value::from("x"))])),
        ("sealed", Value::object([("hunter2_key", Value::from("x"))]).sensitive()),
    ]);
    Contexts::default().with("inputs", inputs)
}

fn value(source: &str) -> Value {
    evaluate_expression(source, Functions, &scope()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

#[test]
fn what_is_made_of_a_sensitive_value_is_sensitive() {
    let sources = [
        "inputs.secret",
        "inputs.secret + 'x'",
        "'x' + inputs.secret",
        "\"x${{ inputs.secret }}\"",
        "inputs.number * 2",
        "-inputs.number",
        "!inputs.secret",
        "inputs.secret == 'x'",
        "'x' < inputs.secret",
        "str(inputs.number)",
        "bool(inputs.secret)",
        "num(str(inputs.number))",
        "str(inputs.list)",
        "inputs.list == []",
        "inputs.secret[0]",
        "inputs.list[0]",
        "inputs.object.hidden",
        "inputs.sealed.hunter2_key",
        "'word'[inputs.number - 4711]",
        "{hunter2: 1}[inputs.secret]",
        "{(inputs.secret): 1}",
        "inputs.secret || 'x'",
        "inputs.secret && 'x'",
        "inputs.none || 'x'",
        "inputs.none && 'x'",
    ];
    for source in sources {
        assert!(value(source).is_sensitive(), "{source}");
    }
}

#[test]
fn what_tells_nothing_of_it_is_not() {
    for source in ["inputs.list[1]", "inputs.object.open", "inputs.plain || inputs.secret", "'' && inputs.secret", "inputs.nope || 'x'"] {
        assert!(!value(source).holds_sensitive(), "{source}");
    }
}

#[test]
fn members_of_what_is_built_keep_their_own_mark() {
    for source in ["[inputs.secret, 1]", "{a: inputs.secret}", "inputs.object", "inputs"] {
        assert!(!value(source).is_sensitive() && value(source).holds_sensitive(), "{source}");
    }
}

#[test]
fn text_is_sensitive_when_anything_in_it_is() {
    for source in ["a ${{ inputs.secret }}", "${{ inputs.list }}", "${{ inputs.object }} b", "${{ inputs.number }}"] {
        let template = Template::parse(source, Steps).unwrap();
        assert!(template.evaluate_text(&scope()).unwrap().is_sensitive(), "{source}");
    }
    assert!(!Template::parse("a ${{ inputs.plain }}", Steps).unwrap().evaluate_text(&scope()).unwrap().is_sensitive());
}

#[test]
fn a_structure_with_a_sensitive_key_is_sensitive() {
    let key = Template::parse("${{ inputs.secret }}", Functions).unwrap();
    let structure = ValueTemplate::Object(vec![(key, ValueTemplate::Scalar(1.0.into()))]);
    let value = structure.evaluate(&scope()).unwrap();
    assert!(value.is_sensitive());
    assert_eq!(value.to_json(), json!({"hunter2": 1}));
    assert_eq!(structure.sensitive_paths(&scope()), ["inputs.secret"]);
}

#[test]
fn no_message_holds_a_sensitive_value() {
    let sources = [
        "num(inputs.secret)",
        "inputs.secret.x",
        "inputs.secret.hunter",
        "inputs.secret + 1",
        "inputs.secret[100]",
        "inputs.object[inputs.secret]",
        "inputs.sealed.hunter_2key",
        "inputs.sealed[inputs.secret]",
        "inputs.sealed['nope']",
        "inputs.list[inputs.secret]",
        "inputs[inputs.secret]",
        "-inputs.secret",
        "inputs.secret()",
        "inputs.list[inputs.number]",
        "inputs.number / 0",
    ];
    for source in sources {
        for dialect in [Functions, Steps] {
            let error = evaluate_expression(source, dialect, &scope()).expect_err(source);
            let said = format!("{error:?}");
            assert!(!said.contains("hunter2") && !said.contains("4711"), "{source}: {said}");
        }
    }
}
