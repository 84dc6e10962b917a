//! Expressions that were evaluated by a running v0.12 (original.md S 2.8), row by row. Where it refused what Moa accepts, ours gives Moa's value.

use super::*;
use crate::document::Dialect::Steps;
use crate::testing::{Contexts, contexts};

fn scope() -> Contexts {
    contexts(&json!({
        "inputs": {
            "s": "text", "n": 1.5, "i": 3, "b": true, "l": [1, "a", true, null], "o": {"b": 2, "a": "x", "c": {"d": [1]}},
            "nul": null, "big": 1e21, "small": 1e-7, "html": ["<a>&"],
        },
        "env": {"HOME": "/root"},
        "job": {"CI_X": "jobval"},
        "vars": {"CI_X": "jobval"},
        "work_dir": "WORK",
        "step_dir": "in",
        "func_dir": "in",
        "output_file": "TMP/output",
        "export_file": "TMP/export",
        "steps": {"prep": {"outputs": {"x": "X", "num": 2}}},
    }))
}

/// The number of the row, what is written, the value, the text.
type Row = (usize, &'static str, Json, &'static str);

fn same_as_the_original() -> Vec<Row> {
    vec![
        (1, "${{inputs.s}}", json!("text"), "text"),
        (2, "${{ inputs.s }}", json!("text"), "text"),
        (3, "${{inputs.n}}", json!(1.5), "1.5"),
        (4, "${{inputs.i}}", json!(3), "3"),
        (5, "${{inputs.b}}", json!(true), "true"),
        (6, "${{inputs.l}}", json!([1, "a", true, null]), r#"[1,"a",true,null]"#),
        (7, "${{inputs.o}}", json!({"a": "x", "b": 2, "c": {"d": [1]}}), r#"{"a":"x","b":2,"c":{"d":[1]}}"#),
        (8, "${{inputs.o.a}}", json!("x"), "x"),
        (9, "${{inputs.o.c.d}}", json!([1]), "[1]"),
        (15, "${{env.HOME}}", json!("/root"), "/root"),
        (18, "${{job.CI_X}}", json!("jobval"), "jobval"),
        (21, "${{work_dir}}", json!("WORK"), "WORK"),
        (22, "${{step_dir}}", json!("in"), "in"),
        (24, "${{output_file}}", json!("TMP/output"), "TMP/output"),
        (25, "${{export_file}}", json!("TMP/export"), "TMP/export"),
        (27, "${{steps.prep.outputs.x}}", json!("X"), "X"),
        (28, "${{steps.prep.outputs.num}}", json!(2), "2"),
        (34, "x${{inputs.s}}y", json!("xtexty"), "xtexty"),
        (35, "x${{inputs.n}}y", json!("x1.5y"), "x1.5y"),
        (36, "x${{inputs.i}}y", json!("x3y"), "x3y"),
        (37, "x${{inputs.b}}y", json!("xtruey"), "xtruey"),
        (38, "x${{inputs.l}}y", json!(r#"x[1,"a",true,null]y"#), r#"x[1,"a",true,null]y"#),
        (39, "x${{inputs.o}}y", json!(r#"x{"a":"x","b":2,"c":{"d":[1]}}y"#), r#"x{"a":"x","b":2,"c":{"d":[1]}}y"#),
        (40, "x${{inputs.nul}}y", json!("xnully"), "xnully"),
        (41, "${{inputs.nul}}", json!(null), "null"),
        (42, "${{inputs.big}}", json!(1e21), "1e+21"),
        (43, "x${{inputs.big}}y", json!("x1e+21y"), "x1e+21y"),
        (44, "x${{inputs.small}}y", json!("x1e-7y"), "x1e-7y"),
        (45, "x${{inputs.html}}y", json!(r#"x["\u003ca\u003e\u0026"]y"#), r#"x["\u003ca\u003e\u0026"]y"#),
        (46, "${{inputs.s}}${{inputs.s}}", json!("texttext"), "texttext"),
        (47, "${{inputs.s}} ${{inputs.s}}", json!("text text"), "text text"),
        (67, "\\${{inputs.s}}", json!("\\text"), "\\text"),
        (68, "$${{inputs.s}}", json!("$text"), "$text"),
        (69, "$", json!("$"), "$"),
        (70, "$x", json!("$x"), "$x"),
        (71, "${x}", json!("${x}"), "${x}"),
        (83, "${{inputs.s}}}", json!("text}"), "text}"),
    ]
}

fn refused_by_the_original() -> Vec<Row> {
    let inputs = scope().context("inputs").unwrap().to_json();
    vec![
        (11, "${{inputs.l[0]}}", json!(1), "1"),
        (12, "${{inputs[\"s\"]}}", json!("text"), "text"),
        (
            13,
            "${{inputs}}",
            inputs,
            r#"{"b":true,"big":1e+21,"html":["\u003ca\u003e\u0026"],"i":3,"l":[1,"a",true,null],"n":1.5,"nul":null,"o":{"a":"x","b":2,"c":{"d":[1]}},"s":"text","small":1e-7}"#,
        ),
        (14, "${{env}}", json!({"HOME": "/root"}), r#"{"HOME":"/root"}"#),
        (17, "${{job}}", json!({"CI_X": "jobval"}), r#"{"CI_X":"jobval"}"#),
        (20, "${{vars.CI_X}}", json!("jobval"), "jobval"),
        (23, "${{func_dir}}", json!("in"), "in"),
        (26, "${{steps}}", json!({"prep": {"outputs": {"x": "X", "num": 2}}}), r#"{"prep":{"outputs":{"num":2,"x":"X"}}}"#),
        (29, "${{steps.prep.outputs}}", json!({"x": "X", "num": 2}), r#"{"num":2,"x":"X"}"#),
        (30, "${{steps.prep}}", json!({"outputs": {"x": "X", "num": 2}}), r#"{"outputs":{"num":2,"x":"X"}}"#),
        (48, "${{1}}", json!(1), "1"),
        (49, "${{ 1 + 1 }}", json!(2), "2"),
        (50, "${{\"a\"}}", json!("a"), "a"),
        (51, "${{'a'}}", json!("a"), "a"),
        (52, "${{true}}", json!(true), "true"),
        (53, "${{null}}", json!(null), "null"),
        (54, "${{inputs.b && inputs.s}}", json!("text"), "text"),
        (55, "${{inputs.nope || \"d\"}}", json!("d"), "d"),
        (56, "${{!inputs.b}}", json!(false), "false"),
        (57, "${{str(inputs.n)}}", json!("1.5"), "1.5"),
        (66, "${{ inputs . s }}", json!("text"), "text"),
        (73, "a}}b", json!("a}}b"), "a}}b"),
        (74, "{{a}}", json!("{{a}}"), "{{a}}"),
        (75, "}}", json!("}}"), "}}"),
        (76, r#"{"a":{"b":1}}"#, json!(r#"{"a":{"b":1}}"#), r#"{"a":{"b":1}}"#),
        (77, "${{ \"}}\" }}", json!("}}"), "}}"),
        (79, "${{ {a: 1} }}", json!({"a": 1}), r#"{"a":1}"#),
        (80, "${{ [1,2] }}", json!([1, 2]), "[1,2]"),
        (81, "$ {{inputs.s}}", json!("$ {{inputs.s}}"), "$ {{inputs.s}}"),
        (82, "${ {inputs.s}}", json!("${ {inputs.s}}"), "${ {inputs.s}}"),
        (84, "${{inputs.s}}}}", json!("text}}"), "text}}"),
    ]
}

/// The messages are the original's, but for what it prints of Go's memory and of values.
fn refused_by_both() -> Vec<(usize, &'static str, &'static str)> {
    vec![
        (10, "${{inputs.l.0}}", r#"inputs.l.0: the array is not map to get "0" key"#),
        (16, "${{env.NOPE}}", r#"env.NOPE: the "NOPE" was not found"#),
        (19, "${{job.NOPE}}", r#"job.NOPE: the "NOPE" was not found"#),
        (31, "${{steps.nope.outputs.x}}", r#"steps.nope.outputs.x: the "nope" was not found"#),
        (32, "${{steps.prep.outputs.nope}}", r#"steps.prep.outputs.nope: the "nope" was not found"#),
        (33, "${{steps.prep.exit_code}}", r#"steps.prep.exit_code: the "exit_code" was not found"#),
        (58, "${{}}", r#": the "" was not found"#),
        (59, "${{ }}", r#": the "" was not found"#),
        (60, "${{inputs.}}", r#"inputs.: the "" was not found"#),
        (61, "${{.inputs}}", r#".inputs: the "" was not found"#),
        (62, "${{inputs..s}}", r#"inputs..s: the "" was not found"#),
        (63, "${{inputs.s.x}}", r#"inputs.s.x: the string is not map to get "x" key"#),
        (64, "${{inputs.o.nope}}", r#"inputs.o.nope: the "nope" was not found"#),
        (65, "${{inputs.S}}", r#"inputs.S: the "S" was not found"#),
        (72, "${{inputs.s", r#"the "inputs.s" is not closed: ${{ ... }}"#),
        (78, "${{inputs.${{inputs.s}}}}", r#"inputs.${{inputs.s}}: the "${{inputs" was not found"#),
    ]
}

#[test]
fn every_row_is_here_once() {
    let values = same_as_the_original().into_iter().chain(refused_by_the_original()).map(|row| row.0);
    let mut rows: Vec<usize> = values.chain(refused_by_both().into_iter().map(|row| row.0)).collect();
    rows.sort_unstable();
    assert_eq!(rows, (1..=84).collect::<Vec<_>>());
}

#[test]
fn what_the_original_accepts_has_the_same_value_and_text() {
    for (row, source, value, as_text) in same_as_the_original() {
        assert_eq!(evaluated(source, Steps, &scope()), Ok(value), "row {row}: {source}");
        assert_eq!(text(source, Steps, &scope()).as_deref(), Ok(as_text), "row {row}: {source}");
    }
}

#[test]
fn what_only_moa_accepts_has_its_value() {
    for (row, source, value, as_text) in refused_by_the_original() {
        assert_eq!(evaluated(source, Steps, &scope()), Ok(value), "row {row}: {source}");
        assert_eq!(text(source, Steps, &scope()).as_deref(), Ok(as_text), "row {row}: {source}");
    }
}

#[test]
fn what_both_refuse_has_the_originals_message() {
    for (row, source, message) in refused_by_both() {
        assert_eq!(evaluated(source, Steps, &scope()), Err(message.to_owned()), "row {row}: {source}");
        assert_eq!(text(source, Steps, &scope()), Err(message.to_owned()), "row {row}: {source}");
    }
}
