//! Whether an invocation fits what it calls, as far as that can be seen before anything runs.

use super::raw::{described, place_in_step};
use super::{Dialect, Spec, Step, ValueTemplate};
use crate::diagnostic::{Place, Problem, Verdict};
use crate::expression::nearest;
use crate::value::Kind;

/// Checks the inputs that a step gives against those that the callee declares: unknown ones, missing ones, and literals of another type.
///
/// `oddity` is how bad a literal of another type is: [`oddity`] of the document that holds the step. With the text of that document each
/// problem is placed where it is; without it, at the step.
pub fn check(step: &Step, callee: &Spec, oddity: Verdict, text: Option<&str>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let place = |path: &[&str], part: Part| place_of(step, text, path, part);
    for (key, value) in &step.inputs {
        let Some(name) = key.as_literal() else { continue };
        let Some((_, input)) = callee.inputs.iter().find(|(declared, _)| **declared == *name) else {
            let message = format!("step does not accept input with name \"{name}\"");
            problems.push(Problem::error("unknown-input", message, place(&["inputs", name], Part::Key)).with_hint(accepted(name, callee)));
            continue;
        };
        let given = literal_kind(value);
        if let Some(given) = given.filter(|given| *given != input.kind) {
            let message = format!("input \"{name}\" takes {}, not {}", described(input.kind), described(given));
            let place = place(&["inputs", name], Part::Value);
            let problem = Problem { verdict: oddity, ..Problem::error("input-of-other-type", message, place) };
            problems.push(match hint_for_type(given, input.kind) {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        }
    }
    // A name that is computed may be any of them.
    if step.inputs.iter().all(|(key, _)| key.as_literal().is_some()) {
        let is_given = |name: &str| step.inputs.iter().any(|(key, _)| key.as_literal() == Some(name));
        for (name, input) in callee.inputs.iter().filter(|(name, input)| input.default.is_none() && !is_given(name)) {
            let message = format!("input \"{name}\" required, but not defined");
            let hint = format!("add `{name}` to `inputs`: {}", described(input.kind));
            problems.push(Problem::error("missing-input", message, place(&["inputs"], Part::Key)).with_hint(hint));
        }
    }
    problems
}

/// How bad it is what the original lets pass because nobody looks: types of inputs and outputs, names that occur twice or have no value.
/// In a file of the functions dialect it is an error. Elsewhere it runs there, if not to its end, so it runs here (agent.md K.1 4, 5, 14).
pub fn oddity(dialect: Dialect, is_file: bool) -> Verdict {
    if is_file && dialect == Dialect::Functions { Verdict::Error } else { Verdict::Warning }
}

/// Which half of an entry is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    Value,
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

fn place_of(step: &Step, text: Option<&str>, path: &[&str], part: Part) -> Option<Place> {
    let whole = step.place.as_ref()?;
    let exact = text.and_then(|text| {
        place_in_step(text, whole, path, part == Part::Value)
            .or_else(|| place_in_step(text, whole, &["func"], true))
            .or_else(|| place_in_step(text, whole, &["step"], true))
    });
    Some(exact.unwrap_or_else(|| whole.clone()))
}

fn accepted(name: &str, callee: &Spec) -> String {
    let names: Vec<&str> = callee.inputs.iter().map(|(name, _)| &**name).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "the step takes no inputs".into(),
        None => format!("the step takes {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

fn hint_for_type(given: Kind, declared: Kind) -> Option<&'static str> {
    match (given, declared) {
        (Kind::Number | Kind::Boolean, Kind::String) => Some("put it in quotes"),
        (Kind::String, Kind::Number | Kind::Boolean) => Some("remove the quotes"),
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
            "line 1, column 48: input \"count\" takes a number, not a string; remove the quotes",
            "line 1, column 59: input \"list\" takes an array, not a struct; -",
        ];
        assert_eq!(problems(text, Dialect::Steps), expected.map(|line| format!("warning {line}")));
        assert_eq!(problems(text, Dialect::Functions), expected.map(|line| format!("error {line}")));
    }
}
