//! YAML as a tree that keeps what was written: the text of every scalar, its style, and the place of every node.
//!
//! The rules are those of Go's yaml.v3, since files of the original must read the same: `0777` is 511, `1_000` is 1000, and where a text is
//! wanted a scalar is taken as its source text. All faults are collected: a document that cannot be read does not hide the next one.

mod build;
mod scalar;

pub use scalar::{Resolved, boolean, resolve};

use crate::diagnostic::{Lines, Place, Problem, locate};
use build::Builder;
use granit_parser::{ErrorKind, Event, Parser, ScanError};
use std::borrow::Cow;
use std::rc::Rc;

/// Nodes nest at most this deep in a text: a definition needs ten levels, and values may have 32 more below it, twice when a handover is in a handover.
pub const MAXIMUM_NESTING: usize = 128;

/// Nodes in one text, those that an alias repeats included: ten times what the largest text that is read can sensibly hold.
pub const MAXIMUM_NODES: u32 = 500_000;

/// Bytes of the text that are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'t> {
    pub content: Content<'t>,
    pub span: Span,
    /// An explicit tag: `!!str`, `!reference`.
    pub tag: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content<'t> {
    Scalar {
        text: Cow<'t, str>,
        /// Without quotes: it may be something else than a text.
        plain: bool,
    },
    List(Vec<Node<'t>>),
    /// Every key once, merge keys (`<<`) applied.
    Map(Vec<(Node<'t>, Node<'t>)>),
    /// What an alias stands for. [`Node::content`] looks through it.
    Shared(Rc<Node<'t>>),
}

/// The documents of a text.
#[derive(Debug)]
pub struct Stream<'t> {
    /// `None` for a document that cannot be read: its problem is listed.
    pub documents: Vec<Option<Node<'t>>>,
    /// Where a further document begins that was not read.
    pub rest: Option<Span>,
    pub problems: Vec<Problem>,
}

/// Reads at most `documents` documents.
pub fn parse<'t>(text: &'t str, documents: usize, lines: &Lines) -> Stream<'t> {
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    // a key of JSON may be longer than YAML allows
    options.simple_key_max_lookahead = 1 << 16;
    options.flow_nesting_limit = MAXIMUM_NESTING;
    options.block_nesting_limit = MAXIMUM_NESTING;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut stream = Stream { documents: Vec::new(), rest: None, problems: Vec::new() };
    let mut builder = Builder::new(text, lines);
    while let Some(event) = parser.next_event() {
        let fault = match event {
            Ok((Event::DocumentStart(..), span)) if stream.documents.len() == documents => {
                stream.rest = Some(build::span_of(&span));
                break;
            }
            Ok((event, span)) => match builder.take(event, &span) {
                Ok(None) => continue,
                Ok(Some(root)) => {
                    stream.documents.push(Some(root));
                    continue;
                }
                Err(problem) => problem,
            },
            Err(error) => syntax_problem(text, lines, &error),
        };
        builder.abandon();
        stream.documents.push(None);
        stream.problems.push(fault);
        if !matches!(parser.proceed_next_document(), Ok(true)) {
            break;
        }
    }
    stream.problems.extend(builder.into_problems());
    locate(&mut stream.problems, text, lines);
    stream
}

impl<'t> Node<'t> {
    /// What it holds; an alias holds what it stands for.
    pub fn content(&self) -> &Content<'t> {
        match &self.content {
            Content::Shared(node) => node.content(),
            content => content,
        }
    }

    /// Without quotes and tag: `null`, `~` or nothing at all.
    pub fn is_null(&self) -> bool {
        matches!(self.resolve(), Some(Resolved::Null))
    }

    /// The text of a scalar as it was written, whatever it looks like; nothing for null.
    pub fn source_text(&self) -> Option<&str> {
        match self.content() {
            Content::Scalar { .. } if self.is_null() => Some(""),
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// What a scalar is when no type is declared for it; `None` for a list or map.
    pub fn resolve(&self) -> Option<Resolved<'_>> {
        match &self.content {
            Content::Shared(node) => node.resolve(),
            Content::Scalar { text, plain } => Some(scalar::resolve_tagged(text, *plain, self.tag.as_deref())),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Node<'t>]> {
        match self.content() {
            Content::List(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a list, taken out of it: whoever is done with one can drop it before the next.
    pub fn take_items(&mut self) -> Option<Vec<Node<'t>>> {
        match &mut self.content {
            Content::List(items) => Some(std::mem::take(items)),
            Content::Shared(node) => node.as_list().map(<[_]>::to_vec),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&[(Node<'t>, Node<'t>)]> {
        match self.content() {
            Content::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a key of a map.
    pub fn get(&self, key: &str) -> Option<&Node<'t>> {
        self.as_map()?.iter().find(|(name, _)| name.source_text() == Some(key)).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node<'t>> {
        match &mut self.content {
            Content::Map(entries) => entries.iter_mut().find(|(name, _)| name.source_text() == Some(key)).map(|(_, value)| value),
            _ => None,
        }
    }

    /// What it is, for messages: `a list`, `a text`.
    pub fn kind_name(&self) -> &'static str {
        match self.content() {
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
            _ => match self.resolve() {
                Some(Resolved::Null) => "nothing",
                Some(Resolved::Boolean(_)) => "a boolean",
                Some(Resolved::Number(_)) => "a number",
                _ => "a text",
            },
        }
    }

    /// Its name in the messages of Go's yaml.v3: `!!map`, ``!!str `x` ``.
    pub fn yaml_name(&self) -> String {
        let tag = match self.content() {
            Content::List(_) => return "!!seq".into(),
            Content::Map(_) => return "!!map".into(),
            _ => match self.resolve() {
                Some(Resolved::Null) => return "!!null".into(),
                Some(Resolved::Boolean(_)) => "!!bool",
                Some(Resolved::Number(number)) if number.fract() == 0.0 => "!!int",
                Some(Resolved::Number(_)) => "!!float",
                _ => "!!str",
            },
        };
        let text = self.source_text().unwrap_or_default();
        // yaml.v3 cuts longer texts
        let shown: String = if text.chars().count() > 10 { text.chars().take(7).chain("...".chars()).collect() } else { text.into() };
        format!("{tag} `{shown}`")
    }
}

impl Span {
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

fn syntax_problem(text: &str, lines: &Lines, error: &ScanError) -> Problem {
    let offset = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
    let place = Some(point(text, lines, offset));
    if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
        return Problem::error("too-deep", format!("the text nests deeper than {MAXIMUM_NESTING} levels"), place);
    }
    let problem = Problem::error("yaml-syntax", format!("not YAML: {}", error.kind()), place);
    match error.kind() {
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            problem.with_hint("indent with spaces")
        }
        ErrorKind::UnknownAnchor => problem.with_hint("quote the text if it is to begin with `*`"),
        ErrorKind::UnexpectedCharacter { character: '@' | '`' } => problem.with_hint("quote the text"),
        ErrorKind::MappingValueNotAllowed => problem.with_hint("quote a text that holds `: `"),
        _ => problem,
    }
}

fn point(text: &str, lines: &Lines, offset: usize) -> Place {
    let mut end = (offset + 1).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let mut start = offset;
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    // not over the end of a line
    if text[start..end].contains('\n') {
        end = start;
    }
    lines.place(text, start..end)
}

#[cfg(test)]
mod tests;
