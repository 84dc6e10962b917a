//! The log of a plugin: one JSON object a line on its standard error, as hclog writes them. Both sides.
//!
//! Source: observed F.5.1 and F.6.4. A Go host dies of a `@message`, `@level` or `@timestamp` that is no text; what is written here always is.

use jiff::Timestamp;
use serde_json::{Map, Value};
use std::io::Write as _;
use tracing::field::{Field, Visit};
use tracing::span;

/// What a plugin said.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub level: Level,
    /// `@module`: the part of the plugin that speaks.
    pub module: Option<String>,
    pub message: String,
    /// When, as the plugin says. `None` for plain text.
    pub timestamp: Option<Timestamp>,
    pub fields: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// Reads the lines of one process, which remembers that it has panicked.
#[derive(Debug, Default)]
pub struct Reader {
    panicked: bool,
}

impl Reader {
    pub fn read(&mut self, line: &str) -> Record {
        if let Some(record) = structured(line) {
            return record;
        }
        let message = line.trim_end().to_owned();
        self.panicked |= message.starts_with("panic: ") || message.starts_with("fatal error: ");
        let tags = [
            ("[TRACE]", Level::Trace),
            ("[DEBUG]", Level::Debug),
            ("[INFO]", Level::Info),
            ("[WARN]", Level::Warn),
            ("[ERROR]", Level::Error),
        ];
        let tagged = tags.iter().find(|(tag, _)| message.starts_with(tag)).map(|(_, level)| *level);
        let level = tagged.unwrap_or(if self.panicked { Level::Error } else { Level::Debug });
        Record { level, module: None, message, timestamp: None, fields: Map::new() }
    }
}

/// `None`: not a record, or one that has not what every record has.
fn structured(line: &str) -> Option<Record> {
    if !line.starts_with('{') {
        return None;
    }
    let Value::Object(mut fields) = serde_json::from_str(line).ok()? else { return None };
    let text = |value: Option<Value>| match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let level = match text(fields.remove("@level"))?.to_ascii_lowercase().as_str() {
        "trace" => Level::Trace,
        "debug" => Level::Debug,
        "info" => Level::Info,
        "warn" => Level::Warn,
        "error" => Level::Error,
        _ => return None,
    };
    let message = text(fields.remove("@message"))?;
    let timestamp = text(fields.remove("@timestamp"))?;
    if !timestamp.contains('.') {
        return None;
    }
    let timestamp = timestamp.parse().ok()?;
    let module = text(fields.remove("@module"));
    Some(Record { level, module, message, timestamp: Some(timestamp), fields })
}

/// One line, as a host reads it, with its end.
pub fn render(record: &Record) -> String {
    let level = match record.level {
        Level::Trace => "trace",
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    let mut line = Map::new();
    line.insert("@level".to_owned(), level.into());
    line.insert("@message".to_owned(), record.message.clone().into());
    let timestamp = record.timestamp.unwrap_or_else(Timestamp::now);
    line.insert("@timestamp".to_owned(), timestamp.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into());
    if let Some(module) = &record.module {
        line.insert("@module".to_owned(), module.clone().into());
    }
    for (name, value) in &record.fields {
        if !name.starts_with('@') {
            line.insert(name.clone(), value.clone());
        }
    }
    format!("{}\n", Value::Object(line))
}

/// Writes what this process logs for its host. Installed once, by a plugin.
pub struct Subscriber<W> {
    pub output: W,
    /// The crate of the plugin, of which all is written; libraries speak from warnings on.
    pub own: String,
}

impl<W> tracing::Subscriber for Subscriber<W>
where
    for<'a> &'a W: std::io::Write,
    W: Send + Sync + 'static,
{
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        let root = metadata.target().split("::").next().unwrap_or_default();
        let own = root == self.own || root == "fleeting" || root == env!("CARGO_CRATE_NAME");
        own || *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut told = Told::default();
        event.record(&mut told);
        let level = match *event.metadata().level() {
            tracing::Level::TRACE => Level::Trace,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::INFO => Level::Info,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::ERROR => Level::Error,
        };
        let record = Record { level, module: None, message: told.message, timestamp: None, fields: told.fields };
        // Nobody is left to be told that nobody listens.
        let _ = (&self.output).write_all(render(&record).as_bytes());
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

#[derive(Default)]
struct Told {
    message: String,
    fields: Map<String, Value>,
}

impl Told {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => _ = self.fields.insert(name.to_owned(), value),
        }
    }
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(line: &str) -> Level {
        Reader::default().read(line).level
    }

    #[test]
    fn flh_28_a_record_keeps_its_level_time_and_fields() {
        let line = r#"{"@level":"info","@message":"made","@timestamp":"2026-11-20T17:51:50.924137Z","@module":"m","n":2,"deep":{"a":[1]}}"#;
        let record = Reader::default().read(line);
        assert_eq!((record.level, record.message.as_str(), record.module.as_deref()), (Level::Info, "made", Some("m")));
        assert_eq!(Value::Object(record.fields.clone()), serde_json::json!({"n": 2, "deep": {"a": [1]}}));
        assert_eq!(record.timestamp, Some("2026-11-20T17:51:50.924137Z".parse().unwrap()));
        assert_eq!(Reader::default().read(render(&record).trim_end()), record, "what is written can be read");
        assert_eq!(level(&line.replace("info", "INFO")), Level::Info);
    }

    #[test]
    fn flh_29_a_record_whose_own_keys_are_no_texts_is_plain_text() {
        for line in [
            r#"{"@level":"info","@message":5,"@timestamp":"2026-11-20T17:51:50.924137Z"}"#,
            r#"{"@level":null,"@message":"m","@timestamp":"2026-11-20T17:51:50.924137Z"}"#,
            r#"{"@level":"info","@message":"m","@timestamp":"yesterday"}"#,
            r#"{"@level":"info","@message":"m","@timestamp":"2026-11-20T17:51:50Z"}"#,
            r#"{"@level":"loud","@message":"m","@timestamp":"2026-11-20T17:51:50.924137Z"}"#,
            r#"{"level":"info","msg":"m"}"#,
            "[1]",
            "{broken",
        ] {
            let record = Reader::default().read(line);
            assert_eq!((record.level, record.message.as_str()), (Level::Debug, line));
        }
    }

    #[test]
    fn tags_and_panics_choose_the_level_of_plain_text() {
        assert_eq!(level("[WARN] old"), Level::Warn);
        assert_eq!(level("2026/11/20 [WARN] old"), Level::Debug);
        let mut reader = Reader::default();
        let lines = ["before", "panic: nil", "goroutine 1", "[INFO] still"];
        assert_eq!(lines.map(|line| reader.read(line).level), [Level::Debug, Level::Error, Level::Error, Level::Info]);
    }

    #[test]
    fn own_keys_cannot_be_replaced_by_a_field_and_times_have_six_digits() {
        let mut fields = Map::new();
        fields.insert("@message".to_owned(), 5.into());
        let timestamp = Some("2026-11-20T17:51:50Z".parse().unwrap());
        let record = Record { level: Level::Warn, module: None, message: "m".to_owned(), timestamp, fields };
        let line: Value = serde_json::from_str(&render(&record)).unwrap();
        assert_eq!(line, serde_json::json!({"@level": "warn", "@message": "m", "@timestamp": "2026-11-20T17:51:50.000000Z"}));
    }
}
