//! Steps inside of steps, read with the places of the file.

use super::*;
use crate::document::raw;

const DOCKER: &str = "spec:\n  inputs:\n    image: {type: string}\n    inputs: {type: struct, default: {}}\n    run: {type: array, template: true}\n    outputs: {type: struct, template: true, default: {}}\n  outputs: delegate\n---\nexec: {command: [docker]}\n";

fn docker() -> Spec {
    raw::read(DOCKER, "func.yml").document.unwrap().spec.clone()
}

/// The problems of what the step at this position hands over.
fn problems(text: &str, position: usize) -> Vec<String> {
    let reading = raw::read(text, "func.yml");
    let document = reading.draft.unwrap();
    let Body::Sequence(sequence) = &document.definition.body else { panic!("a sequence") };
    let caller = Caller { document: &document, is_file: true, text: Some(text) };
    let inner = read(&sequence.steps[position], &docker(), caller).unwrap();
    let verdict = |problem: &Problem| if problem.is_error() { "error" } else { "warning" };
    let line = |problem: &Problem| format!("{} {problem}; {}", verdict(problem), problem.hint.as_deref().unwrap_or("-"));
    inner.problems.iter().map(line).collect()
}

fn inner(text: &str, with_text: bool) -> Inner {
    let document = raw::read(text, "func.yml").document.unwrap();
    let Body::Sequence(sequence) = &document.definition.body else { panic!("a sequence") };
    let caller = Caller { document: &document, is_file: true, text: with_text.then_some(text) };
    read(sequence.steps.last().unwrap(), &docker(), caller).unwrap()
}

const JOB: &str = r#"spec: {inputs: {version: {type: string}}}
---
run:
  - {name: meta, func: ./meta}
  - name: build
    func: builtin://docker
    inputs:
      image: "rust:${{ inputs.version }}"
      inputs: {tag: "${{ steps.meta.outputs.tag }}"}
      run:
        - {name: compile, func: ./compile, inputs: {tag: "${{ inputs.tag }}"}}
        - {name: test, script: "echo ${{ steps.compile.outputs.path }}", env: {A: 1.10}}
      outputs: {path: "${{ steps.compile.outputs.path }}"}
"#;

#[test]
fn what_is_handed_over_is_a_sequence_with_outputs() {
    let document = inner(JOB, true).document.unwrap();
    let Body::Sequence(sequence) = &document.definition.body else { panic!("a sequence") };
    assert_eq!(sequence.steps.iter().map(|step| &*step.name).collect::<Vec<_>>(), ["compile", "test"]);
    assert_eq!(sequence.steps[1].env[0].1.source(), "1.10", "as it is written");
    let place = sequence.steps[1].place.clone().unwrap();
    assert_eq!((place.line, place.column), (12, 11));
    assert!(JOB[place.span].starts_with("{name: test, "));
    assert_eq!(sequence.outputs[0].0, "path".into());
    assert_eq!(document.dialect, Dialect::Functions);
}

#[test]
fn without_a_text_the_same_is_read_but_for_places() {
    let (with, without) = (inner(JOB, true).document.unwrap(), inner(JOB, false));
    assert_eq!(without.problems.iter().filter(|problem| problem.is_error()).count(), 0);
    let names = |document: &StepDocument| match &document.definition.body {
        Body::Sequence(sequence) => sequence.steps.iter().map(|step| (step.name.clone(), step.inputs.clone())).collect::<Vec<_>>(),
        Body::Exec(_) => Vec::new(),
    };
    assert_eq!(names(&with), names(&without.document.unwrap()));
}

#[test]
fn names_inside_are_those_of_the_inner_sequence_only() {
    let text = JOB
        .replace("${{ inputs.tag }}", "${{ steps.meta.outputs.tag }} ${{ inputs.version }}")
        .replace("script: \"echo ${{ steps.compile", "script: \"echo ${{ steps.complie")
        .replace("{path: \"${{ steps.compile.outputs.path", "{path: \"${{ inputs.tga");
    insta::assert_snapshot!(problems(&text, 1).join("\n"), @r#"
    error line 11, column 63: step `meta` runs outside of this environment: its outputs are not seen here; add `tag: ${{ steps.meta.outputs.tag }}` to `inputs`, and read `inputs.tag`
    error line 11, column 93: there is no input `version`; it is an input of the step around: add `version: ${{ inputs.version }}` to `inputs`
    error line 12, column 42: there is no step `complie`; did you mean `steps.compile`?
    warning line 12, column 42: the value of `steps.complie.outputs.path` becomes a part of the script and can hold commands; pass it as a variable: `env: {PATH: "${{ steps.complie.outputs.path }}"}`, and write `"$PATH"` in the script
    error line 13, column 28: there is no input `tga`; did you mean `inputs.tag`?
    "#);
}

#[test]
fn problems_of_the_list_have_their_places() {
    let text = JOB.replace("name: test, script:", "nmae: test, scirpt:");
    insta::assert_snapshot!(problems(&text, 1).join("\n"), @"
    warning line 12, column 12: unknown key `nmae` in a step of `run` is ignored; did you mean `name`?
    error line 12, column 12: the step in line 12 has no name: missing properties: 'name'; add `name: ...`
    error line 12, column 12: the step runs nothing: missing properties: 'step'; add `func`, `step`, `script` or `action`
    warning line 12, column 24: unknown key `scirpt` in a step of `run` is ignored; did you mean `script`?
    ");
    let text = JOB.replace("      run:\n", "      run: \"${{ vars.STEPS }}\"\n      spare:\n");
    insta::assert_snapshot!(problems(&text, 1).join("\n"), @"error line 5, column 5: `run` is handed over as it is written, so it must be a list of steps; only the inputs that are values can be computed; the steps themselves stand in the file");
}

#[test]
fn a_map_that_is_computed_gives_no_verdict() {
    let text = JOB.replace("inputs: {tag: \"${{ steps.meta.outputs.tag }}\"}", "inputs: \"${{ steps.meta.outputs.all }}\"");
    assert!(problems(&text, 1).iter().all(|problem| problem.contains("becomes a part of the script")), "{:?}", problems(&text, 1));
    let text = JOB.replace("outputs: {path: \"${{ steps.compile.outputs.path }}\"}", "outputs: \"${{ vars.X }}\"");
    let document = raw::read(&text, "func.yml").document.unwrap();
    let Body::Sequence(sequence) = &document.definition.body else { panic!("a sequence") };
    assert_eq!(seen_from_outside(&sequence.steps[1], &docker()), None);
}

#[test]
fn the_outputs_that_are_handed_over_are_those_of_the_step() {
    let document = raw::read(JOB, "func.yml").document.unwrap();
    let Body::Sequence(sequence) = &document.definition.body else { panic!("a sequence") };
    let Outputs::Declared(outputs) = seen_from_outside(&sequence.steps[1], &docker()).unwrap().outputs else { panic!("they are known") };
    assert_eq!(outputs.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["path"]);
}
