//! Expressions `${{ }}`: the language Moa in both dialects (original.md C).
//!
//! ```text
//! source --lex, parse--> parts: text, and trees of expressions     once, when a document is read
//! parts  --evaluate----> Value                                     as often as needed, against a Scope
//! ```
//!
//! Nothing here panics or recurses deeper than 64 levels, whatever the text. The dialect decides what v0.12 and Moa disagree about:
//! the text of arrays, objects and null, dotted paths, `\${{`, and what the errors say (original.md 0.1).

mod compare;
mod dotted;
mod evaluate;
mod fault;
mod functions;
mod lex;
mod nearest;
mod parse;
mod paths;
mod string;
mod structure;
mod syntax;
mod text;

#[cfg(test)]
mod tests;

pub use nearest::nearest;
pub use structure::sensitive_refusal;

use crate::document::Dialect;
use crate::value::Value;
use evaluate::Evaluation;
use std::ops::Range;
use std::sync::Arc;
use syntax::{Form, Node, Part};

/// A text that may hold expressions, parsed once. Cheap to clone; a text without expressions is nothing but its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    source: Arc<str>,
    /// `None`: the source is the text. One resolved part: a text with escapes and no expression.
    parts: Option<Arc<[Part]>>,
    dialect: Dialect,
}

/// What the names in an expression stand for. Asked path by path, so that nobody builds a whole context for one key.
pub trait Scope {
    /// The value of a whole context (`env`, `vars`, `inputs`, `steps`, `work_dir`, ...). `None`: there is no such context.
    fn context(&self, name: &str) -> Option<Value>;

    /// One attribute of a context that is an object, without building the object. `None`: there is no such context, or no such key in it.
    fn attribute(&self, context: &str, key: &str) -> Option<Value> {
        let object = self.context(context)?;
        let member = object.as_object()?.get(key)?.clone();
        Some(member.marked(object.is_sensitive()))
    }
}

/// The first names of a path that an expression reads: `steps.build.outputs.path`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    pub parts: Vec<Arc<str>>,
    /// Where it starts in the source, in bytes.
    pub offset: usize,
}

/// Why a text is not of the language, or has no value. Never holds a value: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    pub message: String,
    /// Bytes of the template's source that are meant.
    pub span: Range<usize>,
    pub hint: Option<String>,
}

/// A piece of a template, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    /// Without `${{`, `}}` and the white space inside them.
    Expression {
        source: &'a str,
        offset: usize,
    },
}

impl Template {
    /// # Errors
    /// The first place where the text is not of the language.
    pub fn parse(source: impl Into<Arc<str>>, dialect: Dialect) -> Result<Self, ExpressionError> {
        let source = source.into();
        let parts = parse::parse_template(&source, dialect)?.map(Arc::from);
        Ok(Self { source, parts, dialect })
    }

    /// A text in which nothing is an expression, whatever it holds.
    pub fn literal(text: impl Into<Arc<str>>) -> Self {
        Self { source: text.into(), parts: None, dialect: Dialect::Functions }
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The text, when no expression is in it.
    pub fn as_literal(&self) -> Option<&str> {
        match self.parts.as_deref() {
            None => Some(&self.source),
            Some([Part::Resolved(text)]) => Some(text),
            Some(_) => None,
        }
    }

    /// Whether the text is one expression with nothing around it, so that its value keeps its type.
    pub fn is_one_expression(&self) -> bool {
        self.one_expression().is_some()
    }

    /// Text and expressions in the order of the source.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let piece = |part| match part {
            &Part::Text(span) => Piece::Text(span.of(&self.source)),
            Part::Resolved(text) => Piece::Text(text),
            Part::Expression(node) => Piece::Expression { source: node.span.of(&self.source), offset: node.span.start() },
        };
        match &self.parts {
            None => vec![Piece::Text(&self.source)],
            Some(parts) => parts.iter().map(piece).collect(),
        }
    }

    /// Every path that the expressions read, in order; `a["b"]` counts as `a.b`, and a computed key ends the path.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        paths::of_parts(self.parts.as_deref().unwrap_or_default(), &self.source, &mut paths);
        paths
    }

    /// Where `\${{` stands in a text of the steps dialect: a backslash and a value there, a literal `${{` in the functions dialect.
    /// In bytes. Each deserves a warning (original.md 0.1).
    pub fn ambiguous_escapes(&self) -> Vec<usize> {
        let Some(parts) = self.parts.as_deref().filter(|_| self.dialect == Dialect::Steps) else { return Vec::new() };
        let ends = parts.windows(2).filter_map(|pair| match pair {
            [Part::Text(text), Part::Expression(_)] if text.of(&self.source).ends_with('\\') => Some(text.end() - 1),
            _ => None,
        });
        ends.collect()
    }

    /// A single expression keeps its type; anything else becomes text.
    /// # Errors
    /// As the language says; the message is the original's where it has one.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, ExpressionError> {
        match self.one_expression() {
            Some(node) => self.evaluation(scope).whole(node).map_err(|fault| fault.explain(&self.source, self.dialect, scope)),
            None => self.evaluate_text(scope),
        }
    }

    /// The same as text: a string value, marked if anything in it was.
    /// # Errors
    /// As for [`Template::evaluate`].
    pub fn evaluate_text(&self, scope: &dyn Scope) -> Result<Value, ExpressionError> {
        let evaluation = self.evaluation(scope);
        let value = match self.parts.as_deref() {
            None => return Ok(self.source.clone().into()),
            Some([Part::Expression(node)]) if !matches!(node.form, Form::Function(_)) => evaluation.whole_as_text(node),
            Some(parts) => evaluation.text(parts, self.source.len()),
        };
        value.map_err(|fault| fault.explain(&self.source, self.dialect, scope))
    }

    fn evaluation<'a>(&'a self, scope: &'a dyn Scope) -> Evaluation<'a> {
        Evaluation { source: &self.source, dialect: self.dialect, scope }
    }

    /// A block of YAML ends with a line break, which the functions dialect passes over. v0.12 counts it as text.
    fn one_expression(&self) -> Option<&Node> {
        match self.parts.as_deref()? {
            [Part::Expression(node)] => Some(node),
            [Part::Expression(node), Part::Text(end)] if self.dialect == Dialect::Functions => {
                end.of(&self.source).bytes().all(|byte| matches!(byte, b'\n' | b'\r')).then_some(node)
            }
            _ => None,
        }
    }
}

/// The value of an expression by itself, without `${{` and `}}`: for debuggers and tests.
/// # Errors
/// The text is not an expression, or has no value.
pub fn evaluate_expression(text: &str, dialect: Dialect, scope: &dyn Scope) -> Result<Value, ExpressionError> {
    let node = parse::parse_expression(text, dialect)?;
    Evaluation { source: text, dialect, scope }.whole(&node).map_err(|fault| fault.explain(text, dialect, scope))
}

/// Whether `${{ ... }}` stands on one line of the text: a reference that holds it is dynamic (original.md A.5, rule 1).
pub fn holds_expression(text: &str) -> bool {
    text.split('\n').any(|line| line.split_once("${{").is_some_and(|(_, rest)| rest.contains("}}")))
}

impl ExpressionError {
    fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, hint: None }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
