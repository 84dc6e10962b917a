//! Table MOA of the conformance cases. Where a case of a prototype contradicts the documented language, the language wins.

use super::*;
use crate::document::Dialect::Functions;
use crate::expression::compare::order;
use crate::expression::lex::{Lexer, TokenKind};
use crate::expression::parse::parse_expression;
use crate::expression::syntax::{By, Form, Operator};
use crate::testing::{Contexts, contexts};

fn scope() -> Contexts {
    contexts(&json!({"inputs": {"names": ["Alice", "Carol"], "word": "añb", "o": {"foo": "bar", "bool": true}, "none": null}}))
}

fn value(source: &str) -> Result<Json, String> {
    evaluated(source, Functions, &scope())
}

fn as_text(source: &str) -> Result<String, String> {
    text(source, Functions, &scope())
}

fn tokens(source: &str) -> Result<Vec<TokenKind>, ExpressionError> {
    let mut lexer = Lexer::new(source, 0);
    let mut kinds = Vec::new();
    loop {
        match lexer.next()?.kind {
            TokenKind::End => return Ok(kinds),
            kind => kinds.push(kind),
        }
    }
}

#[test]
fn moa_01_numbers_are_added_and_strings_joined() {
    assert_eq!(value("${{ 2 + 3 }}"), Ok(json!(5)));
    assert_eq!(value(r#"${{ "a" + "b" }}"#), Ok(json!("ab")));
    assert_eq!(value("${{ 10 % 3 }}"), Ok(json!(1)));
}

#[test]
fn moa_02_nothing_is_converted_in_silence() {
    let error = failure(r#"${{ "hello" + 42 }}"#, Functions, &scope());
    assert_eq!(error.message, "invalid kind: `+` takes two numbers or two strings, not a string and a number");
    assert_eq!(error.hint.unwrap(), "write `str(...)` around what is not a string, or `num(...)` around what is one");
}

#[test]
fn moa_04_division_by_zero_is_an_error() {
    assert_eq!(value("${{ 1 / 0 }}"), Err("division by zero".to_owned()));
}

#[test]
fn moa_05_logical_operators_give_an_operand() {
    assert_eq!(value(r#"${{ "" || "d" }}"#), Ok(json!("d")));
    assert_eq!(value(r#"${{ "x" && "y" }}"#), Ok(json!("y")));
    assert_eq!(value("${{ null && 1 }}"), Ok(json!(null)));
}

#[test]
fn moa_07_parentheses_bind_first() {
    assert_eq!(value("${{ (1 + 2) * 3 }}"), Ok(json!(9)));
}

#[test]
fn moa_08_a_bare_key_is_a_string() {
    assert_eq!(value(r#"${{ {name: "A"} }}"#), Ok(json!({"name": "A"})));
}

#[test]
fn moa_10_a_comma_may_follow_the_last_element() {
    assert_eq!(value("${{ [1, 2,] }}"), Ok(json!([1, 2])));
}

#[test]
fn moa_11_str_gives_the_text_of_a_value() {
    assert_eq!(value("${{ str(42) }}"), Ok(json!("42")));
    assert_eq!(value("${{ str(true) }}"), Ok(json!("true")));
    assert_eq!(value("${{ str(null) }}"), Ok(json!("<null>")));
}

#[test]
fn moa_13_an_escaped_opening_is_text() {
    assert_eq!(value(r"Use \${{ x"), Ok(json!("Use ${{ x")));
}

#[test]
fn moa_14_single_quotes_are_raw() {
    assert_eq!(value("${{ 'Literal ${{ no }}' }}"), Ok(json!("Literal ${{ no }}")));
}

#[test]
fn moa_16_elements_of_an_array_in_text_are_separated_by_comma_and_space() {
    assert_eq!(as_text("to ${{ inputs.names }}"), Ok(r#"to ["Alice", "Carol"]"#.to_owned()));
}

#[test]
fn moa_17_an_expression_over_several_lines_keeps_its_type() {
    let source = "${{ [\n  {name: \"control\", weight: 90},\n  {name: \"experiment\", weight: 10}\n] }}\n";
    assert_eq!(value(source), Ok(json!([{"name": "control", "weight": 90}, {"name": "experiment", "weight": 10}])));
}

#[test]
fn moa_19_operators_calls_indexes_and_selectors_have_their_shape() {
    let form = |source| parse_expression(source, Functions).unwrap().form;
    assert!(matches!(form("123 - 123"), Form::Chain(_, rest) if rest[0].0 == Operator::Subtract));
    let Form::Access(base, links) = form("foo.bar.baa[0](1)") else { panic!("links expected") };
    assert!(matches!(base.form, Form::Path(names) if names.len() == 3));
    assert!(matches!((&links[0].by, &links[1].by), (By::Index(_), By::Call(arguments)) if arguments.len() == 1));
    assert_eq!(value("${{ ({'h': [1 + 10]})['h'] }}"), Ok(json!([11])));
    assert_eq!(value("${{ ({'h': [1 + 10]}).h }}"), Ok(json!([11])));
}

#[test]
fn moa_20_trailing_commas_are_accepted() {
    assert_eq!(value("${{ [1, ] }}"), Ok(json!([1])));
    assert_eq!(value(r#"${{ {"a": "b", } }}"#), Ok(json!({"a": "b"})));
}

#[test]
fn moa_22_a_second_point_begins_another_number() {
    assert_eq!(tokens("12.3.4"), Ok(vec![TokenKind::Number(12.3), TokenKind::Number(0.4)]));
}

#[test]
fn moa_23_numbers_have_fractions_and_exponents() {
    let numbers = [100.0, 100.0, 0.01, 0.01, 150_000.0, 0.5].map(TokenKind::Number);
    assert_eq!(tokens("1e2 1e+2 1e-2 1E-2 1.5e5 .5"), Ok(numbers.to_vec()));
}

#[test]
fn moa_25_a_single_ampersand_is_no_operator() {
    let error = tokens("a &! b").unwrap_err();
    assert_eq!((error.message.as_str(), error.span), ("`&` is not expected here", 2..3));
    assert_eq!(error.hint.unwrap(), "did you mean `&&`?");
}

#[test]
fn moa_26_an_escaped_opening_in_a_string_is_text() {
    let node = parse_expression(r#""\${{ 'w' }}""#, Functions).unwrap();
    assert_eq!(node.form, Form::String("${{ 'w' }}".into()));
}

#[test]
fn moa_28_a_single_brace_does_not_close() {
    let error = parse_expression(r#""${{ ident }""#, Functions).unwrap_err();
    assert_eq!((error.message.as_str(), error.span), ("expected `}}`, found `}`", 11..12));
}

/// Ours counts bytes, as every span of the project does; whoever shows a column counts characters.
#[test]
fn moa_29_names_and_strings_beyond_ascii_have_exact_places() {
    let source = "größe + 'ñ' + \u{1f600}";
    let error = parse_expression(source, Functions).unwrap_err();
    assert_eq!(source[..error.span.start].chars().count(), 14);
    assert_eq!(&source[error.span], "\u{1f600}");
    assert_eq!(evaluate_expression("größe", Functions, &scope().with("größe", "ñ")).unwrap(), "ñ".into());
}

/// The prototype compares arrays by length first; the language says element by element.
#[test]
fn moa_31_objects_are_ordered_by_length_then_keys_then_values() {
    let less = |left: Json, right: Json| order(&Value::from_json(&left), &Value::from_json(&right)).is_lt();
    assert!(less(json!({"z": 9}), json!({"a": 1, "b": 1})));
    assert!(less(json!({"a": 9, "b": 9}), json!({"c": 1, "a": 1})));
    assert!(less(json!({"b": 1, "a": 1}), json!({"a": 1, "b": 2})));
    assert!(less(json!([1, 2, 3]), json!([2])));
    assert!(less(json!([1]), json!([1, 0])));
}

#[test]
fn moa_32_division_and_remainder_by_zero_are_errors() {
    assert_eq!(value("${{ 100 / 0 }}"), Err("division by zero".to_owned()));
    assert_eq!(value("${{ 5 % 0 }}"), Err("division by zero".to_owned()));
}

#[test]
fn moa_34_an_unknown_attribute_differs_from_one_of_an_array() {
    assert_eq!(value("${{ inputs.o.x }}"), Err("attribute not found: `x` in `inputs.o`".to_owned()));
    assert_eq!(value("${{ inputs.names.x }}"), Err("invalid kind: `inputs.names` is an array, which has no attributes".to_owned()));
}

#[test]
fn moa_35_an_index_out_of_range_is_an_error() {
    for index in ["2", "-1", "1e300"] {
        assert_eq!(value(&format!("${{{{ inputs.names[{index}] }}}}")), Err("array index out of range".to_owned()));
    }
    assert_eq!(value("${{ inputs.word[3] }}"), Err("array index out of range".to_owned()));
    assert_eq!(value("${{ inputs.word[1.9] }}"), Ok(json!("ñ")));
    assert_eq!(value("${{ inputs.names[-0.9] }}"), Ok(json!("Alice")));
}

#[test]
fn moa_37_values_have_their_text() {
    assert_eq!(as_text("${{ null }}"), Ok("<null>".to_owned()));
    assert_eq!(as_text("${{ {foo: 'bar', bool: true} }}"), Ok(r#"{"foo": "bar","bool": true}"#.to_owned()));
    assert_eq!(as_text(r#"${{ ["string", true] }}"#), Ok(r#"["string", true]"#.to_owned()));
    assert_eq!(as_text("${{ 1.4 }} ${{ 9000 }} ${{ str }}"), Ok("1.4 9000 <func>".to_owned()));
}

#[test]
fn moa_38_members_inherit_the_mark_of_what_holds_them() {
    let secret = Value::from_json(&json!({"list": ["a"], "o": {"k": 1}})).sensitive();
    let scope = Contexts::default().with("inputs", Value::object([("secret", secret)]));
    for source in ["inputs.secret.list", "inputs.secret['list'][0]", "inputs.secret.o.k", "(inputs.secret || 0).o['k']"] {
        assert!(evaluate_expression(source, Functions, &scope).unwrap().is_sensitive(), "{source}");
    }
}

/// The prototype computes exactly; the language has doubles.
#[test]
fn moa_40_large_numbers_are_doubles() {
    assert_eq!(as_text("${{ 18446744073709551615 }}"), Ok("18446744073709552000".to_owned()));
}
