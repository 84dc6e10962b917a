//! Strings in double quotes: escapes, and expressions inside.

use super::ExpressionError;
use super::lex::open_string;
use super::parse::Parser;
use super::syntax::{Form, Part};

impl Parser<'_> {
    /// The rest of a string whose opening quote, at `opening`, has been read.
    pub(super) fn string(&mut self, opening: usize) -> Result<Form, ExpressionError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        loop {
            let rest = self.lexer.rest();
            let plain = rest.find(['"', '\\', '$']).unwrap_or(rest.len());
            text.push_str(&rest[..plain]);
            self.skip(plain);
            let rest = &rest[plain..];
            if rest.starts_with("${{") {
                if !text.is_empty() {
                    parts.push(Part::Resolved(std::mem::take(&mut text).into()));
                }
                self.skip(3);
                parts.push(Part::Expression(self.template_expression()?));
            } else if rest.starts_with('$') {
                text.push('$');
                self.skip(1);
            } else if rest.starts_with('"') {
                self.skip(1);
                break;
            } else if rest.is_empty() {
                return Err(open_string(opening, self.lexer.source().len()));
            } else {
                self.escape(&mut text)?;
            }
        }
        if parts.is_empty() {
            return Ok(Form::String(text.into()));
        }
        if !text.is_empty() {
            parts.push(Part::Resolved(text.into()));
        }
        Ok(Form::Text(parts.into()))
    }

    /// The lexer stands at a backslash.
    fn escape(&mut self, text: &mut String) -> Result<(), ExpressionError> {
        let start = self.lexer.position();
        let rest = self.lexer.rest();
        if rest.starts_with("\\${{") {
            text.push_str("${{");
            self.skip(4);
            return Ok(());
        }
        let Some(escaped) = rest.chars().nth(1) else {
            return Err(open_string(start, self.lexer.source().len()));
        };
        let character = match escaped {
            '\\' | '"' | '/' => escaped,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'u' => {
                let (character, length) = unicode(rest).ok_or_else(|| {
                    let end = start + rest.char_indices().nth(6).map_or(rest.len(), |(at, _)| at);
                    ExpressionError::new(format!("`{}` is not a character", &self.lexer.source()[start..end]), start..end)
                        .with_hint("write `\\u` and four hexadecimal digits; characters beyond them as a pair of surrogates")
                })?;
                text.push(character);
                self.skip(length);
                return Ok(());
            }
            _ => {
                let span = start..start + 1 + escaped.len_utf8();
                return Err(ExpressionError::new(format!("`\\{escaped}` is not an escape"), span)
                    .with_hint("write `\\\\` for a backslash, or use a string in single quotes"));
            }
        };
        text.push(character);
        self.skip(1 + escaped.len_utf8());
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        self.lexer.move_to(self.lexer.position() + bytes);
    }
}

/// The character of `\uXXXX`, or of two of them that are a surrogate pair, and how many bytes were read.
fn unicode(text: &str) -> Option<(char, usize)> {
    let first = unit(text)?;
    if !(0xd800..0xe000).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    let pair = [u16::try_from(first).ok()?, u16::try_from(unit(&text[6..])?).ok()?];
    let character = char::decode_utf16(pair).next()?.ok()?;
    (character.len_utf16() == 2).then_some((character, 12))
}

fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}
