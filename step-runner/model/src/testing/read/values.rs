//! Values, templates, named values, and files.

use super::fields::Reader;
use crate::document::yaml::{Content, Node, Resolved};
use crate::document::{Dialect, ValueTemplate};
use crate::expression::Template;
use crate::testing::suite::{self, Given, Source, Variable};
use crate::value::{MAXIMUM_DEPTH, Value};
use std::sync::Arc;

impl<'t> Reader<'t> {
    /// A literal value.
    pub(super) fn value(&mut self, node: &Node<'t>) -> Value {
        match node.content() {
            Content::List(items) => Value::array(items.iter().map(|item| self.value(item)).collect::<Vec<_>>()),
            Content::Map(entries) => {
                let entry = |(key, value): &(Node<'t>, Node<'t>)| (key.source_text().unwrap_or_default().to_owned(), self.value(value));
                Value::object(entries.iter().map(entry).collect::<Vec<_>>())
            }
            _ => match node.resolve() {
                Some(Resolved::Boolean(boolean)) => boolean.into(),
                Some(Resolved::Number(number)) if number.is_finite() => number.into(),
                Some(Resolved::Text(text)) => Value::from(&*text),
                Some(Resolved::Number(_) | Resolved::Null) | None => Value::NULL,
            },
        }
    }

    /// A value in which texts may hold expressions.
    pub(super) fn value_template(&mut self, node: &Node<'t>) -> ValueTemplate {
        self.value_template_at(node, 0)
    }

    fn value_template_at(&mut self, node: &Node<'t>, depth: usize) -> ValueTemplate {
        if depth > MAXIMUM_DEPTH {
            self.error("too-deep", node.span, format!("the value nests deeper than {MAXIMUM_DEPTH} levels"));
            return ValueTemplate::Scalar(Value::NULL);
        }
        match node.content() {
            Content::List(items) => ValueTemplate::Array(items.iter().map(|item| self.value_template_at(item, depth + 1)).collect()),
            Content::Map(entries) => {
                let entry = |(key, value): &(Node<'t>, Node<'t>)| {
                    (Template::literal(key.source_text().unwrap_or_default()), self.value_template_at(value, depth + 1))
                };
                ValueTemplate::Object(entries.iter().map(entry).collect())
            }
            _ => match self.value(node) {
                value if value.as_str().is_some() => ValueTemplate::Text(self.parsed(value.as_str().unwrap_or_default(), node)),
                value => ValueTemplate::Scalar(value),
            },
        }
    }

    /// A scalar as text that may hold expressions.
    pub(super) fn template(&mut self, node: &Node<'t>, what: &str) -> Option<Template> {
        let text = self.text(node, what)?;
        Some(self.parsed(&text, node))
    }

    fn parsed(&mut self, text: &str, node: &Node<'t>) -> Template {
        match Template::parse(text, Dialect::Functions) {
            Ok(template) => {
                for path in template.paths() {
                    let context = path.parts.first().map_or("", |part| &**part);
                    if !["work_dir", "func_dir", "step_dir"].contains(&context) {
                        let (message, hint) = match context {
                            "row" => ("there is no row: the case has no `table`".to_owned(), "add `table:` to the case"),
                            _ => {
                                let message = format!("`{context}` has no value in a test");
                                (message, "a test knows `work_dir`, `func_dir` and `row`; a literal `${{` is written `\\${{`")
                            }
                        };
                        self.error("unknown-name", node.span, message).hint(hint);
                    }
                }
                template
            }
            Err(fault) => {
                let mut reported = self.error("expression", node.span, fault.message);
                if let Some(hint) = fault.hint {
                    reported.hint(hint);
                }
                Template::literal(text)
            }
        }
    }

    /// The entries of a map, each read by `read`.
    pub(super) fn given<T>(
        &mut self,
        node: Option<&Node<'t>>,
        what: &str,
        mut read: impl FnMut(&mut Self, &Node<'t>, &str) -> Option<T>,
    ) -> Vec<Given<T>> {
        let Some(entries) = node.and_then(|node| self.map(node, &format!("`{what}`"))) else { return Vec::new() };
        let mut given = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(name) = self.text(key, &format!("a key of `{what}`")) else { continue };
            if let Some(value) = read(self, value, &name) {
                given.push(Given { name, value, place: self.place(key.span) });
            }
        }
        given
    }

    pub(super) fn given_templates(&mut self, node: Option<&Node<'t>>, what: &str) -> Vec<Given<Template>> {
        self.given(node, what, |reader, value, name| reader.template(value, &format!("`{name}`")))
    }

    pub(super) fn given_values(&mut self, node: Option<&Node<'t>>, what: &str) -> Vec<Given<ValueTemplate>> {
        self.given(node, what, |reader, value, _| Some(reader.value_template(value)))
    }

    pub(super) fn variables(&mut self, node: Option<&Node<'t>>) -> Vec<Given<Variable>> {
        self.given(node, "variables", |reader, value, name| {
            if value.as_map().is_none() {
                return Some(Variable { value: reader.template(value, &format!("`{name}`"))?, masked: false, file: false });
            }
            let fields = reader.fields(value, "a variable", &["value", "masked", "file"])?;
            let text = reader.required_text(value, &fields, "value", "what the variable holds")?;
            let flag = |reader: &mut Self, key| fields.get(key).and_then(|node| reader.boolean(node, key)).unwrap_or(false);
            Some(Variable {
                value: reader.parsed(&text, fields.get("value").unwrap_or(value)),
                masked: flag(reader, "masked"),
                file: flag(reader, "file"),
            })
        })
    }

    /// Files by their paths, which stay below the directory they are relative to.
    pub(super) fn files(&mut self, node: Option<&Node<'t>>) -> Vec<Given<Source>> {
        let mut files = self.given(node, "files", |reader, value, _| reader.source(value));
        let mut seen = std::collections::BTreeMap::new();
        files.retain_mut(|file| {
            match suite_path(&file.name) {
                Ok(path) => file.name = path,
                Err(why) => {
                    self.problems.push(crate::diagnostic::Problem::error("path", why, Some(file.place.clone())));
                    return false;
                }
            }
            if let Some(earlier) = seen.insert(Arc::clone(&file.name), file.place.line) {
                let message = format!("`{}` is written twice, the first time in line {earlier}", file.name);
                self.problems.push(crate::diagnostic::Problem::error("same-file", message, Some(file.place.clone())));
            }
            true
        });
        files
    }

    fn source(&mut self, node: &Node<'t>) -> Option<Source> {
        if node.as_map().is_none() {
            return Some(Source { content: suite::Content::Text(self.template(node, "the content of a file")?), executable: false });
        }
        let fields = self.fields(node, "a file", &["text", "from", "executable"])?;
        let executable = fields.get("executable").and_then(|node| self.boolean(node, "`executable`")).unwrap_or(false);
        let content = match (fields.get("text"), fields.get("from")) {
            (Some(text), None) => suite::Content::Text(self.template(text, "`text`")?),
            (None, Some(from)) => suite::Content::From(self.text(from, "`from`")?),
            (None, None) => suite::Content::Text(Template::literal("")),
            (Some(_), Some(from)) => {
                self.error("two-contents", from.span, "a file has either `text` or `from`");
                return None;
            }
        };
        Some(Source { content, executable })
    }
}

/// A path below some directory, without `.` and doubled slashes.
/// # Errors
/// It leads out of the directory, or nowhere.
pub(super) fn suite_path(path: &str) -> Result<Arc<str>, String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(format!("`{path}` leads out of the work directory")),
            part => parts.push(part),
        }
    }
    if path.starts_with('/') {
        return Err(format!("`{path}` is absolute: files of a case lie in its work directory"));
    }
    if parts.is_empty() { Err(format!("`{path}` names no file")) } else { Ok(parts.join("/").into()) }
}
