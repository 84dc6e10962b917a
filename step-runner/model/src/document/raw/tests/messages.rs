//! What people see: each message once, with its hint.

use super::*;

#[test]
fn a_specification_with_everything_wrong() {
    let reading = spec_of(
        "spec:\n  type: exec\n  inptus: {}\n  inputs:\n    a: {type: int}\n    b: {default: 1}\n    c: {type: string, default: 1.10}\n    d: {type: string, default: ~}\n    e: {type: strnig, required: true}\n    f: {type: boolean, sensitive: maybe}\n    g: {type: step_result}\n    h: [1]\n    i-j: {type: string}\n    k: {type: string, default: \"${{ inputs.a }}\"}\n    l: {type: array, description: {}}\n    m: {type: map, valeu: 1}\n  outputs: delgate",
    );
    insta::assert_snapshot!(shown(&reading.problems), @r#"
    warning[unknown-key] line 2, column 3: unknown key `type` in `spec` is ignored
        hint: remove it: `exec:` or `run:` in the second document says what the step is
    warning[unknown-key] line 3, column 3: unknown key `inptus` in `spec` is ignored
        hint: did you mean `inputs`?
    error[unknown-type] line 5, column 15: `int` is no type: value must be one of "string", "number", "boolean", "struct", "array"
        hint: did you mean `number`?
    error[missing-type] line 6, column 5: missing input type: missing properties: 'type'
        hint: add `type: string`, or `number`, `boolean`, `struct`, `array`
    error[default-of-other-type] line 7, column 32: input type "string" and default value type "number" must match
        hint: quote it: `"1.10"`
    warning[null-default] line 8, column 23: a default of null is no default
        hint: remove it, or give a value of the type
    error[unknown-type] line 9, column 15: `strnig` is no type: value must be one of "string", "number", "boolean", "struct", "array"
        hint: did you mean `string`?
    warning[unknown-key] line 9, column 23: unknown key `required` in an input is ignored
        hint: an input without `default` is required
    error[not-a-boolean] line 10, column 35: `sensitive` is true or false: cannot unmarshal !!str `maybe` into bool
    error[unknown-type] line 11, column 15: `step_result` is no type: value must be one of "string", "number", "boolean", "struct", "array"
        hint: write `outputs: delegate` instead
    error[not-a-map] line 12, column 8: an input is a map, not a list: cannot unmarshal !!seq into object
    error[not-an-identifier] line 13, column 5: input `i-j` is not a name: additionalProperties 'i-j' not allowed
        hint: a name has letters, digits and `_`, and begins with no digit
    warning[default-with-expression] line 14, column 32: a default is never expanded: `${{` stays as it is
        hint: give the value where the step is called
    error[not-a-text] line 15, column 35: `description` is a text, not a map: cannot unmarshal !!map into string
    error[unknown-type] line 16, column 15: `map` is no type: value must be one of "string", "number", "boolean", "struct", "array"
        hint: did you mean `struct`?
    warning[unknown-key] line 16, column 20: unknown key `valeu` in an input is ignored
        hint: an input has the keys `type`, `default`, `sensitive`, `description` and `template`
    error[not-a-map] line 17, column 12: `outputs` is a map of outputs, or the word `delegate`, not `delgate`
        hint: did you mean `delegate`?
    "#);
}

#[test]
fn a_sequence_with_everything_wrong() {
    let reading = definition_of(
        "steps: []\nenv: [A]\nname: x\nrun:\n  - name: one\n    func: ./x\n    step: ./y\n  - name: two\n    uses: ./x\n    with: {a: 1}\n  - name: three\n    script: [a, b]\n  - name: four\n    script: \"\"\n  - name: five\n    script: x\n    inputs: {a: 1}\n  - name: six\n    step: [1]\n  - name: seven\n    action: \"\"\n  - name: eight\n    step: ./x\n    env: {a-b: 1, C: [1]}\n    inputs: {a.b: 1}\n    outputs: {a: 1}\n  -\n  - x\n  - name: nine\n    step: ./x.yaml\noutputs: [a]",
    );
    insta::assert_snapshot!(shown(&reading.problems), @r"
    warning[unknown-key] line 3, column 1: unknown key `steps` in a definition is ignored
        hint: `steps` is now `run`
    error[not-a-map] line 4, column 6: `env` is a map, not a list: cannot unmarshal !!seq into object
    error[key-not-allowed] line 5, column 1: `name` is not allowed beside `run`: additionalProperties 'name' not allowed
        hint: a step gets its name where it is called
    error[too-many-kinds] line 8, column 5: only one of `step` or `func` may be provided
        hint: remove `step`, the older name
    error[missing-reference] line 10, column 5: the step runs nothing: missing properties: 'step'
        hint: add `func`, `step`, `script` or `action`
    warning[unknown-key] line 11, column 5: unknown key `uses` in a step of `run` is ignored
        hint: did you mean `func` (or `step`)?
    warning[unknown-key] line 12, column 5: unknown key `with` in a step of `run` is ignored
        hint: did you mean `inputs`?
    error[not-a-text] line 14, column 13: `script` is a text, not a list: cannot unmarshal !!seq into string
        hint: write the lines as one block: `script: |`
    error[empty-script] line 16, column 13: `script` is empty: length must be >= 1
    error[too-many-kinds] line 18, column 5: the `script` keyword cannot be used with the `inputs` keyword
        hint: a script takes values through `env`
    error[not-a-text] line 21, column 11: a reference is a text, not a list: cannot unmarshal !!seq into string
    error[empty-action] line 23, column 13: `action` is empty: length must be >= 1
    error[not-an-identifier] line 26, column 11: the variable `a-b` is not a name: additionalProperties 'a-b' not allowed
        hint: a name has letters, digits and `_`, and begins with no digit
    error[not-a-text] line 26, column 22: a variable of `env` is a text, not a list: cannot unmarshal !!seq into string
    error[not-an-identifier] line 27, column 14: the input `a.b` is not a name: additionalProperties 'a.b' not allowed
        hint: a name has letters, digits and `_`, and begins with no digit
    error[key-not-allowed] line 28, column 5: `outputs` is not allowed in a step of `run`
        hint: it belongs to the definition of a step, beside its `run`
    error[missing-reference] line 29, column 4: the step is empty: missing properties: 'name', 'step'
    error[not-a-map] line 30, column 5: a step of `run` is a map, not a text: cannot unmarshal !!str `x` into object
    warning[yaml-extension] line 32, column 11: `x.yaml` is taken as a directory: the name of a definition file ends in `.yml`
        hint: rename the file
    error[not-a-map] line 33, column 10: `outputs` is a map, not a list: cannot unmarshal !!seq into object
    ");
}

#[test]
fn an_exec_with_everything_wrong() {
    let reading =
        definition_of("exec:\n  command: sh -c true\n  cwd: x\n  work_dir: [a]\noutputs: {a: 1}\ninputs: {}\nname: a\ntype: exec");
    insta::assert_snapshot!(shown(&reading.problems), @r#"
    error[not-a-list] line 4, column 12: `command` is a list, not a text: cannot unmarshal !!str `sh -c true` into []string
        hint: write `[program, argument]`; no shell is involved: for a command line use `[sh, -c, "..."]`
    warning[unknown-key] line 5, column 3: unknown key `cwd` in `exec` is ignored
        hint: did you mean `work_dir`?
    error[not-a-text] line 6, column 13: `work_dir` is a text, not a list: cannot unmarshal !!seq into string
    error[key-not-allowed] line 7, column 1: `outputs` is not allowed beside `exec`: additionalProperties 'outputs' not allowed
        hint: outputs of an exec are declared in the first document, and written to `${{ output_file }}` by the program
    error[key-not-allowed] line 8, column 1: `inputs` is not allowed beside `exec`: additionalProperties 'inputs' not allowed
        hint: inputs are declared in the first document, under `spec`
    error[key-not-allowed] line 9, column 1: `name` is not allowed beside `exec`: additionalProperties 'name' not allowed
        hint: a step gets its name where it is called
    warning[unknown-key] line 10, column 1: unknown key `type` in a definition is ignored
        hint: remove it: `exec` or `run` says what the step is
    "#);
    insta::assert_snapshot!(shown(&definition_of("exec: prog").problems), @"error[not-a-map] line 3, column 7: `exec` is a map, not a text: cannot unmarshal !!str `prog` into object");
    insta::assert_snapshot!(shown(&definition_of("exec: {command: [[a]]}").problems), @"error[not-a-text] line 3, column 18: an item of `command` is a text, not a list: cannot unmarshal !!seq into string");
}

#[test]
fn shapes_that_are_none() {
    insta::assert_snapshot!(shown(&definition_of("script: make").problems), @r"
    error[missing-kind] line 3, column 1: at least one of `script`, `action`, `run` or `exec` must be provided in a definition
        hint: a definition is `exec` or `run`: put `script` into an item of `run`
    ");
    insta::assert_snapshot!(shown(&definition_of("func: ./x").problems), @r"
    error[missing-kind] line 3, column 1: at least one of `script`, `action`, `run` or `exec` must be provided in a definition
        hint: a definition is `exec` or `run`: put `func` into an item of `run`
    ");
    insta::assert_snapshot!(shown(&definition_of("run: {name: a}").problems), @r"
    error[not-a-list] line 3, column 6: `run` is a list of steps, not a map: cannot unmarshal !!map into []schema.Step
        hint: begin each step with `- `
    ");
    insta::assert_snapshot!(shown(&definition_of("run: make").problems), @"error[not-a-list] line 3, column 6: `run` is a list of steps, not a text: cannot unmarshal !!str `make` into []schema.Step");
    insta::assert_snapshot!(shown(&definition_of("run: []").problems), @r"
    error[missing-kind] line 3, column 1: at least one of `script`, `action`, `run` or `exec` must be provided
        hint: `run` is empty: add a step
    ");
    insta::assert_snapshot!(shown(&definition_of("").problems), @r"
    error[missing-kind] line 2, column 4: the second document is empty: at least one of `script`, `action`, `run` or `exec` must be provided
        hint: add `exec:` or `run:`
    ");
    insta::assert_snapshot!(shown(&definition_of("just text").problems), @"error[not-a-map] line 3, column 1: a definition is a map, not a text: cannot unmarshal !!str `just text` into object");
    insta::assert_snapshot!(shown(&read("just text\n---\nexec: {command: [a]}", "step.yml").problems), @r"
    error[not-a-map] line 1, column 1: the first document is a map, not a text: cannot unmarshal !!str `just text` into schema.Spec
        hint: write `{}` when the step takes and gives nothing
    ");
    insta::assert_snapshot!(shown(&read("---\n---\nexec: {command: [a]}", "step.yml").problems), @r"
    warning[empty-spec] line 1, column 4: the first document is empty: expected object, but got null
        hint: write `{}` when the step takes and gives nothing
    ");
    insta::assert_snapshot!(shown(&read("{}", "step.yml").problems), @r"
    error[missing-definition] line 1, column 3: decoding: EOF: the text ends after its first document, where the definition is missing
        hint: write a line `---`, and then `exec:` or `run:`; a step that takes and gives nothing has `{}` as its first document
    ");
}

#[test]
fn references_that_are_none() {
    let reading = definition_of(
        "run:\n  - {name: a, step: foo}\n  - {name: b, step: example.com/x}\n  - {name: c, step: \"\"}\n  - {name: d, step: oci://x}\n  - {name: e, step: builtin://}\n  - {name: f, step: {gti: {url: u, rev: r}}}\n  - {name: g, step: {git: {url: u, ref: r}}}\n  - {name: h, step: {git: [u, r]}}\n  - {name: i, step: {git: {url: u, rev: \"${{ vars.R }}\"}}}",
    );
    insta::assert_snapshot!(shown(&reading.problems), @r#"
    error[reference] line 4, column 21: expecting url@rev. got "foo"
        hint: a directory begins with `./`
    error[reference] line 5, column 21: expecting url@rev. got "example.com/x"
        hint: a directory begins with `./`, and a Git reference ends with a revision: `host/project@v1`
    error[reference] line 6, column 21: the reference is empty
        hint: write a directory (`./greet`), a Git revision (`host/project@v1`) or `builtin://script`
    error[reference] line 7, column 21: `oci://` is no way to name a step
        hint: write the image alone, `registry/repository:tag`, with `func:`
    error[reference] line 8, column 21: `builtin://` names no step
        hint: put the name of a step behind it: `builtin://script`
    error[reference] line 9, column 21: field git: or oci: required
    warning[unknown-key] line 9, column 22: unknown key `gti` in a reference is ignored
        hint: did you mean `git`?
    error[reference] line 10, column 27: field rev in git: required
    warning[unknown-key] line 10, column 36: unknown key `ref` in `git` is ignored
        hint: did you mean `rev`?
    error[not-a-map] line 11, column 27: `git` is a map, not a list: cannot unmarshal !!seq into object
    warning[rev-with-expression] line 12, column 41: `rev` is never expanded: `${{` stays as it is
        hint: make the whole reference a text with an expression
    "#);
    let reading =
        read("{}\n---\nrun: [{name: a, func: \"a b@c\"}, {name: b, func: \"A//b\"}, {name: c, func: \"h.example/x@\"}]", "func.yml");
    insta::assert_snapshot!(shown(&reading.problems), @r#"
    error[reference] line 3, column 49: `A//b` is no image: a repository has letters, digits, `.`, `_`, `-` and `/`
        hint: an image is `registry/repository:tag`; a directory begins with `./`
    error[reference] line 3, column 74: expecting url@rev. got "h.example/x@"
        hint: a Git reference ends with a revision: `host/project@v1`
    "#);
}

#[test]
fn yaml_that_is_none() {
    insta::assert_snapshot!(shown(&definition_of("exec: {command: [a: b: c]}").problems), @"error[yaml-syntax] line 3, column 22: not YAML: while parsing a flow mapping, did not find expected ',' or '}'");
    insta::assert_snapshot!(shown(&definition_of("exec:\n\tcommand: [a]").problems), @r"
    error[yaml-syntax] line 4, column 2: not YAML: tabs disallowed within this context (block indentation)
        hint: indent with spaces
    ");
    insta::assert_snapshot!(shown(&definition_of("exec: {command: [@x]}").problems), @r"
    error[yaml-syntax] line 3, column 18: not YAML: unexpected character: `@'
        hint: quote the text
    ");
    insta::assert_snapshot!(shown(&definition_of("exec: {command: [\"a]}\n").problems), @"error[yaml-syntax] line 3, column 18: not YAML: unclosed quote");
    insta::assert_snapshot!(shown(&definition_of("env: {A: !secret x, <<: 1}\nexec: {command: [a]}").problems), @"error[merge-of-no-map] line 3, column 25: map merge requires map or sequence of maps as the value");
    insta::assert_snapshot!(shown(&item("{name: a, step: ./x, inputs: {v: !secret x}}").problems), @r"
    warning[unknown-tag] line 3, column 48: the tag `!secret` is ignored
        hint: remove it; quote the text if it is to begin with `!`
    ");
}

const READS: &str = r#"spec:
  inputs:
    who: {type: string}
---
env:
  A: ${{ steps.one.outputs.x }}
run:
  - name: one
    step: ./x
    env: {A: "${{ steps.one.outputs.x }}", B: "${{ inputs.whoo }}"}
    inputs:
      a: ${{ steps.two.outputs.x }}
      b: ${{ CI_JOB_ID }} ${{ who }} ${{ one }} ${{ variables.x }} ${{ input.who }}
  - name: two
    script: |
      echo plain
      echo "${{ steps.onne.outputs.x }}" ${{ steps.one.exit_code }}
  - name: three
    step: "./${{ steps.four.outputs.dir }}"
    inputs: {c: "${{ inputs.nope || 'x' }}"}
outputs:
  x: ${{ steps.three.outputs.x }}
  y: ${{ steps.nobody.outputs.x }}
"#;

#[test]
fn an_input_whose_declaration_is_wrong_is_there_all_the_same() {
    let text =
        "spec: {inputs: {who: {type: strnig}, when: 1}}\n---\nexec: {command: [echo, \"${{ inputs.who }}\", \"${{ inputs.when }}\"]}\n";
    let codes: Vec<&str> = read(text, "func.yml").problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["unknown-type", "not-a-map"]);
}

#[test]
fn names_that_have_no_value() {
    insta::assert_snapshot!(shown(&read(READS, "step.yml").problems), @r#"
    warning[unknown-step] line 6, column 10: step `one` has not run yet at this place
        hint: move it before this one
    warning[unknown-step] line 10, column 19: a step cannot read its own outputs
        hint: read them in a later step, or in `outputs` of the sequence
    warning[unknown-input-read] line 10, column 52: there is no input `whoo`
        hint: did you mean `inputs.who`?
    warning[unknown-step] line 12, column 14: step `two` has not run yet at this place
        hint: move it before this one
    warning[unknown-context] line 13, column 14: there is no `CI_JOB_ID` to read from
        hint: did you mean `vars.CI_JOB_ID`, or `env.CI_JOB_ID`?
    warning[unknown-context] line 13, column 31: there is no `who` to read from
        hint: did you mean `inputs.who`?
    warning[unknown-context] line 13, column 42: there is no `one` to read from
        hint: did you mean `steps.one.outputs`?
    warning[unknown-context] line 13, column 53: there is no `variables` to read from
        hint: did you mean `vars`?
    warning[unknown-context] line 13, column 72: there is no `input` to read from
        hint: did you mean `inputs`?
    warning[unknown-step] line 17, column 17: there is no step `onne`
        hint: did you mean `steps.one`?
    warning[script-injection] line 17, column 17: the value of `steps.onne.outputs.x` becomes a part of the script and can hold commands
        hint: pass it as a variable: `env: {X: "${{ steps.onne.outputs.x }}"}`, and write `"$X"` in the script
    warning[unknown-part-of-step] line 17, column 46: a step has nothing but `outputs` to read: there is no `exit_code`
        hint: `steps.one.outputs.exit_code` reads an output of that name
    warning[unknown-step] line 19, column 18: there is no step `four`
        hint: before this one run `one`, `two`
    warning[unknown-input-read] line 20, column 22: there is no input `nope`
        hint: declared are `who`
    warning[unexpected-output] line 22, column 3: key "x": unexpected output, remove from step outputs or define in step specification
    warning[unexpected-output] line 23, column 3: key "y": unexpected output, remove from step outputs or define in step specification
    warning[unknown-step] line 23, column 10: there is no step `nobody`
        hint: before this one run `one`, `two`, `three`
    "#);
    let reading = read(READS, "func.yml");
    assert!(reading.document.is_none());
    assert!(reading.problems.iter().any(|problem| problem.code == "unknown-step" && problem.is_error()));
}

#[test]
fn outputs_that_do_not_fit_the_spec() {
    let text = "spec: {outputs: {path: {type: string}, count: {type: number}, size: {type: number, default: 1}}}\n---\nrun: [{name: a, script: x}]\noutputs: {paht: x, count: many}\ndelegate: a\n";
    insta::assert_snapshot!(shown(&read(text, "step.yml").problems), @r#"
    warning[missing-output] line 4, column 1: key "path": missing output, add to step outputs or remove from step specification
        hint: add `path: ${{ steps.NAME.outputs.path }}` to `outputs`
    warning[unexpected-output] line 4, column 11: key "paht": unexpected output, remove from step outputs or define in step specification
        hint: did you mean `path`?
    warning[output-of-other-type] line 4, column 27: key "count": mismatched types, declared as "number" in step specification and received from step as type "string"
    warning[delegate-without-effect] line 5, column 1: `delegate` has no effect: the first document does not say `outputs: delegate`
        hint: remove it, or declare `outputs: delegate`
    "#);
    assert_refused(&read(text, "func.yml"), "key \"path\": missing output");
}

#[test]
fn delegates_that_nobody_is() {
    let text = |rest: &str| format!("spec: {{outputs: delegate}}\n---\nrun: [{{name: build, script: x}}]\n{rest}");
    insta::assert_snapshot!(shown(&read(&text("delegate: biuld"), "step.yml").problems), @r#"
    warning[unknown-delegate] line 4, column 11: outputs: delegate: could not find step with name "biuld"
        hint: did you mean `build`?
    "#);
    insta::assert_snapshot!(shown(&read(&text("outputs: {a: 1}"), "func.yml").problems), @r#"
    error[unknown-delegate] line 3, column 6: outputs: delegate: could not find step with name "": `delegate` is missing
        hint: add `delegate: NAME` with the step whose outputs become those of the sequence
    warning[outputs-without-effect] line 4, column 1: `outputs` has no effect: the first document says `outputs: delegate`
        hint: remove it, or declare each output in the first document
    "#);
}

#[test]
fn expressions_that_are_none_are_underlined_where_they_stand() {
    let text = "{}\n---\nrun:\n  - name: a\n    step: ./x\n    inputs:\n      one: ${{ 1 + }}\n      two: \"a ${{ 1 + }}\"\n      three: |\n        first\n        second ${{ 1 + }}\n      four: \"\\t${{ 1 + }}\"\n";
    let reading = read(text, "func.yml");
    let underlined: Vec<&str> = reading.problems.iter().map(|problem| &text[problem.place.as_ref().unwrap().span.clone()]).collect();
    insta::assert_snapshot!(format!("{underlined:?}\n{}", shown(&reading.problems)), @r#"
    ["}}", "}}", "}}", "\"\\t${{ 1 + }}\""]
    error[expression] line 7, column 20: expected a value, found `}}`
    error[expression] line 8, column 23: expected a value, found `}}`
    error[expression] line 11, column 24: expected a value, found `}}`
    error[expression] line 12, column 13: expected a value, found `}}`
    "#);
}

#[test]
fn a_template_of_an_unknown_callee_is_judged_when_the_callee_is_known() {
    let text = "{}\n---\nrun:\n  - name: a\n    func: ./in_container\n    inputs:\n      run: [{name: b, script: x}, {name: c, script: \"echo ${{ steps.b.outputs.x }}\"}]\n  - name: d\n    func: builtin://docker\n    inputs: {run: [{name: e, func: \"./${{ steps.e.outputs.x }}\"}]}\n";
    let reading = read(text, "func.yml");
    assert_valid(&reading);
    let callee = |template: bool| {
        sound(&format!("spec: {{inputs: {{run: {{type: array, template: {template}}}}}}}\n---\nexec: {{command: [a]}}"), "func.yml")
    };
    assert_eq!(reading.problems_unless_template(0, &callee(true).spec).count(), 0);
    let plain = callee(false);
    let problems: Vec<&Problem> = reading.problems_unless_template(0, &plain.spec).collect();
    assert_eq!(problems.iter().map(|problem| problem.to_string()).collect::<Vec<_>>(), ["line 7, column 63: there is no step `b`"]);
    assert_eq!(reading.problems_unless_template(1, &plain.spec).count(), 1);
    assert_eq!(reading.problems_unless_template(1, &callee(true).spec).count(), 0);
}
