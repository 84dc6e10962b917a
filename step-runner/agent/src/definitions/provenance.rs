//! The commit that a directory comes from, as `git` tells it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use step_model::plan::Provenance;

/// What was found, by directory: a job that uses a step a hundred times asks once.
#[derive(Debug, Default)]
pub struct Provenances {
    known: HashMap<PathBuf, Option<Provenance>>,
}

impl Provenances {
    /// `None`: it is in no repository, the repository has no commit, or there is no `git`.
    pub fn of(&mut self, directory: &Path) -> Option<Provenance> {
        self.known.entry(directory.to_path_buf()).or_insert_with(|| ask(directory)).clone()
    }
}

/// One call tells both: the commit, and what differs from it below the directory.
fn ask(directory: &Path) -> Option<Provenance> {
    let mut git = Command::new("git");
    // A repository may name programs in its configuration; none of them is run. Nothing is written, also not the index.
    git.args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C"]).arg(directory);
    git.args(["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignore-submodules=none", "-z", "--", "."]);
    // What a caller like a Git hook says about another repository is not meant for this one.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(name);
    }
    let output = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    if !output.status.success() {
        return None;
    }
    provenance_of(&output.stdout)
}

fn provenance_of(status: &[u8]) -> Option<Provenance> {
    let entries = || status.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let commit = entries().find_map(|entry| entry.strip_prefix(b"# branch.oid "))?;
    let commit = std::str::from_utf8(commit).ok().filter(|commit| commit.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some(Provenance { commit: commit.into(), dirty: entries().any(|entry| !entry.starts_with(b"#")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_and_what_differs_are_read_from_one_answer() {
        let clean = b"# branch.oid 0123abcd\0# branch.head main\0";
        assert_eq!(provenance_of(clean), Some(Provenance { commit: "0123abcd".into(), dirty: false }));
        let dirty = b"# branch.oid 0123abcd\0# branch.head main\0? new file\0";
        assert_eq!(provenance_of(dirty), Some(Provenance { commit: "0123abcd".into(), dirty: true }));
        assert_eq!(provenance_of(b"# branch.oid (initial)\0# branch.head main\0"), None);
        assert_eq!(provenance_of(b""), None);
    }
}
