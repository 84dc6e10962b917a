//! The dotted path of v0.12 (original.md C.1): text between `${{` and `}}`, trimmed and split at dots, each part one lookup.
//!
//! In the steps dialect a path may hold parts that mean something else in Moa: `inputs.o.my-key`, `inputs.o.0`, `inputs.o.two words`.
//! It is read as a path first, and as Moa when the path does not resolve (original.md 0.1).

use super::ExpressionError;
use super::lex::is_word;
use super::syntax::{Form, Node, Span};
use std::borrow::Cow;

pub(super) struct Dotted {
    /// Without the white space around it.
    span: Span,
    /// Where the closing begins.
    pub(super) end: usize,
}

/// The text up to `close`, when it can be a path: several parts, or a stray dot, of characters that keys are likely to have.
pub(super) fn find(source: &str, start: usize, close: &str) -> Option<Dotted> {
    let rest = &source[start..];
    let length = rest.find(|character| !belongs_to_path(character)).unwrap_or(rest.len());
    if !rest[length..].starts_with(close) || (close.is_empty() && length < rest.len()) {
        return None;
    }
    let text = rest[..length].trim();
    if !text.is_empty() && !text.contains('.') {
        return None;
    }
    let first = start + (rest[..length].len() - rest[..length].trim_start().len());
    Some(Dotted { span: Span::new(first.min(start + length), first.min(start + length) + text.len()), end: start + length })
}

fn belongs_to_path(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '/' | ':' | '@' | '#' | '~' | ' ' | '\n' | '\r' | '\t')
}

impl Dotted {
    /// What the text means, given what it is as Moa.
    pub(super) fn or_parsed(self, source: &str, parsed: Result<Node, ExpressionError>) -> Result<Node, ExpressionError> {
        let names = self.names(source);
        let is_path = names.len() > 1 && is_word(names[0].of(source)) && names.iter().all(|name| is_key(name.of(source)));
        match parsed {
            Ok(Node { form: Form::Path(same), span }) if !is_path || *same == *names => Ok(Node { form: Form::Path(same), span }),
            Ok(node) if is_path => Ok(self.node(names, Some(node))),
            Err(_) if is_path => Ok(self.node(names, None)),
            Err(error) => Err(self.empty_part(source, &names).unwrap_or(error)),
            parsed => parsed,
        }
    }

    fn node(&self, names: Vec<Span>, otherwise: Option<Node>) -> Node {
        Node { span: self.span, form: Form::Dotted { path: names.into(), otherwise: otherwise.map(Box::new) } }
    }

    fn names(&self, source: &str) -> Vec<Span> {
        let mut at = self.span.start();
        let part = |part: &str| {
            let span = Span::new(at, at + part.len());
            at += part.len() + 1;
            span
        };
        self.span.of(source).split('.').map(part).collect()
    }

    /// The original looks up the empty text, and does not find it.
    fn empty_part(&self, source: &str, names: &[Span]) -> Option<ExpressionError> {
        let empty = names.iter().find(|name| name.range().is_empty())?;
        let hint = if self.span.range().is_empty() {
            "write an expression between `${{` and `}}`"
        } else {
            "a path is names with a dot between each two"
        };
        Some(not_found(self.span.of(source), "", empty.range()).with_hint(hint))
    }
}

/// White space at its ends would be a slip; v0.12 does not find such a key either.
fn is_key(part: &str) -> bool {
    !part.is_empty() && part.trim() == part
}

/// The original's text for a key that is missing.
pub(super) fn not_found(expression: &str, key: &str, span: std::ops::Range<usize>) -> ExpressionError {
    ExpressionError::new(format!("{}: the {key:?} was not found", shortened(expression)), span)
}

/// The original's answer to `${{` inside an expression, outside of a string: it becomes a part of a key.
pub(super) fn nested_template(source: &str, start: usize) -> Option<ExpressionError> {
    let rest = &source[start..];
    let inner = rest.find("${{")?;
    // Strings, operators and brackets before it: then the mistake is another one.
    if !rest[..inner].chars().all(belongs_to_path) {
        return None;
    }
    let mut depth = 1;
    let mut at = inner;
    let end = loop {
        let next = rest[at..].find(['$', '}'])? + at;
        at = next + 1;
        if rest[next..].starts_with("${{") {
            depth += 1;
            at = next + 3;
        } else if rest[next..].starts_with("}}") {
            depth -= 1;
            at = next + 2;
            if depth == 0 {
                break next;
            }
        }
    };
    let whole = rest[..end].trim();
    let key = whole.split('.').find(|part| part.contains("${{"))?;
    Some(
        not_found(whole, key, start + inner..start + inner + 3)
            .with_hint("a key that is computed stands in brackets, as in `inputs[inputs.name]`"),
    )
}

/// A text for a message: long ones are cut.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
