//! A work tree as it was found: what is in its directory, and what the repository in it says of itself.
//!
//! Read from files and not asked of git: git itself refuses to speak about what is half there.

use crate::settings::ObjectFormat;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// In the directory of a repository that this step made. What it did not make, it does not remove.
pub const MARK: &str = "step-checkout";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    pub is_empty: bool,
    /// There is a directory `.git`.
    pub repository: Option<Repository>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// This step made it.
    pub is_ours: bool,
    /// The parts without which git knows no repository are there.
    pub is_whole: bool,
    /// Where it was fetched from.
    pub url: Option<String>,
    pub object_format: ObjectFormat,
    pub is_shallow: bool,
    pub has_modules: bool,
    /// What commands that were killed have left, below the directory: locks, half fetched packs.
    pub left: Vec<PathBuf>,
}

/// Looks at a directory that may not be there.
/// # Errors
/// It cannot be read.
pub fn look(dir: &Path) -> io::Result<Tree> {
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tree { is_empty: true, repository: None }),
        Err(error) => return Err(error),
    };
    let is_empty = entries.next().is_none();
    let git = dir.join(".git");
    let is_directory = fs::symlink_metadata(&git).is_ok_and(|found| found.is_dir());
    let repository = is_directory.then(|| {
        // What is unreadable counts as absent: then everything is fetched anew.
        let config = fs::read_to_string(git.join("config")).unwrap_or_default();
        let mut left = Vec::new();
        collect_left(&git, Path::new(".git"), &mut left);
        left.sort();
        Repository {
            is_ours: git.join(MARK).is_file(),
            is_whole: git.join("HEAD").is_file() && git.join("objects").is_dir() && git.join("refs").is_dir(),
            url: value(&config, "remote \"origin\"", "url"),
            object_format: match value(&config, "extensions", "objectformat").as_deref() {
                Some("sha256") => ObjectFormat::Sha256,
                _ => ObjectFormat::Sha1,
            },
            is_shallow: git.join("shallow").is_file(),
            has_modules: git.join("modules").is_dir(),
            left,
        }
    });
    Ok(Tree { is_empty, repository })
}

/// Locks and temporary files of git, wherever they lie; loose objects are not looked through.
fn collect_left(dir: &Path, shown: &Path, left: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(text) = name.to_str() else { continue };
        let Ok(kind) = entry.file_type() else { continue };
        let is_loose_objects = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if kind.is_dir() && !is_loose_objects {
            collect_left(&entry.path(), &shown.join(&name), left);
        } else if kind.is_file() && is_left(text) {
            left.push(shown.join(&name));
        }
    }
}

/// Names of files that only a running command of git may have. No ref ends in `.lock`: git forbids it.
fn is_left(name: &str) -> bool {
    name.ends_with(".lock") || ["tmp_pack_", "tmp_idx_", "tmp_rev_", "tmp_obj_"].iter().any(|prefix| name.starts_with(prefix))
}

/// A value of a configuration file of git, as git itself writes it.
fn value(config: &str, section: &str, key: &str) -> Option<String> {
    let mut is_in_section = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_in_section = name.eq_ignore_ascii_case(section);
        } else if is_in_section
            && let Some((name, value)) = line.split_once('=')
            && name.trim().eq_ignore_ascii_case(key)
        {
            found = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    found
}

/// Removes everything in a directory, and leaves it there: others may have it as their current one, or mounted.
/// # Errors
/// Something cannot be removed; with its path.
pub fn empty(dir: &Path) -> Result<(), (PathBuf, io::Error)> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err((dir.to_owned(), error)),
    };
    for entry in entries {
        let path = entry.map_err(|error| (dir.to_owned(), error))?.path();
        remove(&path).map_err(|error| (path, error))?;
    }
    Ok(())
}

/// Removes a file, or a directory with all that is in it.
/// # Errors
/// It cannot be removed. That it is not there is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    let is_directory = match fs::symlink_metadata(path) {
        Ok(found) => found.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_directory {
        return fs::remove_file(path);
    }
    match fs::remove_dir_all(path) {
        // Directories that nobody may write to: module caches are kept so.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path);
            fs::remove_dir_all(path)
        }
        outcome => outcome,
    }
}

#[cfg(unix)]
fn make_writable(dir: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    // What cannot be changed is named by the removal that follows.
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

#[cfg(not(unix))]
fn make_writable(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&path);
        } else if let Ok(found) = entry.metadata() {
            let mut permissions = found.permissions();
            #[expect(clippy::permissions_set_readonly_false, reason = "on Windows it is only the flag that forbids removing")]
            permissions.set_readonly(false);
            let _ = fs::set_permissions(path, permissions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_empty_tree() {
        let dir = tempfile::tempdir().unwrap();
        let empty = Tree { is_empty: true, repository: None };
        assert_eq!(look(&dir.path().join("none")).unwrap(), empty);
        assert_eq!(look(dir.path()).unwrap(), empty);
    }

    #[test]
    fn a_repository_tells_of_itself_and_of_what_was_left() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        write(at, ".git/HEAD", "ref: refs/heads/none\n");
        write(
            at,
            ".git/config",
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://git.example/a.git\n\tfetch = +x:y\n[extensions]\n\tobjectFormat = sha256\n",
        );
        write(at, ".git/refs/heads/main.lock", "");
        write(at, ".git/index.lock", "");
        write(at, ".git/objects/pack/tmp_pack_a1b2", "");
        write(at, ".git/objects/ab/tmp_obj_x", "");
        write(at, ".git/modules/lib/index.lock", "");
        write(at, ".git/shallow", "x");
        let repository = look(at).unwrap().repository.unwrap();
        let left: Vec<_> = repository.left.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            left,
            [".git/index.lock", ".git/modules/lib/index.lock", ".git/objects/pack/tmp_pack_a1b2", ".git/refs/heads/main.lock"]
        );
        let Repository { is_ours, is_whole, url, object_format, is_shallow, has_modules, .. } = repository;
        assert_eq!((is_ours, is_whole, is_shallow, has_modules), (false, true, true, true));
        assert_eq!((url.as_deref(), object_format), (Some("https://git.example/a.git"), ObjectFormat::Sha256));
    }

    #[test]
    fn a_repository_without_its_parts_is_not_whole() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), ".git/step-checkout", "1\n");
        let repository = look(dir.path()).unwrap().repository.unwrap();
        assert_eq!((repository.is_whole, repository.is_ours, repository.url), (false, true, None));
    }

    #[test]
    fn a_file_in_place_of_the_repository_is_none_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), ".git", "gitdir: /elsewhere\n");
        assert_eq!(look(dir.path()).unwrap(), Tree { is_empty: false, repository: None });
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_is_emptied_of_what_nobody_may_write_to_and_links_are_not_followed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "outside/file", "kept");
        write(dir.path(), "tree/a/b/file", "");
        fs::set_permissions(dir.path().join("tree/a/b"), fs::Permissions::from_mode(0o555)).unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside"), dir.path().join("tree/link")).unwrap();
        empty(&dir.path().join("tree")).unwrap();
        assert!(look(&dir.path().join("tree")).unwrap().is_empty);
        assert!(dir.path().join("outside/file").exists());
    }
}
