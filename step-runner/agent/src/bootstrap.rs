//! Puts this very program somewhere else: into a volume that a container will have, for example.

use crate::system_error;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of the program where it is put.
pub const PROGRAM: &str = "step-runner";

/// In the original's words.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapFault {
    #[error("mkdir {}: {}", .path.display(), system_error::text(.source))]
    Directory { path: PathBuf, source: io::Error },
    #[error("open {}: {}", .path.display(), system_error::text(.source))]
    File { path: PathBuf, source: io::Error },
}

/// Copies this program to `directory`, which is made (0755) if it is not there.
/// # Errors
/// The directory or the file cannot be made.
pub fn into_directory(directory: &Path) -> Result<(), BootstrapFault> {
    let fault = |source| BootstrapFault::Directory { path: directory.to_path_buf(), source };
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(fault(io::ErrorKind::NotADirectory.into())),
        Err(_) => std::fs::DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(fault)?,
    }
    to_file(&directory.join(PROGRAM))
}

/// Copies this program to a file (0755). Whoever runs what was there before goes on with it; the same content is left alone.
/// # Errors
/// The file cannot be made.
pub fn to_file(path: &Path) -> Result<(), BootstrapFault> {
    let fault = |source| BootstrapFault::File { path: path.to_path_buf(), source };
    let own = std::env::current_exe().map_err(fault)?;
    if path.is_dir() {
        return Err(fault(io::ErrorKind::IsADirectory.into()));
    }
    if !is_same(&own, path).unwrap_or(false) {
        copy(&own, path).map_err(fault)?;
    }
    Ok(())
}

fn is_same(own: &Path, other: &Path) -> io::Result<bool> {
    let (own, other) = (File::open(own)?, File::open(other)?);
    let found = other.metadata()?;
    if own.metadata()?.len() != found.len() || found.permissions().mode() & 0o777 != 0o755 {
        return Ok(false);
    }
    let (mut own, mut other) = (io::BufReader::with_capacity(1 << 18, own), io::BufReader::with_capacity(1 << 18, other));
    let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let read = own.read(&mut a)?;
        if read == 0 {
            return Ok(true);
        }
        other.read_exact(&mut b[..read])?;
        if a[..read] != b[..read] {
            return Ok(false);
        }
    }
}

/// Written aside and renamed: nobody ever starts half a program.
fn copy(own: &Path, path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut aside = tempfile::Builder::new().prefix(".step-runner-").tempfile_in(parent)?;
    io::copy(&mut File::open(own)?, aside.as_file_mut())?;
    aside.as_file().set_permissions(PermissionsExt::from_mode(0o755))?;
    aside.as_file().sync_all()?;
    aside.persist(path).map_err(|fault| fault.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_put_into_place_once_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let destination = directory.path().join("a/b");
        into_directory(&destination).unwrap();
        let program = destination.join(PROGRAM);
        let first = std::fs::metadata(&program).unwrap();
        assert_eq!(first.permissions().mode() & 0o777, 0o755);
        assert_eq!(first.len(), std::env::current_exe().unwrap().metadata().unwrap().len());
        into_directory(&destination).unwrap();
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(std::fs::metadata(&program).unwrap().ino(), first.ino(), "the same content is left alone");
        std::fs::write(&program, "another one").unwrap();
        into_directory(&destination).unwrap();
        assert_eq!(std::fs::metadata(&program).unwrap().len(), first.len());
        assert_eq!(std::fs::read_dir(&destination).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_in_the_way_is_named_in_the_words_of_the_original() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(into_directory(&file).unwrap_err().to_string(), format!("mkdir {}: not a directory", file.display()));
        let taken = directory.path().join("taken");
        std::fs::create_dir_all(taken.join(PROGRAM)).unwrap();
        let refused = into_directory(&taken).unwrap_err().to_string();
        assert_eq!(refused, format!("open {}: is a directory", taken.join(PROGRAM).display()));
    }
}
