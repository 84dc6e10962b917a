//! Steps that are handed over, and results that come back.

use super::*;
use crate::effect::Program;
use step_model::builtin::{Builtin, Builtins};
use step_model::document::Body;
use step_model::plan::{HandedOver, Plan, PlannedDocument, Target};
use step_model::result::{ExecResult, Failure, OwnedTree, StepResult};

const DOCKER: &str = "spec:\n  inputs:\n    image: {type: string}\n    inputs: {type: struct, default: {}}\n    run: {type: array, template: true}\n    outputs: {type: struct, template: true, default: {}}\n  outputs: delegate\n---\nexec: {command: [docker]}\n";

const JOB: &str = r#"
  - {name: meta, func: ./meta}
  - name: build
    func: builtin://docker
    env: {NEAR: near}
    inputs:
      image: "rust:${{ steps.meta.outputs.name }}"
      inputs: {tag: "${{ steps.meta.outputs.name }}"}
      run:
        - {name: compile, func: ./compile, inputs: {tag: "${{ inputs.tag }}"}}
        - {name: test, func: ./compile, inputs: {tag: again}}
      outputs: {path: "${{ steps.compile.outputs.path }}"}
  - {name: publish, script: "echo ${{ steps.build.outputs.path }}"}
"#;

const META: &str = "spec: {outputs: {name: {type: string, sensitive: true}}}\n---\nexec: {command: [meta, \"${{ output_file }}\", \"${{ export_file }}\"]}\n";
const COMPILE: &str = "spec: {inputs: {tag: {type: string}}, outputs: {path: {type: string}}}\n---\nexec: {command: [compile, \"${{ inputs.tag }}\", \"${{ output_file }}\"]}\n";

fn builtins() -> Builtins {
    Builtins::new([Builtin { name: "docker".into(), definition: DOCKER.into(), command: vec!["/bin/docker-step".into()] }]).unwrap()
}

/// A job whose docker step is still running.
fn job(run: &str) -> World {
    World::new(run)
        .with_file("/job/meta/func.yml", META)
        .with_file("/job/compile/func.yml", COMPILE)
        .with_plan(|plan| {
            plan.builtins = builtins();
            plan.request_env = pairs(&[("LOW", "low"), ("BOTH", "request")]);
            plan.variables = pairs(&[("KEY", "/tmp/KEY")]);
            plan.file_variables = [("KEY".into(), "content".into())].into();
        })
        .behaving(|name, _| match name {
            "meta" => writes("{\"name\":\"name\",\"value\":\"v1-secret\"}\n", "{\"name\":\"BOTH\",\"value\":\"exported\"}\n"),
            "build" => runs_on(),
            _ => exits(0),
        })
        .started()
}

fn program(world: &World) -> &Program {
    world.processes().last().unwrap().program.as_deref().unwrap()
}

fn handed_over(world: &World) -> &Plan {
    &program(world).handover.as_ref().unwrap().plan
}

fn node(name: &str, status: Status) -> StepResult {
    StepResult { name: name.into(), status, failure: None, ..World::new("- {name: x, script: x}").started().node("x") }
}

fn failing(name: &str, message: &str) -> StepResult {
    let failure = Some(Failure { kind: FailureKind::StepFailure, message: message.into() });
    StepResult { failure, ..node(name, Status::Failure) }
}

/// The docker step ends with this exit status and has written this result.
fn ends(world: &mut World, code: i32, tree: OwnedTree) {
    let step = StepId(2);
    world.on(Event::Exited { step, exit: Exit::Code(code), usage: Usage::default() });
    let output = FileContent::Result(Box::new(tree));
    world.on(Event::Outputs { step, output, export: FileContent::Bytes(Vec::new()) });
    world.settle();
}

#[test]
fn the_caller_evaluates_values_and_hands_steps_over_as_they_are_written() {
    let world = job(JOB);
    assert_eq!(world.message(), "");
    let program = program(&world);
    let inputs: Vec<_> = program.inputs.iter().map(|(name, value)| format!("{name}={}", value.to_json())).collect();
    assert_eq!(inputs, ["image=\"rust:v1-secret\"", "inputs={\"tag\":\"v1-secret\"}"]);
    let plan = handed_over(&world);
    let given = plan.handover.as_ref().unwrap();
    assert_eq!(given.inputs["tag"], Value::from("v1-secret").sensitive(), "with its mark");
    assert_eq!(given.enclosing_env, pairs(&[("NEAR", "near")]));
    assert_eq!(plan.request_env, pairs(&[("BOTH", "exported"), ("LOW", "low")]));
    assert_eq!((&plan.variables, &*plan.file_variables["KEY"]), (&pairs(&[("KEY", "/tmp/KEY")]), "content"));
    assert!(plan.process_env.is_empty());
    let Body::Sequence(sequence) = &plan.root.document.definition.body else { panic!("a sequence") };
    assert_eq!(sequence.steps.iter().map(|step| &*step.name).collect::<Vec<_>>(), ["compile", "test"]);
    let Target::Document(compile) = &plan.root.targets[0] else { panic!("the first is resolved outside") };
    assert_eq!((&*compile.dir, compile.digest.is_some()), ("/job/compile", true));
    assert!(matches!(&plan.root.targets[1], Target::Hole { seen: Some(_) }), "one with a step before it is read inside");
    let process = world.processes().into_iter().last().unwrap();
    let variable = |name: &str| process.env.iter().find(|(key, _)| **key == *name).and_then(|(_, value)| value.as_str());
    assert_eq!(variable("STEP_RUNNER_HANDOVER"), Some(&*program.handover.as_ref().unwrap().path));
    assert_eq!(variable("STEP_RUNNER_INPUTS"), Some(&*program.inputs_file));
    assert_eq!(variable("STEP_RUNNER_OUTPUT_FILE"), process.files.as_ref().map(|files| &*files.output));
    assert_eq!(variable("STEP_RUNNER_RESULT_FIELDS"), Some("1"));
}

#[test]
fn what_an_earlier_step_wrote_is_what_is_handed_over() {
    let mut world = World::new(JOB).with_file("/job/meta/func.yml", META).with_plan(|plan| plan.builtins = builtins());
    world = world.behaving(|_, _| runs_on()).started();
    world.files.insert("/job/compile/func.yml".into(), COMPILE.into());
    world.on(Event::Exited { step: StepId(1), exit: Exit::Code(0), usage: Usage::default() });
    let output = FileContent::Bytes(b"{\"name\":\"name\",\"value\":\"v1\"}".to_vec());
    world.on(Event::Outputs { step: StepId(1), output, export: FileContent::Bytes(Vec::new()) });
    world.settle();
    assert!(matches!(&handed_over(&world).root.targets[0], Target::Document(_)), "{}", world.message());
}

#[test]
fn a_result_that_comes_back_is_the_steps_own() {
    let mut world = job(JOB);
    let mut root = node("", Status::Success);
    root.outputs = vec![("path".into(), "/out/a".into()), ("key".into(), "born-inside".into())];
    root.sensitive_outputs = vec!["key".into()];
    root.filtered = Some("the log of `test` is left out".into());
    let mut tree = OwnedTree::of(root);
    let compile = tree.add(StepId::ROOT, node("compile", Status::Success)).unwrap();
    tree.add(compile, node("deep", Status::Success)).unwrap();
    tree.add(StepId::ROOT, node("test", Status::Success)).unwrap();
    ends(&mut world, 0, tree);
    assert!(world.run().is_finished(), "{:?}", world.effects.last());
    assert_eq!(world.message(), "");
    assert_eq!(world.output("build", "path"), Some("/out/a".into()));
    assert_eq!(world.output("build", "key"), Some(Value::from("born-inside").sensitive()));
    assert!(world.effects.contains(&Effect::Mask { value: Value::from("born-inside").sensitive() }));
    assert_eq!(world.node("build/compile/deep").status, Status::Success);
    assert_eq!(world.node("build").filtered.as_deref(), Some("the log of `test` is left out"));
    assert_eq!(world.node("build/test").name, "test".into());
    world.watch.check_tree(world.run());
    let publish = world.processes().into_iter().last().unwrap();
    assert_eq!(publish.script, Some(crate::effect::Script::Text("echo /out/a".into())));
}

#[test]
fn a_failure_inside_is_the_failure_of_the_step() {
    let mut world = job(JOB);
    let mut tree = OwnedTree::of(failing("", "step \"test\": step \"inner\": exec: exit status 3"));
    tree.add(StepId::ROOT, node("compile", Status::Success)).unwrap();
    let test = tree.add(StepId::ROOT, failing("test", "step \"inner\": exec: exit status 3")).unwrap();
    let exec = ExecResult { command: vec!["x".into()], work_dir: "/w".into(), exit_code: 3, signal: None };
    tree.add(test, StepResult { exec: Some(exec), ..failing("inner", "exec: exit status 3") }).unwrap();
    ends(&mut world, 1, tree);
    assert_eq!(world.message(), "step \"build\": step \"test\": step \"inner\": exec: exit status 3");
    let failed = world.run().failed_step().unwrap();
    let headline = world.run().result().headline(failed);
    assert_eq!((&*headline.name, headline.exit_code), ("inner", Some(3)), "the innermost step is the one that failed");
    assert_eq!(world.processes().len(), 2, "nothing runs after it");
    world.watch.check_tree(world.run());
}

#[test]
fn a_program_that_fails_without_a_reason_fails_with_its_exit_status() {
    let mut world = job(JOB);
    ends(&mut world, 7, OwnedTree::of(node("", Status::Success)));
    assert_eq!(world.message(), "step \"build\": exec: exit status 7");
    let mut world = job(JOB);
    let step = StepId(2);
    world.on(Event::Exited { step, exit: Exit::Code(9), usage: Usage::default() });
    world.on(Event::Outputs { step, output: FileContent::Bytes(Vec::new()), export: FileContent::Bytes(Vec::new()) });
    assert_eq!(world.message(), "step \"build\": exec: exit status 9");
}

#[test]
fn a_result_that_cannot_be_right_is_an_error_that_says_why() {
    let said = |code, tree: OwnedTree| {
        let mut world = job(JOB);
        ends(&mut world, code, tree);
        world.message().to_owned()
    };
    let running = OwnedTree::of(node("", Status::Running));
    let deep = |levels: u32| {
        let mut tree = OwnedTree::of(node("", Status::Success));
        (0..levels).fold(StepId::ROOT, |parent, _| tree.add(parent, node("s", Status::Success)).unwrap());
        tree
    };
    let nested = (0..40).fold(Value::NULL, |inner, _| Value::array([inner]));
    let too_nested = OwnedTree::of(StepResult { outputs: vec![("o".into(), nested)], ..node("", Status::Success) });
    let broken = {
        let mut world = job(JOB);
        world.on(Event::Exited { step: StepId(2), exit: Exit::Code(0), usage: Usage::default() });
        let output = FileContent::NoResult("`result.status` is no status".into());
        world.on(Event::Outputs { step: StepId(2), output, export: FileContent::Bytes(Vec::new()) });
        world.message().to_owned()
    };
    assert!(!said(0, deep(63)).contains("nest"));
    let mut lying = OwnedTree::of(node("", Status::Success));
    lying.add(StepId::ROOT, failing("test", "exec: exit status 1")).unwrap();
    insta::assert_snapshot!([said(0, running), said(0, deep(64)), said(0, too_nested), said(0, lying), broken].join("\n"), @r#"
    step "build": output file: delegate: reading output_file as a step result: its status is running, but the step has ended
    step "build": output file: delegate: reading output_file as a step result: steps nest deeper than 64 levels
    step "build": output file: delegate: reading output_file as a step result: key "o": value nests deeper than 32 levels
    step "build": output file: delegate: reading output_file as a step result: it succeeded, and its step "test" did not
    step "build": output file: delegate: reading output_file as a step result: `result.status` is no status
    "#);
}

#[test]
fn a_step_that_is_cancelled_keeps_what_came_back_and_its_own_reason() {
    let mut world = job(JOB);
    world.on(Event::Cancel);
    let mut tree = OwnedTree::of(failing("", "step \"compile\": exec: signal: terminated"));
    tree.add(StepId::ROOT, node("compile", Status::Running)).unwrap();
    let step = StepId(2);
    world.on(Event::Exited { step, exit: Exit::Code(1), usage: Usage::default() });
    world.on(Event::Outputs { step, output: FileContent::Result(Box::new(tree)), export: FileContent::Bytes(Vec::new()) });
    assert_eq!(world.run().status(), Status::Cancelled);
    assert_eq!(world.node("build/compile").failure.unwrap().kind, FailureKind::Interrupted, "it was said to be running");
    world.watch.check_tree(world.run());
}

/// The plan of the docker step of `JOB`, as it runs inside.
fn inside(change: impl FnOnce(&mut Plan)) -> World {
    let world = job(JOB);
    let mut plan = handed_over(&world).clone();
    plan.process_env = pairs(&[("PATH", "/image/bin"), ("LOW", "image")]);
    change(&mut plan);
    let mut inner = World::new("- {name: x, script: x}").with_file("/job/compile/func.yml", COMPILE).behaving(|_, process| {
        writes(
            &format!("{{\"name\":\"path\",\"value\":\"/out/{}\"}}\n", process.command.get(1).and_then(Value::as_str).unwrap_or_default()),
            "",
        )
    });
    inner.plan = plan;
    inner.hollow()
}

#[test]
fn inside_the_steps_see_what_was_given_and_the_result_has_the_outputs() {
    let world = inside(|_| {});
    assert_eq!(world.message(), "");
    assert_eq!(world.output("", "path"), Some("/out/v1-secret".into()));
    assert_eq!(world.node("compile").inputs, [("tag".into(), Value::from("v1-secret").sensitive())], "marks travel");
    let first = &world.processes()[0];
    let variable = |name: &str| first.env.iter().find(|(key, _)| **key == *name).and_then(|(_, value)| value.as_str());
    assert_eq!(
        [variable("PATH"), variable("LOW"), variable("BOTH"), variable("NEAR")].map(Option::unwrap),
        ["/image/bin", "low", "exported", "near"]
    );
    assert_eq!(world.effects.iter().filter(|effect| matches!(effect, Effect::Load { .. })).count(), 1, "only the second is read inside");
}

#[test]
fn inside_nothing_is_fetched_and_nothing_computed_is_followed() {
    let with = |reference: &str| {
        let run = format!("[{{name: a, script: x}}, {{name: b, func: \"{reference}\"}}]");
        let world = World::new(&run);
        inside(|plan| plan.root = Arc::new(PlannedDocument::of_job(Arc::clone(&world.plan.root.document), "/job".into())))
            .message()
            .to_owned()
    };
    insta::assert_snapshot!([with("./${{ vars.KEY }}"), with("https://host.example/p@v1"), with("builtin://docker")].join("\n"), @r#"
    step "b": failed to load: `./${{ vars.KEY }}` is computed, and inside of another environment nothing is fetched: resolve it in an earlier step outside
    step "b": failed to load: `https://host.example/p@v1` is not on this machine, and this build does not fetch remote steps yet, and inside of another environment nothing is fetched: resolve it in an earlier step outside
    step "b": failed to load: there is no builtin step `docker` in this program: this program has only `script`, `script_legacy`; `step-runner` has more
    "#);
}

#[test]
fn an_export_inside_does_not_win_over_the_environment_around_the_step() {
    let mut world = World::new("[{name: a, script: \"${{ export_file }}\"}, {name: b, script: x}]")
        .with_plan(|plan| {
            let enclosing_env = pairs(&[("NEAR", "near")]);
            plan.request_env = pairs(&[("LOW", "low")]);
            plan.handover = Some(HandedOver { enclosing_env, ..HandedOver::default() });
        })
        .behaving(|_, _| writes("", "{\"name\":\"NEAR\",\"value\":\"x\"}\n{\"name\":\"LOW\",\"value\":\"x\"}\n"));
    world = world.hollow();
    let last = world.processes().into_iter().last().unwrap();
    let variable = |name: &str| last.env.iter().find(|(key, _)| **key == *name).and_then(|(_, value)| value.as_str()).unwrap();
    assert_eq!((variable("NEAR"), variable("LOW")), ("near", "x"));
}

#[test]
fn a_step_of_a_file_may_take_steps_too() {
    let run = "- {name: over, func: ./over, inputs: {image: x, run: [{name: in, func: ./compile, inputs: {tag: t}}]}}";
    let world = job(run);
    assert_eq!(
        world.message(),
        "step \"over\": failed to load: loading file \"/job/over/step.yml\": reading file: open /job/over/step.yml: no such file or directory"
    );
    let mut world =
        World::new(run).with_file("/job/over/func.yml", DOCKER).with_file("/job/compile/func.yml", COMPILE).behaving(|_, _| runs_on());
    world = world.started();
    assert!(matches!(handed_over(&world).root.targets[0], Target::Document(_)));
}
