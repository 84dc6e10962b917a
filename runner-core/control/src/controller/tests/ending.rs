//! Drain, stop, detach.

use crate::effect::{CancelHow, Effect, Exit};
use crate::event::{Event, FollowEnd, PollAnswer};
use crate::record::Stage;
use crate::report::{FailureReason, Outcome, OutcomeKind};
use crate::testing::{World, id, job, offer, runner, with};

/// Two jobs that run.
fn two_jobs() -> World {
    let mut world = World::new(with(runner(2))).keeping(&["Follow", "Exit"]).offering(1..=2);
    world.run();
    world
}

fn exit(world: &World) -> Option<Exit> {
    world.open.iter().find_map(|effect| if let Effect::Exit { how } = effect { Some(*how) } else { None })
}

#[test]
fn runner_196_a_drain_lets_both_jobs_finish_and_takes_no_more() {
    let mut world = two_jobs();
    world.tell(Event::Drain).offers.push_back(offer(3));
    world.pass(60).end(&job(1), Outcome::Success);
    assert_eq!(exit(&world), None);
    world.end(&job(2), Outcome::Success);
    assert_eq!((exit(&world), world.asked_for("Report").len(), world.offers.len()), (Some(Exit::Done), 2, 1));
}

#[test]
fn runner_197_a_second_drain_changes_nothing() {
    let mut world = two_jobs();
    world.tell(Event::Drain).tell(Event::Drain);
    assert!(world.asked_for("Cancel").is_empty() && exit(&world).is_none());
}

#[test]
fn runner_198_a_stop_after_a_drain_ends_the_jobs() {
    let mut world = two_jobs();
    world.tell(Event::Drain).tell(Event::Stop);
    assert!(world.asked_for("Cancel").iter().all(|effect| matches!(effect, Effect::Cancel { how: CancelHow::AtOnce, .. })));
    let killed = || Outcome::Failure { kind: OutcomeKind::Cancelled, exit_code: None, message: "killed".into() };
    world.end(&job(1), killed()).end(&job(2), killed());
    let reports = world.asked_for("Report");
    let is_interrupted =
        |effect: &&Effect| matches!(effect, Effect::Report { report, .. } if report.failure == Some(FailureReason::RunnerInterrupted));
    assert!(reports.len() == 2 && reports.iter().all(is_interrupted), "{reports:?}");
    assert_eq!(exit(&world), Some(Exit::Done));
}

#[test]
fn runner_200_jobs_that_hang_are_left_after_the_shutdown_timeout() {
    let mut world = two_jobs();
    world.tell(Event::Stop).pass(29);
    assert_eq!(exit(&world), None);
    world.pass(1);
    assert_eq!(exit(&world), Some(Exit::TimedOut));
}

#[test]
fn a_second_stop_exits_at_once() {
    let mut world = two_jobs();
    world.tell(Event::Stop).tell(Event::Stop);
    assert_eq!(exit(&world), Some(Exit::AtOnce));
    assert_eq!(world.controller.on(Event::Woken, world.now), [], "nothing follows the exit");
}

#[test]
fn a_poll_that_is_open_at_a_drain_is_waited_for_and_its_job_runs() {
    let mut world = World::new(with(runner(1))).keeping(&["Take", "Follow", "Exit"]);
    world.run().tell(Event::Drain);
    assert_eq!(exit(&world), None);
    let Effect::Take { id: take, .. } = world.take("Take") else { panic!() };
    world.tell(Event::Polled { id: take, runner: id("a"), answer: PollAnswer::Job(Box::new(offer(1))), was_retried: false });
    world.end(&job(1), Outcome::Success);
    assert_eq!((exit(&world), world.asked_for("Report").len()), (Some(Exit::Done), 1));
}

#[test]
fn a_detach_leaves_the_jobs_running_once_each_has_its_record() {
    let mut world = two_jobs();
    world.kept_open.insert("Save");
    world.offers.push_back(offer(3));
    world.tell(Event::Detach);
    assert_eq!(exit(&world), Some(Exit::Detached), "all was durable before");
    assert!(world.asked_for("Cancel").is_empty() && world.asked_for("Report").is_empty());
}

#[test]
fn a_detach_waits_for_records_that_are_being_written() {
    let mut world = two_jobs();
    world.kept_open.extend(["Save", "Report"]);
    world.end(&job(1), Outcome::Success);
    world.tell(Event::Detach);
    assert_eq!(exit(&world), None);
    let Effect::Save { id, record } = world.take("Save") else { panic!() };
    assert!(matches!(record.stage, Stage::Ended { .. }));
    world.tell(Event::Saved { id, job: job(1), outcome: Ok(()) });
    assert_eq!(exit(&world), Some(Exit::Detached));
}

#[test]
fn environments_are_removed_at_the_end_where_that_is_wanted() {
    let mut settings = runner(2);
    settings.environments.delete_on_shutdown = true;
    let mut world = World::new(with(settings)).keeping(&["Follow", "Exit"]).offering(1..=1);
    world.run().tell(Event::Drain);
    world.end(&job(1), Outcome::Success).pass(10);
    assert!(world.instances.is_empty());
    assert_eq!(exit(&world), Some(Exit::Done));
}

#[test]
fn a_job_that_a_manager_of_later_is_driving_is_left_alone() {
    let mut world = two_jobs();
    let index = world.open.iter().position(|effect| matches!(effect, Effect::Follow { .. })).unwrap();
    let Effect::Follow { id, job, .. } = world.open.remove(index) else { panic!() };
    world.tell(Event::Followed { id, job: job.clone(), end: FollowEnd::Fenced });
    assert_eq!(world.asked_about(&job).last(), Some(&"Disown"));
    assert_eq!(world.controller.jobs().count(), 1);
}
