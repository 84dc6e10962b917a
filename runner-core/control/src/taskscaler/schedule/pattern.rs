//! One cron pattern: which minutes, or seconds, it names.

use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many fields a pattern has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Minute, hour, day of the month, month, day of the week.
    Five,
    /// The same with seconds before and years behind.
    Seven,
}

/// A cron pattern: `* 8-15 * * mon-fri`, `* * 9-17 * * mon-fri *`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Period {
    form: Form,
    text: String,
    second: Set,
    minute: Set,
    hour: Set,
    day: Set,
    month: Set,
    weekday: Set,
    year: Set,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeriodFault {
    #[error("it has {found} fields, not {wanted}")]
    Fields { found: usize, wanted: usize },
    #[error("`{text}` is no {field}")]
    NoValue { text: String, field: &'static str },
    #[error("{field} {value} is not between {least} and {most}")]
    OutOfRange { value: u16, field: &'static str, least: u16, most: u16 },
    #[error("`{text}` goes backwards")]
    Backwards { text: String },
    #[error("the step of `{text}` is no number above 0")]
    Step { text: String },
}

impl PeriodFault {
    /// The way out.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Fields { wanted: 5, .. } => "the fields are minute, hour, day of the month, month, day of the week",
            Self::Fields { .. } => "the fields are second, minute, hour, day of the month, month, day of the week, year",
            Self::Backwards { .. } => "write two ranges with a comma between them",
            _ => "write `*`, a value, a list `1,3`, a range `1-5`, or steps `*/2`",
        }
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.text
    }
}

impl TryFrom<String> for Period {
    type Error = PeriodFault;

    /// The number of its fields says which form it has.
    fn try_from(text: String) -> Result<Self, PeriodFault> {
        let form = if text.split_whitespace().count() == 7 { Form::Seven } else { Form::Five };
        Self::parse(&text, form)
    }
}

impl Period {
    pub(super) fn always() -> Self {
        let any = || Set { is_any: true, ranges: vec![Stretch { first: 0, last: u16::MAX, step: 1 }] };
        Self {
            form: Form::Five,
            text: "* * * * *".to_owned(),
            second: any(),
            minute: any(),
            hour: any(),
            day: any(),
            month: any(),
            weekday: any(),
            year: any(),
        }
    }

    /// Which seconds, and which minutes, are named plays no part.
    pub(super) fn is_whole_minutes(&self) -> bool {
        self.second.is_any
    }

    pub(super) fn is_whole_hours(&self) -> bool {
        self.second.is_any && self.minute.is_any
    }

    /// # Errors
    /// The first thing that makes no sense, from left to right.
    pub fn parse(text: &str, form: Form) -> Result<Self, PeriodFault> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let wanted = if form == Form::Five { 5 } else { 7 };
        if fields.len() != wanted {
            return Err(PeriodFault::Fields { found: fields.len(), wanted });
        }
        let any = "*";
        let (second, year) = if form == Form::Seven { (fields[0], fields[6]) } else { (any, any) };
        let fields = if form == Form::Seven { &fields[1..6] } else { &fields[..] };
        Ok(Self {
            form,
            text: text.to_owned(),
            second: Set::parse(second, &SECOND)?,
            minute: Set::parse(fields[0], &MINUTE)?,
            hour: Set::parse(fields[1], &HOUR)?,
            day: Set::parse(fields[2], &DAY)?,
            month: Set::parse(fields[3], &MONTH)?,
            weekday: Set::parse(fields[4], &WEEKDAY)?,
            year: Set::parse(year, &YEAR)?,
        })
    }

    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether the clock shows a moment that the pattern names.
    pub(super) fn matches(&self, clock: DateTime) -> bool {
        let number = |value: i8| u16::try_from(value).unwrap_or(0);
        self.second.has(number(clock.second()))
            && self.minute.has(number(clock.minute()))
            && self.hour.has(number(clock.hour()))
            && self.month.has(number(clock.month()))
            && self.year.has(u16::try_from(clock.year()).unwrap_or(0))
            && self.day_matches(number(clock.day()), number(clock.weekday().to_sunday_zero_offset()))
    }

    /// When both the day of the month and the day of the week are named, either is enough, as in every cron.
    fn day_matches(&self, day: u16, weekday: u16) -> bool {
        let (by_day, by_weekday) = (self.day.has(day), self.weekday.has(weekday) || (weekday == 0 && self.weekday.has(7)));
        match (self.day.is_any, self.weekday.is_any) {
            (false, false) => by_day || by_weekday,
            _ => by_day && by_weekday,
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Period({})", self.text)
    }
}

/// The values of one field: ranges with their steps.
#[derive(Clone, PartialEq, Eq)]
struct Set {
    is_any: bool,
    ranges: Vec<Stretch>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stretch {
    first: u16,
    last: u16,
    step: u16,
}

impl Set {
    fn parse(text: &str, field: &Field) -> Result<Self, PeriodFault> {
        let ranges = text.split(',').map(|part| Stretch::parse(part, field)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { is_any: ["*", "?"].contains(&text), ranges })
    }

    fn has(&self, value: u16) -> bool {
        self.ranges.iter().any(|range| (range.first..=range.last).contains(&value) && (value - range.first).is_multiple_of(range.step))
    }
}

impl Stretch {
    fn parse(text: &str, field: &Field) -> Result<Self, PeriodFault> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => {
                let step = step.parse().ok().filter(|step| *step > 0).ok_or_else(|| PeriodFault::Step { text: text.to_owned() })?;
                (range, Some(step))
            }
            None => (text, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (field.least, field.most),
            Some((first, last)) => (field.value(first)?, field.value(last)?),
            // `5/10` counts from 5 to the end.
            None => {
                let first = field.value(range)?;
                (first, if step.is_some() { field.most } else { first })
            }
        };
        if first > last {
            return Err(PeriodFault::Backwards { text: text.to_owned() });
        }
        Ok(Self { first, last, step: step.unwrap_or(1) })
    }
}

/// What may stand in a field.
struct Field {
    name: &'static str,
    least: u16,
    most: u16,
    /// Names of the values from `least` on.
    names: &'static [&'static str],
}

const SECOND: Field = Field { name: "second", least: 0, most: 59, names: &[] };
const MINUTE: Field = Field { name: "minute", least: 0, most: 59, names: &[] };
const HOUR: Field = Field { name: "hour", least: 0, most: 23, names: &[] };
const DAY: Field = Field { name: "day of the month", least: 1, most: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Field = Field { name: "day of the week", least: 0, most: 7, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };
const YEAR: Field = Field { name: "year", least: 1970, most: 2199, names: &[] };

impl Field {
    fn value(&self, text: &str) -> Result<u16, PeriodFault> {
        let by_name = || {
            // The documentation's `sunday` and `SUN` both begin so.
            let found = self.names.iter().position(|name| text.len() >= 3 && is_name(text, name))?;
            Some(self.least + u16::try_from(found).ok()?)
        };
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_number { text.parse().ok() } else { by_name() };
        let Some(value) = number else { return Err(PeriodFault::NoValue { text: text.to_owned(), field: self.name }) };
        if (self.least..=self.most).contains(&value) {
            return Ok(value);
        }
        Err(PeriodFault::OutOfRange { value, field: self.name, least: self.least, most: self.most })
    }
}

/// Three letters, or the whole English name.
fn is_name(text: &str, short: &str) -> bool {
    let whole = match short {
        "jan" => "january",
        "feb" => "february",
        "mar" => "march",
        "apr" => "april",
        "jun" => "june",
        "jul" => "july",
        "aug" => "august",
        "sep" => "september",
        "oct" => "october",
        "nov" => "november",
        "dec" => "december",
        "sun" => "sunday",
        "mon" => "monday",
        "tue" => "tuesday",
        "wed" => "wednesday",
        "thu" => "thursday",
        "fri" => "friday",
        "sat" => "saturday",
        other => other,
    };
    text.eq_ignore_ascii_case(short) || text.eq_ignore_ascii_case(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let fault = Period::parse(text, Form::Five).expect_err("no period");
        format!("{fault}; {}", fault.hint())
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        insta::assert_snapshot!(fault("* * *"), @"it has 3 fields, not 5; the fields are minute, hour, day of the month, month, day of the week");
        insta::assert_snapshot!(fault("* 24 * * *"), @"hour 24 is not between 0 and 23; write `*`, a value, a list `1,3`, a range `1-5`, or steps `*/2`");
        insta::assert_snapshot!(fault("* * * * fri-mon"), @"`fri-mon` goes backwards; write two ranges with a comma between them");
        insta::assert_snapshot!(fault("* * * * mondy"), @"`mondy` is no day of the week; write `*`, a value, a list `1,3`, a range `1-5`, or steps `*/2`");
        insta::assert_snapshot!(fault("*/0 * * * *"), @"the step of `*/0` is no number above 0; write `*`, a value, a list `1,3`, a range `1-5`, or steps `*/2`");
        insta::assert_snapshot!(fault("1,,2 * * * *"), @"`` is no minute; write `*`, a value, a list `1,3`, a range `1-5`, or steps `*/2`");
    }

    #[test]
    fn steps_and_lists_name_their_values() {
        let clock = |hour: i8, minute: i8| jiff::civil::date(2026, 3, 2).at(hour, minute, 0, 0);
        let period = Period::parse("5/20 0-12/2 * * *", Form::Five).expect("a period");
        assert!([5, 25, 45].iter().all(|minute| period.matches(clock(12, *minute))));
        assert!(!period.matches(clock(11, 5)) && !period.matches(clock(14, 5)) && !period.matches(clock(12, 0)));
    }

    #[test]
    fn either_day_is_enough_when_both_are_named() {
        let period = Period::parse("* * 13 * fri", Form::Five).expect("a period");
        let day = |day: i8| period.matches(jiff::civil::date(2026, 3, day).at(0, 0, 0, 0));
        assert_eq!([day(13), day(6), day(12)], [true, true, false]);
        let sunday = Period::parse("* * * * 7", Form::Five).expect("a period");
        assert!(sunday.matches(jiff::civil::date(2026, 3, 1).at(0, 0, 0, 0)));
    }
}
