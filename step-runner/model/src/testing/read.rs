//! Reads a `step_test.yml`, every problem at once.

mod case;
mod doubles;
mod expect;
mod fields;
mod values;

use super::suite::{Case, Placed, Suite, Tolerated};
use super::table::with_row;
use crate::diagnostic::{Lines, Problem, locate};
use crate::document::yaml::{self, Node, Span};
use crate::value::Value;
use fields::Reader;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A table of more rows is a program, not a test.
const MOST_ROWS: usize = 10_000;

/// What could be read, and all problems in the order of the text.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Cases with problems are left out.
    pub suite: Suite,
    pub problems: Vec<Problem>,
}

/// Reads the text of a `step_test.yml`.
pub fn read(text: &str) -> Reading {
    let lines = Lines::of(text);
    if text.len() > crate::document::raw::MAXIMUM_SIZE {
        let message = format!("the text has {} bytes, a test has at most {}", text.len(), crate::document::raw::MAXIMUM_SIZE);
        return Reading { suite: Suite::default(), problems: vec![Problem::error("too-large", message, None)] };
    }
    let mut stream = yaml::parse(text, 1, &lines);
    let root = stream.documents.pop().flatten();
    let mut reader = Reader { text, lines: &lines, problems: stream.problems };
    if let Some(rest) = stream.rest {
        reader.error("more-documents", rest, "a test has one document").hint("remove the line `---` and what follows it");
    }
    let suite = match &root {
        Some(root) => reader.suite(root),
        None => {
            if reader.problems.is_empty() {
                let problem = Problem::error("no-cases", "the text is empty, but a test has cases", None);
                reader.problems.push(problem.with_hint("write `cases:` and below it `- name: it works`"));
            }
            Suite::default()
        }
    };
    let mut problems = reader.problems;
    locate(&mut problems, text, &lines);
    // The rows of a table find the same problem as often as there are rows.
    let mut seen = BTreeSet::new();
    problems.retain(|problem| seen.insert((problem.place.as_ref().map(|place| place.span.start), problem.message.clone())));
    Reading { suite, problems }
}

impl<'t> Reader<'t> {
    fn suite(&mut self, root: &Node<'t>) -> Suite {
        let mut suite = Suite::default();
        let Some(fields) = self.fields(root, "a test", &["step", "defaults", "cases", "mutants"]) else { return suite };
        if let Some(node) = fields.get("step") {
            suite.step = self.text(node, "`step`").map(|it| Placed { it, place: self.place(node.span) });
        }
        if let Some(nodes) = fields.get("mutants").and_then(|node| self.list(node, "`mutants`")) {
            suite.tolerated = nodes.iter().filter_map(|node| self.tolerated(node)).collect();
        }
        let defaults = fields.get("defaults").map(|node| self.defaults(node));
        match fields.get("cases").map(|node| self.list(node, "`cases`")) {
            Some(Some([])) | None => {
                self.error("no-cases", root.span, "a test has cases").hint("write `cases:` and below it `- name: it works`");
            }
            Some(nodes) => {
                for node in nodes.unwrap_or_default() {
                    self.cases(node, &mut suite.cases);
                }
            }
        }
        if let Some(defaults) = defaults {
            suite.cases.iter_mut().for_each(|case| case.complete_with(&defaults));
        }
        self.refuse_equal_names(&suite.cases);
        suite
    }

    fn tolerated(&mut self, node: &Node<'t>) -> Option<Tolerated> {
        let fields = self.fields(node, "an item of `mutants`", &["tolerate", "reason"])?;
        let mutant = self.required_text(node, &fields, "tolerate", "as `step-runner test --mutate` names the mutant")?;
        let reason = self.required_text(node, &fields, "reason", "why no case needs to notice it")?;
        let place = fields.get("tolerate").map_or(node.span, |node| node.span);
        Some(Tolerated { mutant: Placed { it: mutant, place: self.place(place) }, reason })
    }

    /// The case of one item of `cases`, or the cases of its table.
    fn cases(&mut self, node: &Node<'t>, cases: &mut Vec<Case>) {
        let Some(table) = node.get("table") else {
            cases.extend(self.case(node));
            return;
        };
        let Some(rows) = self.list(table, "`table`") else { return };
        if rows.is_empty() {
            self.error("empty-table", table.span, "a table has rows").hint("remove `table`, or write a row: `- {name: value}`");
        }
        if rows.len() > MOST_ROWS {
            self.error("too-many-rows", table.span, format!("a table has at most {MOST_ROWS} rows, not {}", rows.len()));
            return;
        }
        let is_named_by_row = node.get("name").and_then(Node::source_text).is_some_and(|name| name.contains("row."));
        for (index, row) in rows.iter().enumerate() {
            let Some(value) = self.row(row) else { continue };
            let mut faults = Vec::new();
            let replaced = with_row(node, &value, &mut faults);
            for fault in faults {
                let mut problem = self.error("row", fault.span, format!("row {}: {}", index + 1, fault.message));
                if let Some(hint) = fault.hint {
                    problem.hint(hint);
                }
            }
            if let Some(mut case) = self.case(&replaced) {
                if !is_named_by_row {
                    case.name = format!("{} [{}]", case.name, label(&value).unwrap_or_else(|| (index + 1).to_string())).into();
                }
                case.place = self.place(row.span);
                cases.push(case);
            }
        }
    }

    fn row(&mut self, row: &Node<'t>) -> Option<Value> {
        if row.as_map().is_none() {
            self.error("not-a-map", row.span, format!("a row of `table` is a map, not {}", row.kind_name()));
            return None;
        }
        Some(self.value(row))
    }

    fn refuse_equal_names(&mut self, cases: &[Case]) {
        let mut names: BTreeSet<&Arc<str>> = BTreeSet::new();
        for case in cases.iter().filter(|case| !case.name.is_empty()) {
            if !names.insert(&case.name) {
                let problem = Problem::error("equal-names", format!("two cases have the name `{}`", case.name), Some(case.place.clone()));
                self.problems.push(problem.with_hint("names tell cases apart: in reports, and in `--filter`"));
            }
        }
    }
}

/// What a row calls itself, or its only value.
fn label(row: &Value) -> Option<String> {
    let object = row.as_object()?;
    let value = object.get("name").or_else(|| object.first().map(|(_, value)| value))?;
    let text = value.as_str().map_or_else(|| value.to_json().to_string(), str::to_owned);
    Some(text.chars().take(40).collect())
}

/// Where something is: line and column.
impl Reader<'_> {
    pub(super) fn place(&self, span: Span) -> crate::diagnostic::Place {
        self.lines.place(self.text, span.range())
    }
}

#[cfg(test)]
mod tests;
