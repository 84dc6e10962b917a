//! What a manager must not forget: one sealed record per job in flight, in an SQLite database that only its user may read.
//!
//! One thread writes. Everything that waits is written in one transaction, so a hundred jobs that begin at once cost one sync of the disk; a call
//! returns when its change is on the disk. What is in a record is not known here: it is sealed (see [`crate::seal`]).

use runner_control::id::Generation;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// Of the tables. A newer one is left alone.
const FORMAT: i64 = 1;

const TABLES: &str = "CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS generation (only INTEGER PRIMARY KEY CHECK (only = 0), number INTEGER NOT NULL);";

const NEXT_GENERATION: &str = "INSERT INTO generation (only, number) VALUES (0, ?1)
ON CONFLICT (only) DO UPDATE SET number = max(number + 1, ?1) RETURNING number";

/// How many changes go into one transaction.
const MOST_TOGETHER: usize = 4096;

/// The state of one manager. Clones write through the same thread; the lock is held until the last one is gone.
#[derive(Debug, Clone)]
pub struct State {
    changes: mpsc::Sender<Wanted>,
}

/// A record as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What the record is of: runner and job.
    pub key: String,
    pub sealed: Vec<u8>,
}

/// A state that was opened.
#[derive(Debug)]
pub struct Opened {
    pub state: State,
    /// What is kept there, by key.
    pub kept: Vec<Kept>,
    /// Higher than that of every process that opened this state before.
    pub generation: Generation,
}

/// Why there is no state, or it could not be written.
#[derive(Debug, thiserror::Error)]
pub enum StateFault {
    #[error("another runner-core uses the state in `{}`", path.display())]
    InUse { path: PathBuf },
    #[error("the state in `{}` is of a newer runner-core (format {format})", path.display())]
    Newer { path: PathBuf, format: i64 },
    #[error("could not open the state in `{}`: {}", path.display(), step_console::given::words(source))]
    Files { path: PathBuf, source: io::Error },
    #[error("could not read the state in `{}`: {source}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    #[error("could not write the state: {0}")]
    NotWritten(String),
}

impl StateFault {
    /// The way out.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InUse { .. } => Some("end it first, or give this one a state of its own with `--state DIR`"),
            Self::Newer { .. } => Some("use that version, or another directory: jobs in flight are found again through their agents"),
            Self::Database { .. } => Some("move the file away: jobs in flight are found again through their agents"),
            Self::Files { .. } | Self::NotWritten(_) => None,
        }
    }
}

enum Change {
    Put { key: String, sealed: Vec<u8> },
    Remove { key: String },
}

struct Wanted {
    change: Change,
    done: oneshot::Sender<Result<(), String>>,
}

impl State {
    /// Opens the state in a directory, or makes it.
    /// # Errors
    /// Somebody else uses it, or it cannot be read.
    pub fn open(directory: &Path) -> Result<Opened, StateFault> {
        let path = directory.join("runner-core.db");
        let files = |source| StateFault::Files { path: path.clone(), source };
        private_directory(directory).map_err(files)?;
        let lock = locked(&directory.join("runner-core.lock")).map_err(files)?.ok_or_else(|| StateFault::InUse { path: path.clone() })?;
        private_file(&path).map_err(files)?;
        let (connection, kept, generation) = read(&path)?;
        let (changes, wanted) = mpsc::channel();
        std::thread::Builder::new()
            .name("state".into())
            .spawn(move || {
                write_all(connection, &wanted);
                drop(lock);
            })
            .map_err(files)?;
        Ok(Opened { state: Self { changes }, kept, generation })
    }

    /// Keeps a record in the place of the one before it. On the disk when this returns.
    /// # Errors
    /// The disk is full, or broken.
    pub fn put(&self, key: String, sealed: Vec<u8>) -> impl Future<Output = Result<(), StateFault>> + Send + use<> {
        self.change(Change::Put { key, sealed })
    }

    /// Forgets a record; one that is not there is forgotten already.
    /// # Errors
    /// As for [`State::put`].
    pub fn remove(&self, key: String) -> impl Future<Output = Result<(), StateFault>> + Send + use<> {
        self.change(Change::Remove { key })
    }

    /// Handed to the thread now, whoever waits for the outcome: changes keep the order of these calls.
    fn change(&self, change: Change) -> impl Future<Output = Result<(), StateFault>> + Send + use<> {
        let (done, outcome) = oneshot::channel();
        // A thread that is gone drops the other end.
        let _ = self.changes.send(Wanted { change, done });
        async { outcome.await.map_err(|_| StateFault::NotWritten("its thread has ended".to_owned()))?.map_err(StateFault::NotWritten) }
    }
}

fn read(path: &Path) -> Result<(Connection, Vec<Kept>, Generation), StateFault> {
    let fault = |source| StateFault::Database { path: path.to_path_buf(), source };
    let connection = Connection::open(path).map_err(fault)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(fault)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(fault)?;
    // A record that a crash of the machine takes back was never written.
    connection.pragma_update(None, "synchronous", "FULL").map_err(fault)?;
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(fault)?;
    if format > FORMAT {
        return Err(StateFault::Newer { path: path.to_path_buf(), format });
    }
    connection.execute_batch(TABLES).map_err(fault)?;
    connection.pragma_update(None, "user_version", FORMAT).map_err(fault)?;
    // Damage is found now and not when a job depends on it.
    let damage: Option<String> = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).optional().map_err(fault)?;
    if let Some(damage) = damage.filter(|answer| answer != "ok") {
        return Err(fault(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), Some(damage))));
    }
    let kept = {
        let mut statement = connection.prepare("SELECT key, sealed FROM records ORDER BY key").map_err(fault)?;
        let rows = statement.query_map([], |row| Ok(Kept { key: row.get(0)?, sealed: row.get(1)? })).map_err(fault)?;
        rows.collect::<Result<Vec<_>, _>>().map_err(fault)?
    };
    let generation: i64 = connection.query_row(NEXT_GENERATION, [seconds_since_1970()], |row| row.get(0)).map_err(fault)?;
    Ok((connection, kept, Generation(u64::try_from(generation).unwrap_or(0))))
}

/// A state that was lost must not begin again with the numbers of the one before.
fn seconds_since_1970() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// Writes until nobody can want anything any more.
fn write_all(mut connection: Connection, wanted: &mpsc::Receiver<Wanted>) {
    while let Ok(first) = wanted.recv() {
        let mut together = vec![first];
        while let Some(next) = (together.len() < MOST_TOGETHER).then(|| wanted.try_recv().ok()).flatten() {
            together.push(next);
        }
        let outcome = write(&mut connection, &together).map_err(|fault| fault.to_string());
        for Wanted { done, .. } in together {
            // Nobody waits any more: the caller was dropped.
            let _ = done.send(outcome.clone());
        }
    }
}

fn write(connection: &mut Connection, together: &[Wanted]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for Wanted { change, .. } in together {
        match change {
            Change::Put { key, sealed } => transaction
                .prepare_cached("INSERT INTO records (key, sealed) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET sealed = ?2")?
                .execute(params![key, sealed])?,
            Change::Remove { key } => transaction.prepare_cached("DELETE FROM records WHERE key = ?1")?.execute(params![key])?,
        };
    }
    transaction.commit()
}

fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// SQLite gives the files beside it the same mode.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// `None`: somebody else holds it. It is free again when its holder is gone, however that ended.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let file = private_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(fault)) => Err(fault),
    }
}

#[cfg(test)]
mod tests;
