//! YAML in the form of Go's yaml.v3 with an indentation of four (`emitterc.go`, `encode.go`).

use crate::document::yaml::{Resolved, resolve};
use std::fmt::Write as _;

/// What is to be written.
pub(super) enum Tree {
    Text(String),
    /// A number, a boolean or null, as it stands.
    Plain(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// With a newline at the end.
pub(super) fn emit(tree: &Tree) -> String {
    let mut out = String::new();
    write_node(&mut out, tree, 0);
    out
}

/// The shortest form that reads back equal; whole numbers without a point.
pub(super) fn number(number: f64) -> String {
    if number.abs() >= 1e21 || (number != 0.0 && number.abs() < 1e-6) {
        let text = format!("{number:e}");
        return match text.split_once('e') {
            Some((mantissa, exponent)) if !exponent.starts_with('-') => format!("{mantissa}e+{exponent}"),
            _ => text,
        };
    }
    number.to_string()
}

/// Writes what stands behind a key, a `- `, or at the beginning, the end of the line included.
fn write_node(out: &mut String, tree: &Tree, indent: usize) {
    match tree {
        Tree::Plain(text) => out.push_str(text),
        Tree::Text(text) => return write_text(out, text, indent),
        Tree::List(items) if items.is_empty() => out.push_str("[]"),
        Tree::Map(entries) if entries.is_empty() => out.push_str("{}"),
        Tree::List(items) => return write_list(out, items, indent),
        Tree::Map(entries) => return write_map(out, entries, indent),
    }
    out.push('\n');
}

fn write_map(out: &mut String, entries: &[(String, Tree)], indent: usize) {
    for (number, (key, value)) in entries.iter().enumerate() {
        if number > 0 {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(&quoted_key(key));
        out.push(':');
        write_member(out, value, indent);
    }
}

fn write_member(out: &mut String, value: &Tree, indent: usize) {
    // collections stand on lines of their own, at the next multiple of four
    let inner = (indent + 4) / 4 * 4;
    match value {
        Tree::List(items) if !items.is_empty() => {
            out.push('\n');
            out.push_str(&" ".repeat(inner));
            write_list(out, items, inner);
        }
        Tree::Map(entries) if !entries.is_empty() => {
            out.push('\n');
            out.push_str(&" ".repeat(inner));
            write_map(out, entries, inner);
        }
        other => {
            out.push(' ');
            write_node(out, other, indent);
        }
    }
}

fn write_list(out: &mut String, items: &[Tree], indent: usize) {
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str("- ");
        write_node(out, item, indent + 2);
    }
}

/// A text as a value, with the end of its line.
fn write_text(out: &mut String, text: &str, indent: usize) {
    if text.contains('\n') && is_block_text(text) {
        return write_block(out, text, (indent + 4) / 4 * 4);
    }
    out.push_str(&quoted(text));
    out.push('\n');
}

fn write_block(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    match text.strip_suffix('\n') {
        None => out.push('-'),
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    out.push('\n');
    for line in text.split_inclusive('\n') {
        if line != "\n" {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(line);
    }
    if !text.ends_with('\n') {
        out.push('\n');
    }
}

/// A block shows its text as it is: no lines that end in blanks, nothing that cannot be seen, no doubt about its indentation.
fn is_block_text(text: &str) -> bool {
    let is_seen = |letter: char| letter == '\n' || letter == '\t' || is_printable(letter);
    text.chars().all(is_seen)
        && !text.starts_with([' ', '\n'])
        && !text.split('\n').any(|line| line.ends_with(' ') || line.starts_with('\t'))
}

fn quoted_key(key: &str) -> String {
    // a key stands on one line, and a long one is no simple key
    if key.contains('\n') { double_quoted(key) } else { quoted(key) }
}

/// On one line: plain where that reads back as the same text, else in quotes.
fn quoted(text: &str) -> String {
    if text.contains('\n') || !text.chars().all(|letter| letter == '\t' || is_printable(letter)) {
        return double_quoted(text);
    }
    if looks_like_something_else(text) {
        return double_quoted(text);
    }
    if is_plain(text) { text.into() } else { format!("'{}'", text.replace('\'', "''")) }
}

fn is_plain(text: &str) -> bool {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return false };
    let second = letters.next();
    let is_blank = |letter: Option<char>| letter.is_none_or(|letter| letter == ' ' || letter == '\t');
    let begins_well = match first {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => false,
        '-' | '?' | ':' => !is_blank(second),
        _ => !text.starts_with("---") && !text.starts_with("..."),
    };
    begins_well
        && !text.starts_with("---")
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.contains('\t')
        && !text.contains(": ")
        && !text.ends_with(':')
        && !text.contains(" #")
}

/// A text that would be read as null, a boolean, a number or a date, also by readers of YAML 1.1.
fn looks_like_something_else(text: &str) -> bool {
    const OLD_BOOLEANS: [&str; 16] = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"];
    text == "<<" || !matches!(resolve(text), Resolved::Text(_)) || OLD_BOOLEANS.contains(&text) || is_date(text) || is_base_60(text)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let digits = |part: Option<&str>, least: usize, most: usize| {
        part.is_some_and(|part| (least..=most).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let (year, month, rest) = (parts.next(), parts.next(), parts.next());
    let day = rest.map(|rest| &rest[..rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len())]);
    let time = rest.zip(day).map(|(rest, day)| &rest[day.len()..]);
    digits(year, 4, 4)
        && digits(month, 1, 2)
        && digits(day, 1, 2)
        && time.is_some_and(|time| time.is_empty() || time.starts_with(['T', 't', ' ']))
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let minutes: Vec<&str> = parts.collect();
    let is_minute = |part: &&str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    let digits = |part: &str| part.bytes().all(|letter| letter.is_ascii_digit() || letter == b'_');
    first.starts_with(|digit: char| digit.is_ascii_digit())
        && digits(first)
        && !minutes.is_empty()
        && minutes.iter().all(is_minute)
        && digits(fraction)
}

/// As YAML has it, with the letters of all languages.
fn is_printable(letter: char) -> bool {
    matches!(letter, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
        && !matches!(letter, '\u{2028}' | '\u{2029}')
}

fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            letter if is_printable(letter) => out.push(letter),
            letter if u32::from(letter) < 0x100 => drop(write!(out, "\\x{:02X}", u32::from(letter))),
            letter if u32::from(letter) < 0x10000 => drop(write!(out, "\\u{:04X}", u32::from(letter))),
            letter => drop(write!(out, "\\U{:08X}", u32::from(letter))),
        }
    }
    out.push('"');
    out
}
