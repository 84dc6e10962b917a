//! From a text to its parts, and from an expression to its tree.
//!
//! ```text
//! template   = { text | "${{" expression "}}" }
//! expression = unary { operator unary }              five levels, all left-associative
//! unary      = { "+" | "-" | "!" } access
//! access     = primary { "." word | "[" expression "]" | "(" [ list ] ")" }
//! primary    = null | true | false | number | string | word | "(" expression ")" | "[" [ list ] "]" | "{" [ entries ] "}"
//! ```

use super::ExpressionError;
use super::dotted;
use super::lex::{Lexer, Token, TokenKind, is_reserved};
use super::nearest::did_you_mean;
use super::syntax::{Access, By, Form, Function, MAXIMUM_NESTING, Node, Operator, Part, Prefix, Span};
use crate::document::Dialect;

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) dialect: Dialect,
    /// Where the text after the outermost `${{` begins. `None`: the whole source is an expression.
    opened: Option<usize>,
    nesting: usize,
}

type Parsed<T> = Result<T, ExpressionError>;

/// The parts of a text. `None`: there is nothing in it but text.
pub(super) fn parse_template(source: &str, dialect: Dialect) -> Parsed<Option<Vec<Part>>> {
    if !source.contains("${{") {
        return Ok(None);
    }
    if u32::try_from(source.len()).is_err() {
        return Err(ExpressionError::new("a text with expressions is longer than 4 GiB", 0..0));
    }
    let mut parser = Parser { lexer: Lexer::new(source, 0), dialect, opened: None, nesting: 0 };
    let mut parts = Vec::new();
    let mut text_from = 0;
    while let Some(found) = source[parser.lexer.position()..].find("${{") {
        let at = parser.lexer.position() + found;
        if dialect == Dialect::Functions && source[text_from..at].ends_with('\\') {
            push_text(&mut parts, text_from, at - 1);
            text_from = at; // The `${{` itself is text.
            parser.lexer.move_to(at + 3);
            continue;
        }
        push_text(&mut parts, text_from, at);
        parser.opened = Some(at + 3);
        parser.lexer.move_to(at + 3);
        parts.push(Part::Expression(parser.template_expression()?));
        text_from = parser.lexer.position();
    }
    push_text(&mut parts, text_from, source.len());
    if !parts.iter().any(|part| matches!(part, Part::Expression(_))) {
        return Ok(Some(vec![Part::Resolved(joined(source, &parts))]));
    }
    Ok(Some(parts))
}

/// A text that is an expression as a whole, without `${{` and `}}`.
pub(super) fn parse_expression(source: &str, dialect: Dialect) -> Parsed<Node> {
    if u32::try_from(source.len()).is_err() {
        return Err(ExpressionError::new("the expression is longer than 4 GiB", 0..0));
    }
    Parser { lexer: Lexer::new(source, 0), dialect, opened: None, nesting: 0 }.whole_expression()
}

fn push_text(parts: &mut Vec<Part>, start: usize, end: usize) {
    if start < end {
        parts.push(Part::Text(Span::new(start, end)));
    }
}

fn joined(source: &str, parts: &[Part]) -> Box<str> {
    parts.iter().map(|part| if let Part::Text(span) = part { span.of(source) } else { "" }).collect::<String>().into()
}

impl<'a> Parser<'a> {
    fn source(&self) -> &'a str {
        self.lexer.source()
    }

    /// What stands between `${{` and `}}`; the lexer stands after the former, and then after the latter.
    pub(super) fn template_expression(&mut self) -> Parsed<Node> {
        let start = self.lexer.position();
        let outer = self.nesting;
        let parsed = self.expression().and_then(|node| self.close().map(|()| node));
        if self.dialect == Dialect::Functions {
            return parsed;
        }
        let Some(dotted) = dotted::find(self.source(), start, "}}") else {
            return parsed.map_err(|error| dotted::nested_template(self.source(), start).unwrap_or(error));
        };
        if parsed.is_err() {
            self.nesting = outer;
            self.lexer.move_to(dotted.end + 2);
        }
        dotted.or_parsed(self.source(), parsed)
    }

    fn whole_expression(&mut self) -> Parsed<Node> {
        let parsed = self.expression().and_then(|node| match self.lexer.next()? {
            Token { kind: TokenKind::End, .. } => Ok(node),
            other => Err(self.unexpected(&other, "the end")),
        });
        match dotted::find(self.source(), 0, "") {
            Some(dotted) if self.dialect == Dialect::Steps => dotted.or_parsed(self.source(), parsed),
            _ => parsed,
        }
    }

    fn close(&mut self) -> Parsed<()> {
        if self.lexer.is_at_close() {
            self.lexer.move_to(self.lexer.position() + 2);
            return Ok(());
        }
        let found = self.lexer.next()?;
        Err(self.unexpected(&found, "`}}`"))
    }

    fn peek(&self) -> Parsed<Token> {
        self.lexer.clone().next()
    }

    fn nested<T>(&mut self, span: Span, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAXIMUM_NESTING {
            return Err(ExpressionError::new(format!("the expression nests more than {MAXIMUM_NESTING} levels deep"), span.range())
                .with_hint("compute a part of it in an earlier step"));
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    fn expression(&mut self) -> Parsed<Node> {
        let at = self.lexer.position();
        self.nested(Span::new(at, at), |parser| parser.level(0))
    }

    fn level(&mut self, level: usize) -> Parsed<Node> {
        if level == Operator::LEVELS {
            return self.unary();
        }
        let first = self.level(level + 1)?;
        let mut rest = Vec::new();
        // Asked before the next word is read: what comes after `}}` need not be of the language.
        while !self.lexer.is_at_close() {
            let Token { kind: TokenKind::Operator(operator), span } = self.peek()? else { break };
            if operator.level() != level {
                break;
            }
            self.lexer.move_to(span.end());
            rest.push((operator, self.level(level + 1)?));
        }
        let Some((_, last)) = rest.last() else { return Ok(first) };
        Ok(Node { span: first.span.to(last.span), form: Form::Chain(Box::new(first), rest.into()) })
    }

    fn unary(&mut self) -> Parsed<Node> {
        let token = self.peek()?;
        let prefix = match token.kind {
            TokenKind::Operator(Operator::Add) => Prefix::Plus,
            TokenKind::Operator(Operator::Subtract) => Prefix::Minus,
            TokenKind::Not => Prefix::Not,
            _ => return self.access(),
        };
        self.lexer.move_to(token.span.end());
        let operand = self.nested(token.span, Self::unary)?;
        Ok(Node { span: token.span.to(operand.span), form: Form::Unary(prefix, Box::new(operand)) })
    }

    fn access(&mut self) -> Parsed<Node> {
        let base = self.primary()?;
        let mut links = Links::new(base);
        while !self.lexer.is_at_close() {
            let token = self.peek()?;
            let by = match token.kind {
                TokenKind::Dot => {
                    self.lexer.move_to(token.span.end());
                    let name = self.lexer.next()?;
                    if name.kind != TokenKind::Word {
                        return Err(self.unexpected(&name, "a name"));
                    }
                    By::Attribute(name.span)
                }
                TokenKind::Bracket('[') => {
                    self.lexer.move_to(token.span.end());
                    let index = self.expression()?;
                    self.expect(']')?;
                    By::Index(index)
                }
                TokenKind::Bracket('(') => {
                    self.lexer.move_to(token.span.end());
                    let arguments = self.list(')')?;
                    self.check_call(&links, &arguments, Span::new(token.span.start(), self.lexer.position()))?;
                    By::Call(arguments.into())
                }
                _ => break,
            };
            links.push(Access { span: Span::new(token.span.start(), self.lexer.position()), by }, self.source());
        }
        Ok(links.into_node())
    }

    /// A call whose function is known is checked at once, so that it is found before anything runs.
    fn check_call(&self, callee: &Links, arguments: &[Node], span: Span) -> Parsed<()> {
        if !callee.accesses.is_empty() {
            return Ok(());
        }
        if let Form::Function(function) = callee.base.form {
            if arguments.len() == 1 {
                return Ok(());
            }
            let message = format!("`{}` takes one value, not {}", function.name(), arguments.len());
            return Err(ExpressionError::new(message, span.range()));
        }
        let [name] = callee.names.as_slice() else { return Ok(()) };
        let (name, at) = (name.of(self.source()), name.range());
        let hint =
            did_you_mean(name, Function::ALL.map(Function::name)).unwrap_or_else(|| "the functions are `str`, `num` and `bool`".to_owned());
        Err(ExpressionError::new(format!("there is no function `{name}`"), at).with_hint(hint))
    }

    fn primary(&mut self) -> Parsed<Node> {
        let token = self.lexer.next()?;
        let form = match token.kind {
            TokenKind::Word => self.word(token.span)?,
            TokenKind::Number(number) => Form::Number(number),
            TokenKind::Raw(text) => Form::String(text.into()),
            TokenKind::Quote => self.nested(token.span, |parser| parser.string(token.span.start()))?,
            TokenKind::Bracket('(') => {
                let inner = self.expression()?;
                self.expect(')')?;
                inner.form
            }
            TokenKind::Bracket('[') => Form::Array(self.list(']')?.into()),
            TokenKind::Bracket('{') => self.object()?,
            _ => return Err(self.unexpected(&token, "a value")),
        };
        Ok(Node { span: Span::new(token.span.start(), self.lexer.position()), form })
    }

    fn word(&self, span: Span) -> Parsed<Form> {
        let word = span.of(self.source());
        Ok(match word {
            "null" => Form::Null,
            "true" => Form::Boolean(true),
            "false" => Form::Boolean(false),
            _ if is_reserved(word) => {
                return Err(ExpressionError::new(format!("`{word}` is a reserved word"), span.range())
                    .with_hint(format!("it can be a key, as in `inputs.{word}`, or a string, as in `\"{word}\"`")));
            }
            _ => match Function::named(word) {
                Some(function) => Form::Function(function),
                None => Form::Path(Box::new([span])),
            },
        })
    }

    /// Expressions separated by commas, up to and with `end`. A comma may follow the last one.
    fn list(&mut self, end: char) -> Parsed<Vec<Node>> {
        let mut items = Vec::new();
        loop {
            if self.take(end)? {
                return Ok(items);
            }
            items.push(self.expression()?);
            if !self.comma_or(end)? {
                return Ok(items);
            }
        }
    }

    fn object(&mut self) -> Parsed<Form> {
        let mut entries = Vec::new();
        loop {
            if self.take('}')? {
                return Ok(Form::Object(entries.into()));
            }
            let key = self.key()?;
            let colon = self.lexer.next()?;
            if colon.kind != TokenKind::Colon {
                return Err(self.unexpected(&colon, "`:`"));
            }
            entries.push((key, self.expression()?));
            if !self.comma_or('}')? {
                return Ok(Form::Object(entries.into()));
            }
        }
    }

    /// A bare name is a string; an expression stands in parentheses.
    fn key(&mut self) -> Parsed<Node> {
        let token = self.peek()?;
        match token.kind {
            TokenKind::Word => {
                self.lexer.move_to(token.span.end());
                Ok(Node { span: token.span, form: Form::String(token.span.of(self.source()).into()) })
            }
            TokenKind::Raw(_) | TokenKind::Quote | TokenKind::Bracket('(') => self.primary(),
            TokenKind::End => Err(self.unexpected(&token, "a key")),
            _ => Err(self.unexpected(&token, "a key").with_hint("keys are names, strings, or expressions in parentheses")),
        }
    }

    /// Whether another item may follow; otherwise `end` has been read.
    fn comma_or(&mut self, end: char) -> Parsed<bool> {
        let token = self.lexer.next()?;
        match token.kind {
            TokenKind::Comma => Ok(true),
            TokenKind::Bracket(bracket) if bracket == end => Ok(false),
            _ => Err(self.unexpected(&token, &format!("`,` or `{end}`"))),
        }
    }

    fn take(&mut self, bracket: char) -> Parsed<bool> {
        let token = self.peek()?;
        let found = token.kind == TokenKind::Bracket(bracket);
        if found {
            self.lexer.move_to(token.span.end());
        }
        Ok(found)
    }

    fn expect(&mut self, bracket: char) -> Parsed<()> {
        let token = self.lexer.next()?;
        if token.kind == TokenKind::Bracket(bracket) {
            return Ok(());
        }
        Err(self.unexpected(&token, &format!("`{bracket}`")))
    }

    fn unexpected(&self, found: &Token, expected: &str) -> ExpressionError {
        if found.kind == TokenKind::End {
            return match self.opened {
                Some(opened) => not_closed(self.source(), opened, self.dialect),
                None => ExpressionError::new(format!("the expression ends where {expected} is expected"), found.span.range()),
            };
        }
        let start = found.span.start();
        let is_close = self.source()[start..].starts_with("}}");
        let span = if is_close { Span::new(start, start + 2) } else { found.span };
        let word = span.of(self.source());
        let error = ExpressionError::new(format!("expected {expected}, found `{word}`"), span.range());
        match word.strip_prefix('.') {
            Some(index) if !index.is_empty() => error.with_hint(format!("an element stands in brackets, as in `[{index}]`")),
            _ => error,
        }
    }
}

/// A value and what follows it. Names that are known at once make the path longer; from the first that is not, all are accesses.
struct Links {
    base: Node,
    /// Of the base, when it is a path.
    names: Vec<Span>,
    accesses: Vec<Access>,
}

impl Links {
    fn new(mut base: Node) -> Self {
        let names = match &mut base.form {
            Form::Path(names) => std::mem::take(names).into_vec(),
            _ => Vec::new(),
        };
        Self { base, names, accesses: Vec::new() }
    }

    fn push(&mut self, access: Access, source: &str) {
        if !self.names.is_empty()
            && self.accesses.is_empty()
            && let Some(name) = access.name(source)
        {
            self.names.push(name);
            self.base.span = self.base.span.to(access.span);
        } else {
            self.accesses.push(access);
        }
    }

    fn into_node(mut self) -> Node {
        if !self.names.is_empty() {
            self.base.form = Form::Path(self.names.into());
        }
        match self.accesses.last() {
            Some(last) => Node { span: self.base.span.to(last.span), form: Form::Access(Box::new(self.base), self.accesses.into()) },
            None => self.base,
        }
    }
}

impl Access {
    /// The key, when it stands in the source as it is: `.name`, `["name"]`.
    fn name(&self, source: &str) -> Option<Span> {
        match &self.by {
            By::Attribute(name) => Some(*name),
            By::Index(Node { span, form: Form::String(text) }) if span.range().len() >= 2 => {
                let inner = Span::new(span.start() + 1, span.end() - 1);
                (inner.of(source) == &**text).then_some(inner)
            }
            _ => None,
        }
    }
}

/// The original's text.
fn not_closed(source: &str, opened: usize, dialect: Dialect) -> ExpressionError {
    let shown = dotted::shortened(&source[opened..]);
    let literal = if dialect == Dialect::Steps { "${{ '${{' }}" } else { "\\${{" };
    ExpressionError::new(format!("the \"{shown}\" is not closed: ${{{{ ... }}}}"), opened.saturating_sub(3)..source.len())
        .with_hint(format!("write the closing `}}}}`, or `{literal}` for a literal `${{{{`"))
}
