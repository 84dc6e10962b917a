//! The machine: tasks get slots of instances, and there are as many instances as the policy that counts wants.

use super::event::{Effect, Event, NoCapacity, Settings};
use super::line::{Line, Owner, Place};
use super::policy::Scaling;
use super::pool::{Pool, Stage};
use super::required::Figures;
use super::scaler::Scaler;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;
use step_model::time::{Deadline, Now};

/// See the [module](super) for what it is, and `examples/desks.rs` for its use.
#[derive(Debug)]
pub struct Taskscaler<I, T> {
    settings: Settings,
    pub(super) pool: Pool<I, T>,
    line: Line<T>,
    tasks: BTreeMap<T, Task<I>>,
    reserved: BTreeSet<T>,
    announced: u32,
    scaler: Scaler,
    /// Asked for and not there so far.
    requested: u32,
    /// Of those, what the open request is about.
    growing: u32,
    requested_until: Option<Deadline>,
    /// When an instance must have become what it is expected to become.
    waits: BTreeMap<I, Deadline>,
    by_time: BTreeSet<(Deadline, I)>,
    scale_at: Option<Deadline>,
    is_stopped: bool,
    effects: Vec<Effect<I, T>>,
}

#[derive(Debug)]
struct Task<I> {
    owner: Owner,
    place: Place,
    at: Option<(I, u32)>,
    is_suspended: bool,
}

impl<I: Ord + Clone + Debug, T: Ord + Clone + Debug> Taskscaler<I, T> {
    pub fn start(settings: Settings, now: Now) -> (Self, Vec<Effect<I, T>>) {
        let mut taskscaler = Self {
            settings,
            pool: Pool::default(),
            line: Line::default(),
            tasks: BTreeMap::new(),
            reserved: BTreeSet::new(),
            announced: 0,
            scaler: Scaler::default(),
            requested: 0,
            growing: 0,
            requested_until: None,
            waits: BTreeMap::new(),
            by_time: BTreeSet::new(),
            scale_at: None,
            is_stopped: false,
            effects: Vec::new(),
        };
        let effects = taskscaler.on(Event::Woken, now);
        (taskscaler, effects)
    }

    /// Total: any event, at any time, without a panic.
    pub fn on(&mut self, event: Event<I, T>, now: Now) -> Vec<Effect<I, T>> {
        self.lose_patience(now);
        self.handle(event, now);
        self.assign(now);
        self.scale(now);
        std::mem::take(&mut self.effects)
    }

    /// `on(Event::Woken, ..)` is due no later than this.
    pub fn next_deadline(&self) -> Option<Deadline> {
        let first = self.by_time.first().map(|(deadline, _)| *deadline);
        [first, self.scale_at, self.requested_until].into_iter().flatten().min()
    }

    /// Holds a place for a task that may come: nobody asks for one without it.
    /// # Errors
    /// There is none, now or at all.
    pub fn reserve(&mut self, task: T, now: Now) -> Result<(), NoCapacity> {
        if self.reserved.contains(&task) || self.tasks.contains_key(&task) {
            return Ok(());
        }
        let is_preemptive = self.scaler.target(&self.settings.scaling, now).is_some_and(super::policy::Target::is_preemptive);
        let (capacity, figures) = (u64::from(self.settings.bounds().capacity), self.figures());
        let [free, pending, reserved] = [u64::from(self.pool.free_slots()), u64::from(figures.pending), self.reserved.len() as u64];
        let idle = free.saturating_sub(pending);
        let is_throttled = matches!(&self.settings.scaling, Scaling::Slots(slots) if slots.reservation_throttling);
        if is_throttled && idle > 0 && reserved >= idle.saturating_sub(capacity).max(1) {
            return Err(NoCapacity::NotNow);
        }
        let room = self.settings.max_instances.saturating_sub(figures.total);
        let coming = u64::from(figures.creating).saturating_add(u64::from(room)).saturating_mul(capacity);
        let taken = pending.saturating_add(reserved);
        if free <= taken {
            if free.saturating_add(coming) <= taken {
                return Err(NoCapacity::AtAll);
            }
            if is_preemptive {
                return Err(NoCapacity::NotNow);
            }
        }
        self.reserved.insert(task);
        Ok(())
    }

    /// What is counted at this moment.
    pub fn figures(&self) -> Figures {
        let sums = self.pool.figures();
        Figures {
            instances: sums.instances.saturating_add(self.requested),
            total: sums.total.saturating_add(self.requested),
            creating: sums.creating.saturating_add(self.requested),
            pending: u32::try_from(self.line.len()).unwrap_or(u32::MAX),
            announced: self.announced,
            ..sums
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Slots that an owner's tasks hold.
    pub fn share(&self, owner: Owner) -> u32 {
        self.line.holds(owner)
    }

    /// # Panics
    /// What is counted is not what is there.
    pub fn check(&self) {
        self.pool.check(self.settings.bounds());
        let waiting = self.tasks.values().filter(|task| task.at.is_none()).count();
        assert_eq!(waiting, self.line.len(), "all that waits is in the line");
        for (name, task) in &self.tasks {
            let Some((instance, slot)) = &task.at else { continue };
            let seat = self.pool.get(instance).unwrap_or_else(|| panic!("{name:?} is on {instance:?}, which is not there"));
            let held = usize::try_from(*slot).ok().and_then(|slot| seat.slots.get(slot)).and_then(Option::as_ref);
            assert_eq!(held, Some(name), "a slot knows its task");
        }
        let held: usize = self.pool.iter().map(|(_, seat)| seat.tasks().count()).sum();
        assert_eq!(held, self.tasks.len() - waiting, "no slot holds a task that is over");
        assert!(self.line.is_empty() || self.pool.free_slots() == 0, "nobody waits beside a free slot");
        assert_eq!(self.waits.len(), self.by_time.len(), "each is waited for once");
    }

    fn handle(&mut self, event: Event<I, T>, now: Now) {
        match event {
            Event::Wanted { task, owner, priority } => self.on_wanted(task, owner, priority),
            Event::Released { task } => self.on_released(&task, now),
            Event::Suspended { task } => self.on_suspended(&task, now),
            Event::Resumed { task } => self.on_resumed(&task, now),
            Event::Announced { tasks } => self.announced = tasks,
            Event::Granted { count } => {
                let asked = std::mem::take(&mut self.growing);
                self.requested -= asked.saturating_sub(count).min(self.requested);
                if count < asked {
                    self.scaler.failed(now);
                }
            }
            Event::Refused => {
                self.requested -= std::mem::take(&mut self.growing).min(self.requested);
                self.scaler.failed(now);
            }
            Event::Appeared { instance } => self.on_appeared(instance, now),
            Event::Listed { instances } => self.on_listed(instances, now),
            Event::Ready { instance } => self.on_ready(&instance, now),
            Event::Unusable { instance } => self.on_unusable(&instance, now),
            Event::Beaten { instance, is_healthy } => self.on_beaten(&instance, is_healthy, now),
            Event::Gone { instance } => self.on_gone(&instance, now),
            Event::Reconfigured { settings } => {
                self.settings = *settings;
                self.scaler.reconfigured();
                self.pool.rebound(self.settings.bounds());
            }
            Event::Stopped => self.is_stopped = true,
            Event::Woken => {}
        }
        if self.requested == 0 {
            self.requested_until = None;
        }
    }

    fn on_wanted(&mut self, task: T, owner: Owner, priority: i32) {
        self.reserved.remove(&task);
        if !self.tasks.contains_key(&task) {
            let place = self.line.push(owner, priority, task.clone());
            self.tasks.insert(task, Task { owner, place, at: None, is_suspended: false });
        }
    }

    fn on_released(&mut self, task: &T, now: Now) {
        self.reserved.remove(task);
        let Some(known) = self.tasks.remove(task) else { return };
        match known.at {
            None => drop(self.line.remove(known.owner, known.place)),
            Some((instance, slot)) => {
                self.line.gave(known.owner);
                self.pool.release(&instance, slot, known.is_suspended, self.settings.bounds(), now.monotonic);
                self.let_go(&instance, now);
                self.let_sleep(&instance, now);
            }
        }
    }

    /// One that is of no more use goes with its last task.
    fn let_go(&mut self, instance: &I, now: Now) {
        let (bounds, threshold) = (self.settings.bounds(), self.settings.failure_threshold.max(1));
        let Some(seat) = self.pool.get(instance) else { return };
        // What sleeps without a task would never be woken.
        let is_useless = seat.is_used_up(bounds) || seat.failures >= threshold || seat.stage == Stage::Asleep;
        if seat.is_empty() && is_useless {
            self.remove(vec![instance.clone()], now);
        }
    }

    fn on_suspended(&mut self, task: &T, now: Now) {
        let Some(known) = self.tasks.get_mut(task).filter(|known| !known.is_suspended) else { return };
        let Some((instance, _)) = known.at.clone() else { return };
        known.is_suspended = true;
        self.pool.change(&instance, self.settings.bounds(), now.monotonic, |seat| seat.suspended += 1);
        self.let_sleep(&instance, now);
    }

    fn let_sleep(&mut self, instance: &I, now: Now) {
        if self.pool.get(instance).is_some_and(super::pool::Seat::may_sleep) {
            self.pool.change(instance, self.settings.bounds(), now.monotonic, |seat| seat.stage = Stage::Asleep);
            self.effects.push(Effect::Sleep { instance: instance.clone() });
        }
    }

    fn on_resumed(&mut self, task: &T, now: Now) {
        let Some(known) = self.tasks.get_mut(task).filter(|known| known.is_suspended) else { return };
        let Some((instance, slot)) = known.at.clone() else { return };
        known.is_suspended = false;
        let stage = self.pool.change(&instance, self.settings.bounds(), now.monotonic, |seat| {
            seat.suspended -= 1;
            let before = seat.stage;
            if before == Stage::Asleep {
                seat.stage = Stage::Coming;
            }
            before
        });
        match stage {
            Some(Stage::Asleep) => {
                self.wait(&instance, Some(Deadline::after(now, self.settings.creation_timeout)));
                self.effects.push(Effect::Wake { instance });
            }
            // With the others, when it is awake.
            Some(Stage::Coming) => {}
            _ => self.effects.push(Effect::Resume { task: task.clone(), instance, slot }),
        }
    }

    fn on_appeared(&mut self, instance: I, now: Now) {
        if self.pool.appeared(&instance, self.settings.bounds()) {
            self.requested = self.requested.saturating_sub(1);
            self.growing = self.growing.min(self.requested);
            self.wait(&instance, Some(Deadline::after(now, self.settings.creation_timeout)));
            self.effects.push(Effect::Prepare { instance });
        }
    }

    fn on_listed(&mut self, instances: Vec<I>, now: Now) {
        let listed: BTreeSet<I> = instances.into_iter().collect();
        let missing: Vec<I> =
            self.pool.iter().map(|(instance, _)| instance).filter(|instance| !listed.contains(instance)).cloned().collect();
        missing.iter().for_each(|instance| self.on_gone(instance, now));
        listed.into_iter().for_each(|instance| self.on_appeared(instance, now));
    }

    fn on_ready(&mut self, instance: &I, now: Now) {
        if self.pool.get(instance).is_none_or(|seat| seat.stage != Stage::Coming) {
            return;
        }
        self.scaler.succeeded();
        self.wait(instance, None);
        self.pool.ready(instance, self.settings.bounds(), now.monotonic);
        let Some(seat) = self.pool.get(instance) else { return };
        let awake = seat.slots.iter().enumerate().filter_map(|(slot, task)| Some((slot, task.clone()?)));
        for (slot, task) in awake.collect::<Vec<_>>() {
            if self.tasks.get(&task).is_some_and(|task| !task.is_suspended) {
                let slot = u32::try_from(slot).unwrap_or(u32::MAX);
                self.effects.push(Effect::Resume { task, instance: instance.clone(), slot });
            }
        }
    }

    fn on_unusable(&mut self, instance: &I, now: Now) {
        if self.pool.get(instance).is_some_and(|seat| seat.stage == Stage::Coming) {
            self.scaler.failed(now);
            self.lose_tasks(instance, now);
            self.remove(vec![instance.clone()], now);
        }
    }

    fn on_beaten(&mut self, instance: &I, is_healthy: bool, now: Now) {
        self.pool.change(instance, self.settings.bounds(), now.monotonic, |seat| {
            seat.failures = if is_healthy { 0 } else { seat.failures.saturating_add(1) };
        });
        if self.pool.get(instance).is_some_and(|seat| seat.stage == Stage::Ready) {
            self.let_go(instance, now);
        }
    }

    fn on_gone(&mut self, instance: &I, now: Now) {
        self.lose_tasks(instance, now);
        self.wait(instance, None);
        self.pool.remove(instance, self.settings.bounds());
    }

    fn lose_tasks(&mut self, instance: &I, now: Now) {
        let Some(seat) = self.pool.get(instance) else { return };
        for task in seat.tasks().cloned().collect::<Vec<_>>() {
            let Some(known) = self.tasks.remove(&task) else { continue };
            self.line.gave(known.owner);
            if let Some((_, slot)) = known.at {
                self.pool.release(instance, slot, known.is_suspended, self.settings.bounds(), now.monotonic);
            }
            self.effects.push(Effect::Lose { task, instance: instance.clone() });
        }
    }

    fn remove(&mut self, instances: Vec<I>, now: Now) {
        for instance in &instances {
            self.pool.change(instance, self.settings.bounds(), now.monotonic, |seat| seat.stage = Stage::Leaving);
            self.wait(instance, Some(Deadline::after(now, self.settings.deletion_retry_interval)));
        }
        self.effects.push(Effect::Remove { instances });
    }

    fn wait(&mut self, instance: &I, until: Option<Deadline>) {
        let before = match until {
            Some(until) => self.waits.insert(instance.clone(), until),
            None => self.waits.remove(instance),
        };
        if let Some(before) = before {
            self.by_time.remove(&(before, instance.clone()));
        }
        self.by_time.extend(until.map(|until| (until, instance.clone())));
    }

    /// What was granted and never appeared, never became ready, or was to go and is still there.
    fn lose_patience(&mut self, now: Now) {
        if self.requested_until.is_some_and(|deadline| deadline.has_passed(now)) {
            self.requested = self.growing;
            self.requested_until = None;
            self.scaler.failed(now);
        }
        while let Some((_, instance)) = self.by_time.first().filter(|(deadline, _)| deadline.has_passed(now)).cloned() {
            self.wait(&instance, None);
            match self.pool.get(&instance).map(|seat| seat.stage) {
                Some(Stage::Coming) => self.on_unusable(&instance, now),
                Some(Stage::Leaving) => self.remove(vec![instance], now),
                _ => {}
            }
        }
    }

    fn assign(&mut self, now: Now) {
        let bounds = self.settings.bounds();
        while self.pool.free_slots() > 0 {
            let Some(task) = self.line.pop() else { return };
            let Some((instance, slot)) = self.pool.assign(task.clone(), bounds, now.monotonic) else { return };
            if let Some(known) = self.tasks.get_mut(&task) {
                known.at = Some((instance.clone(), slot));
                self.line.took(known.owner);
            }
            self.effects.push(Effect::Assign { task, instance, slot });
        }
    }

    fn scale(&mut self, now: Now) {
        let (figures, limits) = (self.figures(), self.settings.limits());
        let throttle = self.settings.scaling.throttle();
        let (required, idle_time) = match self.scaler.target(&self.settings.scaling, now) {
            _ if self.is_stopped => {
                let shrink = figures.instances;
                (super::required::Required { grow: 0, shrink, at_once: shrink }, Duration::ZERO)
            }
            Some(target) => (target.required(&figures, &limits), target.idle_time()),
            // A fixed number.
            None => {
                let (grow, at_once) = (limits.most.saturating_sub(figures.total), figures.instances.saturating_sub(limits.most));
                (super::required::Required { grow, shrink: at_once, at_once }, Duration::ZERO)
            }
        };
        let count = if self.growing > 0 { 0 } else { self.scaler.grow(required.grow, throttle, now) };
        if count > 0 {
            self.scaler.asked(count, throttle, now);
            self.requested += count;
            self.growing = count;
            self.requested_until = Some(Deadline::after(now, self.settings.creation_timeout));
            self.effects.push(Effect::Grow { count });
        }
        let idle_at = self.shrink(required, idle_time, now);
        let is_held = required.grow > count && self.growing == 0;
        self.scale_at = self.scaler.due(is_held, throttle, now).into_iter().chain(idle_at).min();
    }

    fn shrink(&mut self, required: super::required::Required, idle_time: Duration, now: Now) -> Option<Deadline> {
        let mut gone = Vec::new();
        let mut next = None;
        while (gone.len() as u64) < u64::from(required.shrink) {
            let Some((since, instance)) = self.pool.longest_idle() else { break };
            let goes_at = Deadline::after(Now { monotonic: since, wall: now.wall }, idle_time);
            if !goes_at.has_passed(now) && gone.len() as u64 >= u64::from(required.at_once) {
                next = Some(goes_at);
                break;
            }
            let instance = instance.clone();
            self.pool.change(&instance, self.settings.bounds(), now.monotonic, |seat| seat.stage = Stage::Leaving);
            gone.push(instance);
        }
        if !gone.is_empty() {
            self.remove(gone, now);
        }
        next
    }
}
