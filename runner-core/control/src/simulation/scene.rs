//! What a world begins with.

use super::checker::Tally;
use super::cloud::Cloud;
use super::server::{Server, ServerJob, State};
use super::{Chaos, Happening, Simulation, Time};
use crate::dice::Dice;
use crate::event::Event;
use crate::id::{JobId, RunnerId};
use crate::invariants::Watch;
use crate::settings::{Environments, RunnerSettings, Settings, Shape};
use crate::taskscaler::policy::{IdleFigures, MachineScaling, Policy, ScaleThrottle, Scaling, SlotScaling};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) fn simulation(seed: u64, is_replay: bool, tally: Tally) -> Simulation {
    let mut chaos = Chaos { dice: Dice::new(seed), is_calm: false };
    let settings = settings(&mut chaos);
    let server = server(&settings, &mut chaos);
    let deadliness = [0, 2, 10, 30][index(&mut chaos, 4)];
    let mut simulation = Simulation {
        now: 0,
        agenda: BTreeMap::new(),
        scheduled: 0,
        settings,
        server,
        cloud: Cloud::default(),
        store: BTreeMap::new(),
        manager: None,
        process: 0,
        watch: Watch::default(),
        canceled: BTreeSet::new(),
        exit: None,
        was_stopped: false,
        deadliness,
        is_replay,
        is_recorded: seed.is_multiple_of(100),
        history: Vec::new(),
        tally,
        chaos,
    };
    misfortunes(&mut simulation);
    simulation
}

fn index(chaos: &mut Chaos, limit: u64) -> usize {
    usize::try_from(chaos.below(limit)).unwrap()
}

fn number(chaos: &mut Chaos, limit: u64) -> u32 {
    u32::try_from(chaos.below(limit)).unwrap()
}

fn settings(chaos: &mut Chaos) -> Settings {
    let count = 1 + chaos.below(2);
    let runners = (0..count).map(|number| (RunnerId::new(&format!("gitlab.example/{number}")), runner(chaos))).collect();
    Settings {
        concurrent: 1 + number(chaos, 6),
        check_interval: Duration::from_secs(5 + chaos.below(20)),
        shutdown_timeout: Duration::from_secs(30),
        runners,
    }
}

fn runner(chaos: &mut Chaos) -> RunnerSettings {
    let shape = if chaos.below(3) == 0 { Shape::PerJob } else { Shape::Group };
    let environments = Environments {
        capacity_per_instance: 1 + number(chaos, 3),
        max_use_count: number(chaos, 3),
        only_when_ready: chaos.below(2) == 0,
        acquire_timeout: Duration::from_secs(300),
        creation_timeout: Duration::from_secs(90),
        ready_timeout: Duration::from_secs(60),
        update_interval_when_expecting: Duration::from_secs(5),
        deletion_retry_interval: Duration::from_secs(10),
        delete_on_shutdown: chaos.below(2) == 0,
        scaling: scaling(chaos),
        keeps_found: chaos.below(2) == 0,
        ..Environments::new(shape, 1 + number(chaos, 4))
    };
    RunnerSettings {
        limit: number(chaos, 4),
        request_concurrency: 1 + number(chaos, 3),
        is_adaptive: chaos.below(2) == 0,
        is_strict: chaos.below(4) == 0,
        unhealthy_interval: Duration::from_secs(300),
        beats: chaos.below(4) != 0,
        ..RunnerSettings::new("a", environments)
    }
}

/// A fixed number, or one that follows the load by either of the published semantics.
fn scaling(chaos: &mut Chaos) -> Scaling {
    let idle_count = chaos.below(3);
    let idle_time = Duration::from_secs(chaos.below(120));
    match chaos.below(3) {
        0 => Scaling::Fixed,
        1 => {
            let scale_factor = [0.0, 0.5, 2.0][index(chaos, 3)];
            let policy = Policy { idle_count, idle_time, scale_factor, preemptive_mode: idle_count > 0, ..Policy::on_demand() };
            let throttle = if chaos.below(2) == 0 { ScaleThrottle::Unlimited } else { ScaleThrottle::Limited { limit: 1, burst: 2 } };
            Scaling::Slots(SlotScaling { policies: vec![policy], throttle, reservation_throttling: chaos.below(2) == 0 })
        }
        _ => {
            let idle = IdleFigures { count: idle_count, scale_factor: 0.0, count_min: 0, time: idle_time };
            let max_growth_rate = (chaos.below(2) == 0).then_some(1);
            Scaling::Machines(MachineScaling { idle, periods: Vec::new(), max_growth_rate })
        }
    }
}

/// A burst at the beginning, and some later.
fn server(settings: &Settings, chaos: &mut Chaos) -> Server {
    let runners: Vec<&RunnerId> = settings.runners.keys().collect();
    let jobs = (1..=1 + chaos.below(8)).map(|number| {
        let runner = runners[index(chaos, u64::try_from(runners.len()).unwrap())];
        let from = if chaos.below(2) == 0 { 0 } else { chaos.below(200_000) };
        let job = ServerJob { state: State::Queued, from, timeout: 600_000, heard: 0, is_excused: false, finals: 0, is_claimed: false };
        (JobId::new(runner, number), job)
    });
    let jobs = jobs.collect();
    Server { jobs, is_two_phase: chaos.below(3) != 0, given: BTreeSet::new() }
}

/// What will go wrong from outside, until it is calm.
fn misfortunes(simulation: &mut Simulation) {
    let calm_at: Time = 100_000 + simulation.chaos.below(400_000);
    simulation.schedule(calm_at, Happening::Calm);
    let jobs: Vec<JobId> = simulation.server.jobs.keys().cloned().collect();
    for job in jobs {
        let when = simulation.chaos.below(300_000);
        match simulation.chaos.below(20) {
            0..3 => simulation.schedule(when, Happening::Cancel(job)),
            3 => simulation.schedule(when, Happening::Abort(job)),
            _ => {}
        }
    }
    for _ in 0..simulation.chaos.below(3) {
        let when = simulation.chaos.below(calm_at);
        simulation.schedule(when, Happening::Vanish);
    }
    for _ in 0..simulation.chaos.below(4) {
        let when = simulation.chaos.below(calm_at);
        simulation.schedule(when, Happening::Break);
    }
    let order = match simulation.chaos.below(12) {
        0 | 1 => Event::Detach,
        2 => Event::Stop,
        3 => Event::Drain,
        _ => return,
    };
    let when = simulation.chaos.below(calm_at);
    simulation.schedule(when, Happening::Order(order));
}
