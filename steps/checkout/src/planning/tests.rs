//! Plans as a person would write them down.

use super::*;
use crate::inputs::Inputs;
use crate::settings::ObjectFormat;
use crate::settings::tests::{SHA, inputs};
use crate::tree::Repository;

fn found() -> Repository {
    Repository {
        is_ours: true,
        is_whole: true,
        url: Some("https://git.example/group/app.git".into()),
        object_format: ObjectFormat::Sha1,
        is_shallow: true,
        has_modules: false,
        left: Vec::new(),
    }
}

fn holding(repository: Repository) -> Tree {
    Tree { is_empty: false, repository: Some(repository) }
}

fn empty() -> Tree {
    Tree { is_empty: true, repository: None }
}

fn shown(inputs: Inputs, tree: &Tree, start_over: bool) -> String {
    let tasks = match plan(&Settings::of(inputs).unwrap(), tree, start_over) {
        Ok(tasks) => tasks,
        Err(refused) => return refused.to_string(),
    };
    let lines = tasks.iter().map(|task| match task {
        Task::Say(text) => format!("# {text}"),
        Task::Git { words, .. } => format!("git {}", words.join(" ")),
        Task::GitUnlessThere { commit, words } => format!("unless {commit}: git {}", words.join(" ")),
        Task::Remove(paths) => format!("rm {}", paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")),
        other => format!("{other:?}"),
    });
    lines.collect::<Vec<_>>().join("\n").replace(SHA, "SHA")
}

/// Only what differs from the plan for an empty directory.
fn first(inputs: Inputs, tree: &Tree) -> String {
    shown(inputs, tree, false).lines().next().unwrap().to_owned()
}

#[test]
fn an_empty_directory_gets_a_repository_and_the_commit() {
    insta::assert_snapshot!(shown(Inputs { depth: 20.0, ..inputs() }, &empty(), false), @"
    Empty
    git init --quiet --template= --object-format=sha1 .
    Mark
    git config remote.origin.url https://git.example/group/app.git
    git config remote.origin.fetch +refs/heads/*:refs/remotes/origin/*
    # Fetching changes with git depth set to 20...
    git fetch --no-recurse-submodules --depth=20 --prune --quiet origin SHA
    unless SHA: git fetch --no-recurse-submodules --quiet --depth=20 origin SHA
    # Checking out 2f4b1c0d as detached HEAD (ref is main)...
    git checkout --force --quiet --detach SHA
    git clean -ffdx
    FetchLargeFiles { recursive: false }
    ");
}

#[test]
fn what_is_there_is_fetched_into_without_its_locks_and_its_configuration() {
    let tree = holding(Repository { left: vec![".git/index.lock".into()], ..found() });
    insta::assert_snapshot!(shown(inputs(), &tree, false), @"
    rm .git/index.lock .git/config .git/config.worktree .git/hooks .git/info
    git init --quiet --template= --object-format=sha1 .
    Mark
    git config remote.origin.url https://git.example/group/app.git
    git config remote.origin.fetch +refs/heads/*:refs/remotes/origin/*
    # Fetching changes...
    git fetch --no-recurse-submodules --unshallow --prune --quiet origin SHA
    unless SHA: git fetch --no-recurse-submodules --quiet origin SHA
    # Checking out 2f4b1c0d as detached HEAD (ref is main)...
    git checkout --force --quiet --detach SHA
    git clean -ffdx
    FetchLargeFiles { recursive: false }
    ");
}

#[test]
fn what_cannot_be_used_again_is_begun_anew() {
    let trees = [
        Repository { is_whole: false, ..found() },
        Repository { url: None, ..found() },
        Repository { url: Some("https://git.example/group/other.git".into()), ..found() },
        Repository { object_format: ObjectFormat::Sha256, ..found() },
    ];
    for repository in trees {
        assert_eq!(first(inputs(), &holding(repository.clone())), "Empty", "{repository:?}");
    }
    assert_eq!(first(Inputs { strategy: "clone".into(), ..inputs() }, &holding(found())), "Empty");
    assert_eq!(shown(inputs(), &holding(found()), true).lines().next(), Some("Empty"));
}

#[test]
fn another_address_of_the_same_project_is_no_reason_to_begin_anew() {
    let tree = holding(Repository { url: Some("git@old.example:group/app.git".into()), ..found() });
    assert!(first(inputs(), &tree).starts_with("rm "));
}

#[test]
fn submodules_are_synchronised_updated_and_cleaned() {
    let wanted = Inputs {
        submodules: "recursive".into(),
        submodule_depth: 1.0,
        submodule_paths: vec!["lib".into(), ":(exclude)lib/b".into()],
        submodule_update_flags: vec!["--jobs=4".into()],
        ..inputs()
    };
    let lines: Vec<String> = shown(wanted, &empty(), false).lines().skip(12).map(str::to_owned).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    # Updating/initializing submodules recursively with git depth set to 1...
    git submodule --quiet sync --recursive
    git submodule --quiet update --init --force --recursive --depth=1 --jobs=4 -- lib :(exclude)lib/b
    git submodule --quiet foreach --recursive git clean -ffdx
    FetchLargeFiles { recursive: true }
    ");
}

#[test]
fn submodules_of_an_earlier_job_are_emptied_when_none_are_wanted() {
    let tree = holding(Repository { has_modules: true, ..found() });
    assert!(shown(inputs(), &tree, false).ends_with("git submodule --quiet deinit --force --all"));
}

#[test]
fn a_ref_is_checked_out_as_it_is_now() {
    let wanted = Inputs { sha: String::new(), clean_flags: Vec::new(), lfs: false, ..inputs() };
    let lines: Vec<String> = shown(wanted, &empty(), false).lines().skip(5).map(str::to_owned).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    # Fetching changes...
    git fetch --no-recurse-submodules --prune --quiet origin main
    # Checking out main as detached HEAD...
    git checkout --force --quiet --detach FETCH_HEAD
    ");
}

#[test]
fn the_other_strategies_touch_little() {
    let of = |strategy: &str, tree: &Tree| shown(Inputs { strategy: strategy.into(), ..inputs() }, tree, false);
    assert_eq!(of("none", &holding(Repository { is_ours: false, ..found() })), "# Skipping Git repository setup");
    assert_eq!(of("empty", &holding(found())), "# Skipping Git repository setup and creating an empty build directory\nEmpty");
    let fetched = shown(Inputs { checkout: false, ..inputs() }, &empty(), false);
    assert!(fetched.ends_with("origin SHA\n# Skipping Git checkout"), "{fetched}");
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let foreign = holding(Repository { is_ours: false, ..found() });
    for strategy in ["fetch", "clone", "empty"] {
        let wanted = Inputs { strategy: strategy.into(), ..inputs() };
        assert_eq!(shown(wanted.clone(), &foreign, false), "the directory holds files that no checkout put there");
        assert_eq!(shown(wanted.clone(), &Tree::default(), false), "the directory holds files that no checkout put there");
        assert_ne!(shown(Inputs { take_over: true, ..wanted }, &foreign, false), "the directory holds files that no checkout put there");
    }
}

const FAILED: Met = Met { phase: Phase::Fetch, attempt: 1, reused: true, had_modules: false, remote_answers: true };

#[test]
fn a_tree_that_cannot_be_fetched_into_from_a_server_that_answers_is_damaged() {
    assert_eq!(next(FAILED, 1), Next::StartOver);
    assert_eq!(next(Met { remote_answers: false, ..FAILED }, 1), Next::GiveUp);
    assert_eq!(next(Met { reused: false, ..FAILED }, 1), Next::GiveUp);
    assert!(wants_to_know(Phase::Fetch, true) && !wants_to_know(Phase::Fetch, false) && !wants_to_know(Phase::Local, true));
}

#[test]
fn what_fails_on_the_disk_alone_is_damage_unless_it_is_new() {
    assert_eq!(next(Met { phase: Phase::Local, remote_answers: false, ..FAILED }, 1), Next::StartOver);
    assert_eq!(next(Met { phase: Phase::Local, reused: false, ..FAILED }, 1), Next::GiveUp);
}

#[test]
fn submodules_that_were_never_there_are_not_damaged() {
    let failed = Met { phase: Phase::Submodules, ..FAILED };
    assert_eq!(next(failed, 1), Next::GiveUp);
    assert_eq!(next(Met { had_modules: true, ..failed }, 1), Next::StartOver);
    assert_eq!(next(Met { phase: Phase::LargeFiles, had_modules: true, ..FAILED }, 1), Next::GiveUp);
}

#[test]
fn attempts_come_with_growing_pauses() {
    let failed = Met { reused: false, ..FAILED };
    let pauses: Vec<_> = (1..10).map(|attempt| next(Met { attempt, ..failed }, 10)).collect();
    let seconds = |next: &Next| match next {
        Next::Retry(pause) => pause.as_secs_f64(),
        other => panic!("{other:?}"),
    };
    assert_eq!(pauses.iter().take(3).map(seconds).collect::<Vec<_>>(), [5.0, 7.5, 11.25]);
    assert_eq!(next(Met { attempt: 10, ..failed }, 10), Next::GiveUp);
    assert_eq!(pause(100), LONGEST_PAUSE);
}
