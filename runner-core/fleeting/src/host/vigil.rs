//! When a plugin is replaced, and how long after. Decides only.
//!
//! ```text
//!            did not start, ended, broke                       back-off over
//!   running ----------------------------> waiting 1 s .. 60 s ---------------> may start
//!      |  three late or wrong answers in a row, or late and without health ----^
//! ```

use std::time::Duration;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// One that has run for so long starts again with a clean slate.
const GOOD_LIFE: Duration = Duration::from_secs(60);
/// One answer may be late because of a cloud; a plugin whose answers all are is of no use.
const PATIENCE: u32 = 3;

/// What was seen of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Started,
    DidNotStart,
    Answered,
    /// No answer in time. `healthy`: it answers when it is asked how it is.
    Late {
        healthy: bool,
    },
    Wrong,
    /// The process has ended, or the connection has.
    Broken,
}

/// What to do with the process that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    Replace,
}

/// The record of one plugin over all its processes. Times are since any fixed moment.
#[derive(Debug, Default)]
pub struct Vigil {
    failures: u32,
    useless: u32,
    started: Option<Duration>,
    again: Option<Duration>,
}

impl Vigil {
    pub fn on(&mut self, seen: Seen, now: Duration) -> Verdict {
        match seen {
            Seen::Started => {
                self.started = Some(now);
                self.again = None;
                self.useless = 0;
                Verdict::Keep
            }
            Seen::Answered => {
                self.useless = 0;
                Verdict::Keep
            }
            Seen::Late { healthy: true } | Seen::Wrong if self.useless + 1 < PATIENCE => {
                self.useless += 1;
                Verdict::Keep
            }
            Seen::DidNotStart | Seen::Late { .. } | Seen::Wrong | Seen::Broken => self.fail(now),
        }
    }

    fn fail(&mut self, now: Duration) -> Verdict {
        let lived = self.started.take().map(|started| now.saturating_sub(started));
        if lived.is_some_and(|lived| lived >= GOOD_LIFE) {
            self.failures = 0;
        }
        let wait = FIRST_WAIT.saturating_mul(1 << self.failures.min(6)).min(LONGEST_WAIT);
        self.failures += 1;
        self.again = Some(now + wait);
        Verdict::Replace
    }

    /// How long until it may be started again; zero: now.
    pub fn wait(&self, now: Duration) -> Duration {
        self.again.map(|again| again.saturating_sub(now)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_failure_doubles_the_wait_up_to_a_minute() {
        let mut vigil = Vigil::default();
        let waits: Vec<u64> = (0..8)
            .map(|_| {
                assert_eq!(vigil.on(Seen::DidNotStart, at(5)), Verdict::Replace);
                vigil.wait(at(5)).as_secs()
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(vigil.wait(at(64)).as_secs(), 1);
        assert_eq!(vigil.wait(at(65)), Duration::ZERO);
    }

    #[test]
    fn one_that_ran_for_a_minute_is_started_again_at_once_and_one_that_did_not_waits_longer() {
        let mut vigil = Vigil::default();
        vigil.on(Seen::Broken, at(0));
        vigil.on(Seen::Broken, at(0));
        vigil.on(Seen::Started, at(10));
        vigil.on(Seen::Broken, at(69));
        assert_eq!(vigil.wait(at(69)), at(4), "it has not lived long");
        vigil.on(Seen::Started, at(80));
        vigil.on(Seen::Broken, at(140));
        assert_eq!(vigil.wait(at(140)), at(1));
    }

    #[test]
    fn three_useless_answers_in_a_row_are_too_many_and_a_good_one_between_forgives() {
        let mut vigil = Vigil::default();
        vigil.on(Seen::Started, at(0));
        let useless = [Seen::Late { healthy: true }, Seen::Wrong];
        assert_eq!(useless.map(|seen| vigil.on(seen, at(1))), [Verdict::Keep; 2]);
        assert_eq!(vigil.on(Seen::Answered, at(1)), Verdict::Keep);
        assert_eq!(useless.map(|seen| vigil.on(seen, at(1))), [Verdict::Keep; 2]);
        assert_eq!(vigil.on(Seen::Wrong, at(1)), Verdict::Replace);
    }

    #[test]
    fn one_that_is_late_and_does_not_say_how_it_is_goes_at_once() {
        let mut vigil = Vigil::default();
        vigil.on(Seen::Started, at(0));
        assert_eq!(vigil.on(Seen::Late { healthy: false }, at(1)), Verdict::Replace);
    }
}
