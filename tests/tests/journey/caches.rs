//! Caches and artifacts of jobs on a laptop.

use ci_tests::program::Invocation;
use ci_tests::workshop::{Ends, Workshop};
use serde_json::{Value, json};

/// A job that makes files where there are none, and says which it found.
fn payload(more: &Value) -> String {
    let mut payload = json!({
        "id": 8, "token": "t", "job_info": {"name": "test", "stage": "test"},
        "runner_info": {"timeout": 60},
        "variables": [{"key": "DEPS", "value": "deps"}],
        "steps": [{"name": "script", "script": ["cat deps/tool 2>/dev/null || echo none", "mkdir -p deps out", "echo made >deps/tool", "echo A=1 >out/report.env"], "timeout": 60, "when": "on_success"}],
    });
    payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    payload.to_string()
}

fn cache() -> Value {
    json!({"cache": [{"key": "$DEPS-1", "paths": ["deps/"], "fallback_keys": ["other"], "when": "on_success"}]})
}

fn run(workshop: &Workshop, arguments: &[&str]) -> Invocation {
    let arguments: Vec<&str> = ["run", "job.json"].into_iter().chain(arguments.iter().copied()).collect();
    workshop.step_runner(&arguments)
}

#[test]
fn a_cache_of_one_run_is_found_by_the_next() {
    let workshop = Workshop::new();
    workshop.file("job.json", payload(&cache()));
    let printed = run(&workshop, &["--cache"]).ends(0).stdout();
    assert!(
        printed.contains("No cache found for deps-1\n") && printed.contains("none\n") && printed.contains("Created cache\n"),
        "{printed}"
    );
    assert!(workshop.path(".step-runner/cache/deps-1/cache.zip").is_file());
    std::fs::remove_dir_all(workshop.path("deps")).expect("the job made it");
    let printed = run(&workshop, &["--cache"]).ends(0).stdout();
    assert!(printed.contains("Successfully extracted cache") && printed.contains("made\n"), "{printed}");
}

#[test]
fn without_the_flags_caches_and_artifacts_are_named_and_nothing_is_written() {
    let workshop = Workshop::new();
    let artifacts = json!([{"name": "out", "paths": ["out"], "artifact_type": "archive", "artifact_format": "zip"}]);
    let mut more = cache();
    more.as_object_mut().expect("an object").insert("artifacts".into(), artifacts);
    workshop.file("job.json", payload(&more));
    let said = run(&workshop, &[]).ends(0).stderr();
    assert!(
        said.contains("1 cache is neither restored nor saved: `deps-1`") && said.contains("artifacts are not uploaded: `out`"),
        "{said}"
    );
    assert!(!workshop.path(".step-runner").exists());
}

#[test]
fn a_damaged_cache_is_a_warning_and_the_job_goes_on() {
    let workshop = Workshop::new();
    workshop.file("job.json", payload(&cache()));
    workshop.file("kept/deps-1/cache.zip", "PK\u{3}\u{4}and nothing more");
    let printed = run(&workshop, &["--cache", "kept"]).ends(0).stdout();
    assert!(printed.contains("WARNING: could not restore the cache deps-1: it is damaged"), "{printed}");
    assert!(printed.contains("none\n") && printed.contains("Created cache\n"), "{printed}");
}

/// What a step in place of ours is given, without what it does not use.
const THEIRS: &str = "spec:\n  inputs:\n    action: {type: string}\n    key: {type: string}\n    fallback_keys: {type: array, default: []}\n    attempts: {type: number, default: 1}\n    \
                      timeout: {type: string}\n    paths: {type: array, default: []}\n    untracked: {type: boolean, default: false}\n    format: {type: string, default: zip}\n    \
                      level: {type: string, default: default}\n---\nexec:\n  command: [echo, \"theirs:\", \"${{ inputs.action }}\", \"${{ inputs.key }}\"]\n";

#[test]
fn a_step_of_somebody_elses_keeps_the_cache() {
    let workshop = Workshop::new();
    workshop.file("job.json", payload(&cache()));
    workshop.file("theirs/func.yml", THEIRS);
    let ended = run(&workshop, &["--step", "cache=./theirs"]).ends(0);
    let printed = ended.stdout();
    assert!(
        printed.starts_with("theirs: restore deps-1\n") && printed.ends_with("theirs: archive deps-1\n"),
        "{printed}{}",
        ended.stderr()
    );
    let said = run(&workshop, &["--step", "docker=./theirs", "--step", "cache"]).ends(2).stderr();
    assert!(said.contains("`docker` is none of `checkout`, `cache`, `artifact`"), "{said}");
}

#[test]
fn artifacts_of_one_job_reach_the_next() {
    let workshop = Workshop::new();
    let artifacts = json!([
        {"name": "out", "paths": ["out"], "artifact_type": "archive", "artifact_format": "zip"},
        {"name": "env", "paths": ["out/report.env"], "artifact_type": "dotenv", "artifact_format": "gzip", "when": "always"},
    ]);
    workshop.file("job.json", payload(&json!({"job_info": {"name": "build", "stage": "build"}, "artifacts": artifacts})));
    run(&workshop, &["--artifacts"]).ends(0);
    assert!(workshop.path(".step-runner/artifacts/build/out.zip").is_file());
    assert!(workshop.path(".step-runner/artifacts/build/dotenv/env.gz").is_file());
    std::fs::remove_dir_all(workshop.path("out")).expect("the job made it");
    let dependencies = json!([{"id": 7, "token": "x", "name": "build", "artifacts_file": {"filename": "out.zip", "size": 1}}]);
    let steps = json!([{"name": "script", "script": ["cat out/report.env"], "timeout": 60, "when": "on_success"}]);
    workshop.file("job.json", payload(&json!({"dependencies": dependencies, "steps": steps})));
    let printed = run(&workshop, &["--artifacts"]).ends(0).stdout();
    assert!(printed.contains("A=1\n"), "{printed}");
    std::fs::remove_dir_all(workshop.path("out")).expect("it was unpacked");
    workshop.file("given/build/out/report.env", "A=2\n");
    let printed = run(&workshop, &["--artifacts", "given"]).ends(0).stdout();
    assert!(printed.contains("A=2\n"), "{printed}");
}

#[test]
fn artifacts_that_are_not_there_are_a_warning() {
    let workshop = Workshop::new();
    let dependencies = json!([{"id": 7, "token": "x", "name": "build", "artifacts_file": {"filename": "out.zip", "size": 1}}]);
    workshop.file("job.json", payload(&json!({"dependencies": dependencies})));
    let printed = run(&workshop, &["--artifacts"]).ends(0).stdout();
    assert!(
        printed.contains("there are no artifacts of `build` in") && printed.contains("put its archive there as `build.zip`"),
        "{printed}"
    );
}

#[test]
fn only_what_a_job_asks_for_on_failure_is_done_on_failure() {
    let workshop = Workshop::new();
    let artifacts = json!([
        {"name": "good", "paths": ["out"], "artifact_type": "archive", "artifact_format": "zip", "when": "on_success"},
        {"name": "bad", "paths": ["out"], "artifact_type": "archive", "artifact_format": "zip", "when": "on_failure"},
        {"name": "all", "paths": ["out"], "artifact_type": "junit", "artifact_format": "gzip", "when": "always"},
    ]);
    let steps = json!([
        {"name": "script", "script": ["mkdir out", "echo x >out/x", "exit 3"], "timeout": 60, "when": "on_success"},
        {"name": "after_script", "script": ["echo after >out/after"], "timeout": 60, "when": "always", "allow_failure": true},
    ]);
    workshop.file("job.json", payload(&json!({"artifacts": artifacts, "steps": steps, "cache": cache()["cache"]})));
    run(&workshop, &["--artifacts", "--cache"]).ends(1);
    let kept = |name: &str| workshop.path(".step-runner/artifacts/test").join(name).is_file();
    assert_eq!((kept("good.zip"), kept("bad.zip"), kept("junit/all.gz")), (false, true, true));
    assert!(!workshop.path(".step-runner/cache/deps-1").exists());
}
