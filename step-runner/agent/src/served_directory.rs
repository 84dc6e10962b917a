//! The directory of a job that a front has taken: `step-runner-output-ID` (docs/design/0005). Its files are for the front, the job
//! process and whoever comes after them.

use crate::job_directory;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &str = "step-runner-output-";
/// Of a directory that is on its way in or out.
const ASIDE: &str = ".step-runner-aside-";
/// The names at the top that no file variable may have.
const TAKEN: [&str; 2] = ["logs", ".job"];

/// By its path; whether it is there is another question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedDirectory {
    path: PathBuf,
}

impl ServedDirectory {
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// That of the job with this id, which must be one element of a path.
    pub fn of(parent: &Path, id: &str) -> Self {
        Self { path: parent.join(format!("{PREFIX}{id}")) }
    }

    /// All in `parent`, with their ids. What belongs to somebody else, or is no directory, is left out.
    pub fn all(parent: &Path) -> Vec<(String, Self)> {
        let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
        let entries = entries.flatten().filter_map(|entry| {
            let id = entry.file_name().to_str()?.strip_prefix(PREFIX)?.to_owned();
            let found = std::fs::symlink_metadata(entry.path()).ok()?;
            (found.is_dir() && job_directory::is_own(&found)).then(|| (id, Self { path: entry.path() }))
        });
        entries.collect()
    }

    /// Makes the directory of a job with its lock, which is held. `None`: there is one already.
    /// # Errors
    /// It cannot be made there.
    pub fn create(parent: &Path, id: &str) -> io::Result<Option<(Self, File)>> {
        let aside = Self { path: aside(parent) };
        let private = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        private(&aside.path)?;
        let made = private(&aside.inner()).and_then(|()| {
            let lock = File::create_new(aside.inner().join(job_directory::LOCK))?;
            lock.try_lock()?;
            Ok(lock)
        });
        match made {
            Ok(lock) => aside.becomes(parent, id, lock),
            Err(error) => {
                job_directory::remove(&aside.path);
                Err(error)
            }
        }
    }

    /// One that was aside, and whose lock we hold, gets the place of the job with this id. `None`: there is one already.
    /// # Errors
    /// It cannot be renamed. It is gone then.
    pub fn becomes(self, parent: &Path, id: &str, lock: File) -> io::Result<Option<(Self, File)>> {
        let directory = Self::of(parent, id);
        match std::fs::rename(&self.path, &directory.path) {
            Ok(()) => Ok(Some((directory, lock))),
            Err(error) => {
                job_directory::remove(&self.path);
                match error.kind() {
                    io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }

    /// Makes it what it was when it was new, but that the files of a job are there, empty. `None`: it is not as most jobs leave it, so it is to be removed.
    pub fn emptied(&self) -> Option<()> {
        let inner = self.inner();
        let has = |directory: &Path, names: &[&str]| -> Option<()> {
            let found = std::fs::symlink_metadata(directory).ok()?;
            let entries = std::fs::read_dir(directory).ok()?.collect::<io::Result<Vec<_>>>().ok()?;
            let are_known = entries.iter().all(|entry| names.iter().any(|name| entry.file_name() == *name));
            let is_private = found.is_dir() && found.mode() & 0o7777 == 0o700;
            (is_private && are_known && entries.len() == names.len()).then_some(())
        };
        has(&self.path, &["logs", ".job"])?;
        has(&inner, &["request", "journal", "output", job_directory::LOCK])?;
        [self.log(), self.request(), inner.join(crate::job_process::journal::FILE), self.output()].iter().try_for_each(|file| emptied(file))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where lock, journal, request and socket are.
    pub fn inner(&self) -> PathBuf {
        self.path.join(".job")
    }

    /// The result of a job whose steps were handed over: a serialized `StepResult` with its values in clear. There when the job has ended.
    pub fn result(&self) -> PathBuf {
        self.inner().join("result")
    }

    pub fn log(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Holds the output and export files of the steps. Made when the first step has some.
    pub fn files(&self) -> PathBuf {
        self.inner().join("files")
    }

    /// The request as it may be kept ([`step_client::wire::kept_request`]).
    pub fn request(&self) -> PathBuf {
        self.inner().join("request")
    }

    pub fn owner_record(&self) -> PathBuf {
        self.inner().join("owner")
    }

    /// What the job process itself writes to its standard output and error: a fault of ours.
    pub fn output(&self) -> PathBuf {
        self.inner().join("output")
    }

    /// Whether a file variable may have this name.
    pub fn is_free(name: &str) -> bool {
        !TAKEN.contains(&name)
    }

    /// The lock, when nobody holds it: the job process has ended, or never was.
    /// # Errors
    /// There is no lock.
    pub fn abandoned(&self) -> io::Result<Option<File>> {
        let lock = File::open(self.inner().join(job_directory::LOCK))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the directory out of sight, so that its id is free at once. To be removed then.
    /// # Errors
    /// It is gone already, or may not be renamed.
    pub fn put_aside(&mut self) -> io::Result<()> {
        let aside = aside(self.path.parent().unwrap_or(Path::new("/")));
        std::fs::rename(&self.path, &aside)?;
        self.path = aside;
        Ok(())
    }

    /// Removes it with all that is in it, as far as that may be removed.
    pub fn remove(&self) {
        if !self.remove_usual() {
            job_directory::remove(&self.path);
        }
    }

    /// Removes what most jobs leave, without a look at what there is. Tells whether nothing is left then.
    pub fn remove_usual(&self) -> bool {
        for name in ["logs", ".job/request", ".job/journal", ".job/output", ".job/lock"] {
            let _ = std::fs::remove_file(self.path.join(name));
        }
        std::fs::remove_dir(self.inner()).and_then(|()| std::fs::remove_dir(&self.path)).is_ok()
    }
}

/// `None`: a step has put something else in the place of this file.
fn emptied(file: &Path) -> Option<()> {
    let file = File::options().write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(file).ok()?;
    let found = file.metadata().ok().filter(|found| found.is_file() && found.nlink() == 1)?;
    // What was kept ahead of its end goes too.
    if found.len() > 0 || found.blocks() > 0 { file.set_len(0).ok() } else { Some(()) }
}

/// A name that nobody else takes.
fn aside(parent: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    parent.join(format!("{ASIDE}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Removes what a front that was killed has left on its way in or out. Called while no other front is there.
pub fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(ASIDE)) {
        let directory = ServedDirectory { path: entry.path() };
        let is_ours = std::fs::symlink_metadata(&directory.path).is_ok_and(|found| found.is_dir() && job_directory::is_own(&found));
        // One whose lock is held belongs to a job process that is being ended.
        if is_ours && !matches!(directory.abandoned(), Ok(None)) {
            directory.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_that_want_the_same_id_one_gets_the_directory() {
        let parent = tempfile::tempdir().unwrap();
        let (directory, lock) = ServedDirectory::create(parent.path(), "7").unwrap().unwrap();
        assert!(ServedDirectory::create(parent.path(), "7").unwrap().is_none());
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1, "nothing is left of the other");
        assert_eq!(directory.path(), parent.path().join("step-runner-output-7"));
        assert!(directory.abandoned().unwrap().is_none(), "its lock is held");
        drop(lock);
        assert!(directory.abandoned().unwrap().is_some());
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_no_job() {
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), parent.path().join("step-runner-output-7")).unwrap();
        assert_eq!(ServedDirectory::all(parent.path()), []);
        assert!(ServedDirectory::create(parent.path(), "7").unwrap().is_none());
        ServedDirectory::create(parent.path(), "8").unwrap().unwrap();
        assert_eq!(ServedDirectory::all(parent.path()).len(), 1);
    }

    #[test]
    fn what_was_put_aside_is_swept_unless_its_job_still_lives() {
        let parent = tempfile::tempdir().unwrap();
        let (mut dead, lock) = ServedDirectory::create(parent.path(), "1").unwrap().unwrap();
        let (mut alive, _lock) = ServedDirectory::create(parent.path(), "2").unwrap().unwrap();
        drop(lock);
        dead.put_aside().unwrap();
        alive.put_aside().unwrap();
        assert_eq!(ServedDirectory::all(parent.path()), []);
        sweep(parent.path());
        assert!(!dead.path().exists() && alive.path().exists());
    }
}
