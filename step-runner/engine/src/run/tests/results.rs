use super::*;

#[test]
fn res_01_a_result_shows_what_was_written_and_what_it_became() {
    let definition = "spec: {inputs: {name: {type: string}}}\n---\nenv: {P: \"${{ env.R }}\"}\nexec: {command: [x, \"${{ inputs.name }}\"], work_dir: \"/w/${{ env.P }}\"}\n";
    let root = "{}\n---\nenv: {P: \"${{ env.R }}\"}\nrun: [{name: g, step: ./g, inputs: {name: \"${{ env.N }}\"}}]\n";
    let world = World::of(crate::world::job(root, step_model::document::Dialect::Steps))
        .with_file("/job/g/step.yml", definition)
        .with_plan(|plan| plan.request_env = pairs(&[("R", "r"), ("N", "n")]))
        .finished();
    let (top, sub) = (world.node(""), world.node("g"));
    assert_eq!(top.document.unwrap().definition.env[0].1.source(), "${{ env.R }}", "the definition is unexpanded");
    assert_eq!(top.given_env, pairs(&[("N", "n"), ("R", "r")]));
    assert_eq!(top.env, pairs(&[("N", "n"), ("P", "r"), ("R", "r")]));
    assert_eq!(sub.inputs, [("name".into(), "n".into())]);
    assert_eq!(sub.env, pairs(&[("N", "n"), ("P", "r"), ("R", "r")]));
    let executed = sub.exec.unwrap();
    assert_eq!((executed.command, executed.work_dir), (vec!["x".into(), "n".into()], "/w/r".into()));
}

#[test]
fn res_02_a_node_carries_inputs_and_environment_of_its_invocation() {
    let world = greeting_job("- {name: g, step: ./greet, inputs: {name: bo}, env: {E: v}}").finished();
    let node = world.node("g");
    assert_eq!(node.inputs, [("name".into(), "bo".into())], "defaults are not added");
    assert_eq!(node.given_env, pairs(&[("E", "v")]));
    assert_eq!(node.step.unwrap().inputs.len(), 1);
}

#[test]
fn res_04_the_outermost_node_has_no_name_and_no_reference() {
    let world = greeting_job("- {name: g, step: ./greet}").finished();
    assert_eq!((&*world.node("").name, world.node("").step), ("", None));
}

#[test]
fn a_result_is_complete_at_any_moment() {
    let mut world = World::new("[{name: a, script: x}, {name: b, script: x}]").behaving(|_, _| runs_on()).started();
    let node = world.node("a");
    assert_eq!((node.status, world.node("").status, node.end), (Status::Running, Status::Running, None));
    assert_eq!(node.exec.unwrap().exit_code, -1);
    world.now = at(3);
    let usage = Usage { cpu_user: std::time::Duration::from_millis(5), ..Usage::default() };
    world.on(Event::Exited { step: StepId(1), exit: Exit::Code(0), usage });
    let node = world.node("a");
    assert_eq!((node.status, node.usage), (Status::Success, Some(usage)));
    assert_eq!((node.start, node.end), (Some(at(0).wall), Some(at(3).wall)));
    assert_eq!(world.node("b").start, Some(at(3).wall));
    world.on(Event::Exited { step: StepId(2), exit: Exit::Code(0), usage });
    let all = world.node("").usage.map(|usage| usage.cpu_user);
    assert_eq!(all, Some(std::time::Duration::from_millis(10)), "the root has what all steps used");
}

#[test]
fn a_result_tells_the_environment_of_its_moment() {
    let run = "[{name: one, step: ./greet, inputs: {name: a}}, {name: two, step: ./greet, inputs: {name: b}}, {name: three, script: x}]";
    let world = greeting_job(run).finished();
    assert_eq!(world.node("one").env, pairs(&[]));
    assert_eq!(world.node("two").env, pairs(&[("NAME", "a")]));
    assert_eq!(world.node("three").env, pairs(&[("NAME", "b")]));
}

#[test]
fn a_node_names_the_content_that_ran() {
    let world = greeting_job("- {name: g, step: ./greet}").finished();
    assert_eq!(world.node("g").digest, Some(step_model::reference::Digest::of(GREET.as_bytes())));
    assert_eq!(world.node("").digest, None);
}
