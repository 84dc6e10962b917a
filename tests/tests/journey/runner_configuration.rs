//! The configuration of the runner: it is checked, runners are registered, listed, verified and removed, and what a person wrote stays.

use super::runner_run::Scene;
use ci_tests::program::Invocation;
use ci_tests::workshop::Ends;
use std::os::unix::fs::PermissionsExt as _;

const WRITTEN: &str = "# Ours.\r\nconcurrent = 3   # three\r\n\r\n[session_server]\r\n  session_timeout = 60\r\n";

fn command(scene: &Scene, arguments: &[&str]) -> Invocation {
    scene.workshop.runner_core(arguments)
}

#[test]
fn a_check_names_every_key_and_ends_with_one_when_something_is_wrong() {
    let scene = Scene::new(Vec::new());
    scene.workshop.file("complete.toml", include_str!("../../../runner-core/config/tests/fixtures/autoscale/complete.toml"));
    let checked =
        command(&scene, &["config", "check", "--config", "complete.toml", "--at", "2026-03-02T09:00:00Z"]).env("TZ", "UTC").ends(0);
    let checked = checked.prints("honoured   runners[0].limit\n").prints("27 keys: 23 honoured, 4 mapped, 0 without effect\n");
    let checked = checked.prints("runner `autoscale-runner`: at most 10 machines\n");
    checked.prints("at 2026-03-02 09:00:00 UTC: 50 idle machines for 3600 s, by [[runners.machine.autoscaling]] 1 of 2");

    scene
        .workshop
        .file("wrong.toml", "concurrent = 0\n[[runners]]\ntoken = \"glrt-swordfish\"\nurl = \"https://x\"\nexecutor = \"shel\"\n");
    let checked = command(&scene, &["config", "check", "--config", "wrong.toml"]).ends(1);
    let checked = checked.prints("there is no executor `shel`").prints("did you mean `shell`?");
    assert!(!checked.stdout().contains("swordfish"), "{checked}");
    command(&scene, &["config", "check", "--config", "nowhere.toml"]).ends(3);
}

#[test]
fn a_runner_is_registered_listed_verified_and_removed_and_all_else_stays() {
    let scene = Scene::new(Vec::new());
    let (url, workshop) = (scene.server.url(), &scene.workshop);
    workshop.file("config.toml", WRITTEN);
    let base = ["--config", "config.toml"];
    let register = |more: &[&str]| {
        let fixed = ["register", "--url", &url, "--executor", "shell", "--non-interactive"];
        command(&scene, &fixed.into_iter().chain(base).chain(more.iter().copied()).collect::<Vec<_>>())
    };
    register(&["--name", "by-user", "--set", "limit=2"]).env("GITLAB_USER_TOKEN", "glpat-user").ends(0).prints("runner `by-user` (id ");
    register(&["--name", "of-old", "--registration-token", "GR1348941registration"]).ends(0);
    let written = workshop.read("config.toml");
    assert!(
        written.starts_with(WRITTEN) && written.contains("\r\n  limit = 2\r\n") && !written.replace("\r\n", "").contains('\n'),
        "{written}"
    );
    assert_eq!(workshop.path("config.toml").metadata().expect("a file").permissions().mode() & 0o077 & !0o044, 0);

    let listed = command(&scene, &["list", "--config", "config.toml"])
        .ends(0)
        .prints("by-user  executor=shell  id=")
        .prints("of-old  executor=shell");
    let token = written.lines().find_map(|line| line.trim().strip_prefix("token = \"")).expect("a token").trim_end_matches('"').to_owned();
    assert!(!listed.stdout().contains(&token), "{listed}");
    command(&scene, &["verify", "--config", "config.toml"]).ends(0).prints("runner `by-user`: is known to");

    command(&scene, &["unregister", "--config", "config.toml", "--name", "of-old"]).ends(0).prints("runner `of-old`: is unregistered");
    command(&scene, &["unregister", "--config", "config.toml", "--name", "of-old"]).ends(3).says("there is no such runner");
    command(&scene, &["unregister", "--config", "config.toml", "--all-runners"]).ends(0);
    assert_eq!(workshop.read("config.toml").trim_end(), WRITTEN.trim_end());
}

#[test]
fn a_runner_of_the_interface_is_taken_by_its_token_and_one_that_is_unknown_is_refused() {
    let scene = Scene::new(Vec::new());
    let url = scene.server.url();
    let register = |token: &str, more: &[&str]| {
        let fixed = ["register", "--url", &url, "--executor", "shell", "-n", "--config", "new/config.toml", "--name", "x"];
        command(&scene, &fixed.into_iter().chain(more.iter().copied()).collect::<Vec<_>>()).env("CI_SERVER_TOKEN", token)
    };
    register("glrt-journey-runner-token", &["--tag-list", "a"]).ends(2).says("stand there already");
    let unknown = register("glrt-swordfish", &[]).ends(3).says("does not know this token");
    assert!(!unknown.stderr().contains("swordfish"), "{unknown}");
    register("glrt-journey-runner-token", &["--set", "executor.x=1"]).ends(2).says("the runner would not work");
    assert!(!scene.workshop.path("new/config.toml").exists());
    register("glrt-journey-runner-token", &[]).ends(0);
    let mode = scene.workshop.path("new/config.toml").metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_entry_that_the_server_does_not_know_is_said_and_removed_when_asked() {
    let scene = Scene::new(Vec::new());
    let entry = |name: &str, token: &str| {
        format!("[[runners]]\nname = \"{name}\"\nurl = \"{}\"\ntoken = \"{token}\"\nexecutor = \"shell\"\n", scene.server.url())
    };
    let text = entry("good", "glrt-journey-runner-token") + "\n# The bad one.\n" + &entry("bad", "glrt-nobody");
    scene.workshop.file("config.toml", text);
    let verified = command(&scene, &["verify", "--config", "config.toml"]).ends(1);
    verified.prints("runner `good`: is known to").prints("runner `bad`: is not known to");
    command(&scene, &["verify", "--config", "config.toml", "--delete"]).ends(0).prints("its entry was removed");
    assert_eq!(scene.workshop.read("config.toml").trim_end(), entry("good", "glrt-journey-runner-token").trim_end());
}
