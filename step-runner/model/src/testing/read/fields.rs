//! Maps with known keys, lists, texts and numbers, with a problem where something else stands.

use crate::diagnostic::{Lines, Problem};
use crate::document::yaml::{Node, Resolved, Span};
use crate::expression::nearest;
use std::sync::Arc;

pub(in crate::testing) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) lines: &'t Lines,
    pub(super) problems: Vec<Problem>,
}

/// The known entries of a map.
pub(super) struct Fields<'n, 't> {
    entries: Vec<(&'n str, &'n Node<'t>)>,
}

/// A problem that was just reported.
pub(super) struct Reported<'r>(&'r mut Problem);

impl Reported<'_> {
    pub(super) fn hint(&mut self, hint: impl Into<String>) {
        self.0.hint = Some(hint.into());
    }
}

impl<'n, 't> Fields<'n, 't> {
    /// The value of a key; null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node<'t>> {
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, value)| *value).filter(|value| !value.is_null())
    }
}

impl<'t> Reader<'t> {
    pub(super) fn error(&mut self, code: &'static str, at: Span, message: impl Into<String>) -> Reported<'_> {
        let place = self.place(at);
        Reported(self.problems.push_mut(Problem::error(code, message, Some(place))))
    }

    /// The entries of a map with these keys. What has another key is reported and left out.
    pub(super) fn fields<'n>(&mut self, node: &'n Node<'t>, what: &str, keys: &[&str]) -> Option<Fields<'n, 't>> {
        let entries = self.map(node, what)?;
        let mut known = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match key.source_text() {
                Some(name) if keys.contains(&name) => known.push((name, value)),
                name => {
                    let name = name.unwrap_or_default();
                    let hint = match nearest(name, keys.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("{what} has the keys `{}`", keys.join("`, `")),
                    };
                    self.error("unknown-key", key.span, format!("unknown key `{name}` in {what}")).hint(hint);
                }
            }
        }
        Some(Fields { entries: known })
    }

    pub(super) fn map<'n>(&mut self, node: &'n Node<'t>, what: &str) -> Option<&'n [(Node<'t>, Node<'t>)]> {
        let map = node.as_map();
        if map.is_none() {
            self.error("not-a-map", node.span, format!("{what} is a map, not {}", node.kind_name()));
        }
        map
    }

    pub(super) fn list<'n>(&mut self, node: &'n Node<'t>, what: &str) -> Option<&'n [Node<'t>]> {
        let list = node.as_list();
        if list.is_none() {
            self.error("not-a-list", node.span, format!("{what} is a list, not {}", node.kind_name()));
        }
        list
    }

    /// A scalar as text, whatever it looks like.
    pub(super) fn text(&mut self, node: &Node<'t>, what: &str) -> Option<Arc<str>> {
        let text = node.source_text().map(Arc::from);
        if text.is_none() {
            self.error("not-a-text", node.span, format!("{what} is a text, not {}", node.kind_name()));
        }
        text
    }

    pub(super) fn required_text(&mut self, node: &Node<'t>, fields: &Fields<'_, 't>, key: &str, hint: &str) -> Option<Arc<str>> {
        match fields.get(key) {
            Some(node) => self.text(node, &format!("`{key}`")),
            None => {
                self.error("missing-key", first_line(self.text, node.span), format!("`{key}` is missing")).hint(format!("`{key}`: {hint}"));
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, node: &Node<'t>, what: &str) -> Option<bool> {
        match node.resolve() {
            Some(Resolved::Boolean(boolean)) => Some(boolean),
            _ => {
                self.error("not-a-boolean", node.span, format!("{what} is `true` or `false`, not {}", node.kind_name()));
                None
            }
        }
    }

    /// A whole number within these limits.
    pub(super) fn whole(&mut self, node: &Node<'t>, what: &str, least: i32, most: i32) -> Option<i32> {
        if let Some(Resolved::Number(number)) = node.resolve()
            && number.fract() == 0.0
            && (f64::from(least)..=f64::from(most)).contains(&number)
        {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within the limits, checked in the line above")]
            return Some(number as i32);
        }
        let shown = node.source_text().map_or_else(|| node.kind_name().to_owned(), |text| format!("`{text}`"));
        self.error("not-a-number", node.span, format!("{what} is a whole number from {least} to {most}, not {shown}"));
        None
    }
}

/// The first line of something long, so that not the whole of it is underlined.
pub(super) fn first_line(text: &str, span: Span) -> Span {
    let long = text.get(span.range()).unwrap_or_default();
    let length = long.find('\n').unwrap_or(long.len());
    Span { start: span.start, end: span.start + u32::try_from(length).unwrap_or(0) }
}
