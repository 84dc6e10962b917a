//! The published examples of autoscaling with machines, each named after its file in `runner-core/config/tests/fixtures/autoscale`: what the values of the file
//! must bring about.

use crate::report::Outcome;
use crate::settings::{Environments, RunnerSettings, Settings, Shape};
use crate::taskscaler::policy::{IdleFigures, MachinePeriod, MachineScaling, PeriodKind, Scaling};
use crate::taskscaler::schedule::{Form, NamedZone, Period, Schedule, Zone};
use crate::testing::{World, id, job};
use std::time::Duration;
use step_model::time::Timestamp;

fn figures(count: u64, seconds: u64) -> IdleFigures {
    IdleFigures { count, scale_factor: 0.0, count_min: 0, time: Duration::from_secs(seconds) }
}

fn settings(concurrent: u32, limit: u32, idle: IdleFigures) -> Settings {
    let scaling = Scaling::Machines(MachineScaling { idle, periods: Vec::new(), max_growth_rate: None });
    let environments = Environments { scaling, ..Environments::new(Shape::Group, limit) };
    let runner = RunnerSettings { limit, request_concurrency: 20, is_adaptive: false, ..RunnerSettings::new("a", environments) };
    Settings { concurrent, runners: [(id("a"), runner)].into(), ..Settings::default() }
}

fn world(settings: Settings) -> World {
    World::new(settings).keeping(&["Follow"])
}

/// Machines in all, and those with a job.
fn count(world: &World) -> (usize, usize) {
    (world.instances.len(), world.count_open("Follow"))
}

#[test]
fn five_jobs() {
    let mut world = world(settings(10, 10, figures(2, 1800)));
    world.run().pass(10);
    assert_eq!(count(&world), (2, 0), "two idle machines at the start");
    world.offers.extend((1..=5).map(crate::testing::offer));
    world.pass(60);
    assert_eq!(count(&world), (7, 5), "five busy, two idle");
    (1..=5).for_each(|number| _ = world.end(&job(number), Outcome::Success));
    world.pass(1700);
    assert_eq!(count(&world), (7, 0), "nothing goes before its idle time");
    world.pass(120);
    assert_eq!(count(&world), (2, 0), "two idle ones stay");
    world.pass(7200);
    assert_eq!(count(&world), (2, 0));
}

#[test]
fn five_jobs_step_by_step() {
    let mut world = world(settings(10, 10, figures(2, 1800)));
    world.run().pass(10);
    world.offers.extend([crate::testing::offer(1)]);
    world.pass(30);
    assert_eq!(count(&world), (3, 1), "one more is made, so that two are idle again");
    world.end(&job(1), Outcome::Success);
    world.pass(1000);
    assert_eq!(count(&world), (3, 0));
    world.pass(900);
    assert_eq!(count(&world), (2, 0), "one over its idle time is removed, two stay");
}

#[test]
fn five_jobs_at_its_limit() {
    let mut world = world(settings(50, 10, figures(2, 1800)));
    world.offers.extend((1..=25).map(crate::testing::offer));
    world.run().pass(300);
    assert_eq!((count(&world), world.offers.len()), ((10, 10), 15), "further jobs stay in the server's queue");
    world.end(&job(1), Outcome::Success);
    world.pass(60);
    assert_eq!((count(&world), world.offers.len()), ((10, 10), 14));
}

#[test]
fn idle_count_zero_makes_machines_for_jobs() {
    let mut world = world(settings(10, 10, figures(0, 600)));
    world.run().pass(100);
    assert_eq!(count(&world), (0, 0), "no idle machine at the start");
    world.offers.extend([crate::testing::offer(1)]);
    world.pass(30);
    assert_eq!(count(&world), (1, 1));
    world.end(&job(1), Outcome::Success);
    world.pass(500);
    assert_eq!(count(&world), (1, 0), "it waits for its idle time");
    world.offers.extend([crate::testing::offer(2)]);
    world.pass(30);
    assert_eq!(count(&world), (1, 1), "one that is idle is used again");
    world.end(&job(2), Outcome::Success);
    world.pass(601);
    assert_eq!(count(&world), (0, 0));
}

#[test]
fn upper_limit_40() {
    let mut world = world(settings(20, 40, figures(10, 600)));
    world.offers.extend((1..=100).map(crate::testing::offer));
    world.run().pass(300);
    assert_eq!(count(&world), (30, 20), "20 busy and 10 idle");
}

#[test]
fn upper_limit_25() {
    let mut world = world(settings(20, 25, figures(10, 600)));
    world.offers.extend((1..=100).map(crate::testing::offer));
    world.run().pass(300);
    assert_eq!(count(&world), (25, 20), "in the worst case 20 busy and only 5 idle");
    world.pass(2000);
    assert_eq!(count(&world), (25, 20), "at the limit idle machines stay");
}

fn period(pattern: &str, idle: IdleFigures) -> MachinePeriod {
    let periods = vec![Period::parse(pattern, Form::Seven).expect("a period")];
    MachinePeriod { schedule: Schedule::new(periods, Zone::parse("UTC").expect("a zone")), kind: PeriodKind::Autoscaling, idle }
}

fn at(text: &str) -> Timestamp {
    NamedZone::utc().moment(text).expect("a moment")
}

/// Idle machines, their idle time, and when that changes.
fn counting(scaling: &Scaling, moment: &str) -> (u64, u64, String) {
    let Some((crate::taskscaler::policy::Target::Machines(figures), until)) = scaling.target(at(moment)) else { panic!() };
    (figures.count, figures.time.as_secs(), until.to_string())
}

#[test]
fn periods() {
    let periods = vec![period("* * 9-17 * * mon-fri *", figures(50, 3600)), period("* * * * * sat,sun *", figures(5, 60))];
    let scaling = Scaling::Machines(MachineScaling { idle: figures(10, 1800), periods, max_growth_rate: None });
    // 2026-03-02 is a Monday.
    assert_eq!(counting(&scaling, "2026-03-02T08:59:59Z"), (10, 1800, "2026-03-02T09:00:00Z".to_owned()));
    assert_eq!(counting(&scaling, "2026-03-02T09:00:00Z"), (50, 3600, "2026-03-02T17:59:59Z".to_owned()));
    assert_eq!(counting(&scaling, "2026-03-02T17:59:58Z").0, 50);
    assert_eq!(counting(&scaling, "2026-03-02T17:59:59Z"), (10, 1800, "2026-03-03T09:00:00Z".to_owned()));
    assert_eq!(counting(&scaling, "2026-03-07T12:00:00Z"), (5, 60, "2026-03-08T23:59:59Z".to_owned()));
}

#[test]
fn off_peak() {
    let figures_off_peak = figures(1, 300);
    let schedule = |pattern: &str| Period::parse(pattern, Form::Seven).expect("a period");
    let patterns = vec![schedule("* * 0-8,18-23 * * mon-fri *"), schedule("* * * * * sat,sun *")];
    let zone = Zone::parse("UTC").expect("a zone");
    let off_peak = MachinePeriod { schedule: Schedule::new(patterns, zone), kind: PeriodKind::OffPeak, idle: figures_off_peak };
    let scaling = Scaling::Machines(MachineScaling { idle: figures(10, 1800), periods: vec![off_peak], max_growth_rate: None });
    let off = |moment: &str| counting(&scaling, moment).0 == 1;
    assert!(off("2026-03-02T00:00:00Z") && off("2026-03-02T08:59:58Z") && off("2026-03-02T18:00:00Z") && off("2026-03-07T12:00:00Z"));
    assert!(!off("2026-03-02T09:00:00Z") && !off("2026-03-02T17:59:59Z"));
}

#[test]
fn a_period_that_begins_changes_the_fleet_without_any_event() {
    let mut settings = settings(10, 100, figures(1, 60));
    let periods = vec![period("* * 1-23 * * * *", figures(6, 600)), period("* * 2-23 * * * *", figures(2, 60))];
    let runner = settings.runners.get_mut(&id("a")).unwrap();
    runner.environments.scaling = Scaling::Machines(MachineScaling { idle: figures(1, 60), periods, max_growth_rate: None });
    let mut world = world(settings);
    world.run().pass(3590);
    assert_eq!(count(&world), (1, 0));
    world.pass(20);
    assert_eq!(count(&world), (6, 0));
    world.pass(3590);
    assert_eq!(count(&world), (2, 0));
}
