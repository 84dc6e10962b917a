//! When a schedule begins or ends next, so that nobody looks at the clock in between.

use super::{Form, NamedZone, Period, Schedule};
use step_model::time::Timestamp;

const SECOND: i64 = 1_000_000_000;
/// Further ahead nobody looks: whoever asks looks again then.
const HORIZON: i64 = 31 * 24 * 3600 * SECOND;

/// The first moment after `at` at which a schedule of a list begins or ends; no later than a month after.
pub fn next_change<'a>(schedules: impl IntoIterator<Item = &'a Schedule>, at: Timestamp, host: &NamedZone) -> Timestamp {
    let latest = Timestamp::from_nanoseconds(at.nanoseconds().saturating_add(HORIZON));
    schedules.into_iter().map(|schedule| change(schedule, at, latest, host)).min().unwrap_or(latest)
}

fn change(schedule: &Schedule, at: Timestamp, latest: Timestamp, host: &NamedZone) -> Timestamp {
    let grain = Grain::of(schedule.periods());
    let now = schedule.is_active(at, host);
    let mut moment = at;
    while moment < latest {
        moment = after(moment, schedule.zone(host), grain);
        if schedule.is_active(moment, host) != now {
            return moment;
        }
    }
    latest
}

/// The smallest stretch of time that periods tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Grain {
    Second,
    Minute,
    Hour,
}

impl Grain {
    fn of(periods: &[Period]) -> Self {
        let grain = |period: &Period| match period.is_whole_hours() {
            // The second before an hour may end a period with seconds.
            true if period.form() == Form::Five => Self::Hour,
            _ if period.is_whole_minutes() => Self::Minute,
            _ => Self::Second,
        };
        periods.iter().map(grain).min().unwrap_or(Self::Hour)
    }
}

/// The next moment at which something of this grain can begin or end. By the hour and not by the day, since days are not equally long.
fn after(moment: Timestamp, zone: &NamedZone, grain: Grain) -> Timestamp {
    let clock = zone.clock(moment);
    let (minute, second) = (i64::from(clock.minute()), i64::from(clock.second()));
    let seconds = match grain {
        Grain::Second => 1,
        // The 59th second is one at which a period with seconds ends.
        Grain::Minute if second < 59 => 59 - second,
        Grain::Minute => 1,
        Grain::Hour => 3600 - minute * 60 - second,
    };
    let whole = moment.nanoseconds() - moment.nanoseconds().rem_euclid(SECOND);
    Timestamp::from_nanoseconds(whole.saturating_add(seconds * SECOND))
}

#[cfg(test)]
mod tests {
    use super::super::{Form, Zone};
    use super::*;

    fn schedule(pattern: &str, form: Form, zone: &str) -> Schedule {
        Schedule::new(vec![Period::parse(pattern, form).expect("a period")], Zone::parse(zone).expect("a zone"))
    }

    fn at(text: &str) -> Timestamp {
        NamedZone::utc().moment(text).expect("a moment")
    }

    fn next(schedule: &Schedule, from: &str) -> String {
        next_change([schedule], at(from), &NamedZone::utc()).to_string()
    }

    #[test]
    fn a_period_begins_and_ends_at_its_moments() {
        let office = schedule("* 8-15 * * mon-fri", Form::Five, "UTC");
        // 2026-03-02 is a Monday.
        assert_eq!(next(&office, "2026-03-01T12:34:56.7Z"), "2026-03-02T08:00:00Z");
        assert_eq!(next(&office, "2026-03-02T08:00:00Z"), "2026-03-02T16:00:00Z");
        assert_eq!(next(&office, "2026-03-06T16:00:00Z"), "2026-03-09T08:00:00Z");
        let half_hours = schedule("0-30 13,16 * * SUN", Form::Five, "UTC");
        assert_eq!(next(&half_hours, "2026-03-01T13:00:00Z"), "2026-03-01T13:31:00Z");
    }

    #[test]
    fn a_period_with_seconds_ends_a_second_early() {
        let office = schedule("* * 9-17 * * mon-fri *", Form::Seven, "UTC");
        assert_eq!(next(&office, "2026-03-02T09:00:00Z"), "2026-03-02T17:59:59Z");
        assert_eq!(next(&office, "2026-03-02T17:59:59Z"), "2026-03-03T09:00:00Z");
        let some = schedule("10-19 * * * * * *", Form::Seven, "UTC");
        assert_eq!(next(&some, "2026-03-02T09:00:00Z"), "2026-03-02T09:00:10Z");
    }

    #[test]
    fn it_is_the_first_over_all_and_never_further_than_a_month() {
        let list = [schedule("* 8 * * *", Form::Five, "UTC"), schedule("* 6 * * *", Form::Five, "UTC")];
        assert_eq!(next_change(&list, at("2026-03-02T00:00:00Z"), &NamedZone::utc()).to_string(), "2026-03-02T06:00:00Z");
        assert_eq!(next(&Schedule::always(), "2026-03-01T00:00:00Z"), "2026-04-01T00:00:00Z");
        let none: [Schedule; 0] = [];
        assert_eq!(next_change(&none, at("2026-03-01T00:00:00Z"), &NamedZone::utc()).to_string(), "2026-04-01T00:00:00Z");
    }

    #[test]
    fn zones_with_half_hours_and_shifted_clocks_are_followed() {
        let kolkata = schedule("* 9 * * *", Form::Five, "Asia/Kolkata");
        assert_eq!(next(&kolkata, "2026-03-02T00:00:00Z"), "2026-03-02T03:30:00Z");
        // The hour from 2 to 3 is skipped on this day, so the next that begins is a day later.
        let two = schedule("* 2 * * *", Form::Five, "Europe/Berlin");
        assert_eq!(next(&two, "2026-03-28T02:00:00Z"), "2026-03-30T00:00:00Z");
    }
}
