use super::*;

/// A job whose step `read` gets the variable N as an input, and as a child reads it itself.
fn reading(run: &str) -> World {
    let child = "spec: {inputs: {n: {type: string, default: none}}}\n---\nexec: {command: [\"${{ inputs.n }}\", \"${{ env.N }}\"]}\n";
    World::new(run).with_file("/job/child/step.yml", child).with_plan(|plan| plan.request_env = pairs(&[("N", "g"), ("W", "g")]))
}

fn sequence(env: &str) -> String {
    format!("{{}}\n---\nenv: {env}\nrun: [{{name: c, step: ../child, inputs: {{n: \"${{{{ env.N }}}}\"}}}}]\n")
}

#[test]
fn env_16_the_env_of_a_sequence_is_expanded() {
    let world = reading("- {name: s, step: ./s}").with_file("/job/s/step.yml", &sequence("{N: \"f-${{ env.W }}\"}")).finished();
    assert_eq!(world.commands(), ["f-g f-g"]);
}

#[test]
fn env_17_the_env_of_an_invocation_is_expanded() {
    let world = reading("- {name: s, step: ./s, env: {N: \"f-${{ env.W }}\"}}").with_file("/job/s/step.yml", &sequence("{}")).finished();
    assert_eq!(world.commands(), ["f-g f-g"]);
}

#[test]
fn env_19_the_env_of_a_sequence_hides_the_global_one() {
    let world = reading("- {name: s, step: ./s}").with_file("/job/s/step.yml", &sequence("{N: s}")).finished();
    assert_eq!(world.commands(), ["s s"]);
}

#[test]
fn env_20_the_env_of_an_invocation_hides_the_global_one() {
    assert_eq!(reading("- {name: c, step: ./child, env: {N: i}}").finished().commands(), ["none i"]);
}

#[test]
fn env_22_an_input_sees_the_global_env() {
    assert_eq!(reading("- {name: c, step: ./child, inputs: {n: \"${{ env.N }}\"}}").finished().commands(), ["g g"]);
}

#[test]
fn env_23_an_input_sees_the_env_of_its_sequence() {
    let world = reading("- {name: s, step: ./s}").with_file("/job/s/step.yml", &sequence("{N: s}")).finished();
    assert_eq!(world.commands(), ["s s"]);
}

#[test]
fn env_25_a_definition_sees_the_env_of_its_invocation() {
    assert_eq!(reading("- {name: c, step: ./child, env: {N: i}}").finished().commands(), ["none i"]);
}

#[test]
fn an_invocation_does_not_see_its_own_env() {
    let run = "- {name: c, step: ./child, env: {N: i, M: \"${{ env.N }}\"}, inputs: {n: \"${{ env.N }}\"}}";
    let world = reading(run).finished();
    assert_eq!(world.commands(), ["g i"]);
    assert!(world.processes()[0].env.contains(&("M".into(), "g".into())));
}

#[test]
fn a_definition_hides_its_invocation_and_sees_what_was_before() {
    let child = "{}\n---\nenv: {N: \"d-${{ env.N }}\", M: \"${{ env.N }}\"}\nexec: {command: [\"${{ env.N }}\", \"${{ env.M }}\"]}\n";
    let world = reading("- {name: c, step: ./d, env: {N: i}}").with_file("/job/d/step.yml", child).finished();
    assert_eq!(world.commands(), ["d-i i"]);
}

const EXPORTING: &str = "{}\n---\nexec: {command: [export, \"${{ export_file }}\"]}\n";

fn exporting(name: &str, _: &Process) -> Reply {
    if name.starts_with("export") { writes("", r#"{"name":"FOO","value":"BAR"}"#) } else { exits(0) }
}

#[test]
fn xpt_08_an_export_is_seen_by_the_next_step() {
    let run = "[{name: export, step: ./export}, {name: c, step: ./child, inputs: {n: \"is ${{ env.FOO }}\"}}]";
    let world = reading(run).with_file("/job/export/step.yml", EXPORTING).behaving(exporting).finished();
    assert_eq!(world.commands()[1], "is BAR g");
}

#[test]
fn an_export_inside_a_nested_sequence_reaches_its_later_steps() {
    // The original takes a snapshot when the sequence is loaded, which hides the new value there (K.1, 13).
    let nested = "{}\n---\nrun: [{name: export, step: ../export}, {name: c, step: ../child, inputs: {n: \"${{ env.FOO }}\"}}]\n";
    let world = reading("- {name: s, step: ./nested}")
        .with_file("/job/nested/step.yml", nested)
        .with_file("/job/export/step.yml", EXPORTING)
        .with_plan(|plan| plan.request_env.extend(pairs(&[("FOO", "old")])))
        .behaving(exporting)
        .finished();
    assert_eq!(world.commands()[1], "BAR g");
}

#[test]
fn a_closer_scope_hides_an_export() {
    let nested =
        "{}\n---\nenv: {FOO: near}\nrun: [{name: export, step: ../export}, {name: c, step: ../child, inputs: {n: \"${{ env.FOO }}\"}}]\n";
    let world = reading("- {name: s, step: ./nested}")
        .with_file("/job/nested/step.yml", nested)
        .with_file("/job/export/step.yml", EXPORTING)
        .behaving(exporting)
        .finished();
    assert_eq!(world.commands()[1], "near g");
}

#[test]
fn a_failed_step_exports_nothing() {
    let run = "[{name: export, step: ./export}, {name: c, step: ./child}]";
    let world = reading(run)
        .with_file("/job/export/step.yml", EXPORTING)
        .behaving(|name, process| Reply { exit: Some(1), ..exporting(name, process) })
        .finished();
    assert_eq!(world.node("export").exports, []);
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::RemoveFiles { step: StepId(1), .. })));
}

#[test]
fn a_process_knows_its_directory_and_its_span_and_nothing_of_job_variables() {
    let world = reading("- {name: c, step: ./child}").with_plan(|plan| plan.variables = pairs(&[("CI_X", "v")])).finished();
    let names: Vec<_> = world.processes()[0].env.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
    let span = world.node("c").trace.unwrap();
    assert_eq!(names, ["N=g", "PWD=/job", &format!("TRACEPARENT={span}"), "W=g"]);
}

#[test]
fn a_merge_request_pipeline_with_its_whole_environment_runs() {
    // Long, multi-line and empty values, and names that are no identifiers (K.1, 23).
    let long = "x".repeat(100_000);
    let odd = [
        ("CI_MERGE_REQUEST_DESCRIPTION", "a\nb\n\n${{ not }} an expression"),
        ("EMPTY", ""),
        ("with-dash", "1"),
        ("größe", "2"),
        ("LONG", &long),
    ];
    let world = reading("- {name: c, step: ./child, inputs: {n: \"${{ job.CI_MERGE_REQUEST_DESCRIPTION }}\"}}")
        .with_plan(|plan| {
            plan.variables = pairs(&odd);
            plan.request_env.extend(pairs(&odd));
        })
        .finished();
    assert_eq!(world.processes()[0].command[0], odd[0].1.into());
    assert!(odd.iter().all(|(name, value)| world.processes()[0].env.contains(&(Arc::from(*name), Value::from(*value)))));
}

#[test]
fn every_process_gets_the_span_of_its_own_step() {
    let run = "- {name: a, script: x, env: {TRACEPARENT: mine}}\n  - {name: s, step: ./s}";
    let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let world = World::new(run)
        .with_file("/job/s/step.yml", "{}\n---\nrun: [{name: b, script: y}]\n")
        .with_plan(|plan| plan.trace_parent = caller.parse().ok())
        .finished();
    let told = |index: usize| {
        let process = &world.processes()[index];
        process.env.iter().find(|(name, _)| &**name == "TRACEPARENT").unwrap().1.as_str().unwrap().to_owned()
    };
    let span = |path: &str| world.node(path).trace.unwrap().to_string();
    assert_eq!([told(0), told(1)], [span("a"), span("s/b")]);
    let spans = [span(""), span("a"), span("s"), span("s/b")];
    assert!(spans.iter().all(|span| span.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && span != caller), "{spans:?}");
}
