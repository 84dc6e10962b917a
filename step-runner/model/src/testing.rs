//! Testing: what `step_test.yml` says about a step (`suite`, read by `read`), and builders of nouns for our own tests, in few words.

pub mod read;
#[cfg(feature = "schema")]
pub mod schema;
pub mod suite;
mod table;
mod words;

pub use words::{in_words, words_of};

use crate::expression::Scope;
use crate::value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A scope that holds its contexts as values.
#[derive(Debug, Clone, Default)]
pub struct Contexts(BTreeMap<Arc<str>, Value>);

impl Contexts {
    /// The same with one more context, or another value for it.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }
}

/// A scope of these contexts, from JSON: `contexts(&json!({"inputs": {"who": "Ann"}}))`.
pub fn contexts(json: &serde_json::Value) -> Contexts {
    let value = Value::from_json(json);
    let entries = value.as_object().into_iter().flatten();
    Contexts(entries.map(|(name, value)| (name.clone(), value.clone())).collect())
}

impl Scope for Contexts {
    fn context(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }

    fn attribute(&self, context: &str, key: &str) -> Option<Value> {
        let object = self.0.get(context)?;
        let member = object.as_object()?.get(key)?.clone();
        Some(member.marked(object.is_sensitive()))
    }
}
