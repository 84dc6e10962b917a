//! Limits of steps: what holds them, what a step that comes to one is told, and that no control group stays.

use ci_tests::skipped;
use ci_tests::workshop::{Ends, Workshop, run_request};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Runs one script under limits. The result's node of the script.
fn limited(workshop: &Workshop, script: &str, limit: &str, code: i32) -> Value {
    let definition = format!("{{}}\n---\nrun:\n  - name: s\n    script: |\n      echo $STEP_RUNNER_JOB >marker\n      {script}\n");
    workshop.run_definition(&definition, &["--limit", limit, "--result", "r.json"]).ends(code);
    assert_eq!(groups_of(&workshop.read("marker")), Vec::<PathBuf>::new(), "control groups stay");
    workshop.result("r.json")["subStepResults"][0]["subStepResults"][0].clone()
}

/// What became of a limit: its means, and whether the step came to it.
fn became(node: &Value, name: &str) -> (String, bool) {
    let limits = node["limits"].as_array().unwrap_or_else(|| panic!("no limits: {node}"));
    let limit = limits.iter().find(|limit| limit["name"] == name).unwrap_or_else(|| panic!("no {name}: {node}"));
    (limit["means"].as_str().expect("means").to_owned(), limit["reached"] == true)
}

/// Control groups of the job whose processes have this word last.
fn groups_of(marker: &str) -> Vec<PathBuf> {
    let word = marker.trim().rsplit(':').next().unwrap_or_default().to_owned();
    assert!(!word.is_empty(), "a marker");
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(directory) = open.pop() {
        let directories = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in directories.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if entry.file_name().to_string_lossy().contains(&word) {
                found.push(entry.path());
            }
            open.push(entry.path());
        }
    }
    found
}

fn is_by_group(means: &str) -> bool {
    let is = means.starts_with("cgroup");
    if !is {
        skipped::because(&format!("no control group may be made here ({means}); run as root, or in a unit with Delegate=yes"));
    }
    is
}

#[test]
fn a_step_that_runs_out_of_memory_is_told_so() {
    let workshop = Workshop::new();
    let node = limited(&workshop, "head -c 300m /dev/zero | tail", "memory=64MiB", 1);
    let (means, reached) = became(&node, "memory");
    if !is_by_group(&means) {
        return;
    }
    assert!(reached, "{node}");
    assert_eq!(node["failureKind"], "step_failure");
    let message = node["failureMessage"].as_str().expect("a message");
    assert_eq!(message, "exec: out of memory (the limit is 64MiB): exit status 137");
    assert_eq!(node["usage"]["means"], "cgroup");
    let peak: u64 = node["usage"]["peakMemory"].as_str().expect("a number").parse().expect("a number");
    assert!(((32 << 20)..=(64 << 20)).contains(&peak), "{peak}");
}

#[test]
fn a_step_that_starts_too_many_processes_is_told_so() {
    let workshop = Workshop::new();
    let node = limited(&workshop, "i=0; while [ $i -lt 20 ]; do sleep 100 & i=$((i+1)); done; exit 3", "pids=5", 1);
    let (means, reached) = became(&node, "pids");
    if is_by_group(&means) {
        assert!(reached, "{node}");
        let message = node["failureMessage"].as_str().expect("a message");
        assert!(message.starts_with("exec: too many processes (the limit is 5): exit status "), "{message}");
    }
}

#[test]
fn a_step_that_writes_too_much_is_told_so() {
    let workshop = Workshop::new();
    let node = limited(&workshop, "exec head -c 3000000 /dev/zero >large", "disk=1MiB", 1);
    assert_eq!(became(&node, "disk"), ("rlimit: the size of each file".into(), true));
    assert_eq!(node["failureMessage"], "exec: too much written to disk (the limit is 1MiB): signal: file size limit exceeded");
    assert_eq!(workshop.path("large").metadata().expect("the file").len(), 1 << 20);
}

#[test]
fn a_step_without_a_network_has_itself_to_talk_to_and_nobody_else() {
    let workshop = Workshop::new();
    let script = "cut -d: -f1 -s /proc/net/dev | tr -d ' ' >devices; grep -c 127.0.0.1 /proc/net/fib_trie >loopback || true";
    let node = limited(&workshop, script, "network=none", 0);
    let (means, _) = became(&node, "network");
    if means != "namespace" {
        skipped::because(&format!("no namespace of the network may be made here ({means})"));
        return;
    }
    assert_eq!(workshop.read("devices"), "lo\n");
    assert_ne!(workshop.read("loopback"), "0\n", "the loopback device is up");
}

#[test]
fn a_step_under_limits_starts_as_any_other() {
    let workshop = Workshop::new();
    let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l; cat; echo $0; env | grep -v STEP_RUNNER_JOB= | grep -v TRACEPARENT= | sort";
    workshop.file("job/step.yml", format!("{{}}\n---\nexec: {{command: [sh, -c, \"{script}\", me]}}\n"));
    let free = workshop.step_runner(&["run", "./job", "--quiet"]).ends(0).stdout();
    let all = "cpu=1.5,memory=512MiB,pids=1000,disk=1GiB,network=none";
    let bound = workshop.step_runner(&["run", "./job", "--quiet", "--limit", all]).ends(0).stdout();
    assert_eq!(free, bound);
    for (command, said) in [("[nowhere]", "executable file not found in $PATH"), ("[./job/step.yml]", "permission denied")] {
        workshop.file("bad/step.yml", format!("{{}}\n---\nexec: {{command: {command}}}\n"));
        workshop.step_runner(&["run", "./bad", "--limit", all]).ends(1).says(said);
    }
}

#[test]
fn an_ordinary_user_has_limits_too() {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/setpriv").exists() {
        skipped::because("only root can become somebody else, with setpriv of util-linux");
        return;
    }
    let workshop = Workshop::new();
    let open = |path: &Path| std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("a directory");
    open(workshop.dir());
    open(&workshop.path("tmp"));
    workshop.file("job/step.yml", "{}\n---\nexec: {command: [sh, -c, \"cut -d: -f1 -s /proc/net/dev | tr -d ' '; id -u; ulimit -d; head -c 300m /dev/zero | tail -c 299m >/dev/null\"]}\n");
    let line = "exec setpriv --reuid=65534 --regid=65534 --clear-groups step-runner run ./job --limit memory=32MiB,pids=40,cpu=0.5,network=none --output json";
    let finished = workshop.shell(line).finish();
    if finished.stderr().contains("could not start") || finished.status.code() == Some(126) {
        skipped::because("the program lies where an ordinary user cannot reach it");
        return;
    }
    let finished = finished.exits(1);
    let ended = finished
        .stdout()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["event"] == "ended" && line["limits"].is_array());
    let ended = ended.unwrap_or_else(|| panic!("{finished}"));
    let means: Vec<&str> = ended["limits"].as_array().into_iter().flatten().filter_map(|limit| limit["means"].as_str()).collect();
    if means.iter().any(|means| means.starts_with("cgroup")) {
        skipped::because("control groups are delegated to nobody here");
        return;
    }
    let expected = ["affinity: 1 whole core", "rlimit: what each process allocates", "rlimit: with all other processes of the user"];
    assert_eq!(means[..3], expected, "{finished}");
    let text: String =
        finished.stdout().lines().filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["text"].as_str()?.to_owned())).collect();
    assert!(text.contains("65534\n32768\n"), "{text}");
    match means[3] {
        "namespace" => assert!(text.starts_with("lo\n65534\n"), "{text}"),
        why => assert!(why.starts_with("none: no namespace of the network can be made"), "{why}"),
    }
}

#[test]
fn a_run_that_is_killed_leaves_no_group_to_the_next() {
    let workshop = Workshop::new();
    let job = "{}\n---\nrun:\n  - {name: s, script: \"echo $STEP_RUNNER_JOB >marker; echo ready; sleep 1000\"}\n";
    let mut run = workshop.run_definition(job, &["--limit", "pids=50"]).start();
    run.wait_for("ready\n");
    run.signal(Signal::KILL);
    drop(run);
    let marker = workshop.read("marker");
    if groups_of(&marker).is_empty() {
        skipped::because("no control group may be made here");
    }
    workshop.file("other/step.yml", "{}\n---\nexec: {command: [echo, hello]}\n");
    workshop.step_runner(&["run", "./other"]).ends(0);
    assert_eq!(groups_of(&marker), Vec::<PathBuf>::new());
}

#[test]
fn limits_of_a_request_and_of_its_steps_both_hold() {
    let workshop = Workshop::new();
    let steps = json!([
        {"step": {"name": "a"}, "scriptLegacy": {"lines": ["echo a"]}, "limits": {"pids": "7", "memory": "1073741824"}},
        {"step": {"name": "b"}, "scriptLegacy": {"lines": ["echo b"]}},
    ]);
    let request = json!({"id": "1", "limits": {"memory": "268435456", "pids": 99}, "jobSteps": {"steps": steps}});
    workshop.file("request.json", request.to_string());
    workshop
        .step_runner(&["run", "request.json", "--dry-run"])
        .ends(0)
        .prints("a: $ echo a (at most memory=1GiB, pids=7)")
        .prints("limits of each step:\n  memory=256MiB\n  pids=99\n");
    workshop.step_runner(&["run", "request.json", "--result", "r.json"]).ends(0);
    let values = |step: usize| {
        let limits = workshop.result("r.json")["subStepResults"][step]["limits"].clone();
        limits
            .as_array()
            .into_iter()
            .flatten()
            .map(|limit| format!("{}={}", limit["name"].as_str().unwrap_or_default(), limit["value"].as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(",")
    };
    assert_eq!((values(0), values(1)), ("memory=256MiB,pids=7".into(), "memory=256MiB,pids=99".into()));
    workshop.step_runner(&["show", "r.json"]).ends(0).prints("limits: memory 256MiB (");
    let bad = run_request("run: [{name: a, script: echo}]\n", json!({"limits": {"memory": -1}}));
    workshop.file("bad.json", bad);
    workshop.step_runner(&["run", "bad.json"]).ends(3).says("the limit `memory` is negative: -1");
}

#[test]
fn what_is_no_limit_is_refused_with_the_way_out() {
    let workshop = Workshop::new();
    workshop.file("job/step.yml", "{}\n---\nexec: {command: [echo, hello]}\n");
    let finished = workshop.step_runner(&["run", "./job", "--limit", "memory=lots,gpu=1", "--limit", "cpu=0"]).ends(2);
    let finished = finished.says("`--limit`: the limit `memory` cannot be `lots`: it is no size").says(" hint: a size: `memory=512MiB`");
    finished.says("there is no limit `gpu`").says("the limit `cpu` cannot be `0`");
}
