//! Steps that something else stands for: by the names on the way to them, or by what they refer to. For tests of steps.

use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::{Action, Body, Definition, Dialect, Exec, Input, Outputs, Spec, Step, StepDocument};
use step_model::plan::PlannedDocument;
use step_model::reference::StepReference;
use step_model::value::Kind;

/// What stands for steps of a job. A name is stronger than a reference.
#[derive(Debug, Clone, Default)]
pub struct StandIns {
    steps: BTreeMap<Vec<Arc<str>>, Arc<StandIn>>,
    references: Vec<(StepReference, Arc<StandIn>)>,
}

/// One command in place of a step. It takes what the step takes and gives what the step gives; where the step's definition is not at hand, it takes
/// what it is given.
#[derive(Debug, Clone, PartialEq)]
pub struct StandIn {
    pub exec: Exec,
    /// What it gives where nothing is known about the step, and where the step gives whatever another one gives.
    pub outputs: Outputs,
    /// What it takes where nothing is known about the step. `None`: anything.
    pub inputs: Option<Vec<Arc<str>>>,
}

impl StandIns {
    /// `path`: the names on the way from the document that is resolved to the step.
    pub fn for_step(&mut self, path: Vec<Arc<str>>, stand_in: StandIn) {
        self.steps.insert(path, Arc::new(stand_in));
    }

    pub fn for_reference(&mut self, reference: StepReference, stand_in: StandIn) {
        self.references.push((reference, Arc::new(stand_in)));
    }

    /// What stands for a step inside of the steps `names`.
    pub(super) fn of(&self, names: &[Arc<str>], step: &Step) -> Option<Arc<StandIn>> {
        if self.steps.is_empty() && self.references.is_empty() {
            return None;
        }
        let path: Vec<Arc<str>> = names.iter().chain([&step.name]).cloned().collect();
        let by_name = self.steps.get(&path);
        by_name.or_else(|| self.references.iter().find(|(known, _)| is_of(step, known)).map(|(_, stand_in)| stand_in)).cloned()
    }

    /// Whether what is inside of these steps may differ from what the same definition is elsewhere.
    pub(super) fn are_below(&self, names: &[Arc<str>]) -> bool {
        let first = self.steps.range(names.to_vec()..).next();
        first.is_some_and(|(path, _)| path.starts_with(names))
    }
}

fn is_of(step: &Step, reference: &StepReference) -> bool {
    matches!(&step.action, Action::Reference(own) if own == reference)
}

impl StandIn {
    /// The document that runs in place of `step`. `real`: what its definition declares.
    pub(super) fn document(&self, step: &Step, real: Option<&Spec>) -> Arc<PlannedDocument> {
        let outputs = match real.map(|spec| &spec.outputs) {
            Some(declared @ Outputs::Declared(_)) => declared.clone(),
            Some(Outputs::Delegate) | None => self.outputs.clone(),
        };
        let inputs = real.map_or_else(|| self.inputs_given(step), |spec| spec.inputs.clone());
        let definition = Definition { env: Vec::new(), body: Body::Exec(self.exec.clone()) };
        let document = StepDocument { dialect: Dialect::Functions, spec: Spec { inputs, outputs }, definition };
        Arc::new(PlannedDocument::of_job(Arc::new(document), Arc::from("/")))
    }

    fn inputs_given(&self, step: &Step) -> Vec<(Arc<str>, Input)> {
        let given = || step.inputs.iter().filter_map(|(name, _)| name.as_literal()).map(Arc::from).collect();
        let names: Vec<Arc<str>> = self.inputs.clone().unwrap_or_else(given);
        // Of no kind: any value will do.
        let any = |name| (name, Input { kind: Kind::Null, default: None, sensitive: false, description: None, template: false });
        names.into_iter().map(any).collect()
    }
}
