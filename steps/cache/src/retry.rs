//! What follows when a store does not do what it was asked.

use std::fmt;
use std::time::Duration;

/// Why a store did not do it. Nothing of an address is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub what: String,
    /// The same request may be answered otherwise a moment later.
    pub is_passing: bool,
}

impl Trouble {
    pub fn lasting(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_passing: false }
    }

    pub fn passing(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_passing: true }
    }

    /// Of an answer over HTTP.
    pub fn of_status(status: u16, reason: Option<&str>) -> Self {
        let what = match reason {
            Some(reason) => format!("the server answered {status} {reason}"),
            None => format!("the server answered {status}"),
        };
        Self { what, is_passing: matches!(status, 408 | 429 | 500 | 502 | 503 | 504) || status >= 512 }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// What passes is tried twice again by itself, as GitLab's helper does (GitLab Runner v19.4, `commands/helpers/retry_helper.go`).
const OF_ITSELF: u32 = 2;
const PAUSE: Duration = Duration::from_secs(1);

/// How long to wait before it is tried again. `None`: not at all. The first try is 1.
pub fn pause(tried: u32, attempts: u32, trouble: &Trouble) -> Option<Duration> {
    (trouble.is_passing && tried < attempts + OF_ITSELF).then_some(PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_tried_again() {
        for status in [408, 429, 500, 502, 503, 504, 520] {
            assert!(Trouble::of_status(status, None).is_passing, "{status}");
        }
        for status in [400, 401, 403, 404, 413, 501] {
            assert!(!Trouble::of_status(status, None).is_passing, "{status}");
        }
        assert_eq!(Trouble::of_status(403, Some("Forbidden")).to_string(), "the server answered 403 Forbidden");
    }

    #[test]
    fn attempts_come_on_top_of_two_more_tries() {
        let busy = Trouble::passing("busy");
        let tries = |attempts| (1..).find(|tried| pause(*tried, attempts, &busy).is_none());
        assert_eq!((tries(1), tries(5)), (Some(3), Some(7)));
        assert_eq!(pause(1, 10, &Trouble::lasting("no")), None);
    }
}
