//! `runner-core try`: jobs on the whole path that jobs of a server take, on one machine.

use ci_tests::program::{Invocation, path};
use ci_tests::workshop::{Ends, Workshop};
use serde_json::json;

const PIPELINE: &str = "\
build:
  variables: {WHO: world}
  script: ['echo hello $WHO', 'echo to the other >&2']
test:
  script: ['echo testing', 'exit 3']
  after_script: ['echo after']
slow:
  script: ['echo begun', 'exec sleep 600']
";

fn trying(workshop: &Workshop, arguments: &[&str]) -> Invocation {
    let agent = path("STEP_RUNNER").to_string_lossy().into_owned();
    let arguments: Vec<&str> = ["try", "--agent", &agent].into_iter().chain(arguments.iter().copied()).collect();
    workshop.runner_core(&arguments)
}

fn workshop() -> Workshop {
    let workshop = Workshop::new();
    workshop.file(".gitlab-ci.yml", PIPELINE);
    workshop
}

#[test]
fn a_job_of_a_pipeline_runs_and_its_log_is_standard_output() {
    let workshop = workshop();
    let printed = trying(&workshop, &[".gitlab-ci.yml", "build"]).ends(0).prints("hello world\n").prints("to the other\n");
    assert!(!printed.stdout().contains("01O"), "no stamps for people: {printed}");
    assert_eq!(workshop.left_behind(), [""; 0]);
}

#[test]
fn a_payload_runs_and_its_result_tree_can_be_kept() {
    let workshop = Workshop::new();
    let payload = json!({
        "id": 7, "token": "t", "job_info": {"name": "build", "stage": "test"}, "runner_info": {"timeout": 60},
        "variables": [{"key": "SECRET", "value": "swordfish", "masked": true}],
        "steps": [{"name": "script", "script": ["echo it is $SECRET"], "timeout": 60, "when": "on_success", "allow_failure": false}],
    });
    workshop.file("job.json", payload.to_string());
    trying(&workshop, &["job.json", "--result", "result.json"]).ends(0).prints("it is [MASKED]\n");
    let result = workshop.result("result.json");
    assert_eq!((&result["status"], &result["subStepResults"][0]["step"]["name"]), (&json!("success"), &json!("script")));
    assert!(!workshop.read("result.json").contains("swordfish"));
}

#[test]
fn a_failure_is_told_by_the_exit_code_and_a_tree() {
    let workshop = workshop();
    let failed = trying(&workshop, &[".gitlab-ci.yml", "test"]).ends(1).prints("testing\n").prints("after\n");
    failed.says("script: exec: exit status 3").says("after_script");
    assert_eq!(workshop.left_behind(), [""; 0]);
}

#[test]
fn several_jobs_share_instances_and_each_line_says_whose_it_is() {
    let workshop = workshop();
    let jobs = [".gitlab-ci.yml", "build", "test", "build", "build", "--instances", "2", "--capacity", "2"];
    let ended = trying(&workshop, &jobs).ends(1).prints("test | testing\n");
    assert_eq!(ended.stdout().matches("build | hello world\n").count(), 3, "{ended}");
}

#[test]
fn a_signal_ends_the_jobs_and_nothing_is_left() {
    let workshop = workshop();
    let mut started = trying(&workshop, &[".gitlab-ci.yml", "slow"]).start();
    started.wait_for("begun\n");
    started.signal(rustix::process::Signal::INT);
    started.finish().exits(130);
    assert_eq!(workshop.left_behind(), [""; 0]);
}

#[test]
fn what_cannot_run_is_said_before_anything_is_started() {
    let workshop = workshop();
    trying(&workshop, &[".gitlab-ci.yml", "biuld"]).ends(3).says("has no job `biuld`").says("did you mean `build`?");
    trying(&workshop, &[".gitlab-ci.yml"]).ends(3).says("its jobs are `build`, `test`, `slow`");
    workshop.runner_core(&["try", "--agent", "nowhere", ".gitlab-ci.yml", "build"]).ends(3).says("`nowhere` is no file");
    trying(&workshop, &[".gitlab-ci.yml", "build", "--instances", "0"]).ends(2).says("no job would ever run");
    assert_eq!(workshop.left_behind(), [""; 0]);
}

#[test]
fn jobs_find_the_caches_and_artifacts_of_those_before_them() {
    let workshop = Workshop::new();
    workshop.file(
        ".gitlab-ci.yml",
        "build:\n  cache: {key: deps, paths: [deps]}\n  artifacts: {paths: [out]}\n  script: ['mkdir -p deps out', 'cat deps/kept || echo first', 'echo again >deps/kept', 'echo made >out/file']\n",
    );
    let dependencies = json!([{"id": 7, "token": "x", "name": "build", "artifacts_file": {"filename": "artifacts.zip", "size": 1}}]);
    let payload = json!({
        "id": 8, "token": "t", "job_info": {"name": "test", "stage": "test"}, "runner_info": {"timeout": 60}, "dependencies": dependencies,
        "steps": [{"name": "script", "script": ["cat out/file"], "timeout": 60, "when": "on_success"}],
    });
    workshop.file("job.json", payload.to_string());
    let run = |job: &[&str]| trying(&workshop, &[job, &["--cache", "--artifacts"]].concat()).ends(0);
    let first = run(&[".gitlab-ci.yml", "build"]).prints("first\n");
    assert!(!first.stderr().contains("not done"), "{first}");
    std::fs::remove_dir_all(workshop.path("deps")).expect("the job made it");
    std::fs::remove_dir_all(workshop.path("out")).expect("the job made it");
    run(&[".gitlab-ci.yml", "build"]).prints("again\n");
    std::fs::remove_dir_all(workshop.path("out")).expect("the job made it");
    run(&["job.json"]).prints("made\n");
    trying(&workshop, &[".gitlab-ci.yml", "build", "--checkout"]).ends(2).says("`--checkout` needs a commit");
    trying(&workshop, &[".gitlab-ci.yml", "build", "--step", "docker=./x"]).ends(2).says("with one of the names `checkout`");
}
