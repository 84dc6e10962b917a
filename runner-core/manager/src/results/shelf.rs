//! Which results are kept, and which go: the oldest first, and those that nobody has taken last. Decides; removes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What is kept at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Zero: however old.
    pub age: Duration,
    /// Of those that need not be sent any more.
    pub count: u64,
    /// Of all.
    pub bytes: u64,
}

/// A result by its age: when it was kept, since 1970, and its name.
pub type Key = (Duration, Arc<str>);

/// What is kept, by age.
#[derive(Debug)]
pub struct Shelf {
    limits: Limits,
    sent: BTreeMap<Key, u64>,
    unsent: BTreeMap<Key, u64>,
    bytes: u64,
}

/// A result that has to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surplus {
    pub key: Key,
    /// The service never took it.
    pub was_unsent: bool,
}

impl Shelf {
    pub fn new(limits: Limits) -> Self {
        Self { limits, sent: BTreeMap::new(), unsent: BTreeMap::new(), bytes: 0 }
    }

    pub fn add(&mut self, key: Key, bytes: u64, is_unsent: bool) {
        let side = if is_unsent { &mut self.unsent } else { &mut self.sent };
        let before = side.insert(key, bytes).unwrap_or(0);
        self.bytes = self.bytes.saturating_add(bytes).saturating_sub(before);
    }

    /// The service has it.
    pub fn mark_sent(&mut self, key: &Key) {
        if let Some(bytes) = self.unsent.remove(key) {
            self.sent.insert(key.clone(), bytes);
        }
    }

    /// Those that are to be sent, the oldest first.
    pub fn unsent(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.unsent.keys()
    }

    /// A result that was replaced by another of its name.
    pub fn remove(&mut self, name: &str) {
        for side in [&mut self.sent, &mut self.unsent] {
            let Some(key) = side.keys().find(|(_, known)| **known == *name).cloned() else { continue };
            self.bytes = self.bytes.saturating_sub(side.remove(&key).unwrap_or(0));
        }
    }

    /// Takes out what is too much at this moment.
    pub fn surplus(&mut self, now: Duration) -> Vec<Surplus> {
        let mut out = Vec::new();
        while self.sent.len() as u64 > self.limits.count || self.is_old(self.sent.first_key_value(), now) {
            self.drop_oldest(false, &mut out);
        }
        while self.is_old(self.unsent.first_key_value(), now) {
            self.drop_oldest(true, &mut out);
        }
        while self.bytes > self.limits.bytes && !(self.sent.is_empty() && self.unsent.is_empty()) {
            self.drop_oldest(self.sent.is_empty(), &mut out);
        }
        out
    }

    fn is_old(&self, oldest: Option<(&Key, &u64)>, now: Duration) -> bool {
        self.limits.age > Duration::ZERO && oldest.is_some_and(|((at, _), _)| now.saturating_sub(*at) > self.limits.age)
    }

    fn drop_oldest(&mut self, was_unsent: bool, out: &mut Vec<Surplus>) {
        let side = if was_unsent { &mut self.unsent } else { &mut self.sent };
        if let Some((key, bytes)) = side.pop_first() {
            self.bytes = self.bytes.saturating_sub(bytes);
            out.push(Surplus { key, was_unsent });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: u64) -> Key {
        (Duration::from_secs(at), format!("r~{at}").into())
    }

    fn shelf(limits: Limits, held: &[(u64, bool)]) -> Shelf {
        let mut shelf = Shelf::new(limits);
        held.iter().for_each(|(at, is_unsent)| shelf.add(key(*at), 10, *is_unsent));
        shelf
    }

    fn gone(surplus: &[Surplus]) -> Vec<(u64, bool)> {
        surplus.iter().map(|one| (one.key.0.as_secs(), one.was_unsent)).collect()
    }

    const MANY: Limits = Limits { age: Duration::from_secs(100), count: 100, bytes: 1000 };

    #[test]
    fn the_oldest_go_first_and_those_that_nobody_has_taken_last() {
        let mut shelf = shelf(Limits { bytes: 25, ..MANY }, &[(1, true), (2, false), (3, false), (4, true)]);
        assert_eq!(gone(&shelf.surplus(Duration::from_secs(5))), [(2, false), (3, false)]);
        shelf.add(key(5), 10, true);
        assert_eq!(gone(&shelf.surplus(Duration::from_secs(5))), [(1, true)]);
        assert_eq!(shelf.surplus(Duration::from_secs(5)), []);
    }

    #[test]
    fn the_count_is_of_those_that_were_sent() {
        let mut shelf = shelf(Limits { count: 1, ..MANY }, &[(1, false), (2, true), (3, true)]);
        assert_eq!(shelf.surplus(Duration::from_secs(4)), []);
        shelf.mark_sent(&key(2));
        assert_eq!(gone(&shelf.surplus(Duration::from_secs(4))), [(1, false)]);
        let mut none = self::shelf(Limits { count: 0, ..MANY }, &[(1, false), (2, true)]);
        assert_eq!(gone(&none.surplus(Duration::from_secs(4))), [(1, false)]);
    }

    #[test]
    fn what_is_too_old_goes_in_both_cases_and_without_a_limit_nothing_is() {
        let held = [(1, false), (2, true), (150, false)];
        assert_eq!(gone(&shelf(MANY, &held).surplus(Duration::from_secs(200))), [(1, false), (2, true)]);
        assert_eq!(shelf(Limits { age: Duration::ZERO, ..MANY }, &held).surplus(Duration::from_secs(1_000_000)), []);
    }

    #[test]
    fn one_that_is_replaced_counts_once() {
        let mut shelf = shelf(Limits { bytes: 10, ..MANY }, &[(1, true)]);
        shelf.remove("r~1");
        shelf.add(key(1), 10, true);
        assert_eq!(shelf.surplus(Duration::from_secs(2)), []);
        assert_eq!(shelf.unsent().len(), 1);
    }
}
