use super::*;

fn masked(world: &World) -> Vec<&str> {
    world.effects.iter().filter_map(|effect| if let Effect::Mask { value } = effect { value.as_str() } else { None }).collect()
}

const SECRET: &str = "spec: {outputs: {token: {type: string, sensitive: true}}}\n---\nexec: {command: [get, \"${{ output_file }}\"]}\n";
const PLAIN: &str = "spec: {inputs: {t: {type: string}}}\n---\nexec: {command: [use, \"${{ inputs.t }}\"]}\n";
const MARKED: &str = "spec: {inputs: {t: {type: string, sensitive: true}}}\n---\nexec: {command: [use, \"${{ inputs.t }}\"]}\n";

fn telling(run: &str) -> World {
    World::new(run)
        .with_file("/job/get/step.yml", SECRET)
        .with_file("/job/plain/step.yml", PLAIN)
        .with_file("/job/marked/step.yml", MARKED)
        .behaving(|name, _| if name == "get" { writes(r#"{"name":"token","value":"hunter22"}"#, "") } else { exits(0) })
}

#[test]
fn a_sensitive_output_is_masked_before_anything_can_show_it() {
    let world =
        telling("[{name: get, step: ./get}, {name: use, step: ./marked, inputs: {t: \"${{ steps.get.outputs.token }}\"}}]").finished();
    assert_eq!(masked(&world), ["hunter22"], "once");
    let position = |wanted: fn(&Effect) -> bool| world.effects.iter().position(wanted).unwrap();
    let mask = position(|effect| matches!(effect, Effect::Mask { .. }));
    assert!(mask < position(|effect| matches!(effect, Effect::Ended { step: StepId(1) })));
    assert_eq!(world.node("get").sensitive_outputs, ["token".into()]);
    assert!(world.node("use").inputs[0].1.is_sensitive());
    assert!(world.processes()[1].command[1].is_sensitive());
}

#[test]
fn a_sensitive_input_is_masked_before_the_step_starts() {
    let world = telling("- {name: use, step: ./marked, inputs: {t: literal-secret}}").finished();
    assert_eq!(masked(&world), ["literal-secret"]);
    let mask = world.effects.iter().position(|effect| matches!(effect, Effect::Mask { .. })).unwrap();
    assert_eq!(world.effects[mask + 1], Effect::Started { step: StepId(1) });
}

#[test]
fn a_sensitive_value_in_a_plain_input_is_a_warning_in_a_step_and_an_error_in_a_function() {
    // The original lets it pass and prints it in clear (original.md S 2.8).
    let fault = "input \"t\": non-sensitive input cannot derive value using sensitive value(s) \"steps.get.outputs.token\"";
    let run = "[{name: get, step: ./get}, {name: use, step: ./plain, inputs: {t: \"is ${{ steps.get.outputs.token }}\"}}]";
    let world = telling(run).finished();
    assert!(world.said().contains(&fault), "{:?}", world.said());
    assert!(world.processes()[1].command[1].is_sensitive(), "the mark travels");

    let outer =
        "{}\n---\nrun:\n- {name: get, func: ../get}\n- {name: use, func: ../plain, inputs: {t: \"${{ steps.get.outputs.token }}\"}}\n";
    let world = telling("- {name: o, func: ./o}").with_file("/job/o/func.yml", outer).finished();
    assert_eq!(world.message(), format!("step \"o\": step \"use\": failed to load: {fault}"));
}

#[test]
fn a_masked_job_variable_may_go_anywhere_with_its_mark() {
    let outer = "{}\n---\nrun: [{name: use, func: ../plain, inputs: {t: \"${{ vars.TOKEN }}\"}}]\n";
    let world = telling("- {name: o, func: ./o}")
        .with_file("/job/o/func.yml", outer)
        .with_plan(|plan| drop(plan.variables.insert("TOKEN".into(), Value::from("glpat-123").sensitive())))
        .finished();
    assert_eq!(world.run().status(), Status::Success);
    assert!(world.processes()[0].command[1].is_sensitive());
    assert_eq!(masked(&world), [""; 0], "whoever started the run masks it already");
}

#[test]
fn a_value_that_is_made_of_a_secret_is_masked_when_it_is_born() {
    let env = "{}\n---\nenv: {PIN: \"${{ str(vars.PIN) }}\"}\nexec: {command: [x]}\n";
    let world = telling("- {name: e, step: ./e}")
        .with_file("/job/e/step.yml", env)
        .with_plan(|plan| drop(plan.variables.insert("PIN".into(), Value::from(471_100.0).sensitive())))
        .finished();
    assert!(world.processes()[0].env.iter().any(|(name, value)| **name == *"PIN" && value.is_sensitive()));
}
