//! Steps that stand in an input of another step: the text of that step is read again, now that it is known what its callee takes.

use super::reader::Reader;
use super::{Conditional, parse};
use crate::diagnostic::{Lines, Place, Problem, Verdict};
use crate::document::{Dialect, Sequence};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The inputs that are read, and what their expressions can name.
#[derive(Debug, Clone)]
pub struct InnerShape<'a> {
    /// The input that holds the list of steps.
    pub steps: &'a str,
    /// The input that holds the outputs of the sequence.
    pub outputs: Option<&'a str>,
    /// What `inputs.*` is inside. `None`: not known.
    pub values: Option<BTreeSet<Arc<str>>>,
    /// The inputs and steps of the caller: not to be seen inside.
    pub outer_inputs: BTreeSet<Arc<str>>,
    pub outer_steps: BTreeSet<Arc<str>>,
    pub dialect: Dialect,
    /// How bad it is what the original lets pass.
    pub oddity: Verdict,
}

/// What was read. There is no sequence where the list of steps is no list.
#[derive(Debug, Clone)]
pub struct InnerReading {
    pub sequence: Option<Sequence>,
    /// With the places of the whole text.
    pub problems: Vec<Problem>,
    pub conditional: Vec<Conditional>,
}

/// Reads what the step at `place` of `text` hands over. `None`: it is not written there as it is read, behind an alias for example.
pub fn read_inner(text: &str, place: &Place, shape: &InnerShape<'_>) -> Option<InnerReading> {
    let margin = (place.column - 1) as usize;
    let block = format!("{}{}", " ".repeat(margin), text.get(place.span.clone())?);
    let in_text = |inside: &Place| {
        let offset = |at: usize| (place.span.start + at).saturating_sub(margin);
        place.further(text, offset(inside.span.start)..offset(inside.span.end))
    };
    let mut reading = read_block(&block, place.line - 1, shape)?;
    for problem in reading.problems.iter_mut().chain(reading.conditional.iter_mut().map(|conditional| &mut conditional.problem)) {
        problem.place = problem.place.as_ref().map(in_text);
    }
    for step in reading.sequence.iter_mut().flat_map(|sequence| &mut sequence.steps) {
        let step = Arc::make_mut(step);
        step.place = step.place.as_ref().map(in_text);
    }
    Some(reading)
}

/// Reads a text that holds the inputs of a step: `inputs: {run: [...]}`. Places are those of this text, which stands behind `lines_before` others.
pub(crate) fn read_block(block: &str, lines_before: u32, shape: &InnerShape<'_>) -> Option<InnerReading> {
    let lines = Lines::of(block);
    let mut stream = parse(block, 1, &lines)?;
    if stream.problems.iter().any(Problem::is_error) {
        return None;
    }
    let mut root = stream.documents.pop()??;
    let inputs = root.get_mut("inputs")?;
    let mut reader = Reader::new(block, &lines, shape.dialect, Vec::new());
    reader.oddity = shape.oddity;
    reader.lines_before = lines_before;
    reader.around.inputs.clone_from(&shape.values);
    reader.around.outer_inputs.clone_from(&shape.outer_inputs);
    reader.around.outer_steps.clone_from(&shape.outer_steps);
    let run = inputs.get_mut(shape.steps)?;
    let items = run.take_items();
    let is_list = items.is_some();
    let mut steps = Vec::new();
    let run = inputs.get(shape.steps)?;
    reader.steps(run, items, |step| steps.push(Arc::new(step)));
    let outputs = shape.outputs.and_then(|name| inputs.get(name)).filter(|node| !node.is_null());
    let outputs = outputs.map_or_else(Vec::new, |node| reader.sequence_outputs(node));
    let conditional = reader.take_conditional();
    let sequence = is_list.then_some(Sequence { steps, outputs, delegate: None });
    Some(InnerReading { sequence, problems: reader.into_problems(), conditional })
}
