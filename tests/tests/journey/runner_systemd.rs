//! The packaged unit under a real systemd: stop and restart leave the jobs running, and the next start finds them and goes on at the exact byte.

use super::runner_run::{Scene, check_lines, jobs};
use ci_tests::kit::Component;
use ci_tests::program::{Finished, Invocation, path};
use ci_tests::repository;
use runner_mock_gitlab::world::World;
use runner_mock_gitlab::{Report, Scenario};
use rustix::process::Pid;
use std::path::Path;

/// A systemd with the packaged unit, changed where this machine is another one than that of an installation.
struct Machine {
    systemd: Component,
}

impl Machine {
    /// `None`: there is no systemd to be had here.
    fn boot(scene: &Scene) -> Option<Self> {
        let programs = path("RUNNER_CORE").parent().expect("a directory").to_path_buf();
        let folders = format!("{} {}", programs.display(), scene.workshop.dir().display());
        let systemd = Component::start_with("systemd", &[("BIND", &folders)])?;
        let machine = Self { systemd };
        let units = repository::root().join("packaging/systemd");
        for unit in ["runner-core.service", "runner-core.slice"] {
            let text = std::fs::read_to_string(units.join(unit)).expect("a unit");
            scene.workshop.file(unit, text);
            machine.enter(&["cp", &scene.workshop.path(unit).display().to_string(), "/etc/systemd/system/"]).exits(0);
        }
        let (program, work) = (path("RUNNER_CORE"), scene.workshop.dir().display().to_string());
        let changed = format!(
            "[Service]\nExecStart=\nExecStart={} run --config {work}/config.toml --state {work}/state --log-level debug\nWorkingDirectory={work}\n\
             Environment=PATH={}:/usr/bin:/bin\n",
            program.display(),
            programs.display()
        );
        let file = scene.workshop.file("changed.conf", changed).display().to_string();
        machine.enter(&["install", "-D", &file, "/etc/systemd/system/runner-core.service.d/changed.conf"]).exits(0);
        machine.systemctl(&["daemon-reload"]);
        Some(machine)
    }

    fn enter(&self, command: &[&str]) -> Finished {
        let arguments = self.systemd.get("ENTER").split_whitespace().chain(command.iter().copied());
        Invocation::of(Path::new("/usr/bin/nsenter"), arguments).finish()
    }

    #[track_caller]
    fn systemctl(&self, arguments: &[&str]) -> String {
        let command: Vec<&str> = ["systemctl"].into_iter().chain(arguments.iter().copied()).collect();
        self.enter(&command).exits(0).stdout()
    }
}

fn has_line(world: &World, line: &str) -> bool {
    let line = format!("{line}\n");
    world.jobs().values().all(|job| job.trace.windows(line.len()).any(|window| window == line.as_bytes()))
}

/// The control groups of the agents, by the processes that listen on their sockets.
fn groups_of_agents(scene: &Scene) -> Vec<String> {
    let group = |pid: Pid| std::fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).unwrap_or_default();
    scene.agents().into_iter().map(group).collect()
}

#[test]
fn stop_and_restart_of_the_unit_leave_the_jobs_running_and_lose_nothing() {
    let script = ["for i in $(seq 1 40); do echo line $i; sleep 0.1; done", "echo done"];
    let scene = Scene::with(vec![jobs(4, &script)], |_: &mut Scenario| {});
    let Some(machine) = Machine::boot(&scene) else { return };
    machine.systemctl(&["start", "runner-core"]);
    scene.until(|world| has_line(world, "line 3"));
    let groups = groups_of_agents(&scene);
    assert!(!groups.is_empty(), "there are agents");
    for group in &groups {
        assert!(group.contains("runner-core.slice/run-") && !group.contains("runner-core.service"), "{group}");
    }
    machine.systemctl(&["restart", "runner-core"]);
    scene.until(|world| has_line(world, "line 8"));
    machine.systemctl(&["stop", "runner-core"]);
    let state = machine.systemctl(&["show", "--property=ActiveState,Result,ExecMainStatus", "runner-core"]);
    assert_eq!(state, "Result=success\nExecMainStatus=0\nActiveState=inactive\n");
    assert_eq!(groups_of_agents(&scene), groups, "the agents go on");
    machine.systemctl(&["start", "runner-core"]);
    scene.until(|world| has_line(world, "line 20"));
    machine.systemctl(&["kill", "--signal=KILL", "--kill-whom=main", "runner-core"]);
    scene.until_all_ended();
    check_lines(&scene);
    let report = scene.server.report().without_offsets();
    assert!(Report::is_clean(&report), "{report}");
    machine.systemctl(&["stop", "runner-core"]);
}
