//! Files of a case: put there before it begins, and looked at when it is over.

use crate::outcome::Found;
use crate::process::alone;
use crate::subject::in_words;
use std::fs;
use std::io;
use std::path::Path;
use step_model::testing::suite::FileMatch;

/// What is where a file is expected.
pub(super) fn found(path: &Path, expected: &FileMatch) -> Found {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
        Err(error) => Found::Other(in_words(&error)),
        Ok(_) if matches!(expected, FileMatch::Absent | FileMatch::Present) => Found::File(Vec::new()),
        Ok(metadata) if metadata.is_dir() => Found::Other("it is a directory".into()),
        Ok(_) => fs::read(path).map_or_else(|error| Found::Other(in_words(&error)), Found::File),
    }
}

/// Writes a text and the directories above it.
pub(super) fn put_text(path: &Path, text: &str, executable: bool) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    if !executable {
        return fs::write(path, text);
    }
    // A program that is open for writing cannot be started, and a process that is born meanwhile would hold it open.
    alone(|| fs::write(path, text))?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// A file, or a directory with all that is in it.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).map(drop)
}
