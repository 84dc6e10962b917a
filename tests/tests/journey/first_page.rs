//! The examples of the first page: a job that a person recognises, from its build to its report.

use ci_tests::program::Invocation;
use ci_tests::repository;
use ci_tests::workshop::{Ends, Workshop};

fn in_repository(workshop: &Workshop, arguments: &[&str]) -> Invocation {
    let out = workshop.path("out");
    Invocation::step_runner(arguments).dir(repository::root()).env("TMPDIR", workshop.path("tmp")).env("OUT", out)
}

#[test]
fn the_example_builds_verifies_and_reports_a_program() {
    let workshop = Workshop::new();
    let result = workshop.path("result.json");
    let out = format!("OUT={}", workshop.path("out").display());
    let arguments = ["run", "examples/hello-build/job.json", "--env", &out, "--result", result.to_str().expect("a path of ours is UTF-8")];
    let finished = in_repository(&workshop, &arguments).ends(0);
    let finished = finished.prints("linked ").prints("as expected: 2 lines, 6 words, 19 bytes").prints("counts right");
    assert!(!finished.stdout().contains("Running step"), "standard output holds more than the steps wrote\n{finished}");

    let tree = workshop.result("result.json");
    assert_eq!(tree["status"], "success");
    assert_eq!(names(&tree), ["build", "verify", "report"]);
    assert_eq!(names(&steps(&tree)[0]), ["first", "second", "link"]);
    let bytes = steps(&tree)[0]["outputs"]["bytes"].as_f64().expect("a number");
    assert!(bytes > 1000.0);
    assert!(steps(&tree)[1]["outputs"]["verdict"]["characters"] == 19.0, "{}", steps(&tree)[1]["outputs"]);
    assert!(workshop.left_behind().is_empty(), "{:?}", workshop.left_behind());
}

fn names(node: &serde_json::Value) -> Vec<String> {
    steps(node).iter().map(|step| step["step"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn steps(node: &serde_json::Value) -> Vec<serde_json::Value> {
    node["subStepResults"].as_array().cloned().unwrap_or_default()
}

#[test]
fn check_finds_nothing_wrong_in_the_examples() {
    let workshop = Workshop::new();
    in_repository(&workshop, &["check", "examples/hello-build/steps/build", "examples/hello-build/steps/verify"]).ends(0);
}

#[test]
fn both_jobs_of_the_gitlab_file_run() {
    let workshop = Workshop::new();
    let out = format!("OUT={}", workshop.path("out").display());
    let file = "examples/hello-build/.gitlab-ci.yml";
    in_repository(&workshop, &["run", file, "count-words", "--job", &out])
        .ends(0)
        .prints("1 lines, 3 words, 14 bytes")
        .prints("done with count-words");
    in_repository(&workshop, &["run", file, "build-and-verify", "--job", &out]).ends(0).prints("as expected: 1 lines, 3 words, 14 bytes");
}

#[test]
fn a_directory_with_a_definition_runs_with_inputs_of_the_declared_type() {
    let workshop = Workshop::new();
    workshop.file(
        "greet/func.yml",
        "spec: {inputs: {who: {type: string}, times: {type: number, default: 1}}}\n---\nexec: {command: [echo, \"${{ inputs.who }} ${{ inputs.times + 1 }}\"]}\n",
    );
    workshop.step_runner(&["run", "./greet", "--input", "who=1.10", "--input", "times=2"]).ends(0).prints("1.10 3\n");
    workshop.step_runner(&["run", "./greet"]).ends(3).says("who");
}

#[test]
fn the_schemas_are_schemas_and_accept_the_examples() {
    let workshop = Workshop::new();
    let printed = workshop.step_runner(&["schema"]).ends(0).stdout();
    let schemas: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert!(printed.contains("2020-12"), "{schemas}");
}
