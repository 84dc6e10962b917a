//! From what is wanted and what was found to the commands that lead from one to the other; and what follows when one fails.
//!
//! ```text
//! Settings, Tree --plan--> [Task] --carried out--> done
//!                  ^                     | one fails
//!                  '-- start over, retry <- next
//! ```

use crate::remote::project_of;
use crate::settings::{Depth, Settings, Source, Strategy, Submodules, Wanted};
use crate::tree::Tree;
use std::path::PathBuf;
use std::time::Duration;

/// GitLab's pauses between attempts (GitLab Runner v19.4, `FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY`).
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// A thing to do. Each comes after those before it have been done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    Say(String),
    /// Remove all that is in the directory.
    Empty,
    /// Remove these, below the directory. They may be gone already.
    Remove(Vec<PathBuf>),
    /// Leave the sign that this step made the repository.
    Mark,
    /// `git` with these words, in the directory.
    Git {
        phase: Phase,
        words: Vec<String>,
    },
    /// The same, unless the commit is there.
    GitUnlessThere {
        commit: String,
        words: Vec<String>,
    },
    /// Get the large files, when git can do that.
    FetchLargeFiles {
        recursive: bool,
    },
}

/// How far it has come; what a failure means depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing but the disk is involved.
    Local,
    /// The server of the repository.
    Fetch,
    /// The servers of the submodules.
    Submodules,
    LargeFiles,
}

/// The directory holds what this step did not make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the directory holds files that no checkout put there")]
pub struct NotOurs;

/// The commands that bring the tree to what is wanted. `start_over`: what is there has turned out to be damaged.
/// # Errors
/// Something would have to be removed that is not ours.
pub fn plan(settings: &Settings, tree: &Tree, start_over: bool) -> Result<Vec<Task>, NotOurs> {
    let may_be_changed = tree.is_empty || settings.take_over || tree.repository.as_ref().is_some_and(|repository| repository.is_ours);
    if settings.strategy != Strategy::None && !may_be_changed {
        return Err(NotOurs);
    }
    let mut tasks = Vec::new();
    match (settings.strategy, &settings.source) {
        (Strategy::None, _) => tasks.push(Task::Say("Skipping Git repository setup".to_owned())),
        (Strategy::Empty, _) | (_, None) => {
            tasks.push(Task::Say("Skipping Git repository setup and creating an empty build directory".to_owned()));
            tasks.push(Task::Empty);
        }
        (Strategy::Fetch | Strategy::Clone, Some(source)) => {
            let reused = tree.repository.as_ref().filter(|_| !start_over && is_reused(settings, tree));
            fetch(source, reused.map(|repository| repository.left.clone()), &mut tasks);
            unshallow_or_fetch(source, reused.is_some_and(|repository| repository.is_shallow), &mut tasks);
            if source.checkout {
                check_out(source, &mut tasks);
                let had_modules = reused.is_some_and(|repository| repository.has_modules);
                submodules(source, had_modules, &mut tasks);
            } else {
                tasks.push(Task::Say("Skipping Git checkout".to_owned()));
            }
        }
    }
    Ok(tasks)
}

/// Whether the repository that is there can be the beginning.
pub fn is_reused(settings: &Settings, tree: &Tree) -> bool {
    let (Strategy::Fetch, Some(source), Some(repository)) = (settings.strategy, &settings.source, &tree.repository) else { return false };
    let is_of_this_project = repository.url.as_deref().is_some_and(|url| project_of(url) == source.remote.project());
    repository.is_whole && is_of_this_project && repository.object_format == source.object_format
}

/// A repository that can fetch. `left`: what to remove in the one that is there; `None` makes one.
fn fetch(source: &Source, left: Option<Vec<PathBuf>>, tasks: &mut Vec<Task>) {
    match left {
        None => tasks.push(Task::Empty),
        Some(mut left) => {
            // An earlier job may have written commands there that would run with this job's token.
            left.extend([".git/config", ".git/config.worktree", ".git/hooks", ".git/info"].map(PathBuf::from));
            tasks.push(Task::Remove(left));
        }
    }
    tasks.push(git(Phase::Local, ["init", "--quiet", "--template=", &format!("--object-format={}", source.object_format.name()), "."]));
    tasks.push(Task::Mark);
    tasks.push(git(Phase::Local, ["config", "remote.origin.url", &source.remote.url]));
    tasks.push(git(Phase::Local, ["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]));
}

fn unshallow_or_fetch(source: &Source, is_shallow: bool, tasks: &mut Vec<Task>) {
    tasks.push(Task::Say(match source.depth {
        Depth::Commits(depth) => format!("Fetching changes with git depth set to {depth}..."),
        Depth::Whole => "Fetching changes...".to_owned(),
    }));
    let mut words = vec!["fetch".to_owned(), "--no-recurse-submodules".to_owned()];
    match source.depth {
        Depth::Commits(depth) => words.push(format!("--depth={depth}")),
        Depth::Whole if is_shallow => words.push("--unshallow".to_owned()),
        Depth::Whole => {}
    }
    words.extend(source.fetch_flags.iter().cloned());
    words.push("origin".to_owned());
    words.extend(source.refspecs.iter().cloned());
    tasks.push(Task::Git { phase: Phase::Fetch, words });
}

fn check_out(source: &Source, tasks: &mut Vec<Task>) {
    let commit = match &source.wanted {
        Wanted::Reference(reference) => {
            tasks.push(Task::Say(format!("Checking out {reference} as detached HEAD...")));
            "FETCH_HEAD"
        }
        Wanted::Commit { sha, reference } => {
            let mut words = vec!["fetch".to_owned(), "--no-recurse-submodules".to_owned(), "--quiet".to_owned()];
            if let Depth::Commits(depth) = source.depth {
                words.push(format!("--depth={depth}"));
            }
            words.extend(["origin".to_owned(), sha.clone()]);
            tasks.push(Task::GitUnlessThere { commit: sha.clone(), words });
            let short = &sha[..8];
            let named = if reference.is_empty() { String::new() } else { format!(" (ref is {reference})") };
            tasks.push(Task::Say(format!("Checking out {short} as detached HEAD{named}...")));
            sha
        }
    };
    tasks.push(git(Phase::Local, ["checkout", "--force", "--quiet", "--detach", commit]));
    if let Some(flags) = &source.clean_flags {
        let words = ["clean"].into_iter().chain(flags.iter().map(String::as_str));
        tasks.push(git(Phase::Local, words));
    }
    if source.lfs {
        tasks.push(Task::FetchLargeFiles { recursive: false });
    }
}

fn submodules(source: &Source, had_modules: bool, tasks: &mut Vec<Task>) {
    let Some(wanted) = &source.submodules else {
        if had_modules {
            tasks.push(git(Phase::Local, ["submodule", "--quiet", "deinit", "--force", "--all"]));
        }
        return;
    };
    tasks.push(Task::Say(said_of(wanted)));
    let recursive = wanted.recursive.then_some("--recursive");
    let words = ["submodule", "--quiet", "sync"].into_iter().chain(recursive);
    tasks.push(git(Phase::Local, words));
    let mut words: Vec<String> = ["submodule", "--quiet", "update", "--init", "--force"].map(str::to_owned).into();
    words.extend(recursive.map(str::to_owned));
    if let Depth::Commits(depth) = wanted.depth {
        words.push(format!("--depth={depth}"));
    }
    words.extend(wanted.update_flags.iter().cloned());
    if !wanted.paths.is_empty() {
        words.push("--".to_owned());
        words.extend(wanted.paths.iter().cloned());
    }
    tasks.push(Task::Git { phase: Phase::Submodules, words });
    if let Some(flags) = &source.clean_flags {
        let words = ["submodule", "--quiet", "foreach"].into_iter().chain(recursive);
        tasks.push(git(Phase::Local, words.chain(["git", "clean"]).chain(flags.iter().map(String::as_str))));
    }
    if source.lfs {
        tasks.push(Task::FetchLargeFiles { recursive: true });
    }
}

fn said_of(wanted: &Submodules) -> String {
    let how = if wanted.recursive { "Updating/initializing submodules recursively" } else { "Updating/initializing submodules" };
    match wanted.depth {
        Depth::Commits(depth) => format!("{how} with git depth set to {depth}..."),
        Depth::Whole => format!("{how}..."),
    }
}

fn git<'a>(phase: Phase, words: impl IntoIterator<Item = &'a str>) -> Task {
    Task::Git { phase, words: words.into_iter().map(str::to_owned).collect() }
}

/// Where a failure was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    pub phase: Phase,
    /// The first attempt is 1.
    pub attempt: u32,
    /// The attempt began with a repository that was there.
    pub reused: bool,
    /// With submodules in it.
    pub had_modules: bool,
    /// Whether the server of the repository answers at all; asked only where [`wants_to_know`] says so.
    pub remote_answers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once, with an empty directory: what was there is damaged. It is no attempt of its own, since it cannot happen twice.
    StartOver,
    /// After a pause, with an empty directory.
    Retry(Duration),
    GiveUp,
}

/// Whether the fault may be that of the tree or that of the server, so that the server has to be asked.
pub fn wants_to_know(phase: Phase, reused: bool) -> bool {
    phase == Phase::Fetch && reused
}

pub fn next(met: Met, attempts: u32) -> Next {
    let is_damage = match met.phase {
        Phase::Local => true,
        Phase::Fetch => met.remote_answers,
        Phase::Submodules => met.had_modules,
        Phase::LargeFiles => false,
    };
    if met.reused && is_damage {
        return Next::StartOver;
    }
    if met.attempt < attempts { Next::Retry(pause(met.attempt)) } else { Next::GiveUp }
}

/// 5 s, and half as long again each time.
fn pause(attempt: u32) -> Duration {
    let factor = 1.5_f64.powi(i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX));
    Duration::try_from_secs_f64(FIRST_PAUSE.as_secs_f64() * factor).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
