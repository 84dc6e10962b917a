//! What all parts of reading share: the text, the problems so far, and strings that occur again and again.

use super::{Conditional, MOST_PROBLEMS};
use crate::diagnostic::{Cursor, Lines, Place, Problem, Verdict, locate};
use crate::document::Dialect;
use crate::document::lint::{self, Finding, Surroundings};
use crate::document::yaml::{Node, Span};
use crate::expression::Template;
use crate::reference::StepReference;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Longer texts are hardly ever written twice.
const LONGEST_SHARED: usize = 64;

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    lines: &'t Lines,
    /// Where the text is a part of a longer one: the lines before it.
    pub(super) lines_before: u32,
    pub(super) dialect: Dialect,
    /// How bad it is what the original lets pass because nobody looks.
    pub(super) oddity: Verdict,
    /// What expressions can read where the reader is.
    pub(super) around: Surroundings,
    /// Inputs whose declarations are wrong. They are there all the same: what reads them is not wrong too.
    pub(super) broken_inputs: Vec<Arc<str>>,
    /// What becomes of findings about expressions where the reader is.
    pub(super) scrutiny: Scrutiny,
    /// Of the first ones; line and column are counted at the end.
    problems: Vec<Problem>,
    /// How many there are besides, and how bad they are.
    unlisted: usize,
    worst_unlisted: Verdict,
    conditional: Vec<Conditional>,
    cursor: Cursor,
    strings: BTreeSet<Arc<str>>,
    templates: BTreeMap<Arc<str>, Template>,
    /// What was taken apart without a problem.
    pub(super) references: BTreeMap<Arc<str>, StepReference>,
}

/// What becomes of findings about expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scrutiny {
    Reported,
    /// They hold unless the callee takes this input unexpanded.
    UnlessTemplate {
        step: usize,
        input: Arc<str>,
    },
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str, lines: &'t Lines, dialect: Dialect, problems: Vec<Problem>) -> Self {
        let (strings, templates) = (BTreeSet::new(), BTreeMap::new());
        Self {
            text,
            lines,
            lines_before: 0,
            dialect,
            oddity: Verdict::Warning,
            around: Surroundings::default(),
            broken_inputs: Vec::new(),
            scrutiny: Scrutiny::Reported,
            problems,
            unlisted: 0,
            worst_unlisted: Verdict::Warning,
            conditional: Vec::new(),
            cursor: Cursor::default(),
            strings,
            templates,
            references: BTreeMap::new(),
        }
    }

    pub(super) fn take_conditional(&mut self) -> Vec<Conditional> {
        let mut conditional = std::mem::take(&mut self.conditional);
        for Conditional { problem, .. } in &mut conditional {
            locate(std::slice::from_mut(problem), self.text, self.lines);
        }
        conditional
    }

    /// In the order of the text; what concerns all of it comes first.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        locate(&mut self.problems, self.text, self.lines);
        if self.unlisted > 0 {
            let message = format!("{} more problems are not listed", self.unlisted);
            self.problems.push(Problem { verdict: self.worst_unlisted, ..Problem::error("more-problems", message, None) });
        }
        self.problems
    }

    /// Whether further problems are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
    }

    pub(super) fn report(&mut self, problem: Problem) {
        if self.is_full() {
            self.unlisted += 1;
            self.worst_unlisted = self.worst_unlisted.max(problem.verdict);
        } else {
            self.problems.push(problem);
        }
    }

    pub(super) fn error(&mut self, code: &'static str, at: &Node<'t>, message: impl Into<String>) {
        self.report(Problem::error(code, message, Some(uncounted(at.span))));
    }

    pub(super) fn error_with_hint(&mut self, code: &'static str, at: &Node<'t>, message: impl Into<String>, hint: impl Into<String>) {
        self.report(Problem::error(code, message, Some(uncounted(at.span))).with_hint(hint));
    }

    pub(super) fn warning(&mut self, code: &'static str, at: &Node<'t>, message: impl Into<String>, hint: impl Into<String>) {
        self.report(Problem::warning(code, message, Some(uncounted(at.span))).with_hint(hint));
    }

    /// What the original lets pass because nobody looks.
    pub(super) fn odd(&mut self, code: &'static str, at: &Node<'t>, message: impl Into<String>, hint: Option<String>) {
        self.report(Problem { verdict: self.oddity, hint, ..Problem::error(code, message, Some(uncounted(at.span))) });
    }

    /// The place of something that is kept. Asked for in the order of the text.
    pub(super) fn place(&mut self, span: Span) -> Place {
        self.cursor.place(self.text, self.lines, span.range())
    }

    pub(super) fn line(&self, span: Span) -> u32 {
        self.lines_before + self.lines.line(span.range().start)
    }

    pub(super) fn warn_about_rest(&mut self, rest: Option<Span>) {
        if let Some(span) = rest {
            let place = Some(uncounted(span));
            self.report(
                Problem::warning("more-documents", "what follows is ignored: a definition ends with its second document", place)
                    .with_hint("remove it, or move it to a file of its own"),
            );
        }
    }

    pub(super) fn report_missing_documents(&mut self) {
        let message = "decoding: EOF: the text is empty, but a definition has two documents";
        self.report(
            Problem::error("missing-spec", message, None).with_hint("write `{}` or `spec:`, a line `---`, and then `exec:` or `run:`"),
        );
    }

    pub(super) fn report_missing_definition(&mut self) {
        let end = u32::try_from(self.text.trim_end().len()).unwrap_or(u32::MAX);
        let place = uncounted(Span { start: end, end });
        let message = "decoding: EOF: the text ends after its first document, where the definition is missing";
        let hint = "write a line `---`, and then `exec:` or `run:`; a step that takes and gives nothing has `{}` as its first document";
        self.report(Problem::error("missing-definition", message, Some(place)).with_hint(hint));
    }

    /// A text that is kept, once for all its occurrences.
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        if text.len() > LONGEST_SHARED {
            return text.into();
        }
        if let Some(shared) = self.strings.get(text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = text.into();
        self.strings.insert(Arc::clone(&shared));
        shared
    }

    /// A scalar as text, whatever it looks like. Reports what is no scalar.
    pub(super) fn string(&mut self, node: &Node<'t>, what: &str) -> Option<Arc<str>> {
        match node.source_text() {
            Some(text) => Some(self.share(text)),
            None => {
                let message = format!("{what} is a text, not {}: cannot unmarshal {} into string", node.kind_name(), node.yaml_name());
                self.error("not-a-text", node, message);
                None
            }
        }
    }

    /// A scalar as a text that may hold expressions.
    pub(super) fn template(&mut self, node: &Node<'t>, what: &str) -> Option<Template> {
        let text = self.string(node, what)?;
        Some(self.parsed(text, node))
    }

    pub(super) fn parsed(&mut self, text: Arc<str>, node: &Node<'t>) -> Template {
        if let Some(template) = self.templates.get(&text) {
            let template = template.clone();
            self.scrutinise(&template, node);
            return template;
        }
        let template = match Template::parse(Arc::clone(&text), self.dialect) {
            Ok(template) => template,
            Err(fault) => {
                let place = self.place_within(node, &text, fault.span.clone());
                let problem = Problem::error("expression", fault.message, Some(place));
                self.report(match fault.hint {
                    Some(hint) => problem.with_hint(hint),
                    None => problem,
                });
                return Template::literal(text);
            }
        };
        self.scrutinise(&template, node);
        if text.len() <= LONGEST_SHARED {
            self.templates.insert(text, template.clone());
        }
        template
    }

    /// Reports names that have no value here.
    pub(super) fn scrutinise(&mut self, template: &Template, node: &Node<'t>) {
        if template.as_literal().is_some() {
            return;
        }
        let verdict = if lint::is_certain(template) { self.oddity } else { Verdict::Warning };
        for unknown in lint::unknown_names(template, &self.around) {
            // what is not listed need not be explained: one template can fill the list
            let is_listed = if self.scrutiny == Scrutiny::Reported { !self.is_full() } else { self.conditional.len() < MOST_PROBLEMS };
            let problem = if is_listed {
                let Finding { code, message, hint, span } = unknown.explain(template.source(), &self.around);
                let place = self.place_within(node, template.source(), span);
                Problem { verdict, ..Problem::error(code, message, Some(place)).with_hint(hint) }
            } else {
                Problem { verdict, ..Problem::error("unknown-name", "a name has no value", Some(uncounted(node.span))) }
            };
            match &self.scrutiny {
                Scrutiny::UnlessTemplate { step, input } if is_listed => {
                    let (step, input) = (*step, Arc::clone(input));
                    self.conditional.push(Conditional { step, input, problem });
                }
                Scrutiny::Reported => self.report(problem),
                _ => {}
            }
        }
        if let Some(offset) = template.ambiguous_escapes().first() {
            let place = self.place_within(node, template.source(), *offset..offset + 1);
            let message = "the backslash stays, and the expression is evaluated";
            self.report(Problem::warning("escape", message, Some(place)).with_hint("`${{ '${{' }}` writes a literal `${{`"));
        }
    }

    /// The place of some bytes of a scalar's text, which is not always as long in the file as it is when read.
    pub(super) fn place_within(&self, node: &Node<'t>, text: &str, within: std::ops::Range<usize>) -> Place {
        let whole = node.span.range();
        let written = self.text.get(whole.clone()).unwrap_or_default();
        let start = offset_in(written, text, within.start);
        let end = offset_in(written, text, within.end);
        match start.zip(end) {
            Some((start, end)) if start <= end => Place::uncounted(whole.start + start..whole.start + end),
            _ => Place::uncounted(whole),
        }
    }
}

/// The place of a problem: line and column are counted when all are known.
pub(super) fn uncounted(span: Span) -> Place {
    Place::uncounted(span.range())
}

/// In a longer text places are not looked for: it would be searched through for each.
const LONGEST_SEARCHED: usize = 1 << 16;

/// Where a byte of a scalar's text stands in what was written. `None` where escapes or folding move it.
fn offset_in(written: &str, text: &str, at: usize) -> Option<usize> {
    if text.len() > LONGEST_SEARCHED {
        return None;
    }
    if let Some(start) = written.find(text).filter(|_| !text.is_empty()) {
        return Some(start + at);
    }
    // A block text: its lines are those written, less their indentation.
    let line_of_text = text.get(..at)?.matches('\n').count();
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let mut offset = 0;
    for (number, written_line) in written.split_inclusive('\n').enumerate() {
        if number == line_of_text {
            let indentation = written_line.trim_end_matches(['\n', '\r']).strip_suffix(line)?.len();
            return Some(offset + indentation + (at - line_start));
        }
        offset += written_line.len();
    }
    None
}
