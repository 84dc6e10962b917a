//! What a step writes into its output and export files becomes outputs and exports (original.md D.3 to D.5).
//!
//! One JSON object per line, `{"name": ..., "value": ...}`; no limit on the length of a line.

mod json;

use std::borrow::Cow;
use std::sync::Arc;
use step_model::document::Output;
use step_model::value::{Data, Kind, MAXIMUM_DEPTH, Object, Value};

/// What is wrong with a file that a step wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct FileError {
    problem: Problem,
    /// The line of the file that is meant; shown with `CI_STEPS_DEBUG` only.
    line: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("failed to unmarshal JSON at line {number}: {why}")]
    Line { number: usize, why: String },
    #[error("key \"{key}\": unexpected output, remove from step outputs or define in step specification")]
    Unexpected { key: Arc<str> },
    #[error(
        "key \"{key}\": mismatched types, declared as \"{declared}\" in step specification and received from step as type \"{received}\""
    )]
    Mismatched { key: Arc<str>, declared: Kind, received: Kind },
    #[error("key \"{key}\": missing output, add to step outputs or remove from step specification")]
    Missing { key: Arc<str> },
    #[error("key \"{key}\": value nests deeper than {MAXIMUM_DEPTH} levels")]
    TooDeep { key: Arc<str> },
    #[error("key \"{key}\": cannot convert value type \"{received}\" to string")]
    NotText { key: Arc<str>, received: Kind },
    #[error("delegate: reading output_file as a step result: {why}")]
    NotAResult { why: String },
}

impl FileError {
    /// The message, with the line that is meant where `debug` asks for it.
    pub fn text(&self, debug: bool) -> String {
        match &self.line {
            Some(line) if debug => format!("{self}, line: {line}"),
            _ => self.to_string(),
        }
    }
}

/// A line of a file that could be read.
#[derive(Debug)]
struct Entry<'a> {
    name: Arc<str>,
    value: Value,
    line: Cow<'a, str>,
}

impl Entry<'_> {
    fn error(&self, problem: Problem) -> FileError {
        FileError { problem, line: Some(self.line.to_string()) }
    }
}

/// The declared outputs in the order of their declaration, sensitive where they are declared so.
/// # Errors
/// The first line that cannot be read, else the first output that is not as declared.
pub fn outputs(content: &[u8], declared: &[(Arc<str>, Output)]) -> Result<Object, FileError> {
    let mut entries = entries(content)?;
    for (key, entry) in &entries {
        let Some((_, output)) = declared.iter().find(|(name, _)| name == key) else {
            return Err(entry.error(Problem::Unexpected { key: key.clone() }));
        };
        // No definition declares null: what stands for a step that is not at hand gives anything.
        if entry.value.kind() != output.kind && output.kind != Kind::Null {
            let problem = Problem::Mismatched { key: key.clone(), declared: output.kind, received: entry.value.kind() };
            return Err(entry.error(problem));
        }
        if entry.value.depth() > MAXIMUM_DEPTH {
            return Err(entry.error(Problem::TooDeep { key: key.clone() }));
        }
    }
    let mut outputs = Object::with_capacity(declared.len());
    for (name, output) in declared {
        let written = entries.swap_remove(name).map(|entry| entry.value);
        let Some(value) = written.or_else(|| output.default.clone()) else {
            return Err(FileError { problem: Problem::Missing { key: name.clone() }, line: None });
        };
        outputs.insert(name.clone(), value.marked(output.sensitive));
    }
    Ok(outputs)
}

/// The exports in the order in which they were written, as text.
/// # Errors
/// The first line that cannot be read, else the first value that has no text.
pub fn exports(content: &[u8]) -> Result<Object, FileError> {
    let entries = entries(content)?;
    let text = |entry: &Entry<'_>| match entry.value.data() {
        Data::String(_) => Ok(entry.value.clone()),
        Data::Boolean(boolean) => Ok(Value::string(if *boolean { "true" } else { "false" })),
        // Display of a double: plain decimals without an exponent, the shortest that read back equal.
        Data::Number(number) => Ok(Value::string(number.to_string())),
        Data::Null | Data::Array(_) | Data::Object(_) => {
            Err(entry.error(Problem::NotText { key: entry.name.clone(), received: entry.value.kind() }))
        }
    };
    entries.values().map(|entry| Ok((entry.name.clone(), text(entry)?))).collect()
}

/// The outputs of a whole result that a delegating step wrote; those that it names as sensitive are.
/// # Errors
/// The file is not one JSON object with an object `outputs`.
pub fn delegated_outputs(content: &[u8]) -> Result<Object, FileError> {
    let fault = |why: String| FileError { problem: Problem::NotAResult { why }, line: None };
    let result = json::read(&String::from_utf8_lossy(content)).map_err(&fault)?;
    let result = result.as_object().ok_or_else(|| fault(format!("expected an object, got {}", result.kind())))?;
    let sensitive = result.get("sensitiveOutputs").or_else(|| result.get("sensitive_outputs"));
    let sensitive = sensitive.and_then(Value::as_array).unwrap_or_default();
    let outputs = match result.get("outputs") {
        None => return Ok(Object::new()),
        Some(outputs) if outputs.kind() == Kind::Null => return Ok(Object::new()),
        Some(outputs) => outputs.as_object().ok_or_else(|| fault(format!("outputs: expected an object, got {}", outputs.kind())))?,
    };
    if let Some((name, _)) = outputs.iter().find(|(_, value)| value.depth() > MAXIMUM_DEPTH) {
        return Err(fault(Problem::TooDeep { key: name.clone() }.to_string()));
    }
    let is_sensitive = |name: &str| sensitive.iter().any(|item| item.as_str() == Some(name));
    Ok(outputs.iter().map(|(name, value)| (name.clone(), value.clone().marked(is_sensitive(name)))).collect())
}

/// What is said of a file that was meant as a whole result.
pub(crate) fn not_a_result(why: &str) -> String {
    Problem::NotAResult { why: why.to_owned() }.to_string()
}

/// The lines of a file by name; of the same name, the last counts.
fn entries(content: &[u8]) -> Result<indexmap::IndexMap<Arc<str>, Entry<'_>>, FileError> {
    let mut entries = indexmap::IndexMap::new();
    for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        if line.is_empty() {
            continue;
        }
        match entry_of(&line) {
            Ok((name, value)) => {
                entries.insert(name.clone(), Entry { name, value, line });
            }
            Err(why) => return Err(FileError { problem: Problem::Line { number: index + 1, why }, line: Some(line.into_owned()) }),
        }
    }
    Ok(entries)
}

fn entry_of(line: &str) -> Result<(Arc<str>, Value), String> {
    let parsed = json::read(line)?;
    let object = parsed.as_object().ok_or_else(|| format!("expected an object with \"name\" and \"value\", got {}", parsed.kind()))?;
    let field = |name: &str| match object.get(name) {
        None => Err(format!("\"{name}\" field is missing")),
        Some(value) if value.kind() == Kind::Null => Err(format!("\"{name}\" field value is null")),
        Some(value) => Ok(value.clone()),
    };
    let name = match field("name")?.data() {
        Data::String(name) if name.is_empty() => return Err("\"name\" field value is empty".into()),
        Data::String(name) => name.clone(),
        _ => return Err("\"name\" field value is not a string".into()),
    };
    Ok((name, field("value")?))
}

#[cfg(test)]
mod tests;
