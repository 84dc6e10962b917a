use super::*;

fn declared(outputs: &[(&str, Kind)]) -> Vec<(Arc<str>, Output)> {
    let output = |kind| Output { kind, default: None, sensitive: false, description: None };
    outputs.iter().map(|(name, kind)| (Arc::from(*name), output(*kind))).collect()
}

fn read(file: &str, spec: &[(&str, Kind)]) -> Object {
    outputs(file.as_bytes(), &declared(spec)).unwrap()
}

fn fault(file: &str, spec: &[(&str, Kind)]) -> String {
    outputs(file.as_bytes(), &declared(spec)).unwrap_err().to_string()
}

/// The only output `a`, of this kind.
fn one(kind: Kind, json: &str) -> serde_json::Value {
    read(&format!("{{\"name\":\"a\",\"value\":{json}}}\n"), &[("a", kind)])["a"].to_json()
}

const A: &[(&str, Kind)] = &[("a", Kind::String)];

#[test]
fn out_01_a_file_in_which_nothing_was_written_is_empty() {
    assert_eq!(read("", &[]), Object::new());
}

#[test]
fn out_02_no_outputs() {
    assert_eq!(read("", &[]), Object::new());
    assert_eq!(read("\n\r\n\n", &[]), Object::new());
}

#[test]
fn out_03_several_outputs() {
    let outputs = read("{\"name\":\"b\",\"value\":\"y\"}\n{\"name\":\"a\",\"value\":\"x\"}", &[("a", Kind::String), ("b", Kind::String)]);
    assert_eq!(outputs, Object::from_iter([("a".into(), "x".into()), ("b".into(), "y".into())]));
}

#[test]
fn out_05_a_string() {
    assert_eq!(one(Kind::String, "\"x\""), "x");
}

#[test]
fn out_07_a_boolean() {
    assert_eq!(one(Kind::Boolean, "true"), true);
}

#[test]
fn out_08_an_empty_struct() {
    assert_eq!(one(Kind::Struct, "{}"), serde_json::json!({}));
}

#[test]
fn out_10_an_empty_array() {
    assert_eq!(one(Kind::Array, "[]"), serde_json::json!([]));
}

#[test]
fn out_11_an_array_of_every_kind() {
    let json = "[\"a\",1.5,true,null,{\"k\":[]},[2]]";
    assert_eq!(one(Kind::Array, json), serde_json::from_str::<serde_json::Value>(json).unwrap());
}

#[test]
fn out_13_blanks_in_name_and_value_are_kept() {
    let outputs = read("  {\"name\":\" a \",\"value\":\" x \"}  ", &[(" a ", Kind::String)]);
    assert_eq!(outputs[" a "], " x ".into());
}

#[test]
fn out_14_newlines_in_name_and_value_are_kept() {
    let outputs = read(r#"{"name":"a\nb","value":"x\ny"}"#, &[("a\nb", Kind::String)]);
    assert_eq!(outputs["a\nb"], "x\ny".into());
    let outputs = read(r#"{"name":"a\\n","value":"x\\n"}"#, &[("a\\n", Kind::String)]);
    assert_eq!(outputs["a\\n"], "x\\n".into());
}

#[test]
fn out_16_an_expression_in_a_value_is_text() {
    assert_eq!(one(Kind::String, "\"${{ env.HOME }}\""), "${{ env.HOME }}");
}

#[test]
fn out_17_a_name_may_hold_any_letter() {
    assert_eq!(read("{\"name\":\"größe\",\"value\":\"x\"}", &[("größe", Kind::String)])["größe"], "x".into());
}

#[test]
fn out_19_a_line_that_is_not_json_is_named() {
    assert!(fault("oops", A).starts_with("failed to unmarshal JSON at line 1: "));
    let later = "{\"name\":\"a\",\"value\":\"x\"}\n\n{\"name\":";
    assert!(fault(later, A).starts_with("failed to unmarshal JSON at line 3: "));
}

#[test]
fn out_20_the_old_form_is_not_json() {
    assert_eq!(fault("a=\"x\"", A), "failed to unmarshal JSON at line 1: expected value at column 1");
    assert!(fault("   ", A).starts_with("failed to unmarshal JSON at line 1: "));
    assert!(fault("[]", A).starts_with("failed to unmarshal JSON at line 1: "));
}

#[test]
fn out_22_a_declared_output_has_to_be_written() {
    let spec = [("a", Kind::String), ("b", Kind::String)];
    let expected = "key \"b\": missing output, add to step outputs or remove from step specification";
    assert_eq!(fault("{\"name\":\"a\",\"value\":\"x\"}", &spec), expected);
}

#[test]
fn out_23_an_output_has_to_be_declared() {
    let expected = "key \"c\": unexpected output, remove from step outputs or define in step specification";
    assert_eq!(fault("{\"name\":\"a\",\"value\":\"x\"}\n{\"name\":\"c\",\"value\":1}", A), expected);
}

#[test]
fn out_25_a_line_needs_a_name() {
    assert_eq!(fault("{\"value\":\"x\"}", A), "failed to unmarshal JSON at line 1: \"name\" field is missing");
    assert_eq!(fault("{\"name\":\"\",\"value\":\"x\"}", A), "failed to unmarshal JSON at line 1: \"name\" field value is empty");
}

#[test]
fn out_26_a_name_is_not_null() {
    assert_eq!(fault("{\"name\":null,\"value\":\"x\"}", A), "failed to unmarshal JSON at line 1: \"name\" field value is null");
    assert_eq!(fault("{\"name\":7,\"value\":\"x\"}", A), "failed to unmarshal JSON at line 1: \"name\" field value is not a string");
}

#[test]
fn out_28_a_line_needs_a_value() {
    assert_eq!(fault("{\"name\":\"a\"}", A), "failed to unmarshal JSON at line 1: \"value\" field is missing");
}

#[test]
fn out_29_a_value_is_not_null() {
    assert_eq!(fault("{\"name\":\"a\",\"value\":null}", A), "failed to unmarshal JSON at line 1: \"value\" field value is null");
}

#[test]
fn out_31_a_delegating_step_writes_a_whole_result() {
    let outputs = delegated_outputs(b"{\"outputs\":{\"a\":{\"b\":\"c\"}}}").unwrap();
    assert_eq!(outputs["a"].to_json(), serde_json::json!({"b": "c"}));
    assert_eq!(delegated_outputs(b"{\"status\":\"success\"}").unwrap(), Object::new());
    let sensitive = delegated_outputs(b"{\"outputs\":{\"a\":\"x\",\"b\":\"y\"},\"sensitiveOutputs\":[\"b\"]}").unwrap();
    assert!(!sensitive["a"].is_sensitive() && sensitive["b"].is_sensitive());
    for content in ["", "[]", "{\"outputs\":1}", "{"] {
        let error = delegated_outputs(content.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("delegate: reading output_file as a step result: "), "{error}");
    }
}

#[test]
fn out_32_the_line_is_shown_when_debugging() {
    let error = outputs(b"oops", &[]).unwrap_err();
    assert_eq!(error.text(false), "failed to unmarshal JSON at line 1: expected value at column 1");
    assert_eq!(error.text(true), "failed to unmarshal JSON at line 1: expected value at column 1, line: oops");
    let error = outputs(b"{\"name\":\"c\",\"value\":1}", &[]).unwrap_err();
    assert!(error.text(true).ends_with("define in step specification, line: {\"name\":\"c\",\"value\":1}"));
}

#[test]
fn an_output_has_the_declared_type() {
    let expected = "key \"a\": mismatched types, declared as \"number\" in step specification and received from step as type \"string\"";
    assert_eq!(fault("{\"name\":\"a\",\"value\":\"1\"}", &[("a", Kind::Number)]), expected);
}

#[test]
fn the_last_of_a_name_counts_and_a_default_stands_in() {
    assert_eq!(read("{\"name\":\"a\",\"value\":\"x\"}\n{\"name\":\"a\",\"value\":\"y\"}", A)["a"], "y".into());
    let mut spec = declared(A);
    spec[0].1.default = Some("d".into());
    spec[0].1.sensitive = true;
    assert_eq!(outputs(b"", &spec).unwrap()["a"], Value::from("d").sensitive());
}

#[test]
fn a_value_of_ten_megabytes_is_read() {
    let text = "x".repeat(10 << 20);
    assert_eq!(read(&format!("{{\"name\":\"a\",\"value\":\"{text}\"}}"), A)["a"].as_str().map(str::len), Some(10 << 20));
}

#[test]
fn a_value_that_nests_too_deep_names_the_limit() {
    let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
    let file = format!("{{\"name\":\"a\",\"value\":{deep}}}");
    assert_eq!(fault(&file, &[("a", Kind::Array)]), "key \"a\": value nests deeper than 32 levels");
    let endless = format!("{{\"name\":\"a\",\"value\":{}", "[".repeat(1_000_000));
    assert!(fault(&endless, &[("a", Kind::Array)]).starts_with("failed to unmarshal JSON at line 1: "));
}

fn export(json: &str) -> String {
    let exports = exports(format!("{{\"name\":\"X\",\"value\":{json}}}").as_bytes()).unwrap();
    exports["X"].as_str().unwrap().to_owned()
}

#[test]
fn xpt_01_a_string_is_exported_as_it_is() {
    assert_eq!(export("\"V\""), "V");
}

#[test]
fn xpt_02_a_number_is_exported_in_decimals() {
    assert_eq!(export("56.99"), "56.99");
    assert_eq!(export("1.5e3"), "1500");
    assert_eq!(export("1e-7"), "0.0000001");
    assert_eq!(export("true"), "true");
}

#[test]
fn xpt_04_an_empty_string_is_exported() {
    assert_eq!(export("\"\""), "");
}

#[test]
fn xpt_05_an_array_cannot_be_exported() {
    let error = exports(b"{\"name\":\"X\",\"value\":[1,2]}").unwrap_err();
    assert_eq!(error.to_string(), "key \"X\": cannot convert value type \"array\" to string");
}

#[test]
fn xpt_07_a_large_number_has_no_exponent() {
    assert_eq!(export("1e21"), "1000000000000000000000");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(content: Vec<u8>) {
        let _ = outputs(&content, &declared(A));
        let _ = exports(&content);
        let _ = delegated_outputs(&content);
    }

    #[test]
    fn what_is_written_as_json_is_read_back(name in ".+", text: String, number in -1e15..1e15_f64) {
        let line = |value: serde_json::Value| serde_json::json!({"name": name, "value": value}).to_string() + "\n";
        let spec = |kind| declared(&[(&name, kind)]);
        proptest::prop_assert_eq!(&outputs(line(text.clone().into()).as_bytes(), &spec(Kind::String)).unwrap()[&*name], &Value::from(text.clone()));
        proptest::prop_assert_eq!(&outputs(line(number.into()).as_bytes(), &spec(Kind::Number)).unwrap()[&*name], &Value::from(number));
        proptest::prop_assert_eq!(&exports(line(text.clone().into()).as_bytes()).unwrap()[&*name], &Value::from(text));
        let exported = exports(line(number.into()).as_bytes()).unwrap()[&*name].as_str().unwrap().parse::<f64>().unwrap();
        proptest::prop_assert_eq!(exported, number);
    }
}
