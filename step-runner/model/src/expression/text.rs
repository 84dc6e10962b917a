//! A value as text, in the form of each dialect (original.md C.4, C.7).
//!
//! | | steps | functions |
//! |---|---|---|
//! | null | `null` | `<null>` |
//! | array | `["a",1]` | `["a", 1]` |
//! | object | `{"a":1,"b":2}`, sorted | `{"b": 2,"a": 1}`, in the order written |
//! | `<b>` in an array | `["\u003cb\u003e"]` | `["<b>"]` |

use super::compare::sorted;
use crate::document::Dialect;
use crate::value::{Data, Value};
use std::fmt::Write;

/// Strings stand as they are; inside arrays and objects they are quoted.
pub(super) fn write_text(out: &mut String, value: &Value, dialect: Dialect) {
    match value.data() {
        Data::String(text) => out.push_str(text),
        _ => write_inner(out, value, dialect),
    }
}

fn write_inner(out: &mut String, value: &Value, dialect: Dialect) {
    match value.data() {
        Data::Null => out.push_str(if dialect == Dialect::Steps { "null" } else { "<null>" }),
        Data::Boolean(boolean) => out.push_str(if *boolean { "true" } else { "false" }),
        Data::Number(number) => write_number(out, *number),
        Data::String(text) => write_quoted(out, text, dialect),
        Data::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(if dialect == Dialect::Steps { "," } else { ", " });
                }
                write_inner(out, item, dialect);
            }
            out.push(']');
        }
        Data::Object(object) if dialect == Dialect::Steps => write_entries(out, sorted(object), ":", dialect),
        Data::Object(object) => write_entries(out, object.iter().map(|(key, value)| (&**key, value)), ": ", dialect),
    }
}

fn write_entries<'a>(out: &mut String, entries: impl IntoIterator<Item = (&'a str, &'a Value)>, colon: &str, dialect: Dialect) {
    out.push('{');
    for (at, (key, value)) in entries.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_quoted(out, key, dialect);
        out.push_str(colon);
        write_inner(out, value, dialect);
    }
    out.push('}');
}

/// The shortest form that reads back equal. Exponents as JSON of the original has them: at or above 1e21 and below 1e-6.
pub(super) fn write_number(out: &mut String, number: f64) {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    let size = number.abs();
    let written = if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let start = out.len();
        let written = write!(out, "{number:e}");
        // Rust writes `1e21` where the original has `1e+21`; both have `1e-7`.
        if let Some(at) = out[start..].find('e').filter(|at| !out[start + at..].starts_with("e-")) {
            out.insert(start + at + 1, '+');
        }
        written
    } else if size <= EXACT && size != 0.0 && number.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53, checked in the line above")]
        let whole = number as i64;
        write!(out, "{whole}")
    } else {
        write!(out, "{number}")
    };
    written.unwrap_or_default(); // Writing into a string does not fail.
}

/// As JSON. The steps dialect also escapes what the original's JSON escapes so that it can stand in HTML and scripts.
fn write_quoted(out: &mut String, text: &str, dialect: Dialect) {
    out.push('"');
    let mut plain_from = 0;
    for (at, character) in text.char_indices() {
        let short = match character {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            _ => None,
        };
        let is_code = character < ' ' || (dialect == Dialect::Steps && matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'));
        if short.is_none() && !is_code {
            continue;
        }
        out.push_str(&text[plain_from..at]);
        plain_from = at + character.len_utf8();
        match short {
            Some(escape) => out.push_str(escape),
            None => write!(out, "\\u{:04x}", u32::from(character)).unwrap_or_default(),
        }
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: f64) -> String {
        let mut text = String::new();
        write_number(&mut text, value);
        text
    }

    #[test]
    fn numbers_have_the_form_of_the_originals_json() {
        let forms = [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e20, "100000000000000000000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-9, "1.25e-9"),
            (9_007_199_254_740_993.0, "9007199254740992"),
        ];
        for (value, form) in forms {
            assert_eq!(number(value), form);
        }
    }

    #[test]
    fn strings_in_json_are_escaped_as_the_original_does() {
        let value = Value::array([Value::from("<a>&\u{2028}\u{1}\n\"\\\u{8}é")]);
        let text = |dialect| {
            let mut text = String::new();
            write_text(&mut text, &value, dialect);
            text
        };
        assert_eq!(text(Dialect::Steps), "[\"\\u003ca\\u003e\\u0026\\u2028\\u0001\\n\\\"\\\\\\bé\"]");
        assert_eq!(text(Dialect::Functions), "[\"<a>&\u{2028}\\u0001\\n\\\"\\\\\\bé\"]");
    }
}
