//! Bad input: a clear error with the step's name; never a panic, a hang, or a half-written result.

use ci_tests::workshop::{Ends, Workshop, run_request};
use serde_json::json;
use std::time::Duration;

/// Long enough for a busy machine, short enough to find what is quadratic.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_payload_that_is_cut_off_is_refused_with_its_place() {
    let workshop = Workshop::new();
    let whole = run_request("run:\n  - {name: a, script: echo hi}\n", json!({}));
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        workshop.file("job.json", &whole.as_bytes()[..length]);
        let finished = workshop.step_runner(&["run", "job.json"]).limit(SOON).ends(3);
        assert!(finished.stderr().contains("job.json"), "{finished}");
    }
}

#[test]
fn a_payload_that_is_not_utf_8_is_refused() {
    let workshop = Workshop::new();
    workshop.file("job.json", b"{\"id\": \"\xff\xfe\", \"steps\": \"{}\"}");
    workshop.step_runner(&["run", "job.json"]).limit(SOON).ends(3).says("UTF-8");
    workshop.file("step/step.yml", b"{}\n---\nexec: {command: [echo, \xff]}\n");
    workshop.step_runner(&["run", "./step"]).limit(SOON).ends(3).says("UTF-8");
}

#[test]
fn a_payload_of_100_mb_is_refused_or_run_but_never_swallows_the_machine() {
    let workshop = Workshop::new();
    let long = "x".repeat(100_000_000);
    workshop.file("job.json", run_request("run:\n  - {name: a, script: echo hi}\n", json!({"env": {"LONG": long}})));
    let finished = workshop.step_runner(&["run", "job.json"]).limit(SOON).ends(3);
    assert!(finished.stderr().contains("job.json") && finished.stderr().len() < 10_000, "{finished}");
}

#[test]
fn a_payload_of_10_000_levels_is_refused() {
    let workshop = Workshop::new();
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    workshop.file("job.json", format!("{{\"id\": \"a\", \"steps\": {deep}}}"));
    workshop.step_runner(&["run", "job.json"]).limit(SOON).ends(3);
    workshop.file("deep/step.yml", format!("{{}}\n---\nrun:\n  - name: a\n    step: ./x\n    inputs: {{v: {deep}}}\n"));
    workshop.step_runner(&["run", "./deep"]).limit(SOON).ends(3);
    workshop.step_runner(&["check", "./deep"]).limit(SOON).ends(3);
    let expression = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    workshop.file("expression/step.yml", format!("{{}}\n---\nexec: {{command: [echo, \"${{{{ {expression} }}}}\"]}}\n"));
    workshop.step_runner(&["run", "./expression"]).limit(SOON).ends(3);
}

#[test]
fn unknown_fields_of_a_payload_are_no_reason_to_fail() {
    let workshop = Workshop::new();
    workshop.file("job.json", run_request("run:\n  - {name: a, script: echo hi}\n", json!({"somethingNew": {"a": [1]}})));
    workshop.step_runner(&["run", "job.json"]).limit(SOON).ends(0).prints("hi\n");
}

#[test]
fn an_unknown_key_of_a_definition_is_a_warning_with_a_suggestion_and_an_error_when_strict() {
    let workshop = Workshop::new();
    let definition = "{}\n---\nenvv: {A: b}\nexec: {command: [echo, hi]}\n";
    workshop.run_definition(definition, &[]).ends(0).says("envv").says("`env`");
    workshop.run_definition(definition, &["--strict"]).ends(3).says("envv");
}

#[test]
fn duplicate_names_are_refused_in_func_yml_and_said_in_step_yml() {
    let workshop = Workshop::new();
    let steps = "{}\n---\nrun:\n  - {name: twice, script: echo one}\n  - {name: twice, script: echo two}\n";
    workshop.file("f/func.yml", steps);
    workshop.step_runner(&["run", "./f"]).limit(SOON).ends(3).says("twice");
    workshop.file("s/step.yml", steps);
    workshop.step_runner(&["run", "./s"]).limit(SOON).ends(0).says("twice").prints("two");
}

#[test]
fn cyclic_local_references_are_refused() {
    let workshop = Workshop::new();
    workshop.file("a/step.yml", "{}\n---\nrun:\n  - {name: to_b, step: ../b}\n");
    workshop.file("b/step.yml", "{}\n---\nrun:\n  - {name: to_a, step: ../a}\n");
    workshop.step_runner(&["run", "./a"]).limit(SOON).ends(3).says("to_a");
    workshop.step_runner(&["check", "./a"]).limit(SOON).ends(3);
    workshop.file("itself/step.yml", "{}\n---\nrun:\n  - {name: again, step: .}\n");
    workshop.step_runner(&["run", "./itself"]).limit(SOON).ends(3).says("again");
}

#[test]
fn a_cycle_behind_a_hole_ends_too() {
    let workshop = Workshop::new();
    workshop.file("a/step.yml", "{}\n---\nrun:\n  - {name: before, script: echo again}\n  - {name: inner, step: \"${{ step_dir }}\"}\n");
    let finished = workshop.step_runner(&["run", "./a", "--result", "r.json"]).limit(Duration::from_secs(60)).finish();
    assert!(matches!(finished.status.code(), Some(1 | 3)), "{finished}");
    assert!(finished.stderr().contains("inner") && finished.stderr().contains("64"), "the limit is not named\n{finished}");
    // The result is whole, and deeper than most readers of JSON like.
    workshop.step_runner(&["show", "r.json"]).ends(0).prints("inner");
}

#[test]
fn a_reference_that_leaves_the_repository_is_refused() {
    let workshop = Workshop::new();
    workshop.file("outside/step.yml", "{}\n---\nexec: {command: [echo, outside]}\n");
    workshop.file("repository/job/step.yml", "{}\n---\nrun:\n  - {name: leave, step: ../../outside}\n");
    let git = "cd repository && git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm a";
    workshop.shell(git).finish();
    let finished = workshop.shell("cd repository && step-runner run ./job").limit(SOON).ends(3).says("leave");
    assert!(!finished.stdout().contains("outside"), "{finished}");
    std::os::unix::fs::symlink("../../outside", workshop.path("repository/job/link")).expect("a link can be made");
    workshop.file("repository/job/step.yml", "{}\n---\nrun:\n  - {name: follow, step: ./link}\n");
    workshop.shell("cd repository && step-runner run ./job").limit(SOON).ends(3).says("follow");
}

#[test]
fn a_reference_to_nothing_is_refused_before_the_first_step() {
    let workshop = Workshop::new();
    let job = "{}\n---\nrun:\n  - {name: nowhere, step: ./nope}\n  - {name: a, script: echo too far}\n";
    let finished = workshop.run_definition(job, &[]).limit(SOON).finish();
    assert!(matches!(finished.status.code(), Some(1 | 3)), "{finished}");
    assert!(finished.stderr().contains("step \"nowhere\": failed to load:"), "{finished}");
    workshop.step_runner(&["run", "./not-here"]).limit(SOON).ends(3).says("not-here");
    workshop.step_runner(&["run", "not-here.json"]).limit(SOON).ends(3).says("not-here.json");
}

/// What an exec step does to its output file, and what is said.
fn output_file_case(commands: &str, expected: &str) {
    let workshop = Workshop::new();
    let definition = format!(
        "spec: {{outputs: {{value: {{type: string}}}}}}\n---\nexec:\n  command:\n    - sh\n    - -c\n    - |\n      {commands}\n    - writer\n    - ${{{{ output_file }}}}\n"
    );
    workshop.file("writer/step.yml", definition);
    workshop.file("job/step.yml", "{}\n---\nrun:\n  - {name: writes, step: ../writer}\n");
    let finished = workshop.step_runner(&["run", "./job", "--result", "r.json"]).limit(SOON).finish().exits(1);
    assert!(finished.stderr().contains("step \"writes\":") && finished.stderr().contains(expected), "{expected}\n{finished}");
    assert_eq!(workshop.result("r.json")["status"], "failure");
}

#[test]
fn an_output_file_that_is_missing_is_an_error() {
    output_file_case("rm \"$1\"", "output file");
}

#[test]
fn an_output_file_that_is_a_directory_is_an_error() {
    output_file_case("rm \"$1\"; mkdir \"$1\"", "output file");
}

#[test]
fn an_output_file_that_is_a_fifo_does_not_hang() {
    output_file_case("rm \"$1\"; mkfifo \"$1\"", "output file");
}

#[test]
fn an_output_file_that_is_a_link_to_a_device_does_not_hang() {
    output_file_case("rm \"$1\"; ln -s /dev/zero \"$1\"", "output file");
}

#[test]
fn an_output_file_of_1_gb_is_an_error_that_names_the_limit() {
    output_file_case("truncate -s 1G \"$1\"", "output file");
}

#[test]
fn an_output_file_that_is_malformed_in_the_middle_is_an_error_with_its_line() {
    output_file_case(
        "printf '%s\\n' '{\"name\":\"value\",\"value\":\"x\"}' oops '{\"name\":\"value\",\"value\":\"y\"}' >\"$1\"",
        "at line 2",
    );
}

#[test]
fn an_output_file_that_nobody_may_read_is_an_error() {
    // root reads everything: then the file is simply empty.
    output_file_case("chmod 000 \"$1\"", "output");
}

#[test]
fn an_output_of_10_mb_works() {
    let workshop = Workshop::new();
    workshop.file(
        "writer/step.yml",
        "spec: {outputs: {value: {type: string}}}\n---\nexec:\n  command: [sh, -c, \"{ printf '{\\\"name\\\":\\\"value\\\",\\\"value\\\":\\\"'; head -c 10000000 /dev/zero | tr '\\\\0' x; printf '\\\"}'; } >$1\", writer, \"${{ output_file }}\"]\n",
    );
    workshop.file(
        "job/step.yml",
        "{}\n---\nrun:\n  - {name: writes, step: ../writer}\n  - name: reads\n    step: ../reader\n    inputs: {value: \"${{ steps.writes.outputs.value }}\"}\n",
    );
    workshop.file("reader/step.yml", "spec: {inputs: {value: {type: string}}}\n---\nexec: {command: [echo, got it]}\n");
    workshop.step_runner(&["run", "./job"]).limit(SOON).ends(0).prints("got it");
}

fn command_case(command: &str, more: &str, expected: &str) {
    let workshop = Workshop::new();
    workshop.file("not-executable", "#!/bin/sh\n");
    let bad = workshop.file("bad-interpreter", "#!/no/such/interpreter\n");
    std::fs::set_permissions(&bad, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode can be set");
    workshop.file("inner/step.yml", format!("{{}}\n---\nexec: {{command: [{command}]{more}}}\n"));
    workshop.file("job/step.yml", "{}\n---\nrun:\n  - {name: tries, step: ../inner}\n");
    let finished = workshop.step_runner(&["run", "./job", "--result", "r.json"]).limit(SOON).finish().exits(1);
    assert!(finished.stderr().contains("step \"tries\": exec: ") && finished.stderr().contains(expected), "{expected}\n{finished}");
    let tree = workshop.result("r.json").to_string();
    assert!(tree.contains("\"exitCode\":-1"), "{tree}");
}

#[test]
fn a_program_that_is_missing_is_named() {
    command_case("no-such-program", "", "exec: \"no-such-program\": executable file not found in $PATH");
    command_case("./no-such-program", "", "no such file or directory");
}

#[test]
fn a_program_that_is_not_executable_is_named() {
    command_case("./not-executable", "", "./not-executable: permission denied");
    command_case("./inner", "", "permission denied");
}

#[test]
fn a_program_with_a_bad_interpreter_is_named() {
    command_case("./bad-interpreter", "", "./bad-interpreter: no such file or directory");
}

#[test]
fn a_missing_work_directory_is_named() {
    command_case("echo", ", work_dir: /no/such/directory", "chdir /no/such/directory: no such file or directory");
}

#[test]
fn a_work_directory_that_is_a_file_is_named() {
    command_case("echo", ", work_dir: /etc/passwd", "chdir /etc/passwd: not a directory");
}

#[test]
fn arguments_that_the_system_cannot_take_are_an_error() {
    let workshop = Workshop::new();
    let long = "x".repeat(3_000_000);
    workshop
        .run_definition(&format!("{{}}\n---\nexec: {{command: [echo, {long}]}}\n"), &[])
        .limit(SOON)
        .ends(1)
        .says("argument list too long");
    workshop.run_definition("{}\n---\nexec: {command: [echo, \"a\\0b\"]}\n", &[]).limit(SOON).finish();
}

#[test]
fn a_full_disk_is_said_and_nothing_is_half_written() {
    let workshop = Workshop::new();
    let disk = workshop.path("disk");
    std::fs::create_dir(&disk).expect("a directory can be made");
    let mounted = workshop.shell("mount -t tmpfs -o size=64k tmpfs disk").finish();
    if !mounted.status.success() {
        println!("skipped: a small file system cannot be mounted here ({})", mounted.stderr().trim());
        return;
    }
    workshop.file("disk/ballast", vec![0u8; 60 * 1024]);
    workshop.file("job/step.yml", "{}\n---\nrun:\n  - {name: a, script: \"head -c 200000 /dev/zero | tr '\\\\0' x; echo; echo end\"}\n");
    let finished = workshop.step_runner(&["run", "./job", "--result", "disk/r.json"]).env("TMPDIR", &disk).limit(SOON).finish();
    let unmounted = workshop.shell("sync; ls -l disk; [ ! -e disk/r.json ] || cat disk/r.json; umount disk").finish();
    assert!(!finished.stderr().contains("panicked"), "{finished}");
    if finished.status.code() == Some(0) {
        assert!(finished.stdout().contains("end\n") && unmounted.stdout().contains("subStepResults"), "{finished}{unmounted}");
    } else {
        assert!(finished.stderr().to_lowercase().contains("no space left"), "{finished}");
        assert!(!unmounted.stdout().contains("{\"step"), "half a result is left\n{unmounted}");
    }
}
