//! Run requests: read from protobuf JSON or a message, checked with every problem at once, and written back.
//!
//! Source: original.md S 2.3. Fields that are not known are said and skipped.

mod check;
mod limits;
mod locate;
mod reader;
#[cfg(test)]
mod tests;
mod write;

pub use check::{of_message, unsafe_name};
pub use write::{Values, message_to_json, to_json, to_message};

use crate::wire::json::{self, NotJson};
use ci_proto::step_runner::RunRequest as RunRequestMessage;
use locate::{Segment, locate};
use step_model::diagnostic::{Lines, Problem};
use step_model::document::Dialect;
use step_model::request::RunRequest;

/// The largest request, in bytes (compatibility.md, limits).
pub const MAXIMUM_SIZE: usize = 64 << 20;

/// A run request has few levels; those of its steps are in a text.
const DEEPEST: usize = 100;

/// Reads a run request as protobuf JSON, with names in either form. A job-level document that does not say its dialect is of the functions
/// dialect. Returns the warnings beside the request.
/// # Errors
/// Every problem, with its place in the JSON, also those of the definition that it carries.
pub fn read(text: &str) -> Result<(RunRequest, Vec<Problem>), Vec<Problem>> {
    read_as(text, Dialect::Functions)
}

/// The same with another dialect for documents that do not say theirs (`--level 0.12`).
/// # Errors
/// As for [`read`].
pub fn read_as(text: &str, default: Dialect) -> Result<(RunRequest, Vec<Problem>), Vec<Problem>> {
    if text.len() > MAXIMUM_SIZE {
        let message = format!("the request has {} MiB; at most {} are read", text.len() >> 20, MAXIMUM_SIZE >> 20);
        return Err(vec![Problem::error("too-large", message, None)]);
    }
    let json = json::parse(text, DEEPEST).map_err(|fault| vec![no_json(text, &fault)])?;
    let (message, mut findings) = reader::read(&json);
    let (request, mut found) = check::check(&message, default);
    if findings.iter().any(Finding::hides_steps) {
        found.retain(|finding| !finding.is_inside);
    }
    findings.extend(found);

    let lines = Lines::of(text);
    let mut problems: Vec<Problem> = findings.into_iter().map(|finding| finding.in_json(text, &lines)).collect();
    problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span.start));
    match request {
        Some(request) if !problems.iter().any(Problem::is_error) => Ok((request, problems)),
        _ => Err(problems),
    }
}

fn no_json(text: &str, fault: &NotJson) -> Problem {
    let at_end = matches!(fault, NotJson::CutOff { .. });
    let place = at_end.then(|| Lines::of(text).place(text, text.trim_end().len()..text.trim_end().len()));
    Problem::error("no-json", format!("the request cannot be read: {fault}"), place)
}

/// What the service says when it refuses a request: one line, with the original's words where it has them.
pub fn refusal(message: &RunRequestMessage, problems: &[Problem]) -> String {
    let mut said = Vec::new();
    for problem in problems.iter().filter(|problem| problem.is_error()) {
        said.push(match problem.code {
            "unsafe-id" | "unsafe-variable" | "bad-environment" => format!("initializing request: {}", problem.message),
            "missing-input" => format!("failed to start step runner service: failed to parse spec definition: {}", problem.message),
            _ if problem.message.starts_with("decoding:") => {
                format!("loading step: reading steps {:?}: unmarshaling: {problem}", shortened(&message.steps))
            }
            _ => format!("loading step: reading steps {:?}: {problem}", shortened(&message.steps)),
        });
    }
    said.join("; ")
}

/// Enough of a text to recognise it.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 1000;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A problem and where it was found.
#[derive(Debug, Clone, PartialEq)]
struct Finding {
    path: Vec<Segment>,
    problem: Problem,
    /// The place of the problem is one in the text that stands at the path.
    is_inside: bool,
}

impl Finding {
    fn at(path: &[Segment], problem: Problem) -> Self {
        Self { path: path.to_vec(), problem, is_inside: false }
    }

    /// Without what is wrong here there could be steps: that there are none is not worth a word.
    fn hides_steps(&self) -> bool {
        let is_error = self.problem.is_error();
        is_error && self.path.first().is_none_or(|first| ["steps", "jobSteps", "job_steps"].iter().any(|name| *first == (*name).into()))
    }

    /// The problem with its place in the JSON. What is wrong inside a text also keeps the line that a person counts there.
    fn in_json(self, text: &str, lines: &Lines) -> Problem {
        let Self { path, mut problem, is_inside } = self;
        let Some(span) = locate(text, &path) else { return Problem { place: None, ..problem } };
        let inside = problem.place.take().filter(|_| is_inside);
        let span = match &inside {
            Some(place) => locate::in_string(text, &span, &place.span),
            None => span,
        };
        if let Some(place) = inside {
            problem.message = format!("`{}` line {}: {}", written(&path), place.line, problem.message);
        }
        problem.place = Some(lines.place(text, span));
        problem
    }
}

/// A path as a person writes it: `job.variables[2].key`.
fn written(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Index(index) => text.push_str(&format!("[{index}]")),
            Segment::Key(name) if text.is_empty() => text.push_str(name),
            Segment::Key(name) => text.push_str(&format!(".{name}")),
        }
    }
    text
}
