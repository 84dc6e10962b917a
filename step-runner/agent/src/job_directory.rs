//! The private directory of a job, `step-runner-XXXXXX`: step files, file variables, the journal. Removed when the job ends.
//!
//! A file `lock` in it is locked as long as the job lives; the lock, never a number of a process, says so.

use crate::job_process::remains;
#[cfg(target_os = "linux")]
use crate::system::afterwards::{self, Life};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = "step-runner-";
/// The file whose lock tells that a job lives.
pub(crate) const LOCK: &str = "lock";

/// A private directory (0700) that is removed when this value is dropped.
#[derive(Debug)]
pub struct JobDirectory {
    /// Absolute, without symbolic links.
    path: PathBuf,
    directory: Option<tempfile::TempDir>,
    _lock: File,
}

impl JobDirectory {
    /// Makes one in `parent`, usually `$TMPDIR`.
    /// # Errors
    /// It cannot be made there.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let parent = parent.canonicalize()?;
        loop {
            let mut builder = tempfile::Builder::new();
            builder.prefix(PREFIX);
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            let directory = builder.tempdir_in(&parent)?;
            let lock = File::create_new(directory.path().join(LOCK))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path: directory.path().to_path_buf(), directory: Some(directory), _lock: lock }),
                // A sweep was faster and takes the directory away: another one.
                Err(std::fs::TryLockError::WouldBlock) => {}
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory where it is, and no later sweep takes it.
    pub fn keep(mut self) -> PathBuf {
        if let Some(directory) = self.directory.take() {
            let _ = std::fs::remove_file(directory.path().join(LOCK));
            let _ = directory.keep();
        }
        std::mem::take(&mut self.path)
    }
}

impl Drop for JobDirectory {
    fn drop(&mut self) {
        if let Some(directory) = self.directory.take() {
            remove(&directory.keep());
        }
    }
}

/// A file to append to, private: a new one, or one that is there and empty.
pub(crate) fn empty_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600), libc::O_NOFOLLOW);
    let file = options.open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.len() == 0 { Ok(file) } else { Err(io::ErrorKind::AlreadyExists.into()) }
}

/// Removes a tree. A step may have made directories that even their owner cannot enter: these are opened first.
pub(crate) fn remove(path: &Path) {
    if std::fs::remove_dir_all(path).is_err() {
        open_up(path);
        let _ = std::fs::remove_dir_all(path);
    }
}

#[cfg(unix)]
fn open_up(directory: &Path) {
    let _ = std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(not(unix))]
fn open_up(_directory: &Path) {}

/// Whether the job whose directory this is still lives.
pub fn is_alive(directory: &Path) -> bool {
    File::open(directory.join(LOCK)).is_ok_and(|lock| matches!(lock.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Ends what jobs that were killed have left running, and removes what they have left in `parent`: directories of ours whose lock nobody holds and that are older than `age`.
/// Returns how many. What cannot be removed is left.
pub fn sweep(parent: &Path, age: Duration) -> usize {
    let Ok(entries) = std::fs::read_dir(parent) else { return 0 };
    let ours: Vec<_> = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)).collect();
    ours.iter().for_each(|entry| end_dead_job(&entry.path()));
    ours.iter().filter(|entry| is_abandoned(&entry.path(), age)).filter(|entry| take_away(&entry.path())).count()
}

/// Sees to it that nothing of the job goes on when this process, which runs it, is killed: a process that is forked here then does at once what
/// [`sweep`] would. What is returned must live as long as the job. `None`: there is no process to be had, or none is needed, since with the first process of a container all others end.
/// To be called by a process of one thread.
#[cfg(target_os = "linux")]
pub fn watch_over(job: &JobDirectory) -> Option<Life> {
    if rustix::process::getpid().is_init() {
        return None;
    }
    let directory = job.path().to_path_buf();
    let watching = afterwards::do_afterwards(move || {
        // The kernel closes what a process had open one by one: its lock may be the last. A job that came to its end has no directory or no lock.
        for _ in 0..1000 {
            if !is_alive(&directory) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        end_dead_job(&directory);
    });
    watching.ok()
}

/// A job whose process was killed: its own processes go on until somebody ends them.
fn end_dead_job(directory: &Path) {
    if !is_abandoned(directory, Duration::ZERO) {
        return;
    }
    let Ok(lock) = File::open(directory.join(LOCK)) else { return };
    if lock.try_lock().is_ok() {
        // What cannot be put in order now may be later.
        let _ = remains::finish_foreground(directory);
    }
}

fn is_abandoned(directory: &Path, age: Duration) -> bool {
    std::fs::symlink_metadata(directory).is_ok_and(|found| {
        found.is_dir() && is_own(&found) && found.modified().is_ok_and(|last| last.elapsed().is_ok_and(|elapsed| elapsed >= age))
    })
}

#[cfg(unix)]
pub(crate) fn is_own(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(found) == rustix::process::getuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_found: &std::fs::Metadata) -> bool {
    true
}

/// A directory without a lock was kept on purpose, or is not a job's.
fn take_away(directory: &Path) -> bool {
    let lock = directory.join(LOCK);
    if !std::fs::symlink_metadata(&lock).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let Ok(lock) = File::open(lock) else { return false };
    if lock.try_lock().is_err() {
        return false;
    }
    remove(directory);
    !directory.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn it_is_private_and_goes_away_with_whatever_is_in_it() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let directory = JobDirectory::create(parent.path()).unwrap();
        assert_eq!(directory.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::create_dir_all(directory.path().join("a/b")).unwrap();
        std::fs::set_permissions(directory.path().join("a"), PermissionsExt::from_mode(0o000)).unwrap();
        drop(directory);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_takes_what_a_dead_job_left_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let alive = JobDirectory::create(parent.path()).unwrap();
        let kept = JobDirectory::create(parent.path()).unwrap().keep();
        let dead = parent.path().join("step-runner-dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("lock"), "").unwrap();
        let other = parent.path().join("step-runner-other");
        std::fs::create_dir(&other).unwrap();
        assert_eq!(sweep(parent.path(), Duration::from_secs(3600)), 0, "it is too young");
        assert_eq!(sweep(parent.path(), Duration::ZERO), 1);
        assert!(is_alive(alive.path()) && !is_alive(&kept));
        assert!(alive.path().exists() && kept.exists() && other.exists() && !dead.exists());
    }
}
