//! The JSON Schemas that `step-runner schema` prints accept and refuse what reading does, and a little more: they are strict.

use jsonschema::Validator;
use serde_json::{Value as Json, json};
use step_model::document::Dialect;
use step_model::document::raw;
use step_model::document::schema;

/// A part of a schema by itself.
fn part(schema: &Json, name: &str) -> Validator {
    let mut part = schema.clone();
    let object = part.as_object_mut().expect("a schema is an object");
    object.remove("anyOf");
    object.remove("type");
    object.remove("items");
    object.insert("$ref".into(), format!("#/$defs/{name}").into());
    jsonschema::draft202012::new(&part).expect("a schema")
}

fn whole(schema: &Json) -> Validator {
    jsonschema::draft202012::new(schema).expect("a schema")
}

fn yaml(text: &str) -> Json {
    raw::read_value(text, None).unwrap_or_else(|problem| panic!("{text}: {problem}")).to_json()
}

#[test]
fn the_schemas_are_schemas() {
    for schema in [schema::definition_file(Dialect::Steps), schema::definition_file(Dialect::Functions), schema::job_run()] {
        assert!(jsonschema::meta::is_valid(&schema));
    }
}

#[test]
fn specs_of_the_cases_are_valid_or_not() {
    let valid = [
        ("SPC-02", "{}"),
        ("SPC-02", "spec: {}"),
        ("SPC-02", "{spec: null}"),
        ("SPC-05", "spec: {inputs: {a: {type: string}, b: {type: number}, c: {type: array}, d: {type: struct}, e: {type: boolean}}}"),
        ("SPC-08", "spec: {outputs: {a: {type: string}, b: {type: number}, c: {type: array}, d: {type: struct}, e: {type: boolean}}}"),
        ("SPC-11", "spec: {outputs: delegate}"),
        ("SPC-16", "{\"spec\": {\"outputs\": {\"who\": {\"type\": \"string\"}}}}"),
        ("RD-10", "spec: {inputs: {a: {type: string, default: \"\"}}}"),
    ];
    let invalid = [
        ("SPC-01", "null"),
        ("SPC-04", "spec: {colour: red}"),
        ("SPC-07", "spec: {inputs: {a: }}"),
        ("SPC-10", "spec: {outputs: {a: }}"),
        ("SPC-13", "spec: {inputs: {\"two words\": {type: string}}}"),
        ("SPC-14", "spec: {outputs: {\"two words\": {type: string}}}"),
        ("RD-07", "{spec: {}, type: exec}"),
        ("RD-11", "spec: {outputs: {a: {type: array, default: {}}}}"),
        ("A.2", "spec: {inputs: {a: {type: int}}}"),
        ("A.2", "spec: {outputs: delegated}"),
    ];
    for dialect in [Dialect::Steps, Dialect::Functions] {
        let schema = schema::definition_file(dialect);
        let (interface, file) = (part(&schema, "interface"), whole(&schema));
        for (case, text) in valid {
            assert!(interface.is_valid(&yaml(text)), "{case}: {text}");
            assert!(file.is_valid(&yaml(text)), "{case}: {text}");
        }
        for (case, text) in invalid {
            assert!(!interface.is_valid(&yaml(text)), "{case}: {text}");
        }
    }
}

#[test]
fn steps_of_the_cases_are_valid_or_not() {
    let valid = [
        ("STP-01", "{name: s, step: ./here}"),
        ("STP-02", "{name: s, step: host.example/o/p@v2}"),
        ("STP-08", "{name: s, script: make}"),
        ("STP-29", "{name: s, step: {oci: {registry: r, repository: g/i, tag: v1, dir: a, file: f.yml}}}"),
        ("B.1", "{name: s, step: {git: {url: u, rev: r}}, env: {A: b, C: 1}, inputs: {a: null, b: [1], c: {d: e}}}"),
    ];
    let invalid = [
        ("STP-04", "{name: s, step: {git: {url: u}}}"),
        ("STP-05", "{name: s, step: {git: {rev: r}}}"),
        ("STP-07", "{name: s, step: {git: {extra: 1}}}"),
        ("STP-16", "{name: s, script: x, action: a@v1}"),
        ("STP-17", "{name: s, step: ./a, action: a@v1}"),
        ("STP-19", "{name: s, step: ./a, run: [{step: ./b}]}"),
        ("STP-20", "{name: s, script: x, exec: {command: [b]}}"),
        ("STP-22", "{name: s, action: a@v1, exec: {command: [b]}}"),
        ("STP-23", "{name: s, action: a@v1, run: [{step: ./b}]}"),
        ("STP-25", "{name: s, step: ./a, exec: {command: [b]}, run: [{step: ./b}]}"),
        ("STP-26", "{name: has space, script: x}"),
        ("STP-31", "{name: s, step: {oci: {url: u}}}"),
        ("STP-32", "{name: s, step: {}}"),
        ("REF-35", "{name: s, step: {git: {url: u, rev: r}, oci: {registry: r, repository: g, tag: t}}}"),
        ("A.3", "{script: x}"),
        ("A.3", "{name: s, script: x, inputs: {a: 1}}"),
        ("A.1", "{name: s, script: \"\"}"),
    ];
    let schemas = [schema::definition_file(Dialect::Steps), schema::definition_file(Dialect::Functions), schema::job_run()];
    for schema in &schemas {
        let item = part(schema, "item");
        for (case, text) in valid {
            assert!(item.is_valid(&yaml(text)), "{case}: {text}");
        }
        for (case, text) in invalid {
            assert!(!item.is_valid(&yaml(text)), "{case}: {text}");
        }
    }
    let action = yaml("{name: s, action: owner/act@v3}");
    let func = yaml("{name: s, func: registry.example/a:1, inputs: {\"${{ inputs.k }}\": v}}");
    assert_eq!(schemas.each_ref().map(|schema| part(schema, "item").is_valid(&action)), [true, true, false], "STP-10 and B.1");
    assert_eq!(schemas.each_ref().map(|schema| part(schema, "item").is_valid(&func)), [false, true, true]);
}

#[test]
fn definitions_of_the_cases_are_valid_or_not() {
    let file = whole(&schema::definition_file(Dialect::Steps));
    for (case, text) in [
        ("STP-11", "exec: {command: [prog]}"),
        ("STP-14", "exec: {command: [prog, 2, true, 1.50], work_dir: sub}"),
        ("RD-04", "run: [{name: one, script: echo x}]"),
        ("RD-08", "{env: {PORT: 80, ON: true}, exec: {command: [prog]}}"),
        ("CMP-07", "{run: [{name: d, step: ./x}], delegate: d}"),
    ] {
        assert!(file.is_valid(&yaml(text)), "{case}: {text}");
    }
    for (case, text) in [
        ("STP-13", "exec: {command: []}"),
        ("STP-28", "{run: [{name: s, script: x}], outputs: {bad key: 1}}"),
        ("STP-19", "{step: ./a, run: [{name: b, step: ./b}]}"),
        ("A.3", "{exec: {command: [a]}, run: [{name: a, script: x}]}"),
        ("A.3", "{exec: {command: [a]}, outputs: {a: 1}}"),
        ("A.6", "{type: exec, exec: {command: [a]}}"),
        ("A.1", "run: []"),
    ] {
        assert!(!file.is_valid(&yaml(text)), "{case}: {text}");
    }
}

#[test]
fn a_list_of_steps_is_valid_or_not() {
    let run = whole(&schema::job_run());
    assert!(run.is_valid(&json!([{"name": "a", "script": "x"}])));
    assert!(!run.is_valid(&json!({"run": []})));
    assert!(!run.is_valid(&json!([{"name": "a", "exec": {"command": ["x"]}}])));
}

#[test]
fn the_tests_of_the_examples_and_of_new_steps_fit_the_schema_of_tests() {
    let schema = step_model::testing::schema::step_test();
    assert!(jsonschema::meta::is_valid(&schema));
    let schema = whole(&schema);
    let workshop = ci_tests::workshop::Workshop::new();
    for kind in ["--exec", "--run", "--script"] {
        ci_tests::workshop::Ends::ends(workshop.step_runner(&["new", &kind[2..], kind]), 0);
    }
    let mut texts: Vec<String> = ["exec", "run", "script"].iter().map(|kind| workshop.read(&format!("{kind}/step_test.yml"))).collect();
    texts.extend(ci_tests::repository::files_ending_in(&["_test.yml"]).into_iter().map(|file| file.text));
    assert!(texts.len() >= 7);
    for text in texts {
        assert_eq!(schema.iter_errors(&yaml(&text)).map(|error| error.to_string()).collect::<Vec<_>>(), [""; 0], "{text}");
    }
    for text in [
        "cases: []",
        "cases: [{}]",
        "cases: [{name: a, inptus: {}}]",
        "cases: [{name: a, timeout: 5 minutes}]",
        "cases: [{name: a, expect: {steps: {b: done}}}]",
    ] {
        assert!(!schema.is_valid(&yaml(text)), "{text}");
    }
}

#[test]
fn inputs_of_builtin_steps_are_known() {
    use step_model::builtin::{Builtin, Builtins};
    let definition = "spec: {inputs: {image: {type: string}, pids: {type: number, default: 0}}}\n---\nexec: {command: [a]}\n";
    let builtin = Builtin { name: "docker".into(), definition: definition.into(), command: vec!["/bin/true".into()] };
    let builtins = Builtins::new([builtin]).expect("a sound definition");
    for mut schema in [schema::definition_file(Dialect::Functions), schema::job_run()] {
        schema::add_builtins(&mut schema, &builtins);
        assert!(jsonschema::meta::is_valid(&schema));
        let item = part(&schema, "item");
        let is_valid = |inputs: &str| item.is_valid(&yaml(&format!("{{name: a, func: \"builtin://docker\", inputs: {inputs}}}")));
        assert!(is_valid("{image: a}") && is_valid("{image: a, pids: 3}") && is_valid("{image: a, pids: \"${{ inputs.n }}\"}"));
        assert!(is_valid("{image: a, \"${{ vars.X }}\": 1}"));
        assert!(
            !is_valid("{pids: 3}") && !is_valid("{image: a, pids: many}") && !is_valid("{image: a, pidz: 3}") && !is_valid("{image: 3}")
        );
        assert!(!item.is_valid(&yaml("{name: a, func: \"builtin://docker\"}")), "the image must be given");
        assert!(item.is_valid(&yaml("{name: a, func: ./docker, inputs: {pidz: 3}}")), "another step takes what it declares");
    }
}
