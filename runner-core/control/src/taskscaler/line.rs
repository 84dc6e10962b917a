//! Tasks that wait for a slot: by priority, then by fair share, then in the order in which they came.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Whose tasks take turns: a project, a team, a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Owner(pub u64);

/// Where a task stands among those of its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    priority: Reverse<i32>,
    arrival: u64,
}

/// Of all that wait with the highest priority, the owner that holds the fewest slots is served next, and of its tasks the earliest.
#[derive(Debug)]
pub struct Line<T> {
    owners: BTreeMap<Owner, Waiting<T>>,
    /// The first task of each owner that has one: priority, slots that the owner holds, arrival.
    turns: BTreeSet<(Reverse<i32>, u32, u64, Owner)>,
    arrivals: u64,
    length: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    holds: u32,
    tasks: BTreeMap<Place, T>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { owners: BTreeMap::new(), turns: BTreeSet::new(), arrivals: 0, length: 0 }
    }
}

impl<T> Line<T> {
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn push(&mut self, owner: Owner, priority: i32, task: T) -> Place {
        let place = Place { priority: Reverse(priority), arrival: self.arrivals };
        self.arrivals += 1;
        self.put(owner, place, task);
        place
    }

    /// Back to where it stood.
    pub fn put(&mut self, owner: Owner, place: Place, task: T) {
        self.length += 1;
        self.change(owner, |waiting| _ = waiting.tasks.insert(place, task));
    }

    pub fn remove(&mut self, owner: Owner, place: Place) -> Option<T> {
        let removed = self.change(owner, |waiting| waiting.tasks.remove(&place));
        self.length -= usize::from(removed.is_some());
        removed
    }

    /// Whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let (.., owner) = *self.turns.first()?;
        let (_, task) = self.change(owner, |waiting| waiting.tasks.pop_first())?;
        self.length -= 1;
        Some(task)
    }

    /// The owner has been given a slot.
    pub fn took(&mut self, owner: Owner) {
        self.change(owner, |waiting| waiting.holds += 1);
    }

    /// The owner has given one back.
    pub fn gave(&mut self, owner: Owner) {
        self.change(owner, |waiting| waiting.holds = waiting.holds.saturating_sub(1));
    }

    /// Slots that an owner holds.
    pub fn holds(&self, owner: Owner) -> u32 {
        self.owners.get(&owner).map_or(0, |waiting| waiting.holds)
    }

    fn change<R>(&mut self, owner: Owner, change: impl FnOnce(&mut Waiting<T>) -> R) -> R {
        let waiting = self.owners.entry(owner).or_insert_with(|| Waiting { holds: 0, tasks: BTreeMap::new() });
        let before = waiting.turn(owner);
        let given = change(waiting);
        let after = waiting.turn(owner);
        let is_gone = waiting.holds == 0 && waiting.tasks.is_empty();
        if before != after {
            if let Some(before) = before {
                self.turns.remove(&before);
            }
            self.turns.extend(after);
        }
        if is_gone {
            self.owners.remove(&owner);
        }
        given
    }
}

impl<T> Waiting<T> {
    fn turn(&self, owner: Owner) -> Option<(Reverse<i32>, u32, u64, Owner)> {
        let (place, _) = self.tasks.first_key_value()?;
        Some((place.priority, self.holds, place.arrival, owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_take_turns_by_what_they_hold_and_a_higher_priority_comes_first() {
        let mut line = Line::default();
        (1..=3).for_each(|task| _ = line.push(Owner(1), 0, format!("a{task}")));
        (1..=2).for_each(|task| _ = line.push(Owner(2), 0, format!("b{task}")));
        line.push(Owner(1), 5, "urgent".to_owned());
        let mut served = Vec::new();
        while let Some(task) = line.pop() {
            line.took(if task.starts_with('b') { Owner(2) } else { Owner(1) });
            served.push(task);
        }
        // The urgent one counts: its owner has had its turn.
        assert_eq!(served, ["urgent", "b1", "a1", "b2", "a2", "a3"]);
        assert_eq!((line.holds(Owner(1)), line.holds(Owner(2)), line.is_empty()), (4, 2, true));
    }

    #[test]
    fn a_task_that_leaves_the_line_leaves_nothing_behind() {
        let mut line = Line::default();
        let place = line.push(Owner(1), 0, "a");
        assert_eq!((line.len(), line.remove(Owner(1), place), line.remove(Owner(1), place)), (1, Some("a"), None));
        line.put(Owner(1), place, "a");
        assert_eq!(line.pop(), Some("a"));
        assert!(line.owners.is_empty() && line.turns.is_empty());
    }
}
