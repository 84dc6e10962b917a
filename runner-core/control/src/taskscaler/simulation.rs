//! A cloud that boots slowly, fails, forgets, repeats, reports late, reclaims and runs out of quota, under tasks of several owners. What must hold is looked at
//! after every event.
//!
//! A failure prints its seed; `SIM_SEED=21 cargo test -p runner-control taskscaler::simulation` plays it again, and prints every event.

#![expect(clippy::disallowed_macros, reason = "a simulation that fails says how to see it again; the crate prints nothing")]

use super::policy::{IdleFigures, MachineScaling, Policy, ScaleThrottle, Scaling, SlotScaling};
use super::{Effect, Event, Owner, Settings, Taskscaler};
use crate::dice::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use step_model::time::{Now, Timestamp};

/// Milliseconds.
type Time = u64;
type Machine = Taskscaler<u32, u32>;

/// From this moment on nothing goes wrong any more.
const CALM: Time = 600_000;
/// By this moment everything that is wanted must have been reached: the longest rest after failures, a boot, an update and an idle time.
const SETTLED: Time = CALM + 900_000;

struct World {
    dice: Dice,
    now: Time,
    settings: Settings,
    machine: Machine,
    agenda: BTreeMap<(Time, u64), Happening>,
    scheduled: u64,
    /// What the cloud has, and whether it works.
    instances: BTreeMap<u32, bool>,
    made: u32,
    /// More than the machine asked for.
    unasked: u32,
    /// What the machine has been told of a task that is not over.
    tasks: BTreeMap<u32, Owner>,
    assigned: BTreeMap<u32, u32>,
    wanted: u32,
    tally: Tally,
    is_replay: bool,
}

/// A simulation that never meets a case proves nothing about it.
#[derive(Debug, Default)]
struct Tally {
    events: u64,
    assigned: u64,
    refused: u64,
    unusable: u64,
    reclaimed: u64,
    repeated: u64,
    forgotten: u64,
    slept: u64,
}

#[derive(Debug, Clone)]
enum Happening {
    Tell(Event<u32, u32>),
    Arrive,
    Vanish,
    List,
    Appear(u32),
}

impl World {
    fn new(seed: u64, tally: Tally, is_replay: bool) -> Self {
        let mut dice = Dice::new(seed);
        let settings = settings(&mut dice);
        let (machine, effects) = Machine::start(settings.clone(), moment(0));
        let mut world = Self {
            dice,
            now: 0,
            settings,
            machine,
            agenda: BTreeMap::new(),
            scheduled: 0,
            instances: BTreeMap::new(),
            made: 0,
            unasked: 0,
            tasks: BTreeMap::new(),
            assigned: BTreeMap::new(),
            wanted: 0,
            tally,
            is_replay,
        };
        for _ in 0..world.below(40) {
            let when = if world.below(3) == 0 { 1_000 } else { world.below(CALM) };
            world.schedule(when, Happening::Arrive);
        }
        for _ in 0..world.below(4) {
            let when = world.below(CALM);
            world.schedule(when, Happening::Vanish);
        }
        world.schedule(60_000, Happening::List);
        world.carry_out(effects);
        world
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.dice.next() % limit.max(1)
    }

    /// So many times in a hundred, while it is not calm.
    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent && self.now < CALM
    }

    fn schedule(&mut self, time: Time, happening: Happening) {
        self.scheduled += 1;
        self.agenda.insert((time.max(self.now), self.scheduled), happening);
    }

    fn run(&mut self) {
        while self.now < SETTLED {
            let next = self.agenda.keys().next().map(|(time, _)| *time);
            let woken = self
                .machine
                .next_deadline()
                .map(|due| self.now + u64::try_from(due.remaining(moment(self.now)).as_nanos().div_ceil(1_000_000)).unwrap());
            let time = next.into_iter().chain(woken).min().unwrap_or(SETTLED);
            self.now = self.now.max(time);
            if next == Some(time)
                && let Some((_, happening)) = self.agenda.pop_first()
            {
                self.happen(happening);
            } else if woken == Some(time) {
                self.tell(Event::Woken);
            }
        }
        self.check_settled();
        self.stop();
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Tell(event) => self.tell(event),
            Happening::Arrive => {
                let task = self.wanted;
                self.wanted += 1;
                let owner = Owner(self.below(3));
                if self.machine.reserve(task, moment(self.now)).is_ok() {
                    self.tasks.insert(task, owner);
                    let priority = i32::from(self.below(10) == 0);
                    self.tell(Event::Wanted { task, owner, priority });
                    if self.happens(5) {
                        let later = self.now + self.below(60_000);
                        self.release(task, later);
                    }
                } else if self.now < CALM {
                    let later = self.now + 5_000;
                    self.schedule(later, Happening::Arrive);
                }
            }
            Happening::Vanish => {
                let index = usize::try_from(self.below(5)).unwrap();
                if let Some(instance) = self.instances.keys().nth(index).copied() {
                    self.tally.reclaimed += 1;
                    self.instances.remove(&instance);
                }
            }
            Happening::List => {
                // All that there is, told late.
                let instances: Vec<u32> = self.instances.keys().copied().collect();
                self.schedule(self.now + 10_000, Happening::List);
                self.tell(Event::Listed { instances });
            }
            Happening::Appear(instance) => {
                let works = !self.happens(15);
                self.instances.insert(instance, works);
                if !self.happens(20) {
                    self.tell(Event::Appeared { instance });
                }
            }
        }
    }

    fn release(&mut self, task: u32, when: Time) {
        self.schedule(when, Happening::Tell(Event::Released { task }));
    }

    fn tell(&mut self, event: Event<u32, u32>) {
        if self.is_replay {
            println!("{:>8} {event:?}", self.now);
        }
        if let Event::Released { task } = &event {
            self.tasks.remove(task);
            self.assigned.remove(task);
        }
        self.tally.events += 1;
        let effects = self.machine.on(event, moment(self.now));
        self.carry_out(effects);
        self.check();
    }

    fn carry_out(&mut self, effects: Vec<Effect<u32, u32>>) {
        for effect in effects {
            if self.is_replay {
                println!("         -> {effect:?}");
            }
            let later = self.now + 1 + self.below(3_000);
            match effect {
                Effect::Grow { count } => self.grow(count, later),
                Effect::Remove { instances } => self.remove(&instances, later),
                Effect::Prepare { instance } | Effect::Wake { instance } => {
                    let works = self.instances.get(&instance).copied();
                    let answer = if works == Some(true) { Event::Ready { instance } } else { Event::Unusable { instance } };
                    self.tally.unusable += u64::from(works == Some(false));
                    if self.happens(5) {
                        self.tally.repeated += 1;
                        let again = later + self.below(20_000);
                        self.schedule(again, Happening::Tell(answer.clone()));
                    }
                    self.schedule(later, Happening::Tell(answer));
                }
                Effect::Assign { task, instance, .. } => {
                    self.tally.assigned += 1;
                    let owner = self.tasks.get(&task).copied();
                    assert!(owner.is_some(), "task {task} has a slot and does not want one");
                    assert!(self.assigned.insert(task, instance).is_none(), "task {task} has two slots");
                    let length = 1 + self.below(120_000);
                    if self.happens(10) {
                        self.schedule(self.now + length / 2, Happening::Tell(Event::Suspended { task }));
                        self.schedule(self.now + length / 2 + 30_000, Happening::Tell(Event::Resumed { task }));
                        self.release(task, self.now + length + 60_000);
                    } else {
                        self.release(task, self.now + length);
                    }
                    if self.happens(5) {
                        self.schedule(self.now + 5_000, Happening::Tell(Event::Beaten { instance, is_healthy: false }));
                        self.schedule(self.now + 9_000, Happening::Tell(Event::Beaten { instance, is_healthy: true }));
                    }
                }
                Effect::Lose { task, .. } => {
                    self.tasks.remove(&task);
                    self.assigned.remove(&task);
                }
                Effect::Sleep { .. } => self.tally.slept += 1,
                Effect::Resume { .. } => {}
            }
        }
    }

    fn grow(&mut self, count: u32, later: Time) {
        let figures = self.machine.figures();
        assert!(figures.total <= self.settings.max_instances, "never more are asked for than there may be: {figures:?}");
        if self.happens(10) {
            self.tally.refused += 1;
            return self.schedule(later, Happening::Tell(Event::Refused));
        }
        // Fewer, more, or none that ever appears.
        let granted = if self.happens(10) { count / 2 } else { count };
        let extra = u32::from(self.happens(3));
        self.unasked += extra;
        for _ in 0..granted + extra {
            if self.happens(5) {
                self.tally.forgotten += 1;
                continue;
            }
            let instance = self.made;
            self.made += 1;
            let boot = later + self.below(90_000);
            self.schedule(boot, Happening::Appear(instance));
        }
        self.schedule(later, Happening::Tell(Event::Granted { count: granted }));
    }

    fn remove(&mut self, instances: &[u32], later: Time) {
        for instance in instances {
            let holds = self.assigned.iter().find(|(_, at)| *at == instance);
            assert!(holds.is_none(), "nothing is removed that holds a task: {instance} holds {holds:?}");
            if self.happens(10) {
                self.tally.forgotten += 1;
                continue;
            }
            self.instances.remove(instance);
            if !self.happens(20) {
                self.schedule(later, Happening::Tell(Event::Gone { instance: *instance }));
            }
        }
    }

    /// After every event.
    fn check(&self) {
        self.machine.check();
        let figures = self.machine.figures();
        let known = u32::try_from(self.machine.pool.iter().count()).unwrap();
        assert!(known <= self.settings.max_instances + self.unasked, "never over the maximum: {figures:?}");
        // Fair share: who waits beside others who wait holds no less than they could have given it, which the line sees to; nobody holds what it does not want.
        let held: u32 = (0..3).map(|owner| self.machine.share(Owner(owner))).sum();
        assert_eq!(usize::try_from(held), Ok(self.assigned.len()), "shares are what owners hold");
        let by_owner: BTreeSet<_> = self.assigned.keys().map(|task| self.tasks.get(task)).collect();
        assert!(!by_owner.contains(&None), "a slot belongs to somebody");
    }

    /// Some time after the last misfortune.
    fn check_settled(&self) {
        let figures = self.machine.figures();
        assert!(self.tasks.is_empty() && self.assigned.is_empty(), "tasks are left: {:?}", self.tasks);
        let known: BTreeSet<u32> = self.machine.pool.iter().map(|(instance, _)| *instance).collect();
        let there: BTreeSet<u32> = self.instances.keys().copied().collect();
        assert_eq!(known, there, "no instance is leaked");
        let (target, _) = self.settings.scaling.target(moment(self.now).wall).expect("a target");
        let required = target.required(&figures, &limits(&self.settings));
        assert!(
            required.grow == 0 && required.shrink == 0 && figures.creating == 0,
            "the idle target is reached: {figures:?} {required:?}"
        );
    }

    fn stop(&mut self) {
        self.tell(Event::Stopped);
        let until = self.now + 300_000;
        while self.now < until {
            let next = self.agenda.keys().next().map_or(until, |(time, _)| *time);
            let woken = self
                .machine
                .next_deadline()
                .map_or(until, |due| self.now + u64::try_from(due.remaining(moment(self.now)).as_millis()).unwrap() + 1);
            self.now = next.min(woken).min(until);
            if next == self.now
                && let Some((_, happening)) = self.agenda.pop_first()
            {
                self.happen(happening);
            } else {
                self.tell(Event::Woken);
            }
        }
        assert_eq!((self.instances.len(), self.machine.pool.iter().count()), (0, 0), "nothing is left");
    }
}

fn limits(settings: &Settings) -> super::required::Limits {
    super::required::Limits { capacity: settings.capacity_per_instance, most: settings.max_instances, growth: u32::MAX }
}

fn moment(now: Time) -> Now {
    let wall = Timestamp::from_nanoseconds(i64::try_from(now).unwrap() * 1_000_000);
    Now { monotonic: Duration::from_millis(now), wall }
}

fn settings(dice: &mut Dice) -> Settings {
    let mut below = |limit: u64| dice.next() % limit;
    let (idle_count, idle_time) = (below(4), Duration::from_secs(below(120)));
    let capacity = 1 + u32::try_from(below(3)).unwrap();
    let scaling = if below(3) > 0 {
        let scale_factor = [0.0, 0.5, 1.5][usize::try_from(below(3)).unwrap()];
        let policy = Policy { idle_count, idle_time, scale_factor, preemptive_mode: idle_count > 0, ..Policy::on_demand() };
        let throttle = if below(2) == 0 { ScaleThrottle::Unlimited } else { ScaleThrottle::Limited { limit: 1, burst: 1 + below(3) } };
        Scaling::Slots(SlotScaling { policies: vec![policy], throttle, reservation_throttling: below(2) == 0 })
    } else {
        let idle = IdleFigures { count: idle_count, scale_factor: 0.0, count_min: 0, time: idle_time };
        Scaling::Machines(MachineScaling { idle, periods: Vec::new(), max_growth_rate: (below(2) == 0).then_some(2) })
    };
    Settings {
        capacity_per_instance: if matches!(scaling, Scaling::Machines(_)) { 1 } else { capacity },
        max_use_count: u32::try_from(below(4)).unwrap(),
        creation_timeout: Duration::from_secs(150),
        ..Settings::new(scaling, 1 + u32::try_from(below(8)).unwrap())
    }
}

/// Says which seed to type when a test ends badly.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to see it again: SIM_SEED={} cargo test -p runner-control taskscaler::simulation -- --nocapture", self.0);
        }
    }
}

#[test]
fn nothing_is_leaked_nothing_exceeds_its_maximum_and_idle_targets_are_reached_in_ten_thousand_worlds() {
    let mut tally = Tally::default();
    // Known when this is compiled: a pure crate does not look at its environment.
    let only = option_env!("SIM_SEED").map(|seed| seed.parse().expect("SIM_SEED is a number"));
    let seeds = only.map_or(0..10_000, |seed| seed..seed + 1);
    for seed in seeds {
        let _guard = SeedOnPanic(seed);
        let mut world = World::new(seed, std::mem::take(&mut tally), only.is_some());
        world.run();
        tally = world.tally;
    }
    println!("{tally:?}");
    let counts = [tally.assigned, tally.refused, tally.unusable, tally.reclaimed, tally.repeated, tally.forgotten, tally.slept];
    assert!(only.is_some() || counts.iter().all(|count| *count >= 500), "the simulation does not look everywhere: {tally:?}");
}
