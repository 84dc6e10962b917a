//! The two-phase commit: claimed, prepared, accepted, or taken back.

use crate::effect::Effect;
use crate::event::{Acknowledgement, Event, Offer, PollAnswer};
use crate::report::{FailureReason, Outcome, Report};
use crate::testing::{World, id, job, offer, runner, with};

fn refused() -> Acknowledgement {
    Acknowledgement::Refused { reason: "400".into() }
}

/// A job that waits for an environment that never comes.
fn waiting() -> World {
    let mut world = World::new(with(runner(1))).keeping(&["Follow", "Heartbeat", "Accept", "Increase"]).offering(1..=1);
    world.run();
    world
}

fn answer_beat(world: &mut World, answer: Acknowledgement) {
    let Effect::Heartbeat { id, job } = world.take("Heartbeat") else { panic!() };
    world.tell(Event::Beaten { id, job, answer });
}

#[test]
fn runner_26_without_a_job_nothing_is_sent() {
    let mut world = World::new(with(runner(1)));
    world.run().pass(60);
    assert!(world.asked.iter().all(|effect| !matches!(effect, Effect::Accept { .. } | Effect::Heartbeat { .. } | Effect::Report { .. })));
}

#[test]
fn runner_27_a_job_is_accepted_with_exactly_one_update() {
    let mut world = World::new(with(runner(1))).keeping(&["Follow"]).offering(1..=1);
    world.run();
    let updates = world.asked_for("Accept").len() + world.asked_for("Heartbeat").len() + world.asked_for("Report").len();
    assert_eq!((updates, world.count_open("Follow")), (1, 1));
}

#[test]
fn runner_29_a_job_that_was_cancelled_meanwhile_is_accepted_and_reported_and_never_runs() {
    let mut world = World::new(with(runner(1))).keeping(&["Accept"]).offering(1..=1);
    world.run();
    let Effect::Accept { id, job } = world.take("Accept") else { panic!() };
    world.tell(Event::Accepted { id, job: job.clone(), answer: Acknowledgement::Canceling });
    assert!(
        matches!(world.asked_for("Report")[..], [Effect::Report { report, .. }] if *report == Report::failed(FailureReason::JobCanceled))
    );
    assert!(world.asked_for("Dispatch").is_empty());
    assert_eq!(world.controller.jobs().count(), 0);
}

/// The original reports without `running`; with the second phase a server takes no report before it, so ours accepts first.
#[test]
fn runner_30_a_job_that_cannot_be_read_is_reported_and_never_runs() {
    let fault = Report { exit_code: 3, ..Report::failed(FailureReason::RunnerSystemFailure) }.because("unsupported option `x`");
    let mut world = World::new(with(runner(1)));
    world.offers.push_back(Offer { fault: Some(fault.clone()), ..offer(1) });
    world.run();
    assert_eq!(world.asked_about(&job(1)), ["Save", "Accept", "Report", "Forget"]);
    assert!(matches!(world.asked_for("Report")[..], [Effect::Report { report, .. }] if *report == fault));
}

#[test]
fn runner_33_a_poll_is_given_up_when_the_process_is_stopped_and_not_when_it_drains() {
    let mut world = World::new(with(runner(1))).keeping(&["Take"]);
    world.run().tell(Event::Drain);
    assert!(world.asked_for("Withdraw").is_empty());
    world.tell(Event::Stop);
    assert_eq!(world.asked_for("Withdraw").len(), 1);
}

#[test]
fn a_job_that_waits_is_told_to_the_server_every_half_minute() {
    let mut world = waiting();
    world.pass(29);
    assert_eq!(world.count_open("Heartbeat"), 0);
    for _ in 0..3 {
        world.pass(30);
        answer_beat(&mut world, Acknowledgement::Good);
    }
    assert!(world.asked_for("Accept").is_empty());
}

#[test]
fn a_server_that_refuses_a_beat_in_time_knows_no_second_phase_and_is_told_at_once() {
    let mut world = waiting();
    world.pass(30);
    answer_beat(&mut world, refused());
    assert_eq!(world.count_open("Accept"), 1);
    world.pass(120);
    assert_eq!(world.count_open("Heartbeat"), 0, "no more beats");
}

#[test]
fn a_beat_that_comes_too_late_gives_the_job_back_and_nothing_more_is_sent() {
    let mut world = waiting();
    world.pass(125);
    answer_beat(&mut world, refused());
    assert_eq!(world.controller.jobs().count(), 0);
    assert!(world.asked_for("Report").is_empty() && world.asked_for("Accept").is_empty());
}

#[test]
fn a_job_that_was_given_back_may_be_offered_again() {
    let mut world = waiting();
    world.pass(125);
    answer_beat(&mut world, refused());
    world.offers.push_back(offer(1));
    world.pass(10);
    assert_eq!(world.controller.jobs().count(), 1);
}

#[test]
fn a_running_that_nobody_waits_for_gives_the_environment_back() {
    let mut world = World::new(with(runner(1))).keeping(&["Accept"]).offering(1..=1);
    world.run();
    let Effect::Accept { id, job } = world.take("Accept") else { panic!() };
    world.tell(Event::Accepted { id, job, answer: refused() });
    assert_eq!(world.controller.jobs().count(), 0);
    assert!(world.asked_for("Report").is_empty() && world.asked_for("Dispatch").is_empty());
    assert!(world.controller.instances().all(|instance| instance.jobs.is_empty()));
}

#[test]
fn a_cancel_that_a_beat_tells_ends_the_job_without_running_it() {
    let mut world = waiting();
    world.pass(30);
    answer_beat(&mut world, Acknowledgement::Canceling);
    assert!(matches!(world.asked_for("Report")[..], [Effect::Report { report, .. }] if report.failure == Some(FailureReason::JobCanceled)));
}

#[test]
fn a_server_that_takes_it_back_is_told_nothing_when_there_is_no_environment() {
    let mut world = waiting();
    for _ in 0..29 {
        world.pass(30);
        answer_beat(&mut world, Acknowledgement::Good);
    }
    world.pass(30);
    assert_eq!(world.controller.jobs().count(), 0, "15 minutes have passed");
    assert!(world.asked_for("Report").is_empty());
}

#[test]
fn an_answer_that_was_lost_is_asked_for_again() {
    let mut world = World::new(with(runner(1))).keeping(&["Follow", "Accept"]).offering(1..=1);
    world.run();
    let Effect::Accept { id, job: accepted } = world.take("Accept") else { panic!() };
    world.tell(Event::Accepted { id, job: accepted, answer: Acknowledgement::Failed { reason: "timeout".into() } });
    world.kept_open.remove("Accept");
    world.pass(2).end(&job(1), Outcome::Success);
    assert_eq!(world.asked_for("Accept").len(), 2);
    assert_eq!(world.asked_for("Report").len(), 1);
}

#[test]
fn a_job_that_is_offered_twice_is_taken_once() {
    let mut world = World::new(with(runner(2))).keeping(&["Follow"]);
    world.offers.extend([offer(1), offer(1)]);
    world.run().end(&job(1), Outcome::Success);
    world.offers.push_back(offer(1));
    world.pass(10);
    assert_eq!(world.asked_for("Dispatch").len(), 1);
    let late =
        Event::Polled { id: crate::id::EffectId(999), runner: id("a"), answer: PollAnswer::Job(Box::new(offer(7))), was_retried: false };
    world.tell(late);
    assert_eq!(world.controller.jobs().count(), 0, "an answer that nobody waits for is ignored");
}
