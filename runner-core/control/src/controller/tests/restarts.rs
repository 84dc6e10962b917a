//! Jobs of before, with and without the state.

use crate::effect::Effect;
use crate::event::{Event, Found, InstanceState};
use crate::id::{Generation, InstanceName};
use crate::record::{Record, Stage};
use crate::report::{FailureReason, Outcome, Report};
use crate::testing::{World, instance, job, runner, with};
use std::time::Duration;
use step_model::time::Timestamp;

fn record(number: u64, stage: Stage) -> Record {
    Record {
        job: job(number),
        stage,
        accepted: true,
        requirements: Default::default(),
        timeout: Duration::from_secs(3600),
        offered_at: Timestamp::default(),
        ends_by: None,
        stopping: None,
        generation: Generation(1),
    }
}

fn here() -> InstanceName {
    InstanceName::new("i-0")
}

/// The process begins with these records; the environment `i-0` is there, and its agent holds these jobs.
fn restarted(records: Vec<Record>, held: &[u64]) -> World {
    let mut world = World::with_records(with(runner(1)), records, &["i-0"]).keeping(&["Follow"]);
    world.held.extend(held.iter().map(|number| (instance("i-0"), job(*number))));
    world.offers.push_back(crate::testing::offer(99));
    world.run();
    world
}

#[test]
fn a_job_that_runs_is_found_and_followed_before_any_other_is_taken() {
    let mut world = restarted(vec![record(1, Stage::Running { instance: here() })], &[1]);
    let names: Vec<_> = world.asked.iter().chain(&world.open).map(crate::testing::name_of).collect();
    assert_eq!(names[..3], ["Update", "Connect", "Follow"]);
    world.end(&job(1), Outcome::Success);
    assert!(matches!(world.asked_for("Report")[..], [Effect::Report { report, .. }] if *report == Report::success()));
}

#[test]
fn a_job_whose_agent_does_not_know_it_any_more_is_lost() {
    let world = restarted(vec![record(1, Stage::Running { instance: here() })], &[]);
    assert!(
        matches!(world.asked_for("Report")[..], [Effect::Report { report, .. }] if report.failure == Some(FailureReason::RunnerSystemFailure))
    );
}

#[test]
fn a_job_that_was_about_to_be_handed_over_is_handed_over_when_its_agent_does_not_have_it() {
    let dispatching = record(1, Stage::Dispatching { instance: here() });
    let world = restarted(vec![dispatching.clone()], &[]);
    assert_eq!(world.asked_about(&job(1))[..2], ["Dispatch", "Save"]);
    let world = restarted(vec![dispatching], &[1]);
    assert!(world.asked_for("Dispatch").iter().all(|effect| !matches!(effect, Effect::Dispatch { job: sent, .. } if *sent == job(1))));
    assert_eq!(world.count_open("Follow"), 1);
}

#[test]
fn a_job_whose_environment_is_gone_is_lost_and_one_that_nobody_was_asked_to_run_gets_another() {
    let gone = InstanceName::new("i-9");
    let records = vec![record(1, Stage::Dispatching { instance: gone }), record(2, Stage::Offered)];
    let world = restarted(records, &[]);
    assert!(matches!(world.asked_for("Report")[..], [Effect::Report { job: lost, .. }] if *lost == job(1)));
    assert_eq!(world.asked_for("Dispatch").len(), 1);
}

#[test]
fn a_report_that_was_not_delivered_is_delivered() {
    let report = Report { failure: Some(FailureReason::ScriptFailure), exit_code: 7, message: None };
    let world = restarted(vec![record(1, Stage::Ended { report: Some(report.clone()), instance: Some(here()) })], &[1]);
    assert!(matches!(world.asked_for("Report")[..], [Effect::Report { report: told, .. }] if *told == report));
    assert!(world.asked_about(&job(1)).contains(&"Close"));
}

#[test]
fn without_the_state_a_job_comes_back_with_its_environment() {
    let mut world = World::with_records(with(runner(1)), Vec::new(), &["i-0"]).keeping(&["Follow", "Connect"]);
    world.run();
    let Effect::Connect { id, instance, .. } = world.take("Connect") else { panic!() };
    let sealed = record(1, Stage::Dispatching { instance: here() });
    world.tell(Event::Connected { id, instance, outcome: Ok(vec![Found { job: job(1), record: Some(Box::new(sealed)) }]) });
    assert_eq!(world.count_open("Follow"), 1);
    assert!(world.asked_about(&job(1)).contains(&"Save"));
    world.end(&job(1), Outcome::Success);
    assert_eq!(world.asked_for("Report").len(), 1);
}

#[test]
fn a_job_that_cannot_be_read_is_left_alone_and_keeps_its_place() {
    let mut world = World::with_records(with(runner(1)), Vec::new(), &["i-0"]).keeping(&["Follow", "Connect"]);
    world.run();
    let Effect::Connect { id, instance, .. } = world.take("Connect") else { panic!() };
    world.tell(Event::Connected { id, instance, outcome: Ok(vec![Found { job: job(5), record: None }]) });
    world.offers.push_back(crate::testing::offer(1));
    world.pass(70);
    assert_eq!(world.controller.instances().next().map(|instance| instance.foreign_jobs), Some(1));
    assert!(world.asked_about(&job(5)).is_empty() && world.asked_for("Dispatch").is_empty());
}

#[test]
fn no_job_is_taken_before_the_provider_has_said_what_there_is() {
    let mut world = World::with_records(with(runner(1)), vec![record(1, Stage::Running { instance: here() })], &["i-0"]);
    world = world.keeping(&["Follow", "Update"]);
    world.run();
    assert_eq!(world.count_open("Take") + world.asked_for("Take").len(), 0);
    let Effect::Update { id, runner } = world.take("Update") else { panic!() };
    world.tell(Event::Updated { id, runner: runner.clone(), outcome: Err("not yet".into()) });
    world.pass(2);
    assert_eq!(world.controller.jobs().count(), 1, "a provider that does not answer takes no job away");
    let Effect::Update { id, .. } = world.take("Update") else { panic!() };
    world.held.insert((instance("i-0"), job(1)));
    world.tell(Event::Updated { id, runner, outcome: Ok(vec![(here(), InstanceState::Running)]) });
    assert_eq!(world.count_open("Follow"), 1);
}

#[test]
fn records_of_a_runner_that_is_not_configured_stay_where_they_are() {
    let mut foreign = record(1, Stage::Offered);
    foreign.job.runner = crate::testing::id("z");
    let mut world = World::with_records(with(runner(1)), vec![foreign.clone()], &[]);
    world.run();
    assert_eq!(world.controller.unserved(), [foreign.job.clone()]);
    assert!(world.asked_about(&foreign.job).is_empty());
}
