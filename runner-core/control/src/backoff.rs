//! How long to wait before the next try.

use std::time::Duration;

/// Doubles from `first` to `longest`; the dice take up to half of it away, so that what failed together does not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// What an agent does not do at once: a broken connection is often back at once, and a job waits for it.
    pub const AGENT: Self = Self::new(Duration::from_millis(100), Duration::from_secs(10));
    /// What a provider refuses: clouds count requests.
    pub const PROVIDER: Self = Self::new(Duration::from_secs(1), Duration::from_secs(60));
    /// What a server does not answer, after the transport has tried several times.
    pub const SERVER: Self = Self::new(Duration::from_secs(1), Duration::from_secs(60));
    /// What the store cannot write: a full disk is not empty a moment later.
    pub const STORE: Self = Self::new(Duration::from_millis(100), Duration::from_secs(10));

    /// Before the try after so many failures. `fraction` from zero to below one.
    pub fn wait(self, failures: u32, fraction: f64) -> Duration {
        let whole = 2_u32
            .checked_pow(failures)
            .and_then(|factor| self.first.checked_mul(factor))
            .map_or(self.longest, |wait| wait.min(self.longest));
        whole.mul_f64(1.0 - fraction.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_the_longest() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let waits: Vec<u64> = (0..8).map(|failures| backoff.wait(failures, 0.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.wait(u32::MAX, 0.0).as_secs(), 60);
    }

    #[test]
    fn the_dice_take_at_most_half_of_it() {
        let backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(60));
        assert_eq!(backoff.wait(0, 0.5), Duration::from_millis(7_500));
        assert_eq!(backoff.wait(0, 1.0), Duration::from_secs(5));
    }
}
