//! Moves what was unpacked to where it belongs. Directories that are there are filled; files and links are replaced; nothing is written through a link.

use crate::unpack::UnpackFault;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Moves everything in `from` to `to`, and sets the permissions of directories, the deepest first.
/// # Errors
/// Something is in the way, or cannot be moved.
pub fn into_place(from: &Path, to: &Path, directories: &BTreeMap<PathBuf, u32>) -> Result<(), UnpackFault> {
    // First the question whether all of it can be moved, so that half of it is not.
    look(from, to, Path::new(""))?;
    move_all(from, to, Path::new(""))?;
    for (path, mode) in directories.iter().rev() {
        let full = to.join(path);
        set_mode(&full, *mode).map_err(|cause| UnpackFault::Write { path: path.clone(), cause })?;
    }
    Ok(())
}

/// What is where an entry goes.
enum There {
    Nothing,
    Directory,
    /// A file, a link, or anything else that a rename replaces.
    Other,
}

fn there(path: &Path, shown: &Path) -> Result<There, UnpackFault> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(There::Directory),
        Ok(_) => Ok(There::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(There::Nothing),
        Err(cause) => Err(UnpackFault::Write { path: shown.to_owned(), cause }),
    }
}

fn look(from: &Path, to: &Path, path: &Path) -> Result<(), UnpackFault> {
    for (path, is_directory) in entries(from, path)? {
        match (is_directory, there(&to.join(&path), &path)?) {
            (true, There::Directory) => look(from, to, &path)?,
            (_, There::Nothing) | (false, There::Other) => {}
            (true, There::Other) | (false, There::Directory) => return Err(UnpackFault::InTheWay(path)),
        }
    }
    Ok(())
}

fn move_all(from: &Path, to: &Path, path: &Path) -> Result<(), UnpackFault> {
    for (path, is_directory) in entries(from, path)? {
        let (source, target) = (from.join(&path), to.join(&path));
        match (is_directory, there(&target, &path)?) {
            (true, There::Directory) => {
                // One that an earlier archive has made may forbid it.
                let mode = fs::symlink_metadata(&target).map_or(0o755, |found| mode(&found));
                set_mode(&target, mode | 0o700).map_err(|cause| UnpackFault::Write { path: path.clone(), cause })?;
                move_all(from, to, &path)?;
            }
            (true, There::Other) | (false, There::Directory) => return Err(UnpackFault::InTheWay(path)),
            (_, There::Nothing | There::Other) => {
                fs::rename(&source, &target).map_err(|cause| UnpackFault::Write { path, cause })?;
            }
        }
    }
    Ok(())
}

fn entries(from: &Path, path: &Path) -> Result<Vec<(PathBuf, bool)>, UnpackFault> {
    let fault = |cause| UnpackFault::Write { path: path.to_owned(), cause };
    let mut entries = Vec::new();
    for entry in fs::read_dir(from.join(path)).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        entries.push((path.join(entry.file_name()), entry.file_type().map_err(fault)?.is_dir()));
    }
    entries.sort();
    Ok(entries)
}

#[cfg(unix)]
pub fn mode(found: &Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777
}

#[cfg(not(unix))]
pub fn mode(_found: &Metadata) -> u32 {
    0o755
}

#[cfg(unix)]
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

/// There is no such thing there.
#[cfg(not(unix))]
pub fn set_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
pub fn make_link(target: &str, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(windows)]
pub fn make_link(target: &str, path: &Path) -> io::Result<()> {
    let target = target.replace('/', "\\");
    let leads_to = path.parent().map(|parent| parent.join(&target));
    if leads_to.is_some_and(|leads_to| leads_to.is_dir()) {
        std::os::windows::fs::symlink_dir(target, path)
    } else {
        std::os::windows::fs::symlink_file(target, path)
    }
}
