//! From an offer to a report.

use crate::effect::Effect;
use crate::event::{Event, FollowEnd, Health};
use crate::report::{FailureReason, Outcome, OutcomeKind, Report};
use crate::settings::{Environments, RunnerSettings, Shape};
use crate::testing::{World, instance, job, offer, runner, with};

#[test]
fn a_job_goes_from_its_offer_to_its_report() {
    let mut world = World::new(with(runner(1))).keeping(&["Follow"]);
    world.run().offers.push_back(offer(1));
    world.pass(3).end(&job(1), Outcome::Success);
    // One record before it is accepted, one when the agent has it, one when the server has to hear of its end.
    assert_eq!(world.asked_about(&job(1)), ["Save", "Accept", "Dispatch", "Save", "Follow", "Save", "Report", "Close", "Forget"]);
    assert_eq!(world.controller.jobs().count(), 0);
}

#[test]
fn nothing_is_accepted_before_the_record_is_durable() {
    let mut world = World::new(with(runner(1))).keeping(&["Follow", "Save"]).offering(1..=1);
    world.run();
    assert_eq!(world.asked_about(&job(1)), ["Save"]);
}

#[test]
fn no_agent_is_asked_before_its_name_is_durable() {
    let mut world = World::new(with(runner(1))).keeping(&["Follow", "Accept"]).offering(1..=1);
    world.run();
    let Effect::Save { record, .. } = world.asked_for("Save").pop().unwrap() else { panic!() };
    assert_eq!(record.stage.instance().map(ToString::to_string).as_deref(), Some("i-0"));
    assert_eq!(world.count_open("Dispatch"), 0);
}

#[test]
fn an_environment_is_made_for_a_job_and_removed_after_it() {
    let provider = RunnerSettings::new("a", Environments::new(Shape::PerJob, 2));
    let mut world = World::new(with(provider)).keeping(&["Follow"]).offering(7..=7);
    world.run();
    assert!(world.instances.iter().any(|name| name.as_str() == "for-7"), "{:?}", world.asked);
    world.end(&job(7), Outcome::Success);
    assert!(world.instances.is_empty());
    assert_eq!(world.asked_for("Report").len(), 1);
}

#[test]
fn a_failed_job_is_reported_once_with_its_reason() {
    let mut world = World::new(with(runner(1))).keeping(&["Follow"]).offering(1..=1);
    let outcome = Outcome::Failure { kind: OutcomeKind::StepFailure, exit_code: Some(2), message: "exit status 2".into() };
    world.run().end(&job(1), outcome);
    let reports = world.asked_for("Report");
    let [Effect::Report { report, .. }] = reports.as_slice() else { panic!("{reports:?}") };
    assert_eq!(*report, Report { failure: Some(FailureReason::ScriptFailure), exit_code: 2, message: None });
}

#[test]
fn a_job_whose_environment_is_gone_is_reported_as_lost_and_not_as_a_script_failure() {
    let mut world = World::new(with(runner(1))).keeping(&["Follow", "Inspect"]).offering(1..=1);
    world.run().kept_open.insert("Connect");
    let Effect::Follow { id, .. } = world.take("Follow") else { panic!() };
    world.tell(Event::Followed { id, job: job(1), end: FollowEnd::Broken { reason: "reset by peer".into() } });
    let Effect::Inspect { id, .. } = world.take("Inspect") else { panic!() };
    world.tell(Event::Inspected { id, instance: instance("i-0"), health: Health::Gone { cause: "preempted".into() } });
    let reports = world.asked_for("Report");
    let [Effect::Report { report, .. }] = reports.as_slice() else { panic!("{reports:?}") };
    assert_eq!(report.failure, Some(FailureReason::RunnerSystemFailure));
    assert_eq!(report.message.as_deref(), Some("the job's environment was lost: preempted"));
}
