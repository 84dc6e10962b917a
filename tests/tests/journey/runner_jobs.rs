//! Whole jobs of a server through `runner-core run`: sources, caches, artifacts of earlier jobs, scripts of the operator, containers.

use super::runner_run::{Scene, TOKEN};
use ci_tests::docker::Engine;
use ci_tests::kit::Component;
use ci_tests::program::path;
use runner_mock_gitlab::{Burst, JobKey};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

fn git(dir: &Path, words: &[&str]) -> String {
    let author = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
    let output = Command::new("git").args(author).args(words).current_dir(dir).stdin(Stdio::null()).output().expect("git is installed");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with one commit on the server, which takes the token of the first job and nothing else. Gives address and commit.
fn publish(scene: &Scene, server: &Component) -> (String, String) {
    let work = scene.workshop.path("work");
    std::fs::create_dir_all(&work).expect("a directory");
    git(&work, &["init", "--quiet", "."]);
    std::fs::write(work.join("hello.txt"), "hello from the repository\n").expect("a file");
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    let root = Path::new(server.get("GIT_ROOT"));
    git(&work, &["clone", "--quiet", "--bare", ".", &root.join("app.git").to_string_lossy()]);
    std::fs::write(root.with_file_name("htpasswd"), format!("gitlab-ci-token:{{PLAIN}}{}\n", token(1))).expect("a file");
    let url = server.get("GIT_PRIVATE_URL").replace("kit:kit@", "gitlab-ci-token:in-the-address@");
    (format!("{url}/app.git"), git(&work, &["rev-parse", "HEAD"]))
}

/// As the server makes them.
fn token(job: u64) -> String {
    format!("glcbt-mock_1_{job}_{:016x}", job.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn job(script: &[&str], more: Value) -> Burst {
    let payload: BTreeMap<String, _> = more
        .as_object()
        .expect("an object")
        .iter()
        .map(|(key, value)| (key.clone(), serde_json::from_value(value.clone()).expect("a value of TOML")))
        .collect();
    Burst { script: script.iter().map(|line| (*line).to_owned()).collect(), payload, ..Burst::default() }
}

fn git_info(url: &str, sha: &str) -> Value {
    json!({"repo_url": url, "repo_object_format": "sha1", "ref": "main", "sha": sha, "before_sha": "0".repeat(40), "ref_type": "branch",
           "refspecs": ["+refs/heads/main:refs/remotes/origin/main"], "depth": 20})
}

fn end_of(scene: &Scene, id: u64) -> (&'static str, String) {
    let ended = scene.server.look(|world| world.jobs()[&JobKey { cell: 1, id }].ended.clone()).expect("an end");
    (ended.status, scene.trace(id))
}

#[test]
fn a_job_has_its_sources_cache_and_artifacts_and_the_next_one_has_what_it_left() {
    let Some(server) = Component::start("git-http") else { return };
    let scene = Scene::new(Vec::new());
    let (url, sha) = publish(&scene, &server);
    scene.configure_with(
        4,
        "cache_dir = \"CACHES\"\npre_get_sources_script = \"echo before sources\"\npost_get_sources_script = \"echo after sources\"\n\
         pre_build_script = \"FROM_OPERATOR=1\"\npost_build_script = \"echo after script $?\"\nenvironment = [\"OPERATOR=yes\"]\n"
            .replace("CACHES", &scene.workshop.path("caches").to_string_lossy())
            .as_str(),
    );
    let cache = json!([{"key": "deps", "paths": ["deps"], "policy": "pull-push", "when": "on_success", "untracked": false}]);
    let artifacts = json!([
        {"name": "out", "paths": ["out"], "artifact_type": "archive", "artifact_format": "zip", "when": "on_success"},
        {"name": "env", "paths": ["out/report.env"], "artifact_type": "dotenv", "artifact_format": "gzip", "when": "always", "expire_in": "1 week"},
        {"name": "tests", "paths": ["junit.xml"], "artifact_type": "junit", "artifact_format": "gzip", "when": "always"},
    ]);
    scene.server.plan(&job(
        &[],
        json!({"git_info": git_info(&url, &sha), "cache": cache, "artifacts": artifacts,
               "steps": [{"name": "script", "script": ["cat hello.txt", "mkdir -p out deps; echo A=1 >out/report.env; echo kept >deps/file; echo '<x/>' >junit.xml",
                                                        "echo operator $OPERATOR $FROM_OPERATOR"], "timeout": 60, "when": "on_success"},
                         {"name": "after_script", "script": ["echo after it was $CI_JOB_STATUS"], "timeout": 60, "when": "always", "allow_failure": true}]}),
    ));
    let runner = scene.run();
    scene.until_all_ended();
    let (status, trace) = end_of(&scene, 1);
    assert_eq!(status, "success", "{trace}");
    let lines =
        ["before sources", "after sources", "hello from the repository", "operator yes 1", "after script 0", "after it was success"];
    let found: Vec<Option<usize>> = lines.iter().map(|line| trace.find(&format!("01O {line}\n"))).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?}\n{trace}");
    assert!(!trace.contains(&token(1)), "{trace}");
    let uploads: Vec<String> =
        scene.server.look(|world| world.jobs()[&JobKey { cell: 1, id: 1 }].artifacts.iter().map(|(query, _)| query.clone()).collect());
    let kinds = ["artifact_type=archive", "artifact_type=dotenv", "artifact_type=junit"];
    assert!(uploads.len() == 3 && kinds.iter().all(|kind| uploads.iter().any(|query| query.contains(kind))), "{uploads:?}");
    assert!(scene.workshop.path("caches/group/project/deps").exists(), "the cache lies with its project");

    let dependencies = json!([{"id": 1, "token": token(1), "name": "build", "artifacts_file": {"filename": "out.zip", "size": 1}}]);
    let script = ["cat out/report.env", "cat deps/file"];
    let no_sources = json!([{"key": "GIT_STRATEGY", "value": "empty", "public": true}]);
    scene.server.plan(&job(&script, json!({"cache": cache, "dependencies": dependencies, "variables": no_sources})));
    scene.until_all_ended();
    let (status, trace) = end_of(&scene, 2);
    assert!(status == "success" && trace.contains("01O A=1\n") && trace.contains("01O kept\n"), "{trace}");
    assert!(!trace.contains(&token(1)), "{trace}");
    scene.end(runner, |report| report);
}

#[test]
fn a_step_of_the_configuration_takes_the_place_of_ours() {
    let scene = Scene::new(Vec::new());
    let spec: String = ["action", "key", "timeout"].iter().map(|name| format!("    {name}: {{type: string}}\n")).collect();
    let unused = "    fallback_keys: {type: array, default: []}\n    attempts: {type: number, default: 1}\n    paths: {type: array, default: []}\n    untracked: {type: boolean, default: false}\n    \
                  format: {type: string, default: zip}\n    level: {type: string, default: default}\n    directory: {type: string, default: \"\"}\n";
    let definition = format!(
        "spec:\n  inputs:\n{spec}{unused}---\nexec:\n  command: [echo, \"theirs:\", \"${{{{ inputs.action }}}}\", \"${{{{ inputs.key }}}}\"]\n"
    );
    scene.workshop.file("theirs/func.yml", definition);
    scene.configure_with(4, &format!("[runners.steps]\ncache = \"{}\"\n", scene.workshop.path("theirs").display()));
    let cache = json!([{"key": "deps", "paths": ["deps"], "policy": "pull-push", "when": "on_success"}]);
    let no_sources = json!([{"key": "GIT_STRATEGY", "value": "none", "public": true}]);
    scene.server.plan(&job(&["echo mine"], json!({"cache": cache, "variables": no_sources})));
    let runner = scene.run();
    scene.until_all_ended();
    let (status, trace) = end_of(&scene, 1);
    assert_eq!(status, "success", "{trace}");
    let found = ["theirs: restore deps", "mine", "theirs: archive deps"].map(|line| trace.find(&format!("01O {line}\n")));
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{trace}");
    scene.end(runner, |report| report);
}

#[test]
fn a_job_with_an_image_and_a_service_runs_in_a_container() {
    let Some(engine) = Engine::shared() else { return };
    let Some(()) = engine.images(&["busybox"]) else { return };
    let scene = Scene::new(Vec::new());
    scene.workshop.file(
        "config.toml",
        format!(
            "concurrent = 2\ncheck_interval = 1\n\n[[runners]]\nname = \"containers\"\nid = 1\nurl = \"{}\"\ntoken = \"{TOKEN}\"\nexecutor = \"docker\"\nbuilds_dir = \"{}\"\n\n\
             [runners.docker]\nhost = \"{}\"\nimage = \"ci/busybox:1\"\npull_policy = \"if-not-present\"\nvolumes = [\"/cache\"]\n",
            scene.server.url(),
            scene.workshop.path("builds").display(),
            engine.host
        ),
    );
    let no_sources = json!([{"key": "GIT_STRATEGY", "value": "none", "public": true}]);
    let service = json!([{"name": "ci/busybox:1", "alias": "web", "command": ["httpd", "-f", "-p", "8080", "-h", "/etc"]}]);
    let script = ["echo in $(hostname) at $PWD", "test -f /.dockerenv && echo contained", "touch /cache/was-here && echo cached"];
    let script = [&script[..], &["wget -q -O - http://web:8080/hostname >/dev/null && echo served"]].concat();
    scene.server.plan(&job(&script, json!({"image": {"name": "ci/busybox:1"}, "services": service, "variables": no_sources})));
    scene.server.plan(&job(&["test -f /.dockerenv && echo by default"], json!({"variables": no_sources})));
    let state = scene.workshop.path("state");
    let runner = scene.run_with(&[
        ("XDG_STATE_HOME", &state.to_string_lossy()),
        ("STEP_RUNNER_AGENTS", &path("STEP_AGENT").parent().expect("a directory").to_string_lossy()),
    ]);
    scene.until_all_ended();
    let (status, trace) = end_of(&scene, 1);
    assert!(
        status == "success" && ["contained", "cached", "served"].iter().all(|line| trace.contains(&format!("01O {line}\n"))),
        "{trace}"
    );
    let (status, trace) = end_of(&scene, 2);
    assert!(status == "success" && trace.contains("01O by default\n"), "{trace}");
    scene.end(runner, |report| report);
}

#[test]
fn a_server_that_others_wrote_sees_its_jobs_begin_and_end() {
    let Some(server) = Component::start_with_arguments("gitlab-mock", &["3", "echo hello from elsewhere", "test $CI_PROJECT_DIR = $PWD"])
    else {
        return;
    };
    let scene = Scene::new(Vec::new());
    let text = scene.workshop.read("config.toml").replace(&scene.server.url(), server.get("GITLAB_URL"));
    let entry = "environment = [\"GIT_STRATEGY=none\"]\n";
    let text = text.replace(TOKEN, server.get("GITLAB_RUNNER_TOKEN")).replace("executor =", &format!("{entry}executor ="));
    scene.workshop.file("config.toml", text);
    let runner = scene.run();
    let log = server.wait_for_lines("GITLAB_MOCK_LOG", "job ", 3);
    assert_eq!(log.iter().filter(|line| line.starts_with("job Success:")).count(), 3, "{log:?}");
    scene.end(runner, |report| report);
}

/// A step in place of ours, for any inputs, that ends with this exit code.
fn failing(scene: &Scene, name: &str, code: u8) -> String {
    let texts = ["action", "key", "format", "level", "timeout", "directory", "name", "type", "expire_in", "url", "token", "filename"];
    let lists = ["fallback_keys", "paths", "exclude", "warnings"];
    let input = |name: &&str, kind: &str, default: &str| format!("    {name}: {{type: {kind}, default: {default}}}\n");
    let texts: String = texts.iter().map(|name| input(name, "string", "\"\"")).collect();
    let lists: String = lists.iter().map(|name| input(name, "array", "[]")).collect();
    let rest = input(&"attempts", "number", "1") + &input(&"id", "number", "0") + &input(&"untracked", "boolean", "false");
    let definition = format!("spec:\n  inputs:\n{texts}{lists}{rest}---\nexec:\n  command: [sh, -c, \"exit {code}\"]\n");
    scene.workshop.file(&format!("{name}/func.yml"), definition);
    scene.workshop.path(name).display().to_string()
}

fn variables(more: &[(&str, &str)]) -> Value {
    let all = [("GIT_STRATEGY", "none")].into_iter().chain(more.iter().copied());
    all.map(|(key, value)| json!({"key": key, "value": value, "public": true})).collect()
}

fn scripts(script: &[&str], after: &[&str]) -> Value {
    json!([{"name": "script", "script": script, "timeout": 60, "when": "on_success"},
           {"name": "after_script", "script": after, "timeout": 60, "when": "always", "allow_failure": true}])
}

/// Status and exit code of each job, in their order.
fn ends(scene: &Scene) -> Vec<(&'static str, i64)> {
    scene.server.look(|world| {
        world.jobs().values().map(|job| job.ended.as_ref().map_or(("open", 0), |ended| (ended.status, ended.exit_code))).collect()
    })
}

#[test]
fn runner_201_the_error_of_a_script_counts_more_than_that_of_a_cache_and_that_more_than_that_of_artifacts() {
    let scene = Scene::new(Vec::new());
    let (cache, artifact) = (failing(&scene, "cache", 5), failing(&scene, "artifact", 6));
    scene.configure_with(4, &format!("[runners.steps]\ncache = \"{cache}\"\nartifact = \"{artifact}\"\n"));
    let cache = json!([{"key": "deps", "paths": ["deps"], "policy": "pull-push", "when": "always"}]);
    let artifacts = json!([{"name": "out", "paths": ["out"], "artifact_type": "archive", "artifact_format": "zip", "when": "always"}]);
    let none = variables(&[]);
    scene.server.plan(&job(&["exit 7"], json!({"variables": none, "cache": cache, "artifacts": artifacts})));
    scene.server.plan(&job(&["true"], json!({"variables": none, "cache": cache, "artifacts": artifacts})));
    scene.server.plan(&job(&["true"], json!({"variables": none, "artifacts": artifacts})));
    let runner = scene.run();
    scene.until_all_ended();
    assert_eq!(ends(&scene), [("failed", 7), ("failed", 5), ("failed", 6)], "{}", scene.trace(2));
    scene.end(runner, |report| report);
}

/// Cancels the job, which is the only one, when its trace has this line. Gives the trace.
fn cancelled_at(line: &str, steps: &Value) -> String {
    let scene = Scene::new(Vec::new());
    scene.server.plan(&job(&[], json!({"variables": variables(&[]), "steps": steps})));
    let runner = scene.run();
    let key = JobKey { cell: 1, id: 1 };
    scene.until(|world| String::from_utf8_lossy(&world.jobs()[&key].trace).contains(line));
    scene.server.cancel(key, false);
    scene.until_all_ended();
    let trace = scene.trace(1);
    scene.end(runner, |report| report);
    trace
}

#[test]
fn runner_202_after_script_of_a_cancelled_job_runs_and_knows_it() {
    let trace = cancelled_at("01O begun\n", &scripts(&["echo begun", "sleep 600"], &["echo after it was $CI_JOB_STATUS"]));
    assert!(trace.contains("01O after it was canceled\n"), "{trace}");
}

#[test]
fn runner_204_a_cancel_does_not_end_after_script() {
    let trace = cancelled_at("01O after begun\n", &scripts(&["true"], &["echo after begun", "sleep 1", "echo after done"]));
    assert!(trace.contains("01O after done\n"), "{trace}");
}

#[test]
fn runner_205_errors_of_after_script_count_only_where_they_are_asked_for() {
    let scene = Scene::new(Vec::new());
    let strict = variables(&[("AFTER_SCRIPT_IGNORE_ERRORS", "false")]);
    scene.server.plan(&job(&[], json!({"variables": variables(&[]), "steps": scripts(&["true"], &["exit 3"])})));
    scene.server.plan(&job(&[], json!({"variables": strict, "steps": scripts(&["true"], &["exit 3"])})));
    scene.server.plan(&job(&[], json!({"variables": strict, "steps": scripts(&["exit 7"], &["exit 3"])})));
    let runner = scene.run();
    scene.until_all_ended();
    assert_eq!(ends(&scene), [("success", 0), ("failed", 3), ("failed", 7)]);
    scene.end(runner, |report| report);
}

#[test]
fn runner_208_a_script_passes_variables_on() {
    let scene = Scene::new(Vec::new());
    let steps = scripts(&["echo LEFT=behind >>$GITLAB_ENV"], &["echo found $LEFT"]);
    scene.server.plan(&job(&[], json!({"variables": variables(&[]), "steps": steps})));
    let runner = scene.run();
    scene.until_all_ended();
    assert!(scene.trace(1).contains("01O found behind\n"), "{}", scene.trace(1));
    scene.end(runner, |report| report);
}

#[test]
fn whatever_a_server_answers_jobs_end_once_and_the_runner_goes_on() {
    let faults = json!([
        {"call": "request", "kind": "status", "status": 500}, {"call": "request", "kind": "html"}, {"call": "request", "kind": "wrong_types"},
        {"call": "request", "kind": "status", "status": 409},
        {"call": "request", "kind": "status", "status": 429, "headers": {"retry-after": "1"}}, {"call": "request", "kind": "status", "status": 429},
        {"call": "request", "kind": "close"},
        {"call": "accept", "kind": "status", "status": 502}, {"call": "accept", "skip": 2, "kind": "lost"},
        {"call": "trace", "kind": "status", "status": 416}, {"call": "trace", "skip": 1, "kind": "html"}, {"call": "trace", "skip": 3, "kind": "lost"},
        {"call": "trace", "skip": 5, "kind": "half"}, {"call": "trace", "skip": 7, "kind": "status", "status": 429},
        {"call": "final", "kind": "status", "status": 500}, {"call": "final", "skip": 1, "kind": "lost"}, {"call": "final", "skip": 3, "kind": "half"},
    ]);
    let scene = Scene::with(Vec::new(), |scenario| scenario.faults = serde_json::from_value(faults).expect("faults"));
    let more = |burst: Burst, more: Value| {
        let more: BTreeMap<String, _> = serde_json::from_value(more).expect("values of TOML");
        Burst { payload: burst.payload.clone().into_iter().chain(more).collect(), ..burst }
    };
    let plain = || job(&["echo hello"], json!({"variables": variables(&[])}));
    let large = "x".repeat(10_000_000);
    for burst in [
        Burst { count: 3, ..plain() },
        Burst { offers: 2, ..plain() },
        job(&["echo ${#LARGE}"], json!({"variables": variables(&[("LARGE", &large)])})),
        more(plain(), json!({"steps": []})),
        more(plain(), json!({"features": {"trace_sections": true, "of_tomorrow": {"a": [1, 2]}}, "of_tomorrow": ["x"]})),
        job(&["printf 'not UTF-8: \\377\\n'"], json!({"variables": variables(&[])})),
    ] {
        scene.server.plan(&burst);
    }
    let runner = scene.run();
    scene.until_all_ended();
    let all = ends(&scene);
    assert!(all.iter().enumerate().all(|(at, end)| *end == ("success", 0) || at == 4), "{all:?}");
    // No program of a system with Linux is given so large a variable: it is said, and hurts nobody else.
    let trace = scene.trace(5);
    assert!(all[4] == ("success", 0) || trace.contains("too long"), "{}", trace.chars().take(2000).collect::<String>());
    let trace = scene.trace(8);
    assert!(trace.contains("not UTF-8: \u{fffd}\n"), "{trace}");
    scene.end(runner, |report| report.without_offsets());
}
