//! `ci`: the steps in the variable STEPS.

use crate::bench::{Bench, Finished, GREET};

const EXIT: &str = "spec: {inputs: {code: {type: number}}}\n---\nexec: {command: [sh, -c, \"exit ${{ inputs.code }}\"]}\n";

fn ci(bench: &Bench, steps: &str, env: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let mut command = bench.command(&[&["ci"], arguments].concat());
    Finished::of(command.env("STEPS", steps).envs(env.iter().copied()))
}

#[test]
fn cli_01_steps_run_in_order_and_a_later_one_reads_an_output_of_an_earlier_one() {
    let bench = Bench::new();
    bench.file("steps/greet/step.yml", GREET);
    let steps = r#"[{"name": "first", "step": "./steps/greet", "inputs": {"name": "sally"}},
        {"name": "second", "step": "./steps/greet", "inputs": {"name": "${{ steps.first.outputs.name }}"}}]"#;
    let finished = ci(&bench, steps, &[], &["--write-steps-results"]).exits(0);
    assert_eq!(finished.stdout.matches("sally is 1").count(), 2, "{finished:#?}");
    let result = bench.json("step-results.json");
    assert_eq!(result["status"], "success");
    let nodes = result["subStepResults"].as_array().expect("two results");
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes[0]["outputs"], nodes[1]["outputs"]);
    assert_eq!(nodes[1]["outputs"]["name"], "sally");
}

#[test]
fn cli_02_a_result_is_written_with_the_flag_and_when_debugging_and_not_otherwise() {
    let is_written = |env: &[(&str, &str)], arguments: &[&str]| {
        let bench = Bench::new();
        ci(&bench, "[{name: a, script: echo x}]", env, arguments).exits(0).prints("x\n");
        bench.path("step-results.json").exists()
    };
    assert!(is_written(&[], &["--write-steps-results"]));
    assert!(is_written(&[("CI_STEPS_DEBUG", "true")], &[]));
    assert!(!is_written(&[], &[]));
}

#[test]
fn cli_04_a_step_that_fails_is_an_error_and_a_report() {
    let bench = Bench::new();
    bench.file("exit/step.yml", EXIT);
    let steps = "[{name: a, step: ./exit, inputs: {code: 99}}]";
    ci(&bench, steps, &[], &["--write-steps-results"]).exits(1).says("error: failed to run steps: step \"a\": exec: exit status 99\n");
    assert_eq!(bench.json("step-results.json")["status"], "failure");
}

#[test]
fn cli_05_a_step_needs_no_name() {
    let bench = Bench::new();
    bench.file("exit/step.yml", EXIT);
    ci(&bench, "[{step: ./exit, inputs: {code: 0}}, {script: echo unnamed}]", &[], &[]).exits(0).prints("unnamed\n");
}

#[test]
fn steps_see_the_fixed_list_of_the_environment_and_job_variables_by_prefix() {
    let bench = Bench::new();
    bench.file("project/marker", "");
    let steps = "[{name: a, script: 'env | sort; ls; echo job=${{ vars.CI_FOO }}'}]";
    let env = [("FOO", "f"), ("CI_FOO", "c"), ("TZ", "UTC"), ("CI_PROJECT_DIR", "project")];
    let finished = ci(&bench, steps, &env, &[]).exits(0).prints("job=c\n").prints("marker\n").prints("TZ=UTC\n");
    for absent in ["\nFOO=", "\nCI_FOO=", "\nSTEPS=", "\nHOME="] {
        assert!(!finished.stdout.contains(absent), "{absent:?}\n{}", finished.stdout);
    }
    finished.prints("CI_STEPS_LOG_LEVEL=info\n");
}

#[test]
fn what_is_wrong_with_the_steps_is_said_in_the_original_words() {
    let bench = Bench::new();
    Finished::of(&mut bench.command(&["ci"]))
        .exits(3)
        .says("error: compiling STEPS: at least one of `script, `action`, `run` or `exec` must be provided\n");
    ci(&bench, "nope: 1", &[], &[]).exits(3).says("reading STEPS \"nope: 1\": unmarshalling steps: ");
}
