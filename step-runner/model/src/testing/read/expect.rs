//! What has to come out.

use super::fields::Reader;
use super::values::suite_path;
use crate::document::yaml::Node;
use crate::testing::suite::{
    Calls, Expectation, Expected, FileMatch, Given, Placed, StepExpectation, StepStatus, TextCondition, TextMatch,
};
use std::sync::Arc;

const KEYS: [&str; 10] = ["exit", "failure", "outputs", "exports", "log", "files", "steps", "calls", "called", "that"];
const CONDITIONS: [&str; 5] = ["equals", "contains", "excludes", "matches", "golden"];

/// What a text alone means.
#[derive(Clone, Copy)]
enum Plain {
    Equals,
    Contains,
}

impl<'t> Reader<'t> {
    pub(super) fn expectation(&mut self, node: &Node<'t>) -> Expectation {
        let Some(fields) = self.fields(node, "`expect`", &KEYS) else { return Expectation::default() };
        let exit = fields.get("exit").and_then(|node| self.exit(node));
        let failure = fields.get("failure").and_then(|node| self.text_match(node, Plain::Contains));
        if let (Some(Placed { it: 0, place }), Some(_)) = (&exit, &failure) {
            let problem = crate::diagnostic::Problem::error("contradiction", "a step that ends well has no failure", Some(place.clone()));
            self.problems.push(problem.with_hint("remove `exit: 0`, or `failure`"));
        }
        Expectation {
            exit,
            failure,
            outputs: self.expected(fields.get("outputs"), "outputs"),
            exports: self.expected(fields.get("exports"), "exports"),
            log: fields.get("log").and_then(|node| self.text_match(node, Plain::Contains)),
            files: self.expected_files(fields.get("files")),
            steps: self.expected_steps(fields.get("steps")),
            calls: fields.get("calls").and_then(|node| self.calls(node)),
            called: self.given(fields.get("called"), "called", |reader, value, name| {
                let number = reader.whole(value, &format!("how often `{name}` is called"), 0, 1_000_000)?;
                u64::try_from(number).ok()
            }),
            that: fields.get("that").map(|node| self.conditions(node)).unwrap_or_default(),
        }
    }

    fn exit(&mut self, node: &Node<'t>) -> Option<Placed<i32>> {
        let it = self.whole(node, "`exit`", 0, 255)?;
        Some(Placed { it, place: self.place(node.span) })
    }

    fn expected(&mut self, node: Option<&Node<'t>>, what: &str) -> Vec<Given<Expected>> {
        self.given(node, what, |reader, value, _| Some(reader.expected_value(value)))
    }

    fn expected_value(&mut self, node: &Node<'t>) -> Expected {
        let are_conditions = node.as_map().is_some_and(|entries| {
            !entries.is_empty() && entries.iter().all(|(key, _)| key.source_text().is_some_and(|key| CONDITIONS.contains(&key)))
        });
        let text = if are_conditions { self.text_match(node, Plain::Equals) } else { None };
        Expected { value: self.value_template(node), text, place: self.place(node.span) }
    }

    fn text_match(&mut self, node: &Node<'t>, plain: Plain) -> Option<TextMatch> {
        let mut conditions = Vec::new();
        if node.as_map().is_none() {
            for item in node.as_list().unwrap_or(std::slice::from_ref(node)) {
                let template = self.template(item, "an expected text")?;
                let condition = match plain {
                    Plain::Equals => TextCondition::Equals(template),
                    Plain::Contains => TextCondition::Contains(template),
                };
                conditions.push(Placed { it: condition, place: self.place(item.span) });
            }
            return Some(TextMatch { conditions });
        }
        let fields = self.fields(node, "an expected text", &CONDITIONS)?;
        for key in CONDITIONS {
            let Some(value) = fields.get(key) else { continue };
            for item in value.as_list().unwrap_or(std::slice::from_ref(value)) {
                let place = self.place(item.span);
                let it = match key {
                    "equals" => TextCondition::Equals(self.template(item, key)?),
                    "contains" => TextCondition::Contains(self.template(item, key)?),
                    "excludes" => TextCondition::Excludes(self.template(item, key)?),
                    "matches" => TextCondition::Matches(self.text(item, key)?),
                    _ => TextCondition::Golden(self.text(item, key)?),
                };
                conditions.push(Placed { it, place });
            }
        }
        Some(TextMatch { conditions })
    }

    /// `{path: text}`, `{path: {matches: ...}}`, `{path: absent}` is written `{path: null}`, `{path: {}}` is any content.
    fn expected_files(&mut self, node: Option<&Node<'t>>) -> Vec<Given<FileMatch>> {
        let mut files = self.given(node, "files", |reader, value, _| {
            if value.is_null() {
                return Some(FileMatch::Absent);
            }
            if value.as_map().is_some_and(<[_]>::is_empty) {
                return Some(FileMatch::Present);
            }
            reader.text_match(value, Plain::Equals).map(FileMatch::Text)
        });
        for file in &mut files {
            match suite_path(&file.name) {
                Ok(path) => file.name = path,
                Err(why) => self.problems.push(crate::diagnostic::Problem::error("path", why, Some(file.place.clone()))),
            }
        }
        files
    }

    fn expected_steps(&mut self, node: Option<&Node<'t>>) -> Vec<StepExpectation> {
        let keys = ["status", "exit", "inputs", "outputs", "exports", "env"];
        let steps = self.given(node, "steps", |reader, value, name| {
            let path: Vec<Arc<str>> = name.split('/').map(Arc::from).collect();
            let place = reader.place(value.span);
            let mut step = StepExpectation {
                path,
                place,
                status: None,
                exit: None,
                inputs: Vec::new(),
                outputs: Vec::new(),
                exports: Vec::new(),
                env: Vec::new(),
            };
            if value.as_map().is_none() {
                step.status = reader.status(value);
                return Some(step);
            }
            let fields = reader.fields(value, "an expected step", &keys)?;
            step.status = fields.get("status").and_then(|node| reader.status(node));
            step.exit = fields.get("exit").and_then(|node| reader.exit(node));
            step.inputs = reader.expected(fields.get("inputs"), "inputs");
            step.outputs = reader.expected(fields.get("outputs"), "outputs");
            step.exports = reader.expected(fields.get("exports"), "exports");
            step.env = reader.expected(fields.get("env"), "env");
            Some(step)
        });
        steps.into_iter().map(|given| StepExpectation { place: given.place, ..given.value }).collect()
    }

    fn status(&mut self, node: &Node<'t>) -> Option<Placed<StepStatus>> {
        let text = self.text(node, "the status of a step")?;
        let status = StepStatus::NAMES.iter().find(|(name, _)| *name == &*text).map(|(_, status)| *status);
        if status.is_none() {
            self.error("status", node.span, format!("`{text}` is no status")).hint("write `success`, `failure` or `skipped`");
        }
        Some(Placed { it: status?, place: self.place(node.span) })
    }

    fn calls(&mut self, node: &Node<'t>) -> Option<Placed<Calls>> {
        let items = self.list(node, "`calls`")?;
        let mut calls = Vec::with_capacity(items.len());
        for item in items {
            let words = self.words(item, "a call")?;
            if words.is_empty() {
                self.error("call", item.span, "a call begins with the name of a program");
            }
            calls.push(Placed { it: words, place: self.place(item.span) });
        }
        Some(Placed { it: calls, place: self.place(node.span) })
    }

    /// One expression or several.
    fn conditions(&mut self, node: &Node<'t>) -> Vec<Placed<Arc<str>>> {
        let mut conditions = Vec::new();
        for item in node.as_list().unwrap_or(std::slice::from_ref(node)) {
            let Some(text) = self.text(item, "an expression of `that`") else { continue };
            let template = crate::expression::Template::parse(format!("${{{{ {text} }}}}"), crate::document::Dialect::Functions);
            if let Err(fault) = template {
                self.error("expression", item.span, format!("`{text}` is no expression: {}", fault.message));
            }
            conditions.push(Placed { it: text, place: self.place(item.span) });
        }
        conditions
    }
}
