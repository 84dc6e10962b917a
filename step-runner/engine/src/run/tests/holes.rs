//! References that are followed when the run reaches them.

use super::*;

fn loads(world: &World) -> usize {
    world.effects.iter().filter(|effect| matches!(effect, Effect::Load { .. })).count()
}

#[test]
fn a_first_step_is_not_read_again_and_a_later_one_is() {
    let world = greeting_job("[{name: a, step: ./greet}, {name: b, step: ./greet}]").finished();
    assert_eq!(loads(&world), 1);
}

#[test]
fn what_an_earlier_step_wrote_is_what_runs() {
    let run = "[{name: write, script: x}, {name: run, step: ./made}]";
    let mut world = World::new(run).behaving(|name, _| if name == "write" { runs_on() } else { exits(0) }).started();
    world.files.insert("/job/made/step.yml".into(), exec("[made]"));
    world.on(Event::Exited { step: StepId(1), exit: Exit::Code(0), usage: Usage::default() });
    world.settle();
    assert_eq!(world.commands()[1], "made");
    assert_eq!(world.node("run").digest, Some(step_model::reference::Digest::of(exec("[made]").as_bytes())));
}

#[test]
fn a_step_that_is_not_there_fails_when_it_is_reached() {
    let world = World::new("[{name: first, script: x}, {name: s, step: ./nope}]").finished();
    let path = "/job/nope/step.yml";
    let expected = format!("step \"s\": failed to load: loading file \"{path}\": reading file: open {path}: no such file or directory");
    assert_eq!(world.message(), expected);
    assert_eq!(world.run().failure().unwrap().kind, FailureKind::BadInput);
    assert_eq!(world.processes().len(), 1);
}

#[test]
fn a_definition_that_became_wrong_fails_the_step_with_every_problem() {
    let run = "[{name: write, script: x}, {name: run, step: ./made}]";
    let mut world = World::new(run).with_file("/job/made/step.yml", &exec("[made]")).behaving(|_, _| runs_on()).started();
    world.files.insert("/job/made/step.yml".into(), "{}\n---\nexec: {command: []}\n".into());
    world.on(Event::Exited { step: StepId(1), exit: Exit::Code(0), usage: Usage::default() });
    world.settle();
    assert!(world.message().starts_with("step \"run\": failed to load: /job/made/step.yml: line "), "{}", world.message());
}

#[test]
fn ld_01_a_computed_path_is_relative_to_the_definition_that_holds_it() {
    let inner = "{}\n---\nrun: [{name: d, step: \"./${{ env.P }}\"}]\n";
    let world = World::new("- {name: s, step: ./s}")
        .with_file("/job/s/step.yml", inner)
        .with_file("/job/s/a/b/step.yml", &exec("[found]"))
        .with_plan(|plan| plan.request_env = pairs(&[("P", "a/b")]))
        .finished();
    assert_eq!(world.commands(), ["found"]);
}

#[test]
fn ld_02_a_computed_path_may_be_absolute() {
    let world = World::new("- {name: d, step: \"${{ env.P }}\"}")
        .with_file("/elsewhere/step.yml", &exec("[found]"))
        .with_plan(|plan| plan.request_env = pairs(&[("P", "/elsewhere")]))
        .finished();
    assert_eq!(world.commands(), ["found"]);
}

#[test]
fn ld_07_each_kind_of_reference_is_recognised_when_it_is_computed() {
    let run = |reference: &str| {
        World::new("- {name: d, step: \"${{ env.P }}\", inputs: {script: x}}")
            .with_plan(|plan| plan.request_env = pairs(&[("P", reference)]))
            .finished()
    };
    assert!(run("./here").message().contains("loading file \"/job/here/step.yml\""));
    assert_eq!(run("dist://script").run().status(), Status::Success);
    let git =
        "step \"d\": failed to load: `https://host.example/g/p@v1` is not on this machine, and this build does not fetch remote steps yet";
    assert_eq!(run("host.example/g/p@v1").message(), git);
    assert!(run("nothing").message().starts_with("step \"d\": failed to load: "), "{}", run("nothing").message());
}

#[test]
fn ld_08_the_directory_of_the_caller_is_the_base_of_a_reference() {
    let world = World::new("- {name: s, step: ./a/b}")
        .with_file("/job/a/b/step.yml", "{}\n---\nrun: [{name: t, step: ../c}]\n")
        .with_file("/job/a/c/step.yml", &exec("[\"${{ step_dir }}\"]"))
        .finished();
    assert_eq!(world.commands(), ["/job/a/c"]);
}

#[test]
fn a_computed_reference_that_holds_an_expression_is_computed_again() {
    let env = pairs(&[("P", "./${{ env.Q }}"), ("Q", "here"), ("LOOP", "${{ env.LOOP }}")]);
    let job = |run: &str| {
        World::new(run).with_file("/job/here/step.yml", &exec("[found]")).with_plan(|plan| plan.request_env = env.clone()).finished()
    };
    assert_eq!(job("- {name: d, step: \"${{ env.P }}\"}").commands(), ["found"]);
    let message = job("- {name: d, step: \"${{ env.LOOP }}\"}").message().to_owned();
    assert_eq!(
        message,
        "step \"d\": failed to load: fetching step: interpolating reference: `${{ env.LOOP }}` always names another expression"
    );
    let missing = job("- {name: d, step: \"${{ env.NO }}\"}").message().to_owned();
    assert_eq!(missing, "step \"d\": failed to load: fetching step: interpolating reference: env.NO: the \"NO\" was not found");
}

#[test]
fn a_definition_that_comes_back_to_itself_is_stopped() {
    let again = "{}\n---\nrun: [{name: x, script: x}, {name: again, step: ../a}]\n";
    let world = World::new("- {name: a, step: ./a}").with_file("/job/a/step.yml", again).finished();
    assert_eq!(
        world.message(),
        "step \"a\": step \"again\": failed to load: the definition refers to itself: /job/a/step.yml > /job/a/step.yml"
    );
    assert_eq!(world.processes().len(), 1);
}

#[test]
fn a_computed_reference_may_come_back_until_the_limit() {
    let again = "{}\n---\nrun: [{name: again, step: \"${{ env.SELF }}\"}]\n";
    let world = World::new("- {name: a, step: ./a}")
        .with_file("/job/a/step.yml", again)
        .with_plan(|plan| plan.request_env = pairs(&[("SELF", "/job/a")]))
        .finished();
    assert!(world.message().ends_with("step \"again\": failed to load: steps nest deeper than 64 levels"), "{}", world.message());
    assert_eq!(world.run().result().headline(world.run().failed_step().unwrap()).depth, 64);
}
