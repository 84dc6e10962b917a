//! The YAML as it was written, both dialects, read into a document with every problem at once.
//!
//! Source: original.md A.1 to A.6, S 2.3 and S 2.4 (GitLab step-runner, `schema/v1`).

mod definition;
mod inner;
mod invocation;
mod keys;
mod outputs;
mod reader;
mod reference;
mod spec;
mod value;

use super::interface;
use super::yaml::{self, Node, Span};
use super::{Dialect, Spec, Step, StepDocument};
use crate::diagnostic::{Lines, Place, Problem};
use crate::value::{Kind, Value};
pub(crate) use inner::read_block;
pub use inner::{InnerReading, InnerShape, read_inner};
pub use invocation::{ACTION_RUNNER_REVISION, ACTION_RUNNER_URL};
pub(crate) use keys::is_identifier;
use reader::Reader;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The largest text of a document, in bytes: two hundred times the longest definition that was seen, and read in half a second.
pub const MAXIMUM_SIZE: usize = 4 << 20;

/// More problems than that help nobody, and a hostile text has one for every second byte.
pub(crate) const MOST_PROBLEMS: usize = 1000;

/// A document as far as it could be read, and all of its problems. There is no document where a problem is an error.
#[derive(Debug, Clone)]
pub struct Reading {
    pub document: Option<Arc<StepDocument>>,
    /// What could be read of a document that has errors: for those who look for further problems, never to be run. Else the document.
    pub draft: Option<Arc<StepDocument>>,
    /// In the order of the text.
    pub problems: Vec<Problem>,
    /// What can be judged only with the definitions that the steps name: see [`Reading::problems_unless_template`].
    pub conditional: Vec<Conditional>,
}

/// A problem of an expression in an input, if the caller evaluates it: a callee may take the input unexpanded.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditional {
    /// The position of the step in its sequence.
    pub step: usize,
    pub input: Arc<str>,
    pub problem: Problem,
}

impl Reading {
    /// The problems of a step's inputs that hold now that its callee is known.
    pub fn problems_unless_template<'r>(&'r self, step: usize, callee: &'r Spec) -> impl Iterator<Item = &'r Problem> {
        problems_unless_template(&self.conditional, step, callee)
    }
}

/// As [`Reading::problems_unless_template`], also of steps that are handed over.
pub fn problems_unless_template<'r>(conditional: &'r [Conditional], step: usize, callee: &'r Spec) -> impl Iterator<Item = &'r Problem> {
    let is_template = |name: &str| callee.inputs.iter().any(|(input, declared)| **input == *name && declared.template);
    let holds = move |conditional: &&Conditional| conditional.step == step && !is_template(&conditional.input);
    conditional.iter().filter(holds).map(|conditional| &conditional.problem)
}

/// Reads a definition file: two YAML documents. The file's name (or path) decides the dialect, with the rule of original.md 0.1.
pub fn read(text: &str, file_name: &str) -> Reading {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    read_documents(text, (name == "func.yml").then_some(Dialect::Functions), true)
}

/// Reads the text of a run request: `{}`, `---`, `run: [...]`. `default` is the dialect where no item of `run` uses `func:`.
pub fn read_job(text: &str, default: Dialect) -> Reading {
    read_documents(text, (default == Dialect::Functions).then_some(default), false)
}

/// Reads the list of a job-level `run:` (JSON or YAML). Without a dialect, and with that of steps, an item with `func:` makes it functions:
/// [`dialect_of_steps`] tells.
pub fn read_steps(text: &str, dialect: Option<Dialect>) -> (Vec<Step>, Vec<Problem>) {
    let lines = Lines::of(text);
    let Some(mut stream) = parse(text, 1, &lines) else { return (Vec::new(), vec![too_large(text.len())]) };
    let mut root = stream.documents.pop().flatten();
    let dialect = resolve_dialect(dialect, root.as_ref().and_then(Node::as_list));
    let mut reader = Reader::new(text, &lines, dialect, stream.problems);
    reader.around.inputs = Some(BTreeSet::new());
    reader.warn_about_rest(stream.rest);
    let mut steps = Vec::new();
    if let Some(root) = &mut root {
        let items = root.take_items();
        reader.steps(root, items, |step| steps.push(step));
    }
    (steps, reader.into_problems())
}

/// The dialect that [`read_steps`] reads a list in.
pub fn dialect_of_steps(text: &str, dialect: Option<Dialect>) -> Dialect {
    let lines = Lines::of(text);
    let root = parse(text, 1, &lines).and_then(|mut stream| stream.documents.pop().flatten());
    resolve_dialect(dialect, root.as_ref().and_then(Node::as_list))
}

/// Reads one invocation in YAML, without a name: `step: ./greet`, `func: {git: ...}`, with `inputs` and `env` if need be.
pub fn read_invocation(text: &str, default: Dialect) -> (Option<Step>, Vec<Problem>) {
    let lines = Lines::of(text);
    let Some(mut stream) = parse(text, 1, &lines) else { return (None, vec![too_large(text.len())]) };
    let root = stream.documents.pop().flatten();
    let dialect = resolve_dialect(Some(default), root.as_ref().map(std::slice::from_ref));
    let mut reader = Reader::new(text, &lines, dialect, stream.problems);
    reader.around.inputs = Some(BTreeSet::new());
    reader.warn_about_rest(stream.rest);
    let step = root.as_ref().and_then(|root| reader.unnamed_step(root));
    let mut problems = reader.into_problems();
    if step.is_none() && problems.is_empty() {
        problems.push(Problem::error("no-step", "the text names no step", None).with_hint("write `step: ./my-step`"));
    }
    let is_sound = !problems.iter().any(Problem::is_error);
    (step.filter(|_| is_sound), problems)
}

/// Reads one value: as the declared kind wants it (`1.10` stays a text where a text is wanted), else as YAML says.
/// # Errors
/// The text is not YAML, or not of that kind.
pub fn read_value(text: &str, kind: Option<Kind>) -> Result<Value, Problem> {
    if kind == Some(Kind::String) {
        return Ok(Value::from(text));
    }
    let lines = Lines::of(text);
    let Some(mut stream) = parse(text, 1, &lines) else { return Err(too_large(text.len())) };
    let root = stream.documents.pop().flatten();
    let mut reader = Reader::new(text, &lines, Dialect::Functions, stream.problems);
    let value = root.as_ref().map_or(Value::NULL, |root| reader.value(root));
    if let Some(problem) = reader.into_problems().into_iter().find(Problem::is_error) {
        return Err(problem);
    }
    match kind {
        Some(kind) if kind != value.kind() => {
            Err(Problem::error("wrong-type", format!("expected {}, found {}", described(kind), described(value.kind())), None))
        }
        _ => Ok(value),
    }
}

/// The text of a file, if it can be read as a document at all.
/// # Errors
/// It is larger than [`MAXIMUM_SIZE`], or not UTF-8.
pub fn text_of(bytes: &[u8]) -> Result<&str, Problem> {
    if bytes.len() > MAXIMUM_SIZE {
        return Err(too_large(bytes.len()));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let place = Lines::of(valid).place(valid, valid.len()..valid.len());
        let message = format!("the text is not UTF-8: byte 0x{:02x}", bytes[error.valid_up_to()]);
        Problem::error("not-utf-8", message, Some(place)).with_hint("save the file as UTF-8")
    })
}

/// The place of a key of a step: the step's own text is read again, so that nobody has to keep the place of every key.
/// `None` where the step is not written as it is read: behind an alias, say.
pub fn place_of_key(text: &str, step: &Place, path: &[&str]) -> Option<Place> {
    place_in_step(text, step, path, |(key, _)| key.span)
}

/// The place of the value of a key of a step: as [`place_of_key`].
pub fn place_of_value(text: &str, step: &Place, path: &[&str]) -> Option<Place> {
    place_in_step(text, step, path, |(_, value)| value.span)
}

fn place_in_step(text: &str, step: &Place, path: &[&str], wanted: fn(&(Node<'_>, Node<'_>)) -> Span) -> Option<Place> {
    let margin = (step.column - 1) as usize;
    // the first line of a block begins at its first key: without what stands before it the others would be indented
    let block = format!("{}{}", " ".repeat(margin), text.get(step.span.clone())?);
    let stream = parse(&block, 1, &Lines::of(&block))?;
    let mut node = stream.documents.first()?.as_ref()?;
    let mut span = node.span;
    for key in path {
        let entry = node.as_map()?.iter().find(|(name, _)| name.source_text() == Some(key))?;
        span = wanted(entry);
        node = &entry.1;
    }
    let offset = |at: u32| Some(step.span.start + (at as usize).checked_sub(margin)?);
    Some(step.further(text, offset(span.start)?..offset(span.end)?))
}

/// `a string`, `an array`.
pub(crate) fn described(kind: Kind) -> String {
    match kind {
        Kind::Null => "nothing".into(),
        Kind::Array => "an array".into(),
        kind => format!("a {kind}"),
    }
}

fn read_documents(text: &str, dialect: Option<Dialect>, is_file: bool) -> Reading {
    let lines = Lines::of(text);
    let Some(stream) = parse(text, 2, &lines) else {
        return Reading { document: None, draft: None, problems: vec![too_large(text.len())], conditional: Vec::new() };
    };
    let mut documents = stream.documents.into_iter();
    let (first, second) = (documents.next(), documents.next());
    let run = second.iter().flatten().find_map(|root| root.get("run")?.as_list());
    let dialect = resolve_dialect(dialect, run);
    let mut reader = Reader::new(text, &lines, dialect, stream.problems);
    reader.oddity = interface::oddity(dialect, is_file);
    reader.warn_about_rest(stream.rest);
    let spec = match &first {
        Some(Some(root)) => reader.spec(root, second.is_none()),
        Some(None) => None,
        None => {
            reader.report_missing_documents();
            None
        }
    };
    let is_alone = second.is_none();
    if first.is_some() && is_alone {
        reader.report_missing_definition();
    }
    let broken = std::mem::take(&mut reader.broken_inputs);
    reader.around.inputs = spec.as_ref().map(|spec| spec.inputs.iter().map(|(name, _)| Arc::clone(name)).chain(broken).collect());
    let definition = second.flatten().and_then(|root| reader.definition(root, spec.as_ref()));
    let conditional = reader.take_conditional();
    let problems = reader.into_problems();
    let draft = definition.map(|definition| Arc::new(StepDocument { dialect, spec: spec.clone().unwrap_or_default(), definition }));
    let document = draft.clone().filter(|_| spec.is_some() && !problems.iter().any(Problem::is_error));
    Reading { document, draft, problems, conditional }
}

/// `None` when the text is too large.
fn parse<'t>(text: &'t str, documents: usize, lines: &Lines) -> Option<yaml::Stream<'t>> {
    (text.len() <= MAXIMUM_SIZE).then(|| yaml::parse(text, documents, lines))
}

fn too_large(size: usize) -> Problem {
    Problem::error("too-large", format!("the text has {size} bytes; a document has at most {MAXIMUM_SIZE}"), None)
}

fn resolve_dialect(dialect: Option<Dialect>, items: Option<&[Node<'_>]>) -> Dialect {
    let uses_func = || items.unwrap_or_default().iter().any(|item| item.get("func").is_some());
    match dialect {
        Some(Dialect::Functions) => Dialect::Functions,
        _ if uses_func() => Dialect::Functions,
        _ => Dialect::Steps,
    }
}

#[cfg(test)]
mod tests;
