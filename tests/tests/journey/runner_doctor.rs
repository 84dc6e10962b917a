//! `runner-core doctor`: what works is said, what does not is said with the way out, and nothing is left behind.

use super::runner_run::{Scene, jobs};
use ci_tests::program::{Invocation, path};
use rustix::process::Signal;
use serde_json::Value;

/// One more entry of the configuration, which differs from a good one in what is given.
fn entry(scene: &Scene, name: &str, url: &str, token: &str, executor: &str, plugin: &str, plugin_config: &str) -> String {
    let builds = scene.workshop.path("builds");
    let autoscaler = format!(
        "[runners.autoscaler]\nplugin = \"{plugin}\"\ncapacity_per_instance = 1\nmax_instances = 1\n[runners.autoscaler.plugin_config]\n{plugin_config}\n\
         [[runners.autoscaler.policy]]\nidle_count = 0\n"
    );
    format!(
        "\n[[runners]]\nname = \"{name}\"\nurl = \"{url}\"\ntoken = \"{token}\"\nexecutor = \"{executor}\"\nbuilds_dir = \"{}\"\n{}",
        builds.display(),
        if executor == "instance" { autoscaler } else { String::new() }
    )
}

const TOKEN: &str = "glrt-journey-runner-token";

fn plugin_config(scene: &Scene, program: &str) -> String {
    format!("directory = \"{}\"\nprogram = \"{program}\"\nstop_timeout = \"1s\"", scene.workshop.path("own").display())
}

fn doctor(scene: &Scene, more: &[&str]) -> Invocation {
    let arguments: Vec<&str> = ["doctor", "--config", "config.toml"].into_iter().chain(more.iter().copied()).collect();
    scene.workshop.runner_core(&arguments).env("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// Instances below a directory, by their names.
fn instances(scene: &Scene, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(scene.workshop.path(directory)).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.starts_with("i-")).collect()
}

fn outcome<'a>(sheet: &'a Value, check: &str) -> (&'a str, String) {
    let checks = sheet["checks"].as_array().expect("checks");
    let found = checks.iter().find(|found| found["check"] == check).unwrap_or_else(|| panic!("{check} is in {sheet:#}"));
    (found["outcome"].as_str().expect("an outcome"), format!("{} {}", found["what"], found["hint"]))
}

#[test]
fn runners_that_work_are_said_to_work_and_nothing_is_left_behind() {
    let scene = Scene::new(Vec::new());
    let text = scene.workshop.read("config.toml") + &entry(&scene, "here", &scene.server.url(), TOKEN, "shell", "", "");
    scene.workshop.file("config.toml", text);
    let finished = doctor(&scene, &[]).finish().exits(0);
    let printed = finished.stdout();
    assert_eq!(printed.matches("  ok       job       a job of one step ran in ").count(), 2, "{finished}");
    assert!(printed.contains("runner journey (") && printed.ends_with("2 runners: all that was tried works\n"), "{finished}");
    assert!(!printed.contains("FAILED") && !printed.contains("skipped") && !printed.contains(TOKEN), "{finished}");
    assert_eq!(instances(&scene, "agents"), Vec::<String>::new());
    assert_eq!(scene.workshop.left_behind(), Vec::<String>::new());
    assert!(!scene.workshop.path("builds").exists());
    let report = scene.server.report();
    assert!(report.violations.is_empty(), "{report}");
}

#[test]
fn what_does_not_work_is_said_for_each_runner_with_the_way_out() {
    let scene = Scene::new(Vec::new());
    let (url, agent) = (scene.server.url(), path("STEP_RUNNER").display().to_string());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let good = plugin_config(&scene, &agent);
    let text = [
        "concurrent = 4\n".to_owned(),
        entry(&scene, "away", &format!("http://{nobody}"), TOKEN, "instance", "local", &good),
        entry(&scene, "removed", &url, "glrt-nobody-knows-it", "instance", "local", &good),
        entry(&scene, "no-plugin", &url, TOKEN, "instance", "aws-that-is-not-here", "name = \"x\""),
        entry(&scene, "bad-plugin-config", &url, TOKEN, "instance", "local", "directory = \"relative\""),
        entry(&scene, "no-agent", &url, TOKEN, "instance", "local", &plugin_config(&scene, "/bin/false")),
        entry(&scene, "refused", &url, TOKEN, "parallels", "", ""),
    ]
    .concat();
    scene.workshop.file("config.toml", text);
    let finished = doctor(&scene, &["--output", "json", "--wait", "3"]).finish().exits(1);
    let all: Value = serde_json::from_str(&finished.stdout()).unwrap_or_else(|fault| panic!("{fault}\n{finished}"));
    let of =
        |name: &str| all["runners"].as_array().expect("runners").iter().find(|sheet| sheet["runner"] == name).expect("a runner").clone();
    let failed = |name: &str, check: &str, words: &str| {
        let sheet = of(name);
        let (found, text) = outcome(&sheet, check);
        assert!(found == "failed" && text.contains(words), "{name} {check} {words}\n{sheet:#}");
    };
    failed("away", "server", "host and port");
    assert_eq!(outcome(&of("away"), "token").0, "skipped");
    assert_eq!(outcome(&of("away"), "job").0, "ok", "a server that is away hides nothing about the environment");
    failed("removed", "token", "runner-core register");
    assert_eq!(outcome(&of("removed"), "job").0, "ok");
    failed("no-plugin", "plugin", "install it");
    assert_eq!(outcome(&of("no-plugin"), "job").0, "skipped");
    failed("bad-plugin-config", "plugin", "plugin_config");
    let no_agent = of("no-agent");
    assert!(["instance", "login"].iter().any(|check| outcome(&no_agent, check).0 == "failed"), "{no_agent:#}");
    failed("refused", "entry", "config check");
    assert!(!finished.stdout().contains("glrt-"), "no token is told");
    assert_eq!(instances(&scene, "own"), Vec::<String>::new());
    doctor(&scene, &["--runner", "removed"]).finish().exits(1).prints("FAILED   token").prints("1 runner: 1 does not work");
    doctor(&scene, &["--runner", "nobody"]).finish().exits(3).says("there is no such runner");
    scene.workshop.file("config.toml", "concurrent = [");
    doctor(&scene, &[]).finish().exits(3).says("config check");
}

#[test]
fn a_doctor_that_is_interrupted_removes_what_it_made() {
    let scene = Scene::new(Vec::new());
    let sleeper = scene.workshop.file("sleeper", "#!/bin/sh\nexec sleep 600\n");
    std::fs::set_permissions(&sleeper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
    let config = plugin_config(&scene, &sleeper.display().to_string());
    let text = entry(&scene, "slow", &scene.server.url(), TOKEN, "instance", "local", &config);
    scene.workshop.file("config.toml", format!("concurrent = 1\n{text}"));
    let mut doctor = doctor(&scene, &[]).start();
    doctor.wait_for("plugin");
    while instances(&scene, "own").is_empty() {
        std::thread::yield_now();
    }
    doctor.signal(Signal::INT);
    doctor.finish().exits(130);
    assert_eq!(instances(&scene, "own"), Vec::<String>::new());
}

#[test]
fn beside_a_runner_that_serves_the_configuration_no_instance_is_made_and_one_that_is_there_is_used() {
    let scene = Scene::new(Vec::new());
    let mut runner = scene.run();
    runner.wait_for("runner-core begins");
    // Another group, of which nobody has an instance.
    let config = plugin_config(&scene, &path("STEP_RUNNER").display().to_string());
    let text = entry(&scene, "other", &scene.server.url(), TOKEN, "instance", "local", &config);
    scene.workshop.file("other.toml", format!("concurrent = 1\n{text}"));
    let other = scene.workshop.runner_core(&["doctor", "--config", "other.toml", "--state", ".runner-core"]).finish().exits(0);
    other
        .prints("skipped  instance  none is there, and a runner that serves this configuration now")
        .prints("skipped  job       because of `instance`");
    assert_eq!(instances(&scene, "own"), Vec::<String>::new());
    scene.server.plan(&jobs(1, &["echo begun", "sleep 3", "echo done"]));
    scene.until(|world| world.jobs().values().all(|job| job.trace.windows(6).any(|window| window == b"begun\n")));
    doctor(&scene, &[]).finish().exits(0).prints("is there").prints("ok       job");
    scene.until_all_ended();
    let report = scene.server.report();
    assert_eq!(report.ended.get("success"), Some(&1), "{report}");
    scene.end(runner, |report| report);
}
