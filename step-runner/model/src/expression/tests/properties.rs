//! Properties of any text: reading it ends, in time and without a panic; and what is written reads back.

use super::*;
use crate::document::Dialect::{Functions, Steps};
use crate::testing::{Contexts, contexts};
use proptest::prelude::*;

fn scope() -> Contexts {
    contexts(&json!({
        "inputs": {"a": 1, "s": "text", "l": [1, [2]], "o": {"k": {"x": true}, "my-key": null}},
        "steps": {"a": {"outputs": {"x": "X"}}}, "env": {"A": "a"}, "vars": {}, "work_dir": "/w",
    }))
}

/// Pieces that the language is made of, and some that it is not.
const WORDS: [&str; 52] = [
    "${{",
    "}}",
    "${{ ",
    " }}",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "'",
    "\\",
    "\\${{",
    "$",
    ".",
    ",",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "==",
    "!=",
    "<",
    "<=",
    "&&",
    "||",
    "&",
    "=",
    " ",
    "\n",
    "inputs",
    "inputs.a",
    ".l[0]",
    ".o.k",
    "my-key",
    "steps.a.outputs.x",
    "env",
    "null",
    "true",
    "str(",
    "num(",
    "type",
    "0",
    "1.5e3",
    ".5",
    "é",
    "\u{1f600}",
    "\\u00e9",
];

fn text_of_the_language() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..40).prop_map(|words| words.concat())
}

/// An expression that is right, of a value that is known.
fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        prop::num::f64::NORMAL.prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ]
}

fn structure() -> impl Strategy<Value = Json> {
    scalar().prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn read_in_every_way(source: &str) {
    for dialect in [Steps, Functions] {
        let check = |error: &ExpressionError| {
            assert!(error.span.start <= error.span.end && source.get(error.span.clone()).is_some(), "{source:?}: {error:?}");
            assert!(!error.message.is_empty());
        };
        match Template::parse(source, dialect) {
            Ok(template) => {
                assert_eq!(template.source(), source);
                let shapes = [template.is_one_expression(), template.as_literal().is_some(), template.pieces().len() > 1];
                assert!(shapes.contains(&true), "{source:?}");
                template.paths().iter().for_each(|path| assert!(source.get(path.offset..).is_some()));
                template.ambiguous_escapes().iter().for_each(|&at| assert_eq!(source.get(at..at + 4), Some("\\${{")));
                let _ = template.evaluate(&scope()).map_err(|error| check(&error));
                let _ = template.evaluate_text(&scope()).map_err(|error| check(&error));
            }
            Err(error) => check(&error),
        }
        let _ = evaluate_expression(source, dialect, &scope()).map_err(|error| check(&error));
    }
    let _ = holds_expression(source);
}

proptest! {
    #[test]
    fn any_text_is_read(source in any::<String>()) {
        read_in_every_way(&source);
        read_in_every_way(&format!("${{{{{source}}}}}"));
    }

    #[test]
    fn any_bytes_are_read(bytes in any::<Vec<u8>>()) {
        read_in_every_way(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words_of_the_language_are_read(source in text_of_the_language()) {
        read_in_every_way(&source);
        read_in_every_way(&format!("${{{{ {source} }}}}"));
        read_in_every_way(&format!("${{{{ \"{source}\" }}}}"));
    }

    #[test]
    fn a_text_without_an_opening_is_itself(source in any::<String>().prop_filter("an opening", |text| !text.contains("${{"))) {
        for dialect in [Steps, Functions] {
            prop_assert_eq!(text(&source, dialect, &scope()), Ok(source.clone()));
        }
    }

    /// The language is a superset of JSON, but for what JSON strings mean by `${{`.
    #[test]
    fn json_is_an_expression(json in structure()) {
        let source = json.to_string().replace("${{", "\\${{");
        let value = evaluate_expression(&source, Functions, &scope()).map(|value| value.to_json());
        prop_assert_eq!(value, Ok(Value::from_json(&json).to_json()));
    }

    #[test]
    fn a_value_in_the_scope_comes_back_as_it_is(json in structure()) {
        let value = Value::from_json(&json);
        let scope = Contexts::default().with("inputs", Value::object([("v", value.clone())]));
        for dialect in [Steps, Functions] {
            let template = Template::parse("${{ inputs.v }}", dialect).unwrap();
            prop_assert_eq!(template.evaluate(&scope).unwrap(), value.clone());
        }
    }

    #[test]
    fn text_of_the_steps_dialect_is_json_that_reads_back(json in structure().prop_filter("a string is raw", |json| !json.is_string())) {
        let value = Value::from_json(&json);
        let scope = Contexts::default().with("inputs", Value::object([("v", value.clone())]));
        let written = text("${{ inputs.v }}", Steps, &scope).unwrap();
        let read: Json = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(Value::from_json(&read), value);
        let escaped = ['<', '>', '&', '\u{2028}', '\u{2029}'];
        prop_assert!(!written.contains(escaped));
    }

    #[test]
    fn a_number_reads_back_equal(number in any::<f64>().prop_filter("numbers are finite", |number| number.is_finite())) {
        let mut written = String::new();
        super::super::text::write_number(&mut written, number);
        prop_assert_eq!(written.parse::<f64>().unwrap().to_bits(), number.to_bits());
        let source = format!("num({written:?})");
        prop_assert_eq!(evaluate_expression(&source, Functions, &scope()).unwrap(), number.into());
    }

    #[test]
    fn values_are_ordered(a in structure(), b in structure(), c in structure()) {
        let order = |left: &Json, right: &Json| compare::order(&Value::from_json(left), &Value::from_json(right));
        prop_assert!(order(&a, &a).is_eq());
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le());
        }
    }

    /// Whatever is written around a sensitive value that is used, the result is sensitive, or is not there.
    #[test]
    fn marks_survive_any_operators(words in prop::collection::vec(prop::sample::select(vec![
        " + 'x'", " == 1", " < 'z'", " || 0", " && 'y'", "[0]", " != null", " + str(inputs.a)",
    ]), 0..6)) {
        let scope = scope().with("env", Value::object([("S", Value::from("hidden").sensitive())]));
        let source = words.iter().fold("env.S".to_owned(), |inner, word| format!("({inner}){word}"));
        match evaluate_expression(&source, Functions, &scope) {
            Ok(value) => prop_assert!(value.is_sensitive(), "{}", source),
            Err(error) => prop_assert!(!error.message.contains("hidden") && !error.hint.unwrap_or_default().contains("hidden")),
        }
    }
}

/// Twenty thousand of anything: an answer, in time that grows with the length, on the small stack of a test.
#[test]
fn nothing_is_too_long_or_too_deep() {
    let many = |piece: &str| piece.repeat(20_000);
    let sources = [
        format!("${{{{ {}1{} }}}}", many("("), many(")")),
        format!("${{{{ {}{} }}}}", many("["), many("]")),
        format!("${{{{ {}1{} }}}}", many("{a:"), many("}")),
        format!("${{{{ {}1 }}}}", many("!")),
        format!("${{{{ {}1 }}}}", many("- ")),
        format!("${{{{ {} }}}}", many("\"${{")),
        format!("${{{{ {} }}}}", many("inputs[")),
        format!("${{{{ {} }}}}", many("str(")),
        format!("${{{{ 1{} }}}}", many(" + 1")),
        format!("${{{{ 0{} }}}}", many(" || 0")),
        format!("${{{{ inputs{} }}}}", many(".o")),
        format!("${{{{ inputs{} }}}}", many("['o']")),
        format!("${{{{ inputs.l{} }}}}", many("[0]")),
        format!("${{{{ inputs.l{} }}}}", many("(0)")),
        format!("${{{{ [{}] }}}}", many("1,")),
        many("${{ inputs.a }}"),
        many("${{ inputs.o.my-key }} "),
        many("${{ inputs.o.0-"),
        many("${{"),
        many("${{ inputs."),
        many("\\${{"),
        many("}}"),
        many("${{ \""),
        many("${{ '}} "),
        format!("${{{{ \"{}\" }}}}", many("\\n")),
    ];
    for source in &sources {
        read_in_every_way(source);
    }
}

#[test]
fn nesting_beyond_the_limit_is_an_error_that_names_it() {
    let nested = |depth: usize| format!("${{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(evaluated(&nested(63), Functions, &scope()), Ok(json!(1)));
    for depth in [64, 100_000] {
        for dialect in [Steps, Functions] {
            assert_eq!(evaluated(&nested(depth), dialect, &scope()), Err("the expression nests more than 64 levels deep".to_owned()));
        }
    }
}
