//! What can be said about expressions before anything runs: names that nobody gives a value, and texts that a value can break.

use super::raw::is_identifier;
use super::{Action, Body, StepDocument};
use crate::diagnostic::Problem;
use crate::expression::{Path, Template, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// What an expression can read from, in both dialects (original.md C.2, C.7).
const CONTEXTS: [&str; 10] = ["env", "vars", "job", "inputs", "steps", "func_dir", "step_dir", "work_dir", "output_file", "export_file"];

/// What is known of the names that an expression at one place can read.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    /// `None`: not known.
    pub(super) inputs: Option<BTreeSet<Arc<str>>>,
    /// Every step of the sequence, in its order.
    steps: Vec<Arc<str>>,
    /// The first of each name.
    positions: BTreeMap<Arc<str>, usize>,
    /// How many of them have run at this place.
    pub(super) run_before: usize,
    /// The place is in a step of the sequence: the one after those that have run.
    pub(super) is_in_step: bool,
    /// Of the caller, where the sequence is handed over: nothing of it is seen here.
    pub(super) outer_inputs: BTreeSet<Arc<str>>,
    pub(super) outer_steps: BTreeSet<Arc<str>>,
}

/// Something that is wrong with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: String,
    /// Bytes of the template's source.
    pub(super) span: Range<usize>,
}

/// Whether a name without a value is an error when the template is evaluated: `||` may pick its other side, and `&&` not look at it.
pub(super) fn is_certain(template: &Template) -> bool {
    !template.source().contains("||") && !template.source().contains("&&")
}

/// Names in a template that have no value where it is evaluated.
pub(super) fn unknown_names(template: &Template, around: &Surroundings) -> Vec<Unknown> {
    template.paths().into_iter().filter_map(|path| around.unknown(path)).collect()
}

/// The first value that becomes a part of a script's text: whoever chooses it can run commands (compatibility.md).
pub(super) fn injected(script: &Template) -> Option<Finding> {
    let paths = script.paths();
    let from_outside = |path: &&Path| matches!(&*path.parts[0], "inputs" | "steps" | "vars" | "job");
    let first = paths.iter().find(from_outside)?;
    let shown = first.parts.join(".");
    let name = variable_name(first.parts.last().map_or("", |part| part));
    Some(Finding {
        code: "script-injection",
        message: format!("the value of `{shown}` becomes a part of the script and can hold commands"),
        hint: format!("pass it as a variable: `env: {{{name}: \"${{{{ {shown} }}}}\"}}`, and write `\"${name}\"` in the script"),
        span: span_of(script.source(), first, first.parts.len()),
    })
}

/// Job variables that a script names as if they were in its environment, where they are not (compatibility.md).
pub fn job_variables_in_scripts(
    document: &StepDocument,
    is_variable: &dyn Fn(&str) -> bool,
    is_in_environment: &dyn Fn(&str) -> bool,
) -> Vec<Problem> {
    let Body::Sequence(sequence) = &document.definition.body else { return Vec::new() };
    let mut problems = Vec::new();
    for step in &sequence.steps {
        let Action::Script(script) = &step.action else { continue };
        let is_given = |name: &str| {
            let mut given = document.definition.env.iter().chain(&step.env);
            is_in_environment(name) || given.any(|(key, _)| key.as_literal().is_none_or(|key| key == name))
        };
        let mut seen: Vec<&str> = Vec::new();
        for name in shell_variables(script.source()) {
            if seen.contains(&name) || !is_variable(name) || is_given(name) || script.source().contains(&format!("{name}=")) {
                continue;
            }
            seen.push(name);
            let message = format!("`{name}` is a job variable, and not in the environment of the script");
            problems.push(
                Problem::warning("job-variable-in-script", message, step.place.clone())
                    .with_hint(format!("pass it on: `env: {{{name}: \"${{{{ vars.{name} }}}}\"}}`")),
            );
        }
    }
    problems
}

/// More names are not compared with the one that is not known.
pub(super) const MOST_CANDIDATES: usize = 200;

/// A path that has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unknown {
    path: Path,
    why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    NoContext,
    NoInput,
    NoStep,
    OuterStep,
    OwnStep,
    LaterStep,
    NoPartOfStep,
}

impl Unknown {
    /// What is said about it. To find out what was meant takes a while.
    pub(super) fn explain(&self, source: &str, around: &Surroundings) -> Finding {
        let name = |at: usize| self.path.parts.get(at).map_or("", |part| part);
        let (code, parts, message, hint) = match self.why {
            Why::NoContext => ("unknown-context", 1, format!("there is no `{}` to read from", name(0)), around.hint_for_context(name(0))),
            Why::NoInput => ("unknown-input-read", 2, format!("there is no input `{}`", name(1)), around.hint_for_input(name(1))),
            Why::NoStep => ("unknown-step", 2, format!("there is no step `{}`", name(1)), around.hint_for_step(name(1))),
            Why::OuterStep => {
                let message = format!("step `{}` runs outside of this environment: its outputs are not seen here", name(1));
                ("outer-step", 2, message, hint_to_hand_over(&self.path))
            }
            Why::OwnStep => {
                let hint = "read them in a later step, or in `outputs` of the sequence";
                ("unknown-step", 2, "a step cannot read its own outputs".into(), hint.into())
            }
            Why::LaterStep => {
                ("unknown-step", 2, format!("step `{}` has not run yet at this place", name(1)), "move it before this one".into())
            }
            Why::NoPartOfStep => {
                let message = format!("a step has nothing but `outputs` to read: there is no `{}`", name(2));
                let hint = format!("`steps.{}.outputs.{}` reads an output of that name", name(1), name(2));
                ("unknown-part-of-step", 3, message, hint)
            }
        };
        Finding { code, message, hint, span: span_of(source, &self.path, parts) }
    }
}

impl Surroundings {
    fn unknown(&self, path: Path) -> Option<Unknown> {
        let name = |at: usize| path.parts.get(at).map(|part| &**part);
        let why = match name(0)? {
            "inputs" => self.inputs.as_ref().filter(|inputs| !name(1).is_none_or(|name| inputs.contains(name))).map(|_| Why::NoInput),
            "steps" => self.why_no_step(name(1)?).or_else(|| name(2).filter(|part| *part != "outputs").map(|_| Why::NoPartOfStep)),
            context if CONTEXTS.contains(&context) => None,
            _ => Some(Why::NoContext),
        }?;
        Some(Unknown { path, why })
    }

    fn why_no_step(&self, name: &str) -> Option<Why> {
        let position = self.positions.get(name);
        if position.is_some_and(|position| *position < self.run_before) {
            return None;
        }
        let own = self.steps.get(self.run_before).filter(|_| self.is_in_step);
        Some(match position {
            _ if own.is_some_and(|own| **own == *name) => Why::OwnStep,
            Some(_) => Why::LaterStep,
            None if self.outer_steps.contains(name) => Why::OuterStep,
            None => Why::NoStep,
        })
    }

    fn hint_for_input(&self, name: &str) -> String {
        if self.outer_inputs.contains(name) {
            return format!("it is an input of the step around: add `{name}: ${{{{ inputs.{name} }}}}` to `inputs`");
        }
        let inputs = self.inputs.iter().flatten();
        match nearest(name, inputs.clone().map(|input| &**input).take(MOST_CANDIDATES)) {
            Some(near) => format!("did you mean `inputs.{near}`?"),
            None if inputs.clone().next().is_none() => "no inputs are declared in the first document".into(),
            None => format!("declared are {}", some_of(inputs)),
        }
    }

    fn hint_for_step(&self, name: &str) -> String {
        // what is near in the text is most likely what was meant
        let before = &self.steps[self.run_before.saturating_sub(MOST_CANDIDATES)..self.run_before];
        match nearest(name, before.iter().map(|step| &**step)) {
            Some(near) => format!("did you mean `steps.{near}`?"),
            None if before.is_empty() => "no step has run at this place".into(),
            None => format!("before this one run {}", some_of(before)),
        }
    }

    /// The sequence that is read now.
    pub(super) fn set_steps(&mut self, steps: Vec<Arc<str>>) {
        self.positions = steps.iter().enumerate().rev().map(|(position, step)| (Arc::clone(step), position)).collect();
        self.steps = steps;
        self.run_before = 0;
    }

    pub(super) fn steps(&self) -> &[Arc<str>] {
        &self.steps
    }

    pub(super) fn has_step(&self, name: &str) -> bool {
        self.positions.contains_key(name)
    }

    fn hint_for_context(&self, name: &str) -> String {
        if self.inputs.as_ref().is_some_and(|inputs| inputs.contains(name)) {
            return format!("did you mean `inputs.{name}`?");
        }
        if self.has_step(name) {
            return format!("did you mean `steps.{name}.outputs`?");
        }
        if name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_') {
            return format!("did you mean `vars.{name}`, or `env.{name}`?");
        }
        match nearest(name, CONTEXTS) {
            Some(near) => format!("did you mean `{near}`?"),
            None if matches!(name, "variables" | "secrets") => "did you mean `vars`?".into(),
            None => "known are `env`, `vars`, `inputs`, `steps`, `work_dir`, `func_dir`, `output_file` and `export_file`".into(),
        }
    }
}

/// How a value of an outer step gets inside: `steps.meta.outputs.tag` as `inputs.tag`.
fn hint_to_hand_over(path: &Path) -> String {
    let name = path.parts.get(3).or_else(|| path.parts.get(1)).map_or("value", |name| name);
    let name = if is_identifier(name) { name } else { "value" };
    format!("add `{name}: ${{{{ {} }}}}` to `inputs`, and read `inputs.{name}`", path.parts.join("."))
}

/// The first parts of a path as they are written; with brackets and blanks in between, only the first name.
fn span_of(source: &str, path: &Path, parts: usize) -> Range<usize> {
    let dotted = path.parts[..parts.min(path.parts.len())].join(".");
    let is_dotted = source.get(path.offset..).is_some_and(|rest| rest.starts_with(&dotted));
    let length = if is_dotted { dotted.len() } else { path.parts[0].len() };
    path.offset..path.offset + length
}

/// Names behind a `$` in a text for the shell, but not those in `${{ }}`.
fn shell_variables(script: &str) -> impl Iterator<Item = &str> {
    script.match_indices('$').filter_map(|(at, _)| {
        let rest = script[at + 1..].strip_prefix('{').unwrap_or(&script[at + 1..]);
        let length = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
        Some(&rest[..length]).filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'))
    })
}

/// `output-path` as the name of a variable: `OUTPUT_PATH`.
fn variable_name(name: &str) -> String {
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }).collect();
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { format!("VALUE{name}") }
}

/// The first few.
fn some_of<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(8).map(|name| format!("`{name}`")).collect();
    format!("{}{}", first.join(", "), if names.next().is_some() { " and others" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Dialect;
    use crate::document::raw::read_job;

    #[test]
    fn a_job_variable_in_a_script_is_named_once() {
        let text = "{}\n---\nenv: {CI_GIVEN: x}\nrun:\n  - name: a\n    script: |\n      echo $CI_X ${CI_X} $CI_GIVEN $HOME $CI_SET ${{ vars.CI_Y }} $CI_ENV\n      CI_SET=1\n";
        let document = read_job(text, Dialect::Functions).document.unwrap();
        let problems = job_variables_in_scripts(&document, &|name| name.starts_with("CI_"), &|name| name == "CI_ENV");
        let shown: Vec<String> = problems.iter().map(|problem| format!("{problem}; {}", problem.hint.as_deref().unwrap_or("-"))).collect();
        assert_eq!(
            shown,
            [
                "line 5, column 5: `CI_X` is a job variable, and not in the environment of the script; pass it on: `env: {CI_X: \"${{ vars.CI_X }}\"}`"
            ]
        );
    }
}
