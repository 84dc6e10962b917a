//! A table of the file whose keys are known and whose values have the right type. What was wrong is reported and not in it.

use crate::secret::{Opaque, Secret};
use crate::tables::{Default, Key, Kind, Table};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use step_model::time::Timestamp;

/// A value of the type that its key has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Secret(Secret),
    Flag(bool),
    Whole(i64),
    Number(f64),
    /// In nanoseconds; Go's may be negative.
    Duration(i64),
    Time(Timestamp),
    Texts(Vec<String>),
    Map(BTreeMap<String, String>),
    Flags(BTreeMap<String, bool>),
    Numbers(Vec<f64>),
    /// Only handed on.
    Free(Opaque),
    Table(Checked),
    Tables(Vec<Checked>),
}

#[derive(Clone, PartialEq)]
pub(crate) struct Checked {
    pub table: &'static Table,
    /// Its header, or where it stands.
    pub span: Range<usize>,
    pub given: BTreeMap<&'static str, Given>,
    /// The same as JSON, for whoever takes it as a whole.
    pub json: Opaque,
}

impl std::fmt::Debug for Checked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(self.table.name).field("given", &self.given.keys()).finish_non_exhaustive()
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    pub value: Value,
    pub key_span: Range<usize>,
    pub span: Range<usize>,
}

impl Checked {
    /// A table that does not stand in the file: everything has its default.
    pub fn absent(table: &'static Table) -> Self {
        Self { table, span: 0..0, given: BTreeMap::new(), json: Opaque::default() }
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        self.given.get(name).map(|given| &given.value)
    }

    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Where the value of a key stands; else the table.
    pub fn place(&self, name: &str) -> Range<usize> {
        self.given.get(name).map_or_else(|| self.span.clone(), |given| given.span.clone())
    }

    /// An empty text counts as none, as in Go.
    pub fn text(&self, name: &str) -> Option<String> {
        let text = match self.value(name) {
            Some(Value::Text(text)) => Some(text.clone()),
            Some(Value::Secret(text)) => Some(text.expose().to_owned()),
            _ => self.default(name).map(str::to_owned),
        };
        text.filter(|text| !text.is_empty())
    }

    pub fn secret(&self, name: &str) -> Option<Secret> {
        match self.value(name) {
            Some(Value::Secret(secret)) if !secret.is_blank() => Some(secret.clone()),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        self.flag_given(name).unwrap_or_else(|| self.default(name) == Some("true"))
    }

    pub fn flag_given(&self, name: &str) -> Option<bool> {
        match self.value(name) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub fn whole(&self, name: &str) -> i64 {
        self.whole_given(name).or_else(|| self.default(name)?.parse().ok()).unwrap_or(0)
    }

    pub fn whole_given(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Some(Value::Whole(number)) => Some(*number),
            _ => None,
        }
    }

    /// A number of things, where less than nothing counts as nothing.
    pub fn count(&self, name: &str) -> u64 {
        u64::try_from(self.whole(name)).unwrap_or(0)
    }

    /// A largest number of things, where 0 and less stand for any number.
    pub fn limit(&self, name: &str) -> Option<u64> {
        Some(self.count(name)).filter(|count| *count > 0)
    }

    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Some(Value::Number(number)) => *number,
            _ => self.default(name).and_then(|text| text.parse().ok()).unwrap_or(0.0),
        }
    }

    /// A duration, where less than nothing counts as nothing.
    pub fn duration(&self, name: &str) -> Duration {
        let text = || self.default(name).and_then(|text| crate::go_text::duration(text).ok());
        let nanoseconds = self.nanoseconds(name).or_else(text).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
    }

    /// A duration for which 0 and less mean that there is none.
    pub fn duration_above_zero(&self, name: &str) -> Option<Duration> {
        Some(self.duration(name)).filter(|duration| !duration.is_zero())
    }

    fn nanoseconds(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Some(Value::Duration(nanoseconds)) => Some(*nanoseconds),
            _ => None,
        }
    }

    /// A number of seconds, where less than nothing counts as nothing.
    pub fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.count(name))
    }

    /// A number of seconds, where 0 and less count as the default.
    pub fn seconds_above_zero(&self, name: &str) -> Duration {
        match self.count(name) {
            0 => Duration::from_secs(self.default(name).and_then(|text| text.parse().ok()).unwrap_or(0)),
            seconds => Duration::from_secs(seconds),
        }
    }

    pub fn time(&self, name: &str) -> Option<Timestamp> {
        match self.value(name) {
            Some(Value::Time(time)) => Some(*time),
            _ => None,
        }
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::Texts(texts)) => texts.clone(),
            _ => self.default(name).map(|text| vec![text.to_owned()]).unwrap_or_default(),
        }
    }

    pub fn map(&self, name: &str) -> BTreeMap<String, String> {
        match self.value(name) {
            Some(Value::Map(map)) => map.clone(),
            _ => BTreeMap::new(),
        }
    }

    pub fn flags(&self, name: &str) -> BTreeMap<String, bool> {
        match self.value(name) {
            Some(Value::Flags(flags)) => flags.clone(),
            _ => BTreeMap::new(),
        }
    }

    pub fn numbers(&self, name: &str) -> Vec<f64> {
        match self.value(name) {
            Some(Value::Numbers(numbers)) => numbers.clone(),
            _ => Vec::new(),
        }
    }

    pub fn free(&self, name: &str) -> Option<Opaque> {
        match self.value(name) {
            Some(Value::Free(value)) => Some(value.clone()),
            _ => None,
        }
    }

    pub fn table_given(&self, name: &str) -> Option<&Checked> {
        match self.value(name) {
            Some(Value::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// The table of this name; one with nothing but defaults if it does not stand in the file.
    pub fn table(&self, name: &str) -> Checked {
        let Kind::Table(table) = self.key(name).kind else { panic!("`{name}` of {} is a table", self.table.header()) };
        self.table_given(name).cloned().unwrap_or_else(|| Self::absent(table))
    }

    pub fn tables(&self, name: &str) -> &[Checked] {
        match self.value(name) {
            Some(Value::Tables(tables)) => tables,
            _ => &[],
        }
    }

    fn default(&self, name: &str) -> Option<&'static str> {
        match self.key(name).default {
            Default::Is(text) => Some(text),
            Default::Unset(_) => None,
        }
    }

    fn key(&self, name: &str) -> &'static Key {
        // The name stands in our own code: one that is in no table is a slip of ours.
        self.table.key(name).unwrap_or_else(|| panic!("{} has a key `{name}`", self.table.header()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::GLOBAL;

    #[test]
    fn every_default_has_the_type_of_its_key() {
        for table in GLOBAL.all() {
            for key in table.keys {
                let Default::Is(text) = key.default else { continue };
                let is_right = match key.kind {
                    Kind::Text => true,
                    Kind::Flag => ["true", "false"].contains(&text),
                    Kind::Whole | Kind::Seconds => text.parse::<i64>().is_ok(),
                    Kind::Number => text.parse::<f64>().is_ok() && text.contains('.'),
                    Kind::Duration => crate::go_text::duration(text).is_ok(),
                    Kind::SomeOf(choices) | Kind::OneOf(choices) => choices.contains(&text),
                    _ => false,
                };
                assert!(is_right, "{} {} = {text}", table.header(), key.name);
            }
        }
    }
}
