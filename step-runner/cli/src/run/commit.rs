//! The commit of the work tree, read from its files: a job that wants another one is told so.

use std::path::{Path, PathBuf};

/// The commit that is checked out in the work tree around `dir`. `None`: there is no work tree, or nothing was ever committed.
pub fn checked_out(dir: &Path) -> Option<String> {
    let git = git_directory(dir)?;
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return is_commit(&head).then_some(head) };
    // A linked work tree has its own HEAD, and the branches of the repository that it belongs to.
    let common = read(&git.join("commondir")).map_or_else(|| git.clone(), |path| git.join(path));
    let commit = read(&common.join(name)).or_else(|| packed(&common, name))?;
    is_commit(&commit).then_some(commit)
}

/// `.git` of the nearest directory upwards: a directory, or a file that names one.
fn git_directory(dir: &Path) -> Option<PathBuf> {
    let found = dir.ancestors().map(|above| above.join(".git")).find(|git| git.exists())?;
    if found.is_dir() {
        return Some(found);
    }
    let named = read(&found)?;
    Some(found.parent()?.join(named.strip_prefix("gitdir: ")?))
}

/// `packed-refs` has a line `COMMIT NAME` for each branch that has no file.
fn packed(git: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(git.join("packed-refs")).ok()?;
    text.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').map(str::to_owned))
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn is_commit(text: &str) -> bool {
    (40..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What is said when the job was made for another commit than the one that is here.
pub fn difference(wanted: &str, here: Option<&str>) -> Option<String> {
    let short = |commit: &str| commit.get(..8).unwrap_or(commit).to_owned();
    match here {
        Some(here) if here == wanted => None,
        Some(here) => Some(format!("the work tree is at commit {}, the job was made for {}", short(here), short(wanted))),
        None => Some(format!("this directory has no commit, the job was made for {}", short(wanted))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("inside")).expect("a directory can be made");
            std::fs::write(path, text).expect("a file can be written");
        }
        dir
    }

    #[test]
    fn a_branch_is_a_file_or_a_line() {
        let loose = tree(&[(".git/HEAD", "ref: refs/heads/main\n"), (".git/refs/heads/main", ONE), ("a/b/x", "")]);
        assert_eq!(checked_out(&loose.path().join("a/b")), Some(ONE.into()));
        let refs = format!("# pack-refs\n{TWO} refs/heads/not-main\n{ONE} refs/heads/main\n^{TWO}\n");
        let packed = tree(&[(".git/HEAD", "ref: refs/heads/main"), (".git/packed-refs", &refs)]);
        assert_eq!(checked_out(packed.path()), Some(ONE.into()));
    }

    #[test]
    fn a_detached_head_and_a_linked_work_tree_have_a_commit_too() {
        assert_eq!(checked_out(tree(&[(".git/HEAD", TWO)]).path()), Some(TWO.into()));
        let linked = tree(&[
            ("main/.git/worktrees/w/HEAD", "ref: refs/heads/w"),
            ("main/.git/worktrees/w/commondir", "../.."),
            ("main/.git/refs/heads/w", ONE),
            ("w/.git", "gitdir: ../main/.git/worktrees/w\n"),
        ]);
        assert_eq!(checked_out(&linked.path().join("w")), Some(ONE.into()));
    }

    #[test]
    fn without_a_commit_there_is_none() {
        assert_eq!(checked_out(tree(&[(".git/HEAD", "ref: refs/heads/main")]).path()), None);
        assert_eq!(checked_out(tree(&[(".git/HEAD", "nonsense")]).path()), None);
    }

    #[test]
    fn a_difference_is_said_in_short() {
        assert_eq!(difference(ONE, Some(ONE)), None);
        insta::assert_snapshot!(difference(ONE, Some(TWO)).expect("a difference"), @"the work tree is at commit 22222222, the job was made for 11111111");
        insta::assert_snapshot!(difference(ONE, None).expect("a difference"), @"this directory has no commit, the job was made for 11111111");
    }
}
