//! Files that git does not know, as `untracked: true` means them: those that are ignored too.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Relative to `root`, which lies in a work tree.
/// # Errors
/// There is no git, or `root` lies in no work tree.
pub fn untracked(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*", "-c", "core.fsmonitor=false", "ls-files", "--others", "-z"]);
    let output = command.current_dir(root).stdin(Stdio::null()).stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(message.lines().next().unwrap_or("git has failed").to_owned()));
    }
    Ok(paths(&output.stdout))
}

fn paths(output: &[u8]) -> Vec<PathBuf> {
    let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.filter_map(|name| std::str::from_utf8(name).ok()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_does_not_know_is_listed_also_when_it_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let init = Command::new("git").args(["init", "--quiet", "."]).current_dir(dir.path()).status().unwrap();
        assert!(init.success());
        std::fs::write(dir.path().join(".gitignore"), "ignored\n").unwrap();
        std::fs::write(dir.path().join("ignored"), "").unwrap();
        std::fs::write(dir.path().join("two words"), "").unwrap();
        assert_eq!(untracked(dir.path()).unwrap(), [".gitignore", "ignored", "two words"].map(PathBuf::from));
    }

    #[test]
    fn outside_of_a_work_tree_git_says_so() {
        let dir = tempfile::tempdir().unwrap();
        assert!(untracked(dir.path()).unwrap_err().to_string().contains("not a git repository"));
    }
}
