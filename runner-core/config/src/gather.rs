//! Collects what the check finds: problems with their places, what becomes of each key, and what of the text may be shown.

use crate::problem::{Problem, Severity};
use crate::tables::Standing;
use std::ops::Range;
use step_model::diagnostic::{Lines, Place};

/// What becomes of one key that stands in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// From the file's beginning on: `runners[0].docker.image`.
    pub path: String,
    pub place: Place,
    pub fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Known(Standing),
    Unknown,
}

/// Filled while a file is checked.
pub(crate) struct Gather<'a> {
    text: &'a str,
    lines: Lines,
    /// The entry of `[[runners]]` that is being checked.
    entry: Option<usize>,
    /// Whether the grammar could not read all of the file: then nothing is known to be absent.
    is_torn: bool,
    pub problems: Vec<Problem>,
    pub findings: Vec<Finding>,
    /// Values that may be shown, in the order of the file or not.
    pub shown: Vec<Range<usize>>,
}

impl<'a> Gather<'a> {
    pub fn of(text: &'a str) -> Self {
        Self { text, lines: Lines::of(text), entry: None, is_torn: false, problems: Vec::new(), findings: Vec::new(), shown: Vec::new() }
    }

    /// The file breaks the grammar here.
    pub fn torn(&mut self, message: String, span: Range<usize>) {
        self.is_torn = true;
        self.push(Severity::Error, "grammar", message, Some(span), String::new());
    }

    /// Something that has to be there is not.
    pub fn absent(&mut self, code: &'static str, message: &str, span: Range<usize>, hint: &str) {
        if !self.is_torn {
            self.refuse(code, message, Some(span), hint);
        }
    }

    /// Everything that `check` reports is about this entry.
    pub fn about_entry<T>(&mut self, index: usize, check: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.entry.replace(index);
        let checked = check(self);
        self.entry = before;
        checked
    }

    /// Whether a key in quotes may be what is left of a value, a password say: where the grammar is broken, keys begin anywhere.
    pub fn is_half_a_value(&self, key: &Range<usize>) -> bool {
        self.is_torn && self.text.get(key.clone()).is_none_or(|key| key.starts_with(['"', '\'']))
    }

    pub fn place(&self, span: Range<usize>) -> Place {
        self.lines.place(self.text, span)
    }

    pub fn find(&mut self, path: String, span: Range<usize>, fate: Fate) {
        let place = self.place(span);
        self.findings.push(Finding { path, place, fate });
    }

    /// What makes the entry, or outside entries the file, unusable.
    pub fn refuse(&mut self, code: &'static str, message: impl Into<String>, span: Option<Range<usize>>, hint: impl Into<String>) {
        let severity = if self.entry.is_some() { Severity::Refused } else { Severity::Error };
        self.push(severity, code, message.into(), span, hint.into());
    }

    pub fn warn(&mut self, code: &'static str, message: impl Into<String>, span: Option<Range<usize>>, hint: impl Into<String>) {
        self.push(Severity::Warning, code, message.into(), span, hint.into());
    }

    pub fn note(&mut self, code: &'static str, message: impl Into<String>, span: Option<Range<usize>>, hint: impl Into<String>) {
        self.push(Severity::Notice, code, message.into(), span, hint.into());
    }

    fn push(&mut self, severity: Severity, code: &'static str, message: String, span: Option<Range<usize>>, hint: String) {
        let place = span.map(|span| self.place(span));
        let hint = (!hint.is_empty()).then_some(hint);
        self.problems.push(Problem { severity, code, message, place, hint, entry: self.entry });
    }
}

/// Spans in their order, those that touch each other made into one.
pub(crate) fn merged(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}
