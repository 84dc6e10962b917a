use super::*;
use crate::world::World;
use step_model::diagnostic::Verdict;
use step_model::document::Body;
use step_model::plan::Target;

const LEAF: &str = "{}\n---\nexec: {command: [x]}\n";

/// `verdict file: message`, one for each problem.
fn told(world: &World) -> Vec<String> {
    let problems = match world.resolve() {
        Ok((_, problems)) | Err(problems) => problems,
    };
    let line = |document: &DocumentProblems, problem: &Problem| {
        let verdict = if problem.verdict == Verdict::Error { "error" } else { "warning" };
        format!("{verdict} {}: {}", document.file, problem.message)
    };
    problems.iter().flat_map(|document| document.problems.iter().map(move |problem| line(document, problem))).collect()
}

fn kinds(targets: &[Target]) -> Vec<&'static str> {
    let kind = |target: &Target| match target {
        Target::Document(_) => "document",
        Target::Script => "script",
        Target::Hole { seen: Some(_) } => "seen",
        Target::Hole { seen: None } => "hole",
    };
    targets.iter().map(kind).collect()
}

#[test]
fn only_what_no_step_can_change_is_fixed() {
    let sequence = "{}\n---\nrun: [{name: first, step: ../leaf}, {name: second, step: ../leaf}]\n";
    let run =
        "[{name: a, step: ./s}, {name: b, step: ./s}, {name: c, script: x}, {name: d, step: \"${{ env.X }}\"}, {name: e, step: ./none}]";
    let world = World::new(run).with_file("/job/s/step.yml", sequence).with_file("/job/leaf/step.yml", LEAF);
    let (root, problems) = world.resolve().unwrap();
    assert_eq!(problems, []);
    assert_eq!(kinds(&root.targets), ["document", "seen", "script", "hole", "hole"]);
    let (Target::Document(first), Target::Hole { seen: Some(second) }) = (&root.targets[0], &root.targets[1]) else { panic!() };
    assert_eq!(kinds(&first.targets), ["document", "seen"]);
    assert_eq!(kinds(&second.targets), ["seen", "seen"]);
    assert_eq!((&*first.dir, &*first.file), ("/job/s", "step.yml"));
}

#[test]
fn a_definition_is_asked_for_once() {
    let job = crate::world::job("{}\n---\nrun: [{name: a, step: ./x}, {name: b, step: ./x}, {name: c, step: /job/x}]\n", Dialect::Steps);
    let (mut resolver, effects) = Resolver::start(job, "/job".into(), Builtins::default());
    assert_eq!(effects.len(), 2, "as ./x and as /job/x");
    assert!(!resolver.is_complete());
    let fault = || LoadFault { kind: LoadFaultKind::NotFound, message: "none".into() };
    assert_eq!(resolver.on_loaded(LoadId(0), Err(fault())), []);
    assert_eq!(resolver.on_loaded(LoadId(0), Err(fault())), [], "an outcome that nobody waits for");
    assert_eq!(resolver.on_loaded(LoadId(1), Err(fault())), []);
    assert!(resolver.is_complete());
}

#[test]
fn all_problems_of_all_documents_are_told_at_once() {
    let sequence = "{}\n---\nrun: [{name: i, step: ../leaf, inputs: {x: 1}}, {name: g, step: host.example/g/p@v1}]\n";
    let world = World::new("[{name: a, step: ./s}, {name: r, step: other.example/g/p@v2}]")
        .with_file("/job/s/step.yml", sequence)
        .with_file("/job/leaf/step.yml", "spec: {colour: red}\n---\nexec: {command: [x], nope: 1}\n");
    assert_eq!(
        told(&world),
        [
            "error : step \"r\": failed to load: `https://other.example/g/p@v2` is not on this machine, and this build does not fetch remote steps yet",
            "warning /job/leaf/step.yml: unknown key `colour` in `spec` is ignored",
            "warning /job/leaf/step.yml: unknown key `nope` in `exec` is ignored",
            "error /job/s/step.yml: step does not accept input with name \"x\"",
            "error /job/s/step.yml: step \"g\": failed to load: `https://host.example/g/p@v1` is not on this machine, and this build does not fetch remote steps yet",
        ]
    );
    let refusal = world.refusal().unwrap();
    assert_eq!(refusal.message, "step \"a\": step \"i\": failed to load: step does not accept input with name \"x\"");
    assert_eq!(refusal.kind, FailureKind::BadInput);
}

#[test]
fn what_an_earlier_step_may_still_write_is_only_warned_about() {
    let wrong = "{}\n---\nexec: {command: []}\n";
    let fixed = World::new("- {name: a, step: ./w}").with_file("/job/w/step.yml", wrong);
    assert!(fixed.resolve().is_err());
    let message = fixed.refusal().unwrap().message;
    assert!(message.starts_with("step \"a\": failed to load: /job/w/step.yml: line "), "{message}");
    let later = World::new("[{name: s, script: x}, {name: a, step: ./w}]").with_file("/job/w/step.yml", wrong);
    let (root, problems) = later.resolve().unwrap();
    assert_eq!(kinds(&root.targets), ["script", "hole"]);
    assert_eq!(problems.len(), 1);
    assert_eq!(later.refusal(), None);
}

#[test]
fn a_step_that_is_not_there_is_a_warning_where_nothing_can_write_it() {
    let missing = "loading file \"/job/w/step.yml\": reading file: open /job/w/step.yml: no such file or directory";
    assert_eq!(told(&World::new("- {name: a, step: ./w}")), [format!("warning : step \"a\": failed to load: {missing}")]);
    assert_eq!(told(&World::new("[{name: s, script: x}, {name: a, step: ./w}]")), [""; 0]);
}

#[test]
fn a_cycle_is_named_with_all_of_its_definitions() {
    let to = |target: &str| format!("{{}}\n---\nrun: [{{name: n, step: ../{target}}}]\n");
    let world = |run: &str| {
        World::new(run).with_file("/job/a/step.yml", &to("b")).with_file("/job/b/step.yml", &to("c")).with_file("/job/c/step.yml", &to("a"))
    };
    let cycle = "the definition refers to itself: /job/a/step.yml > /job/b/step.yml > /job/c/step.yml > /job/a/step.yml";
    assert_eq!(told(&world("- {name: s, step: ./a}")), [format!("error /job/c/step.yml: step \"n\": failed to load: {cycle}")]);
    assert_eq!(
        world("- {name: s, step: ./a}").refusal().unwrap().message,
        format!("step \"s\": step \"n\": step \"n\": step \"n\": failed to load: {cycle}")
    );
    let later = "[{name: x, script: x}, {name: s, step: ./a}]";
    assert_eq!(told(&world(later)), [format!("warning /job/c/step.yml: step \"n\": failed to load: {cycle}")]);
    assert_eq!(world(later).finished().message(), format!("step \"s\": step \"n\": step \"n\": step \"n\": failed to load: {cycle}"));
}

/// Definitions `/job/0` to `/job/N`, each of which refers to the next; the last is a command.
fn chain(length: usize) -> World {
    let mut world = World::new("- {name: s, step: ./0}");
    for index in 0..length {
        world.files.insert(format!("/job/{index}/step.yml"), format!("{{}}\n---\nrun: [{{name: n, step: ../{}}}]\n", index + 1));
    }
    world.with_file(&format!("/job/{length}/step.yml"), LEAF)
}

#[test]
fn steps_nest_at_most_64_levels_deep() {
    let deepest = chain(63).finished();
    assert_eq!(deepest.run().result().headline(step_model::result::StepId(64)).depth, 64);
    assert!(told(&chain(64))[0].ends_with("steps nest deeper than 64 levels"), "{:?}", told(&chain(64)));
    assert!(told(&chain(10_000))[0].ends_with("steps nest deeper than 64 levels"));
}

#[test]
fn a_definition_that_must_not_be_loaded_is_an_error_unless_it_can_change() {
    let job = |run: &str| {
        let job = crate::world::job(&format!("{{}}\n---\nrun: {run}\n"), Dialect::Steps);
        let (mut resolver, effects) = Resolver::start(job, "/job".into(), Builtins::default());
        let Some(Effect::Load { load, .. }) = effects.first() else { panic!() };
        let fault = LoadFault { kind: LoadFaultKind::Refused, message: "leaves the repository".into() };
        resolver.on_loaded(*load, Err(fault));
        resolver.finish()
    };
    assert!(job("[{name: a, step: ../x}]").is_err());
    assert_eq!(job("[{name: s, script: x}, {name: a, step: ../x}]").unwrap().1.len(), 1);
}

#[test]
fn a_reference_whose_load_never_came_back_is_a_hole() {
    let job = crate::world::job("{}\n---\nrun: [{name: a, step: ./x}]\n", Dialect::Steps);
    let (resolver, _) = Resolver::start(job, "/job".into(), Builtins::default());
    assert_eq!(kinds(&resolver.finish().unwrap().0.targets), ["hole"]);
}

fn stand_in(output: &str) -> StandIn {
    use step_model::document::{Exec, Output, Outputs};
    use step_model::value::Kind;
    let output = (Arc::from(output), Output { kind: Kind::String, default: None, sensitive: false, description: None });
    let command = vec![Template::literal("stand-in")];
    StandIn { exec: Exec { command, work_dir: None }, outputs: Outputs::Declared(vec![output]), inputs: None }
}

/// What is resolved with something in the place of steps, and its problems.
fn resolved(world: &World, stand_ins: StandIns) -> Result<Arc<PlannedDocument>, Vec<String>> {
    let (resolver, effects) = Resolver::start(Arc::clone(&world.plan.root.document), "/job".into(), world.plan.builtins.clone());
    let mut resolver = resolver.with_stand_ins(stand_ins);
    let mut open = std::collections::VecDeque::from(effects);
    while let Some(effect) = open.pop_front() {
        let Effect::Load { load, from, reference } = effect else { panic!("{effect:?}") };
        open.extend(resolver.on_loaded(load, world.load(&from, &reference)));
    }
    let messages = |problems: Vec<DocumentProblems>| {
        problems.iter().flat_map(|document| document.problems.iter().map(|problem| problem.message.clone())).collect::<Vec<_>>()
    };
    match resolver.finish() {
        Ok((planned, problems)) if problems.is_empty() => Ok(planned),
        Ok((_, problems)) | Err(problems) => Err(messages(problems)),
    }
}

fn command_of(planned: &PlannedDocument) -> &str {
    let Body::Exec(exec) = &planned.document.definition.body else { return "a sequence" };
    exec.command[0].source()
}

#[test]
fn something_stands_for_one_step_by_its_name_and_nowhere_else() {
    let sequence = "{}\n---\nrun: [{name: inner, step: ../leaf}]\n";
    let world = World::new("[{name: a, step: ./s}, {name: b, step: ./s}]")
        .with_file("/job/s/step.yml", sequence)
        .with_file("/job/leaf/step.yml", LEAF);
    let mut stand_ins = StandIns::default();
    stand_ins.for_step(vec!["b".into(), "inner".into()], stand_in("x"));
    let root = resolved(&world, stand_ins).unwrap();
    let (Target::Document(a), Target::Hole { seen: Some(b) }) = (&root.targets[0], &root.targets[1]) else { panic!() };
    let commands = [a, b].map(|planned| match &planned.targets[0] {
        Target::Document(inner) | Target::Hole { seen: Some(inner) } => command_of(inner).to_owned(),
        other => panic!("{other:?}"),
    });
    assert_eq!(commands, ["x", "stand-in"]);
}

#[test]
fn something_stands_for_a_step_that_is_not_at_hand() {
    let run = "[{name: a, step: ./none, inputs: {x: 1}}, {name: b, step: \"${{ env.X }}\"}, {name: c, step: host.example/o/p@v1}, {name: d, script: x, env: {A: \"${{ steps.a.outputs.x }}\"}}]";
    let world = World::new(run);
    let mut stand_ins = StandIns::default();
    stand_ins.for_step(vec!["a".into()], stand_in("x"));
    stand_ins.for_step(vec!["b".into()], stand_in("x"));
    stand_ins.for_step(vec!["d".into()], stand_in("x"));
    let remote = StepReference::parse("host.example/o/p@v1", Dialect::Steps).unwrap();
    stand_ins.for_reference(remote, stand_in("x"));
    let root = resolved(&world, stand_ins).unwrap();
    assert_eq!(kinds(&root.targets), ["document"; 4]);
}

#[test]
fn what_stands_for_a_step_takes_and_gives_what_the_step_declares() {
    let leaf = "spec: {inputs: {who: {type: string}}, outputs: {text: {type: string}}}\n---\nexec: {command: [x]}\n";
    let world = World::new("[{name: a, step: ./leaf, inputs: {hwo: x}}]").with_file("/job/leaf/step.yml", leaf);
    let mut stand_ins = StandIns::default();
    stand_ins.for_step(vec!["a".into()], stand_in("other"));
    let problems = resolved(&world, stand_ins).unwrap_err();
    assert_eq!(problems, ["step does not accept input with name \"hwo\"", "input \"who\" required, but not defined"]);
}
