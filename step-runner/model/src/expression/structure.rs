//! A value in which texts may hold expressions becomes a value.

use super::{ExpressionError, Scope, Template};
use crate::document::ValueTemplate;
use crate::value::{Data, MAXIMUM_DEPTH, Object, Value};
use std::sync::Arc;

impl ValueTemplate {
    /// Deep: every text, and every key. A sensitive key marks the object that holds it.
    /// # Errors
    /// That of the first text that has no value; or values from elsewhere make the whole deeper than [`MAXIMUM_DEPTH`].
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, ExpressionError> {
        let value = self.value(scope)?;
        if matches!(self, Self::Array(_) | Self::Object(_)) && value.depth() > MAXIMUM_DEPTH {
            return Err(ExpressionError::new(format!("the value nests more than {MAXIMUM_DEPTH} levels deep"), 0..0));
        }
        Ok(value)
    }

    fn value(&self, scope: &dyn Scope) -> Result<Value, ExpressionError> {
        match self {
            Self::Scalar(value) => Ok(value.clone()),
            Self::Text(template) => template.evaluate(scope),
            Self::Array(items) => Ok(Value::new(Data::Array(items.iter().map(|item| item.value(scope)).collect::<Result<_, _>>()?))),
            Self::Object(entries) => {
                let mut object = Object::with_capacity(entries.len());
                let mut sensitive = false;
                for (key, value) in entries {
                    let key = key.evaluate_text(scope)?;
                    sensitive |= key.is_sensitive();
                    object.insert(key.as_str().unwrap_or_default().into(), value.value(scope)?);
                }
                Ok(Value::new(Data::Object(Arc::new(object))).marked(sensitive))
            }
        }
    }

    /// Calls `visit` for every text in it, keys included, in the order in which they were written.
    pub fn visit<'a>(&'a self, visit: &mut impl FnMut(&'a Template)) {
        match self {
            Self::Scalar(_) => {}
            Self::Text(template) => visit(template),
            Self::Array(items) => items.iter().for_each(|item| item.visit(visit)),
            Self::Object(entries) => entries.iter().for_each(|(key, value)| {
                visit(key);
                value.visit(visit);
            }),
        }
    }

    /// The paths whose values make the result sensitive: what `non-sensitive input cannot derive value using ...` names.
    pub fn sensitive_paths(&self, scope: &dyn Scope) -> Vec<String> {
        let mut paths = Vec::new();
        self.visit(&mut |template| paths.extend(template.sensitive_paths(scope)));
        paths
    }
}

impl Template {
    /// The paths that the expressions read and that have sensitive values, as they would be written with dots.
    pub fn sensitive_paths(&self, scope: &dyn Scope) -> Vec<String> {
        let mut names = Vec::new();
        for path in self.paths() {
            if path.value(scope).is_some_and(|value| value.holds_sensitive()) {
                names.push(path.parts.join("."));
            }
        }
        names
    }
}

impl super::Path {
    /// What stands there. `None`: nothing.
    pub fn value(&self, scope: &dyn Scope) -> Option<Value> {
        let (root, keys) = self.parts.split_first()?;
        let Some((first, keys)) = keys.split_first() else { return scope.context(root) };
        keys.iter().try_fold(scope.attribute(root, first)?, |value, key| {
            let member = value.as_object()?.get(key)?.clone();
            Some(member.marked(value.is_sensitive()))
        })
    }
}

/// Why a sensitive value is refused where a plain one is wanted, in the original's words (original.md C.6).
/// `reasons` are the paths of [`ValueTemplate::sensitive_paths`].
pub fn sensitive_refusal<T: AsRef<str>>(reasons: &[T]) -> String {
    let reasons: Vec<&str> = reasons.iter().map(AsRef::as_ref).collect();
    format!("non-sensitive input cannot derive value using sensitive value(s) \"{}\"", reasons.join(", "))
}
