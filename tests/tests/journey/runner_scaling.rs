//! A group goes from nothing to what its jobs need and back, and a job that waits says for what.

use super::runner_run::{Scene, jobs};
use std::time::{Duration, Instant};

/// Directories of instances.
fn instances(scene: &Scene) -> usize {
    let entries = std::fs::read_dir(scene.workshop.path("agents")).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("i-")).count()
}

/// Looks until it is so, as long as a busy machine may need.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(100), "{what} does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_group_goes_from_none_to_three_and_back_to_none_and_a_job_that_waits_says_for_what() {
    // Four jobs that end when they are told to, and at most three instances of one place each.
    let scene = Scene::new(vec![jobs(4, &["while [ ! -e \"$GATE\" ]; do sleep 0.05; done"])]);
    let gate = scene.workshop.path("gate");
    let file = scene.workshop.path("config.toml");
    let text = std::fs::read_to_string(&file).expect("a configuration");
    let text = text
        .replace("capacity_per_instance = 2\nmax_instances = 2\n", "capacity_per_instance = 1\nmax_instances = 3\n")
        .replace("[runners.autoscaler.plugin_config]\n", "[runners.autoscaler.plugin_config]\nmax_size = 3\n")
        .replace("request_concurrency = 4\n", &format!("request_concurrency = 4\nenvironment = [\"GATE={}\"]\n", gate.display()))
        .replace("idle_count = 0\n", "idle_count = 0\nidle_time = \"1s\"\n");
    std::fs::write(&file, text).expect("a configuration");
    assert_eq!(instances(&scene), 0);
    let runner = scene.run();
    until("a third instance", || instances(&scene) == 3);
    // Three hold all places there may be; the fourth job stays with the server, and is not known here.
    let unknown = scene.workshop.runner_core(&["why", "4711", "--config", "config.toml"]).finish().exits(1);
    assert!(unknown.stdout().contains("job 4711 is not here"), "{}", unknown.stdout());
    std::fs::write(&gate, "").expect("a gate");
    scene.until_all_ended();
    until("the last instance gone", || instances(&scene) == 0);
    scene.end(runner, |report| report);
}
