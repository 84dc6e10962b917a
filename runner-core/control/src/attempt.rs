//! An effect that is asked for until it works: open, waiting for its next try, or done.

use crate::backoff::Backoff;
use crate::dice::Dice;
use crate::id::EffectId;
use step_model::time::{Deadline, Now};

/// ```text
///  may start --asked--> open --succeeded--> may start, no failures
///      ^                  '----failed----> waits --time passes--.
///      '--------------------------------------------------------'
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Attempt {
    open: Option<EffectId>,
    /// The latest that was asked for, open or not.
    latest: Option<EffectId>,
    not_before: Option<Deadline>,
    failures: u32,
}

impl Attempt {
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub fn latest(&self) -> Option<EffectId> {
        self.latest
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    pub fn may_start(&self, now: Now) -> bool {
        self.open.is_none() && self.not_before.is_none_or(|deadline| deadline.has_passed(now))
    }

    /// When it may start again, while it waits for that.
    pub fn due(&self) -> Option<Deadline> {
        if self.is_open() { None } else { self.not_before }
    }

    /// What waited for a time that has come, waits no more.
    pub fn refresh(&mut self, now: Now) {
        self.not_before = self.not_before.filter(|deadline| !deadline.has_passed(now));
    }

    pub fn asked(&mut self, id: EffectId) {
        self.open = Some(id);
        self.latest = Some(id);
        self.not_before = None;
    }

    /// True when this outcome is the one that is waited for; it is not waited for any more then.
    pub fn take(&mut self, id: EffectId) -> bool {
        let is_awaited = self.open == Some(id);
        if is_awaited {
            self.open = None;
        }
        is_awaited
    }

    /// Nobody waits for its outcome any more.
    pub fn give_up(&mut self) {
        self.open = None;
    }

    pub fn succeeded(&mut self) {
        self.failures = 0;
        self.not_before = None;
    }

    /// The next try is later than the one before.
    pub fn failed(&mut self, backoff: Backoff, dice: &mut Dice, now: Now) {
        self.not_before = Some(Deadline::after(now, backoff.wait(self.failures, dice.fraction())));
        self.failures = self.failures.saturating_add(1);
    }

    pub fn not_before(&mut self, deadline: Deadline) {
        self.not_before = Some(deadline);
    }

    /// What held it back is gone: it may start now.
    pub fn hurry(&mut self) {
        self.not_before = None;
    }
}
