//! What stands in a configuration file, with the place of everything. The door to the TOML library.

use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A value and the bytes of the file that it stands in.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    pub value: T,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    /// `None`: too large for 64 bits.
    Whole(Option<i64>),
    Number(f64),
    Flag(bool),
    /// A date, a time or both, as it was written.
    Time(String),
    List(Vec<Located<Value>>),
    Table(Table),
}

impl Value {
    /// With its article, as messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Whole(_) => "an integer",
            Self::Number(_) => "a floating-point number",
            Self::Flag(_) => "a boolean",
            Self::Time(_) => "a date",
            Self::List(_) => "an array",
            Self::Table(_) => "a table",
        }
    }

    /// As JSON: dates become strings, and what JSON has no number for becomes null.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) | Self::Time(text) => serde_json::Value::String(text.clone()),
            Self::Whole(number) => serde_json::Value::from(*number),
            Self::Number(number) => serde_json::Value::from(*number),
            Self::Flag(flag) => serde_json::Value::Bool(*flag),
            Self::List(items) => items.iter().map(|item| item.value.json()).collect(),
            Self::Table(table) => table.json(),
        }
    }
}

/// The entries of a table in the order of the file. No key occurs twice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub entries: Vec<Entry>,
}

impl Table {
    pub fn json(&self) -> serde_json::Value {
        self.entries.iter().map(|entry| (entry.key.value.clone(), entry.value.value.json())).collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: Located<String>,
    /// Of a table with a header, the place is the header.
    pub value: Located<Value>,
}

/// What the grammar does not allow. The text is the library's.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub message: String,
    pub span: Range<usize>,
}

/// Reads a text as far as it can be read: each fault of the grammar is told, and what stands around it is there.
pub fn read(text: &str) -> (Table, Vec<Fault>) {
    let (root, faults) = DeTable::parse_recoverable(text);
    let faults: Vec<Fault> = faults
        .into_iter()
        .map(|fault| Fault { message: fault.message().to_owned(), span: fault.span().unwrap_or(text.len()..text.len()) })
        .collect();
    let mut root = table_of(root.into_inner());
    let torn: Vec<Range<usize>> = faults.iter().map(|fault: &Fault| line_of(text, fault.span.start)).collect();
    drop_torn(&mut root, &torn);
    (root, faults)
}

fn line_of(text: &str, at: usize) -> Range<usize> {
    let at = at.min(text.len());
    let bytes = text.as_bytes();
    let start = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| at + length);
    start..end
}

/// What was read on a line that breaks the grammar may be anything, a comment or half of a password: only whole tables are kept.
fn drop_torn(table: &mut Table, torn: &[Range<usize>]) {
    let touches = |span: &Range<usize>| torn.iter().any(|line| span.start <= line.end && line.start <= span.end);
    let is_name = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-+.".contains(&byte));
    table.entries.retain(|entry| {
        let is_table = matches!(entry.value.value, Value::Table(_))
            || matches!(&entry.value.value, Value::List(items) if items.iter().any(|item| matches!(item.value, Value::Table(_))));
        let is_torn = touches(&entry.key.span) || touches(&entry.value.span);
        !is_torn || (is_table && is_name(&entry.key.value))
    });
    for entry in &mut table.entries {
        match &mut entry.value.value {
            Value::Table(inner) => drop_torn(inner, torn),
            Value::List(items) => {
                items.retain(|item| matches!(item.value, Value::Table(_)) || !touches(&item.span));
                for item in items {
                    if let Value::Table(inner) = &mut item.value {
                        drop_torn(inner, torn);
                    }
                }
            }
            _ => {}
        }
    }
}

fn table_of(table: DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = table.into_iter().map(|(key, value)| entry_of(key, value)).collect();
    entries.sort_by_key(|entry| entry.key.span.start);
    Table { entries }
}

fn entry_of(key: Spanned<DeString<'_>>, value: Spanned<DeValue<'_>>) -> Entry {
    let span = key.span();
    Entry { key: Located { value: key.into_inner().into_owned(), span }, value: located(value) }
}

fn located(value: Spanned<DeValue<'_>>) -> Located<Value> {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => Value::Whole(i64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Float(number) => Value::Number(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(time) => Value::Time(time.to_string()),
        DeValue::Array(items) => Value::List(items.into_iter().map(located).collect()),
        DeValue::Table(table) => Value::Table(table_of(table)),
    };
    Located { value, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_its_place_and_its_order() {
        let text = "b = 0x10\na = \"x\"\n[[runners]]\nname = 'r'\n  [runners.docker]\n  image = 'i'\n";
        let (table, faults) = read(text);
        assert_eq!(faults, []);
        let shown: Vec<(&str, &str)> =
            table.entries.iter().map(|entry| (&text[entry.key.span.clone()], &text[entry.value.span.clone()])).collect();
        assert_eq!(shown, [("b", "0x10"), ("a", "\"x\""), ("runners", "[[runners]]")]);
        let Value::List(runners) = &table.entries[2].value.value else { panic!("an array of tables") };
        let Value::Table(runner) = &runners[0].value else { panic!("a table") };
        assert_eq!(&text[runners[0].span.clone()], "[[runners]]");
        assert_eq!(&text[runner.entries[1].value.span.clone()], "[runners.docker]");
    }

    #[test]
    fn all_faults_of_the_grammar_are_told() {
        let (table, faults) = read("a = \nb = 1\nc = [1,\nd = \"x\nb = 2\n");
        assert!(faults.len() >= 3, "{faults:#?}");
        // The line of the second `b` breaks the grammar, since there is another; the first one stays.
        let left: Vec<&str> = table.entries.iter().map(|entry| entry.key.value.as_str()).collect();
        assert_eq!(left, ["b"]);
    }
}
