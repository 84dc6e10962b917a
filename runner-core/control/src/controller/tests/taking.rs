//! When a job is asked for, and when not.

use crate::effect::Effect;
use crate::event::{Event, PollAnswer};
use crate::report::Outcome;
use crate::runner::HeldBack;
use crate::settings::{RunnerSettings, Settings};
use crate::testing::{World, id, job, runner, with};
use std::time::Duration;

fn held_back(world: &World) -> Option<HeldBack> {
    world.controller.runners().next().and_then(|runner| runner.held_back)
}

#[test]
fn runner_38_with_a_limit_of_two_two_jobs_run_and_the_third_turn_says_why() {
    let settings = RunnerSettings { limit: 2, ..runner(5) };
    let mut world = World::new(with(settings)).keeping(&["Follow"]).offering(1..=3);
    world.run().pass(10);
    assert_eq!(world.count_open("Follow"), 2);
    assert_eq!(held_back(&world).map(|why| why.to_string()).as_deref(), Some("runner limit met: `limit` is 2"));
    world.end(&job(1), Outcome::Success);
    assert_eq!(world.count_open("Follow"), 2, "a place that is freed is filled at once");
}

#[test]
fn runner_39_a_limit_of_zero_is_none() {
    let mut world = World::new(with(RunnerSettings { limit: 0, ..runner(20) })).keeping(&["Follow"]).offering(1..=20);
    world.run();
    assert_eq!(world.count_open("Follow"), 20);
}

#[test]
fn runner_42_after_the_second_job_two_polls_may_be_open_and_no_third() {
    let settings = RunnerSettings { request_concurrency: 2, ..runner(9) };
    let mut world = World::new(with(settings)).keeping(&["Follow", "Take"]);
    world.run();
    for number in 1..=2 {
        let Effect::Take { id: take, runner, .. } = world.open.remove(0) else { panic!("{:?}", world.open) };
        let answer = PollAnswer::Job(Box::new(crate::testing::offer(number)));
        world.open.retain(|effect| !matches!(effect, Effect::Follow { .. }));
        world.tell(Event::Polled { id: take, runner, answer, was_retried: false });
    }
    assert_eq!(world.count_open("Take"), 2);
    assert_eq!(held_back(&world), Some(HeldBack::RequestConcurrency { allowed: 2 }));
}

#[test]
fn no_job_is_taken_without_a_place_for_it() {
    let mut settings = runner(2);
    settings.environments.only_when_ready = true;
    let mut world = World::new(with(settings)).keeping(&["Follow", "Connect"]).offering(1..=9);
    world.run().pass(10);
    assert_eq!((world.asked_for("Take").len(), world.count_open("Connect")), (0, 2), "nothing is ready");
    world.kept_open.remove("Connect");
    world.run();
    assert_eq!(world.count_open("Follow"), 2);
    assert_eq!(held_back(&world), Some(HeldBack::Capacity { trouble: None }));
}

#[test]
fn a_provider_that_refuses_holds_back_the_polls() {
    let mut world = World::new(with(runner(2))).keeping(&["Follow", "Increase", "Take"]);
    world.run();
    let Effect::Take { id: take, runner, .. } = world.take("Take") else { panic!() };
    let Effect::Increase { id: increase, .. } = world.take("Increase") else { panic!() };
    let refusal = crate::event::Refusal { reason: "quota".into(), is_final: false };
    world.tell(Event::Increased { id: increase, runner: runner.clone(), outcome: Err(refusal) });
    world.tell(Event::Polled { id: take, runner, answer: PollAnswer::Nothing, was_retried: false });
    world.now = crate::testing::at(5);
    world.tell(Event::Woken);
    assert_eq!(held_back(&world), Some(HeldBack::Capacity { trouble: Some("quota".into()) }));
}

#[test]
fn while_there_are_jobs_no_interval_is_kept_unless_it_is_strict() {
    for (is_strict, running) in [(false, 5), (true, 1)] {
        let mut world = World::new(with(RunnerSettings { is_strict, ..runner(9) })).keeping(&["Follow"]).offering(1..=5);
        world.run();
        assert_eq!(world.count_open("Follow"), running, "strict: {is_strict}");
    }
}

#[test]
fn concurrent_is_shared_fairly() {
    let runners = [(id("a"), runner(9)), (id("b"), runner(9))].into();
    let settings = Settings { concurrent: 1, runners, ..Settings::default() };
    let mut world = World::new(settings).keeping(&["Take"]);
    world.run();
    let mut turns = Vec::new();
    for second in 1..=6 {
        world.now = crate::testing::at(second * 10);
        let Effect::Take { id, runner, .. } = world.take("Take") else { panic!() };
        turns.push(runner.to_string());
        world.tell(Event::Polled { id, runner, answer: PollAnswer::Nothing, was_retried: false });
        world.tell(Event::Woken);
    }
    // The second runner begins half an interval later.
    assert_eq!(turns[1..], ["a", "b", "a", "b", "a"]);
}

#[test]
fn a_runner_that_is_refused_three_times_is_left_alone_and_asked_after_every_minute() {
    let mut world = World::new(with(runner(1))).keeping(&["Take", "Verify"]);
    world.run();
    for _ in 0..3 {
        let Effect::Take { id, runner, .. } = world.take("Take") else { panic!() };
        world.tell(Event::Polled { id, runner, answer: PollAnswer::Refused { reason: "403".into() }, was_retried: false });
        world.pass(3);
    }
    assert_eq!((world.count_open("Take"), world.count_open("Verify")), (0, 0));
    world.pass(60);
    let Effect::Verify { id: verify, runner } = world.take("Verify") else { panic!() };
    world.tell(Event::Verified { id: verify, runner: runner.clone(), is_served: false });
    assert_eq!(world.count_open("Take"), 0);
    world.pass(60);
    let Effect::Verify { id: verify, .. } = world.take("Verify") else { panic!() };
    world.tell(Event::Verified { id: verify, runner, is_served: true });
    assert_eq!(world.count_open("Take"), 1);
}

#[test]
fn a_server_that_is_not_reached_is_asked_less_and_less_often() {
    let mut world = World::new(with(runner(1))).keeping(&["Take"]);
    world.run();
    let mut polls = 0;
    for _ in 0..600 {
        if world.count_open("Take") == 1 {
            let Effect::Take { id, runner, .. } = world.take("Take") else { panic!() };
            world.tell(Event::Polled { id, runner, answer: PollAnswer::Failed { reason: "refused".into() }, was_retried: false });
            polls += 1;
        }
        world.pass(1);
    }
    assert!((10..30).contains(&polls), "{polls} polls in ten minutes");
}

#[test]
fn a_new_configuration_holds_from_now_on_and_running_jobs_are_not_touched() {
    let mut world = World::new(with(runner(1))).keeping(&["Follow"]).offering(1..=3);
    world.run();
    assert_eq!(world.count_open("Follow"), 1);
    world.tell(Event::Reloaded { settings: Box::new(with(runner(2))) });
    world.pass(3);
    assert_eq!(world.count_open("Follow"), 2);
    world.tell(Event::Reloaded { settings: Box::new(Settings { check_interval: Duration::from_secs(1), ..Settings::default() }) });
    assert_eq!(world.count_open("Follow"), 2, "they go on");
    world.end(&job(1), Outcome::Success).end(&job(2), Outcome::Success);
    world.pass(120);
    assert_eq!(
        (world.controller.runners().count(), world.asked_for("Report").len()),
        (0, 2),
        "a runner that is gone goes with its last job"
    );
    assert!(world.instances.is_empty());
}
