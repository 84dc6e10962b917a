//! Writing back: a runner is registered, removed, or gets a new token. What is not touched stays byte for byte.
//!
//! The new text is the old one with pieces put in or taken out at the places that reading has found, and is read again before it is given out.
//! A library that writes whole files back would be shorter, and would turn every end of a line into its own.

mod blocks;

use crate::secret::Secret;
use crate::settings::Runner;
use crate::{Severity, parse, raw};
use std::collections::BTreeMap;
use std::ops::Range;
use step_model::time::Timestamp;

/// Why a file cannot be changed. It is left as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditFault {
    #[error("the file breaks the grammar of TOML: {0}")]
    Grammar(String),
    #[error("the file has no entry of `[[runners]]` for {0} any more")]
    NoEntry(String),
    #[error("the runners are written as `runners = [...]`, which is not changed here: write them as `[[runners]]`")]
    Inline,
    #[error("the new entry would break the grammar of TOML: {0}")]
    BadEntry(String),
    #[error("the changed file would say something else than was asked for; it was left as it is")]
    Unexpected,
}

/// A token as a server gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewToken {
    pub token: Secret,
    pub obtained_at: Timestamp,
    /// `None`: it does not expire.
    pub expires_at: Option<Timestamp>,
}

/// A runner that a server has just accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRunner {
    pub name: String,
    pub url: String,
    pub id: u64,
    pub token: NewToken,
    pub executor: String,
    /// More keys of the entry with their values, and tables inside it as objects, in this order.
    pub more: Vec<(String, serde_json::Value)>,
}

/// The text with one more entry, at its end.
///
/// # Errors
/// When the text breaks the grammar, or does not let an entry be added.
pub fn register(text: &str, runner: &NewRunner) -> Result<String, EditFault> {
    let root = grammatical(text)?;
    let end = line_end(text);
    let lines = entry_lines(runner);
    if let Some(fault) = raw::read(&lines.join("\n")).1.into_iter().next() {
        return Err(EditFault::BadEntry(fault.message));
    }
    let mut new = text.to_owned();
    if !new.is_empty() && !new.ends_with('\n') {
        new += end;
    }
    if root.entries.is_empty() {
        new += "concurrent = 1";
        new += end;
    }
    new += end;
    for line in lines {
        new += &line;
        new += end;
    }
    let count = |text: &str| parse(text, &BTreeMap::new()).settings.map(|settings| settings.entries().len());
    match grammatical(&new) {
        Err(_) => Err(EditFault::Inline),
        // A file that says something wrong elsewhere can still get an entry.
        Ok(_) if count(text).is_some() && count(&new) != count(text).map(|count| count + 1) => Err(EditFault::Unexpected),
        Ok(_) => Ok(new),
    }
}

fn entry_lines(runner: &NewRunner) -> Vec<String> {
    let mut lines = vec!["[[runners]]".to_owned()];
    let mut line = |key: &str, value: String| lines.push(format!("  {key} = {value}"));
    line("name", quoted(&runner.name));
    line("url", quoted(&runner.url));
    line("id", runner.id.to_string());
    line("token", quoted(runner.token.token.expose()));
    line("token_obtained_at", time(Some(runner.token.obtained_at)));
    line("token_expires_at", time(runner.token.expires_at));
    line("executor", quoted(&runner.executor));
    let (tables, keys): (Vec<_>, Vec<_>) = runner.more.iter().partition(|(_, value)| value.is_object());
    for (key, value) in keys {
        line(key, literal(value));
    }
    for (name, value) in tables {
        lines.push(format!("  [runners.{name}]"));
        for (key, value) in value.as_object().into_iter().flatten() {
            lines.push(format!("    {key} = {}", literal(value)));
        }
    }
    lines
}

/// The text without an entry. Comments above it go with it when a blank line divides them from what is before.
///
/// # Errors
/// When the text breaks the grammar, has no such entry, or writes entries in brackets.
pub fn unregister(text: &str, runner: &Runner, variables: &BTreeMap<String, String>) -> Result<String, EditFault> {
    let root = grammatical(text)?;
    let index = index_of(text, runner, variables)?;
    let mut new = text.to_owned();
    for block in blocks::of_entry(text, &root, index).ok_or(EditFault::Inline)?.into_iter().rev() {
        new.replace_range(block, "");
    }
    let before = parse(text, variables).settings.map_or(0, |settings| settings.entries().len());
    let after = parse(&new, variables).settings.map(|settings| settings.entries().len());
    if grammatical(&new).is_err() || after.is_some_and(|after| after + 1 != before) { Err(EditFault::Unexpected) } else { Ok(new) }
}

/// The text with another token for an entry.
///
/// # Errors
/// When the text breaks the grammar, or has no such entry.
pub fn with_token(text: &str, runner: &Runner, token: &NewToken, variables: &BTreeMap<String, String>) -> Result<String, EditFault> {
    let root = grammatical(text)?;
    let index = index_of(text, runner, variables)?;
    let entry = blocks::entry(&root, index).ok_or(EditFault::Inline)?;
    let find = |name: &str| entry.entries.iter().find(|entry| entry.key.value.eq_ignore_ascii_case(name));
    let old = find("token").ok_or_else(|| EditFault::NoEntry(runner.phrase()))?;
    let is_inline = !blocks::is_first_of_its_line(text, old.key.span.start);
    let mut pieces: Vec<(Range<usize>, String)> = vec![(old.value.span.clone(), quoted(token.token.expose()))];
    let mut behind = String::new();
    for (key, value) in [("token_obtained_at", time(Some(token.obtained_at))), ("token_expires_at", time(token.expires_at))] {
        match find(key) {
            Some(entry) => pieces.push((entry.value.span.clone(), value)),
            None if is_inline => behind += &format!(", {key} = {value}"),
            None => behind += &format!("{}{key} = {value}{}", blocks::indent(text, old.key.span.start), line_end(text)),
        }
    }
    if !behind.is_empty() {
        let at = if is_inline { old.value.span.end } else { blocks::next_line(text, old.value.span.end) };
        let is_without_end = at == text.len() && !text.ends_with('\n') && !is_inline;
        pieces.push((at..at, if is_without_end { format!("{}{}", line_end(text), behind.trim_end()) } else { behind }));
    }
    pieces.sort_by_key(|(span, _)| (span.start, span.end));
    let mut new = text.to_owned();
    for (span, piece) in pieces.into_iter().rev() {
        new.replace_range(span, &piece);
    }
    let has_it = |new: &str| {
        let settings = parse(new, &BTreeMap::new()).settings;
        settings.is_none_or(|settings| settings.entries().get(index).is_some_and(|entry| entry.token == token.token))
    };
    if grammatical(&new).is_ok() && has_it(&new) { Ok(new) } else { Err(EditFault::Unexpected) }
}

fn grammatical(text: &str) -> Result<raw::Table, EditFault> {
    let (root, faults) = raw::read(text);
    // The message is the library's and names no value.
    faults.into_iter().next().map_or(Ok(root), |fault| Err(EditFault::Grammar(fault.message)))
}

/// Where the runner stands now: the file may have changed since it was read.
fn index_of(text: &str, runner: &Runner, variables: &BTreeMap<String, String>) -> Result<usize, EditFault> {
    let parsed = parse(text, variables);
    let Some(settings) = parsed.settings else {
        let fault = parsed.problems.iter().find(|problem| problem.severity == Severity::Error);
        return Err(EditFault::Grammar(fault.map(ToString::to_string).unwrap_or_default()));
    };
    let entries = settings.entries();
    let is_same = |entry: &&&Runner| entry.url == runner.url && entry.token == runner.token;
    let mut same = entries.iter().filter(is_same);
    let found = same.clone().find(|entry| entry.index == runner.index).or_else(|| same.next());
    found.map(|entry| entry.index).ok_or_else(|| EditFault::NoEntry(runner.phrase()))
}

/// How the lines of the text end: as its first one does.
fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// On one line. JSON escapes as TOML does, but for the one control character that it leaves as it is.
fn quoted(text: &str) -> String {
    serde_json::json!(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Go writes the year 1 for a time that nobody has set, and reads it so.
fn time(time: Option<Timestamp>) -> String {
    let in_seconds = |time: Timestamp| Timestamp::from_nanoseconds(time.nanoseconds() / 1_000_000_000 * 1_000_000_000);
    time.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |time| in_seconds(time).to_string())
}

fn literal(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => quoted(text),
        serde_json::Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{} = {}", quoted(key), literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Null => "\"\"".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
