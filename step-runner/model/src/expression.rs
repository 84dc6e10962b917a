//! Expressions `${{ }}`: the language Moa in both dialects (agent.md C).

use crate::document::Dialect;
use crate::value::Value;
use std::sync::Arc;

/// A text that may hold expressions, parsed once.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    source: Arc<str>,
    dialect: Dialect,
}

/// What the names in an expression stand for. Asked path by path, so that nobody builds a whole context for one key.
pub trait Scope {
    /// The value of a whole context (`env`, `vars`, `inputs`, `steps`, `work_dir`, ...). `None`: there is no such context.
    fn context(&self, name: &str) -> Option<Value>;

    /// One attribute of a context that is an object, without building the object. `None`: there is no such context, or no such key in it.
    fn attribute(&self, context: &str, key: &str) -> Option<Value> {
        self.context(context)?.as_object()?.get(key).cloned()
    }
}

/// The first names of a path that an expression reads: `steps.build.outputs.path`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    pub parts: Vec<Arc<str>>,
    /// Where it starts in the source, in bytes.
    pub offset: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    pub message: String,
    /// Bytes of the template's source that are meant.
    pub span: std::ops::Range<usize>,
    pub hint: Option<String>,
}

impl Template {
    /// # Errors
    /// The first place where the text is not of the language.
    pub fn parse(source: impl Into<Arc<str>>, dialect: Dialect) -> Result<Self, ExpressionError> {
        Ok(Self { source: source.into(), dialect })
    }

    /// A text in which nothing is an expression, whatever it holds.
    pub fn literal(text: impl Into<Arc<str>>) -> Self {
        Self { source: text.into(), dialect: Dialect::Functions }
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text, when no expression is in it.
    pub fn as_literal(&self) -> Option<&str> {
        todo!()
    }

    /// Every path that the expressions read, in order; `a["b"]` counts as `a.b`, and a computed key ends the path.
    pub fn paths(&self) -> Vec<Path> {
        todo!()
    }

    /// A single expression keeps its type; anything else becomes text.
    /// # Errors
    /// As the language says; the message is the original's where it has one.
    pub fn evaluate(&self, _scope: &dyn Scope) -> Result<Value, ExpressionError> {
        todo!()
    }

    /// The same as text: a string value, marked if anything in it was.
    /// # Errors
    /// As for [`Template::evaluate`].
    pub fn evaluate_text(&self, _scope: &dyn Scope) -> Result<Value, ExpressionError> {
        todo!()
    }
}
