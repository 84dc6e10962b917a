//! What of some definitions the cases reached, told by the results of their runs alone: steps, failures of steps, expressions, outputs.

use crate::outcome::Outcome;
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::diagnostic::Lines;
use step_model::document::yaml;
use step_model::document::{Body, Outputs, StepDocument};
use step_model::plan::{PlannedDocument, Target};
use step_model::reference::Digest;

/// Something in a definition that a case can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub kind: ItemKind,
    /// Of a step or output its name, of an expression its text.
    pub name: Arc<str>,
    /// Of the definition, counted from 1.
    pub line: u32,
    /// How often a case reached it.
    pub hits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemKind {
    /// The step ran.
    Step,
    /// The step failed, so what happens then was tried.
    Failure,
    /// The run came past.
    Expression,
    /// It was given by a run that ended well.
    Output,
}

impl ItemKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Failure => "failure",
            Self::Expression => "expression",
            Self::Output => "output",
        }
    }
}

/// A definition with its items, in the order of the text.
#[derive(Debug, Clone)]
pub struct Covered {
    /// Directory and file.
    pub path: String,
    pub text: String,
    pub items: Vec<Item>,
}

/// Gathers over cases.
#[derive(Debug, Default)]
pub struct Coverage {
    definitions: BTreeMap<Digest, Definition>,
}

#[derive(Debug)]
struct Definition {
    path: String,
    document: Arc<StepDocument>,
    ran: u64,
    ended_well: u64,
    /// Of each step: how often it ran, and how often it failed.
    steps: Vec<(u64, u64)>,
    outputs: BTreeMap<Arc<str>, u64>,
}

impl Coverage {
    /// A definition and all that it refers to count, also what no case reaches. `digest`: of the tested definition.
    pub fn know(&mut self, planned: &PlannedDocument, digest: Digest, file: &str) {
        let mut open = vec![(planned, Some(digest), file)];
        while let Some((planned, digest, file)) = open.pop() {
            if let Some(digest) = digest {
                self.definitions.entry(digest).or_insert_with(|| Definition {
                    path: format!("{}/{file}", planned.dir),
                    document: Arc::clone(&planned.document),
                    ran: 0,
                    ended_well: 0,
                    steps: vec![(0, 0); steps_of(&planned.document).len()],
                    outputs: BTreeMap::new(),
                });
            }
            for target in &planned.targets {
                match target {
                    Target::Document(inner) | Target::Hole { seen: Some(inner) } => open.push((inner, inner.digest, &inner.file)),
                    Target::Script | Target::Hole { seen: None } => {}
                }
            }
        }
    }

    /// Adds what a case reached.
    pub fn add(&mut self, outcome: &Outcome) {
        for step in &outcome.steps {
            let Some(definition) = step.digest.and_then(|digest| self.definitions.get_mut(&digest)) else { continue };
            definition.ran += 1;
            if step.succeeded {
                definition.ended_well += 1;
                for (name, _) in &step.outputs {
                    *definition.outputs.entry(Arc::clone(name)).or_default() += 1;
                }
            }
            let document = Arc::clone(&definition.document);
            for inner in outcome.steps.iter().filter(|inner| inner.path.len() == step.path.len() + 1 && inner.path.starts_with(&step.path))
            {
                let name = inner.path.last();
                let Some(index) = steps_of(&document).iter().position(|known| Some(&known.name) == name) else { continue };
                definition.steps[index].0 += 1;
                definition.steps[index].1 += u64::from(!inner.succeeded);
            }
        }
    }

    /// Every definition, in order of path. `text_of` reads a file.
    pub fn finish(self, mut text_of: impl FnMut(&str) -> Option<String>) -> Vec<Covered> {
        let mut covered: Vec<Covered> = self
            .definitions
            .into_values()
            .filter_map(|definition| {
                let text = text_of(&definition.path)?;
                let items = definition.items(&text);
                Some(Covered { path: definition.path, text, items })
            })
            .collect();
        covered.sort_by(|left, right| left.path.cmp(&right.path));
        covered
    }
}

fn steps_of(document: &StepDocument) -> &[Arc<step_model::document::Step>] {
    match &document.definition.body {
        Body::Sequence(sequence) => &sequence.steps,
        Body::Exec(_) => &[],
    }
}

impl Definition {
    fn items(&self, text: &str) -> Vec<Item> {
        let lines = Lines::of(text);
        let mut items = Vec::new();
        for (step, (ran, failed)) in steps_of(&self.document).iter().zip(&self.steps) {
            let line = step.place.as_ref().map_or(1, |place| place.line);
            items.push(Item { kind: ItemKind::Step, name: Arc::clone(&step.name), line, hits: *ran });
            items.push(Item { kind: ItemKind::Failure, name: Arc::clone(&step.name), line, hits: *failed });
        }
        let mut documents = yaml::parse(text, 2, &lines).documents.into_iter().flatten();
        let (first, second) = (documents.next(), documents.next());
        if let Outputs::Declared(outputs) = &self.document.spec.outputs {
            let written = first.as_ref().and_then(|first| first.get("spec")?.get("outputs")?.as_map());
            for (name, _) in outputs {
                let key = written.and_then(|entries| entries.iter().find(|(key, _)| key.source_text() == Some(&**name)));
                let line = key.map_or(1, |(key, _)| lines.line(key.span.range().start));
                let hits = self.outputs.get(name).copied().unwrap_or_default();
                items.push(Item { kind: ItemKind::Output, name: Arc::clone(name), line, hits });
            }
        }
        if let Some(second) = second {
            let outputs = second.get("outputs").map(|outputs| outputs.span.range());
            for (at, source) in expressions(text, second.span.range().start) {
                let step =
                    steps_of(&self.document).iter().position(|step| step.place.as_ref().is_some_and(|place| place.span.contains(&at)));
                let hits = match (step, &outputs) {
                    (Some(step), _) => self.steps[step].0,
                    (None, Some(outputs)) if outputs.contains(&at) => self.ended_well,
                    (None, _) => self.ran,
                };
                items.push(Item { kind: ItemKind::Expression, name: source.into(), line: lines.line(at), hits });
            }
        }
        items.sort_by_key(|item| (item.line, item.kind));
        items
    }
}

/// Every `${{ }}` from a byte on that stands in no comment: where, and its text.
fn expressions(text: &str, from: usize) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = from;
    while let Some(start) = text.get(at..).and_then(|rest| rest.find("${{")).map(|offset| at + offset) {
        let end = text[start..].find("}}").map_or(text.len(), |length| start + length);
        let line = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let is_comment = text[line..start].trim_start().starts_with('#');
        if !is_comment && !text[..start].ends_with('\\') {
            found.push((start, text[start + 3..end].trim()));
        }
        at = (end + 2).min(text.len());
    }
    found
}

impl Covered {
    /// Items that were reached, and all.
    pub fn counts(&self) -> (usize, usize) {
        (self.items.iter().filter(|item| item.hits > 0).count(), self.items.len())
    }

    /// The fewest hits among the items of each line that has one.
    pub fn lines(&self) -> BTreeMap<u32, u64> {
        let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
        for item in self.items.iter().filter(|item| item.kind != ItemKind::Failure) {
            let hits = lines.entry(item.line).or_insert(item.hits);
            *hits = (*hits).min(item.hits);
        }
        lines
    }
}
