//! Values and templates of values.

use super::reader::Reader;
use crate::document::yaml::{Content, Node, Resolved};
use crate::document::{Dialect, ValueTemplate};
use crate::expression::Template;
use crate::value::{MAXIMUM_DEPTH, Object, Value};
use std::sync::Arc;

impl<'t> Reader<'t> {
    /// A literal value: nothing in it is an expression.
    pub(super) fn value(&mut self, node: &Node<'t>) -> Value {
        self.value_at(node, 0)
    }

    fn value_at(&mut self, node: &Node<'t>, depth: usize) -> Value {
        if !self.expect_depth(node, depth) {
            return Value::NULL;
        }
        match node.content() {
            Content::List(items) => Value::array(items.iter().map(|item| self.value_at(item, depth + 1)).collect::<Vec<_>>()),
            Content::Map(entries) => {
                let mut object = Object::with_capacity(entries.len());
                for (key, value) in entries {
                    if let Some(key) = self.value_key(key) {
                        let value = self.value_at(value, depth + 1);
                        object.insert(key, value);
                    }
                }
                Value::object(object)
            }
            _ => self.scalar(node),
        }
    }

    /// A value in which texts may hold expressions.
    pub(super) fn value_template(&mut self, node: &Node<'t>) -> ValueTemplate {
        self.value_template_at(node, 0)
    }

    fn value_template_at(&mut self, node: &Node<'t>, depth: usize) -> ValueTemplate {
        if !self.expect_depth(node, depth) {
            return ValueTemplate::Scalar(Value::NULL);
        }
        match node.content() {
            Content::List(items) => ValueTemplate::Array(items.iter().map(|item| self.value_template_at(item, depth + 1)).collect()),
            Content::Map(entries) => {
                let mut object = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    if let Some(text) = self.value_key(key) {
                        let key = self.key_template(text, key);
                        object.push((key, self.value_template_at(value, depth + 1)));
                    }
                }
                ValueTemplate::Object(object)
            }
            _ => {
                let value = self.scalar(node);
                match value.as_str() {
                    Some(text) => {
                        let text = self.share(text);
                        ValueTemplate::Text(self.parsed(text, node))
                    }
                    None => ValueTemplate::Scalar(value),
                }
            }
        }
    }

    /// A key holds expressions in the functions dialect only.
    pub(super) fn key_template(&mut self, text: Arc<str>, node: &Node<'t>) -> Template {
        match self.dialect {
            Dialect::Functions => self.parsed(text, node),
            Dialect::Steps => Template::literal(text),
        }
    }

    fn value_key(&mut self, key: &Node<'t>) -> Option<Arc<str>> {
        self.string(key, "a key")
    }

    fn scalar(&mut self, node: &Node<'t>) -> Value {
        if let Some(tag) = &node.tag
            && !tag.starts_with("!!")
        {
            let message = format!("the tag `{tag}` is ignored");
            self.warning("unknown-tag", node, message, "remove it; quote the text if it is to begin with `!`");
        }
        match node.resolve() {
            Some(Resolved::Boolean(boolean)) => boolean.into(),
            Some(Resolved::Number(number)) if number.is_finite() => number.into(),
            Some(Resolved::Number(_)) => {
                let message = format!("`{}` is a number that no value can hold", node.source_text().unwrap_or_default());
                self.error_with_hint("not-finite", node, message, "quote it if a text is meant");
                Value::NULL
            }
            Some(Resolved::Text(text)) => Value::from(self.share(&text)),
            Some(Resolved::Null) | None => Value::NULL,
        }
    }

    fn expect_depth(&mut self, node: &Node<'t>, depth: usize) -> bool {
        let is_collection = matches!(node.content(), Content::List(_) | Content::Map(_));
        if is_collection && depth >= MAXIMUM_DEPTH {
            self.error("too-deep", node, format!("the value nests deeper than {MAXIMUM_DEPTH} levels"));
            return false;
        }
        true
    }
}
