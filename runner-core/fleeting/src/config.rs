//! The configuration of a plugin, `plugin_config` of a runner: every problem at once, each with the way out.

use crate::instance_group::Failure;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Reads keys one after the other and remembers what is wrong with them. [`Config::finish`] comes last.
#[derive(Debug)]
pub struct Config {
    table: Map<String, Value>,
    known: BTreeSet<&'static str>,
    problems: Vec<String>,
}

impl Config {
    /// `null` and an empty table are the same: nothing is configured.
    pub fn of(config: &Value) -> Self {
        let mut problems = Vec::new();
        let table = match config {
            Value::Null => Map::new(),
            Value::Object(table) => table.clone(),
            other => {
                problems.push(format!("the configuration is {}, it must be a table", kind(other)));
                Map::new()
            }
        };
        Self { table, known: BTreeSet::new(), problems }
    }

    /// Keys match in any case, as in plugins on the Go library.
    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.insert(key);
        let found = self.table.keys().find(|name| name.eq_ignore_ascii_case(key))?.clone();
        self.table.remove(&found).filter(|value| !value.is_null())
    }

    /// Something that only the caller can check was wrong.
    pub fn problem(&mut self, key: &str, what: impl std::fmt::Display) {
        self.problems.push(format!("{key}: {what}"));
    }

    fn wrong(&mut self, key: &str, value: &Value, wanted: &str) {
        self.problem(key, format!("{} is {}, it must be {wanted}", shown(value), kind(value)));
    }

    pub fn text(&mut self, key: &'static str) -> Option<String> {
        match self.take(key)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text),
            other => {
                self.wrong(key, &other, "a text");
                None
            }
        }
    }

    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        match self.take(key)? {
            Value::Bool(flag) => Some(flag),
            other => {
                self.wrong(key, &other, "true or false");
                None
            }
        }
    }

    /// A whole number in these bounds.
    pub fn count(&mut self, key: &'static str, bounds: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let value = self.take(key)?;
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| bounds.contains(number));
        if number.is_none() {
            self.wrong(key, &value, &format!("a whole number from {} to {}", bounds.start(), bounds.end()));
        }
        number
    }

    /// As GitLab writes times: `1h30m`, `90s`, `500ms`.
    pub fn duration(&mut self, key: &'static str) -> Option<Duration> {
        let value = self.take(key)?;
        let duration = value.as_str().and_then(duration);
        if duration.is_none() {
            self.wrong(key, &value, "a time such as \"90s\", \"5m\" or \"1h30m\"");
        }
        duration
    }

    pub fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let value = self.take(key)?;
        let texts = value.as_array().and_then(|list| list.iter().map(|text| text.as_str().map(ToOwned::to_owned)).collect());
        if texts.is_none() {
            self.wrong(key, &value, "a list of texts");
        }
        texts
    }

    /// Names with texts.
    pub fn table(&mut self, key: &'static str) -> Option<BTreeMap<String, String>> {
        let value = self.take(key)?;
        let text = |(name, value): (&String, &Value)| value.as_str().map(|text| (name.clone(), text.to_owned()));
        let table = value.as_object().and_then(|table| table.iter().map(text).collect());
        if table.is_none() {
            self.wrong(key, &value, "a table of texts");
        }
        table
    }

    /// What nobody asked for is said in the log, since a Go plugin would not even say that.
    /// # Errors
    /// All the problems, a line each.
    pub fn finish(self) -> Result<(), Failure> {
        for name in self.table.keys() {
            let meant = self.known.iter().find(|known| distance(known, name) <= 2);
            let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            tracing::warn!("plugin_config: `{name}` is not known and has no effect{hint}");
        }
        if self.problems.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = self.problems.iter().map(|problem| format!("plugin_config: {problem}")).collect();
        Err(Failure::refused(lines.join("\n")))
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// What was written, if it is short; a long one, or a table, may hold secrets.
fn shown(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) if text.len() <= 24 => format!("{text:?}"),
        _ => "it".to_owned(),
    }
}

/// `None`: it is no time.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = rest.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        let (unit, after) = unit.split_at(end);
        let part = match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            "h" => Duration::from_secs(number.checked_mul(3600)?),
            _ => return None,
        };
        sum = sum.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(sum)
}

/// How many letters differ, with room for one too many or too few.
fn distance(known: &str, typed: &str) -> usize {
    let (known, typed): (Vec<char>, Vec<char>) = (known.chars().collect(), typed.chars().flat_map(char::to_lowercase).collect());
    let mut row: Vec<usize> = (0..=typed.len()).collect();
    for (i, a) in known.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in typed.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[typed.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fls_13_no_configuration_in_three_spellings_gives_the_defaults() {
        for empty in [Value::Null, json!({}), json!({"name": null})] {
            let mut config = Config::of(&empty);
            assert_eq!((config.text("name"), config.count("size", 1..=9)), (None, None));
            assert_eq!(config.finish(), Ok(()));
        }
    }

    #[test]
    fn every_problem_is_told_with_the_way_out() {
        let mut config = Config::of(&json!({"Name": 5, "size": 10, "wait": "soon", "list": ["a", 1], "env": "A=B", "on": "yes"}));
        config.text("name");
        config.count("size", 1..=9);
        config.duration("wait");
        config.texts("list");
        config.table("env");
        config.flag("on");
        config.problem("name", "it is missing");
        insta::assert_snapshot!(config.finish().unwrap_err(), @r#"
        plugin_config: name: `5` is a number, it must be a text
        plugin_config: size: `10` is a number, it must be a whole number from 1 to 9
        plugin_config: wait: "soon" is a text, it must be a time such as "90s", "5m" or "1h30m"
        plugin_config: list: it is a list, it must be a list of texts
        plugin_config: env: "A=B" is a text, it must be a table of texts
        plugin_config: on: "yes" is a text, it must be true or false
        plugin_config: name: it is missing
        "#);
        assert!(Config::of(&json!([])).finish().unwrap_err().to_string().ends_with("the configuration is a list, it must be a table"));
    }

    #[test]
    fn times_are_read_as_gitlab_writes_them() {
        let read = |text| duration(text).map(|duration| duration.as_millis());
        assert_eq!(["1h30m", "90s", "500ms", "0s"].map(read), [Some(5_400_000), Some(90_000), Some(500), Some(0)]);
        assert_eq!(["", "5", "s", "5 s", "-5s", "5d", "99999999999999999999s"].map(read), [None; 7]);
    }

    #[test]
    fn a_name_that_is_nearly_right_is_recognised() {
        assert_eq!(
            ["directory", "directroy", "Directory", "max_sise"].map(|typed| distance("directory", typed) <= 2),
            [true, true, true, false]
        );
    }
}
