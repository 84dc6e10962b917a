//! Cases of the original (tables SPC, STP, RD, REF), one file each, and what people see.

use super::*;
use crate::document::{Body, Exec, Outputs, Sequence, Spec};

mod bad_input;
mod cases_of_files;
mod cases_of_references;
mod cases_of_specs;
mod cases_of_steps;
mod dialects;
mod messages;
mod properties;

/// A definition file that must be read without any problem.
fn sound(text: &str, file: &str) -> Arc<StepDocument> {
    let reading = read(text, file);
    assert_eq!(shown(&reading.problems), "");
    reading.document.expect("no problem, so there is a document")
}

/// A spec before a definition that is sound.
fn spec_of(spec: &str) -> Reading {
    read(&format!("{spec}\n---\nexec: {{command: [prog]}}\n"), "step.yml")
}

/// A definition behind an empty spec.
fn definition_of(definition: &str) -> Reading {
    read(&format!("{{}}\n---\n{definition}\n"), "step.yml")
}

/// A single item of `run`.
fn item(item: &str) -> Reading {
    definition_of(&format!("run: [{item}]"))
}

/// The steps of a definition that must be sound.
fn sequence(document: &StepDocument) -> &Sequence {
    match &document.definition.body {
        Body::Sequence(sequence) => sequence,
        Body::Exec(_) => panic!("an exec, not a sequence"),
    }
}

fn exec(document: &StepDocument) -> &Exec {
    match &document.definition.body {
        Body::Exec(exec) => exec,
        Body::Sequence(_) => panic!("a sequence, not an exec"),
    }
}

fn assert_valid(reading: &Reading) {
    assert_eq!(shown(&reading.problems), "");
    assert!(reading.document.is_some());
}

/// There is no document, and one of the errors says this.
fn assert_refused(reading: &Reading, part: &str) {
    assert!(reading.document.is_none());
    let errors: Vec<&Problem> = reading.problems.iter().filter(|problem| problem.is_error()).collect();
    assert!(errors.iter().any(|problem| problem.message.contains(part)), "`{part}` is in none of:\n{}", shown(&reading.problems));
}

/// One line for each problem and one for its hint, as somebody would read it.
fn shown(problems: &[Problem]) -> String {
    let lines = problems.iter().map(|problem| {
        let verdict = if problem.is_error() { "error" } else { "warning" };
        let hint = problem.hint.as_ref().map(|hint| format!("\n    hint: {hint}")).unwrap_or_default();
        format!("{verdict}[{}] {problem}{hint}", problem.code)
    });
    lines.collect::<Vec<_>>().join("\n")
}
