//! Caches in a directory of this machine: `DIRECTORY/KEY/cache.zip`, as GitLab's runner keeps them.

use crate::retry::Trouble;
use crate::settings::Key;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The name, whatever the format is: an archive is known by its first bytes.
const ARCHIVE: &str = "cache.zip";

pub struct Directory(PathBuf);

impl Directory {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn of(&self, key: &Key) -> PathBuf {
        self.0.join(key.as_str())
    }

    pub fn fetch(&self, key: &Key) -> Result<Option<File>, Trouble> {
        match File::open(self.of(key).join(ARCHIVE)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(trouble("read", &self.of(key), &error)),
        }
    }

    /// In the same directory, so that it can be renamed.
    pub fn new_file(&self, key: &Key) -> Result<NamedTempFile, Trouble> {
        let directory = self.of(key);
        let made = fs::create_dir_all(&directory).and_then(|()| tempfile::Builder::new().prefix(".new-").tempfile_in(&directory));
        made.map_err(|error| trouble("write", &directory, &error))
    }

    pub fn save(&self, key: &Key, archive: &NamedTempFile) -> Result<(), Trouble> {
        let fault = |error: io::Error| trouble("write", &self.of(key), &error);
        archive.as_file().sync_all().map_err(fault)?;
        // Whoever looks after the directory may not be who ran the job.
        #[cfg(unix)]
        fs::set_permissions(archive.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(fault)?;
        fs::rename(archive.path(), self.of(key).join(ARCHIVE)).map_err(fault)
    }
}

fn trouble(what: &str, path: &Path, error: &io::Error) -> Trouble {
    Trouble::lasting(format!("could not {what} `{}`: {error}", path.display()))
}
