//! What a scalar is when no type is declared for it, by the rules of Go's yaml.v3 (`resolve.go`).

use base64::Engine as _;
use std::borrow::Cow;

/// A scalar that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved<'t> {
    Null,
    Boolean(bool),
    Number(f64),
    Text(Cow<'t, str>),
}

/// A scalar without quotes and without a tag.
pub fn resolve(text: &str) -> Resolved<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Resolved::Null,
        "true" | "True" | "TRUE" => Resolved::Boolean(true),
        "false" | "False" | "FALSE" => Resolved::Boolean(false),
        _ => number(text).map_or(Resolved::Text(Cow::Borrowed(text)), Resolved::Number),
    }
}

/// Where a boolean is declared, yaml.v3 takes the words of YAML 1.1 too.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "false" | "False" | "FALSE" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

pub(super) fn resolve_tagged<'t>(text: &'t str, plain: bool, tag: Option<&str>) -> Resolved<'t> {
    match tag {
        None if plain => resolve(text),
        Some("!!null") => Resolved::Null,
        Some("!!bool") => boolean(text).map_or(Resolved::Text(Cow::Borrowed(text)), Resolved::Boolean),
        Some("!!int" | "!!float") => number(text).map_or(Resolved::Text(Cow::Borrowed(text)), Resolved::Number),
        Some("!!binary") => Resolved::Text(decode(text).map_or(Cow::Borrowed(text), Cow::Owned)),
        _ => Resolved::Text(Cow::Borrowed(text)),
    }
}

fn decode(text: &str) -> Option<String> {
    let compact: String = text.split_whitespace().collect();
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(compact).ok()?).ok()
}

fn number(text: &str) -> Option<f64> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Some(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return None;
    }
    let plain: Cow<'_, str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    integer(&plain).or_else(|| decimal(&plain))
}

/// As Go's `ParseInt` and `ParseUint` with base 0: `0x`, `0o`, `0b`, and a leading `0` for octal.
fn integer(text: &str) -> Option<f64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| char::from(digit).is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "values are doubles: whole numbers above 2^53 lose digits, as in the original")]
    let number = magnitude as f64;
    (!negative || magnitude <= 1 << 63).then_some(if negative { -number } else { number })
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn decimal(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    let has_mantissa = !whole.is_empty() || !fraction.is_empty();
    let has_exponent = exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    if !(has_mantissa && has_exponent && digits(whole) && digits(fraction)) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_yaml_v3() {
        let numbers = [
            ("0", 0.0),
            ("-0", 0.0),
            ("0777", 511.0),
            ("0o17", 15.0),
            ("0b101", 5.0),
            ("-0x10", -16.0),
            ("+1", 1.0),
            ("1_000", 1000.0),
            ("08", 8.0),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("1.", 1.0),
            ("-.5e-1", -0.05),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
        ];
        for (text, number) in numbers {
            assert_eq!(resolve(text), Resolved::Number(number), "{text}");
        }
        for text in [".", "-", "+", "1e", "0x", "_1", "1.2.3", "2024-01-01", "12:30", "1a", "0o8", "--1", "e3", "yes", "on", "No"] {
            assert_eq!(resolve(text), Resolved::Text(text.into()), "{text}");
        }
    }

    #[test]
    fn a_quoted_scalar_is_a_text_unless_a_tag_says_otherwise() {
        assert_eq!(resolve_tagged("1", false, None), Resolved::Text("1".into()));
        assert_eq!(resolve_tagged("1", true, Some("!!str")), Resolved::Text("1".into()));
        assert_eq!(resolve_tagged("1", false, Some("!!int")), Resolved::Number(1.0));
        assert_eq!(resolve_tagged("aGk=", true, Some("!!binary")), Resolved::Text("hi".into()));
        assert_eq!(resolve_tagged("yes", true, Some("!!bool")), Resolved::Boolean(true));
    }
}
