//! What can be wrong with cases before one of them runs: names that the definition does not have, values of another type, fakes that do not fit.

use crate::plan::{faked, input, kind_of};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use step_model::diagnostic::{Place, Problem};
use step_model::document::{Body, Output, Outputs, StepDocument};
use step_model::expression::nearest;
use step_model::plan::{PlannedDocument, Target as PlanTarget};
use step_model::testing::suite::{Case, Expected, Fake, Given, Suite, Target, TextCondition};
use step_model::value::Kind;

/// Problems that need no plan: of all cases, in the order of the file.
pub fn suite(suite: &Suite, document: &StepDocument) -> Vec<Problem> {
    let mut problems = Vec::new();
    for case in &suite.cases {
        inputs(case, document, &mut problems);
        outputs(case, document, &mut problems);
        patterns(case, &mut problems);
        calls(case, &mut problems);
    }
    goldens(&suite.cases, &mut problems);
    in_order(problems)
}

/// Problems of one case with the plan that its fakes are a part of.
pub fn planned(case: &Case, resolved: &PlannedDocument) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut found = BTreeSet::new();
    for (index, document) in faked(resolved) {
        found.insert(index);
        if let Some(fake) = case.fakes.get(index) {
            fits(fake, &document, &mut problems);
        }
    }
    for (_, fake) in case.fakes.iter().enumerate().filter(|(index, _)| !found.contains(index)) {
        if fake.optional || has_unknown_steps(resolved) {
            continue;
        }
        let problem = Problem::error("unknown-step", format!("there is no step `{}` to fake", fake.name), Some(fake.place.clone()));
        problems.push(problem.with_hint(hint_for_step(&fake.name, &fake.of, resolved)));
    }
    for expected in &case.expect.steps {
        if !knows(resolved, &expected.path) {
            let name = expected.path.join("/");
            let problem = Problem::error("unknown-step", format!("there is no step `{name}`"), Some(expected.place.clone()));
            problems.push(problem.with_hint(hint_for_step(&name, &Target::Step(expected.path.clone()), resolved)));
        }
    }
    in_order(problems)
}

/// Each problem once: defaults are a part of every case, and rows of a table share what they say.
fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span.start));
    problems.dedup();
    problems
}

fn inputs(case: &Case, document: &StepDocument, problems: &mut Vec<Problem>) {
    let names: Vec<&str> = document.spec.inputs.iter().map(|(name, _)| &**name).collect();
    for given in &case.inputs {
        let Some(input) = input(document, &given.name) else {
            let message = format!("the step does not accept an input `{}`", given.name);
            problems.push(Problem::error("unknown-input", message, Some(given.place.clone())).with_hint(known(
                &given.name,
                &names,
                "takes",
                "inputs",
            )));
            continue;
        };
        let kind = kind_of(&given.value);
        if kind != input.kind && kind != Kind::Null {
            let message = format!("input `{}` is declared as {}, not {}", given.name, input.kind, kind);
            let problem = Problem::error("input-of-other-type", message, Some(given.place.clone()));
            problems.push(match (kind, input.kind) {
                (_, Kind::String) => problem.with_hint("put it in quotes"),
                _ => problem,
            });
        }
    }
    for (name, input) in document.spec.inputs.iter().filter(|(_, input)| input.default.is_none()) {
        if !case.inputs.iter().any(|given| given.name == *name) {
            let message = format!("input `{name}` is required, and the case does not give it");
            let hint = format!("add it to `inputs`: {}", input.kind);
            problems.push(Problem::error("missing-input", message, Some(case.place.clone())).with_hint(hint));
        }
    }
}

fn known(name: &str, names: &[&str], does: &str, what: &str) -> String {
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => format!("the step {does} no {what}"),
        None => format!("the step {does} `{}`", names.join("`, `")),
    }
}

fn outputs(case: &Case, document: &StepDocument, problems: &mut Vec<Problem>) {
    let Outputs::Declared(declared) = &document.spec.outputs else { return };
    expected_outputs(&case.expect.outputs, declared, problems);
}

fn expected_outputs(expected: &[Given<Expected>], declared: &[(Arc<str>, Output)], problems: &mut Vec<Problem>) {
    let names: Vec<&str> = declared.iter().map(|(name, _)| &**name).collect();
    for given in expected {
        let Some((_, output)) = declared.iter().find(|(name, _)| *name == given.name) else {
            let message = format!("the step has no output `{}`", given.name);
            problems.push(Problem::error("unknown-output", message, Some(given.place.clone())).with_hint(known(
                &given.name,
                &names,
                "gives",
                "outputs",
            )));
            continue;
        };
        let kind = kind_of(&given.value.value);
        let is_text = given.value.text.is_some() && output.kind != Kind::Struct;
        if !is_text && kind != output.kind && kind != Kind::Null && output.kind != Kind::Null {
            let message = format!("output `{}` is declared as {}, and can never be {}", given.name, output.kind, kind);
            problems.push(Problem::error("output-of-other-type", message, Some(given.value.place.clone())));
        }
    }
}

fn patterns(case: &Case, problems: &mut Vec<Problem>) {
    for condition in case.expect.texts().flat_map(|text| &text.conditions) {
        if let TextCondition::Matches(expression) = &condition.it
            && let Err(fault) = regex::Regex::new(expression)
        {
            let why = fault.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let message = format!("`{expression}` is no regular expression: {why}");
            problems.push(Problem::error("pattern", message, Some(condition.place.clone())).with_hint("`contains` takes a text as it is"));
        }
    }
}

/// Only stubs and fakes are counted.
fn calls(case: &Case, problems: &mut Vec<Problem>) {
    let stubs: Vec<&str> = case.stubs.iter().map(|stub| &*stub.name).collect();
    let doubles: Vec<&str> = stubs.iter().copied().chain(case.fakes.iter().map(|fake| &*fake.name)).collect();
    let mut unknown = |name: &str, place: &Place, what: &str, names: &[&str]| {
        let problem = Problem::error("unknown-double", format!("`{name}` is no {what} of this case"), Some(place.clone()));
        problems.push(match nearest(name, names.iter().copied()) {
            Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
            None => problem.with_hint(format!("add it to `stubs`: `{name}:`")),
        });
    };
    for call in case.expect.calls.iter().flat_map(|calls| &calls.it) {
        if let Some(name) = call.it.first().filter(|name| !stubs.contains(&&***name)) {
            unknown(name, &call.place, "stub", &stubs);
        }
    }
    for given in &case.expect.called {
        if !doubles.contains(&&*given.name) {
            unknown(&given.name, &given.place, "fake or stub", &doubles);
        }
    }
}

/// Two cases that write the same golden file would overwrite each other.
fn goldens(cases: &[Case], problems: &mut Vec<Problem>) {
    let mut named: BTreeMap<&str, (&Arc<str>, u32)> = BTreeMap::new();
    for case in cases {
        for golden in case.expect.texts().flat_map(|text| text.goldens()) {
            let path = golden.it.trim_start_matches("./");
            if path.starts_with('/') || path.split('/').any(|part| part == "..") {
                let message = format!("the golden file `{path}` lies outside of the directory of the test");
                problems.push(Problem::error("path", message, Some(golden.place.clone())));
            }
            if let Some((other, line)) = named.insert(path, (&case.name, golden.place.line)) {
                let message = format!("the cases `{other}` and `{}` have the same golden file `{path}` (line {line})", case.name);
                let problem = Problem::error("same-golden", message, Some(golden.place.clone()));
                problems.push(
                    problem.with_hint(
                        "one would overwrite the other: name a file for each; in a table, `${{ row.NAME }}` is a part of the name",
                    ),
                );
            }
        }
    }
}

/// Whether a fake gives what the step that it stands for declares.
fn fits(fake: &Fake, document: &StepDocument, problems: &mut Vec<Problem>) {
    let Outputs::Declared(declared) = &document.spec.outputs else { return };
    let names: Vec<&str> = declared.iter().map(|(name, _)| &**name).collect();
    for given in &fake.outputs {
        match declared.iter().find(|(name, _)| *name == given.name) {
            None => {
                let message = format!("the fake `{}` gives an output `{}`, which the step does not have", fake.name, given.name);
                problems.push(Problem::error("unknown-output", message, Some(given.place.clone())).with_hint(known(
                    &given.name,
                    &names,
                    "gives",
                    "outputs",
                )));
            }
            Some((_, output)) => {
                let kind = kind_of(&given.value);
                if kind != output.kind && kind != Kind::Null && output.kind != Kind::Null {
                    let message = format!("the fake `{}` gives `{}` as {}, the step declares {}", fake.name, given.name, kind, output.kind);
                    problems.push(Problem::error("output-of-other-type", message, Some(given.place.clone())));
                }
            }
        }
    }
    if fake.exit != 0 {
        return;
    }
    for (name, output) in declared.iter().filter(|(_, output)| output.default.is_none()) {
        if !fake.outputs.iter().any(|given| given.name == *name) {
            let message = format!("the fake `{}` does not give the output `{name}`, {}", fake.name, output.kind);
            problems.push(
                Problem::error("missing-output", message, Some(fake.place.clone())).with_hint(format!("add `outputs: {{{name}: ...}}`")),
            );
        }
    }
}

/// A definition that is only found while the case runs may have any steps.
fn has_unknown_steps(planned: &PlannedDocument) -> bool {
    planned.targets.iter().any(|target| match target {
        PlanTarget::Hole { seen: None } => true,
        PlanTarget::Document(document) | PlanTarget::Hole { seen: Some(document) } => has_unknown_steps(document),
        PlanTarget::Script => false,
    })
}

/// Whether there can be a step at the end of this way.
fn knows(planned: &PlannedDocument, path: &[Arc<str>]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    let Body::Sequence(sequence) = &planned.document.definition.body else { return false };
    let mut steps = sequence.steps.iter().zip(&planned.targets).filter(|(step, _)| step.name == *first);
    steps.any(|(_, target)| match target {
        PlanTarget::Document(document) | PlanTarget::Hole { seen: Some(document) } => knows(document, rest),
        PlanTarget::Script => rest.is_empty(),
        PlanTarget::Hole { seen: None } => true,
    })
}

fn hint_for_step(name: &str, target: &Target, planned: &PlannedDocument) -> String {
    let mut names = Vec::new();
    names_below(planned, "", &mut names);
    let near = nearest(name, names.iter().map(String::as_str));
    match (near, target) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, _) if names.is_empty() => "the step runs a command and has no steps inside".into(),
        (None, Target::Reference(_)) => {
            "a reference is written as the definition writes it; `optional: true` for one that is computed".into()
        }
        (None, Target::Step(_)) => format!("known are `{}`", names.iter().take(8).cloned().collect::<Vec<_>>().join("`, `")),
    }
}

fn names_below(planned: &PlannedDocument, prefix: &str, names: &mut Vec<String>) {
    let Body::Sequence(sequence) = &planned.document.definition.body else { return };
    for (step, target) in sequence.steps.iter().zip(&planned.targets) {
        let name = if prefix.is_empty() { step.name.to_string() } else { format!("{prefix}/{}", step.name) };
        names.push(name.clone());
        if let PlanTarget::Document(document) | PlanTarget::Hole { seen: Some(document) } = target {
            names_below(document, &name, names);
        }
    }
}
