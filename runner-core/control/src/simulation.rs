//! A random GitLab, random clouds, and managers that die at any event and come back, with or without their state. The invariants hold after every event, and in
//! the end no job was lost, none ran twice, and no report is missing or was repeated.
//!
//! A failure prints its seed; `SIM_SEED=21 cargo test -p runner-control simulation` plays it again, and prints every event.

#![expect(clippy::disallowed_macros, reason = "a simulation that fails says how to see it again; the crate prints nothing")]

mod answers;
mod checker;
mod cloud;
mod scene;
mod server;

use crate::controller::{Controller, Seed};
use crate::dice::Dice;
use crate::effect::{Effect, Exit};
use crate::event::{Event, FollowEnd};
use crate::history::{self, Line};
use crate::id::{Generation, JobId};
use crate::invariants::Watch;
use crate::record::Record;
use crate::settings::Settings;
use checker::Tally;
use cloud::Cloud;
use server::{Server, State};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use step_model::time::{Now, Timestamp};

/// Milliseconds since the start.
type Time = u64;

/// How long a simulation may take before its jobs count as lost: longer than a server waits for a job that nobody drives.
const END: Time = 6 * 3_600_000;

/// Dice that stop doing harm at some moment, so that everything can come to its end.
#[derive(Debug)]
struct Chaos {
    dice: Dice,
    is_calm: bool,
}

impl Chaos {
    /// So many times in a hundred, while there is chaos.
    fn happens(&mut self, percent: u64) -> bool {
        let drawn = self.below(100) < percent;
        drawn && !self.is_calm
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.dice.next() % limit.max(1)
    }
}

#[derive(Debug)]
enum Happening {
    /// A request of the process of this number reaches whom it is for.
    Apply(u32, Effect),
    /// An answer reaches the process of this number.
    Tell(u32, Event),
    /// Regular touches of all jobs that run.
    Touch(u32),
    Cancel(JobId),
    Abort(JobId),
    Vanish,
    Break,
    Order(Event),
    Restart {
        with_state: bool,
    },
    Calm,
}

struct Simulation {
    chaos: Chaos,
    now: Time,
    agenda: BTreeMap<(Time, u64), Happening>,
    scheduled: u64,
    settings: Settings,
    server: Server,
    cloud: Cloud,
    store: BTreeMap<JobId, Record>,
    manager: Option<Controller>,
    /// The number of the process that lives, or lived last.
    process: u32,
    watch: Watch,
    canceled: BTreeSet<JobId>,
    exit: Option<Exit>,
    was_stopped: bool,
    /// How many events in a thousand kill the process.
    deadliness: u64,
    is_replay: bool,
    /// The events of the last process are kept as a history.
    is_recorded: bool,
    history: Vec<Line>,
    tally: Tally,
}

/// Says which seed to type when a test ends badly.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to see it again: SIM_SEED={} cargo test -p runner-control simulation -- --nocapture", self.0);
        }
    }
}

impl Simulation {
    fn moment(&self) -> Now {
        let wall = Timestamp::from_nanoseconds(i64::try_from(self.now).unwrap_or(0) * 1_000_000);
        Now { monotonic: Duration::from_millis(self.now), wall }
    }

    fn schedule(&mut self, time: Time, happening: Happening) {
        self.scheduled += 1;
        self.agenda.insert((time.max(self.now), self.scheduled), happening);
    }

    /// Until every job is done and every record gone.
    fn run(&mut self) {
        self.begin();
        while !(self.server.is_done() && self.store.is_empty() && self.chaos.is_calm && self.is_settled()) {
            let runners = || self.manager.iter().flat_map(Controller::runners).collect::<Vec<_>>();
            assert!(self.now < END, "jobs are lost: {:?}, records: {:?}, runners: {:?}", self.server.jobs, self.store, runners());
            assert!(self.step(), "nothing will happen any more: {:?}", self.server.jobs);
            self.server.tick(self.now);
        }
        let mut timeouts = 0;
        let drained_by = self.now + 3_600_000;
        // What was ordered before may come first.
        while self.exit != Some(Exit::Done) {
            if self.manager.is_none() {
                self.begin();
            }
            self.schedule(self.now, Happening::Order(Event::Drain));
            while self.manager.is_some() {
                assert!(self.step() && self.now < drained_by, "the process does not end");
            }
            // An environment that was granted and vanished before it was listed is waited for as long as a stop may take; the next process knows of none.
            timeouts += u32::from(self.exit == Some(Exit::TimedOut));
            assert!(timeouts < 3, "a process without jobs ends in peace");
        }
        self.check_outcome();
    }

    /// No job is in the hands of the process.
    fn is_settled(&self) -> bool {
        self.manager.as_ref().is_some_and(|manager| manager.jobs().next().is_none())
    }

    /// One more thing happens.
    fn step(&mut self) -> bool {
        let next = self.agenda.keys().next().copied();
        let woken = self.manager.as_ref().and_then(Controller::next_deadline).map(|deadline| {
            let left = deadline.remaining(self.moment());
            self.now + u64::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
        });
        let ended = self.cloud.next_end();
        let times = [next.map(|(time, _)| time), woken, ended];
        let Some(time) = times.into_iter().flatten().min() else { return false };
        self.now = self.now.max(time);
        if ended == Some(time) {
            self.end_jobs();
        } else if let Some(key) = next.filter(|(at, _)| *at == time) {
            let happening = self.agenda.remove(&key);
            happening.into_iter().for_each(|happening| self.happen(happening));
        } else {
            self.tell(Event::Woken);
        }
        true
    }

    fn end_jobs(&mut self) {
        for (job, (process, id), outcome) in self.cloud.end_jobs(self.now) {
            let later = self.now + self.chaos.below(1_000);
            self.schedule(later, Happening::Tell(process, Event::Followed { id, job, end: FollowEnd::Ended(outcome) }));
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Apply(process, effect) => self.apply(process, effect),
            Happening::Tell(process, event) if process == self.process => self.tell(event),
            Happening::Touch(process) if process == self.process && self.manager.is_some() => self.touch_all(),
            Happening::Tell(..) | Happening::Touch(_) => {}
            Happening::Cancel(job) => {
                self.server.cancel(&job);
                self.canceled.insert(job);
            }
            Happening::Abort(job) => self.server.abort(&job),
            Happening::Vanish => self.vanish(),
            Happening::Break => self.break_stream(),
            Happening::Order(event) => {
                self.was_stopped |= event == Event::Stop;
                self.tell(event);
            }
            Happening::Restart { with_state } => {
                if self.manager.is_none() {
                    if !with_state {
                        self.store.clear();
                        self.server.given.clear();
                    }
                    self.excuse_unknown();
                    self.begin();
                }
            }
            Happening::Calm => self.chaos.is_calm = true,
        }
    }

    fn begin(&mut self) {
        self.process += 1;
        let records: Vec<Record> = self.store.values().cloned().collect();
        self.watch = Watch::of_records(&records);
        let (generation, seed, now) = (Generation(self.process.into()), Seed(self.process.into()), self.moment());
        if self.is_replay {
            println!("{:>8} process {} begins with {} records", self.now, self.process, records.len());
        }
        self.history = vec![Line::start(&self.settings, &records, generation, seed, now)];
        let (manager, effects) = Controller::start(self.settings.clone(), records, generation, seed, now);
        self.watch.check(&manager, None, &effects, now);
        self.manager = Some(manager);
        self.exit = None;
        self.schedule(self.now + 30_000, Happening::Touch(self.process));
        self.carry_out(effects);
    }

    fn tell(&mut self, event: Event) {
        let now = self.moment();
        let Some(manager) = &mut self.manager else { return };
        if self.is_replay {
            println!("{:>8} {event:?}", self.now);
        }
        self.tally.events += 1;
        if self.is_recorded {
            self.history.push(Line::of(&event, now));
        }
        let effects = manager.on(event.clone(), now);
        if self.is_replay {
            effects.iter().for_each(|effect| println!("         -> {effect:?}"));
        }
        self.watch.check(manager, Some(&event), &effects, now);
        let kills = self.chaos.below(1_000) < self.deadliness && !self.chaos.is_calm;
        self.carry_out(effects);
        if kills && self.manager.is_some() {
            self.die();
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Exit { how } = effect {
                self.exit = Some(how);
                self.leave(true);
                return;
            }
            // Writes of one store are carried out in their order.
            let is_write = matches!(effect, Effect::Save { .. } | Effect::Forget { .. });
            let later = if is_write { 1 } else { self.chaos.below(2_000) };
            self.schedule(self.now + later, Happening::Apply(self.process, effect));
        }
    }

    /// Killed, at any event.
    fn die(&mut self) {
        self.tally.deaths += 1;
        let with_state = self.chaos.below(100) < 60;
        self.tally.amnesias += u64::from(!with_state);
        self.leave(with_state);
    }

    /// The process is gone. What was on its way may have reached whom it was for, or not.
    fn leave(&mut self, with_state: bool) {
        if self.is_replay {
            println!("{:>8} process {} is gone ({:?})", self.now, self.process, self.exit);
        }
        self.manager = None;
        let dead = self.process;
        let underway: Vec<_> = self
            .agenda
            .iter()
            .filter(|(_, happening)| matches!(happening, Happening::Apply(process, _) if *process == dead))
            // A poll ends with its process. And whoever has lost its state must not have told an agent a moment before to forget a job, which nobody else knows.
            .map(|(key, happening)| match happening {
                Happening::Apply(_, Effect::Take { .. } | Effect::Follow { .. }) => (*key, true),
                Happening::Apply(_, Effect::Close { .. }) => (*key, !with_state),
                _ => (*key, false),
            })
            .collect();
        for (key, is_call) in underway {
            // A clean exit waits for its writes.
            let is_kept = self.exit.is_some() || self.chaos.below(2) == 0;
            if is_call || !is_kept {
                self.agenda.remove(&key);
            }
        }
        let later = if self.chaos.below(2) == 0 { self.chaos.below(2_000) } else { self.chaos.below(300_000) };
        self.schedule(self.now + 10 + later, Happening::Restart { with_state });
    }

    /// What neither a record nor an agent knows cannot be found again; before the second phase the server finds out by itself.
    fn excuse_unknown(&mut self) {
        for (id, job) in &mut self.server.jobs {
            let is_given_out = matches!(job.state, State::Running | State::Canceling);
            let is_held = self.cloud.instances.values().any(|machine| machine.jobs.contains_key(id));
            if is_given_out && !is_held && !self.store.contains_key(id) {
                job.is_excused = true;
            }
        }
    }

    fn touch_all(&mut self) {
        let Some(manager) = &self.manager else { return };
        let jobs: Vec<JobId> = manager.jobs().filter(|job| job.is_accepted).map(|job| job.job).collect();
        for job in jobs {
            if let Some(word) = self.server.touch(&job, self.now) {
                let later = self.now + self.chaos.below(500);
                self.schedule(later, Happening::Tell(self.process, Event::ServerSaid { job, word }));
            }
        }
        self.schedule(self.now + 30_000, Happening::Touch(self.process));
    }

    fn vanish(&mut self) {
        let index = usize::try_from(self.chaos.below(8)).unwrap();
        let Some(id) = self.cloud.instances.keys().nth(index).cloned() else { return };
        let followers: Vec<_> =
            self.cloud.instances[&id].jobs.iter().filter_map(|(job, held)| Some((job.clone(), held.follower?))).collect();
        // What a process without memory has not found yet, it will not find any more.
        let held: Vec<JobId> = self.cloud.instances[&id].jobs.keys().cloned().collect();
        held.iter().for_each(|job| self.excuse(job));
        self.cloud.vanish(&id);
        self.tally.vanished += 1;
        for (job, follower) in followers {
            self.break_follower(job, follower);
        }
    }

    fn break_stream(&mut self) {
        let index = usize::try_from(self.chaos.below(8)).unwrap();
        let held = self.cloud.instances.values_mut().flat_map(|machine| machine.jobs.iter_mut());
        let followed = held.filter(|(_, held)| held.follower.is_some()).nth(index);
        if let Some((job, follower)) = followed.and_then(|(job, held)| Some((job.clone(), held.follower.take()?))) {
            self.break_follower(job, follower);
        }
    }

    fn break_follower(&mut self, job: JobId, (process, id): (u32, crate::id::EffectId)) {
        let later = self.now + self.chaos.below(5_000);
        let end = FollowEnd::Broken { reason: "reset by peer".into() };
        self.schedule(later, Happening::Tell(process, Event::Followed { id, job, end }));
    }

    /// The events of the last process, played again from JSON, ask for the same.
    fn replay(&self) -> String {
        self.history.iter().map(|line| line.to_json() + "\n").collect()
    }
}

fn simulate(seed: u64, is_replay: bool, tally: &mut Tally) {
    let _guard = SeedOnPanic(seed);
    let mut simulation = scene::simulation(seed, is_replay, std::mem::take(tally));
    simulation.run();
    if simulation.is_recorded {
        let text = simulation.replay();
        let (controller, asked) = history::play(&text).expect("a history can be played");
        assert!(controller.has_exited() && asked.len() == simulation.history.len(), "played again, it ends as it ended");
    }
    *tally = simulation.tally;
}

#[test]
fn no_job_is_lost_none_runs_twice_and_each_is_reported_once_in_ten_thousand_worlds() {
    let mut tally = Tally::default();
    // Known when this is compiled: a pure crate does not look at its environment, and cargo builds anew when the variable changes.
    if let Some(seed) = option_env!("SIM_SEED") {
        return simulate(seed.parse().expect("SIM_SEED is a number"), true, &mut tally);
    }
    for seed in 0..10_000 {
        simulate(seed, false, &mut tally);
    }
    println!("{tally:?}");
    tally.check();
}
