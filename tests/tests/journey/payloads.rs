//! GitLab payloads on a laptop: what stands in for what, what is named, and what has to be supplied.

use ci_tests::repository;
use ci_tests::workshop::{Ends, Workshop};
use serde_json::{Value, json};

fn payload(more: &Value) -> String {
    let mut payload = json!({
        "id": 7, "token": "t", "job_info": {"name": "build", "stage": "test"},
        "git_info": {"repo_url": "https://gitlab.example/a/b.git", "ref": "main", "sha": "0123456789012345678901234567890123456789"},
        "runner_info": {"timeout": 60},
        "variables": [{"key": "WHO", "value": "world", "public": true, "file": false, "masked": false, "raw": false}],
        "steps": [{"name": "script", "script": ["echo hello $WHO"], "timeout": 60, "when": "on_success", "allow_failure": false}],
    });
    payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    payload.to_string()
}

fn run(more: &Value, arguments: &[&str]) -> (Workshop, ci_tests::program::Invocation) {
    let workshop = Workshop::new();
    workshop.file("job.json", payload(more));
    let arguments: Vec<&str> = ["run", "job.json"].into_iter().chain(arguments.iter().copied()).collect();
    let invocation = workshop.step_runner(&arguments);
    (workshop, invocation)
}

#[test]
fn a_script_runs_with_job_variables_in_its_environment() {
    let (_workshop, run) = run(&json!({}), &[]);
    run.ends(0).prints("hello world\n");
}

#[test]
fn a_run_of_steps_in_a_payload_is_taken_as_it_is() {
    let steps = json!([{"name": "a", "script": "echo from ${{ vars.WHO }}"}]).to_string();
    let workshop = Workshop::new();
    let mut whole: Value = serde_json::from_str(&payload(&json!({"run": steps}))).expect("JSON");
    whole.as_object_mut().expect("an object").remove("steps");
    workshop.file("job.json", whole.to_string());
    workshop.step_runner(&["run", "job.json"]).ends(0).prints("from world\n");
}

#[test]
fn what_a_script_leaves_in_gitlab_env_is_in_the_environment_of_the_scripts_after_it() {
    let workshop = Workshop::new();
    workshop.file(
        ".gitlab-ci.yml",
        "job:\n  script:\n    - echo \"found ${LEFT:-nothing}\"\n    - printf 'LEFT=a value\\nMORE=2' >>\"$GITLAB_ENV\"\n  after_script: [\"echo $LEFT, $MORE\"]\n",
    );
    let printed = workshop.step_runner(&["run", ".gitlab-ci.yml", "job"]).ends(0).stdout();
    assert!(printed.contains("found nothing\n") && printed.ends_with("a value, 2\n"), "{printed}");
    assert_eq!(workshop.left_behind(), [""; 0]);
}

#[test]
fn an_after_script_runs_after_a_failure_and_the_failure_stays() {
    let steps = json!([
        {"name": "script", "script": ["echo before", "false", "echo never"], "when": "on_success", "allow_failure": false, "timeout": 60},
        {"name": "after_script", "script": ["echo after"], "when": "always", "allow_failure": true, "timeout": 60},
    ]);
    let (_workshop, run) = run(&json!({"steps": steps}), &[]);
    let finished = run.ends(1).prints("before\n").prints("after\n");
    assert!(!finished.stdout().contains("never"), "{finished}");
}

#[test]
fn what_does_not_happen_here_is_named_before_the_first_step() {
    let more = json!({
        "cache": [{"key": "k", "paths": ["p"], "policy": "pull-push"}],
        "artifacts": [{"name": "a", "paths": ["x"], "artifact_type": "archive"}],
    });
    let (_workshop, run) = run(&more, &[]);
    let finished = run.ends(0).says("cache").says("artifact");
    let said = finished.stderr();
    let running = said.find("Running step").expect("a step ran");
    assert!(said.find("cache").is_some_and(|at| at < running) && said.find("artifact").is_some_and(|at| at < running), "{said}");
}

#[test]
fn an_image_is_refused_until_it_is_ignored() {
    let more = json!({"image": {"name": "alpine:3"}});
    let (_workshop, refused) = run(&more, &[]);
    let finished = refused.env("DOCKER_HOST", "unix:///nowhere.sock").finish();
    assert!(finished.stderr().contains("no container engine answers at /nowhere.sock"), "{finished}");
    assert!(matches!(finished.status.code(), Some(3 | 4)), "{finished}");
    assert!(finished.stderr().contains("--ignore-image") && finished.stderr().contains("alpine:3"), "{finished}");
    let (_workshop, ignored) = run(&more, &["--ignore-image"]);
    ignored.ends(0).prints("hello world\n");
}

#[test]
fn replaced_values_are_all_asked_for_at_once() {
    let variables = json!([
        {"key": "ONE", "value": "[MASKED ONE]", "masked": true, "public": false, "file": false, "raw": true},
        {"key": "TWO", "value": "[MASKED TWO]", "masked": true, "public": false, "file": false, "raw": true},
    ]);
    let steps = json!([{"name": "script", "script": ["echo $ONE and $TWO"], "when": "on_success"}]);
    let more = json!({"variables": variables, "steps": steps});
    let (_workshop, without) = run(&more, &[]);
    without.ends(3).says("ONE").says("TWO").says("--secrets");

    let (workshop, with) = run(&more, &["--secrets", "secrets.env"]);
    workshop.file("secrets.env", "ONE=first-secret\nTWO=second-secret\n");
    let finished = with.ends(0).prints("[MASKED] and [MASKED]\n");
    assert!(!finished.stdout().contains("first-secret"), "{finished}");

    let (_workshop, from_environment) = run(&more, &[]);
    from_environment.env("ONE", "first-secret").env("TWO", "second-secret").ends(0).prints("[MASKED] and [MASKED]\n");
}

#[test]
fn a_file_variable_is_a_file_that_only_its_owner_reads() {
    let more = json!({
        "variables": [{"key": "CERT", "value": "content of it\n", "file": true, "masked": false, "public": false, "raw": true}],
        "steps": [{"name": "script", "script": ["cat \"$CERT\"; wc -c <\"$CERT\"", "stat -c %a \"$CERT\"", "echo \"$CERT\" >path"], "when": "on_success"}],
    });
    let (workshop, run) = run(&more, &[]);
    // Its content is masked, as GitLab's agent does since v0.43.
    run.ends(0).prints("[MASKED]\n14\n").prints("600\n");
    assert!(!std::path::Path::new(workshop.read("path").trim()).exists(), "the file outlived the run");
}

#[test]
fn a_commit_that_differs_is_said() {
    let (workshop, run) = run(&json!({}), &[]);
    workshop.shell("git init -q . && git add job.json && git -c user.name=a -c user.email=a@b commit -qm a").finish();
    run.ends(0).says("0123456");
}

#[test]
fn run_and_script_together_are_refused() {
    let (_workshop, run) = run(&json!({"run": "[{\"name\":\"a\",\"script\":\"true\"}]"}), &[]);
    run.ends(3).says("the `run` and `script` keywords cannot be used together");
}

#[test]
fn the_example_payload_needs_a_secret_and_the_host_and_then_fails_as_it_did() {
    let workshop = Workshop::new();
    let root = repository::root();
    let file = root.join("examples/gitlab-job.json");
    let file = file.to_str().expect("UTF-8");
    workshop.step_runner(&["run", file]).dir(root).finish();
    let out = format!("OUT={}", workshop.path("out").display());
    let run = workshop.step_runner(&["run", file, "--ignore-image", "--job", &out]).dir(root).env("UPLOAD_TOKEN", "correct horse battery");
    run.ends(1).prints("counted: 2 lines, 6 words, 19 bytes\n").prints("the program: tally").says("exit status 1");
}

#[test]
fn jobs_of_a_gitlab_file_take_defaults_includes_extends_and_references() {
    let workshop = Workshop::new();
    workshop
        .file("ci/shared.yml", ".base:\n  variables: {WHO: base}\n  before_script: [echo before]\n.lines:\n  script: [echo referenced]\n");
    workshop.file(
        ".gitlab-ci.yml",
        "include: {local: /ci/shared.yml}\nvariables: {TOP: top}\njob:\n  extends: .base\n  rules: [{if: $NEVER}]\n  script:\n    - echo $TOP $WHO\n    - !reference [.lines, script]\n  after_script: [echo after]\n",
    );
    let finished = workshop.step_runner(&["run", ".gitlab-ci.yml", "job"]).ends(0);
    // Each line is shown before it runs, as GitLab's runner does.
    let expected = "$ echo before\nbefore\n$ echo $TOP $WHO\ntop base\n$ echo referenced\nreferenced\n$ echo after\nafter\n";
    assert_eq!(finished.stdout(), expected, "{finished}");
    assert!(finished.stderr().contains("rules"), "what is not applied is named\n{finished}");
    workshop.step_runner(&["run", ".gitlab-ci.yml", "jobb"]).ends(3).says("job");
}
