//! The words of the language Moa (original.md C.7, "Lexical" and "Strings").

use super::ExpressionError;
use super::syntax::{Operator, Span};

/// Words that cannot name a context, kept by the language for later. After a dot they are keys.
const RESERVED: [&str; 34] = [
    "array",
    "as",
    "break",
    "case",
    "const",
    "continue",
    "default",
    "else",
    "fallthrough",
    "float",
    "for",
    "func",
    "function",
    "goto",
    "if",
    "import",
    "in",
    "int",
    "let",
    "loop",
    "map",
    "namespace",
    "number",
    "object",
    "package",
    "range",
    "return",
    "string",
    "struct",
    "switch",
    "type",
    "var",
    "void",
    "while",
];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub span: Span,
    pub kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    Word,
    Number(f64),
    /// A single-quoted string, without quotes and escapes.
    Raw(Box<str>),
    /// `"`: what follows is a string, which may hold expressions.
    Quote,
    Operator(Operator),
    Not,
    Dot,
    Comma,
    Colon,
    /// One of `( ) [ ] { }`.
    Bracket(char),
    End,
}

/// Reads a source word by word. Strings in double quotes are read by the parser, since expressions may be in them.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    source: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a str, position: usize) -> Self {
        Self { source, position }
    }

    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn move_to(&mut self, position: usize) {
        self.position = position;
    }

    pub(super) fn rest(&self) -> &'a str {
        self.source.get(self.position..).unwrap_or_default()
    }

    /// Whether `}}` comes next; nothing but white space is passed over.
    pub(super) fn is_at_close(&mut self) -> bool {
        self.skip_space();
        self.rest().starts_with("}}")
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start().len();
    }

    pub(super) fn next(&mut self) -> Result<Token, ExpressionError> {
        self.skip_space();
        let start = self.position;
        let rest = self.rest();
        let mut following = rest.chars();
        let Some(first) = following.next() else {
            return Ok(Token { span: Span::new(start, start), kind: TokenKind::End });
        };
        let second = following.next();
        let (kind, length) = match (first, second) {
            ('0'..='9', _) | ('.', Some('0'..='9')) => self.number()?,
            ('\'', _) => self.raw_string()?,
            ('|', Some('|')) => (TokenKind::Operator(Operator::Or), 2),
            ('&', Some('&')) => (TokenKind::Operator(Operator::And), 2),
            ('=', Some('=')) => (TokenKind::Operator(Operator::Equal), 2),
            ('!', Some('=')) => (TokenKind::Operator(Operator::NotEqual), 2),
            ('<', Some('=')) => (TokenKind::Operator(Operator::LessOrEqual), 2),
            ('>', Some('=')) => (TokenKind::Operator(Operator::GreaterOrEqual), 2),
            ('<', _) => (TokenKind::Operator(Operator::Less), 1),
            ('>', _) => (TokenKind::Operator(Operator::Greater), 1),
            ('+', _) => (TokenKind::Operator(Operator::Add), 1),
            ('-', _) => (TokenKind::Operator(Operator::Subtract), 1),
            ('*', _) => (TokenKind::Operator(Operator::Multiply), 1),
            ('/', _) => (TokenKind::Operator(Operator::Divide), 1),
            ('%', _) => (TokenKind::Operator(Operator::Modulo), 1),
            ('!', _) => (TokenKind::Not, 1),
            ('.', _) => (TokenKind::Dot, 1),
            (',', _) => (TokenKind::Comma, 1),
            (':', _) => (TokenKind::Colon, 1),
            ('"', _) => (TokenKind::Quote, 1),
            ('(' | ')' | '[' | ']' | '{' | '}', _) => (TokenKind::Bracket(first), 1),
            _ if starts_word(first) => (TokenKind::Word, rest.find(|c| !continues_word(c)).unwrap_or(rest.len())),
            _ => return Err(self.unexpected(first)),
        };
        self.position = start + length;
        Ok(Token { span: Span::new(start, self.position), kind })
    }

    fn number(&self) -> Result<(TokenKind, usize), ExpressionError> {
        let rest = self.rest();
        let length = number_length(rest);
        let glued = rest[length..].find(|c| !continues_word(c)).unwrap_or(rest.len() - length);
        let span = self.position..self.position + length + glued;
        if glued > 0 {
            return Err(ExpressionError::new(format!("`{}` is not a number", &self.source[span.clone()]), span)
                .with_hint("numbers are written as 42, 3.14 or 1.5e3; a name cannot begin with a digit"));
        }
        match rest[..length].parse::<f64>() {
            Ok(number) if number.is_finite() => Ok((TokenKind::Number(number), length)),
            _ => Err(ExpressionError::new("the number is too large", span).with_hint("numbers are doubles: up to about 1.8e308")),
        }
    }

    /// The text of the string and the length of what was written.
    fn raw_string(&self) -> Result<(TokenKind, usize), ExpressionError> {
        let rest = self.rest();
        let mut text = String::new();
        let mut characters = rest.char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            match character {
                '\'' => return Ok((TokenKind::Raw(text.into()), at + 1)),
                '\\' => match characters.next_if(|(_, next)| matches!(next, '\\' | '\'')) {
                    Some((_, escaped)) => text.push(escaped),
                    None => text.push('\\'),
                },
                other => text.push(other),
            }
        }
        Err(open_string(self.position, self.source.len()))
    }

    fn unexpected(&self, character: char) -> ExpressionError {
        let span = self.position..self.position + character.len_utf8();
        let error = ExpressionError::new(format!("`{character}` is not expected here"), span);
        match character {
            '&' => error.with_hint("did you mean `&&`?"),
            '|' => error.with_hint("did you mean `||`?"),
            '=' => error.with_hint("did you mean `==`?"),
            '?' => error.with_hint("write `condition && this || that`; `that` is also taken when `this` is empty, 0, false or null"),
            '$' => error.with_hint("inside an expression names are written as they are, without `$`"),
            _ => error,
        }
    }
}

pub(super) fn open_string(start: usize, end: usize) -> ExpressionError {
    ExpressionError::new("the string is not closed", start..end)
        .with_hint("write the closing quote, or `\\` before a quote that belongs to the string")
}

/// How many bytes at the beginning of `text` are a number: digits, a fraction, an exponent. Zero when it does not begin with one.
pub(super) fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(0);
    let mut length = whole;
    if text[length..].starts_with('.') {
        let fraction = digits(length + 1);
        if fraction > 0 {
            length += 1 + fraction;
        }
    }
    if length == 0 {
        return 0;
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

pub(super) fn starts_word(character: char) -> bool {
    character == '_' || character.is_alphabetic()
}

pub(super) fn continues_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Whether a text can stand as a name by itself: a context, a bare key.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(starts_word) && text.chars().all(continues_word)
}

pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
}
