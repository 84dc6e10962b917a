//! From events to a tree: without recursion, with a bill for what aliases repeat.

use super::{Content, MAXIMUM_NESTING, MAXIMUM_NODES, Node, Span};
use crate::diagnostic::{Lines, Place, Problem};
use crate::document::raw::MOST_PROBLEMS;
use granit_parser::{Event, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Holds what is open while events come in.
pub(super) struct Builder<'a, 't> {
    text: &'t str,
    lines: &'a Lines,
    open: Vec<Frame<'t>>,
    anchors: BTreeMap<usize, Measured<Rc<Node<'t>>>>,
    /// Nodes of the whole text so far, repetitions included.
    nodes: u32,
    problems: Vec<Problem>,
}

/// A list or map that has begun and not ended.
struct Frame<'t> {
    collection: Collection<'t>,
    start: Span,
    /// Of the last member: a block has no end of its own, only comments and the next key behind it.
    end: u32,
    anchor: usize,
    tag: Option<Box<str>>,
    nodes: u32,
    depth: usize,
}

enum Collection<'t> {
    List(Vec<Node<'t>>),
    Map { entries: Vec<(Node<'t>, Node<'t>)>, key: Option<Node<'t>> },
}

/// Something with the number of nodes in it and how deep it is.
struct Measured<T> {
    value: T,
    nodes: u32,
    depth: usize,
}

impl<'a, 't> Builder<'a, 't> {
    pub(super) fn new(text: &'t str, lines: &'a Lines) -> Self {
        Self { text, lines, open: Vec::new(), anchors: BTreeMap::new(), nodes: 0, problems: Vec::new() }
    }

    /// Takes one event; gives the root when a document is complete.
    pub(super) fn take(&mut self, event: Event<'t>, span: &granit_parser::Span) -> Result<Option<Node<'t>>, Problem> {
        let at = span_of(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.bill(1, at)?;
                let content = Content::Scalar { text, plain: style == ScalarStyle::Plain };
                self.add(Measured { value: Node { content, span: at, tag: name_of(tag) }, nodes: 1, depth: 0 }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => self.begin(Collection::List(Vec::new()), at, anchor, name_of(tag)),
            Event::MappingStart(_, anchor, tag) => self.begin(Collection::Map { entries: Vec::new(), key: None }, at, anchor, name_of(tag)),
            Event::SequenceEnd | Event::MappingEnd => self.end(at),
            Event::Alias(anchor) => self.alias(anchor, at),
            _ => Ok(None),
        }
    }

    /// Forgets what is open: the document cannot be read.
    pub(super) fn abandon(&mut self) {
        self.open.clear();
    }

    /// What is wrong with documents that could be read.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    fn begin(
        &mut self,
        collection: Collection<'t>,
        start: Span,
        anchor: usize,
        tag: Option<Box<str>>,
    ) -> Result<Option<Node<'t>>, Problem> {
        self.bill(1, start)?;
        if self.open.len() >= MAXIMUM_NESTING {
            return Err(self.too_deep(start));
        }
        self.open.push(Frame { collection, start, end: start.start, anchor, tag, nodes: 1, depth: 0 });
        Ok(None)
    }

    fn end(&mut self, at: Span) -> Result<Option<Node<'t>>, Problem> {
        let Some(frame) = self.open.pop() else { return Ok(None) };
        let is_flow = self.text[..at.end as usize].ends_with([']', '}']) && at.end > at.start;
        let span = Span { start: frame.start.start, end: if is_flow { at.end } else { trimmed(self.text, frame.start.start, frame.end) } };
        let content = match frame.collection {
            Collection::List(mut items) => {
                items.shrink_to_fit();
                Content::List(items)
            }
            Collection::Map { entries, .. } => {
                let mut entries = self.settle(entries);
                entries.shrink_to_fit();
                Content::Map(entries)
            }
        };
        let node = Node { content, span, tag: frame.tag };
        self.add(Measured { value: node, nodes: frame.nodes, depth: frame.depth + 1 }, frame.anchor)
    }

    fn alias(&mut self, anchor: usize, at: Span) -> Result<Option<Node<'t>>, Problem> {
        let Some(target) = self.anchors.get(&anchor) else {
            // The collection that it stands in is still open: it would hold itself.
            return Err(Problem::error(
                "alias-in-itself",
                "the alias stands for the value that holds it",
                Some(self.lines.place(self.text, at.range())),
            ));
        };
        let node = Node { content: Content::Shared(Rc::clone(&target.value)), span: at, tag: None };
        let (nodes, depth) = (target.nodes, target.depth);
        self.bill(nodes, at)?;
        self.add(Measured { value: node, nodes, depth }, 0)
    }

    /// Puts a complete node where it belongs.
    fn add(&mut self, measured: Measured<Node<'t>>, anchor: usize) -> Result<Option<Node<'t>>, Problem> {
        let Measured { value: mut node, nodes, depth } = measured;
        let span = node.span;
        if self.open.len() + depth > MAXIMUM_NESTING {
            return Err(self.too_deep(span));
        }
        if anchor != 0 {
            let shared = Rc::new(node);
            self.anchors.insert(anchor, Measured { value: Rc::clone(&shared), nodes, depth });
            node = Node { content: Content::Shared(shared), span, tag: None };
        }
        let Some(frame) = self.open.last_mut() else {
            self.anchors.clear();
            return Ok(Some(node));
        };
        frame.nodes = frame.nodes.saturating_add(nodes);
        frame.depth = frame.depth.max(depth);
        frame.end = frame.end.max(span.end);
        match &mut frame.collection {
            Collection::List(items) => items.push(node),
            Collection::Map { entries, key } => match key.take() {
                None => *key = Some(node),
                Some(key) => entries.push((key, node)),
            },
        }
        Ok(None)
    }

    /// Every node counts, and an alias counts for all that it repeats: a few lines of aliases can stand for billions of values.
    fn bill(&mut self, nodes: u32, at: Span) -> Result<(), Problem> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes <= MAXIMUM_NODES {
            return Ok(());
        }
        let message = format!("the text holds more than {MAXIMUM_NODES} values, counting what its aliases repeat");
        Err(Problem::error("too-many-values", message, Some(self.lines.place(self.text, at.range()))))
    }

    /// Reports keys that occur twice, and applies merge keys.
    fn settle(&mut self, mut entries: Vec<(Node<'t>, Node<'t>)>) -> Vec<(Node<'t>, Node<'t>)> {
        let repeated = repeated(&entries);
        for &(second, first) in &repeated {
            let name = entries[second].0.source_text().unwrap_or_default();
            let line = self.lines.line(entries[first].0.span.range().start);
            let message = format!("mapping key \"{name}\" already defined at line {line}");
            self.report("duplicate-key", entries[second].0.span, message, Some("remove one of the two"));
        }
        if !repeated.is_empty() {
            let repeated: BTreeSet<usize> = repeated.into_iter().map(|(second, _)| second).collect();
            let mut at = 0..;
            entries.retain(|_| !at.next().is_some_and(|at| repeated.contains(&at)));
        }
        while let Some(position) = entries.iter().position(|(key, _)| is_merge_key(key)) {
            let (_, source) = entries.remove(position);
            self.merge(&source, &mut entries);
        }
        entries
    }

    /// `<<: *defaults`, or a list of such: keys that are there already stay.
    fn merge(&mut self, value: &Node<'t>, entries: &mut Vec<(Node<'t>, Node<'t>)>) {
        for source in value.as_list().unwrap_or(std::slice::from_ref(value)) {
            let Some(members) = source.as_map() else {
                let message = "map merge requires map or sequence of maps as the value";
                self.report("merge-of-no-map", source.span, message.to_owned(), None);
                continue;
            };
            let known: BTreeSet<String> = entries.iter().filter_map(|(key, _)| key.source_text().map(str::to_owned)).collect();
            entries.extend(members.iter().filter(|(key, _)| key.source_text().is_some_and(|name| !known.contains(name))).cloned());
        }
    }

    fn report(&mut self, code: &'static str, at: Span, message: String, hint: Option<&str>) {
        if self.problems.len() >= MOST_PROBLEMS {
            return;
        }
        let problem = Problem::error(code, message, Some(Place::uncounted(at.range())));
        self.problems.push(Problem { hint: hint.map(str::to_owned), ..problem });
    }

    fn too_deep(&self, at: Span) -> Problem {
        let message = format!("the text nests deeper than {MAXIMUM_NESTING} levels");
        Problem::error("too-deep", message, Some(self.lines.place(self.text, at.range())))
    }
}

/// The positions of keys that occurred before, each with the first one's, in order.
fn repeated(entries: &[(Node<'_>, Node<'_>)]) -> Vec<(usize, usize)> {
    let names =
        entries.iter().enumerate().filter(|(_, (key, _))| !is_merge_key(key)).filter_map(|(at, (key, _))| Some((at, key.source_text()?)));
    if entries.len() <= 16 {
        let names: Vec<_> = names.collect();
        let first = |&(at, name): &(usize, &str)| names.iter().find(|(_, other)| *other == name).map(|(first, _)| (at, *first));
        return names.iter().filter_map(first).filter(|(at, first)| at != first).collect();
    }
    let mut seen = BTreeMap::new();
    names.map(|(at, name)| (at, *seen.entry(name).or_insert(at))).filter(|(at, first)| at != first).collect()
}

fn is_merge_key(key: &Node<'_>) -> bool {
    matches!(&key.content, Content::Scalar { text, plain: true } if text == "<<")
}

pub(super) fn span_of(span: &granit_parser::Span) -> Span {
    let offset = |marker: &granit_parser::Marker| u32::try_from(marker.byte_offset().unwrap_or(0)).unwrap_or(u32::MAX);
    Span { start: offset(&span.start), end: offset(&span.end) }
}

/// The end of a block, without the blank lines that a block text may end with.
fn trimmed(text: &str, start: u32, end: u32) -> u32 {
    let (from, to) = (start as usize, (end as usize).min(text.len()));
    let Some(slice) = text.get(from..to) else { return end.max(start) };
    u32::try_from(from + slice.trim_end().len()).unwrap_or(end)
}

fn name_of(tag: Option<Cow<'_, Tag>>) -> Option<Box<str>> {
    let tag = tag?;
    let name = match tag.core_suffix() {
        Some(suffix) => format!("!!{suffix}"),
        None => tag.original(),
    };
    Some(name.into())
}
