//! `builtin://docker` with a real engine: steps in a container, what comes back, and every way in which it ends early.

use ci_tests::docker::{Engine, Mark};
use ci_tests::kit::{self, Component};
use ci_tests::program;
use ci_tests::workshop::{Ends, Workshop};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::time::Duration;

/// Images are made and containers start slowly on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// A job of one container. `inputs` and `run` are YAML flow.
fn job(inputs: &str, run: &str) -> String {
    format!("{{}}\n---\nrun:\n  - name: box\n    func: builtin://docker\n    inputs:\n      {inputs}\n      run:\n        {run}\n")
}

fn busybox(mark: &Mark, more: &str, run: &str) -> String {
    job(&format!("image: \"ci/busybox:1\"\n      labels: {mark}\n      {more}"), run)
}

/// An engine with the small image.
fn engine() -> Option<Engine> {
    let engine = Engine::shared()?;
    engine.images(&["busybox"])?;
    Some(engine)
}

#[test]
fn steps_run_inside_and_their_results_come_back() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let definition = format!(
        "spec: {{outputs: {{system: {{type: string}}}}}}\n---\nrun:\n  - name: box\n    func: builtin://docker\n    inputs:\n      image: ci/busybox:1\n      \
         labels: {mark}\n      inputs: {{who: \"${{{{ env.WHO }}}}\"}}\n      run:\n        - {{name: look, func: ./look, inputs: {{who: \"${{{{ inputs.who }}}}\"}}}}\n      \
         outputs: {{system: \"${{{{ steps.look.outputs.system }}}}\"}}\noutputs: {{system: \"${{{{ steps.box.outputs.system }}}}\"}}\n"
    );
    workshop.file(
        "job/look/func.yml",
        "spec: {inputs: {who: {type: string}}, outputs: {system: {type: string}}}\n---\nexec:\n  command: [sh, -c, \"echo hello ${{ inputs.who }}; echo oops >&2; ls /bin/busybox; \
         touch here; echo '{\\\"name\\\":\\\"system\\\",\\\"value\\\":\\\"inside\\\"}' > ${{ output_file }}\"]\n",
    );
    engine
        .run(&workshop, &definition, &["--env", "WHO=you", "--result", "result.json"])
        .limit(LIMIT)
        .ends(0)
        .prints("hello you")
        .prints("/bin/busybox")
        .says("step box/look: ok");
    let result = &workshop.result("result.json")["subStepResults"][0];
    assert_eq!(result["outputs"]["system"], "inside", "{result}");
    assert_eq!(result["subStepResults"][0]["subStepResults"][0]["step"]["name"], "look", "{result}");
    assert!(workshop.path("here").exists(), "the work directory is the same inside");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn a_failure_inside_is_the_failure_of_the_step() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    engine
        .run(&workshop, &busybox(&mark, "", "- {name: bad, script: exit 7}"), &[])
        .limit(LIMIT)
        .ends(1)
        .says("step \"box\": step \"bad\": exec: exit status 7");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn an_image_from_scratch_runs_steps_too() {
    let Some(engine) = engine() else { return };
    let agent = program::path("STEP_AGENT");
    let images = kit::run("docker-images", &["static", &agent.to_string_lossy(), "program"], &[("DOCKER_HOST", &engine.host)]);
    let Some(images) = images else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    workshop.file("job/version/func.yml", "{}\n---\nexec: {command: [/program, --version]}\n");
    let inputs = format!("image: \"{}\"\n      entrypoint: [\"\"]\n      labels: {mark}", images["STATIC_IMAGE"]);
    engine.run(&workshop, &job(&inputs, "- {name: version, func: ./version}"), &[]).limit(LIMIT).ends(0).prints("step-agent ");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn an_entrypoint_runs_first_and_what_it_prints_is_in_the_log() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let greeting = "entrypoint: [sh, -c, \"echo welcome; export GREETED=yes; exec \\\"$@\\\"\", sh]";
    engine
        .run(&workshop, &busybox(&mark, greeting, "- {name: ask, script: echo greeted $GREETED}"), &[])
        .limit(LIMIT)
        .ends(0)
        .prints("welcome")
        .prints("greeted yes");
    engine
        .run(&workshop, &busybox(&mark, "entrypoint: [echo]", "- {name: ask, script: echo never}"), &[])
        .limit(LIMIT)
        .ends(1)
        .says("the entrypoint `echo` of `ci/busybox:1` ended with exit code 0 and did not start the agent");
    engine
        .run(&workshop, &busybox(&mark, "entrypoint: [/no/such]", "- {name: ask, script: echo never}"), &[])
        .limit(LIMIT)
        .ends(1)
        .says("its entrypoint `/no/such` cannot be run: no such file or directory");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn memory_that_runs_out_is_said() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    engine
        .run(&workshop, &busybox(&mark, "memory: 64m", "- {name: eat, script: \"tail /dev/zero\"}"), &[])
        .limit(LIMIT)
        .ends(1)
        .says("the container ran out of memory: its limit is 64 MiB");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn the_work_directory_is_copied_in_and_back_where_that_is_asked() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    workshop.file("given", "from outside");
    workshop.file("removed", "");
    let run = "- {name: change, script: \"cat given; echo from inside > made; rm removed\"}";
    engine.run(&workshop, &busybox(&mark, "workspace: copy", run), &[]).limit(LIMIT).ends(0).prints("from outside");
    assert_eq!(workshop.read("made"), "from inside\n");
    assert!(!workshop.path("removed").exists());
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn a_cancelled_job_leaves_no_container() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let mut started = engine.run(&workshop, &busybox(&mark, "", "- {name: wait, script: echo begun; sleep 100}"), &[]).limit(LIMIT).start();
    started.wait_for("begun");
    started.signal(Signal::INT);
    started.finish().exits(130);
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn a_container_that_somebody_kills_is_told_as_that() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let mut started = engine.run(&workshop, &busybox(&mark, "", "- {name: wait, script: echo begun; sleep 100}"), &[]).limit(LIMIT).start();
    started.wait_for("begun");
    engine.docker(&["kill", &engine.left(&mark)[0]]);
    started.finish().exits(1).says("the container of `ci/busybox:1` was killed by somebody else (exit code 137)");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn what_a_killed_step_left_is_removed_when_its_job_ends() {
    let Some(engine) = engine() else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let mut started = engine.run(&workshop, &busybox(&mark, "", "- {name: wait, script: echo begun; sleep 100}"), &[]).limit(LIMIT).start();
    started.wait_for("begun");
    let container = engine.left(&mark)[0].clone();
    let owner = engine.docker(&["inspect", "-f", "{{index .Config.Labels \"step-runner.owner\"}}", &container]);
    let pid: i32 = owner.split('/').nth(2).and_then(|pid| pid.parse().ok()).expect("the label names a process");
    kill_process(Pid::from_raw(pid).expect("a process id"), Signal::KILL).expect("it lives");
    started.finish().exits(1).says("signal: killed");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn an_engine_that_dies_in_the_middle_is_said_and_a_later_job_removes_what_was_left() {
    let Some(component) = Component::start("private-docker") else { return };
    let engine = Engine::of(&component);
    let Some(()) = engine.images(&["busybox"]) else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let definition = busybox(&mark, "engine_timeout: 3s", "- {name: wait, script: echo begun; sleep 100}");
    let mut started = engine.run(&workshop, &definition, &[]).limit(LIMIT).start();
    started.wait_for("begun");
    let pid = component.get("DOCKER_PID").parse().ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::KILL).expect("it lives");
    started.finish().exits(1).says("does not answer");
    let Some(component) = component.start_again() else { return };
    let engine = Engine::of(&component);
    engine.run(&workshop, &busybox(&Mark::new(), "", "- {name: say, script: echo hello}"), &[]).limit(LIMIT).ends(0).prints("hello");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

#[test]
fn a_container_reaches_the_services_of_its_job_by_their_aliases() {
    let Some(engine) = engine() else { return };
    let Some(()) = engine.images(&["postgres"]) else { return };
    let (workshop, mark) = (Workshop::new(), Mark::new());
    let definition = format!(
        "{{}}\n---\nrun:\n  - name: db\n    func: builtin://service\n    inputs: {{image: \"ci/postgres:15\", aliases: [db], variables: {{POSTGRES_PASSWORD: x}}, labels: {mark}}}\n  \
         - name: box\n    func: builtin://docker\n    inputs:\n      image: ci/postgres:15\n      entrypoint: [\"\"]\n      labels: {mark}\n      workspace: none\n      run:\n        \
         - {{name: ask, script: \"PGPASSWORD=x psql -h db -U postgres -Atc 'select 6 * 7'\"}}\n"
    );
    engine.run(&workshop, &definition, &[]).limit(LIMIT).ends(0).prints("42");
    assert_eq!(engine.left(&mark), [] as [String; 0]);
}

/// Another root directory, with one program and what every system has.
struct Root(std::path::PathBuf);

impl Root {
    /// `None`: it cannot be made here, and the test is skipped.
    fn new(workshop: &Workshop, program: &std::path::Path) -> Option<Self> {
        let root = Self(workshop.path("root"));
        for name in ["proc", "dev"] {
            std::fs::create_dir_all(root.0.join(name)).expect("a directory can be made");
        }
        std::fs::copy(program, root.0.join("program")).expect("a program can be copied");
        let mount = |what: &[&str], name: &str| {
            Command::new("mount").args(what).arg(root.0.join(name)).status().is_ok_and(|status| status.success())
        };
        let null =
            || Command::new("mknod").arg(root.0.join("dev/null")).args(["c", "1", "3"]).status().is_ok_and(|status| status.success());
        if !null() || !mount(&["-t", "proc", "proc"], "proc") {
            ci_tests::skipped::because("only root may mount and change the root directory");
            return None;
        }
        Some(root)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _where_nothing_was_mounted = Command::new("umount").arg("-l").arg(self.0.join("proc")).status();
    }
}

#[test]
fn another_delegating_step_is_written_with_the_same_crate() {
    let agent = program::path("STEP_AGENT");
    let workshop = Workshop::new();
    let Some(root) = Root::new(&workshop, &agent) else { return };
    let step = program::path("CHROOT_STEP");
    let guide = ci_tests::repository::read("docs/guide/delegating-step.md");
    let definition = guide.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the guide shows its definition");
    workshop.file("job/chroot/func.yml", definition.replace("${{ func_dir }}/chroot-step", &step.to_string_lossy()));
    let job = format!(
        "{{}}\n---\nrun:\n  - name: old\n    func: ./chroot\n    inputs:\n      root: {}\n      run:\n        - {{name: version, func: ./version}}\n        - {{name: _hidden, func: ./version}}\n",
        root.0.display()
    );
    workshop.file("job/func.yml", job);
    workshop.file("job/version/func.yml", "{}\n---\nexec: {command: [/program, --version]}\n");
    // A local step behind another is read where it runs: the work directory is the other root there.
    let inside = root.0.join("job");
    std::fs::create_dir_all(inside.join("version")).expect("a directory can be made");
    std::fs::copy(workshop.path("job/version/func.yml"), inside.join("version/func.yml")).expect("a file can be copied");
    let agents = agent.parent().expect("a file lies in a directory");
    workshop.step_runner(&["run", "./job", "--result", "result.json"]).env("STEP_RUNNER_AGENTS", agents).ends(0).prints("step-agent ");
    let old = &workshop.result("result.json")["subStepResults"][0]["subStepResults"][0];
    assert_eq!(old["subStepResults"].as_array().map(Vec::len), Some(1), "{old}");
    assert_eq!(old["filtered"], "steps whose names begin with `_` are not shown", "{old}");
    let left = std::fs::read_dir(&root.0).expect("it can be listed").filter_map(Result::ok).map(|entry| entry.file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("step-agent")));
}
