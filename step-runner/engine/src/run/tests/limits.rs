use super::*;
use step_model::limits::{AppliedLimit, LimitName, Limits};

fn limits(text: &str) -> Limits {
    Limits::parse(text).unwrap()
}

fn applied(name: LimitName, value: &str, means: &str) -> AppliedLimit {
    AppliedLimit { name, value: value.into(), means: means.into(), reached: false }
}

/// One step that runs until it is told how it ended.
fn running(own: &str) -> World {
    let mut world = World::new("[{name: s, script: echo}]").resolved();
    let mut root = (*world.plan.root).clone();
    let mut document = (*root.document).clone();
    if let step_model::document::Body::Sequence(sequence) = &mut document.definition.body {
        std::sync::Arc::make_mut(&mut sequence.steps[0]).limits = limits(own);
    }
    root.document = std::sync::Arc::new(document);
    world.plan.root = std::sync::Arc::new(root);
    world.plan.limits = limits("memory=64MiB,pids=9");
    world.behaving(|_, _| runs_on()).started()
}

#[test]
fn limits_of_the_job_and_of_the_step_both_hold() {
    let world = running("memory=1GiB,pids=5,network=none");
    assert_eq!(world.processes()[0].limits.to_string(), "memory=64MiB,pids=5,network=none");
}

#[test]
fn a_step_that_came_to_its_limit_says_so_before_how_it_ended() {
    let mut world = running("pids=9");
    let step = StepId(1);
    let told = vec![applied(LimitName::Memory, "64MiB", "cgroup v2"), applied(LimitName::Pids, "9", "none: no right to")];
    world.on(Event::Limited { step, limits: told });
    world.on(Event::LimitReached { step, limit: LimitName::Memory });
    world.on(Event::Exited { step, exit: Exit::Code(137), usage: Usage::default() });
    let node = world.node("s");
    assert_eq!(node.failure.unwrap().message, "exec: out of memory (the limit is 64MiB): exit status 137");
    assert_eq!(node.limits.iter().map(|limit| limit.reached).collect::<Vec<_>>(), [true, false]);
    assert!(world.said().contains(&"the limit `pids` is not held: no right to"), "{:?}", world.said());
}

#[test]
fn a_limit_that_nobody_waits_to_hear_of_changes_nothing() {
    let mut world = running("pids=9");
    world.on(Event::LimitReached { step: StepId(7), limit: LimitName::Memory });
    world.on(Event::Limited { step: StepId(0), limits: vec![applied(LimitName::Memory, "1", "rlimit")] });
    world.on(Event::Exited { step: StepId(1), exit: Exit::Code(0), usage: Usage::default() });
    assert_eq!((world.run().status(), world.node("s").limits.len()), (Status::Success, 0));
}
