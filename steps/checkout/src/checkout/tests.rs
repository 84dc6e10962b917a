//! Checkouts with the real git, from repositories on this disk.

use super::*;
use crate::settings::tests::inputs;
use std::process::Command;

/// A repository with a few commits, and a place to check them out.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.path("origin")).unwrap();
        fs::create_dir_all(world.path("tree")).unwrap();
        world.git(&["init", "--quiet", "--initial-branch=main", "."]);
        world.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        world.commit("a.txt", "one");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn git(&self, words: &[&str]) -> String {
        let author = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
        let mut command = Command::new("git");
        for name in NO_GIT_OF_CALLERS {
            command.env_remove(name);
        }
        let output = command.args(author).args(words).current_dir(self.path("origin")).output().unwrap();
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, file: &str, text: &str) -> String {
        fs::write(self.path("origin").join(file), text).unwrap();
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", text]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn inputs(&self, sha: &str) -> Inputs {
        let repo_url = format!("file://{}", self.path("origin").display());
        Inputs { repo_url, sha: sha.to_owned(), fetch_flags: vec!["--quiet".into()], ..inputs() }
    }

    fn check_out(&self, inputs: Inputs) -> Result<String, Failure> {
        let outputs = self.path("outputs");
        let _ = fs::remove_file(&outputs);
        let (file, clean_up) = (outputs.clone(), self.path("clean-up"));
        let step = Step::of(move |name| match name {
            "STEP_RUNNER_OUTPUT_FILE" => Some(file.clone().into()),
            "STEP_RUNNER_CLEANUP" => Some(clean_up.clone().into()),
            _ => None,
        });
        run_in(&step, &Settings::of(inputs)?, &self.path("tree"))?;
        Ok(fs::read_to_string(outputs).unwrap())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path("tree").join(name)).unwrap_or_else(|error| format!("({error})"))
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path("tree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const NO_GIT_OF_CALLERS: [&str; 3] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"];

#[test]
fn a_commit_is_checked_out_and_named() {
    let world = World::new();
    let sha = world.git(&["rev-parse", "HEAD"]);
    world.commit("a.txt", "two");
    let outputs = world.check_out(world.inputs(&sha)).unwrap();
    assert_eq!(world.read("a.txt"), "one");
    assert_eq!(outputs, format!("{{\"name\":\"commit\",\"value\":\"{sha}\"}}\n{{\"name\":\"ref\",\"value\":\"main\"}}\n"));
}

#[test]
fn a_second_checkout_fetches_into_the_first_and_cleans_it() {
    let world = World::new();
    let first = world.git(&["rev-parse", "HEAD"]);
    world.check_out(world.inputs(&first)).unwrap();
    world.write("a.txt", "changed");
    world.write("left-over", "");
    world.write(".git/kept", "");
    let second = world.commit("b.txt", "two");
    world.check_out(world.inputs(&second)).unwrap();
    assert_eq!((world.read("a.txt"), world.read("b.txt")), ("one".into(), "two".into()));
    assert!(!world.path("tree/left-over").exists() && world.path("tree/.git/kept").exists(), "used again");
}

#[test]
fn a_history_of_some_commits_is_one_of_some_commits() {
    let world = World::new();
    let commits: Vec<_> = (0..4).map(|number| world.commit("a.txt", &format!("commit {number}"))).collect();
    world.check_out(Inputs { depth: 2.0, ..world.inputs(&commits[3]) }).unwrap();
    let count =
        |world: &World| Git::new(&world.path("tree"), Vec::new(), Vec::new()).ask(&["rev-list", "--count", "HEAD"]).unwrap().unwrap();
    assert_eq!(count(&world), "2");
    world.check_out(world.inputs(&commits[3])).unwrap();
    assert_eq!(count(&world), "5", "the rest is fetched when it is wanted");
}

#[test]
fn a_ref_is_checked_out_where_it_is_now() {
    let world = World::new();
    let sha = world.commit("a.txt", "two");
    world.git(&["tag", "v1"]);
    for reference in ["main", "v1", "refs/heads/main"] {
        let outputs = world.check_out(Inputs { reference: reference.into(), ..world.inputs("") }).unwrap();
        assert!(outputs.contains(&sha), "{reference}: {outputs}");
    }
}

#[test]
fn locks_and_half_fetched_packs_of_a_killed_job_are_removed() {
    let world = World::new();
    let first = world.git(&["rev-parse", "HEAD"]);
    world.check_out(world.inputs(&first)).unwrap();
    for left in [".git/index.lock", ".git/HEAD.lock", ".git/shallow.lock", ".git/config.lock", ".git/objects/pack/tmp_pack_x"] {
        world.write(left, "");
    }
    let second = world.commit("a.txt", "two");
    world.write(".git/kept", "");
    world.check_out(world.inputs(&second)).unwrap();
    assert_eq!(world.read("a.txt"), "two");
    assert!(world.path("tree/.git/kept").exists() && !world.path("tree/.git/objects/pack/tmp_pack_x").exists());
}

#[test]
fn a_tree_with_damaged_objects_is_begun_anew() {
    let world = World::new();
    let first = world.git(&["rev-parse", "HEAD"]);
    world.check_out(world.inputs(&first)).unwrap();
    let objects = world.path("tree/.git/objects");
    for file in walk(&objects).into_iter().filter(|path| path.is_file()) {
        tree::remove(&file).unwrap();
        fs::write(&file, "damage").unwrap();
    }
    world.write(".git/gone", "");
    let second = world.commit("a.txt", "two");
    world.check_out(world.inputs(&second)).unwrap();
    assert_eq!(world.read("a.txt"), "two");
    assert!(!world.path("tree/.git/gone").exists());
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.iter().flat_map(|path| walk(path)).chain(entries.clone()).collect()
}

type Damage = fn(&World);

#[test]
fn every_kind_of_damage_ends_in_the_right_files() {
    let damages: [(&str, Damage); 6] = [
        ("no HEAD", |world| tree::remove(&world.path("tree/.git/HEAD")).unwrap()),
        ("garbage in HEAD", |world| world.write(".git/HEAD", "\0\0")),
        ("garbage in the index", |world| world.write(".git/index", "garbage")),
        ("garbage in a ref", |world| world.write(".git/packed-refs", "garbage")),
        ("no objects", |world| tree::remove(&world.path("tree/.git/objects")).unwrap()),
        ("a shallow file of nothing", |world| world.write(".git/shallow", "garbage")),
    ];
    for (what, damage) in damages {
        let world = World::new();
        let first = world.git(&["rev-parse", "HEAD"]);
        world.check_out(world.inputs(&first)).unwrap();
        let second = world.commit("a.txt", "two");
        damage(&world);
        world.check_out(world.inputs(&second)).unwrap_or_else(|failure| panic!("{what}: {failure}"));
        assert_eq!(world.read("a.txt"), "two", "{what}");
    }
}

#[test]
fn commands_that_an_earlier_job_wrote_into_the_configuration_do_not_run() {
    let world = World::new();
    let first = world.git(&["rev-parse", "HEAD"]);
    world.check_out(world.inputs(&first)).unwrap();
    let proof = world.path("proof");
    world.write(".git/hooks/post-checkout", &format!("#!/bin/sh\ntouch {}\n", proof.display()));
    #[cfg(unix)]
    fs::set_permissions(world.path("tree/.git/hooks/post-checkout"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let config = world.read(".git/config");
    world
        .write(".git/config", &format!("{config}[core]\n\tfsmonitor = touch {0}\n[filter \"x\"]\n\tsmudge = touch {0}\n", proof.display()));
    world.write(".git/info/attributes", "* filter=x\n");
    let second = world.commit("a.txt", "two");
    world.check_out(world.inputs(&second)).unwrap();
    assert!(!proof.exists());
}

#[test]
fn a_directory_with_files_of_a_person_is_not_touched() {
    let world = World::new();
    let sha = world.git(&["rev-parse", "HEAD"]);
    world.write("work", "of a week");
    let failure = world.check_out(world.inputs(&sha)).unwrap_err();
    assert_eq!((failure.exit_code(), world.read("work")), (3, "of a week".into()));
    assert!(failure.message.ends_with("the directory holds files that no checkout put there"), "{failure}");
    world.check_out(Inputs { take_over: true, ..world.inputs(&sha) }).unwrap();
    assert_eq!(world.read("a.txt"), "one");
}

#[test]
fn a_commit_that_is_not_there_fails_with_the_way_out() {
    let world = World::new();
    let failure = world.check_out(world.inputs(&"0123456789".repeat(4))).unwrap_err();
    assert_eq!((failure.message.as_str(), failure.exit_code()), ("`git fetch` has failed", 1));
}

#[test]
fn the_strategies_none_and_empty_fetch_nothing() {
    let world = World::new();
    let sha = world.git(&["rev-parse", "HEAD"]);
    world.write("work", "kept");
    let none = world.check_out(Inputs { strategy: "none".into(), attempts: 1.0, ..Inputs::default() }).unwrap();
    assert_eq!((world.read("work"), none.contains(&sha)), ("kept".into(), false));
    world.check_out(Inputs { take_over: true, ..world.inputs(&sha) }).unwrap();
    world.check_out(Inputs { strategy: "empty".into(), attempts: 1.0, ..Inputs::default() }).unwrap();
    assert!(tree::look(&world.path("tree")).unwrap().is_empty);
}

#[test]
fn files_stay_as_they_are_when_nothing_is_to_be_checked_out() {
    let world = World::new();
    let first = world.git(&["rev-parse", "HEAD"]);
    world.check_out(world.inputs(&first)).unwrap();
    world.write("a.txt", "changed");
    let second = world.commit("a.txt", "two");
    world.check_out(Inputs { checkout: false, ..world.inputs(&second) }).unwrap();
    assert_eq!(world.read("a.txt"), "changed");
    let git = Git::new(&world.path("tree"), Vec::new(), Vec::new());
    assert!(git.ask(&["cat-file", "-e", &second]).unwrap().is_some(), "fetched");
}

#[test]
fn a_repository_of_the_other_hash_is_checked_out() {
    let world = World::new();
    tree::empty(&world.path("origin")).unwrap();
    world.git(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256", "."]);
    let sha = world.commit("a.txt", "long");
    let wanted = Inputs { object_format: "sha256".into(), ..world.inputs(&sha) };
    world.check_out(wanted.clone()).unwrap();
    world.write(".git/kept", "");
    world.check_out(wanted).unwrap();
    assert_eq!((world.read("a.txt").as_str(), world.read(".git/kept").as_str()), ("long", ""));
}

#[test]
fn a_key_for_ssh_lies_in_a_private_file_while_the_step_runs() {
    let world = World::new();
    let key = Inputs { ssh_key: "KEY\r\nTEXT".into(), ssh_known_hosts: "host key".into(), ..world.inputs(&"0".repeat(40)) };
    let source = Settings::of(key).unwrap().source;
    let clean_up = world.path("clean-up");
    let step = Step::of(|name| (name == "STEP_RUNNER_CLEANUP").then(|| clean_up.clone().into()));
    let private = Private::of(source.as_ref(), &step).unwrap();
    let file = private.files.key.clone().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "KEY\nTEXT\n");
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
    let directory = file.parent().unwrap().to_owned();
    assert!(fs::read_to_string(&clean_up).unwrap().contains(&format!("\"checkout\",\"clean-up\",\"{}\"", directory.display())));
    clean_up_is_careful(&directory);
    drop(private);
    assert!(!directory.exists());
}

fn clean_up_is_careful(directory: &Path) {
    assert_eq!(clean_up("/etc").unwrap_err().message, "`/etc` was not made by a checkout");
    assert!(clean_up(&directory.display().to_string()).is_ok() && !directory.exists());
}
