//! Values that are no tables: whether each is what its key wants, and as what it counts.

use crate::checked::Value;
use crate::gather::Gather;
use crate::raw::{self, Located};
use crate::schedule::{Form, Period, Zone};
use crate::tables::{Key, Kind};
use crate::{go_text, schedule};
use std::ops::Range;
use step_model::expression::nearest;
use step_model::time::Timestamp;

pub(crate) fn value(raw: &Located<raw::Value>, key: &'static Key, gather: &mut Gather<'_>) -> Option<Value> {
    let span = raw.span.clone();
    match (key.kind, &raw.value) {
        (Kind::Text | Kind::Script | Kind::Address, raw::Value::Text(text)) => Some(Value::Text(text.clone())),
        (Kind::Flag, raw::Value::Flag(flag)) => Some(Value::Flag(*flag)),
        (Kind::Whole | Kind::Seconds, raw::Value::Whole(number)) => whole(*number, key, span, gather).map(Value::Whole),
        (Kind::Number, raw::Value::Number(number)) => Some(Value::Number(*number)),
        (Kind::Number, raw::Value::Whole(number)) => {
            let number = whole(*number, key, span.clone(), gather)?;
            let message = format!("`{}` is an integer; GitLab's runner takes a floating-point number only", key.name);
            gather.note("integer", message, Some(span), format!("write `{number}.0`"));
            // Exact up to 2^53, far beyond any number of machines.
            number.to_string().parse().ok().map(Value::Number)
        }
        (Kind::Duration, raw::Value::Text(text)) => duration(text, key, span, gather).map(Value::Duration),
        (Kind::Duration, raw::Value::Whole(number)) => {
            let number = whole(*number, key, span.clone(), gather)?;
            let message = format!("`{}` is an integer and counts as {number} nanoseconds", key.name);
            gather.note("integer", message, Some(span), format!("write \"{number}s\" if seconds are meant"));
            Some(Value::Duration(number))
        }
        (Kind::Time, raw::Value::Time(text) | raw::Value::Text(text)) => time(text, key, span, gather).map(Value::Time),
        (Kind::OneOf(choices), raw::Value::Text(text)) => one_of(text, choices, key, span, gather).map(Value::Text),
        (Kind::SomeOf(choices), raw::Value::Text(text)) => one_of(text, choices, key, span, gather).map(|text| Value::Texts(vec![text])),
        (Kind::SomeOf(choices), raw::Value::List(items)) => {
            let texts = texts(items, key, gather);
            Some(Value::Texts(texts.into_iter().filter_map(|(text, span)| one_of(&text, choices, key, span, gather)).collect()))
        }
        (Kind::Texts | Kind::SecretTexts, raw::Value::List(items)) => {
            Some(Value::Texts(texts(items, key, gather).into_iter().map(|(text, _)| text).collect()))
        }
        (Kind::Periods(form), raw::Value::List(items)) => {
            let texts = texts(items, key, gather);
            Some(Value::Texts(texts.into_iter().filter_map(|(text, span)| period(text, form, span, gather)).collect()))
        }
        (Kind::Zone, raw::Value::Text(text)) => zone(text, key, span, gather).map(Value::Text),
        (Kind::Numbers, raw::Value::List(items)) => Some(Value::Numbers(numbers(items, key, gather))),
        (Kind::Wholes, raw::Value::List(items)) => {
            let wanted = |item: &&Located<raw::Value>| matches!(item.value, raw::Value::Whole(_));
            items.iter().filter(|item| !wanted(item)).for_each(|item| complain(item, key, gather));
            Some(Value::Free(crate::secret::Opaque::new(raw.value.json())))
        }
        _ => {
            complain(raw, key, gather);
            None
        }
    }
}

/// The value is of another type than the key wants.
pub(crate) fn complain(raw: &Located<raw::Value>, key: &'static Key, gather: &mut Gather<'_>) {
    let message = format!("`{}` is {}, but has to be {}", key.name, raw.value.kind(), key.kind.expected());
    let hint = match (key.kind, &raw.value) {
        (Kind::Text | Kind::Secret | Kind::Script | Kind::Address, raw::Value::Whole(_) | raw::Value::Number(_) | raw::Value::Flag(_)) => {
            "put it into quotes"
        }
        (Kind::Flag | Kind::Whole | Kind::Seconds | Kind::Number, raw::Value::Text(_)) => "write it without quotes",
        (Kind::Texts | Kind::SecretTexts | Kind::Periods(_), raw::Value::Text(_)) => "put it into brackets",
        (Kind::Whole | Kind::Seconds, raw::Value::Number(_)) => "write it without a point",
        _ => "",
    };
    gather.refuse("wrong-type", message, Some(raw.span.clone()), hint);
}

fn whole(number: Option<i64>, key: &Key, span: Range<usize>, gather: &mut Gather<'_>) -> Option<i64> {
    if number.is_none() {
        gather.refuse("too-large", format!("`{}` does not fit into 64 bits", key.name), Some(span), "");
    }
    number
}

fn duration(text: &str, key: &Key, span: Range<usize>, gather: &mut Gather<'_>) -> Option<i64> {
    match go_text::duration(text) {
        Ok(nanoseconds) => Some(nanoseconds),
        Err(fault) => {
            let message = format!("`{}` = `{text}` is no duration: {fault}", key.name);
            gather.refuse("no-duration", message, Some(span), "write a number with ns, us, ms, s, m or h, such as `1h30m`");
            None
        }
    }
}

/// Go writes the first year of all for a time that nobody has set.
fn time(text: &str, key: &Key, span: Range<usize>, gather: &mut Gather<'_>) -> Option<Timestamp> {
    let with_zone = text.parse::<jiff::Timestamp>();
    let parsed = with_zone.or_else(|_| {
        text.parse::<jiff::civil::DateTime>().and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC)).map(|time| time.timestamp())
    });
    let Ok(timestamp) = parsed else {
        gather.refuse("no-time", format!("`{}` is no date with a time", key.name), Some(span), "write it as `2026-01-31T12:00:00Z`");
        return None;
    };
    let nanoseconds = i64::try_from(timestamp.as_nanosecond()).ok()?;
    Some(Timestamp::from_nanoseconds(nanoseconds))
}

fn one_of(text: &str, choices: &[&'static str], key: &Key, span: Range<usize>, gather: &mut Gather<'_>) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let found = choices.iter().find(|choice| **choice == text).or_else(|| choices.iter().find(|choice| choice.eq_ignore_ascii_case(text)));
    if let Some(found) = found {
        return Some((*found).to_owned());
    }
    let listed = choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
    let hint = nearest(text, choices.iter().copied()).map(|near| format!("did you mean `{near}`?")).unwrap_or_default();
    gather.refuse("no-choice", format!("`{}` = `{text}` has to be one of {listed}", key.name), Some(span), hint);
    None
}

fn texts(items: &[Located<raw::Value>], key: &'static Key, gather: &mut Gather<'_>) -> Vec<(String, Range<usize>)> {
    let mut texts = Vec::new();
    for item in items {
        match &item.value {
            raw::Value::Text(text) => texts.push((text.clone(), item.span.clone())),
            other => {
                let message = format!("an item of `{}` is {}, but has to be a string", key.name, other.kind());
                gather.refuse("wrong-type", message, Some(item.span.clone()), "put it into quotes");
            }
        }
    }
    texts
}

/// Whole numbers count too: nobody writes `1.0` for a bucket.
fn numbers(items: &[Located<raw::Value>], key: &'static Key, gather: &mut Gather<'_>) -> Vec<f64> {
    let mut numbers = Vec::new();
    for item in items {
        match &item.value {
            raw::Value::Number(number) => numbers.push(*number),
            raw::Value::Whole(Some(number)) => numbers.extend(number.to_string().parse::<f64>()),
            other => {
                let message = format!("an item of `{}` is {}, but has to be a number", key.name, other.kind());
                gather.refuse("wrong-type", message, Some(item.span.clone()), "");
            }
        }
    }
    numbers
}

fn period(text: String, form: Form, span: Range<usize>, gather: &mut Gather<'_>) -> Option<String> {
    match Period::parse(&text, form) {
        Ok(_) => Some(text),
        Err(fault) => {
            gather.refuse("no-period", format!("`{text}` is no period: {fault}"), Some(span), fault.hint());
            None
        }
    }
}

fn zone(text: &str, key: &Key, span: Range<usize>, gather: &mut Gather<'_>) -> Option<String> {
    if Zone::parse(text).is_none() {
        let hint = schedule::nearest_zone(text).map(|near| format!("did you mean `{near}`?"));
        let hint = hint.unwrap_or_else(|| "write a name of the time zone database, such as `Europe/Berlin`, or nothing".to_owned());
        gather.refuse("no-zone", format!("`{}` = `{text}` is no time zone", key.name), Some(span), hint);
        return None;
    }
    Some(text.to_owned())
}
