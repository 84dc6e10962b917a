use super::*;

#[test]
fn a_step_that_names_no_file_has_none() {
    let world = World::new("- {name: a, step: ./w}").with_file("/job/w/step.yml", &exec("[true]")).finished();
    assert_eq!(world.processes()[0].files, None);
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::ReadOutputs { .. } | Effect::RemoveFiles { .. })));
}

#[test]
fn a_declared_output_that_nobody_could_write_is_missing() {
    let file = "spec: {outputs: {o: {type: string}}}\n---\nexec: {command: [x]}\n";
    let world = World::new("- {name: a, step: ./w}").with_file("/job/w/step.yml", file).finished();
    let expected =
        "step \"a\": output file: read output file: key \"o\": missing output, add to step outputs or remove from step specification";
    assert_eq!(world.message(), expected);
}

#[test]
fn files_are_read_after_success_and_removed_after_failure() {
    let file = exec("[w, \"${{ output_file }}\"]");
    let ends = |code| {
        let world = World::new("- {name: a, step: ./w}").with_file("/job/w/step.yml", &file).behaving(move |_, _| exits(code)).finished();
        let read = world.effects.iter().any(|effect| matches!(effect, Effect::ReadOutputs { .. }));
        let removed = world.effects.iter().any(|effect| matches!(effect, Effect::RemoveFiles { .. }));
        (read, removed)
    };
    assert_eq!(ends(0), (true, false));
    assert_eq!(ends(1), (false, true));
}

#[test]
fn what_is_wrong_with_a_file_is_said_in_the_words_of_the_original() {
    let message = |output: FileContent, export: FileContent| {
        let file = exec("[w, \"${{ output_file }}\"]");
        let mut world = World::new("- {name: a, step: ./w}").with_file("/job/w/step.yml", &file).behaving(|_, _| runs_on()).started();
        world.on(Event::Exited { step: StepId(1), exit: Exit::Code(0), usage: Usage::default() });
        world.on(Event::Outputs { step: StepId(1), output, export });
        world.message().to_owned()
    };
    let bytes = |text: &str| FileContent::Bytes(text.into());
    assert_eq!(
        message(bytes("{\"name\":\"\"}"), bytes("")),
        "step \"a\": output file: read output file: failed to unmarshal JSON at line 1: \"name\" field value is empty"
    );
    assert_eq!(
        message(FileContent::Unreadable("is a directory".into()), bytes("")),
        "step \"a\": output file: read output file: is a directory"
    );
    assert_eq!(
        message(bytes(""), bytes("{\"name\":\"X\",\"value\":[]}")),
        "step \"a\": export file: read env file: key \"X\": cannot convert value type \"array\" to string"
    );
    assert_eq!(message(bytes(""), FileContent::Unreadable("is a FIFO".into())), "step \"a\": export file: read env file: is a FIFO");
}

#[test]
fn a_script_has_files_of_its_own_and_can_export() {
    let run = "[{name: s, script: \"echo >> ${{ export_file }}\"}, {name: t, script: \"echo ${{ env.X }}\"}]";
    let world = World::new(run).behaving(|name, _| if name == "s" { writes("", r#"{"name":"X","value":1}"#) } else { exits(0) }).finished();
    let StepFiles { export, .. } = world.processes()[0].files.clone().unwrap();
    assert_eq!(world.processes()[0].script, Some(crate::effect::Script::Text(format!("echo >> {export}").into())));
    assert_eq!(world.processes()[1].script, Some(crate::effect::Script::Text("echo 1".into())));
}

#[test]
fn what_a_script_writes_as_outputs_is_dropped_with_a_warning() {
    let world = World::new("- {name: s, script: \"${{ output_file }}\"}").behaving(|_, _| writes("anything", "")).finished();
    assert_eq!(world.run().status(), Status::Success);
    assert_eq!(world.said()[1], "the output file of a script is not read: only a step with a definition has outputs");
}

#[test]
fn the_files_of_a_sequence_are_made_when_somebody_names_them() {
    let child = "spec: {inputs: {f: {type: string}}}\n---\nexec: {command: [\"${{ inputs.f }}\"]}\n";
    let sequence = "{}\n---\nenv: {F: \"${{ output_file }}\"}\nrun: [{name: c, step: ../child, inputs: {f: \"${{ export_file }}\"}}]\n";
    let world =
        World::new("- {name: s, step: ./s}").with_file("/job/child/step.yml", child).with_file("/job/s/step.yml", sequence).finished();
    let of_sequence = |effect: &Effect| match effect {
        Effect::PrepareFiles { .. } => Some("prepare"),
        Effect::RemoveFiles { .. } => Some("remove"),
        Effect::Spawn { .. } => Some("spawn"),
        _ => None,
    };
    assert_eq!(world.effects.iter().filter_map(of_sequence).collect::<Vec<_>>(), ["prepare", "spawn", "remove"]);
}

#[test]
fn the_files_of_a_sequence_may_be_named_by_an_invocation_only() {
    let child = "spec: {inputs: {f: {type: string}}}\n---\nexec: {command: [\"${{ inputs.f }}\"]}\n";
    let run = "- {name: c, step: ./child, inputs: {f: \"${{ export_file }}\"}}";
    let world = World::new(run).with_file("/job/child/step.yml", child).finished();
    let Some(Effect::PrepareFiles { step: StepId::ROOT, files }) = world.effects.get(1) else { panic!("{:?}", world.effects) };
    assert_eq!(world.commands(), [&*files.export]);
}

#[test]
fn files_that_cannot_be_made_fail_the_sequence() {
    let child = "spec: {inputs: {f: {type: string}}}\n---\nexec: {command: [x]}\n";
    let run = "- {name: c, step: ./child, inputs: {f: \"${{ export_file }}\"}}";
    let mut world = World::new(run).with_file("/job/child/step.yml", child).unsettled();
    world.on(Event::FilesNotPrepared { step: StepId::ROOT, fault: "no space left on device".into() });
    assert_eq!(world.message(), "creating step files: no space left on device");
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::Internal);
}

#[test]
fn a_delegating_exec_writes_a_whole_result() {
    let file = "spec: {outputs: delegate}\n---\nexec: {command: [x, \"${{ output_file }}\"]}\n";
    let world = World::new("- {name: d, step: ./d}")
        .with_file("/job/d/step.yml", file)
        .behaving(|_, _| writes(r#"{"status":"success","outputs":{"a":[1]}}"#, ""))
        .finished();
    assert_eq!(world.output("d", "a"), Some(Value::array([Value::from(1.0)])));
    assert!(world.processes()[0].env.contains(&("STEP_RUNNER_RESULT_FIELDS".into(), "1".into())));
    let world = World::new("- {name: d, step: ./d}").with_file("/job/d/step.yml", file).behaving(|_, _| writes("oops", "")).finished();
    assert_eq!(world.message(), "step \"d\": output file: delegate: reading output_file as a step result: expected value at column 1");
}

#[test]
fn debugging_shows_the_line_that_is_wrong() {
    let file = exec("[w, \"${{ output_file }}\"]");
    let world = World::new("- {name: a, step: ./w}")
        .with_file("/job/w/step.yml", &file)
        .with_plan(|plan| plan.variables = pairs(&[("CI_STEPS_DEBUG", "true")]))
        .behaving(|_, _| writes("oops", ""))
        .finished();
    assert!(world.message().ends_with(", line: oops"), "{}", world.message());
}
