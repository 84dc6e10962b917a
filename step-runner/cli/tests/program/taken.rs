//! What `run` takes, and what it makes of the command line around it.

use crate::bench::{Bench, Finished};
use std::io::Write as _;
use std::process::Stdio;

fn with_input(bench: &Bench, arguments: &[&str], input: &str) -> Finished {
    let mut child =
        bench.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Finished { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[test]
fn a_directory_needs_no_dot_and_a_file_may_have_any_name() {
    let bench = Bench::with_greet();
    bench.run(&["run", "steps/greet"]).exits(0).prints("ann is 1");
    std::fs::copy(bench.path("steps/greet/step.yml"), bench.path("hello.yaml")).expect("a copy");
    bench.run(&["run", "hello.yaml", "-i", "name=kim"]).exits(0).prints("kim is 1");
    let absolute = bench.path("steps/greet");
    bench.run(&["run", absolute.to_str().expect("UTF-8")]).exits(0).prints("ann is 1");
}

#[test]
fn an_invocation_may_hold_inputs_and_take_more() {
    let bench = Bench::with_greet();
    let invocation = "step: ./steps/greet\ninputs: {name: kim, age: 7}\n";
    bench.run(&["run", invocation]).exits(0).prints("kim is 7");
    bench.run(&["run", invocation, "--input", "age=8"]).exits(0).prints("kim is 8");
    bench.run(&["run", "func: ./steps/nope"]).exits(3).says("nope");
    bench.run(&["run", "step: [1]"]).exits(3);
}

#[test]
fn standard_input_is_known_by_its_content() {
    let bench = Bench::with_greet();
    let definition =
        "spec: {inputs: {who: {type: string}}}\n---\nrun:\n  - {name: a, step: ./steps/greet, inputs: {name: \"${{ inputs.who }}\"}}\n";
    with_input(&bench, &["run", "-", "--input", "who=kim"], definition).exits(0).prints("kim is 1");
    with_input(&bench, &["run", "-"], definition).exits(3).says("input `who` is required");
    let request = serde_json::json!({"id": "7", "steps": "{}\n---\nrun:\n  - {name: a, step: ./steps/greet}\n"}).to_string();
    with_input(&bench, &["run", "-"], &request).exits(0).prints("ann is 1");
    with_input(&bench, &["run", "-"], "").exits(3).says("`standard input` is empty");
    with_input(&bench, &["run", "-"], "{\"a\": ").exits(3).says("`standard input` is not valid JSON");
    with_input(&bench, &["run", "-"], "a: b\nc: d\n").exits(2).says("which job of `standard input`?");
}

#[test]
fn environment_comes_from_flags_and_files_and_the_last_one_wins() {
    let bench = Bench::new();
    bench.job("exec: {command: [sh, -c, 'echo $A $B $C']}\n");
    bench.file("one.env", "A=file\nB='from the file'\n");
    let finished = bench.run(&["run", "./job", "--env-file", "one.env", "--env", "A=flag,C=c"]).exits(0);
    assert_eq!(finished.stdout, "flag from the file c\n");
    bench.file("bad.env", "fine=1\nnot fine\n");
    bench.run(&["run", "./job", "--env-file", "bad.env"]).exits(3).says("`bad.env`, line 2: there is no `=`");
}

#[test]
fn variables_of_a_surrounding_pipeline_stay_outside() {
    let bench = Bench::new();
    bench.job("exec: {command: [env]}\n");
    let mut command = bench.command(&["run", "./job"]);
    command
        .env("CI_X", "1")
        .env("GITLAB_X", "1")
        .env("FF_X", "1")
        .env("DOCKER_ENV_X", "1")
        .env("DOCKER_X", "kept")
        .env("CI_STEPS_LOG_LEVEL", "xxx");
    let printed = Finished::of(&mut command).exits(0).stdout;
    assert!(["CI_X", "GITLAB_X", "FF_X", "DOCKER_ENV_X"].iter().all(|name| !printed.contains(&format!("{name}="))), "{printed}");
    assert!(printed.contains("DOCKER_X=kept\n") && printed.contains("CI_STEPS_LOG_LEVEL=info\n"), "{printed}");
    bench.run(&["run", "./job", "--job", "CI_STEPS_LOG_LEVEL=Debug"]).exits(0).prints("CI_STEPS_LOG_LEVEL=debug\n");
    bench.run(&["run", "./job", "--job", "CI_STEPS_LOG_LEVEL=xxx"]).exits(3).says("init global environment: log level: xxx not supported");
}

#[test]
fn job_variables_are_no_environment() {
    let bench = Bench::new();
    bench.job("exec: {command: [sh, -c, 'echo \"<$WHO>\" ${{ job.WHO }}']}\n");
    let finished = bench.run(&["run", "./job", "--job", "WHO=kim"]).exits(0);
    assert_eq!(finished.stdout, "<> kim\n");
}

#[test]
fn secrets_are_masked_job_variables() {
    let bench = Bench::new();
    bench.job("exec: {command: [echo, 'the ${{ job.KEY }}']}\n");
    bench.file("secrets.json", "{\"KEY\": \"open sesame\"}");
    let finished = bench.run(&["run", "./job", "--secrets", "secrets.json", "--result", "r.json"]).exits(0);
    assert_eq!(finished.stdout, "the [MASKED]\n");
    assert!(!bench.json("r.json").to_string().contains("sesame"));
    bench.file("short.env", "KEY=abc\n");
    bench.run(&["run", "./job", "--secrets", "short.env"]).exits(0).says("the value of `KEY` is too short to be masked");
}

#[test]
fn a_run_request_asks_for_what_was_replaced() {
    let bench = Bench::new();
    let request = serde_json::json!({
        "id": "7", "steps": "{}\n---\nrun:\n  - {name: a, script: \"echo ${{ vars.KEY }}\"}\n",
        "job": {"variables": [{"key": "KEY", "value": "[MASKED KEY]", "masked": true}]},
    });
    bench.file("job.json", request.to_string());
    bench.run(&["run", "job.json"]).exits(3).says("the value of `KEY` is not in the job").says("--secrets FILE");
    let finished = Finished::of(bench.command(&["run", "job.json"]).env("KEY", "open sesame")).exits(0);
    assert_eq!(finished.stdout, "[MASKED]\n");
    bench.run(&["run", "job.json", "--dry-run"]).exits(0).prints("missing values:\n  KEY\n");
}

#[test]
fn a_work_directory_of_another_machine_is_replaced_and_said() {
    let bench = Bench::new();
    let request =
        serde_json::json!({"id": "7", "workDir": "/builds/group/project", "steps": "{}\n---\nrun:\n  - {name: a, script: pwd}\n"});
    bench.file("job.json", request.to_string());
    let here = bench.path(".").canonicalize().expect("a directory");
    let finished =
        bench.run(&["run", "job.json"]).exits(0).says("warning: the job wants to run in /builds/group/project, which is not here");
    assert_eq!(finished.stdout.trim_end(), here.to_str().expect("UTF-8"));
}

#[test]
fn a_job_takes_no_inputs() {
    let bench = Bench::new();
    bench.file("job.json", serde_json::json!({"id": "7", "steps": "{}\n---\nrun: [{name: a, script: x}]\n"}).to_string());
    bench.run(&["run", "job.json", "--input", "a=b"]).exits(2).says("`job.json` is a job, and a job takes no inputs");
}

#[test]
fn a_definition_may_be_protobuf_text() {
    let bench = Bench::new();
    bench.file("d.txtpb", "type: exec\nexec { command: \"echo\" command: \"from text\" }\n");
    bench.run(&["run", "--text-proto-step-file", "d.txtpb"]).exits(0).prints("from text\n");
    bench.file("elsewhere/greet/step.yml", crate::bench::GREET);
    let steps = "type: steps\nsteps { name: \"a\" step { protocol: local path: \".\" path: \"greet\" filename: \"step.yml\" } }\n";
    bench.file("elsewhere/d.txtpb", steps);
    bench.run(&["run", "--text-proto-step-file", "elsewhere/d.txtpb"]).exits(0).prints("ann is 1");
    bench.file("bad.txtpb", "type: {");
    bench.run(&["run", "--text-proto-step-file", "bad.txtpb"]).exits(3).says("`bad.txtpb` is no definition");
}

#[test]
fn what_is_elsewhere_is_refused_by_name() {
    let bench = Bench::new();
    bench.run(&["run", "--git-url", "host.example/group/project", "--git-rev", "v1"]).exits(3).says("host.example/group/project");
    let oci = ["run", "--oci-registry", "registry.example", "--oci-repository", "a/b", "--oci-tag", "1"];
    bench.run(&oci).exits(3).says("registry.example");
    bench.run(&["run", "registry.example/a/b:1"]).exits(3).says("registry.example");
}

#[test]
fn the_jobs_of_a_pipeline_are_named_when_none_is() {
    let bench = Bench::new();
    bench.file(".gitlab-ci.yml", "build: {script: make}\n.hidden: {script: x}\ntest: {script: make test}\n");
    bench.run(&["run", ".gitlab-ci.yml"]).exits(2).says("which job of `.gitlab-ci.yml`?").says("hint: its jobs are `build`, `test`");
    bench.run(&["run", ".gitlab-ci.yml", "tset"]).exits(3).says("has no job `tset`").says("did you mean `test`?");
}

#[test]
fn a_job_that_cannot_run_here_says_all_at_once() {
    let bench = Bench::new();
    let payload = serde_json::json!({
        "id": 7, "token": "t", "job_info": {"name": "build"}, "image": {"name": "alpine:3"},
        "variables": [{"key": "KEY", "value": "[MASKED KEY]", "masked": true}],
        "steps": [{"name": "script", "script": ["echo $KEY"], "when": "on_success"}],
    });
    bench.file("job.json", payload.to_string());
    let mut command = bench.command(&["run", "job.json"]);
    let refused = Finished::of(command.env("DOCKER_HOST", "unix:///nowhere.sock"));
    refused.exits(3).says("alpine:3").says("--ignore-image").says("the value of `KEY`").says("--secrets FILE");
}
