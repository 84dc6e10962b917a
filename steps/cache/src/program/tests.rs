//! Caches in a directory, from files to files.

use super::*;
use crate::settings::tests::inputs;
use std::fs;
use std::path::PathBuf;

struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["job", "next"] {
            fs::create_dir_all(world.path(name)).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| format!("({})", error.kind()))
    }

    /// The outputs, as key and whether it was the key itself.
    fn run(&self, root: &str, inputs: Inputs) -> Result<(String, bool), Failure> {
        let file = self.path("outputs");
        let _ = fs::remove_file(&file);
        let outputs = file.clone();
        let step = Step::of(move |name| (name == "STEP_RUNNER_OUTPUT_FILE").then(|| outputs.clone().into()));
        let directory = self.path("caches").display().to_string();
        let outcome = run_in(&step, &Settings::of(Inputs { directory, ..inputs })?, &self.path(root));
        let text = fs::read_to_string(file).unwrap_or_default();
        let values: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["value"].clone()).collect();
        outcome.map(|()| (values[0].as_str().unwrap().to_owned(), values[1].as_bool().unwrap()))
    }

    fn save(&self, key: &str, format: &str) -> Result<(String, bool), Failure> {
        let paths = vec!["deps/".to_owned()];
        self.run("job", Inputs { action: "archive".into(), key: key.into(), paths, format: format.into(), ..inputs() })
    }

    fn restore(&self, key: &str, fallback_keys: &[&str]) -> Result<(String, bool), Failure> {
        let fallback_keys = fallback_keys.iter().map(|key| (*key).to_owned()).collect();
        self.run("next", Inputs { key: key.into(), fallback_keys, ..inputs() })
    }
}

fn found(key: &str, hit: bool) -> Result<(String, bool), Failure> {
    Ok((key.to_owned(), hit))
}

#[test]
fn what_was_saved_is_restored_in_both_formats() {
    for format in ["zip", "tarzstd", "zipzstd"] {
        let world = World::new();
        world.write("job/deps/a/b", "text");
        world.write("job/other", "not cached");
        assert_eq!(world.save("job name/main", format), found("job name/main", true));
        assert_eq!(world.restore("job name/main", &[]), found("job name/main", true));
        assert_eq!((world.read("next/deps/a/b").as_str(), world.path("next/other").exists()), ("text", false));
        assert!(world.path("caches/job name/main/cache.zip").is_file());
    }
}

#[test]
fn the_first_key_that_has_something_is_restored() {
    let world = World::new();
    world.write("job/deps/a", "of main");
    world.save("main", "zip").unwrap();
    assert_eq!(world.restore("branch", &["none", "main"]), found("main", false));
    assert_eq!(world.read("next/deps/a"), "of main");
}

#[test]
fn where_nothing_was_saved_nothing_is_restored_and_nothing_fails() {
    let world = World::new();
    assert_eq!(world.restore("main", &["other"]), found("", false));
}

#[test]
fn a_key_below_another_does_not_take_its_place() {
    let world = World::new();
    world.write("job/deps/a", "outer");
    world.save("main", "zip").unwrap();
    world.write("job/deps/a", "inner");
    world.save("main/arm", "zip").unwrap();
    world.restore("main", &[]).unwrap();
    assert_eq!(world.read("next/deps/a"), "outer");
}

#[test]
fn nothing_is_saved_when_there_are_no_files() {
    let world = World::new();
    assert_eq!(world.save("main", "zip"), found("", false));
    assert!(!world.path("caches").exists());
}

#[test]
fn a_damaged_archive_changes_nothing_and_the_next_key_is_tried() {
    let world = World::new();
    world.write("job/deps/a", "good");
    world.save("main", "zip").unwrap();
    world.write("caches/branch/cache.zip", "PK\u{3}\u{4}damage");
    world.write("next/deps/a", "old");
    assert_eq!(world.restore("branch", &["main"]), found("main", false));
    assert_eq!(world.read("next/deps/a"), "good");
    let failure = world.restore("branch", &[]).unwrap_err();
    assert!(failure.message.starts_with("could not restore the cache `branch`: it is damaged:"), "{failure}");
    assert_eq!(failure.exit_code(), 1);
}

#[test]
fn an_archive_that_is_too_large_does_not_replace_the_last_one() {
    let world = World::new();
    world.write("job/deps/a", "small");
    world.save("main", "zip").unwrap();
    let before = fs::read(world.path("caches/main/cache.zip")).unwrap();
    let limited = Inputs { action: "archive".into(), key: "main".into(), paths: vec!["deps".into()], max_size: 10.0, ..inputs() };
    let failure = world.run("job", limited).unwrap_err();
    assert!(failure.message.contains("and 10 bytes is the most that is kept here"), "{failure}");
    assert_eq!(fs::read(world.path("caches/main/cache.zip")).unwrap(), before);
    assert_eq!(fs::read_dir(world.path("caches/main")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn untracked_files_are_cached_when_they_are_asked_for() {
    let world = World::new();
    assert!(std::process::Command::new("git").args(["init", "--quiet"]).current_dir(world.path("job")).status().unwrap().success());
    world.write("job/generated", "text");
    let untracked = Inputs { action: "archive".into(), key: "main".into(), untracked: true, ..inputs() };
    assert_eq!(world.run("job", untracked), found("main", true));
    world.restore("main", &[]).unwrap();
    assert_eq!(world.read("next/generated"), "text");
}
