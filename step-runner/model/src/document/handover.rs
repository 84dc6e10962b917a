//! Steps that are handed over to another environment: inputs of a step that are not expanded become a sequence of its own.
//!
//! An input with `template: true` that is an array holds the steps, one that is a struct their outputs; the members of an ordinary struct named
//! `inputs` are what the inner steps see as `inputs.*`.

use super::raw::{Conditional, InnerShape, read_block, read_inner};
use super::{Body, Definition, Dialect, Input, Output, Outputs, Sequence, Spec, Step, StepDocument, ValueTemplate, interface, write};
use crate::diagnostic::{Problem, Verdict};
use crate::value::Kind;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The input that holds what the inner steps see as `inputs.*`.
const VALUES: &str = "inputs";

/// The document that hands over.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    pub document: &'a StepDocument,
    pub is_file: bool,
    /// The text that the document was read from, to give places. `None`: there is none.
    pub text: Option<&'a str>,
}

/// What a step hands over.
#[derive(Debug, Clone)]
pub struct Inner {
    /// `None`: it cannot be read.
    pub document: Option<Arc<StepDocument>>,
    /// What could be read of one that has errors, for those who look for further problems; else the document.
    pub draft: Option<Arc<StepDocument>>,
    /// Those that the caller's own reading has as well are among them.
    pub problems: Vec<Problem>,
    /// As [`super::raw::Reading::conditional`], of the inner sequence.
    pub conditional: Vec<Conditional>,
}

/// The name of the input by which a step takes steps.
pub fn steps_of(spec: &Spec) -> Option<&Arc<str>> {
    template_of(spec, Kind::Array)
}

/// The name of the input by which it takes their outputs.
pub fn outputs_of(spec: &Spec) -> Option<&Arc<str>> {
    template_of(spec, Kind::Struct)
}

/// The name of the input whose members the inner steps see.
pub fn values_of(spec: &Spec) -> Option<&Arc<str>> {
    let is_values = |(name, input): &&(Arc<str>, Input)| **name == *VALUES && input.kind == Kind::Struct && !input.template;
    spec.inputs.iter().find(is_values).map(|(name, _)| name)
}

fn template_of(spec: &Spec, kind: Kind) -> Option<&Arc<str>> {
    spec.inputs.iter().find(|(_, input)| input.template && input.kind == kind).map(|(name, _)| name)
}

/// Reads what a step of `caller` hands over to a callee with this spec. `None`: nothing is handed over.
pub fn read(step: &Step, callee: &Spec, caller: Caller<'_>) -> Option<Inner> {
    let steps = steps_of(callee)?;
    if let Some(document) = &step.inner {
        let document = Some(Arc::clone(document));
        return Some(Inner { draft: document.clone(), document, problems: Vec::new(), conditional: Vec::new() });
    }
    let given = given(step, steps)?;
    if let ValueTemplate::Text(_) | ValueTemplate::Scalar(_) = given {
        let message = format!("`{steps}` is handed over as it is written, so it must be a list of steps");
        let hint = "only the inputs that are values can be computed; the steps themselves stand in the file";
        let problem = Problem::error("steps-not-a-list", message, step.place.clone()).with_hint(hint);
        return Some(Inner { document: None, draft: None, problems: vec![problem], conditional: Vec::new() });
    }
    let shape = shape(step, callee, steps, &caller);
    let written = caller.text.zip(step.place.as_ref()).and_then(|(text, place)| read_inner(text, place, &shape));
    let reading = written.or_else(|| {
        // Not to be found in a text: what was read is written down, and read as steps.
        let mut reading = read_block(&write::inputs_to_yaml(step), 0, &shape)?;
        reading.problems.iter_mut().for_each(|problem| problem.place.clone_from(&step.place));
        for inner in reading.sequence.iter_mut().flat_map(|sequence| &mut sequence.steps) {
            Arc::make_mut(inner).place = None;
        }
        Some(reading)
    })?;
    let draft = reading.sequence.map(|sequence| Arc::new(document_of(sequence, shape.dialect)));
    let is_sound = !reading.problems.iter().any(Problem::is_error);
    Some(Inner { document: draft.clone().filter(|_| is_sound), draft, problems: reading.problems, conditional: reading.conditional })
}

/// The face of a step as its caller sees it: the outputs of what it hands over, where they can be known, are its own.
pub fn seen_from_outside(step: &Step, callee: &Spec) -> Option<Spec> {
    if callee.outputs != Outputs::Delegate || steps_of(callee).is_none() {
        return None;
    }
    let outputs = match (&step.inner, outputs_of(callee).and_then(|name| given(step, name))) {
        (Some(inner), _) => match &inner.definition.body {
            Body::Sequence(sequence) => sequence.outputs.iter().map(|(name, _)| Arc::clone(name)).collect(),
            Body::Exec(_) => Vec::new(),
        },
        (None, None) => Vec::new(),
        (None, Some(ValueTemplate::Object(entries))) => literal_keys(entries)?,
        (None, Some(_)) => return None,
    };
    let declared = |name| (name, Output { kind: Kind::String, default: None, sensitive: false, description: None });
    Some(Spec { inputs: Vec::new(), outputs: Outputs::Declared(outputs.into_iter().map(declared).collect()) })
}

fn document_of(sequence: Sequence, dialect: Dialect) -> StepDocument {
    StepDocument { dialect, spec: Spec::default(), definition: Definition { env: Vec::new(), body: Body::Sequence(sequence) } }
}

fn shape<'a>(step: &Step, callee: &'a Spec, steps: &'a str, caller: &Caller<'_>) -> InnerShape<'a> {
    let Caller { document, is_file, .. } = caller;
    let values = match values_of(callee).and_then(|name| given(step, name)) {
        None => Some(BTreeSet::new()),
        Some(ValueTemplate::Object(entries)) => literal_keys(entries).map(BTreeSet::from_iter),
        Some(_) => None,
    };
    let outer_steps = match &document.definition.body {
        Body::Sequence(sequence) => sequence.steps.iter().map(|step| Arc::clone(&step.name)).collect(),
        Body::Exec(_) => BTreeSet::new(),
    };
    InnerShape {
        steps,
        outputs: outputs_of(callee).map(|name| &**name),
        values,
        outer_inputs: document.spec.inputs.iter().map(|(name, _)| Arc::clone(name)).collect(),
        outer_steps,
        dialect: document.dialect,
        oddity: if *is_file { interface::oddity(document.dialect, true) } else { Verdict::Warning },
    }
}

fn given<'s>(step: &'s Step, name: &str) -> Option<&'s ValueTemplate> {
    step.inputs.iter().find(|(key, _)| key.as_literal() == Some(name)).map(|(_, value)| value)
}

/// `None`: one of them is computed.
fn literal_keys(entries: &[(crate::expression::Template, ValueTemplate)]) -> Option<Vec<Arc<str>>> {
    entries.iter().map(|(key, _)| key.as_literal().map(Arc::from)).collect()
}

#[cfg(test)]
mod tests;
