use super::*;
use std::time::Duration;

fn exited(step: u32, exit: Exit) -> Event {
    Event::Exited { step: StepId(step), exit, usage: Usage::default() }
}

/// Two scripts that go on until somebody ends them.
fn running() -> World {
    World::new("[{name: a, script: x}, {name: b, script: x}]").behaving(|_, _| runs_on()).started()
}

#[test]
fn a_cancelled_step_is_asked_and_then_killed() {
    let mut world = running();
    world.now = at(5);
    assert_eq!(world.on(Event::Cancel), [Effect::Terminate { step: StepId(1) }]);
    assert_eq!(world.run().next_deadline(), Some(step_model::time::Deadline::after(at(5), Duration::from_secs(10))));
    assert_eq!(world.on(Event::Cancel), [], "asked once");
    world.now = at(14);
    assert_eq!(world.on(Event::Woken), []);
    world.now = at(15);
    assert_eq!(world.on(Event::Woken), [Effect::Kill { step: StepId(1) }]);
    assert_eq!(world.run().next_deadline(), None);
    world.on(exited(1, Exit::Signal(9)));
    assert_eq!((world.run().status(), world.message()), (Status::Cancelled, "step \"a\": exec: signal: killed"));
    assert_eq!(world.node("a").status, Status::Failure, "cancelled exists for the job only");
    assert_eq!(world.node("a").failure.unwrap().kind, FailureKind::Cancelled);
    assert_eq!(world.node("a").exec.unwrap().exit_code, -1);
    assert_eq!(world.node("a").exec.unwrap().signal, Some(9));
}

#[test]
fn a_step_that_ends_when_asked_was_cancelled_whatever_it_says() {
    for (exit, message) in [
        (Exit::Signal(15), "step \"a\": exec: signal: terminated"),
        (Exit::Code(0), "step \"a\": exec: context canceled"),
        (Exit::Code(3), "step \"a\": exec: exit status 3"),
    ] {
        let mut world = running();
        world.on(Event::Cancel);
        world.on(exited(1, exit));
        assert_eq!((world.run().status(), world.message()), (Status::Cancelled, message));
    }
}

#[test]
fn a_second_cancel_at_once_kills_at_once() {
    let mut world = running();
    world.on(Event::Cancel);
    assert_eq!(world.on(Event::CancelNow), [Effect::Kill { step: StepId(1) }]);
    assert_eq!(world.on(Event::CancelNow), []);
    assert_eq!(world.run().next_deadline(), None);
}

#[test]
fn without_a_grace_period_nobody_is_asked() {
    let mut world =
        World::new("- {name: a, script: x}").with_plan(|plan| plan.grace_period = Duration::ZERO).behaving(|_, _| runs_on()).started();
    assert_eq!(world.on(Event::Cancel), [Effect::Kill { step: StepId(1) }]);
}

#[test]
fn a_step_is_asked_before_it_is_born() {
    let mut world = World::new("- {name: a, script: x}").unsettled();
    assert_eq!(world.on(Event::Cancel), [Effect::Terminate { step: StepId(1) }]);
    let fault = SpawnFault { kind: SpawnFaultKind::Machine, message: "context canceled".into() };
    world.on(Event::NotSpawned { step: StepId(1), fault });
    assert_eq!((world.run().status(), world.message()), (Status::Cancelled, "step \"a\": exec: context canceled"));
}

#[test]
fn a_cancel_while_outputs_are_read_ends_the_job_after_that_step() {
    let run = "[{name: a, step: ./w}, {name: b, script: x}]";
    let mut world = World::new(run).with_file("/job/w/step.yml", &exec("[w, \"${{ output_file }}\"]")).behaving(|_, _| runs_on()).started();
    world.on(exited(1, Exit::Code(0)));
    assert_eq!(world.on(Event::Cancel), []);
    let none = || FileContent::Bytes(Vec::new());
    world.on(Event::Outputs { step: StepId(1), output: none(), export: none() });
    assert_eq!(world.node("a").status, Status::Success);
    assert_eq!((world.run().status(), world.message()), (Status::Cancelled, "context canceled"));
}

#[test]
fn a_cancel_that_came_too_late_to_change_anything_changes_nothing() {
    let mut world = World::new("- {name: a, step: ./w}")
        .with_file("/job/w/step.yml", &exec("[w, \"${{ output_file }}\"]"))
        .behaving(|_, _| runs_on())
        .started();
    world.on(exited(1, Exit::Code(0)));
    world.on(Event::Cancel);
    let none = || FileContent::Bytes(Vec::new());
    world.on(Event::Outputs { step: StepId(1), output: none(), export: none() });
    assert_eq!(world.run().status(), Status::Success);
}

#[test]
fn a_cancel_while_a_definition_is_loaded_does_not_wait_for_it() {
    let run = "[{name: a, script: x}, {name: b, step: ./w}]";
    let mut world = World::new(run).with_file("/job/w/step.yml", &exec("[w]")).behaving(|_, _| runs_on()).started();
    let effects = world.on(exited(1, Exit::Code(0)));
    let Some(Effect::Load { load, from, reference }) = effects.last().cloned() else { panic!("{effects:?}") };
    world.on(Event::Cancel);
    assert_eq!((world.run().status(), world.message()), (Status::Cancelled, "context canceled"));
    let outcome = world.load(&from, &reference);
    assert_eq!(world.on(Event::Loaded { load, outcome }), []);
}

#[test]
fn a_job_that_reaches_its_limit_is_a_failure_of_kind_timeout() {
    let mut world = World::new("[{name: a, script: x}, {name: b, script: x}]")
        .with_plan(|plan| plan.timeout = Some(Duration::from_secs(60)))
        .behaving(|_, _| runs_on())
        .started();
    assert_eq!(world.run().next_deadline(), Some(step_model::time::Deadline::after(at(0), Duration::from_secs(60))));
    world.now = at(60);
    let effects = world.on(Event::Woken);
    let line = "the job has reached its limit of 60s and is ended".to_owned();
    assert_eq!(effects, [Effect::Say { step: StepId::ROOT, line, warning: true }, Effect::Terminate { step: StepId(1) }]);
    world.wait_until(70);
    assert_eq!(world.effects.last(), Some(&Effect::Kill { step: StepId(1) }));
    world.on(exited(1, Exit::Signal(9)));
    assert_eq!((world.run().status(), world.message()), (Status::Failure, "step \"a\": exec: signal: killed"));
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::Timeout);
}

#[test]
fn no_step_begins_after_the_limit_even_if_nobody_woke_the_run() {
    let mut world = World::new("[{name: a, script: x}, {name: b, script: x}]")
        .with_plan(|plan| plan.timeout = Some(Duration::from_secs(60)))
        .behaving(|_, _| runs_on())
        .started();
    world.now = at(61);
    world.on(exited(1, Exit::Code(0)));
    assert_eq!(world.node("a").status, Status::Success, "it ended well before anybody noticed");
    assert_eq!((world.run().failure().unwrap().kind, world.message()), (FailureKind::Timeout, "context deadline exceeded"));
}

/// The steps of a job with a change to the first.
fn with_first(change: impl FnOnce(&mut step_model::document::Step)) -> World {
    let world = World::new("[{name: a, script: x}, {name: b, script: x}]");
    let mut document = (*world.plan.root.document).clone();
    let step_model::document::Body::Sequence(sequence) = &mut document.definition.body else { panic!() };
    change(Arc::make_mut(&mut sequence.steps[0]));
    World::of(Arc::new(document))
}

#[test]
fn a_step_that_ignores_its_timeout_is_killed_after_the_grace_period() {
    let mut world = with_first(|step| step.timeout = Some(Duration::from_secs(60))).behaving(|_, _| runs_on()).started();
    world.now = at(60);
    let line = "step `a` has reached its limit of 60s and is ended".to_owned();
    assert_eq!(world.on(Event::Woken), [Effect::Say { step: StepId(1), line, warning: true }, Effect::Terminate { step: StepId(1) }]);
    world.now = at(70);
    assert_eq!(world.on(Event::Woken), [Effect::Kill { step: StepId(1) }]);
    world.on(exited(1, Exit::Signal(9)));
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::Timeout);
    assert_eq!(world.run().result().children(StepId::ROOT).len(), 1);
}

#[test]
fn a_timeout_that_is_allowed_lets_the_job_go_on() {
    let change = |step: &mut step_model::document::Step| {
        step.timeout = Some(Duration::from_secs(60));
        step.allow_failure = step_model::document::AllowFailure::Any;
    };
    let mut world = with_first(change).behaving(|name, _| if name == "a" { runs_on() } else { exits(0) }).started();
    world.wait_until(60);
    world.on(exited(1, Exit::Signal(15)));
    world.settle();
    assert_eq!(world.run().status(), Status::Success);
    assert!(world.run().result().headline(StepId(1)).allowed_to_fail);
    assert_eq!(world.node("a").failure.unwrap().kind, FailureKind::Timeout);
}

#[test]
fn only_the_exit_codes_that_are_allowed_are() {
    use step_model::document::AllowFailure;
    let status = |code| {
        let allow = |step: &mut step_model::document::Step| step.allow_failure = AllowFailure::ExitCodes(vec![42, 137]);
        with_first(allow).behaving(move |name, _| if name == "a" { exits(code) } else { exits(0) }).finished().run().status()
    };
    assert_eq!(status(42), Status::Success);
    assert_eq!(status(41), Status::Failure);
}

#[test]
fn a_cancelled_step_is_not_excused_by_being_allowed_to_fail() {
    let allow = |step: &mut step_model::document::Step| step.allow_failure = step_model::document::AllowFailure::Any;
    let mut world = with_first(allow).behaving(|_, _| runs_on()).started();
    world.on(Event::Cancel);
    world.on(exited(1, Exit::Signal(15)));
    assert_eq!(world.run().status(), Status::Cancelled);
}

#[test]
fn the_limit_of_a_sequence_ends_what_runs_in_it() {
    let inner = "{}\n---\nrun: [{name: i, script: x}, {name: j, script: x}]\n";
    let world = World::new("[{name: a, step: ./s}, {name: b, script: x}]");
    let mut document = (*world.plan.root.document).clone();
    let step_model::document::Body::Sequence(sequence) = &mut document.definition.body else { panic!() };
    Arc::make_mut(&mut sequence.steps[0]).timeout = Some(Duration::from_secs(5));
    let mut world = World::of(Arc::new(document)).with_file("/job/s/step.yml", inner).behaving(|_, _| runs_on()).started();
    world.wait_until(5);
    assert_eq!(world.effects.last(), Some(&Effect::Terminate { step: StepId(2) }));
    world.on(exited(2, Exit::Signal(15)));
    assert_eq!(world.message(), "step \"a\": step \"i\": exec: signal: terminated");
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::Timeout);
}
