use super::*;
use crate::document::raw::{read, read_steps};
use proptest::prelude::*;

/// Read and written again it must be the same text.
fn assert_round_trip(text: &str, file: &str) {
    let reading = read(text, file);
    let document = reading.document.unwrap_or_else(|| panic!("{:?}", reading.problems));
    assert_eq!(to_yaml(&document), text);
}

#[test]
fn rd_04_a_minimal_sequence_is_written_as_it_was() {
    assert_round_trip("{}\n---\nrun:\n    - name: one\n      script: echo x\n", "step.yml");
    let document = read("{}\n---\nrun: [{name: one, script: echo x}]", "step.yml").document.unwrap();
    assert_eq!(to_yaml(&document), "{}\n---\nrun:\n    - name: one\n      script: echo x\n");
}

#[test]
fn rd_05_a_definition_with_everything_is_written_as_it_was() {
    assert_round_trip(
        r#"spec:
    inputs:
        age:
            default: 42
            type: number
        favorites:
            default:
                colour: red
                list:
                    - 1
                    - null
                    - - nested
                      - ""
            type: struct
        who:
            default: world
            sensitive: true
            type: string
    outputs:
        greeting:
            type: string
---
env:
    PORT: "80"
exec:
    command:
        - echo
        - hello ${{ inputs.who }}
    work_dir: sub
"#,
        "step.yml",
    );
}

#[test]
fn every_kind_of_step_is_written_as_it_was() {
    assert_round_trip(
        r#"spec:
    outputs: delegate
---
delegate: last
env:
    A: b
outputs:
    o: ${{ steps.a.outputs.x }}
run:
    - env:
        K: v
      inputs:
        list:
            - 1
            - a: b
              c: d
        number: 1.5
      name: a
      step: ./dir/file.yml
    - name: b
      step: h.example/g/p/-/inner/other.yml@v1
    - name: c
      step:
        git:
            dir: d
            rev: v1
            url: http://h.example/x
    - name: d
      step:
        oci:
            file: f.yml
            registry: r.example
            repository: g/i
            tag: "1"
    - action: owner/act@v3
      inputs:
        k: v
      name: e
    - name: f
      script: |
        echo a
          echo b

        echo c
    - name: g
      step: ${{ steps.a.outputs.where }}
    - name: h
      step: dist://a/b
    - name: last
      step: /opt/x
"#,
        "step.yml",
    );
}

#[test]
fn functions_are_written_as_functions() {
    assert_round_trip(
        "{}\n---\nrun:\n    - name: a\n      func: registry.example/a/b:1 reverse/func.yml\n    - name: b\n      func: builtin://docker\n",
        "func.yml",
    );
    let (steps, _) = read_steps("[{name: a, func: builtin://script_legacy}]", None);
    assert_eq!(steps_to_yaml(&steps, Dialect::Functions), "{}\n---\nrun:\n    - name: a\n      func: builtin://script_legacy\n");
}

#[test]
fn texts_are_quoted_where_they_would_be_something_else() {
    let written = |text: &str| emit(&Tree::Text(text.into()));
    for plain in ["a b", "${{ x }}", "a#b", "a:b", "-x", "http://h/x", "it's", "x, y", "ü", "2024-13"] {
        assert_eq!(written(plain), format!("{plain}\n"));
    }
    for double in ["", "1", "true", "yes", "No", "null", "~", "0x10", "1e3", "2024-01-01", "12:30", "<<"] {
        assert_eq!(written(double), format!("\"{double}\"\n"));
    }
    for single in ["a: b", "a #b", "#x", "- x", "[x", "{x", "*x", "&x", "!x", "@x", " x", "x ", "x:", "%x", "--- x", "a\tb"] {
        assert_eq!(written(single), format!("'{single}'\n"));
    }
    assert_eq!(written("\u{7}\"\\"), "\"\\a\\\"\\\\\"\n");
    assert_eq!(written("a\r\nb"), "\"a\\r\\nb\"\n");
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,12}".prop_map(Value::from),
        "[-:#'\"\\[\\]{}|>&*!%@`? \n\ta0~\\\\]{0,10}".prop_map(Value::from),
        any::<String>().prop_map(Value::from)
    ];
    let scalar = prop_oneof![
        3 => text,
        1 => any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        1 => any::<i32>().prop_map(|number| Value::from(f64::from(number))),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::NULL),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::array),
            prop::collection::vec(("[ -~\n]{0,8}", inner), 0..4).prop_map(Value::object),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_reads_back_the_same(value in any_value()) {
        let text = emit(&Tree::List(vec![super::value(&value)]));
        let read = crate::document::raw::read_value(&text, None);
        prop_assert_eq!(read, Ok(Value::array([value])), "{}", text);
    }
}
