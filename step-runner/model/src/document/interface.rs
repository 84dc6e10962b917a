//! Whether an invocation fits what it calls, as far as that can be seen before anything runs.

use super::handover;
use super::lint::{self, MOST_CANDIDATES};
use super::raw::{MOST_PROBLEMS, described, place_of_key, place_of_value};
use super::{Action, Dialect, Input, Output, Outputs, Sequence, Spec, Step, ValueTemplate};
use crate::diagnostic::{Lines, Place, Problem, Verdict};
use crate::expression::{Path, Template, nearest};
use crate::reference::StepReference;
use crate::value::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Checks the inputs that a step gives against those that the callee declares: unknown ones, missing ones, and literals of another type.
///
/// `oddity` is how bad a literal of another type is: [`oddity`] of the document that holds the step. With the text of that document each
/// problem is placed where it is; without it, at the step.
pub fn check(step: &Step, callee: &Spec, oddity: Verdict, text: Option<&str>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let known: BTreeMap<&str, &Input> = callee.inputs.iter().map(|(name, input)| (&**name, input)).collect();
    let place = |find: Find, path: &[&str]| place_of(step, text, find, path);
    for (key, value) in &step.inputs {
        let Some(name) = key.as_literal().filter(|_| problems.len() < MOST_PROBLEMS) else { continue };
        let Some(input) = known.get(name) else {
            let message = format!("step does not accept input with name \"{name}\"");
            problems
                .push(Problem::error("unknown-input", message, place(place_of_key, &["inputs", name])).with_hint(accepted(name, callee)));
            continue;
        };
        let given = literal_kind(value);
        // No document declares null: what stands for a step that is not at hand takes anything.
        if let Some(given) = given.filter(|given| *given != input.kind && input.kind != Kind::Null) {
            let message = format!("input \"{name}\" takes {}, not {}", described(input.kind), described(given));
            let place = place(place_of_value, &["inputs", name]);
            let problem = Problem { verdict: oddity, ..Problem::error("input-of-other-type", message, place) };
            problems.push(match hint_for_type(given, input.kind) {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        }
    }
    // A name that is computed may be any of them.
    if step.inputs.iter().all(|(key, _)| key.as_literal().is_some()) {
        let given: BTreeSet<&str> = step.inputs.iter().filter_map(|(key, _)| key.as_literal()).collect();
        let is_inner = |name: &str| step.inner.is_some() && handover::steps_of(callee).is_some_and(|steps| **steps == *name);
        let is_missing = |(name, input): &&(Arc<str>, Input)| input.default.is_none() && !given.contains(&**name) && !is_inner(name);
        for (name, input) in callee.inputs.iter().filter(is_missing) {
            let message = format!("input \"{name}\" required, but not defined");
            let hint = format!("add `{name}` to `inputs`: {}", described(input.kind));
            problems.push(Problem::error("missing-input", message, place(place_of_key, &["inputs"])).with_hint(hint));
        }
    }
    problems
}

/// Checks the outputs that a sequence reads from its steps against those that they declare. `callees`: one for each step, in its order; `None`
/// where it is not known. `oddity`: as for [`check`].
pub fn check_reads(sequence: &Sequence, callees: &[Option<&Spec>], oddity: Verdict, text: Option<&str>) -> Vec<Problem> {
    let mut problems = Vec::new();
    // of two steps with one name, the later one is found
    let called: BTreeMap<&str, &Spec> =
        sequence.steps.iter().zip(callees).filter_map(|(step, callee)| Some((&*step.name, (*callee)?))).collect();
    let mut declared_by: BTreeMap<*const Spec, BTreeSet<&str>> = BTreeMap::new();
    let mut look = |template: &Template, place: Option<&Place>| {
        for path in template.paths() {
            // Asked for each: to find the place of one problem the text is searched, and one template can hold any number of them.
            if problems.len() >= MOST_PROBLEMS {
                return;
            }
            let [context, step, part, output, ..] = path.parts.as_slice() else { continue };
            let Some(callee) = called.get(&**step).filter(|_| **context == *"steps" && **part == *"outputs") else { continue };
            let Outputs::Declared(declared) = &callee.outputs else { continue };
            let names = declared_by.entry(*callee).or_insert_with(|| declared.iter().map(|(name, _)| &**name).collect());
            if names.contains(&**output) {
                continue;
            }
            let verdict = if lint::is_certain(template) { oddity } else { Verdict::Warning };
            let message = format!("step `{step}` has no output `{output}`");
            let problem = Problem { verdict, ..Problem::error("unknown-output-read", message, written_at(text, place, &path)) };
            problems.push(problem.with_hint(declared_outputs(step, output, declared)));
        }
    };
    for step in &sequence.steps {
        templates_of_step(step, &mut |template| look(template, step.place.as_ref()));
    }
    for (_, value) in &sequence.outputs {
        templates_of_value(value, &mut |template| look(template, None));
    }
    problems
}

/// How bad it is what the original lets pass because nobody looks: types of inputs and outputs, names that occur twice or have no value.
/// In a file of the functions dialect it is an error. Elsewhere it runs there, if not to its end, so it runs here (compatibility.md).
pub fn oddity(dialect: Dialect, is_file: bool) -> Verdict {
    if is_file && dialect == Dialect::Functions { Verdict::Error } else { Verdict::Warning }
}

/// The kind that a value has whatever its expressions give. `None`: a text that is an expression can become anything.
pub(super) fn literal_kind(value: &ValueTemplate) -> Option<Kind> {
    match value {
        ValueTemplate::Scalar(value) => Some(value.kind()),
        ValueTemplate::Text(text) => text.as_literal().map(|_| Kind::String),
        ValueTemplate::Array(_) => Some(Kind::Array),
        ValueTemplate::Object(_) => Some(Kind::Struct),
    }
}

type Find = fn(&str, &Place, &[&str]) -> Option<Place>;

/// As near as it can be found: the key or value, else the reference, else the step.
fn place_of(step: &Step, text: Option<&str>, find: Find, path: &[&str]) -> Option<Place> {
    let whole = step.place.as_ref()?;
    let exact = text.and_then(|text| find(text, whole, path).or_else(|| place_of_reference(text, whole)));
    Some(exact.unwrap_or_else(|| whole.clone()))
}

/// Where a step says what it calls.
pub fn place_of_reference(text: &str, step: &Place) -> Option<Place> {
    ["func", "step"].into_iter().find_map(|key| place_of_value(text, step, &[key]))
}

fn accepted(name: &str, callee: &Spec) -> String {
    let names: Vec<&str> = callee.inputs.iter().map(|(name, _)| &**name).take(MOST_CANDIDATES).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "the step takes no inputs".into(),
        None => format!("the step takes {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

fn declared_outputs(step: &str, output: &str, declared: &[(Arc<str>, Output)]) -> String {
    let names: Vec<&str> = declared.iter().map(|(name, _)| &**name).take(MOST_CANDIDATES).collect();
    match nearest(output, names.iter().copied()) {
        Some(near) => format!("did you mean `steps.{step}.outputs.{near}`?"),
        None if names.is_empty() => "the step declares no outputs".into(),
        None => format!("the step declares {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

/// Where a path stands in the text: within the step, or for the outputs of the sequence, behind all steps or before them.
fn written_at(text: Option<&str>, step: Option<&Place>, path: &Path) -> Option<Place> {
    let dotted = path.parts.get(..4)?.join(".");
    let found = text.and_then(|text| match step {
        Some(step) => {
            let start = step.span.start + text.get(step.span.clone())?.find(&dotted)?;
            Some(step.further(text, start..start + dotted.len()))
        }
        None => {
            let start = text.rfind(&dotted)?;
            Some(Lines::of(text).place(text, start..start + dotted.len()))
        }
    });
    found.or_else(|| step.cloned())
}

fn templates_of_step(step: &Step, look: &mut dyn FnMut(&Template)) {
    match &step.action {
        Action::Script(script) => look(script),
        Action::Reference(StepReference::Dynamic(template)) => look(template),
        Action::Reference(StepReference::Git(git)) => look(&git.url),
        Action::Reference(StepReference::Oci(oci)) => [&oci.registry, &oci.repository, &oci.tag].into_iter().for_each(&mut *look),
        Action::Reference(_) | Action::ScriptLegacy(_) => {}
    }
    for (key, value) in &step.env {
        look(key);
        look(value);
    }
    // An array or struct may be evaluated elsewhere, with steps of its own.
    for (key, value) in &step.inputs {
        look(key);
        if let ValueTemplate::Text(text) = value {
            look(text);
        }
    }
}

fn templates_of_value(value: &ValueTemplate, look: &mut dyn FnMut(&Template)) {
    match value {
        ValueTemplate::Scalar(_) => {}
        ValueTemplate::Text(text) => look(text),
        ValueTemplate::Array(items) => items.iter().for_each(|item| templates_of_value(item, look)),
        ValueTemplate::Object(entries) => entries.iter().for_each(|(key, member)| {
            look(key);
            templates_of_value(member, look);
        }),
    }
}

fn hint_for_type(given: Kind, declared: Kind) -> Option<&'static str> {
    match (given, declared) {
        (Kind::Number | Kind::Boolean, Kind::String) => Some("put it in quotes"),
        (Kind::String, Kind::Number) => Some("write a number, without quotes"),
        (Kind::String, Kind::Boolean) => Some("write `true` or `false`, without quotes"),
        (Kind::Null, _) => Some("leave the input out to get its default"),
        (Kind::String, Kind::Array | Kind::Struct) => Some("write it as YAML, not as a text that looks like JSON"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::raw::{read, read_steps};

    const CALLEE: &str = "spec:\n  inputs:\n    who: {type: string}\n    count: {type: number, default: 1}\n    list: {type: array, default: []}\n---\nexec: {command: [prog]}\n";

    /// One line for each problem of the first step.
    fn problems(steps: &str, dialect: Dialect) -> Vec<String> {
        let callee = read(CALLEE, "step.yml").document.unwrap();
        let (steps_read, problems) = read_steps(steps, Some(dialect));
        assert_eq!(problems, []);
        let shown = |problem: &Problem| {
            let verdict = if problem.is_error() { "error" } else { "warning" };
            format!("{verdict} {problem}; {}", problem.hint.as_deref().unwrap_or("-"))
        };
        check(&steps_read[0], &callee.spec, oddity(dialect, true), Some(steps)).iter().map(shown).collect()
    }

    #[test]
    fn an_output_that_a_step_does_not_declare_is_not_read() {
        let text = "{}\n---\nrun:\n  - {name: build, func: ./x}\n  - name: use\n    script: echo ${{ steps.build.outputs.paht }} ${{ steps.build.outputs.path }}\n    env: {A: \"${{ steps.build.outputs.size || 1 }}\"}\noutputs: {o: \"${{ steps.build.outputs.paht }}\"}\n";
        let caller = read(&text.replace("{}\n---", "spec: {outputs: {o: {type: string}}}\n---"), "func.yml").document.unwrap();
        let callee = read("spec: {outputs: {path: {type: string}}}\n---\nexec: {command: [a]}", "func.yml").document.unwrap();
        let crate::document::Body::Sequence(sequence) = &caller.definition.body else { panic!("a sequence") };
        let text = text.replace("{}\n---", "spec: {outputs: {o: {type: string}}}\n---");
        let problems = check_reads(sequence, &[Some(&callee.spec), None], Verdict::Error, Some(&text));
        let shown: Vec<String> =
            problems.iter().map(|problem| format!("{} {problem}; {}", problem.is_error(), problem.hint.as_deref().unwrap())).collect();
        assert_eq!(
            shown,
            [
                "true line 6, column 22: step `build` has no output `paht`; did you mean `steps.build.outputs.path`?",
                "false line 7, column 19: step `build` has no output `size`; the step declares `path`",
                "true line 8, column 19: step `build` has no output `paht`; did you mean `steps.build.outputs.path`?",
            ]
        );
    }

    #[test]
    fn no_more_problems_are_looked_for_than_are_listed() {
        let reads: String = (0..MOST_PROBLEMS + 10).map(|number| format!("${{{{ steps.build.outputs.p{number} }}}}")).collect();
        let text = format!("{{}}\n---\nrun:\n  - {{name: build, func: ./x}}\n  - {{name: use, func: ./y, env: {{A: \"{reads}\"}}}}\n");
        let caller = read(&text, "func.yml").document.unwrap();
        let callee = read("spec: {outputs: {path: {type: string}}}\n---\nexec: {command: [a]}", "func.yml").document.unwrap();
        let crate::document::Body::Sequence(sequence) = &caller.definition.body else { panic!("a sequence") };
        let problems = check_reads(sequence, &[Some(&callee.spec), None], Verdict::Error, Some(&text));
        assert_eq!(problems.len(), MOST_PROBLEMS);
    }

    #[test]
    fn an_invocation_that_fits_has_no_problem() {
        assert_eq!(problems("- {name: a, step: ./x, inputs: {who: world}}", Dialect::Steps), [""; 0]);
        assert_eq!(problems("- {name: a, step: ./x, inputs: {who: \"${{ env.A }}\", count: \"${{ env.B }}\"}}", Dialect::Steps), [""; 0]);
        assert_eq!(problems("- {name: a, func: ./x, inputs: {\"${{ env.A }}\": 1}}", Dialect::Functions), [""; 0]);
    }

    #[test]
    fn an_unknown_input_is_refused() {
        assert_eq!(
            problems("- name: a\n  step: ./x\n  inputs:\n    who: world\n    cuont: 2\n", Dialect::Steps),
            ["error line 5, column 5: step does not accept input with name \"cuont\"; did you mean `count`?"]
        );
    }

    #[test]
    fn a_missing_input_is_refused() {
        assert_eq!(
            problems("- name: a\n  step: ./x\n", Dialect::Steps),
            ["error line 2, column 9: input \"who\" required, but not defined; add `who` to `inputs`: a string"]
        );
    }

    #[test]
    fn a_literal_of_another_type_is_refused_in_the_functions_dialect_and_a_warning_in_the_other() {
        let text = "- {name: a, step: ./x, inputs: {who: 1, count: \"2\", list: {}}}";
        let expected = [
            "line 1, column 38: input \"who\" takes a string, not a number; put it in quotes",
            "line 1, column 48: input \"count\" takes a number, not a string; write a number, without quotes",
            "line 1, column 59: input \"list\" takes an array, not a struct; -",
        ];
        assert_eq!(problems(text, Dialect::Steps), expected.map(|line| format!("warning {line}")));
        assert_eq!(problems(text, Dialect::Functions), expected.map(|line| format!("error {line}")));
    }
}
