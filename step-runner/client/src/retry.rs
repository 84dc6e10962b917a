//! When to try again. Decides; the clock and the waiting are the caller's.

use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// A person who waits for an agent to come back notices no more than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Attempts at one thing, in a row.
#[derive(Debug, Clone)]
pub struct Retry {
    limit: Duration,
    /// Of the first failure since the last success, on a clock that never goes backwards.
    since: Option<Duration>,
    pause: Duration,
}

impl Retry {
    /// `limit`: how long it may fail in a row. Zero: the first failure is the last.
    pub fn new(limit: Duration) -> Self {
        Self { limit, since: None, pause: FIRST_PAUSE }
    }

    /// It worked, or got on.
    pub fn has_worked(&mut self) {
        *self = Self::new(self.limit);
    }

    /// How long to wait before the next attempt. `None`: give up.
    pub fn after_failure(&mut self, now: Duration) -> Option<Duration> {
        let failing_for = now.saturating_sub(*self.since.get_or_insert(now));
        let left = self.limit.checked_sub(failing_for).filter(|left| !left.is_zero())?;
        let pause = self.pause.min(left);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(retry: &mut Retry, now: u64) -> Option<u128> {
        retry.after_failure(Duration::from_millis(now)).map(|pause| pause.as_millis())
    }

    #[test]
    fn pauses_grow_and_end_with_the_limit() {
        let mut retry = Retry::new(Duration::from_secs(3));
        let (mut now, mut pauses) = (1000, Vec::new());
        while let Some(pause) = milliseconds(&mut retry, now) {
            pauses.push(pause);
            now += u64::try_from(pause).expect("small");
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 725]);
        assert_eq!(now, 4000);
    }

    #[test]
    fn progress_begins_anew() {
        let mut retry = Retry::new(Duration::from_secs(1));
        assert_eq!((milliseconds(&mut retry, 0), milliseconds(&mut retry, 900)), (Some(5), Some(10)));
        retry.has_worked();
        assert_eq!(
            (milliseconds(&mut retry, 1900), milliseconds(&mut retry, 2899), milliseconds(&mut retry, 2900)),
            (Some(5), Some(1), None)
        );
    }

    #[test]
    fn without_a_limit_of_time_nothing_is_tried_again() {
        assert_eq!(milliseconds(&mut Retry::new(Duration::ZERO), 7), None);
    }
}
