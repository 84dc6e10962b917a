//! How fast a group may grow: a bucket of tokens, one for each instance, full at the start.

use super::policy::ScaleThrottle;
use std::time::Duration;
use step_model::time::{Deadline, Now};

/// Kept as the moment at which the bucket is full again, so that nothing has to be counted while time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    full_at: Duration,
}

impl Bucket {
    /// Tokens that are there now.
    pub fn level(&self, throttle: ScaleThrottle, now: Now) -> u32 {
        let ScaleThrottle::Limited { burst, .. } = throttle else { return u32::MAX };
        let missing = self.full_at.saturating_sub(now.monotonic).as_nanos().div_ceil(interval(throttle));
        let level = u128::from(burst.max(1)).saturating_sub(missing);
        u32::try_from(level).unwrap_or(u32::MAX)
    }

    pub fn take(&mut self, count: u32, throttle: ScaleThrottle, now: Now) {
        if matches!(throttle, ScaleThrottle::Limited { .. }) {
            let time = u64::try_from(interval(throttle) * u128::from(count)).unwrap_or(u64::MAX);
            self.full_at = self.full_at.max(now.monotonic).saturating_add(Duration::from_nanos(time));
        }
    }

    /// When the next token is there. `None`: there is one.
    pub fn due(&self, throttle: ScaleThrottle, now: Now) -> Option<Deadline> {
        let ScaleThrottle::Limited { burst, .. } = throttle else { return None };
        if self.level(throttle, now) > 0 {
            return None;
        }
        let before_full = u64::try_from(interval(throttle) * u128::from(burst.max(1) - 1)).unwrap_or(u64::MAX);
        let wait = self.full_at.saturating_sub(Duration::from_nanos(before_full)).saturating_sub(now.monotonic);
        Some(Deadline::after(now, wait))
    }
}

/// Nanoseconds for one token.
fn interval(throttle: ScaleThrottle) -> u128 {
    match throttle {
        ScaleThrottle::Limited { limit, .. } => (1_000_000_000 / u128::from(limit.max(1))).max(1),
        ScaleThrottle::Unlimited => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    const SLOW: ScaleThrottle = ScaleThrottle::Limited { limit: 1, burst: 3 };

    #[test]
    fn it_is_full_at_the_start_and_fills_by_one_each_second() {
        let mut bucket = Bucket::default();
        assert_eq!((bucket.level(SLOW, at(0)), bucket.due(SLOW, at(0))), (3, None));
        bucket.take(3, SLOW, at(0));
        assert_eq!((bucket.level(SLOW, at(0)), bucket.due(SLOW, at(0))), (0, Some(Deadline::after(at(1), Duration::ZERO))));
        assert_eq!([1, 2, 3, 4, 100].map(|second| bucket.level(SLOW, at(second))), [1, 2, 3, 3, 3]);
        bucket.take(1, SLOW, at(1));
        assert_eq!((bucket.level(SLOW, at(1)), bucket.level(SLOW, at(2))), (0, 1));
    }

    #[test]
    fn sixty_at_once_and_full_again_after_a_minute() {
        let documented = ScaleThrottle::Limited { limit: 1, burst: 60 };
        let mut bucket = Bucket::default();
        bucket.take(60, documented, at(10));
        assert_eq!([10, 11, 69, 70].map(|second| bucket.level(documented, at(second))), [0, 1, 59, 60]);
    }

    #[test]
    fn without_a_limit_nothing_is_held_back() {
        let mut bucket = Bucket::default();
        bucket.take(u32::MAX, ScaleThrottle::Unlimited, at(0));
        assert_eq!((bucket.level(ScaleThrottle::Unlimited, at(0)), bucket.due(ScaleThrottle::Unlimited, at(0))), (u32::MAX, None));
        let fast = ScaleThrottle::Limited { limit: u64::MAX, burst: u64::MAX };
        bucket.take(u32::MAX, fast, at(0));
        assert_eq!(bucket.level(fast, at(5)), u32::MAX);
    }
}
