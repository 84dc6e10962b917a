//! Writes messages in protobuf's JSON or text format to a stream, field by field.

pub(super) mod messages;

use prost_types::value::Kind;
use std::io::{self, Write};
use step_model::masking::Secrets;
use step_model::value::Value;

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One line without blanks.
    Json,
    PrettyJson,
    /// Protobuf's text format, one line.
    Text,
    PrettyText,
}

/// The name of a field in JSON and in text format.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) json: &'static str,
    pub(super) text: &'static str,
}

impl Field {
    /// A field of one word.
    pub(super) const fn of(name: &'static str) -> Self {
        Self { json: name, text: name }
    }

    pub(super) const fn named(json: &'static str, text: &'static str) -> Self {
        Self { json, text }
    }
}

pub(super) struct Printer<'w> {
    out: &'w mut dyn Write,
    format: Format,
    /// Every text is masked: nothing that is masked in the log is in clear here, wherever a document or a message holds it. Names, digests
    /// and what the format itself says are not: a reader needs them, and they are no values.
    secrets: Option<&'w Secrets>,
    /// How many messages, maps and lists are open.
    depth: usize,
    /// Nothing has been written since the innermost was opened.
    fresh: bool,
}

type Body<'b, 'w> = &'b mut dyn FnMut(&mut Printer<'w>) -> io::Result<()>;

impl<'w> Printer<'w> {
    pub(super) fn new(out: &'w mut dyn Write, format: Format, secrets: Option<&'w Secrets>) -> Self {
        Self { out, format, secrets, depth: 0, fresh: true }
    }

    /// The message that holds all others.
    pub(super) fn root(&mut self, body: Body<'_, 'w>) -> io::Result<()> {
        match self.format {
            Format::Text | Format::PrettyText => body(self)?,
            Format::Json | Format::PrettyJson => self.braces('{', '}', body)?,
        }
        self.out.write_all(b"\n")
    }

    pub(super) fn message(&mut self, field: Field, body: Body<'_, 'w>) -> io::Result<()> {
        self.name(field)?;
        self.braces('{', '}', body)
    }

    /// A message without a name: the value of an entry of a map.
    pub(super) fn bare_message(&mut self, body: Body<'_, 'w>) -> io::Result<()> {
        self.braces('{', '}', body)
    }

    /// A repeated message; left out when there are none.
    pub(super) fn messages<T>(
        &mut self,
        field: Field,
        items: &[T],
        body: &mut dyn FnMut(&mut Printer<'w>, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        if self.is_text() {
            return items.iter().try_for_each(|item| self.message(field, &mut |printer| body(printer, item)));
        }
        self.name(field)?;
        self.braces('[', ']', &mut |printer| {
            items.iter().try_for_each(|item| {
                printer.separate()?;
                printer.braces('{', '}', &mut |printer| body(printer, item))
            })
        })
    }

    /// A map of messages or values; left out when it is empty.
    pub(super) fn map<V>(
        &mut self,
        field: Field,
        entries: &std::collections::BTreeMap<String, V>,
        body: &mut dyn FnMut(&mut Printer<'w>, &V) -> io::Result<()>,
    ) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        if self.is_text() {
            return entries.iter().try_for_each(|(key, value)| {
                self.message(field, &mut |printer| {
                    printer.name(Field::of("key"))?;
                    printer.as_it_is(key)?;
                    printer.name(Field::of("value"))?;
                    body(printer, value)
                })
            });
        }
        self.name(field)?;
        self.braces('{', '}', &mut |printer| {
            entries.iter().try_for_each(|(key, value)| {
                printer.separate()?;
                printer.as_it_is(key)?;
                printer.colon()?;
                body(printer, value)
            })
        })
    }

    pub(super) fn string_map(&mut self, field: Field, entries: &std::collections::BTreeMap<String, String>) -> io::Result<()> {
        self.map(field, entries, &mut |printer, text| printer.quoted(text))
    }

    pub(super) fn value_map(&mut self, field: Field, entries: &std::collections::BTreeMap<String, prost_types::Value>) -> io::Result<()> {
        self.map(field, entries, &mut |printer, value| printer.bare_value(value))
    }

    pub(super) fn strings(&mut self, field: Field, items: &[String]) -> io::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        if self.is_text() {
            return items.iter().try_for_each(|item| {
                self.name(field)?;
                self.quoted(item)
            });
        }
        self.name(field)?;
        self.braces('[', ']', &mut |printer| {
            items.iter().try_for_each(|item| {
                printer.separate()?;
                printer.quoted(item)
            })
        })
    }

    /// Left out when it is empty.
    pub(super) fn string(&mut self, field: Field, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.name(field)?;
        self.quoted(text)
    }

    /// A name or a digest, which is never masked. Left out when it is empty.
    pub(super) fn plain(&mut self, field: Field, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.name(field)?;
        self.as_it_is(text)
    }

    /// Left out when it is zero.
    pub(super) fn integer(&mut self, field: Field, number: i64) -> io::Result<()> {
        if number == 0 {
            return Ok(());
        }
        self.name(field)?;
        write!(self.out, "{number}")
    }

    /// Left out when there are none.
    pub(super) fn integers(&mut self, field: Field, numbers: &[i32]) -> io::Result<()> {
        if numbers.is_empty() {
            return Ok(());
        }
        let listed = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        self.name(field)?;
        write!(self.out, "[{listed}]")
    }

    /// In JSON a text, since numbers there are doubles. Left out when it is zero.
    pub(super) fn large_integer(&mut self, field: Field, number: u64) -> io::Result<()> {
        if number == 0 {
            return Ok(());
        }
        self.name(field)?;
        if self.is_text() { write!(self.out, "{number}") } else { write!(self.out, "\"{number}\"") }
    }

    /// Left out when it is zero. The shortest text that is read back as the same number.
    pub(super) fn number(&mut self, field: Field, number: f64) -> io::Result<()> {
        if number == 0.0 || !number.is_finite() {
            return Ok(());
        }
        self.name(field)?;
        write!(self.out, "{number}")
    }

    /// Left out when it is false.
    pub(super) fn boolean(&mut self, field: Field, is: bool) -> io::Result<()> {
        if !is {
            return Ok(());
        }
        self.name(field)?;
        self.out.write_all(b"true")
    }

    /// By its name. Left out when it is the first one, which says nothing.
    pub(super) fn enumeration(&mut self, field: Field, number: i32, name: &str) -> io::Result<()> {
        if number == 0 {
            return Ok(());
        }
        self.name(field)?;
        if self.is_text() { self.out.write_all(name.as_bytes()) } else { self.as_it_is(name) }
    }

    /// A `google.protobuf.Value`.
    pub(super) fn value(&mut self, field: Field, value: &prost_types::Value) -> io::Result<()> {
        self.name(field)?;
        self.bare_value(value)
    }

    fn bare_value(&mut self, value: &prost_types::Value) -> io::Result<()> {
        if self.is_text() {
            return self.braces('{', '}', &mut |printer| printer.value_in_text(value));
        }
        match &value.kind {
            None | Some(Kind::NullValue(_)) => self.out.write_all(b"null"),
            Some(Kind::BoolValue(boolean)) => write!(self.out, "{boolean}"),
            Some(Kind::NumberValue(number)) => write!(self.out, "{}", Value::from(*number).to_json()),
            Some(Kind::StringValue(text)) => self.quoted(text),
            Some(Kind::ListValue(list)) => self.braces('[', ']', &mut |printer| {
                list.values.iter().try_for_each(|item| {
                    printer.separate()?;
                    printer.bare_value(item)
                })
            }),
            Some(Kind::StructValue(object)) => self.braces('{', '}', &mut |printer| {
                object.fields.iter().try_for_each(|(key, value)| {
                    printer.separate()?;
                    printer.quoted(key)?;
                    printer.colon()?;
                    printer.bare_value(value)
                })
            }),
        }
    }

    /// The fields of a `google.protobuf.Value`: in text format it is a message as any other.
    fn value_in_text(&mut self, value: &prost_types::Value) -> io::Result<()> {
        match &value.kind {
            None => Ok(()),
            Some(Kind::NullValue(_)) => self.word("null_value", "NULL_VALUE"),
            Some(Kind::BoolValue(boolean)) => self.word("bool_value", if *boolean { "true" } else { "false" }),
            Some(Kind::NumberValue(number)) => self.word("number_value", &Value::from(*number).to_json().to_string()),
            Some(Kind::StringValue(text)) => {
                self.name(Field::of("string_value"))?;
                self.quoted(text)
            }
            Some(Kind::ListValue(list)) => self.message(Field::of("list_value"), &mut |printer| {
                list.values.iter().try_for_each(|item| printer.value(Field::of("values"), item))
            }),
            // Unlike the names of a map of values, the keys of an object are a part of the value.
            Some(Kind::StructValue(object)) => self.message(Field::of("struct_value"), &mut |printer| {
                object.fields.iter().try_for_each(|(key, value)| {
                    printer.message(Field::of("fields"), &mut |printer| {
                        printer.name(Field::of("key"))?;
                        printer.quoted(key)?;
                        printer.value(Field::of("value"), value)
                    })
                })
            }),
        }
    }

    fn word(&mut self, name: &'static str, word: &str) -> io::Result<()> {
        self.name(Field::of(name))?;
        self.out.write_all(word.as_bytes())
    }

    pub(super) fn timestamp(&mut self, field: Field, timestamp: &prost_types::Timestamp) -> io::Result<()> {
        if self.is_text() {
            return self.seconds_and_nanos(field, timestamp.seconds, timestamp.nanos);
        }
        self.name(field)?;
        let nanoseconds = timestamp.seconds.saturating_mul(1_000_000_000).saturating_add(timestamp.nanos.into());
        write!(self.out, "\"{}\"", step_model::time::Timestamp::from_nanoseconds(nanoseconds))
    }

    pub(super) fn duration(&mut self, field: Field, duration: &prost_types::Duration) -> io::Result<()> {
        if self.is_text() {
            return self.seconds_and_nanos(field, duration.seconds, duration.nanos);
        }
        self.name(field)?;
        if duration.nanos == 0 {
            return write!(self.out, "\"{}s\"", duration.seconds);
        }
        let fraction = format!("{:09}", duration.nanos);
        write!(self.out, "\"{}.{}s\"", duration.seconds, fraction.trim_end_matches('0'))
    }

    fn seconds_and_nanos(&mut self, field: Field, seconds: i64, nanos: i32) -> io::Result<()> {
        self.message(field, &mut |printer| {
            printer.integer(Field::of("seconds"), seconds)?;
            printer.integer(Field::of("nanos"), nanos.into())
        })
    }

    fn is_text(&self) -> bool {
        matches!(self.format, Format::Text | Format::PrettyText)
    }

    fn name(&mut self, field: Field) -> io::Result<()> {
        self.separate()?;
        if self.is_text() {
            self.out.write_all(field.text.as_bytes())?;
        } else {
            write!(self.out, "\"{}\"", field.json)?;
        }
        self.colon()
    }

    fn colon(&mut self) -> io::Result<()> {
        self.out.write_all(if matches!(self.format, Format::PrettyJson | Format::PrettyText) { b": " } else { b":" })
    }

    /// What stands between this field or item and the one before it.
    fn separate(&mut self) -> io::Result<()> {
        let first = std::mem::replace(&mut self.fresh, false);
        match self.format {
            Format::Json if first => Ok(()),
            Format::Json => self.out.write_all(b","),
            Format::Text if first => Ok(()),
            Format::Text => self.out.write_all(b" "),
            Format::PrettyJson => {
                self.out.write_all(if first { b"" } else { b"," })?;
                self.line()
            }
            Format::PrettyText if first && self.depth == 0 => Ok(()),
            Format::PrettyText => self.line(),
        }
    }

    fn braces(&mut self, open: char, close: char, body: Body<'_, 'w>) -> io::Result<()> {
        write!(self.out, "{open}")?;
        (self.depth, self.fresh) = (self.depth + 1, true);
        body(self)?;
        self.depth -= 1;
        if !self.fresh && matches!(self.format, Format::PrettyJson | Format::PrettyText) {
            self.line()?;
        }
        self.fresh = false;
        write!(self.out, "{close}")
    }

    fn line(&mut self) -> io::Result<()> {
        write!(self.out, "\n{:indent$}", "", indent = self.depth * 2)
    }

    fn quoted(&mut self, text: &str) -> io::Result<()> {
        let masked = self.secrets.map_or_else(|| text.into(), |secrets| secrets.mask(text));
        self.as_it_is(&masked)
    }

    fn as_it_is(&mut self, text: &str) -> io::Result<()> {
        if !self.is_text() {
            return serde_json::to_writer(&mut *self.out, text).map_err(io::Error::from);
        }
        self.out.write_all(b"\"")?;
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| *byte < b' ' || matches!(byte, b'"' | b'\\' | 0x7f)) {
            self.out.write_all(&text.as_bytes()[plain..at])?;
            plain = at + 1;
            match byte {
                b'\n' => self.out.write_all(b"\\n")?,
                b'\r' => self.out.write_all(b"\\r")?,
                b'\t' => self.out.write_all(b"\\t")?,
                b'"' | b'\\' => self.out.write_all(&[b'\\', byte])?,
                byte => write!(self.out, "\\{byte:03o}")?,
            }
        }
        self.out.write_all(&text.as_bytes()[plain..])?;
        self.out.write_all(b"\"")
    }
}
