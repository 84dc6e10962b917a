//! Random jobs.

use super::Dice;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use step_model::document::{
    Action, AllowFailure, Body, Definition, Dialect, Exec, Input, Output, Outputs, ScriptLegacy, Sequence, Spec, Step, StepDocument,
    ValueTemplate, When,
};
use step_model::expression::Template;
use step_model::plan::{Places, Plan, PlannedDocument, Target};
use step_model::reference::{Digest, LocalReference, StepReference};
use step_model::value::{Kind, Value};

/// What every definition on this disk says.
pub(super) const ON_DISK: &str = "{}\n---\nrun: [{name: disk, script: \"echo ${{ env.A }}\"}]\n";
/// What an earlier step may have made of it.
pub(super) const REWRITTEN: &str = "{}\n---\nrun: [{name: one, script: x}, {name: two, step: ./more}]\n";

pub(super) fn plan(dice: &mut Dice) -> Plan {
    let mut root = document(dice, 0);
    // Jobs whose root is one command are legal, and boring.
    while matches!(root.definition.body, Body::Exec(_)) && dice.percent(90) {
        root = document(dice, 0);
    }
    let values = [("A", Value::from("a")), ("D", Value::from("./d")), ("S", Value::from("secret-value").sensitive())];
    let values: BTreeMap<Arc<str>, Value> = values.into_iter().map(|(name, value)| (Arc::from(name), value)).collect();
    let places = Places { work_dir: "/job".into(), build_dir: "/job".into(), files_dir: "/files".into() };
    Plan {
        request_env: values.clone(),
        variables: values,
        timeout: dice.percent(30).then(|| Duration::from_secs(dice.below(60))),
        grace_period: Duration::from_secs(dice.below(4) * 5),
        strict: dice.percent(20),
        ..Plan::of(planned(Arc::new(root), "", dice, 0), places)
    }
}

fn planned(document: Arc<StepDocument>, file: &str, dice: &mut Dice, depth: u64) -> Arc<PlannedDocument> {
    let targets = match &document.definition.body {
        Body::Exec(_) => Vec::new(),
        Body::Sequence(sequence) => sequence.steps.iter().map(|step| target(step, dice, depth)).collect(),
    };
    let digest = (!file.is_empty()).then(|| Digest::of(ON_DISK.as_bytes()));
    Arc::new(PlannedDocument { file: file.into(), digest, targets, ..PlannedDocument::of_job(document, "/job".into()) })
}

fn target(step: &Step, dice: &mut Dice, depth: u64) -> Target {
    match &step.action {
        Action::Script(_) | Action::ScriptLegacy(_) => Target::Script,
        Action::Reference(StepReference::Local(_)) if dice.percent(60) => {
            let nested = document(dice, depth + 1);
            Target::Document(planned(Arc::new(nested), "fixed.yml", dice, depth + 1))
        }
        Action::Reference(StepReference::Local(_)) if dice.percent(50) => {
            let nested = document(dice, depth + 1);
            Target::Hole { seen: Some(planned(Arc::new(nested), "step.yml", dice, depth + 1)) }
        }
        Action::Reference(_) => Target::Hole { seen: None },
    }
}

fn document(dice: &mut Dice, depth: u64) -> StepDocument {
    let dialect = if dice.percent(50) { Dialect::Steps } else { Dialect::Functions };
    let input = |sensitive| Input { kind: Kind::String, default: Some("d".into()), sensitive, description: None, template: false };
    let output = |default: Option<Value>, sensitive| Output { kind: Kind::String, default, sensitive, description: None };
    let outputs = match dice.below(5) {
        0 => Outputs::Delegate,
        1 if dice.percent(30) => Outputs::Declared(vec![(Arc::from("o"), output(None, dice.percent(50)))]),
        2 => Outputs::Declared(vec![(Arc::from("o"), output(Some("d".into()), false))]),
        _ => Outputs::default(),
    };
    let mut inputs = vec![(Arc::from("i"), input(dice.percent(30)))];
    if dice.percent(2) {
        inputs.push((Arc::from("required"), Input { default: None, ..input(false) }));
    }
    let env = if dice.percent(20) { vec![(Template::literal("E"), text(dice, dialect))] } else { Vec::new() };
    let body = if depth >= 4 || dice.percent(40) { exec(dice, dialect, &outputs) } else { sequence(dice, dialect, &outputs) };
    StepDocument { dialect, spec: Spec { inputs, outputs }, definition: Definition { env, body } }
}

fn exec(dice: &mut Dice, dialect: Dialect, outputs: &Outputs) -> Body {
    let mut command = vec![Template::literal("program")];
    if *outputs != Outputs::default() && dice.percent(95) {
        command.push(Template::parse("${{ output_file }}", dialect).unwrap());
    }
    command.extend((0..dice.below(3)).map(|_| text(dice, dialect)));
    let work_dir = dice.percent(10).then(|| text(dice, dialect));
    Body::Exec(Exec { command, work_dir })
}

fn sequence(dice: &mut Dice, dialect: Dialect, outputs: &Outputs) -> Body {
    let steps: Vec<_> = (0..dice.below(8)).map(|index| Arc::new(step(dice, dialect, index))).collect();
    let written = match outputs {
        Outputs::Declared(declared) if !declared.is_empty() && dice.percent(80) => {
            vec![(Arc::from("o"), ValueTemplate::Text(text(dice, dialect)))]
        }
        _ => Vec::new(),
    };
    let delegate = (*outputs == Outputs::Delegate && dice.percent(90)).then(|| Arc::from("s0"));
    Body::Sequence(Sequence { steps, outputs: written, delegate })
}

fn step(dice: &mut Dice, dialect: Dialect, index: u64) -> Step {
    let name = if dice.percent(5) { "s0".to_owned() } else { format!("s{index}") };
    let mut step = Step::new(name, action(dice, dialect));
    if dice.percent(30) && matches!(step.action, Action::Reference(_)) {
        let name = if dice.percent(3) { "unknown" } else { "i" };
        step.inputs.push((Template::literal(name), ValueTemplate::Text(text(dice, dialect))));
    }
    if dice.percent(20) {
        step.env.push((Template::literal("A"), text(dice, dialect)));
    }
    step.when = match dice.below(10) {
        0 | 1 => When::Always,
        2 => When::OnFailure,
        _ => When::OnSuccess,
    };
    step.allow_failure = match dice.below(10) {
        0 | 1 => AllowFailure::Any,
        2 => AllowFailure::ExitCodes(vec![1]),
        _ => AllowFailure::No,
    };
    step.timeout = dice.percent(15).then(|| Duration::from_secs(dice.below(20)));
    step
}

fn action(dice: &mut Dice, dialect: Dialect) -> Action {
    match dice.below(10) {
        0 | 1 => Action::Script(text(dice, dialect)),
        2 | 3 => {
            let job_status = dice.percent(50);
            Action::ScriptLegacy(ScriptLegacy { lines: vec!["make".into()], job_status, ..ScriptLegacy::default() })
        }
        4 => {
            let names = ["${{ env.D }}", "./${{ env.A }}", "${{ env.A }}", "builtin://script${{ env.MISSING }}", "${{ env.S }}"];
            let limit = if dice.percent(15) { 5 } else { 2 };
            let name = names[usize::try_from(dice.below(limit)).unwrap_or(0)];
            Action::Reference(StepReference::Dynamic(Template::parse(name, dialect).unwrap()))
        }
        _ => Action::Reference(StepReference::Local(LocalReference { path: vec![".".into(), "d".into()], file: None })),
    }
}

/// Mostly something that has a value.
fn text(dice: &mut Dice, dialect: Dialect) -> Template {
    let texts = [
        "plain",
        "plain",
        "plain",
        "${{ env.A }}",
        "${{ inputs.i }}",
        "x ${{ vars.S }} y",
        "${{ output_file }}",
        "${{ export_file }}",
        "${{ steps.s0.outputs.o }}",
        "${{ env.MISSING }}",
    ];
    // The last two fail now and then, the last one always.
    let limit = if dice.percent(3) { texts.len() as u64 } else { 8 };
    let source = texts[usize::try_from(dice.below(limit)).unwrap_or(0)];
    Template::parse(source, dialect).unwrap()
}
