mod places;

use super::*;
use crate::{ArtifactPlace, CachePlace, NotDone, payload, steps_of};
use proptest::prelude::{prop_assert_eq, prop_assume, proptest};
use std::fmt::Write as _;
use step_model::document::{Action, AllowFailure, Body, Step, ValueTemplate};
use step_model::expression::Scope;
use step_model::value::Value;

const FULL: &str = include_str!("../../fixtures/full.json");
const MERGE_REQUEST: &str = include_str!("../../fixtures/merge-request.json");

fn no_values() -> BTreeMap<String, String> {
    BTreeMap::new()
}

fn laptop() -> Here {
    let predefined = BTreeMap::from([("CI_PROJECT_DIR".to_owned(), "/srv/harbour".to_owned())]);
    Here { ignore_image: true, predefined, ..Here::default() }
}

fn steps(translation: &Translation) -> &[std::sync::Arc<Step>] {
    match &translation.request.steps.definition.body {
        Body::Sequence(sequence) => &sequence.steps,
        Body::Exec(_) => panic!("a job is a sequence"),
    }
}

/// A step as a person would write it down; the environment is only counted.
fn shown(step: &Step) -> String {
    let mut text = format!("{}:", step.name);
    match &step.action {
        Action::ScriptLegacy(script) => {
            let flags = [("echo", script.echo), ("debug_trace", script.debug_trace), ("job_status", script.job_status)];
            let set: Vec<_> = flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect();
            let _ = write!(text, " script_legacy ({}) {:?}", set.join(", "), script.lines);
        }
        Action::Script(script) => _ = write!(text, " script {:?}", script.source()),
        Action::Reference(reference) => _ = write!(text, " {reference:?}"),
    }
    let _ =
        write!(text, " when {:?}, allow_failure {:?}, timeout {:?}, env {}", step.when, step.allow_failure, step.timeout, step.env.len());
    for (key, value) in &step.inputs {
        let _ = write!(text, "\n  {}: {}", key.source(), value_shown(value));
    }
    if let Some(Body::Sequence(inner)) = step.inner.as_ref().map(|inner| &inner.definition.body) {
        inner.steps.iter().for_each(|step| _ = write!(text, "\n  inside {}", shown(step)));
    }
    text
}

fn value_shown(value: &ValueTemplate) -> String {
    match value {
        ValueTemplate::Scalar(value) if value.is_sensitive() => "(sensitive)".to_owned(),
        ValueTemplate::Scalar(value) => value.to_json().to_string(),
        ValueTemplate::Text(text) => format!("{:?}", text.source()),
        ValueTemplate::Array(items) => format!("[{}]", items.iter().map(value_shown).collect::<Vec<_>>().join(", ")),
        ValueTemplate::Object(members) if members.len() > 12 => format!("{{{} members}}", members.len()),
        ValueTemplate::Object(members) => {
            format!(
                "{{{}}}",
                members.iter().map(|(key, value)| format!("{}: {}", key.source(), value_shown(value))).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

fn all_shown(translation: &Translation) -> String {
    steps(translation).iter().map(|step| shown(step)).collect::<Vec<_>>().join("\n")
}

fn not_done(translation: &Translation) -> String {
    let line = |part: &NotDone| format!("{}{}: {}\n  {}", part.part, if part.refused { " (refused)" } else { "" }, part.what, part.way_out);
    translation.not_done.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn problems(result: Result<Translation, Vec<Problem>>) -> String {
    let problems = result.map_or_else(|problems| problems, |translation| translation.problems);
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A payload with what a test cares about.
fn translated(json: &str) -> Translation {
    steps_of(json, &Here::default(), &no_values()).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn value<'a>(translation: &'a Translation, key: &str) -> &'a str {
    &translation.request.variables.iter().find(|variable| &*variable.key == key).expect("a variable").value
}

#[test]
fn the_scripts_of_a_payload_become_steps_in_order_with_after_script_last() {
    let json = r#"{"id": 42, "runner_info": {"timeout": 600}, "steps": [
        {"name": "after_script", "script": ["echo bye"], "timeout": 600, "when": "always", "allow_failure": true},
        {"name": "script", "script": ["make", "make test"], "timeout": 600, "when": "on_success"},
        {"name": "release", "script": ["release $TAG"], "timeout": 60},
        {"name": "script", "script": ["cleanup"], "when": "on_failure", "allow_failure": true},
        {"name": "empty", "script": []}],
        "variables": [{"key": "TAG", "value": "v1"}, {"key": "CI_DEBUG_TRACE", "value": "True"}]}"#;
    let translation = translated(json);
    assert_eq!(&*translation.request.id, "42");
    insta::assert_snapshot!(all_shown(&translation), @r#"
    script: script_legacy (echo, debug_trace) ["make", "make test"] when OnSuccess, allow_failure No, timeout None, env 2
    release: script_legacy (echo, debug_trace) ["release v1"] when OnSuccess, allow_failure No, timeout Some(60s), env 2
    script_2: script_legacy (echo, debug_trace, job_status) ["cleanup"] when OnFailure, allow_failure Any, timeout None, env 2
    after_script: script_legacy (echo, debug_trace, job_status) ["echo bye"] when Always, allow_failure Any, timeout Some(300s), env 2
    "#);
}

#[test]
fn wire_05_the_timeout_of_the_job_is_that_of_the_request() {
    let translation = translated(r#"{"id": 1, "runner_info": {"timeout": 42}, "run": "[{\"name\":\"s\",\"script\":\"a b\"}]"}"#);
    assert_eq!(translation.request.timeout, Some(std::time::Duration::from_secs(42)));
    assert!(translation.request.env.is_empty());
}

#[test]
fn limits_of_scripts_come_from_variables() {
    let of = |variables: &str| {
        let steps = r#"[{"name": "script", "script": ["a"]}, {"name": "after_script", "script": ["b"]}]"#;
        let translation = translated(&format!(r#"{{"runner_info": {{"timeout": 3600}}, "steps": {steps}, "variables": [{variables}]}}"#));
        steps_timeouts(&translation)
    };
    assert_eq!(of(""), [None, Some(300)]);
    let set = r#"{"key": "RUNNER_SCRIPT_TIMEOUT", "value": "10m"}, {"key": "RUNNER_AFTER_SCRIPT_TIMEOUT", "value": "90s"}"#;
    assert_eq!(of(set), [Some(600), Some(90)]);
    let wrong = r#"{"key": "RUNNER_SCRIPT_TIMEOUT", "value": "-1m"}, {"key": "RUNNER_AFTER_SCRIPT_TIMEOUT", "value": "soon"}"#;
    assert_eq!(of(wrong), [None, Some(300)]);
    let longer = r#"{"key": "RUNNER_SCRIPT_TIMEOUT", "value": "2h"}, {"key": "RUNNER_AFTER_SCRIPT_TIMEOUT", "value": "0"}"#;
    assert_eq!(of(longer), [None, None]);
}

fn steps_timeouts(translation: &Translation) -> Vec<Option<u64>> {
    steps(translation).iter().map(|step| step.timeout.map(|timeout| timeout.as_secs())).collect()
}

#[test]
fn errors_of_after_script_count_when_a_variable_says_so() {
    let json =
        r#"{"steps": [{"name": "after_script", "script": ["b"]}], "variables": [{"key": "AFTER_SCRIPT_IGNORE_ERRORS", "value": "false"}]}"#;
    assert_eq!(steps(&translated(json))[0].allow_failure, AllowFailure::No);
}

#[test]
fn variables_are_expanded_once_and_the_last_wins() {
    let translation = steps_of(FULL, &laptop(), &BTreeMap::from([("DATABASE_PASSWORD".into(), "p$x".into())])).expect("a translation");
    assert_eq!(value(&translation, "TARGET_DIR"), "/srv/harbour/target/release");
    assert_eq!(value(&translation, "PRICE"), "$5");
    assert_eq!(value(&translation, "PATTERN"), "^v$MODE\\d+$");
    assert_eq!(value(&translation, "DATABASE_PASSWORD"), "p$x");
    assert_eq!(value(&translation, "KUBECTL"), "kubectl --kubeconfig=${KUBECONFIG}");
    let kubeconfig = translation.request.variables.iter().find(|variable| &*variable.key == "KUBECONFIG").expect("a variable");
    assert!(kubeconfig.file && !kubeconfig.masked);
    assert!(translation.request.variables.iter().any(|variable| &*variable.key == "DEPLOY_KEY" && variable.masked));
}

#[test]
fn the_shell_gets_every_variable_and_the_path_of_a_file() {
    let translation = steps_of(FULL, &laptop(), &no_values()).expect("a translation");
    let env: BTreeMap<_, _> = steps(&translation)[0].env.iter().map(|(key, value)| (key.source(), value.source())).collect();
    assert_eq!(env["MODE"], "${{ vars.MODE }}");
    assert_eq!(env["KUBECONFIG"], "${{ vars.KUBECONFIG }}");
    assert_eq!(env["KUBECTL"], "${{ 'kubectl --kubeconfig=' + vars.KUBECONFIG }}");
    assert_eq!(env["CI_PROJECT_DIR"], "${{ vars.CI_PROJECT_DIR }}");
}

#[test]
fn what_a_laptop_does_not_do_is_named_once_each() {
    let translation = steps_of(FULL, &laptop(), &no_values()).expect("a translation");
    assert_eq!(translation.missing, ["DATABASE_PASSWORD"]);
    assert_eq!(translation.commit.as_deref(), Some("2f4b1c0d9e8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c"));
    insta::assert_snapshot!(not_done(&translation), @r"
    image: the image `registry.example/rust:release` is ignored: the job runs on this machine, with its tools
      install what the job needs, or leave `--ignore-image` out where containers can be had
    services: 2 services are not started: `postgres:16`, `redis:7`
      start what the job needs beforehand, and give its address with `--env NAME=VALUE`
    checkout: commit `2f4b1c0d9e8a` of `main` is not checked out: the current work tree stands in for it
      check that commit out beforehand to run the same
    hooks: nothing is checked out, so these hooks are not run: `pre_get_sources_script`
      run what they do beforehand
    cache: 2 caches are neither restored nor saved: `cargo-main-protected`, `integration tests/main`
      what its paths hold in the work tree is used as it is
    dependencies: the artifacts of 1 earlier job are not downloaded: `build`
      put the files that the job needs into the work tree
    artifacts: artifacts are not uploaded: `target/release/harbour`, `report.xml`
      they stay in the work tree
    credentials: nothing logs in to these registries: `registry.example`
      `docker login` beforehand where the job needs it
    token: the token of the job has ended with the job that it was made for: what uses `CI_JOB_TOKEN` is refused by GitLab
      give one of your own as `CI_JOB_TOKEN` with `--secrets FILE`
    policy_options: the policy `compliance` put this job into its pipeline; its rules for variables are not applied
      give the values that the policy would set with `--secrets FILE`
    ");
}

#[test]
fn an_image_is_refused_where_there_are_no_containers() {
    let translation = steps_of(FULL, &Here { ignore_image: false, ..laptop() }, &no_values()).expect("a translation");
    let image = translation.not_done.iter().find(|part| part.part == "image").expect("the image");
    assert!(image.refused);
    assert_eq!(image.what, "the job wants to run in the image `registry.example/rust:release`, and there are no containers here");
}

#[test]
fn where_every_builtin_exists_they_are_put_around_the_job() {
    let builtins = ["checkout", "cache", "artifact", "docker", "service"].map(str::to_owned).to_vec();
    let caches = CachePlace::Directory("/caches/harbour".into());
    let artifacts = ArtifactPlace::Server { url: Some("https://gitlab.example".into()) };
    let here = Here { builtins, live: true, ignore_image: false, caches, artifacts, ..laptop() };
    let translation = steps_of(FULL, &here, &BTreeMap::from([("DATABASE_PASSWORD".into(), "p".into())])).expect("a translation");
    insta::assert_snapshot!(all_shown(&translation), @r#"
    service_1: Builtin { name: "service" } when OnSuccess, allow_failure No, timeout None, env 0
      aliases: ["db", "database"]
      command: ["postgres", "-c", "fsync=off"]
      image: "postgres:16"
      variables: {CACHE_POLICY: "pull", CI: "true", CI_COMMIT_REF_NAME: "main", CI_JOB_ID: "7391455520", KUBECTL: "kubectl --kubeconfig=${KUBECONFIG}", MODE: "release", PATTERN: "^v$MODE\\d+$", POSTGRES_PASSWORD: "x", PRICE: "$5", RUNNER_SCRIPT_TIMEOUT: "40m", TARGET_DIR: "/srv/harbour/target/release"}
      credentials: (sensitive)
    service_2: Builtin { name: "service" } when OnSuccess, allow_failure No, timeout None, env 0
      image: "redis:7"
      variables: {CACHE_POLICY: "pull", CI: "true", CI_COMMIT_REF_NAME: "main", CI_JOB_ID: "7391455520", KUBECTL: "kubectl --kubeconfig=${KUBECONFIG}", MODE: "release", PATTERN: "^v$MODE\\d+$", PRICE: "$5", RUNNER_SCRIPT_TIMEOUT: "40m", TARGET_DIR: "/srv/harbour/target/release"}
      credentials: (sensitive)
    pre_get_sources_script: script_legacy (echo) ["echo before sources"] when OnSuccess, allow_failure No, timeout None, env 16
    checkout: Builtin { name: "checkout" } when OnSuccess, allow_failure No, timeout None, env 16
      repo_url: (sensitive)
      token: (sensitive)
      username: "gitlab-ci-token"
      sha: "2f4b1c0d9e8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c"
      ref: "main"
      refspecs: ["+refs/pipelines/1462033113:refs/pipelines/1462033113", "+refs/heads/main:refs/remotes/origin/main"]
      depth: 20
      object_format: "sha1"
      strategy: "fetch"
      checkout: true
      clean_flags: ["-ffdx"]
      fetch_flags: ["--prune", "--quiet"]
      lfs: true
      attempts: 1
      take_over: true
    restore_cache_1: Builtin { name: "cache" } when OnSuccess, allow_failure Any, timeout None, env 16
      action: "restore"
      key: "cargo-main-protected"
      fallback_keys: ["cargo-main"]
      attempts: 1
      timeout: "10m"
      directory: "/caches/harbour"
    restore_cache_2: Builtin { name: "cache" } when OnSuccess, allow_failure Any, timeout None, env 16
      action: "restore"
      key: "integration tests/main"
      fallback_keys: []
      attempts: 1
      timeout: "10m"
      directory: "/caches/harbour"
    download_artifacts_1: Builtin { name: "artifact" } when OnSuccess, allow_failure Any, timeout None, env 16
      action: "download"
      name: "build"
      filename: "artifacts.zip"
      attempts: 1
      direct: true
      url: "https://gitlab.example"
      id: 7391455519
      token: (sensitive)
    job: Builtin { name: "docker" } when OnSuccess, allow_failure No, timeout None, env 0
      entrypoint: [""]
      image: "registry.example/rust:release"
      platform: "linux/amd64"
      pull_policy: ["if-not-present"]
      user: "1000"
      credentials: (sensitive)
      inside script: script_legacy (echo) ["echo before", "make test SUITE=fast SHARDS=4", "if true; then\n  echo \"many lines\"\nfi"] when OnSuccess, allow_failure No, timeout Some(2400s), env 16
      inside release: script_legacy (echo) ["release-cli create --name \"release\""] when OnSuccess, allow_failure No, timeout Some(2400s), env 16
      inside after_script: script_legacy (echo, job_status) ["echo \"ended: $CI_JOB_STATUS\""] when Always, allow_failure Any, timeout Some(300s), env 16
    archive_cache_1: Builtin { name: "cache" } when OnSuccess, allow_failure No, timeout None, env 16
      action: "archive"
      key: "cargo-main-protected"
      paths: [".cargo/"]
      untracked: false
      format: "zip"
      level: "default"
      timeout: "10m"
      directory: "/caches/harbour"
    upload_artifacts_1: Builtin { name: "artifact" } when OnSuccess, allow_failure No, timeout None, env 16
      action: "upload"
      name: "binaries"
      paths: ["target/release/harbour"]
      exclude: ["**/*.d"]
      untracked: false
      type: "archive"
      format: "zip"
      expire_in: "1 week"
      level: "default"
      url: "https://gitlab.example"
      id: 7391455520
      token: (sensitive)
    upload_artifacts_2: Builtin { name: "artifact" } when Always, allow_failure No, timeout None, env 16
      action: "upload"
      name: "junit.xml"
      paths: ["report.xml"]
      exclude: []
      untracked: false
      type: "junit"
      format: "gzip"
      expire_in: "1 week"
      level: "default"
      url: "https://gitlab.example"
      id: 7391455520
      token: (sensitive)
    "#);
    insta::assert_snapshot!(not_done(&translation), @r"
    policy_options: the policy `compliance` put this job into its pipeline; its rules for variables are not applied
      give the values that the policy would set with `--secrets FILE`
    ");
}

#[test]
fn a_run_is_taken_as_it_is_with_the_environment_of_a_merge_request() {
    let translation =
        steps_of(MERGE_REQUEST, &Here::default(), &BTreeMap::from([("SENTRY_KEY".into(), "k$1".into())])).expect("a translation");
    insta::assert_snapshot!(all_shown(&translation), @r#"
    compile: Local(LocalReference { path: [".", "ci", "compile"], file: None }) when OnSuccess, allow_failure No, timeout None, env 0
      title: "${{ vars.CI_MERGE_REQUEST_TITLE }}"
    say: script "printf '%s' \"$TITLE\"" when OnSuccess, allow_failure No, timeout None, env 1
    "#);
    assert_eq!(value(&translation, "SENTRY_DSN"), "https://k$1@sentry.example/1");
    assert_eq!(value(&translation, "EXPRESSION"), "${{ vars.EMPTY }} }} ${{");
    assert_eq!(value(&translation, "CI_MERGE_REQUEST_TITLE"), "Draft: \"Tide\" table & `friends` for $5 ⚓");
    assert_eq!(translation.missing, [""; 0]);
    insta::assert_snapshot!(not_done(&translation), @r"
    checkout: commit `b7b7b7b7b7b7` of `refs/merge-requests/412/head` is not checked out: the current work tree stands in for it
      check that commit out beforehand to run the same
    token: the token of the job has ended with the job that it was made for: what uses `CI_JOB_TOKEN` is refused by GitLab
      give one of your own as `CI_JOB_TOKEN` with `--secrets FILE`
    ");
}

#[test]
fn names_that_no_environment_can_hold_stay_variables() {
    let json = r#"{"steps": [{"name": "script", "script": ["a"]}], "variables": [{"key": "A=B", "value": "x"}, {"key": "N", "value": "a\u0000b"}, {"key": "a-b", "value": "x"}, {"key": "it's", "value": ""}]}"#;
    let translation = translated(json);
    assert_eq!(translation.request.variables.len(), 4);
    let env: Vec<_> = steps(&translation)[0].env.iter().map(|(key, value)| (key.source(), value.source())).collect();
    assert_eq!(env, [("a-b", "${{ vars['a-b'] }}"), ("it's", "${{ vars['it\\'s'] }}")]);
    insta::assert_snapshot!(problems(Ok(translation)), @r"
    the variable `A=B` is not exported to the script: no environment can hold it
    the variable `N` is not exported to the script: no environment can hold it
    ");
}

#[test]
fn what_contradicts_itself_is_refused_in_the_words_of_the_original() {
    let run = r#""run": "[{\"name\": \"a\", \"script\": \"b\"}]""#;
    let of = |rest: &str| problems(steps_of(&format!("{{{run}, {rest}}}"), &Here::default(), &no_values()));
    insta::assert_snapshot!(of(r#""steps": [{"name": "script", "script": ["x"]}]"#), @"line 1, column 9: the `run` and `script` keywords cannot be used together");
    insta::assert_snapshot!(of(r#""variables": [{"key": "STEPS", "value": "x"}]"#), @"line 1, column 9: the `run` keyword requires the exclusive use of the variable STEPS");
    insta::assert_snapshot!(of(r#""variables": [{"key": "../x", "value": "x", "file": true}]"#), @"the file variable `../x` cannot become a file of that name");
    insta::assert_snapshot!(of(r#""cache": [{"key": "a", "paths": ["b"], "policy": "often"}]"#), @"`cache[0].policy` is none of `pull-push`, `pull`, `push`");
    insta::assert_snapshot!(of(r#""variables": [{"key": "F", "value": "x", "file": true}, {"key": "A", "value": "-f $F"}]"#), @"`vars.A` keeps the text `${F}`: the path of a file variable is known only when the job runs");
}

#[test]
fn problems_inside_run_are_shown_at_run() {
    let result = steps_of("{\"id\": 1,\n \"run\": \"[{\\\"name\\\": \\\"a\\\"}, {\\\"name\\\": 1}]\"}", &Here::default(), &no_values());
    insta::assert_snapshot!(problems(result), @r"
    line 2, column 9: in `run`, column 3: the step runs nothing: missing properties: 'step'
    line 2, column 9: in `run`, column 18: the step runs nothing: missing properties: 'step'
    line 2, column 9: in `run`, column 26: the step name `1` is not a name: additionalProperties '1' not allowed
    ");
    let result = steps_of(r#"{"run": "[{"}"#, &Here::default(), &no_values());
    insta::assert_snapshot!(problems(result), @"line 1, column 9: in `run`, column 2: not YAML: unclosed bracket '{'");
}

#[test]
fn a_job_without_anything_to_run_says_so() {
    insta::assert_snapshot!(problems(steps_of("{}", &Here::default(), &no_values())), @"the job has neither `run` nor a script: nothing will be done");
}

#[test]
fn steps_and_the_flag_of_native_steps_are_not_handed_on() {
    let json = r#"{"steps": [{"name": "script", "script": ["a"]}], "variables": [{"key": "STEPS", "value": "x"}, {"key": "FF_USE_NATIVE_STEPS", "value": "true"}]}"#;
    let translation = translated(json);
    assert!(translation.request.variables.is_empty() && steps(&translation)[0].env.is_empty());
}

#[test]
fn a_token_that_was_given_is_not_called_expired() {
    let json = r#"{"token": "old", "steps": [{"name": "script", "script": ["a"]}], "variables": [{"key": "CI_JOB_TOKEN", "value": "[MASKED CI_JOB_TOKEN]", "masked": true}]}"#;
    let parts = |supplied: &BTreeMap<String, String>| {
        let translation = steps_of(json, &Here::default(), supplied).expect("a translation");
        translation.not_done.iter().map(|part| part.part).collect::<Vec<_>>()
    };
    assert_eq!(parts(&no_values()), ["token"]);
    assert_eq!(parts(&BTreeMap::from([("CI_JOB_TOKEN".into(), "new".into())])), [""; 0]);
}

/// What the engine knows when it evaluates the environment of a script.
struct Variables(BTreeMap<String, Value>);

impl Scope for Variables {
    fn context(&self, name: &str) -> Option<Value> {
        (name == "vars").then(|| Value::object(self.0.iter().map(|(key, value)| (key.as_str(), value.clone()))))
    }
}

/// The environment as the shell gets it; files lie in `/files`.
fn environment(translation: &Translation) -> BTreeMap<String, Value> {
    let of = |variable: &Variable| {
        let value = if variable.file { format!("/files/{}", variable.key) } else { variable.value.to_string() };
        (variable.key.to_string(), Value::from(value).marked(variable.masked))
    };
    let scope = Variables(translation.request.variables.iter().map(of).collect());
    let evaluated = steps(translation)[0].env.iter().map(|(key, value)| {
        let value = value.evaluate_text(&scope).unwrap_or_else(|error| panic!("{}: {error}", value.source()));
        (key.as_literal().expect("a name").to_owned(), value)
    });
    evaluated.collect()
}

#[test]
fn the_environment_of_a_merge_request_reaches_the_shell_unchanged() {
    let mut payload: serde_json::Value = serde_json::from_str(MERGE_REQUEST).expect("JSON");
    payload["run"] = serde_json::Value::Null;
    payload["steps"] = serde_json::json!([{"name": "script", "script": ["env"]}]);
    let translation =
        steps_of(&payload.to_string(), &Here::default(), &BTreeMap::from([("SENTRY_KEY".into(), "k".into())])).expect("a translation");
    let environment = environment(&translation);
    assert_eq!(environment.len(), translation.request.variables.len());
    for variable in &translation.request.variables {
        assert_eq!(environment[&*variable.key].as_str(), Some(&*variable.value), "{}", variable.key);
    }
}

#[test]
fn a_masked_variable_stays_marked_in_the_environment() {
    let translation = steps_of(FULL, &laptop(), &no_values()).expect("a translation");
    let environment = environment(&translation);
    assert!(environment["DEPLOY_KEY"].is_sensitive() && !environment["MODE"].is_sensitive());
    assert_eq!(environment["KUBECTL"].as_str(), Some("kubectl --kubeconfig=/files/KUBECONFIG"));
}

#[test]
fn what_a_person_gives_wins_and_is_not_expanded() {
    let json = r#"{"steps": [{"name": "script", "script": ["a"]}], "variables": [{"key": "A", "value": "[MASKED A]", "masked": true}, {"key": "B", "value": "$A/$N"}]}"#;
    let given = BTreeMap::from([("A".to_owned(), "$x".to_owned()), ("N".to_owned(), "new".to_owned())]);
    let translation = steps_of(json, &Here { given, ..Here::default() }, &no_values()).expect("a translation");
    assert_eq!((value(&translation, "A"), value(&translation, "B"), value(&translation, "N")), ("$x", "$x/new", "new"));
    assert!(
        translation.missing.is_empty() && translation.request.variables.iter().any(|variable| &*variable.key == "A" && variable.masked)
    );
    assert_eq!(environment(&translation)["N"].as_str(), Some("new"));
}

proptest! {
    /// Whatever stands around the path of a file, the shell gets it as it was written.
    #[test]
    fn a_value_around_a_file_variable_reaches_the_shell(before in "[^$]*", after in "([^$A-Za-z0-9_][^$]*)?") {
        let variables = serde_json::json!([{"key": "F", "value": "x", "file": true}, {"key": "A", "value": format!("{before}$F{after}")}]);
        prop_assume!(!before.contains(['\0']) && !after.contains('\0'));
        let json = serde_json::json!({"steps": [{"name": "script", "script": ["a"]}], "variables": variables}).to_string();
        let environment = environment(&translated(&json));
        prop_assert_eq!(environment["A"].as_str(), Some(&*format!("{before}/files/F{after}")));
    }

    #[test]
    fn any_text_is_translated_without_a_panic(text in "\\PC*", run in "\\PC{0,40}") {
        let _ = steps_of(&text, &Here::default(), &no_values());
        let _ = steps_of(&serde_json::json!({"run": run}).to_string(), &Here::default(), &no_values());
    }
}

#[test]
fn a_read_payload_and_its_translation_never_panic_on_any_fixture() {
    for text in [FULL, MERGE_REQUEST] {
        let job = payload::read(text).expect("a job");
        assert!(translate(job, &Here { live: true, ..Here::default() }, &no_values(), &|_| None).is_ok());
    }
}
