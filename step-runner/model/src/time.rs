//! One reading of both clocks, and the points in time that follow from it.

use std::fmt;
use std::time::Duration;

/// One reading of both clocks: monotonic for deadlines, wall for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Time since an arbitrary start that never goes backwards.
    pub monotonic: Duration,
    /// What the clock on the wall says.
    pub wall: Timestamp,
}

/// A point in time after which something is due, on the monotonic clock of [`Now`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Duration);

impl Deadline {
    /// The deadline that lies `duration` after `now`. It saturates: a duration that is too long never passes.
    pub fn after(now: Now, duration: Duration) -> Self {
        Self(now.monotonic.saturating_add(duration))
    }

    pub fn has_passed(self, now: Now) -> bool {
        now.monotonic >= self.0
    }

    /// What is left until the deadline; zero when it has passed.
    pub fn remaining(self, now: Now) -> Duration {
        self.0.saturating_sub(now.monotonic)
    }
}

/// Wall time in nanoseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// Time from `earlier` to `self`; zero when the clock was set back in between.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// RFC 3339 in UTC with as many digits of the second as it has, as protobuf's JSON writes timestamps.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(timestamp) => write!(f, "{timestamp}"),
            Err(_) => write!(f, "{} ns since 1970", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Now {
        Now { monotonic: Duration::from_secs(seconds), wall: Timestamp::default() }
    }

    #[test]
    fn a_deadline_passes_at_its_moment_and_not_before() {
        let deadline = Deadline::after(at(10), Duration::from_secs(5));
        assert!(!deadline.has_passed(at(14)));
        assert!(deadline.has_passed(at(15)));
        assert_eq!(deadline.remaining(at(12)), Duration::from_secs(3));
    }

    #[test]
    fn a_deadline_that_is_too_far_away_never_passes() {
        assert!(!Deadline::after(at(10), Duration::MAX).has_passed(at(u64::MAX - 1)));
    }

    #[test]
    fn a_timestamp_is_written_as_rfc_3339() {
        assert_eq!(Timestamp::from_nanoseconds(1_700_000_000_120_000_000).to_string(), "2023-11-14T22:13:20.12Z");
    }
}
