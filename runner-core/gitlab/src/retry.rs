//! Whether an answer is asked for again, and when (network/retry_requester.go of GitLab's runner).
//!
//! Only answers: an error of the network is handed up at once, whoever asked knows better whether to go on.

use crate::answer::Headers;
use std::time::Duration;
use step_model::time::Timestamp;

/// How often one call is made, and how long it waits in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// In all, the first included.
    pub attempts: u32,
    pub least: Duration,
    pub most: Duration,
    /// The longest wait that a server may ask for. It is as long as one call may take: a date in the far future must not hold a job for ever.
    pub longest_asked: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, least: Duration::from_millis(100), most: Duration::from_secs(60), longest_asked: Duration::from_secs(3600) }
    }
}

/// Whether the server may answer otherwise in a moment.
pub fn is_retriable(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504) || status >= 512
}

impl RetryPolicy {
    /// How long to wait before the next attempt. `None`: this answer is the last one. `made` counts the attempts, `chance` is from 0 to 1.
    pub fn wait(&self, made: u32, status: u16, headers: &Headers, now: Timestamp, chance: f64) -> Option<Duration> {
        if !is_retriable(status) || made >= self.attempts {
            return None;
        }
        let asked = reset_time(headers, now).or_else(|| retry_after(headers));
        Some(asked.map_or_else(|| self.backoff(made, chance), |asked| asked.min(self.longest_asked)))
    }

    /// Doubles from the least to the most, and is spread from the least to that.
    pub fn backoff(&self, made: u32, chance: f64) -> Duration {
        let doubled = self.least.saturating_mul(2u32.saturating_pow(made.saturating_sub(1))).min(self.most);
        self.least + doubled.saturating_sub(self.least).mul_f64(chance.clamp(0.0, 1.0))
    }
}

/// `RateLimit-ResetTime`: a date, when it can be read and lies ahead.
fn reset_time(headers: &Headers, now: Timestamp) -> Option<Duration> {
    let date = jiff::fmt::rfc2822::parse(headers.reset_time.as_deref()?.trim()).ok()?;
    let nanoseconds = i64::try_from(date.timestamp().as_nanosecond()).ok()?;
    Some(Timestamp::from_nanoseconds(nanoseconds).since(now)).filter(|wait| !wait.is_zero())
}

/// `Retry-After`: whole seconds. The other form that HTTP has for it, a date, no GitLab sends.
fn retry_after(headers: &Headers) -> Option<Duration> {
    headers.retry_after.as_deref()?.trim().parse().ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tue, 05 Apr 2022 16:33:46 GMT
    const NOON: Timestamp = Timestamp::from_nanoseconds(1_649_176_426_000_000_000);

    fn wait(made: u32, status: u16, headers: &Headers) -> Option<Duration> {
        RetryPolicy::default().wait(made, status, headers, NOON, 1.0)
    }

    #[test]
    fn runner_01_a_good_answer_is_not_asked_for_again() {
        assert_eq!(wait(1, 200, &Headers::default()), None);
    }

    #[test]
    fn runner_04_the_waits_double_from_100_ms() {
        let none = Headers::default();
        let waits: Vec<Option<Duration>> = (1..=5).map(|made| wait(made, 500, &none)).collect();
        assert_eq!(waits, [Some(100), Some(200), Some(400), Some(800), None].map(|wait| wait.map(Duration::from_millis)));
        let policy = RetryPolicy { attempts: 40, ..RetryPolicy::default() };
        assert_eq!(policy.wait(39, 500, &none, NOON, 1.0), Some(Duration::from_secs(60)));
        assert_eq!(policy.wait(3, 500, &none, NOON, 0.0), Some(Duration::from_millis(100)));
    }

    #[test]
    fn runner_05_the_time_of_a_rate_limit_is_waited_for() {
        let headers = Headers {
            reset_time: Some("Tue, 05 Apr 2022 16:33:48 GMT".to_owned()),
            retry_after: Some("1".to_owned()),
            ..Headers::default()
        };
        assert_eq!(wait(1, 429, &headers), Some(Duration::from_secs(2)));
        let past = Headers {
            reset_time: Some("Tue, 05 Apr 2022 16:33:40 GMT".to_owned()),
            retry_after: Some("1".to_owned()),
            ..Headers::default()
        };
        assert_eq!(wait(1, 429, &past), Some(Duration::from_secs(1)));
    }

    #[test]
    fn runner_07_the_seconds_that_a_server_asks_for_are_waited() {
        let headers = |text: &str| Headers { retry_after: Some(text.to_owned()), ..Headers::default() };
        assert_eq!(wait(1, 429, &headers("1")), Some(Duration::from_secs(1)));
        assert_eq!(wait(1, 503, &headers("99999999")), Some(Duration::from_secs(3600)));
    }

    #[test]
    fn runner_08_a_wait_that_cannot_be_read_is_a_backoff() {
        for text in ["invalid", "0", "-5", "", "1.5"] {
            let headers = Headers { retry_after: Some(text.to_owned()), reset_time: Some(text.to_owned()), ..Headers::default() };
            assert_eq!(wait(1, 429, &headers), Some(Duration::from_millis(100)), "{text}");
        }
    }

    #[test]
    fn runner_10_the_last_attempt_is_the_answer() {
        let always = Headers::default();
        assert_eq!((1..10).find(|made| wait(*made, 429, &always).is_none()), Some(5));
    }

    #[test]
    fn runner_13_what_is_asked_for_again_and_what_is_not() {
        assert!([408, 429, 500, 502, 503, 504, 512, 520, 599].into_iter().all(is_retriable));
        assert!(![200, 201, 202, 204, 400, 401, 403, 404, 409, 416, 501, 505, 511].into_iter().any(is_retriable));
    }
}
