//! The private directory of a job, `step-runner-XXXXXX`: step files, file variables, the journal. Removed when the job ends.

use std::io;
use std::path::Path;
use std::time::Duration;

/// A private directory (0700) that is removed when this value is dropped. Whoever holds it holds its lock.
#[derive(Debug)]
pub struct JobDirectory {}

impl JobDirectory {
    /// Makes one in `parent`, usually `$TMPDIR`. The path is absolute.
    /// # Errors
    /// It cannot be made there.
    pub fn create(_parent: &Path) -> io::Result<Self> {
        #[expect(clippy::todo, reason = "skeleton")]
        {
            todo!()
        }
    }

    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        Path::new("")
    }

    /// Leaves the directory where it is, and no later sweep takes it.
    pub fn keep(self) -> std::path::PathBuf {
        self.path().to_path_buf()
    }
}

/// Removes what jobs that were killed have left in `parent`: directories of ours whose lock nobody holds and that are older than `age`.
/// Returns how many. What cannot be removed is left.
pub fn sweep(_parent: &Path, _age: Duration) -> usize {
    0
}
