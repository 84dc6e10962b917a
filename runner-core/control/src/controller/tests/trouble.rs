//! Cancels, time limits, and environments that break.

use crate::effect::{CancelHow, Effect};
use crate::event::{DispatchFault, Event, FollowEnd, Health, ServerWord};
use crate::report::{FailureReason, Outcome, OutcomeKind, Report};
use crate::testing::{World, instance, job, runner, with};

fn running() -> World {
    let mut world = World::new(with(runner(2))).keeping(&["Follow"]).offering(1..=1);
    world.run();
    world
}

fn break_stream(world: &mut World) {
    let Effect::Follow { id, job, .. } = world.take("Follow") else { panic!() };
    world.tell(Event::Followed { id, job, end: FollowEnd::Broken { reason: "reset".into() } });
}

fn report(world: &World) -> Option<&Report> {
    match world.asked_for("Report")[..] {
        [] => None,
        [Effect::Report { report, .. }] => Some(report),
        ref more => panic!("{more:?}"),
    }
}

fn hows(world: &World) -> Vec<CancelHow> {
    world
        .asked_for("Cancel")
        .into_iter()
        .map(|effect| if let Effect::Cancel { how, .. } = effect { *how } else { unreachable!() })
        .collect()
}

#[test]
fn a_cancel_is_graceful_and_a_kill_follows_when_it_takes_too_long() {
    let mut world = running();
    world.tell(Event::ServerSaid { job: job(1), word: ServerWord::Canceling });
    world.tell(Event::ServerSaid { job: job(1), word: ServerWord::Canceling });
    assert_eq!(hows(&world), [CancelHow::Gracefully]);
    world.pass(6 * 60);
    assert_eq!(hows(&world), [CancelHow::Gracefully, CancelHow::AtOnce]);
    world.pass(60);
    assert_eq!(report(&world), Some(&Report::failed(FailureReason::JobCanceled)), "nobody waits for an agent for ever");
}

#[test]
fn an_aborted_job_is_killed_and_nothing_is_reported() {
    let mut world = running();
    world.tell(Event::ServerSaid { job: job(1), word: ServerWord::Aborted });
    assert_eq!(report(&world), None);
    world.open.clear();
    let asked = world.asked_about(&job(1));
    assert!(asked.contains(&"Close") && asked.last() == Some(&"Forget"), "{asked:?}");
}

#[test]
fn a_job_that_runs_longer_than_it_may_is_killed_a_minute_after_its_agent_should_have_done_so() {
    let mut world = running();
    world.pass(3600 + 59);
    assert!(hows(&world).is_empty());
    world.pass(1);
    assert_eq!(hows(&world), [CancelHow::AtOnce]);
    world.end(&job(1), Outcome::Failure { kind: OutcomeKind::Cancelled, exit_code: None, message: "killed".into() });
    assert_eq!(report(&world).and_then(|report| report.failure), Some(FailureReason::JobExecutionTimeout));
}

#[test]
fn a_broken_stream_is_followed_again_when_the_agent_answers() {
    let mut world = running();
    break_stream(&mut world);
    world.pass(1).end(&job(1), Outcome::Success);
    assert_eq!((world.asked_for("Follow").len(), report(&world)), (2, Some(&Report::success())));
}

#[test]
fn no_job_is_given_to_a_suspect() {
    let mut world = running();
    world.kept_open.extend(["Connect", "Inspect"]);
    let place = world.controller.job(&job(1)).unwrap().instance.unwrap();
    break_stream(&mut world);
    assert!(world.controller.instances().any(|instance| instance.is_suspect && instance.instance.name == place));
    world.offers.extend([crate::testing::offer(2), crate::testing::offer(3)]);
    world.pass(10);
    let placed: Vec<_> = world.controller.jobs().filter_map(|job| job.instance).filter(|instance| *instance == place).collect();
    assert_eq!(placed.len(), 1, "only the job that is there");
}

#[test]
fn an_environment_that_nobody_can_say_anything_about_is_given_up_after_a_minute() {
    let mut world = running();
    world.kept_open.extend(["Connect", "Inspect"]);
    break_stream(&mut world);
    world.pass(59);
    assert_eq!(report(&world), None);
    world.pass(1);
    assert_eq!(report(&world).and_then(|report| report.failure), Some(FailureReason::RunnerSystemFailure));
}

#[test]
fn an_environment_that_lives_is_waited_for() {
    let mut world = running();
    world.kept_open.extend(["Connect"]);
    break_stream(&mut world);
    world.pass(600);
    assert_eq!(report(&world), None);
    let Effect::Connect { id, instance, .. } = world.take("Connect") else { panic!() };
    let found = vec![crate::event::Found { job: job(1), record: None }];
    world.tell(Event::Connected { id, instance, outcome: Ok(found) });
    world.end(&job(1), Outcome::Success);
    assert_eq!(report(&world), Some(&Report::success()));
}

#[test]
fn an_environment_lost_before_the_job_ran_is_replaced_and_nobody_is_told() {
    let mut world = World::new(with(runner(2))).keeping(&["Follow", "Accept"]).offering(1..=1);
    world.run();
    let place = world.controller.job(&job(1)).unwrap().instance.unwrap();
    world.kept_open.insert("Connect");
    world.tell(Event::Disconnected { instance: instance(place.as_str()), reason: "reset".into() });
    let other = world.controller.job(&job(1)).unwrap().instance;
    assert!(other.is_some() && other != Some(place));
    assert_eq!(report(&world), None);
}

#[test]
fn a_handover_whose_answer_is_lost_is_not_repeated_elsewhere() {
    let mut world = World::new(with(runner(2))).keeping(&["Follow", "Dispatch", "Connect"]).offering(1..=1);
    world.kept_open.remove("Connect");
    world.run();
    world.kept_open.extend(["Connect", "Inspect"]);
    let Effect::Dispatch { id, job: sent, instance: place, .. } = world.take("Dispatch") else { panic!() };
    world.tell(Event::Dispatched { id, job: sent, outcome: Err(DispatchFault::Unreachable { reason: "reset".into() }) });
    world.pass(30);
    assert_eq!(world.count_open("Dispatch"), 0, "it may run there");
    let Effect::Inspect { id, .. } = world.take("Inspect") else { panic!() };
    world.tell(Event::Inspected { id, instance: place, health: Health::Gone { cause: "preempted".into() } });
    assert_eq!(report(&world).and_then(|report| report.failure), Some(FailureReason::RunnerSystemFailure));
    assert_eq!(world.count_open("Dispatch"), 0);
}

#[test]
fn an_agent_that_is_full_is_asked_again_and_then_another() {
    let mut world = World::new(with(runner(2))).keeping(&["Follow", "Dispatch"]).offering(1..=1);
    world.run();
    let mut asked = Vec::new();
    for _ in 0..4 {
        let Effect::Dispatch { id, job: sent, instance, .. } = world.take("Dispatch") else { panic!() };
        asked.push(instance.name);
        world.tell(Event::Dispatched { id, job: sent, outcome: Err(DispatchFault::Busy { reason: "full".into() }) });
        world.pass(10);
    }
    assert!(asked[..3].iter().all(|name| *name == asked[0]) && asked[3] != asked[0], "{asked:?}");
}

#[test]
fn a_payload_that_an_agent_refuses_is_reported_and_its_place_is_free() {
    let mut world = World::new(with(runner(1))).keeping(&["Dispatch"]).offering(1..=1);
    world.run();
    let Effect::Dispatch { id, job: sent, .. } = world.take("Dispatch") else { panic!() };
    let outcome = Outcome::Failure { kind: OutcomeKind::BadInput, exit_code: None, message: "no steps".into() };
    world.tell(Event::Dispatched { id, job: sent, outcome: Err(DispatchFault::Refused { outcome }) });
    assert_eq!(report(&world).map(|report| report.exit_code), Some(3));
    assert_eq!(world.controller.runners().next().map(|runner| runner.free), Some(1));
}

#[test]
fn a_used_up_environment_is_replaced() {
    let mut settings = runner(1);
    settings.environments.max_use_count = 1;
    let mut world = World::new(with(settings)).keeping(&["Follow"]).offering(1..=2);
    world.run().end(&job(1), Outcome::Success);
    world.pass(10).end(&job(2), Outcome::Success);
    let places: Vec<_> = world.asked_for("Dispatch").into_iter().map(|effect| format!("{effect:?}")).collect();
    assert_eq!(places.len(), 2);
    assert_eq!(world.asked_for("Decrease").len(), 2);
}
