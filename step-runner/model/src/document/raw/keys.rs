//! The keys of a map: known ones are taken, unknown ones are reported with what was probably meant.

use super::reader::{Reader, uncounted};
use crate::diagnostic::{Problem, Verdict};
use crate::document::yaml::Node;
use crate::expression::nearest;

/// A map of the language: what it is called in messages, and its keys.
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) keys: &'static [&'static str],
    /// What people write who come from elsewhere, or from an older release, and what it is here (original.md A.6).
    pub(super) synonyms: &'static [(&'static str, &'static str)],
}

/// The entries of a map whose keys are known.
pub(super) struct Fields<'n, 't> {
    entries: Vec<(&'n Node<'t>, &'n Node<'t>)>,
}

impl<'n, 't> Fields<'n, 't> {
    /// A key that is there, also when its value is null.
    pub(super) fn entry(&self, key: &str) -> Option<(&'n Node<'t>, &'n Node<'t>)> {
        self.entries.iter().copied().find(|(name, _)| name.source_text() == Some(key))
    }

    /// The value of a key; null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node<'t>> {
        self.entry(key).map(|(_, value)| value).filter(|value| !value.is_null())
    }
}

impl<'t> Reader<'t> {
    /// The known entries of a map. Unknown ones are reported, and `None` is given for what is no map.
    pub(super) fn fields<'n>(&mut self, node: &'n Node<'t>, shape: &Shape, unknown: Verdict) -> Option<Fields<'n, 't>> {
        let Some(entries) = node.as_map() else {
            let found = node.kind_name();
            let message = if node.is_null() {
                format!("{} is a map, not nothing: expected object, but got null", shape.name)
            } else {
                format!("{} is a map, not {found}: cannot unmarshal {} into object", shape.name, node.yaml_name())
            };
            self.error("not-a-map", node, message);
            return None;
        };
        let mut known = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match key.source_text() {
                Some(name) if shape.keys.contains(&name) => known.push((key, value)),
                Some(name) => self.report_unknown_key(key, name, shape, unknown),
                None => self.error("not-a-text", key, format!("a key is a text, not {}", key.kind_name())),
            }
        }
        Some(Fields { entries: known })
    }

    fn report_unknown_key(&mut self, key: &Node<'t>, name: &str, shape: &Shape, verdict: Verdict) {
        let hint = match shape.synonyms.iter().find(|(synonym, _)| *synonym == name) {
            Some((_, hint)) => (*hint).to_owned(),
            None => match nearest(name, shape.keys.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("{} has the keys {}", shape.name, listed(shape.keys)),
            },
        };
        let place = Some(uncounted(key.span));
        let problem = match verdict {
            Verdict::Warning => Problem::warning("unknown-key", format!("unknown key `{name}` in {} is ignored", shape.name), place),
            Verdict::Error => {
                Problem::error("unknown-key", format!("unknown key `{name}`: field {name} not found in type schema.Spec"), place)
            }
        };
        self.report(problem.with_hint(hint));
    }

    /// Names of inputs, outputs, steps and variables: `^[a-zA-Z_][a-zA-Z0-9_]*$`.
    pub(super) fn expect_identifier(&mut self, node: &Node<'t>, name: &str, what: &str) -> bool {
        if is_identifier(name) {
            return true;
        }
        let message = format!("{what} `{name}` is not a name: additionalProperties '{name}' not allowed");
        self.error_with_hint("not-an-identifier", node, message, "a name has letters, digits and `_`, and begins with no digit");
        false
    }
}

pub(crate) fn is_identifier(name: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_alphabetic() || letter == b'_';
    name.bytes().next().is_some_and(is_letter) && name.bytes().all(|letter| is_letter(letter) || letter.is_ascii_digit())
}

/// `` `a`, `b` and `c` ``
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", first.join(", "))
        }
    }
}
