//! The instances of a group and their slots. Sums and indexes follow each change.

use super::required::Figures;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

/// ```text
///  asked for --appeared--> Coming --ready--> Ready <--> Asleep
///                             |                |
///                             '----------------'--not wanted--> Leaving --gone--> forgotten
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It boots, wakes up, or is being proven.
    Coming,
    Ready,
    /// Everything on it is suspended: it costs little and takes nothing.
    Asleep,
    /// Its removal was asked for.
    Leaving,
}

#[derive(Debug)]
pub struct Seat<T> {
    pub stage: Stage,
    /// By number; the lowest free one is given out first.
    pub slots: Vec<Option<T>>,
    taken: u32,
    /// Of `taken`: suspended.
    pub suspended: u32,
    pub uses: u32,
    /// Heartbeats in a row that failed.
    pub failures: u32,
    /// When it was ready for the first time, as a number that rises.
    ready_at: u64,
    /// Since when it has had no task.
    idle_since: Option<Duration>,
}

/// The bounds of every instance of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub capacity: u32,
    pub uses: u32,
}

#[derive(Debug)]
pub struct Pool<I, T> {
    seats: BTreeMap<I, Seat<T>>,
    /// Those with a slot to give out, the oldest first.
    free: BTreeSet<(u64, I)>,
    /// Those that are ready and have no task, the longest idle first.
    idle: BTreeSet<(Duration, I)>,
    sums: Figures,
    free_slots: u32,
    readied: u64,
}

impl<I, T> Default for Pool<I, T> {
    fn default() -> Self {
        Self { seats: BTreeMap::new(), free: BTreeSet::new(), idle: BTreeSet::new(), sums: Figures::default(), free_slots: 0, readied: 0 }
    }
}

impl<T> Seat<T> {
    fn new() -> Self {
        Self { stage: Stage::Coming, slots: Vec::new(), taken: 0, suspended: 0, uses: 0, failures: 0, ready_at: 0, idle_since: None }
    }

    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    pub fn tasks(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// It may run no more tasks in its life.
    pub fn is_used_up(&self, bounds: Bounds) -> bool {
        self.uses >= bounds.uses
    }

    /// Every task on it is suspended.
    pub fn may_sleep(&self) -> bool {
        self.stage == Stage::Ready && self.suspended > 0 && self.suspended == self.taken
    }

    fn free(&self, bounds: Bounds) -> u32 {
        if self.stage != Stage::Ready || self.failures > 0 {
            return 0;
        }
        bounds.capacity.saturating_sub(self.taken).min(bounds.uses.saturating_sub(self.uses))
    }

    /// What it adds to the sums.
    fn share(&self, bounds: Bounds) -> Figures {
        let is_counted = matches!(self.stage, Stage::Coming | Stage::Ready);
        if !is_counted {
            return Figures { total: 1, ..Figures::default() };
        }
        let unavailable = bounds.capacity.saturating_sub(self.taken).saturating_sub(self.free(bounds));
        Figures {
            instances: 1,
            total: 1,
            creating: u32::from(self.stage == Stage::Coming),
            in_use: u32::from(self.taken > 0),
            acquired: self.taken,
            unavailable: if self.stage == Stage::Ready { unavailable } else { 0 },
            pending: 0,
            announced: 0,
        }
    }
}

impl<I: Ord + Clone + Debug, T: PartialEq> Pool<I, T> {
    pub fn get(&self, instance: &I) -> Option<&Seat<T>> {
        self.seats.get(instance)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&I, &Seat<T>)> {
        self.seats.iter()
    }

    pub fn figures(&self) -> Figures {
        self.sums
    }

    /// Slots that can be given out now.
    pub fn free_slots(&self) -> u32 {
        self.free_slots
    }

    /// The one that the next task gets.
    pub fn best_free(&self) -> Option<&I> {
        self.free.first().map(|(_, instance)| instance)
    }

    pub fn longest_idle(&self) -> Option<(Duration, &I)> {
        self.idle.first().map(|(since, instance)| (*since, instance))
    }

    /// A new one, unless it is known.
    pub fn appeared(&mut self, instance: &I, bounds: Bounds) -> bool {
        let is_new = !self.seats.contains_key(instance);
        if is_new {
            self.put(instance.clone(), Seat::new(), bounds);
        }
        is_new
    }

    pub fn remove(&mut self, instance: &I, bounds: Bounds) -> Option<Seat<T>> {
        self.take(instance, bounds)
    }

    pub fn ready(&mut self, instance: &I, bounds: Bounds, now: Duration) {
        let number = self.readied;
        self.readied += 1;
        self.change(instance, bounds, now, |seat| {
            if seat.ready_at == 0 {
                seat.ready_at = number + 1;
            }
            seat.stage = Stage::Ready;
            seat.failures = 0;
        });
    }

    /// The lowest free slot of the best instance.
    pub fn assign(&mut self, task: T, bounds: Bounds, now: Duration) -> Option<(I, u32)> {
        let instance = self.best_free()?.clone();
        let slot = self.change(&instance, bounds, now, |seat| {
            let free = seat.slots.iter().position(Option::is_none).unwrap_or(seat.slots.len());
            if free == seat.slots.len() {
                seat.slots.push(None);
            }
            seat.slots[free] = Some(task);
            seat.taken += 1;
            seat.uses = seat.uses.saturating_add(1);
            u32::try_from(free).unwrap_or(u32::MAX)
        })?;
        Some((instance, slot))
    }

    pub fn release(&mut self, instance: &I, slot: u32, was_suspended: bool, bounds: Bounds, now: Duration) {
        self.change(instance, bounds, now, |seat| {
            let place = usize::try_from(slot).ok().and_then(|slot| seat.slots.get_mut(slot));
            if place.is_some_and(|place| place.take().is_some()) {
                seat.taken -= 1;
                seat.suspended -= u32::from(was_suspended);
            }
        });
    }

    /// The one way to change one that is there.
    pub fn change<R>(&mut self, instance: &I, bounds: Bounds, now: Duration, change: impl FnOnce(&mut Seat<T>) -> R) -> Option<R> {
        let mut seat = self.take(instance, bounds)?;
        let given = change(&mut seat);
        let is_idle = seat.stage == Stage::Ready && seat.is_empty();
        seat.idle_since = if is_idle { seat.idle_since.or(Some(now)) } else { None };
        self.put(instance.clone(), seat, bounds);
        Some(given)
    }

    /// Other bounds hold from now on.
    pub fn rebound(&mut self, bounds: Bounds) {
        let seats = std::mem::take(&mut self.seats);
        let readied = self.readied;
        *self = Self { readied, ..Self::default() };
        seats.into_iter().for_each(|(instance, seat)| self.put(instance, seat, bounds));
    }

    /// # Panics
    /// The sums or the indexes are not those of the instances.
    pub fn check(&self, bounds: Bounds) {
        let mut sums = Figures::default();
        for (instance, seat) in &self.seats {
            sums = sum(sums, seat.share(bounds), |a, b| a + b);
            assert_eq!(
                self.free.contains(&(seat.ready_at, instance.clone())),
                seat.free(bounds) > 0,
                "those with a free slot are known: {instance:?}"
            );
            let taken = u32::try_from(seat.tasks().count()).unwrap_or(u32::MAX);
            assert!(taken == seat.taken && taken <= bounds.capacity.max(taken.min(seat.uses)), "each slot is in one state: {instance:?}");
        }
        assert_eq!(sums, self.sums, "sums follow the instances");
        assert_eq!(self.free_slots, self.seats.values().map(|seat| seat.free(bounds)).sum::<u32>(), "free slots are counted");
        let idle = self.seats.values().filter(|seat| seat.idle_since.is_some()).count();
        assert_eq!(idle, self.idle.len(), "those without a task are known");
    }

    fn put(&mut self, instance: I, seat: Seat<T>, bounds: Bounds) {
        self.sums = sum(self.sums, seat.share(bounds), |a, b| a + b);
        let free = seat.free(bounds);
        self.free_slots += free;
        if free > 0 {
            self.free.insert((seat.ready_at, instance.clone()));
        }
        if let Some(since) = seat.idle_since {
            self.idle.insert((since, instance.clone()));
        }
        self.seats.insert(instance, seat);
    }

    fn take(&mut self, instance: &I, bounds: Bounds) -> Option<Seat<T>> {
        let seat = self.seats.remove(instance)?;
        self.sums = sum(self.sums, seat.share(bounds), |a, b| a - b);
        let free = seat.free(bounds);
        self.free_slots -= free;
        if free > 0 {
            self.free.remove(&(seat.ready_at, instance.clone()));
        }
        if let Some(since) = seat.idle_since {
            self.idle.remove(&(since, instance.clone()));
        }
        Some(seat)
    }
}

fn sum(a: Figures, b: Figures, of: fn(u32, u32) -> u32) -> Figures {
    Figures {
        instances: of(a.instances, b.instances),
        total: of(a.total, b.total),
        creating: of(a.creating, b.creating),
        in_use: of(a.in_use, b.in_use),
        acquired: of(a.acquired, b.acquired),
        unavailable: of(a.unavailable, b.unavailable),
        pending: 0,
        announced: 0,
    }
}
