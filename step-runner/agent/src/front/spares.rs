//! Directories of jobs that are over, empty, for jobs to come.
//!
//! ```text
//! closed, put aside --is as most jobs leave it, and nobody reads it--> emptied, kept --> the directory of the next job
//!                   '--otherwise--> removed
//! ```
//!
//! To make a file costs more than all that a small job writes. ext4 gives the number of a removed inode to nobody for five seconds, and whoever makes a file looks at each of these numbers in turn:
//! a hundred jobs a second, seven inodes each, and making one takes a million instructions, where taking what is there takes a tenth of that for all seven.

use crate::served_directory::ServedDirectory;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More jobs than that at one time take so long that it does not matter.
const MOST: usize = 16;

/// They are gone with the front, or swept by the next one.
#[derive(Debug, Default)]
pub struct Spares {
    directories: Mutex<Vec<ServedDirectory>>,
}

impl Spares {
    fn directories(&self) -> MutexGuard<'_, Vec<ServedDirectory>> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps one that was put aside, and that nobody reads any more. Otherwise it is to be removed.
    pub fn keep(&self, directory: &ServedDirectory) -> bool {
        let has_room = self.directories().len() < MOST;
        let is_kept = has_room && directory.emptied().is_some();
        if is_kept {
            self.directories().push(directory.clone());
        }
        is_kept
    }

    /// As [`ServedDirectory::create`].
    /// # Errors
    /// As [`ServedDirectory::create`].
    pub fn directory(&self, parent: &Path, id: &str) -> io::Result<Option<(ServedDirectory, File)>> {
        match self.take() {
            Some((spare, lock)) => spare.becomes(parent, id, lock),
            None => ServedDirectory::create(parent, id),
        }
    }

    /// The one that has been here longest, unless the process of its last job still holds the lock: it is on its way out.
    fn take(&self) -> Option<(ServedDirectory, File)> {
        let mut directories = self.directories();
        let (index, lock) =
            directories.iter().enumerate().find_map(|(index, directory)| directory.abandoned().ok().flatten().map(|lock| (index, lock)))?;
        Some((directories.remove(index), lock))
    }

    pub fn remove(&self) {
        self.directories().drain(..).for_each(|directory| directory.remove());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// As a job leaves it, aside.
    fn left(parent: &Path) -> (ServedDirectory, File) {
        let (mut directory, lock) = ServedDirectory::create(parent, "old").unwrap().unwrap();
        for file in ["logs", ".job/request", ".job/journal", ".job/output"] {
            std::fs::write(directory.path().join(file), "of the old one").unwrap();
        }
        directory.put_aside().unwrap();
        (directory, lock)
    }

    #[test]
    fn the_next_job_gets_the_directory_of_one_that_is_over_with_nothing_of_it() {
        let parent = tempfile::tempdir().unwrap();
        let spares = Spares::default();
        let (directory, lock) = left(parent.path());
        assert!(spares.keep(&directory));
        let (other, _lock) = spares.directory(parent.path(), "1").unwrap().unwrap();
        assert!(directory.path().exists() && !other.log().exists(), "the process of the old one still holds its lock: a new one is made");
        drop(lock);
        let (taken, lock) = spares.directory(parent.path(), "2").unwrap().unwrap();
        assert!(!directory.path().exists());
        assert_eq!(taken.path(), parent.path().join("step-runner-output-2"));
        for file in [taken.log(), taken.request(), taken.output(), taken.inner().join("journal")] {
            assert_eq!(std::fs::read(file).unwrap(), b"");
        }
        assert!(taken.abandoned().unwrap().is_none(), "its lock is held");
        drop(lock);
        assert!(spares.directory(parent.path(), "2").unwrap().is_none(), "the id is taken");
    }

    /// What a step did to the directory, by its name.
    type Change = (&'static str, fn(&ServedDirectory));

    #[test]
    fn one_that_a_step_has_changed_is_not_kept() {
        let changes: [Change; 5] = [
            ("a file more", |directory| std::fs::write(directory.inner().join("owner"), "").unwrap()),
            ("one less", |directory| std::fs::remove_file(directory.output()).unwrap()),
            ("open to others", |directory| std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap()),
            ("a link out", |directory| {
                std::fs::remove_file(directory.log()).unwrap();
                std::os::unix::fs::symlink(directory.path().with_file_name("precious"), directory.log()).unwrap();
            }),
            ("a second name", |directory| std::fs::hard_link(directory.log(), directory.path().with_file_name("second")).unwrap()),
        ];
        let parent = tempfile::tempdir().unwrap();
        std::fs::write(parent.path().join("precious"), "precious").unwrap();
        for (what, change) in changes {
            let (directory, _) = left(parent.path());
            change(&directory);
            assert!(!Spares::default().keep(&directory), "{what}");
            directory.remove();
            assert!(!directory.path().exists());
        }
        assert_eq!(std::fs::read(parent.path().join("precious")).unwrap(), b"precious");
    }

    #[test]
    fn there_are_never_many_and_none_at_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let spares = Spares::default();
        for number in 0..=MOST {
            assert_eq!(spares.keep(&left(parent.path()).0), number < MOST);
        }
        spares.remove();
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1, "the last one was not kept");
    }
}
