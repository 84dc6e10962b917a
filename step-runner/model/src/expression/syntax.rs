//! The tree of an expression. Chains of operators and accesses are flat, so its depth is bounded by nesting alone.

use crate::value::Kind;
use std::ops::Range;
use std::sync::Arc;

/// How deep brackets, unary operators and templates in strings may nest. Nobody writes ten; a thousand would need a large stack.
pub(super) const MAXIMUM_NESTING: usize = 64;

/// Bytes of a template's source. Half the size of a `Range<usize>`: a plan of ten thousand steps holds many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Sources longer than 4 GiB are refused before any span is made.
    pub(super) fn new(start: usize, end: usize) -> Self {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end) }
    }

    pub(super) fn start(self) -> usize {
        self.start as usize
    }

    pub(super) fn end(self) -> usize {
        self.end as usize
    }

    pub(super) fn range(self) -> Range<usize> {
        self.start()..self.end()
    }

    pub(super) fn of(self, source: &str) -> &str {
        source.get(self.range()).unwrap_or_default()
    }

    /// From the start of this one to the end of `last`.
    pub(super) fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }
}

/// A piece of a text that holds expressions.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    /// As it stands in the source.
    Text(Span),
    /// With its escapes resolved.
    Resolved(Box<str>),
    Expression(Node),
}

#[derive(Debug, PartialEq)]
pub(super) struct Node {
    pub span: Span,
    pub form: Form,
}

#[derive(Debug, PartialEq)]
pub(super) enum Form {
    Null,
    Boolean(bool),
    Number(f64),
    String(Arc<str>),
    /// A double-quoted string with expressions in it.
    Text(Box<[Part]>),
    /// `root.a["b"].c`: a context and keys of it, all of them known. At least one.
    Path(Box<[Span]>),
    /// Steps dialect: read as a path, as v0.12 does, and as `otherwise` when the path does not resolve.
    Dotted {
        path: Box<[Span]>,
        otherwise: Option<Box<Node>>,
    },
    Function(Function),
    Access(Box<Node>, Box<[Access]>),
    Unary(Prefix, Box<Node>),
    /// Operators of one precedence, from left to right.
    Chain(Box<Node>, Box<[(Operator, Node)]>),
    Array(Box<[Node]>),
    /// Keys are expressions too; a bare name is a string.
    Object(Box<[(Node, Node)]>),
}

/// One link of `a.b[c](d)`. The span is that of the link, its brackets included.
#[derive(Debug, PartialEq)]
pub(super) struct Access {
    pub span: Span,
    pub by: By,
}

#[derive(Debug, PartialEq)]
pub(super) enum By {
    /// `.name`; the span is that of the name.
    Attribute(Span),
    Index(Node),
    Call(Box<[Node]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    Plus,
    Minus,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Operator {
    /// 0 binds least.
    pub(super) const LEVELS: usize = 5;

    pub(super) fn level(self) -> usize {
        match self {
            Self::Or => 0,
            Self::And => 1,
            Self::Equal | Self::NotEqual | Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => 2,
            Self::Add | Self::Subtract => 3,
            Self::Multiply | Self::Divide | Self::Modulo => 4,
        }
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }
}

impl Prefix {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Not => "!",
        }
    }
}

/// The standard library. All of it takes one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Str,
    Num,
    Bool,
}

impl Function {
    pub(super) const ALL: [Self; 3] = [Self::Str, Self::Num, Self::Bool];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Str => "str",
            Self::Num => "num",
            Self::Bool => "bool",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }

    /// The kind that a call gives.
    pub(super) fn gives(self) -> Kind {
        match self {
            Self::Str => Kind::String,
            Self::Num => Kind::Number,
            Self::Bool => Kind::Boolean,
        }
    }
}

/// The contexts that both dialects know (original.md C.2, C.7). A scope may have others.
pub(super) const CONTEXTS: [&str; 10] =
    ["env", "vars", "inputs", "steps", "job", "work_dir", "func_dir", "step_dir", "output_file", "export_file"];
