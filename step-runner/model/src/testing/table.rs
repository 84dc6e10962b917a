//! Rows of a table: a case in which `${{ row.NAME }}` stands for what the row says.

use crate::document::Dialect;
use crate::document::yaml::{Content, Node, Span};
use crate::expression::{Piece, Template, evaluate_expression};
use crate::testing::Contexts;
use crate::value::{Data, Value};
use std::borrow::Cow;

/// Why an expression of a row has no value, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowFault {
    pub span: Span,
    pub message: String,
    pub hint: Option<String>,
}

/// The case of one row: expressions that read `row` are replaced by their values, all others stay for later. A text that is one such
/// expression becomes the value.
pub(super) fn with_row<'t>(node: &Node<'t>, row: &Value, faults: &mut Vec<RowFault>) -> Node<'t> {
    let scope = Contexts::default().with("row", row.clone());
    substituted(node, &scope, faults)
}

fn substituted<'t>(node: &Node<'t>, scope: &Contexts, faults: &mut Vec<RowFault>) -> Node<'t> {
    let content = match node.content() {
        Content::List(items) => Content::List(items.iter().map(|item| substituted(item, scope, faults)).collect()),
        Content::Map(entries) => {
            let entry = |(key, value): &(Node<'t>, Node<'t>)| (substituted(key, scope, faults), value.clone());
            let mut replaced: Vec<_> = entries.iter().map(entry).collect();
            for (_, value) in &mut replaced {
                *value = substituted(value, scope, faults);
            }
            Content::Map(replaced)
        }
        Content::Scalar { text, .. } if text.contains("${{") => match value_of(text, scope) {
            Ok(Some(value)) => return node_of(&value, node.span),
            Ok(None) => node.content().clone(),
            Err((message, hint)) => {
                faults.push(RowFault { span: node.span, message, hint });
                // Nobody needs to hear of it twice.
                return node_of(&Value::from(""), node.span);
            }
        },
        content => content.clone(),
    };
    Node { content, span: node.span, tag: node.tag.clone() }
}

/// `None`: no expression of the text reads the row, or the text is not of the language; whoever reads it next says so.
fn value_of(text: &str, scope: &Contexts) -> Result<Option<Value>, (String, Option<String>)> {
    let Ok(template) = Template::parse(text, Dialect::Functions) else { return Ok(None) };
    if !template.paths().iter().any(|path| path.parts.first().is_some_and(|first| **first == *"row")) {
        return Ok(None);
    }
    let reads_row = |source: &str| {
        let alone = Template::parse(format!("${{{{ {source} }}}}"), Dialect::Functions);
        alone.is_ok_and(|alone| alone.paths().iter().any(|path| path.parts.first().is_some_and(|first| **first == *"row")))
    };
    let fault = |error: crate::expression::ExpressionError| (error.message, error.hint);
    if template.is_one_expression() {
        return template.evaluate(scope).map(Some).map_err(fault);
    }
    let mut replaced = String::new();
    for piece in template.pieces() {
        match piece {
            Piece::Text(text) => replaced.push_str(text),
            Piece::Expression { source, .. } if reads_row(source) => {
                let value = evaluate_expression(source, Dialect::Functions, scope).map_err(fault)?;
                match value.as_str() {
                    Some(text) => replaced.push_str(text),
                    None => replaced.push_str(&value.to_json().to_string()),
                }
            }
            Piece::Expression { source, .. } => replaced.push_str(&format!("${{{{ {source} }}}}")),
        }
    }
    Ok(Some(replaced.into()))
}

fn node_of<'t>(value: &Value, span: Span) -> Node<'t> {
    let content = match value.data() {
        Data::Array(items) => Content::List(items.iter().map(|item| node_of(item, span)).collect()),
        Data::Object(object) => {
            let entry = |(key, value): (&std::sync::Arc<str>, &Value)| (node_of(&Value::string(key.clone()), span), node_of(value, span));
            Content::Map(object.iter().map(entry).collect())
        }
        Data::String(text) => Content::Scalar { text: Cow::Owned(text.to_string()), plain: false },
        _ => Content::Scalar { text: Cow::Owned(value.to_json().to_string()), plain: true },
    };
    Node { content, span, tag: None }
}
