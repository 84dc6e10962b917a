//! Why an expression has no value, and how that is said. Values never appear: they may be secrets.

use super::dotted::{not_found, shortened};
use super::nearest::nearest;
use super::syntax::{CONTEXTS, Function, Operator, Span};
use super::{ExpressionError, Scope};
use crate::document::Dialect;
use crate::value::{Kind, MAXIMUM_DEPTH, Value};
use std::sync::Arc;

/// A failed evaluation. Words are found only when somebody reads it: `||` throws most faults away.
#[derive(Debug)]
pub(super) struct Fault {
    pub cause: Cause,
    span: Span,
    /// The whole expression, for texts that name it. The innermost one, when a string holds another.
    whole: Option<Span>,
}

#[derive(Debug)]
pub(super) enum Cause {
    /// The span is a name that no context has.
    NoContext,
    /// The span is a key that the context does not have; or the context is not an object at all.
    NotInContext {
        root: Span,
    },
    /// `None`: the key is sensitive.
    NotFound {
        key: Option<Arc<str>>,
        object: Value,
        holder: Span,
    },
    /// A key is asked of something that has none.
    NoAttributes {
        kind: Kind,
        holder: Span,
    },
    NoIndex(Kind),
    OutOfRange {
        length: usize,
        of: Kind,
        sensitive: bool,
    },
    WrongKey {
        of: Kind,
        key: Kind,
    },
    KeyIsNoString(Kind),
    NotCallable(Kind),
    WrongArguments(Function),
    IsFunction(Function),
    NotNumeric(Kind),
    NotANumber {
        sign: &'static str,
        kind: Kind,
    },
    Mismatch {
        operator: Operator,
        left: Kind,
        right: Kind,
    },
    DivisionByZero,
    TooLarge,
    TooDeep,
}

impl Cause {
    /// Whether something is not there: what `||` passes over.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Self::NoContext | Self::NotInContext { .. } | Self::NotFound { .. } | Self::OutOfRange { .. })
    }
}

impl Fault {
    pub(super) fn new(cause: Cause, span: Span) -> Box<Self> {
        Box::new(Self { cause, span, whole: None })
    }

    pub(super) fn within(mut self: Box<Self>, whole: Span) -> Box<Self> {
        self.whole.get_or_insert(whole);
        self
    }

    pub(super) fn explain(self, source: &str, dialect: Dialect, scope: &dyn Scope) -> ExpressionError {
        Explanation { span: self.span, whole: self.whole.unwrap_or(self.span), source, dialect, scope }.of(self.cause)
    }
}

struct Explanation<'a> {
    span: Span,
    whole: Span,
    source: &'a str,
    dialect: Dialect,
    scope: &'a dyn Scope,
}

impl Explanation<'_> {
    fn of(&self, cause: Cause) -> ExpressionError {
        match cause {
            Cause::NoContext => self.no_context(self.span),
            Cause::NotInContext { root } => match self.scope.context(root.of(self.source)) {
                None => self.no_context(root),
                Some(object) if object.as_object().is_some() => self.missing(Some(self.span.of(self.source)), &object, root),
                Some(other) => self.no_attributes(other.kind(), root),
            },
            Cause::NotFound { key, object, holder } => self.missing(key.as_deref(), &object, holder),
            Cause::NoAttributes { kind, holder } => self.no_attributes(kind, holder),
            Cause::NoIndex(kind) => self
                .error(format!("invalid kind: {} has no elements", article(kind)))
                .with_hint("arrays, strings and objects can be indexed"),
            Cause::OutOfRange { length, of, sensitive } => {
                let error = self.error("array index out of range".to_owned());
                match length {
                    _ if sensitive => error,
                    0 => error.with_hint(format!("the {of} is empty")),
                    _ => error.with_hint(format!("the {of} has {length} {}: the last index is {}", elements(of, length), length - 1)),
                }
            }
            Cause::WrongKey { of, key } => {
                let wanted = if of == Kind::Struct { "a string" } else { "a number" };
                self.error(format!("invalid key: {} is indexed by {wanted}, not by {}", article(of), article(key)))
            }
            Cause::KeyIsNoString(kind) => self
                .error(format!("invalid key: a key of an object is a string, not {}", article(kind)))
                .with_hint("write `str(...)` around it"),
            Cause::NotCallable(kind) => self.error(format!("invalid kind: {} cannot be called", article(kind))),
            Cause::WrongArguments(function) => self.error(format!("`{}` takes one value", function.name())),
            Cause::IsFunction(function) => {
                let name = function.name();
                self.error(format!("`{name}` is a function, not a value"))
                    .with_hint(format!("call it, as in `{name}(inputs.x)`: it gives {}", article(function.gives())))
            }
            Cause::NotNumeric(Kind::String) => {
                self.error("the string is not a number".to_owned()).with_hint("`num` reads 42, -3.14 and 1.5e3, with nothing around it")
            }
            Cause::NotNumeric(kind) => self.error(format!("invalid kind: `num` takes a string, not {}", article(kind))),
            Cause::NotANumber { sign, kind } => {
                let error = self.error(format!("invalid kind: `{sign}` takes a number, not {}", article(kind)));
                if kind == Kind::String { error.with_hint("write `num(...)` around it") } else { error }
            }
            Cause::Mismatch { operator, left, right } => self.mismatch(operator, left, right),
            Cause::DivisionByZero => self.error("division by zero".to_owned()),
            Cause::TooLarge => self.error("the result is too large for a number".to_owned()),
            Cause::TooDeep => self.error(format!("the value nests more than {MAXIMUM_DEPTH} levels deep")),
        }
    }

    fn error(&self, message: String) -> ExpressionError {
        ExpressionError::new(message, self.span.range())
    }

    fn whole(&self) -> &str {
        self.whole.of(self.source)
    }

    fn no_context(&self, root: Span) -> ExpressionError {
        let name = root.of(self.source);
        let error = match self.dialect {
            Dialect::Steps => not_found(self.whole(), name, root.range()),
            Dialect::Functions => {
                ExpressionError::new(format!("attribute not found: there is no `{}` here", shortened(name)), root.range())
            }
        };
        if let Some(hint) = self.minus(root) {
            return error.with_hint(hint);
        }
        // Only the one that is near is asked for: a scope may take note of which contexts are read.
        match nearest(name, CONTEXTS).filter(|context| self.scope.context(context).is_some()) {
            Some(context) => error.with_hint(format!("did you mean `{context}`?")),
            None => error.with_hint(format!(
                "a text stands in quotes, as in `\"{}\"`; a value begins with `inputs.`, `steps.`, `env.` or `vars.`",
                shortened(name)
            )),
        }
    }

    fn missing(&self, key: Option<&str>, object: &Value, holder: Span) -> ExpressionError {
        let Some(key) = key else {
            return match self.dialect {
                Dialect::Steps => self.error(format!("{}: a sensitive key was not found", shortened(self.whole()))),
                Dialect::Functions => {
                    self.error(format!("attribute not found: a sensitive key in `{}`", shortened(holder.of(self.source))))
                }
            };
        };
        let error = match self.dialect {
            Dialect::Steps => not_found(self.whole(), key, self.span.range()),
            Dialect::Functions => {
                self.error(format!("attribute not found: `{}` in `{}`", shortened(key), shortened(holder.of(self.source))))
            }
        };
        match self.minus(self.span).or_else(|| near_key(key, object)) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    fn no_attributes(&self, kind: Kind, holder: Span) -> ExpressionError {
        let key = self.span.of(self.source);
        let root = holder.of(self.source).split(['.', '[']).next().unwrap_or_default().trim();
        let error = match self.dialect {
            // v0.12 looks into Go values and into protobuf values, and says it in two ways.
            Dialect::Steps if matches!(root, "inputs" | "steps") => {
                self.error(format!("{}: the {kind} is not map to get {key:?} key", shortened(self.whole())))
            }
            Dialect::Steps => self.error(format!("{}: \"{kind}\" is not supported", shortened(self.whole()))),
            Dialect::Functions => {
                self.error(format!("invalid kind: `{}` is {}, which has no attributes", shortened(holder.of(self.source)), article(kind)))
            }
        };
        match kind {
            Kind::Array => error.with_hint(format!("elements are counted from 0, as in `{}[0]`", shortened(holder.of(self.source)))),
            _ => error,
        }
    }

    /// A name right before or after a `-` was probably meant to hold it.
    fn minus(&self, name: Span) -> Option<String> {
        let is_part = |character: char| character == '_' || character.is_alphanumeric();
        let (before, after) = (&self.source[..name.start()], &self.source[name.end()..]);
        let joined = |left: &str, right: &str| left.ends_with(is_part) && right.starts_with(is_part);
        let follows = after.strip_prefix('-').is_some_and(|after| joined(name.of(self.source), after));
        let precedes = before.strip_suffix('-').is_some_and(|before| joined(before, name.of(self.source)));
        (follows || precedes).then(|| "`-` is minus here; a key that holds it stands in brackets, as in `inputs[\"my-key\"]`".to_owned())
    }

    fn mismatch(&self, operator: Operator, left: Kind, right: Kind) -> ExpressionError {
        let sign = operator.sign();
        let takes = if operator == Operator::Add { "two numbers or two strings" } else { "two numbers" };
        let error = self.error(format!("invalid kind: `{sign}` takes {takes}, not {} and {}", article(left), article(right)));
        match (operator, left == Kind::String || right == Kind::String) {
            (Operator::Add, true) => error.with_hint("write `str(...)` around what is not a string, or `num(...)` around what is one"),
            (_, true) => error.with_hint("write `num(...)` around the string"),
            _ => error,
        }
    }
}

/// Keys are names, not values; but those of a sensitive object stay unsaid.
fn near_key(key: &str, object: &Value) -> Option<String> {
    const FEW: usize = 8;
    let entries = object.as_object().filter(|_| !object.is_sensitive())?;
    let names = || entries.keys().map(|name| &**name);
    if let Some(name) = nearest(key, names()) {
        return Some(format!("did you mean `{name}`?"));
    }
    match entries.len() {
        0 => Some("there is nothing in it".to_owned()),
        1..=FEW => Some(format!(
            "there {} {}",
            if entries.len() == 1 { "is only" } else { "are" },
            names().map(|name| format!("`{}`", shortened(name))).collect::<Vec<_>>().join(", ")
        )),
        _ => None,
    }
}

fn article(kind: Kind) -> String {
    match kind {
        Kind::Null => "null".to_owned(),
        Kind::Array => "an array".to_owned(),
        Kind::Struct => "an object".to_owned(),
        _ => format!("a {kind}"),
    }
}

fn elements(of: Kind, length: usize) -> &'static str {
    match (of, length) {
        (Kind::String, 1) => "character",
        (Kind::String, _) => "characters",
        (_, 1) => "element",
        _ => "elements",
    }
}
