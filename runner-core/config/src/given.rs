//! What stands in a file, key by key, so that two files can be compared.

use crate::checked::{Checked, Value};
use crate::secret::{Secret, names_an_account};
use crate::tables::Kind;
use std::collections::BTreeMap;
use std::fmt;

/// Each key that stands in a table or in those inside it, by its path: `docker.image`, `autoscaler.policy[0].idle_count`.
pub type Given = BTreeMap<String, Shown>;

/// A value, as it may be shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    Plain(String),
    Hidden(Secret),
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => f.write_str(text),
            Self::Hidden(_) => f.write_str("[hidden]"),
        }
    }
}

/// All of a table but the lists of tables that are named: they are compared one by one.
pub(crate) fn of(table: &Checked, without: &[&str]) -> Given {
    let mut given = Given::new();
    for (name, entry) in &table.given {
        if !without.contains(name) {
            let kind = table.table.key(name).map_or(Kind::Secret, |key| key.kind);
            add(&mut given, name, &entry.value, kind);
        }
    }
    given
}

fn add(given: &mut Given, path: &str, value: &Value, kind: Kind) {
    match value {
        Value::Table(table) => given.extend(of(table, &[]).into_iter().map(|(inner, shown)| (format!("{path}.{inner}"), shown))),
        Value::Tables(tables) => {
            for (index, table) in tables.iter().enumerate() {
                given.extend(of(table, &[]).into_iter().map(|(inner, shown)| (format!("{path}[{index}].{inner}"), shown)));
            }
        }
        other => {
            let text = text(other);
            let is_secret = kind.is_secret() || matches!(kind, Kind::Lists) || names_an_account(&text, kind);
            given.insert(path.to_owned(), if is_secret { Shown::Hidden(Secret::new(text)) } else { Shown::Plain(text) });
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => serde_json::json!(text).to_string(),
        Value::Secret(secret) => secret.expose().to_owned(),
        Value::Flag(flag) => flag.to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Duration(nanoseconds) => {
            let shown = jiff::SignedDuration::from_nanos(*nanoseconds);
            format!("{shown:#}")
        }
        Value::Time(time) => time.to_string(),
        Value::Texts(texts) => serde_json::json!(texts).to_string(),
        Value::Map(map) => serde_json::json!(map).to_string(),
        Value::Flags(flags) => serde_json::json!(flags).to_string(),
        Value::Numbers(numbers) => serde_json::json!(numbers).to_string(),
        Value::Free(value) => value.expose().to_string(),
        Value::Table(_) | Value::Tables(_) => String::new(),
    }
}
