//! Steps that run whatever happened: `after_script`, clean-up.

use super::*;
use std::time::Duration;
use step_model::document::{Action, AllowFailure, Dialect, ScriptLegacy, Step, StepDocument, When};

fn script(name: &str, when: When, timeout: Option<u64>) -> Step {
    let legacy = ScriptLegacy { lines: vec!["true".into()], job_status: when == When::Always, ..ScriptLegacy::default() };
    Step { when, timeout: timeout.map(Duration::from_secs), ..Step::new(name, Action::ScriptLegacy(legacy)) }
}

fn steps(steps: impl IntoIterator<Item = Step>) -> World {
    World::of(Arc::new(StepDocument::of_steps(Dialect::Steps, steps)))
}

/// `script` and `after_script` of a GitLab job.
fn job() -> World {
    steps([script("script", When::OnSuccess, None), script("after_script", When::Always, Some(300))])
}

fn exited(step: u32, exit: Exit) -> Event {
    Event::Exited { step: StepId(step), exit, usage: Usage::default() }
}

/// What the last process was told about the job.
fn job_status(world: &World) -> Option<Value> {
    let env = &world.processes().last()?.env;
    env.iter().find(|(name, _)| **name == *"CI_JOB_STATUS").map(|(_, value)| value.clone())
}

#[test]
fn an_after_script_runs_after_success_and_after_failure() {
    for (code, status, told) in [(0, Status::Success, "success"), (1, Status::Failure, "failed")] {
        let world = job().behaving(move |name, _| exits(if name == "script" { code } else { 0 })).finished();
        assert_eq!((world.run().status(), job_status(&world)), (status, Some(told.into())));
        assert_eq!(world.processes().len(), 2);
    }
    let world = job().behaving(|_, _| exits(1)).finished();
    assert_eq!(world.message(), "step \"script\": exec: exit status 1", "the first failure counts");
}

#[test]
fn an_after_script_that_fails_fails_the_job_unless_it_is_allowed_to() {
    let world = job().behaving(|name, _| exits(if name == "after_script" { 1 } else { 0 })).finished();
    assert_eq!(world.message(), "step \"after_script\": exec: exit status 1");
    let allowed = Step { allow_failure: AllowFailure::Any, ..script("after_script", When::Always, None) };
    assert_eq!(steps([allowed]).behaving(|_, _| exits(1)).finished().run().status(), Status::Success);
}

#[test]
fn an_after_script_runs_after_a_cancel_and_is_not_disturbed_by_another() {
    let mut world = job().behaving(|_, _| runs_on()).started();
    world.on(Event::Cancel);
    world.on(exited(1, Exit::Signal(15)));
    assert_eq!(job_status(&world), Some("canceled".into()));
    assert_eq!(world.on(Event::Cancel), [], "cancel has no effect now");
    world.on(exited(2, Exit::Code(0)));
    assert_eq!((world.run().status(), world.message()), (Status::Cancelled, "step \"script\": exec: signal: terminated"));
}

#[test]
fn an_after_script_ends_at_once_when_somebody_insists() {
    let mut world = job().behaving(|_, _| runs_on()).started();
    world.on(Event::Cancel);
    world.on(exited(1, Exit::Signal(15)));
    assert_eq!(world.on(Event::CancelNow), [Effect::Kill { step: StepId(2) }]);
    world.on(exited(2, Exit::Signal(9)));
    assert_eq!(world.run().status(), Status::Cancelled);
}

#[test]
fn nothing_runs_after_somebody_insisted() {
    let mut world = job().behaving(|_, _| runs_on()).started();
    world.on(Event::CancelNow);
    world.on(exited(1, Exit::Signal(9)));
    assert!(world.run().is_finished());
    assert_eq!(world.processes().len(), 1);
}

#[test]
fn an_after_script_runs_after_a_timeout_under_its_own_limit() {
    let mut world = job().with_plan(|plan| plan.timeout = Some(Duration::from_secs(60))).behaving(|_, _| runs_on()).started();
    world.wait_until(60);
    world.on(exited(1, Exit::Signal(15)));
    assert_eq!(job_status(&world), Some("timedout".into()));
    assert_eq!(world.run().next_deadline(), Some(step_model::time::Deadline::after(at(60), Duration::from_secs(300))));
    world.wait_until(360);
    assert_eq!(world.effects.last(), Some(&Effect::Terminate { step: StepId(2) }));
    world.on(exited(2, Exit::Signal(15)));
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::Timeout);
    assert_eq!(world.message(), "step \"script\": exec: signal: terminated");
}

#[test]
fn a_step_that_runs_in_spite_of_a_stop_ends_in_five_minutes_if_nothing_else_limits_it() {
    let unlimited = || [script("script", When::OnSuccess, None), script("after_script", When::Always, None)];
    let mut world = steps(unlimited()).behaving(|_, _| runs_on()).started();
    world.on(Event::Cancel);
    world.on(exited(1, Exit::Signal(15)));
    assert_eq!(world.run().next_deadline(), Some(step_model::time::Deadline::after(at(0), Duration::from_secs(300))));

    let mut world = steps(unlimited()).behaving(|name, _| if name == "script" { exits(0) } else { runs_on() }).started();
    assert_eq!(world.run().next_deadline(), None);
    assert_eq!(world.on(Event::Cancel), []);
    assert_eq!(world.run().next_deadline(), Some(step_model::time::Deadline::after(at(0), Duration::from_secs(300))));
    world.on(exited(2, Exit::Code(0)));
    assert_eq!(world.run().status(), Status::Success, "the cancel changed nothing");
}

#[test]
fn a_cancel_during_a_step_that_always_runs_skips_what_comes_after_it() {
    let mut world =
        steps([script("always", When::Always, None), script("next", When::OnSuccess, None)]).behaving(|_, _| runs_on()).started();
    world.on(Event::Cancel);
    world.on(exited(1, Exit::Code(0)));
    assert_eq!((world.run().status(), world.message()), (Status::Cancelled, "context canceled"));
}

#[test]
fn a_step_for_failures_runs_after_one_only() {
    let job = || steps([script("script", When::OnSuccess, None), script("rescue", When::OnFailure, None)]);
    assert_eq!(job().finished().processes().len(), 1);
    let world = job().behaving(|name, _| exits(if name == "script" { 1 } else { 0 })).finished();
    assert_eq!((world.processes().len(), world.run().status()), (2, Status::Failure));
    let mut world = job().behaving(|_, _| runs_on()).started();
    world.on(Event::Cancel);
    world.on(exited(1, Exit::Signal(15)));
    assert!(world.run().is_finished(), "a cancelled job is not rescued");
}

#[test]
fn a_log_that_failed_ends_everything() {
    let mut world = job().behaving(|_, _| runs_on()).started();
    world.on(Event::LogFailed { fault: "broken pipe".into() });
    world.on(exited(1, Exit::Signal(15)));
    assert_eq!(world.message(), "step \"script\": exec: writing to stdout: broken pipe");
    assert_eq!(world.processes().len(), 1);
}

#[test]
fn a_step_that_always_runs_is_loaded_in_spite_of_a_cancel() {
    use step_model::reference::{LocalReference, StepReference};
    let local = LocalReference { path: vec![".".into(), "w".into()], file: None };
    let step = |when| Step { when, ..Step::new("clean", Action::Reference(StepReference::Local(local.clone()))) };
    for (when, commands) in [(When::Always, 2), (When::OnSuccess, 1)] {
        let job = steps([script("script", When::OnSuccess, None), step(when)]).with_file("/job/w/step.yml", &exec("[w]"));
        let mut world = job.behaving(|name, _| if name == "script" { runs_on() } else { exits(0) }).started();
        let effects = world.on(exited(1, Exit::Code(0)));
        assert!(matches!(effects.last(), Some(Effect::Load { .. })), "{effects:?}");
        world.on(Event::Cancel);
        world.settle();
        assert_eq!(world.processes().len(), commands);
        assert_eq!(world.run().status(), if when == When::Always { Status::Success } else { Status::Cancelled });
    }
}

#[test]
fn a_cancel_brings_nothing_back_that_a_failed_log_has_ended() {
    let mut world = job().behaving(|_, _| runs_on()).started();
    world.on(Event::LogFailed { fault: "broken pipe".into() });
    world.on(Event::Cancel);
    world.on(exited(1, Exit::Signal(15)));
    assert!(world.run().is_finished());
    assert_eq!(world.processes().len(), 1);
}
