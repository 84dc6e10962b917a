//! The checks between a definition that is loaded and a step that begins. The resolver sees literal mistakes before; the run sees all.

use super::*;
use std::collections::BTreeMap;

const TYPED: &str = "spec: {inputs: {n: {type: number}, s: {type: string, default: d}}}\n---\nexec: {command: [x, \"${{ inputs.n }}\"]}\n";

/// A job that is run without having been resolved: every reference is a hole.
fn unresolved(run: &str, file: &str) -> World {
    World::new(run).with_file(&format!("/job/t/{file}"), TYPED)
}

fn message(run: &str) -> String {
    unresolved(run, "step.yml").hollow().message().to_owned()
}

#[test]
fn run_19_an_unknown_input_is_refused() {
    let expected = "step \"s\": failed to load: step does not accept input with name \"x\"";
    assert_eq!(message("- {name: s, step: ./t, inputs: {n: 1, x: 1}}"), expected);
}

#[test]
fn run_23_a_required_input_has_to_be_given() {
    let expected = "step \"s\": failed to load: failed to parse spec definition: input \"n\" required, but not defined";
    assert_eq!(message("- {name: s, step: ./t}"), expected);
    let root = crate::world::job("spec: {inputs: {x: {type: string}}}\n---\nexec: {command: [x]}\n", step_model::document::Dialect::Steps);
    let refusal = World::of(root).refusal().unwrap();
    assert_eq!(refusal.message, "failed to parse spec definition: input \"x\" required, but not defined");
}

#[test]
fn a_job_that_itself_needs_an_input_fails() {
    let root = crate::world::job("spec: {inputs: {x: {type: string}}}\n---\nexec: {command: [x]}\n", step_model::document::Dialect::Steps);
    let world = World::of(root).hollow();
    assert_eq!(world.message(), "failed to parse spec definition: input \"x\" required, but not defined");
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::BadInput);
}

#[test]
fn the_checks_come_in_the_order_of_the_original() {
    let load = |inputs: &str, env: &str| message(&format!("- {{name: s, step: ./t, inputs: {inputs}, env: {env}}}"));
    assert!(load("{x: 1, s: \"${{ env.NO }}\"}", "{V: \"${{ env.NO }}\"}").ends_with("step does not accept input with name \"x\""));
    assert!(load("{s: \"${{ env.NO }}\"}", "{V: \"${{ env.NO }}\"}").ends_with("expand input \"s\": env.NO: the \"NO\" was not found"));
    assert!(load("{s: a}", "{V: \"${{ env.NO }}\"}").ends_with("failed to load: env \"V\": env.NO: the \"NO\" was not found"));
    assert!(load("{s: 1}", "{}").ends_with("input \"n\" required, but not defined"));
}

#[test]
fn run_28_an_input_of_another_type_passes_with_a_warning_where_the_original_lets_it_pass() {
    let run = "- {name: s, step: ./t, inputs: {n: \"${{ env.T }}\"}}";
    let world = |strict| {
        let env: BTreeMap<_, _> = pairs(&[("T", "text")]);
        unresolved(run, "step.yml").with_plan(|plan| (plan.strict, plan.request_env) = (strict, env)).hollow()
    };
    let fault = "input \"n\": mismatched types, declared as \"number\" in step specification and received as type \"string\"";
    assert_eq!(world(false).commands(), ["x text"]);
    assert!(world(false).said().contains(&fault));
    assert_eq!(world(true).message(), format!("step \"s\": failed to load: {fault}"));
}

#[test]
fn an_input_of_another_type_is_refused_in_a_function() {
    let outer = "{}\n---\nrun: [{name: s, func: ../t, inputs: {n: \"${{ env.T }}\"}}]\n";
    let world = unresolved("- {name: o, func: ./o}", "func.yml")
        .with_file("/job/o/func.yml", outer)
        .with_plan(|plan| plan.request_env = pairs(&[("T", "text")]))
        .hollow();
    assert_eq!(
        world.message(),
        "step \"o\": step \"s\": failed to load: input \"n\": mismatched types, declared as \"number\" in step specification and received as type \"string\""
    );
}

#[test]
fn outputs_of_a_sequence_are_checked_like_inputs() {
    let file = "spec: {outputs: {a: {type: number}, b: {type: string}, c: {type: string, default: d}}}\n---\n\
                run: [{name: x, script: x}]\noutputs: {a: text, e: extra}\n";
    let world = World::new("- {name: s, step: ./s}").with_file("/job/s/step.yml", file).hollow();
    assert_eq!(world.run().status(), Status::Success);
    let warnings: Vec<_> = world.said().into_iter().filter(|line| line.starts_with("outputs: ")).collect();
    assert_eq!(
        warnings,
        [
            "outputs: key \"a\": mismatched types, declared as \"number\" in step specification and received from step as type \"string\"",
            "outputs: key \"b\": missing output, add to step outputs or remove from step specification",
            "outputs: key \"e\": unexpected output, remove from step outputs or define in step specification",
        ]
    );
    let outputs: Vec<_> = world.node("s").outputs.iter().map(|(name, value)| format!("{name}={}", value.to_json())).collect();
    assert_eq!(outputs, ["a=\"text\"", "c=\"d\"", "e=\"extra\""]);

    let strict = World::new("- {name: s, step: ./s}").with_file("/job/s/step.yml", file).with_plan(|plan| plan.strict = true).hollow();
    assert!(strict.message().starts_with("step \"s\": "), "{}", strict.message());
}

#[test]
fn what_a_step_cannot_expand_is_named() {
    let message = |definition: &str| {
        let world = World::new("- {name: s, step: ./d}").with_file("/job/d/step.yml", &format!("{{}}\n---\n{definition}")).hollow();
        assert_eq!(world.processes().len(), 0);
        world.message().to_owned()
    };
    let missing = "env.NO: the \"NO\" was not found";
    assert_eq!(message("env: {V: \"${{ env.NO }}\"}\nexec: {command: [x]}\n"), format!("step \"s\": env variable \"V\": {missing}"));
    assert_eq!(
        message("exec: {command: [x, \"a ${{ env.NO }}\"]}\n"),
        format!("step \"s\": interpolate command argument \"a ${{{{ env.NO }}}}\": {missing}")
    );
    assert_eq!(
        message("exec: {command: [x], work_dir: \"${{ env.NO }}\"}\n"),
        format!("step \"s\": interpolate workdir \"${{{{ env.NO }}}}\": {missing}")
    );
}

#[test]
fn an_output_of_a_sequence_that_cannot_be_expanded_is_named() {
    let file = "spec: {outputs: {a: {type: string}}}\n---\nrun: [{name: x, script: x}]\noutputs: {a: \"${{ env.NO }}\"}\n";
    let world = World::new("- {name: s, step: ./s}").with_file("/job/s/step.yml", file).hollow();
    assert_eq!(world.message(), "step \"s\": outputs: expand \"a\": env.NO: the \"NO\" was not found");
}
