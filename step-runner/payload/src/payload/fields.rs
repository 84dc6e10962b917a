//! Reads fields of a JSON value one by one, and notes every one that is not what it should be.
//!
//! Null is the same as nothing, and unknown fields are passed over: so does GitLab's own runner.

use serde_json::{Map, Value};

/// A field that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// `steps[0].script`; empty for the whole payload.
    pub path: String,
    pub message: String,
}

#[derive(Debug, Default)]
pub(super) struct Findings(pub Vec<Finding>);

/// An object and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'a> {
    pub members: &'a Map<String, Value>,
    pub path: &'a str,
}

impl Findings {
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { path: path.into(), message: message.into() });
    }

    pub fn expected(&mut self, path: impl Into<String>, expected: &str, found: &Value) {
        let path = path.into();
        let message = format!("`{path}` is {}, expected {expected}", kind(found));
        self.add(path, message);
    }
}

impl<'a> Object<'a> {
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// `None` when it is absent or null.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// Empty when it is absent.
    pub fn text(&self, findings: &mut Findings, key: &str) -> String {
        match self.get(key) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                findings.expected(self.path_of(key), "a string", other);
                String::new()
            }
        }
    }

    /// A string, or a whole number as text.
    pub fn text_or_number(&self, findings: &mut Findings, key: &str) -> String {
        match self.get(key) {
            Some(Value::Number(number)) if number.is_i64() || number.is_u64() => number.to_string(),
            _ => self.text(findings, key),
        }
    }

    /// False when it is absent.
    pub fn flag(&self, findings: &mut Findings, key: &str) -> bool {
        self.optional_flag(findings, key).unwrap_or(false)
    }

    pub fn optional_flag(&self, findings: &mut Findings, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(flag) => Some(*flag),
            other => {
                findings.expected(self.path_of(key), "true or false", other);
                None
            }
        }
    }

    /// A whole number. Negative ones are `None`, as if absent: GitLab's runner takes its default then.
    pub fn number(&self, findings: &mut Findings, key: &str) -> Option<u64> {
        match self.get(key)? {
            Value::Number(number) if number.is_u64() => number.as_u64(),
            Value::Number(number) if number.is_i64() => None,
            other => {
                findings.expected(self.path_of(key), "a whole number", other);
                None
            }
        }
    }

    /// Empty when it is absent.
    pub fn texts(&self, findings: &mut Findings, key: &str) -> Vec<String> {
        self.items(findings, key, "an array of strings")
            .iter()
            .enumerate()
            .filter_map(|(index, item)| match item {
                Value::String(text) => Some(text.clone()),
                other => {
                    findings.expected(format!("{}[{index}]", self.path_of(key)), "a string", other);
                    None
                }
            })
            .collect()
    }

    /// Every object of an array; empty when it is absent.
    pub fn objects<T>(&self, findings: &mut Findings, key: &str, mut read: impl FnMut(Object<'_>, &mut Findings) -> Option<T>) -> Vec<T> {
        let mut objects = Vec::new();
        for (index, item) in self.items(findings, key, "an array").iter().enumerate() {
            let path = format!("{}[{index}]", self.path_of(key));
            match item {
                Value::Object(members) => objects.extend(read(Object { members, path: &path }, findings)),
                Value::Null => {}
                other => findings.expected(path.as_str(), "an object", other),
            }
        }
        objects
    }

    pub fn object<T>(&self, findings: &mut Findings, key: &str, read: impl FnOnce(Object<'_>, &mut Findings) -> T) -> Option<T> {
        let path = self.path_of(key);
        match self.get(key)? {
            Value::Object(members) => Some(read(Object { members, path: &path }, findings)),
            other => {
                findings.expected(path.as_str(), "an object", other);
                None
            }
        }
    }

    fn items(&self, findings: &mut Findings, key: &str, expected: &str) -> &'a [Value] {
        match self.get(key) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                findings.expected(self.path_of(key), expected, other);
                &[]
            }
        }
    }
}

/// What a value is, as a person would say it. Never the value itself: it may be a secret.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
