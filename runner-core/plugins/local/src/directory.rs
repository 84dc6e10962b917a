//! The directories of a group and of its instances: who is there, and whether it lives.

use runner_fleeting::InstanceId;
use rustix::process::Pid;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of the agent: what `step-runner serve` calls them.
const AGENT_LOCK: &str = ".step-runner.lock";
const SOCKET: &str = "step-runner.sock";
/// Ours.
const GROUP_LOCK: &str = ".group.lock";
const PREFIX: &str = "i-";
const NEW: &str = ".new-";
const GONE: &str = ".gone-";
const ENDING: &str = "ending";
const LOG: &str = "instance.log";
const WORK: &str = "work";

/// Between two tries for the lock of a group; whoever holds it is done in milliseconds.
const LOOK: Duration = Duration::from_millis(5);

/// Where instances are.
#[derive(Debug, Clone)]
pub struct GroupDirectory {
    path: PathBuf,
}

/// Nobody else makes, looks at or removes instances while this is there.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl GroupDirectory {
    /// Makes it, for this user alone, if it is not there.
    /// # Errors
    /// It cannot be made or entered.
    pub fn open(path: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self { path: path.canonicalize()? })
    }

    /// Waits for its turn; whoever calls may give up.
    /// # Errors
    /// The lock cannot be made.
    pub async fn turn(&self) -> io::Result<Turn> {
        let lock = open_lock(&self.path.join(GROUP_LOCK))?;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Turn { _lock: lock }),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK).await,
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// All that is there, in order. What is half made or half removed is swept away: in somebody's turn nobody else is at it.
    /// # Errors
    /// The directory cannot be read.
    pub fn instances(&self, _turn: &Turn) -> io::Result<Vec<InstanceDirectory>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with(NEW) || name.starts_with(GONE) {
                // Something may still write there; the next look sweeps what stays.
                let _ = std::fs::remove_dir_all(entry.path());
            } else if name.starts_with(PREFIX) && entry.file_type()?.is_dir() {
                found.push(InstanceDirectory { path: entry.path(), id: InstanceId(name) });
            }
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// One that was asked for by name. `None`: it is not there, or its name is no instance's.
    pub fn find(&self, id: &InstanceId) -> Option<InstanceDirectory> {
        let path = self.path.join(&id.0);
        let named = id.0.strip_prefix(PREFIX).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        (named && path.symlink_metadata().is_ok_and(|found| found.is_dir())).then(|| InstanceDirectory { path, id: id.clone() })
    }

    /// A new one. It is complete when it has its name.
    /// # Errors
    /// There is no room.
    pub fn make(&self, _turn: &Turn) -> io::Result<InstanceDirectory> {
        const RANDOM: usize = 6;
        let aside = tempfile::Builder::new().prefix(NEW).rand_bytes(RANDOM).tempdir_in(&self.path)?;
        let work = aside.path().join(WORK);
        std::fs::DirBuilder::new().mode(0o700).create(work)?;
        let name = aside.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id = InstanceId(format!("{PREFIX}{}", name.trim_start_matches(NEW)));
        let path = self.path.join(&id.0);
        // An empty directory would give way; one of an instance is never empty.
        std::fs::rename(aside.keep(), &path)?;
        Ok(InstanceDirectory { path, id })
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// One instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceDirectory {
    path: PathBuf,
    pub id: InstanceId,
}

impl InstanceDirectory {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    pub fn work(&self) -> PathBuf {
        self.path.join(WORK)
    }

    /// Where the agent's own words go.
    /// # Errors
    /// As open(2).
    pub fn log(&self) -> io::Result<File> {
        File::options().append(true).create(true).mode(0o600).open(self.path.join(LOG))
    }

    /// The last of these words, for whoever asks why it does not run.
    pub fn last_words(&self) -> String {
        let text = std::fs::read(self.path.join(LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it has said nothing").trim().to_owned()
    }

    /// Whether an agent serves here, and which: the lock decides, and its holder has written its number into it.
    pub fn agent(&self) -> Option<Pid> {
        let mut lock = File::open(self.path.join(AGENT_LOCK)).ok()?;
        match lock.try_lock_shared() {
            // Nobody does; our lock goes with the file.
            Ok(()) | Err(TryLockError::Error(_)) => None,
            Err(TryLockError::WouldBlock) => {
                let mut number = String::new();
                lock.read_to_string(&mut number).ok()?;
                // Without a number it is about to write it: it lives, and is nobody we could name.
                Pid::from_raw(number.trim().parse().unwrap_or(i32::MAX))
            }
        }
    }

    /// Whether it takes callers.
    pub fn answers(&self) -> bool {
        UnixStream::connect(self.socket()).is_ok()
    }

    pub fn is_ending(&self) -> bool {
        self.path.join(ENDING).exists()
    }

    /// From now on it is to go, whatever happens to us.
    /// # Errors
    /// There is no room.
    pub fn mark_ending(&self) -> io::Result<()> {
        File::create(self.path.join(ENDING)).map(drop)
    }

    /// Takes it out of sight, then away. A job that still runs there sees that its directory is gone, and ends.
    /// # Errors
    /// It cannot be taken out of sight.
    pub fn remove(&self) -> io::Result<()> {
        let aside = self.path.with_file_name(format!("{GONE}{}", self.id));
        std::fs::rename(&self.path, &aside)?;
        let _ = std::fs::remove_dir_all(aside);
        Ok(())
    }
}
