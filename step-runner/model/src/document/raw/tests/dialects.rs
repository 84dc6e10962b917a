//! Which of the two languages a text is in, and what differs between them.

use super::*;
use crate::document::Action;
use crate::reference::StepReference;

fn dialect(text: &str, file: &str) -> Dialect {
    sound(text, file).dialect
}

#[test]
fn the_file_or_the_key_func_makes_a_document_of_functions() {
    const STEP: &str = "{}\n---\nrun: [{name: a, step: ./x}]\n";
    const FUNC: &str = "{}\n---\nrun: [{name: a, step: ./x}, {name: b, func: ./x}]\n";
    assert_eq!(dialect(STEP, "step.yml"), Dialect::Steps);
    assert_eq!(dialect(STEP, "other.yml"), Dialect::Steps);
    assert_eq!(dialect(STEP, "func.yml"), Dialect::Functions);
    assert_eq!(dialect(STEP, "dir/func.yml"), Dialect::Functions);
    assert_eq!(dialect(FUNC, "step.yml"), Dialect::Functions);
}

#[test]
fn a_job_has_the_dialect_of_its_level_unless_an_item_uses_func() {
    let job = |item: &str, default| read_job(&format!("{{}}\n---\nrun: [{item}]"), default).document.unwrap().dialect;
    assert_eq!(job("{name: a, step: ./x}", Dialect::Steps), Dialect::Steps);
    assert_eq!(job("{name: a, func: ./x}", Dialect::Steps), Dialect::Functions);
    assert_eq!(job("{name: a, step: ./x}", Dialect::Functions), Dialect::Functions);
}

#[test]
fn the_steps_of_a_job_are_json_or_yaml() {
    let (json, problems) =
        read_steps(r#"[{"name": "a", "script": "echo \u00e4\/"}, {"name": "b", "step": "./x", "inputs": {"k": null}}]"#, None);
    assert_eq!(shown(&problems), "");
    assert_eq!(json.len(), 2);
    let (yaml, _) = read_steps("- {name: a, script: echo ä/}\n- {name: b, step: ./x, inputs: {k: }}\n", None);
    let content = |steps: Vec<Step>| steps.into_iter().map(|step| Step { place: None, ..step }).collect::<Vec<_>>();
    assert_eq!(content(json), content(yaml));
    assert_eq!(dialect_of_steps("[{name: a, func: ./x}]", Some(Dialect::Steps)), Dialect::Functions);
    assert_eq!(dialect_of_steps("[{name: a, step: ./x}]", None), Dialect::Steps);
}

#[test]
fn the_steps_of_a_job_have_places_for_all_problems() {
    let (steps, problems) = read_steps("- {name: a, script: x}\n- {name: b c, script: x}\n- {name: d}\n", None);
    assert_eq!(steps.len(), 2);
    insta::assert_snapshot!(shown(&problems), @r"
    error[not-an-identifier] line 2, column 10: the step name `b c` is not a name: additionalProperties 'b c' not allowed
        hint: a name has letters, digits and `_`, and begins with no digit
    error[missing-reference] line 3, column 4: the step runs nothing: missing properties: 'step'
        hint: add `func`, `step`, `script` or `action`
    ");
}

#[test]
fn one_invocation_needs_no_name() {
    let (step, problems) = read_invocation("step: ./greet\ninputs: {who: world}\nenv: {A: b}\n", Dialect::Steps);
    assert_eq!(shown(&problems), "");
    let step = step.unwrap();
    assert_eq!((&*step.name, step.inputs.len(), step.env.len()), ("", 1, 1));
    let (step, _) = read_invocation("func: registry.example/a:1", Dialect::Steps);
    assert!(matches!(step.unwrap().action, Action::Reference(StepReference::Oci(_))));
    let (step, problems) = read_invocation("step: {git: {url: u}}", Dialect::Steps);
    assert_eq!(step, None);
    assert_eq!(problems.len(), 1);
}

#[test]
fn keys_hold_expressions_in_the_functions_dialect_only() {
    let text = "spec: {inputs: {n: {type: string}}}\n---\nrun: [{name: a, step: ./x, env: {\"P_${{ inputs.n }}\": v}, inputs: {\"${{ inputs.n }}\": v}}]\n";
    let document = sound(text, "func.yml");
    assert_eq!(sequence(&document).steps[0].env[0].0.source(), "P_${{ inputs.n }}");
    assert_refused(&read(text, "step.yml"), "the variable `P_${{ inputs.n }}` is not a name");
}

#[test]
fn a_template_input_belongs_to_the_functions_dialect() {
    let text = "spec: {inputs: {run: {type: array, template: true, description: the steps}}}\n---\nexec: {command: [prog]}\n";
    let document = sound(text, "func.yml");
    assert!(document.spec.inputs[0].1.template);
    assert_eq!(document.spec.inputs[0].1.description.as_deref(), Some("the steps"));
    let reading = read(text, "step.yml");
    assert!(!reading.document.unwrap().spec.inputs[0].1.template);
    assert_eq!(reading.problems[0].code, "template-in-steps-dialect");
    assert_refused(
        &read(&text.replace("array", "string"), "func.yml"),
        "an input with `template: true` is an array or a struct, not a string",
    );
}

#[test]
fn a_name_that_occurs_twice_is_refused_in_a_function_file_only() {
    let text = "{}\n---\nrun: [{name: a, script: x}, {name: a, script: y}]\n";
    assert_refused(&read(text, "func.yml"), "another step is called `a`, in line 3");
    let reading = read(text, "step.yml");
    assert!(reading.document.is_some());
    assert_eq!(reading.problems[0].code, "duplicate-name");
    assert!(read_job(text, Dialect::Functions).document.is_some());
}

#[test]
fn a_value_is_read_as_its_declared_kind() {
    assert_eq!(read_value("1.10", Some(Kind::String)), Ok(Value::from("1.10")));
    assert_eq!(read_value("1.10", Some(Kind::Number)), Ok(Value::from(1.1)));
    assert_eq!(read_value("1.10", None), Ok(Value::from(1.1)));
    assert_eq!(read_value("[a, 1]", Some(Kind::Array)), Ok(Value::array([Value::from("a"), Value::from(1.0)])));
    assert_eq!(read_value("", None), Ok(Value::NULL));
    assert_eq!(read_value("x", Some(Kind::Number)).unwrap_err().message, "expected a number, found a string");
    assert_eq!(read_value("[", None).unwrap_err().code, "yaml-syntax");
}
