use super::*;
use step_model::plan::Level;

#[test]
fn run_01_a_step_without_inputs_uses_its_defaults() {
    let world = greeting_job("- {name: g, step: ./greet}").finished();
    assert_eq!(world.run().status(), Status::Success);
    assert_eq!(world.output("g", "name"), Some("ann".into()));
    assert_eq!(world.node("g").exports, [("NAME".into(), "ann".into())]);
}

#[test]
fn run_02_a_given_input_counts() {
    let world = greeting_job("- {name: g, step: ./greet, inputs: {name: bo}}").finished();
    assert_eq!(world.output("g", "name"), Some("bo".into()));
    assert_eq!(world.node("g").exports, [("NAME".into(), "bo".into())]);
}

const COMPOSITE: &str = r#"
spec: {outputs: {names: {type: array}}}
---
run:
  - {name: first, step: ../greet, inputs: {name: cy}}
  - {name: second, step: ../greet, inputs: {name: di}}
outputs: {names: ["${{ steps.first.outputs.name }}", "${{ steps.second.outputs.name }}"]}
"#;

fn three_steps(level: Level) -> World {
    let run = r#"
  - {name: one, step: ./greet}
  - {name: two, step: ./both}
  - {name: three, step: ./greet, inputs: {likes: {chars: "${{ steps.two.outputs.names }}"}}}"#;
    greeting_job(run).with_file("/job/both/step.yml", COMPOSITE).with_plan(|plan| plan.level = level).finished()
}

#[test]
fn run_04_only_exec_steps_are_said_and_values_pass_between_steps() {
    let world = three_steps(Level::V0_12);
    assert_eq!(world.said(), ["Running step \"one\"", "Running step \"first\"", "Running step \"second\"", "Running step \"three\""]);
    assert_eq!(
        world.commands().iter().map(|command| command.split(" /files").next().unwrap()).collect::<Vec<_>>(),
        [
            "greet ann 1 {\"color\":\"red\"}",
            "greet cy 1 {\"color\":\"red\"}",
            "greet di 1 {\"color\":\"red\"}",
            "greet ann 1 {\"chars\":[\"cy\",\"di\"]}"
        ]
    );
    assert_eq!(world.run().result().children(StepId::ROOT).len(), 3);
}

#[test]
fn a_later_release_says_it_in_other_words() {
    assert_eq!(three_steps(Level::V0_44).said()[0], "Running step name=one");
}

#[test]
fn run_05_an_output_is_the_input_of_a_later_step() {
    let run = "[{name: a, step: ./greet}, {name: b, step: ./greet, inputs: {name: \"${{ steps.a.outputs.name }}!\"}}]";
    assert_eq!(greeting_job(run).finished().output("b", "name"), Some("ann!".into()));
}

#[test]
fn run_07_steps_inside_a_composite_are_not_seen_outside() {
    let inner = "{}\n---\nrun: [{name: inner, step: ../greet}]\n";
    let run = "[{name: a, step: ./c}, {name: b, step: ./greet, inputs: {name: \"${{ steps.inner.outputs.name }}\"}}]";
    let world = greeting_job(run).with_file("/job/c/step.yml", inner).finished();
    assert_eq!(world.message(), "step \"b\": failed to load: expand input \"name\": steps.inner.outputs.name: the \"inner\" was not found");
    assert_eq!(world.run().result().children(StepId::ROOT).len(), 1, "a step that failed to load has no result");
}

#[test]
fn run_08_a_sequence_has_outputs() {
    let sequence = "spec: {outputs: {n: {type: string}}}\n---\nrun: [{name: x, script: echo}]\noutputs: {n: Foo}\n";
    let world = World::new("- {name: s, step: ./s}").with_file("/job/s/step.yml", sequence).finished();
    assert_eq!(world.output("s", "n"), Some("Foo".into()));
}

fn delegating(inside: &str) -> String {
    format!("spec: {{outputs: delegate}}\n---\nrun: [{{name: d, step: {inside}}}]\ndelegate: d\n")
}

#[test]
fn run_10_delegates_reach_through_several_levels() {
    let world = greeting_job("- {name: top, step: ./outer}")
        .with_file("/job/outer/step.yml", &delegating("../inner"))
        .with_file("/job/inner/step.yml", &delegating("../greet"))
        .finished();
    assert_eq!(world.output("top", "name"), Some("ann".into()));
}

#[test]
fn run_11_a_script_becomes_one_spawn_of_the_shell() {
    let world = World::new("- {name: s, script: echo hi}").finished();
    let expected = crate::effect::Script::Text("echo hi".into());
    assert_eq!(world.processes()[0].script, Some(expected));
    assert_eq!(world.processes()[0].files, None, "nobody can know where its files are");
    assert_eq!(world.said(), ["Running step name=s"]);
}

#[test]
fn both_names_of_the_script_step_are_the_script_step() {
    for reference in ["dist://script", "builtin://script"] {
        let world = World::new(&format!("- {{name: s, step: \"{reference}\", inputs: {{script: echo hi}}}}")).finished();
        assert_eq!(world.processes()[0].script, Some(crate::effect::Script::Text("echo hi".into())), "{reference}");
    }
    let world = World::new("- {name: s, step: dist://script}").finished();
    let missing = "step \"s\": failed to load: failed to parse spec definition: input \"script\" required, but not defined";
    assert_eq!(world.message(), missing);
}

#[test]
fn run_13_a_reference_may_come_from_an_export() {
    let run = "[{name: one, step: ./say}, {name: two, step: \"${{ env.REF }}\"}]";
    let world = greeting_job(run)
        .with_file("/job/say/step.yml", &exec("[say, \"${{ export_file }}\"]"))
        .behaving(|name, process| if name == "one" { writes("", r#"{"name":"REF","value":"./greet"}"#) } else { greeting(name, process) })
        .finished();
    assert_eq!(world.output("two", "name"), Some("ann".into()));
}

#[test]
fn run_14_outputs_are_typed() {
    for (kind, json, value) in
        [("string", "\"v\"", Value::from("v")), ("number", "3.5", Value::from(3.5)), ("boolean", "true", Value::from(true))]
    {
        let file = format!("spec: {{outputs: {{o: {{type: {kind}}}}}}}\n---\nexec: {{command: [w, \"${{{{ output_file }}}}\"]}}\n");
        let output = format!("{{\"name\":\"o\",\"value\":{json}}}");
        let world =
            World::new("- {name: w, step: ./w}").with_file("/job/w/step.yml", &file).behaving(move |_, _| writes(&output, "")).finished();
        assert_eq!(world.output("w", "o"), Some(value), "{kind}");
    }
}

#[test]
fn run_16_a_sequence_whose_step_succeeds_succeeds() {
    let world = World::new("- {name: a, script: x}").finished();
    assert_eq!((world.run().status(), world.node("").status, world.node("a").status), (Status::Success, Status::Success, Status::Success));
}

#[test]
fn run_17_the_failure_of_a_step_is_the_failure_of_its_sequence() {
    let inner = "{}\n---\nrun: [{name: inner, script: x}, {name: never, script: x}]\n";
    let world = World::new("- {name: outer, step: ./outer}").with_file("/job/outer/step.yml", inner).behaving(|_, _| exits(7)).finished();
    assert_eq!(world.message(), "step \"outer\": step \"inner\": exec: exit status 7");
    assert_eq!(world.node("outer").failure.unwrap().message, "step \"inner\": exec: exit status 7");
    assert_eq!(world.node("outer/inner").failure.unwrap().message, "exec: exit status 7");
    assert_eq!(world.node("outer/inner").exec.unwrap().exit_code, 7);
    assert_eq!(world.run().result().children(StepId(1)), [StepId(2)], "the step after it has no result");
    assert_eq!(world.run().failed_step(), Some(StepId(2)));
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::StepFailure);
}

#[test]
fn run_20_an_exec_is_described_by_its_command() {
    let world = World::new("- {name: s, step: ./s}").with_file("/job/s/step.yml", &exec("[go, run, .]")).finished();
    assert_eq!(world.run().result().headline(StepId(1)).description(), "executable step \"go run .\"");
}

#[test]
fn run_22_a_log_that_cannot_be_written_ends_the_job() {
    let mut world = World::new("[{name: a, script: x}, {name: b, script: x}]").behaving(|_, _| runs_on()).started();
    let effects = world.on(Event::LogFailed { fault: "broken pipe".into() });
    assert_eq!(effects, [Effect::Terminate { step: StepId(1) }]);
    world.on(Event::Exited { step: StepId(1), exit: Exit::Code(0), usage: Usage::default() });
    assert_eq!(world.message(), "step \"a\": exec: writing to stdout: broken pipe");
    assert_eq!(world.run().result().children(StepId::ROOT).len(), 1);
}

#[test]
fn a_log_that_fails_at_the_very_end_fails_the_job() {
    let step = exec("[w, \"${{ output_file }}\"]");
    let mut world = World::new("- {name: a, step: ./w}").with_file("/job/w/step.yml", &step).behaving(|_, _| runs_on()).started();
    world.on(Event::Exited { step: StepId(1), exit: Exit::Code(0), usage: Usage::default() });
    assert_eq!(world.on(Event::LogFailed { fault: "full".into() }), []);
    world.on(Event::Outputs { step: StepId(1), output: FileContent::Bytes(Vec::new()), export: FileContent::Bytes(Vec::new()) });
    assert_eq!(world.message(), "writing to stdout: full");
}

#[test]
fn run_25_a_delegate_has_to_exist() {
    let file = "spec: {outputs: delegate}\n---\nrun: [{name: a, script: x}]\ndelegate: x\n";
    let world = World::new("- {name: s, step: ./s}").with_file("/job/s/step.yml", file);
    // Where the documents already say so, the job is refused; the run says so too.
    let Ok((planned, _)) = world.resolve() else { return };
    let mut world = world;
    world.plan.root = planned;
    let world = world.finished();
    assert_eq!(world.message(), "step \"s\": outputs: delegate: could not find step with name \"x\"");
    assert_eq!(world.commands().len(), 1, "the steps run first");
}

#[test]
fn run_26_a_program_that_is_not_there_is_named() {
    let message = "exec: \"x\": executable file not found in $PATH".to_owned();
    let fault = SpawnFault { kind: SpawnFaultKind::Step, message };
    let world =
        World::new("- {name: s, script: x}").behaving(move |_, _| Reply { fault: Some(fault.clone()), ..Reply::default() }).finished();
    assert_eq!(world.message(), "step \"s\": exec: exec: \"x\": executable file not found in $PATH");
    assert_eq!(world.node("s").exec.unwrap().exit_code, -1);
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::StepFailure);
}

#[test]
fn a_machine_that_cannot_start_a_process_is_no_failure_of_the_step() {
    let fault = SpawnFault { kind: SpawnFaultKind::Machine, message: "fork/exec /bin/sh: resource temporarily unavailable".into() };
    let world =
        World::new("- {name: s, script: x}").behaving(move |_, _| Reply { fault: Some(fault.clone()), ..Reply::default() }).finished();
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::Internal);
}

#[test]
fn a_job_without_steps_succeeds() {
    let world = World::of(Arc::new(step_model::document::StepDocument::of_steps(step_model::document::Dialect::Steps, []))).finished();
    assert_eq!(world.effects, [Effect::Started { step: StepId::ROOT }, Effect::Ended { step: StepId::ROOT }, Effect::Finished]);
}

#[test]
fn a_job_may_be_one_command() {
    let root = crate::world::job("{}\n---\nexec: {command: [make, all], work_dir: sub}\n", step_model::document::Dialect::Steps);
    let world = World::of(root).finished();
    assert_eq!(world.said(), ["Running step name="]);
    assert_eq!(world.processes()[0].work_dir, "/job/sub".into());
    assert_eq!(world.node("").exec.unwrap().work_dir, "sub".into());
}

#[test]
fn two_steps_of_one_name_both_run_and_the_last_one_counts() {
    let run = "[{name: a, step: ./greet}, {name: a, step: ./greet, inputs: {name: bo}}, \
                {name: b, step: ./greet, inputs: {name: \"${{ steps.a.outputs.name }}\"}}]";
    assert_eq!(greeting_job(run).finished().output("b", "name"), Some("bo".into()));
}

#[test]
fn a_failed_sequence_keeps_what_it_came_to() {
    let file = "spec: {outputs: {first: {type: string}, second: {type: string}}}\n---\nrun: [{name: a, step: ../greet}, {name: b, script: x}]\n\
                outputs: {first: \"${{ steps.a.outputs.name }}\", second: \"${{ steps.b.outputs.none }}\"}\n";
    let world = greeting_job("- {name: s, step: ./s}")
        .with_file("/job/s/step.yml", file)
        .behaving(|name, process| if name == "b" { exits(1) } else { greeting(name, process) })
        .finished();
    assert_eq!(world.message(), "step \"s\": step \"b\": exec: exit status 1");
    assert_eq!(world.node("s").outputs, [("first".into(), "ann".into())]);
}

#[test]
fn an_event_that_nobody_waits_for_changes_nothing() {
    let mut world = World::new("- {name: a, script: x}").behaving(|_, _| runs_on()).started();
    let exited = Event::Exited { step: StepId(1), exit: Exit::Code(0), usage: Usage::default() };
    for step in [StepId(0), StepId(2), StepId(99)] {
        let none = || FileContent::Bytes(Vec::new());
        assert_eq!(world.on(Event::Exited { step, exit: Exit::Code(3), usage: Usage::default() }), []);
        assert_eq!(world.on(Event::Outputs { step, output: none(), export: none() }), []);
        assert_eq!(world.on(Event::FilesPrepared { step }), []);
        assert_eq!(world.on(Event::FilesNotPrepared { step, fault: "late".into() }), []);
    }
    assert_eq!(world.on(exited.clone()).len(), 3, "a, the root, and the run end");
    assert_eq!(world.on(exited), []);
    assert_eq!(world.on(Event::Cancel), []);
    assert_eq!(world.run().status(), Status::Success);
}
