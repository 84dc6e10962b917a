//! The language Moa beyond its conformance cases (original.md C.7).

use super::*;
use crate::document::Dialect::{Functions, Steps};
use crate::testing::{Contexts, contexts};

fn scope() -> Contexts {
    contexts(&json!({
        "inputs": {"n": 4, "s": "str", "l": [[1, 2], [3]], "o": {"k": {"deep": [0, 1]}}, "none": null, "key": "k", "empty": ""},
        "env": {},
    }))
}

fn expression(source: &str) -> Result<Json, String> {
    evaluate_expression(source, Functions, &scope()).map(|value| value.to_json()).map_err(|error| error.message)
}

fn gives(cases: &[(&str, Json)]) {
    for (source, value) in cases {
        assert_eq!(expression(source), Ok(value.clone()), "{source}");
    }
}

#[test]
fn operators_have_their_precedence_and_associate_to_the_left() {
    gives(&[
        ("1 + 2 * 3", json!(7)),
        ("10 - 4 - 3", json!(3)),
        ("100 / 5 / 2", json!(10)),
        ("2 * 3 % 4", json!(2)),
        ("-2 * -3", json!(6)),
        ("--2", json!(2)),
        ("!1 == false", json!(true)),
        ("1 + 1 == 2 && 2 > 1", json!(true)),
        ("1 || 0 && 0", json!(1)),
        ("0 && 1 || 2", json!(2)),
        ("1 < 2 == true", json!(true)),
        ("-inputs.o.k.deep[1]", json!(-1)),
        ("7 % -3", json!(1)),
        ("-7 % 3", json!(-1)),
        ("0.1 + 0.2", json!(0.1 + 0.2)),
        ("+inputs.n", json!(4)),
    ]);
}

#[test]
fn any_two_values_compare() {
    gives(&[
        ("1 == '1'", json!(false)),
        ("null == null", json!(true)),
        ("null < false", json!(true)),
        ("true < 0", json!(true)),
        ("9 < ''", json!(true)),
        ("'z' < []", json!(true)),
        ("[9] < {}", json!(true)),
        ("false < true", json!(true)),
        ("'a' < 'b'", json!(true)),
        ("'Z' < 'a'", json!(true)),
        ("'é' > 'z'", json!(true)),
        ("[1, 2] < [1, 3]", json!(true)),
        ("[1] <= [1, 0]", json!(true)),
        ("{a: 1, b: 2} == {b: 2, a: 1}", json!(true)),
        ("{a: 1} != {a: 2}", json!(true)),
        ("{b: 0} > {a: 9}", json!(true)),
        ("0 == -0", json!(true)),
    ]);
}

#[test]
fn falsy_are_null_false_zero_and_what_is_empty() {
    for falsy in ["null", "false", "0", "-0", "''", "[]", "{}"] {
        assert_eq!(expression(&format!("bool({falsy})")), Ok(json!(false)), "{falsy}");
    }
    for truthy in ["true", "-1", "'false'", "'0'", "[null]", "{a: null}"] {
        assert_eq!(expression(&format!("!!{truthy}")), Ok(json!(true)), "{truthy}");
    }
}

#[test]
fn what_is_not_reached_is_not_evaluated() {
    gives(&[("1 || 1 / 0", json!(1)), ("0 && 1 / 0", json!(0)), ("'' || 0 || 'x' || 1 / 0", json!("x"))]);
    assert_eq!(expression("0 || 1 / 0"), Err("division by zero".to_owned()));
}

#[test]
fn or_passes_over_what_is_not_there_and_nothing_else() {
    gives(&[
        ("inputs.nope || 'd'", json!("d")),
        ("inputs.o.nope.deeper || 'd'", json!("d")),
        ("inputs.l[7] || 'd'", json!("d")),
        ("nope || 'd'", json!("d")),
        ("inputs.o['nope'] || inputs.nope || 'd'", json!("d")),
        ("(inputs.nope && 1) || 'd'", json!("d")),
        ("env.HOME || '/'", json!("/")),
    ]);
    assert!(expression("inputs.s.x || 'd'").unwrap_err().starts_with("invalid kind"));
    assert!(expression("inputs.none.x || 'd'").unwrap_err().starts_with("invalid kind"));
    assert!(expression("inputs.l[null] || 'd'").unwrap_err().starts_with("invalid key"));
    assert!(expression("inputs.nope && 'd'").unwrap_err().starts_with("attribute not found"));
    assert!(expression("'' || inputs.nope").unwrap_err().starts_with("attribute not found"));
}

#[test]
fn values_are_reached_by_attribute_index_and_computed_key() {
    gives(&[
        ("inputs.l[0][1]", json!(2)),
        ("inputs.l[1]", json!([3])),
        ("inputs . o\n. k", json!({"deep": [0, 1]})),
        ("inputs.o[inputs.key].deep[inputs.n - 3]", json!(1)),
        ("inputs['o']['k'].deep", json!([0, 1])),
        ("[1, 2][1]", json!(2)),
        ("'word'[0]", json!("w")),
        ("\"a${{ inputs.n }}\"[1]", json!("4")),
    ]);
}

#[test]
fn strings_in_double_quotes_have_escapes_and_expressions() {
    gives(&[
        (r#""\\ \" \n \r \t \a \b \f \v \/ \u00e9""#, json!("\\ \" \n \r \t \u{7} \u{8} \u{c} \u{b} / é")),
        (r#""\ud83d\ude00""#, json!("😀")),
        (r#""a${{ inputs.n + 1 }}b${{ "c${{ 'd' }}" }}""#, json!("a5bcd")),
        (r#""\${{ x }} $ $$ ${ {{ }}""#, json!("${{ x }} $ $$ ${ {{ }}")),
        ("\"two\nlines\"", json!("two\nlines")),
        (r#""${{ inputs.none }}""#, json!("<null>")),
        (r#""${{ 1 }}""#, json!("1")),
        ("\"\"", json!("")),
    ]);
    for wrong in [r#""\x""#, r#""\u12""#, r#""\ud83d""#, r#""\ud83dx""#, r#""\ud83d\u0041""#, r#""\ude00""#, r#""\u+123""#, "\"\\\u{e9}\""]
    {
        assert!(expression(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn strings_in_single_quotes_are_raw_but_for_two_escapes() {
    gives(&[
        (r"'It\'s \\ \n ${{ no }}'", json!("It's \\ \\n ${{ no }}")),
        (r"'C:\new'", json!(r"C:\new")),
        ("''", json!("")),
        ("'\"'", json!("\"")),
    ]);
}

#[test]
fn objects_have_names_strings_and_computed_keys() {
    gives(&[
        ("{}", json!({})),
        ("{name: 1, 'a b': 2, \"c\": 3, type: 4, null: 5,}", json!({"name": 1, "a b": 2, "c": 3, "type": 4, "null": 5})),
        ("{(inputs.key): inputs.n, (\"x\" + 'y'): [{}]}", json!({"k": 4, "xy": [{}]})),
        ("{a: 1, a: 2}", json!({"a": 2})),
        ("{a: {b: {c: 1}}}", json!({"a": {"b": {"c": 1}}})),
    ]);
    assert_eq!(expression("{(1): 2}"), Err("invalid key: a key of an object is a string, not a number".to_owned()));
    for wrong in ["{1: 2}", "{a}", "{a: }", "{,}", "{a: 1 b: 2}", "[,]", "[1 2]", "(", "()", "[1", "{a: 1", "1 +", "a.", "a.1", "a[]", ""] {
        assert!(expression(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn braces_close_objects_before_they_close_the_expression() {
    assert_eq!(evaluated("${{{a: {b: 1}}}}", Functions, &scope()), Ok(json!({"a": {"b": 1}})));
    assert_eq!(evaluated("${{ {a: {b: 1}}}}}}", Functions, &scope()), Ok(json!(r#"{"a": {"b": 1}}}}"#)));
    assert_eq!(evaluated("${{'}}'}}${{\"}}\"}}", Steps, &scope()), Ok(json!("}}}}")));
    assert_eq!(evaluated("${{1}} not closed: §", Functions, &scope()), Ok(json!("1 not closed: §")));
}

#[test]
fn functions_convert() {
    gives(&[
        ("str('a')", json!("a")),
        ("str([1, 'a'])", json!(r#"[1, "a"]"#)),
        ("str(str)", json!("<func>")),
        ("str(1e21)", json!("1e+21")),
        ("num('3.25')", json!(3.25)),
        ("num('-1e2')", json!(-100)),
        ("num('+.5')", json!(0.5)),
        ("num(7)", json!(7)),
        ("bool('hello')", json!(true)),
        ("str(inputs.n + 1) + '.0'", json!("5.0")),
        ("str(num('1'))[0]", json!("1")),
    ]);
    assert_eq!(text("${{ str(null) }}", Steps, &scope()), Ok("null".to_owned()));
    for wrong in [
        "num('')",
        "num('x')",
        "num(' 1')",
        "num('1.')",
        "num('inf')",
        "num('NaN')",
        "num('0x1')",
        "num('--1')",
        "num('1e999')",
        "num(true)",
    ] {
        assert!(expression(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_result_that_is_no_number_is_an_error() {
    assert_eq!(expression("1e308 * 10"), Err("the result is too large for a number".to_owned()));
    assert_eq!(expression("1e999"), Err("the number is too large".to_owned()));
}

#[test]
fn a_value_nests_no_deeper_than_the_wire_can_carry() {
    let deepest = format!("{}{}", "[".repeat(32), "]".repeat(32));
    assert!(expression(&deepest).is_ok());
    assert_eq!(expression(&format!("[{deepest}]")), Err("the value nests more than 32 levels deep".to_owned()));
    let deep = evaluate_expression(&deepest, Functions, &scope()).unwrap();
    let scope = Contexts::default().with("inputs", Value::object([("deep", deep)]));
    for source in ["[inputs.deep]", "{a: inputs.deep}", "0 || [inputs.deep]", "[[inputs.deep]][0]"] {
        assert!(evaluate_expression(source, Functions, &scope).is_err(), "{source}");
    }
    assert!(evaluate_expression("[inputs.deep][0]", Functions, &scope).is_ok());
}

#[test]
fn objects_keep_the_order_in_which_they_were_written() {
    assert_eq!(text("${{ {b: 1, a: 2} }}", Functions, &scope()), Ok(r#"{"b": 1,"a": 2}"#.to_owned()));
    assert_eq!(text("${{ {b: 1, a: 2} }}", Steps, &scope()), Ok(r#"{"a":2,"b":1}"#.to_owned()));
}
