//! Groups that follow their policies, by the ids of `tests/cases/taskscaler.md`.

use crate::effect::{Ask, Effect};
use crate::event::{Event, Refusal};
use crate::fleet::instance::Retired;
use crate::report::Outcome;
use crate::settings::{Environments, RunnerSettings, Settings, Shape};
use crate::taskscaler::policy::{Policy, ScaleThrottle, Scaling, SlotScaling};
use crate::testing::{World, id, job, runner, with};
use std::time::Duration;

fn policy(idle_count: u64, idle_seconds: u64) -> Policy {
    Policy { idle_count, idle_time: Duration::from_secs(idle_seconds), preemptive_mode: idle_count > 0, ..Policy::on_demand() }
}

fn slots(policies: Vec<Policy>) -> Scaling {
    Scaling::Slots(SlotScaling { policies, throttle: ScaleThrottle::Unlimited, reservation_throttling: true })
}

fn scaled(most: u32, scaling: Scaling) -> RunnerSettings {
    RunnerSettings {
        request_concurrency: 20,
        is_adaptive: false,
        ..RunnerSettings::new("a", Environments { scaling, ..Environments::new(Shape::Group, most) })
    }
}

fn world(policy: Policy) -> World {
    World::new(with(scaled(5, slots(vec![policy])))).keeping(&["Follow"])
}

/// How many instances each request was for.
fn requests(world: &World) -> Vec<u32> {
    let counts = world.asked_for("Increase").into_iter();
    counts.map(|effect| if let Effect::Increase { ask: Ask::Count(count), .. } = effect { *count } else { panic!("{effect:?}") }).collect()
}

fn end(world: &mut World, number: u64) {
    world.end(&job(number), Outcome::Success);
}

#[test]
fn a_group_goes_from_none_to_what_its_jobs_need_and_back() {
    let mut world = world(policy(0, 60)).offering(1..=3);
    world.run().pass(10);
    assert_eq!((requests(&world), world.instances.len(), world.count_open("Follow")), (vec![3], 3, 3), "a burst is one request");
    (1..=3).for_each(|number| end(&mut world, number));
    world.pass(50);
    assert_eq!(world.instances.len(), 3);
    world.pass(30);
    assert_eq!((world.instances.len(), world.controller.instances().count()), (0, 0));
}

#[test]
fn tsc_15_a_preemptive_policy_takes_no_job_before_a_slot_is_free() {
    let mut world = world(policy(1, 60)).keeping(&["Follow", "Increase"]).offering(1..=1);
    world.run().pass(10);
    assert_eq!((world.count_open("Increase"), world.asked_for("Take").len()), (1, 0));
    assert!(matches!(world.controller.runners().next().unwrap().held_back, Some(crate::HeldBack::Capacity { .. })));
}

#[test]
fn tsc_16_else_a_job_is_taken_first_and_its_instance_is_asked_for() {
    let mut world = world(policy(0, 60)).offering(1..=1);
    world.run();
    assert_eq!((world.controller.job(&job(1)).map(|job| job.phase), requests(&world)), (Some(crate::view::JobPhase::Waiting), vec![]));
    world.pass(5);
    assert_eq!((requests(&world), world.count_open("Follow")), (vec![1], 1));
}

#[test]
fn tsc_19_an_instance_that_is_not_ready_is_no_free_slot() {
    let mut world = world(policy(1, 60)).keeping(&["Follow", "Connect"]).offering(1..=1);
    world.run().pass(10);
    assert_eq!((world.instances.len(), world.count_open("Connect"), world.asked_for("Take").len()), (1, 1, 0));
    world.kept_open.remove("Connect");
    world.run();
    assert_eq!(world.count_open("Follow"), 1);
}

#[test]
fn tsc_20_polls_leave_the_slots_of_one_instance_free() {
    let mut settings = scaled(5, slots(vec![policy(4, 60)]));
    settings.environments.capacity_per_instance = 2;
    let throttled = World::new(with(settings.clone())).keeping(&["Follow", "Take"]).run().pass(10).count_open("Take");
    let Scaling::Slots(scaling) = &mut settings.environments.scaling else { panic!() };
    scaling.reservation_throttling = false;
    let unthrottled = World::new(with(settings)).keeping(&["Follow", "Take"]).run().pass(10).count_open("Take");
    assert_eq!((throttled, unthrottled), (2, 4));
    // One is always allowed, else a single idle slot would never take a job.
    assert_eq!(world(policy(1, 60)).keeping(&["Follow", "Take"]).run().pass(10).count_open("Take"), 1);
}

#[test]
fn tsc_25_a_job_that_has_waited_too_long_is_demand_no_more() {
    let mut settings = scaled(5, slots(vec![policy(0, 60)]));
    settings.environments.acquire_timeout = Duration::from_secs(1);
    let mut world = World::new(with(settings)).keeping(&["Follow", "Increase"]).offering(1..=1);
    world.run();
    assert_eq!(world.controller.runners().next().unwrap().waiting, 1);
    world.pass(2);
    assert_eq!(world.controller.runners().next().unwrap().waiting, 0);
    let Effect::Increase { id, runner, .. } = world.take("Increase") else { panic!() };
    world.tell(Event::Increased { id, runner, outcome: Err(Refusal { reason: "quota".into(), is_final: false }) });
    world.pass(120);
    assert_eq!(world.count_open("Increase"), 0);
}

#[test]
fn tsc_30_an_instance_that_has_had_its_jobs_goes_with_its_last_one() {
    let mut settings = scaled(1, slots(vec![policy(0, 600)]));
    settings.environments.capacity_per_instance = 2;
    settings.environments.max_use_count = 2;
    let mut world = World::new(with(settings)).keeping(&["Follow"]).offering(1..=2);
    world.run().pass(5);
    end(&mut world, 1);
    let views: Vec<_> = world.controller.runners().map(|runner| (runner.instances, runner.free)).collect();
    assert_eq!((views, world.instances.len()), (vec![(1, 0)], 1));
    end(&mut world, 2);
    assert_eq!(world.instances.len(), 0);
}

#[test]
fn tsc_31_a_job_hears_that_its_instance_is_gone() {
    let mut world = world(policy(0, 60)).offering(1..=1);
    world.run().pass(5);
    world.instances.clear();
    world.pass(120);
    let reports = world.asked_for("Report");
    let [Effect::Report { report, .. }] = reports[..] else { panic!("{reports:?}") };
    assert!(report.message.as_deref().unwrap_or_default().contains("instance unexpectedly removed"), "{report:?}");
}

#[test]
fn tsc_37_instances_that_never_become_ready_are_asked_for_more_and_more_seldom() {
    let mut world = world(policy(5, 60)).keeping(&["Follow", "Connect"]);
    world.run();
    let mut made = 0;
    for _ in 0..60 {
        while world.count_open("Connect") > 0 {
            let index = world.open.iter().position(|effect| matches!(effect, Effect::Connect { .. })).unwrap();
            let Effect::Connect { id, instance, .. } = world.open.remove(index) else { panic!() };
            made += 1;
            world.tell(Event::Connected {
                id,
                instance,
                outcome: Err(Refusal { reason: "ready command: exit status 1".into(), is_final: true }),
            });
        }
        world.pass(1);
    }
    assert!((5..10).contains(&made), "{made} instances in the first minute");
    // The first that works ends it.
    world.kept_open.remove("Connect");
    world.run().pass(400);
    assert_eq!(world.instances.len(), 5);
}

/// Instances that were asked for, at the end of each second.
fn requested_by_second(throttle: ScaleThrottle, most: u32, jobs: u64, seconds: u64) -> Vec<u32> {
    let scaling = Scaling::Slots(SlotScaling { policies: vec![policy(0, 600)], throttle, reservation_throttling: true });
    let mut world = World::new(with(scaled(most, scaling))).keeping(&["Follow"]).offering(1..=jobs);
    world.run();
    // A burst is waited for, so the first second ends a little later.
    let mut counts = Vec::new();
    for _ in 0..seconds {
        world.pass(1);
        counts.push(requests(&world).iter().sum());
    }
    counts
}

#[test]
fn tsc_39_a_throttle_lets_a_burst_through_and_then_one_each_second() {
    assert_eq!(requested_by_second(ScaleThrottle::Limited { limit: 1, burst: 3 }, 20, 10, 8), [3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn tsc_40_without_a_limit_a_burst_is_as_large_as_the_group() {
    assert_eq!(requested_by_second(ScaleThrottle::Limited { limit: 100, burst: 20 }, 20, 20, 1), [20]);
}

#[test]
fn tsc_42_an_instance_goes_when_its_idle_time_has_passed_since_its_last_job() {
    let mut world = world(policy(0, 600)).offering(1..=1);
    world.run().pass(60);
    end(&mut world, 1);
    world.pass(599);
    assert_eq!(world.instances.len(), 1);
    world.pass(1);
    assert_eq!(world.instances.len(), 0);
}

#[test]
fn tsc_43_one_that_was_never_used_goes_when_it_has_passed_since_it_was_ready() {
    let mut world = world(policy(1, 300));
    world.run().pass(3);
    assert_eq!(world.instances.len(), 1);
    let ready = world.now.monotonic;
    world.tell(Event::Reloaded { settings: Box::new(with(scaled(5, slots(vec![policy(0, 300)])))) });
    world.pass(295);
    assert_eq!(world.instances.len(), 1, "ready before {ready:?}");
    world.pass(5);
    assert_eq!(world.instances.len(), 0);
}

#[test]
fn tsc_45_as_many_stay_as_the_idle_slots_need() {
    let mut settings = scaled(5, slots(vec![policy(3, 10)]));
    settings.environments.capacity_per_instance = 2;
    let mut world = World::new(with(settings)).keeping(&["Follow"]);
    world.run().pass(100);
    assert_eq!((world.instances.len(), world.asked_for("Decrease").len()), (2, 0));
}

#[test]
fn tsc_46_without_idle_time_it_goes_with_its_job() {
    let mut world = world(policy(0, 0)).offering(1..=1);
    world.run().pass(5);
    end(&mut world, 1);
    assert_eq!(world.instances.len(), 0);
}

#[test]
fn tsc_54_without_a_policy_instances_are_made_for_jobs_and_stay_five_minutes() {
    let mut world = World::new(with(scaled(5, slots(vec![])))).keeping(&["Follow"]).offering(1..=1);
    world.run().pass(3600);
    assert_eq!(world.instances.len(), 1, "a busy one is not touched");
    end(&mut world, 1);
    world.pass(299);
    assert_eq!(world.instances.len(), 1);
    world.pass(1);
    assert_eq!(world.instances.len(), 0);
}

#[test]
fn tsc_55_a_reload_that_asks_for_idle_slots_is_followed_at_once() {
    let mut world = world(policy(0, 60));
    world.run().pass(10);
    assert_eq!(world.instances.len(), 0);
    world.tell(Event::Reloaded { settings: Box::new(with(scaled(5, slots(vec![policy(3, 60)])))) });
    world.pass(1);
    assert_eq!(world.instances.len(), 3);
}

#[test]
fn tsc_57_no_change_of_policy_hurts_a_job() {
    let mut world = world(policy(3, 60)).offering(1..=3);
    world.run().pass(10);
    assert_eq!((world.count_open("Follow"), world.instances.len()), (3, 5));
    world.tell(Event::Reloaded { settings: Box::new(with(scaled(1, slots(vec![policy(0, 0)])))) });
    world.pass(600);
    assert_eq!((world.count_open("Follow"), world.instances.len()), (3, 3));
    (1..=3).for_each(|number| end(&mut world, number));
    assert_eq!(world.instances.len(), 0);
}

/// After a restart that found two instances, one of which may hold a job.
fn found(keeps_found: bool, holds_job: bool) -> Vec<(String, Option<Retired>)> {
    let mut settings = scaled(5, slots(vec![policy(2, 600)]));
    settings.environments.keeps_found = keeps_found;
    let mut world = World::with_records(with(settings), Vec::new(), &["i-0", "i-1"]).keeping(&["Follow", "Decrease"]);
    if holds_job {
        world.held.insert((crate::testing::instance("i-0"), job(9)));
    }
    world.run();
    world.controller.instances().map(|view| (view.instance.name.to_string(), view.retired)).collect()
}

#[test]
fn tsc_58_what_is_there_at_the_start_and_has_no_record_is_removed() {
    assert_eq!(found(false, false), [("i-0".to_owned(), Some(Retired::NoData)), ("i-1".to_owned(), Some(Retired::NoData))]);
}

#[test]
fn tsc_59_where_each_job_has_a_machine_inside_it_is_kept() {
    assert_eq!(found(true, false), [("i-0".to_owned(), None), ("i-1".to_owned(), None)]);
}

#[test]
fn tsc_61_one_whose_agent_holds_a_job_is_kept_for_it() {
    assert_eq!(found(false, true), [("i-0".to_owned(), None), ("i-1".to_owned(), Some(Retired::NoData))]);
}

#[test]
fn announced_jobs_find_their_instances_ready() {
    let mut world = world(policy(0, 600));
    world.run().pass(1);
    world.tell(Event::Announced { runner: id("a"), jobs: 2 });
    world.pass(5);
    assert_eq!((world.instances.len(), requests(&world)), (2, vec![2]));
    // Nobody repeats it: it is believed for ten minutes, and what it brought goes after its idle time.
    world.pass(700);
    assert_eq!(world.instances.len(), 0);
}

#[test]
fn a_group_never_has_more_than_its_most_while_some_are_being_removed() {
    let mut world = World::new(with(scaled(2, slots(vec![policy(0, 0)])))).keeping(&["Follow", "Decrease"]).offering(1..=2);
    world.run().pass(5);
    (1..=2).for_each(|number| end(&mut world, number));
    world.offers.extend((3..=4).map(crate::testing::offer));
    world.pass(60);
    assert_eq!((world.instances.len(), requests(&world).iter().sum::<u32>()), (2, 2), "those that are being removed still count");
    world.kept_open.remove("Decrease");
    world.run().pass(60);
    assert_eq!((world.instances.len(), world.count_open("Follow")), (2, 2));
}

#[test]
fn a_runner_that_is_removed_gives_its_idle_instances_back_at_once() {
    let mut world = world(policy(3, 600)).offering(1..=1);
    world.run().pass(10);
    assert_eq!(world.instances.len(), 4);
    world.tell(Event::Reloaded { settings: Box::new(Settings { concurrent: 1, ..Settings::default() }) });
    assert_eq!((world.instances.len(), world.count_open("Follow")), (1, 1));
    end(&mut world, 1);
    assert_eq!((world.instances.len(), world.controller.runners().count()), (0, 0));
}

#[test]
fn the_oldest_that_is_ready_gets_the_next_job_so_that_the_others_can_go() {
    let mut world = world(policy(2, 600)).keeping(&["Follow", "Connect"]);
    world.run().pass(3);
    assert_eq!(world.count_open("Connect"), 2);
    // The one that was listed later is ready first.
    let later = world.open.iter().rposition(|effect| matches!(effect, Effect::Connect { .. })).unwrap();
    let Effect::Connect { id, instance, .. } = world.open.remove(later) else { panic!() };
    let first = instance.name.clone();
    world.tell(Event::Connected { id, instance, outcome: Ok(Vec::new()) });
    world.pass(10);
    world.kept_open.remove("Connect");
    world.run();
    world.offers.extend([crate::testing::offer(1)]);
    world.pass(10);
    assert_eq!(world.controller.job(&job(1)).and_then(|job| job.instance), Some(first));
}

#[test]
fn a_group_of_given_size_stays_as_it_was() {
    let mut world = World::new(with(runner(2))).keeping(&["Follow"]);
    world.run().pass(3600);
    assert_eq!((world.instances.len(), requests(&world)), (2, vec![2]));
}
