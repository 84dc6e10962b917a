//! Results as files: one for each job, written aside, synced and renamed, which only their owner may read.

use super::shelf::{Key, Limits, Shelf, Surplus};
use ci_proto::results::KeptResult;
use prost::Message as _;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the files end in.
const ENDING: &str = ".result";

/// An empty file of the same name in here: the service has not taken it yet.
const UNSENT: &str = "unsent";

#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    shelf: Mutex<Shelf>,
}

/// A file of its own in any file system: runner and number of the job.
pub fn name(runner: &str, number: u64) -> String {
    let runner: String =
        runner.chars().map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' }).collect();
    format!("{runner}~{number}")
}

/// The runner and the number of a name.
pub fn parts(name: &str) -> Option<(&str, u64)> {
    let (runner, number) = name.rsplit_once('~')?;
    Some((runner, number.parse().ok()?))
}

impl Store {
    /// # Errors
    /// The directory cannot be made or read.
    pub fn open(directory: &Path, limits: Limits) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory.join(UNSENT))?;
        let mut shelf = Shelf::new(limits);
        for (name, path) in listed(directory)? {
            // One that is removed meanwhile is not there.
            let Ok(file) = fs::metadata(&path) else { continue };
            let at = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            let is_unsent = directory.join(UNSENT).join(&name).exists();
            shelf.add((at, name.into()), file.len(), is_unsent);
        }
        let store = Self { directory: directory.to_path_buf(), shelf: Mutex::new(shelf) };
        store.sweep();
        Ok(store)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a result. `false`: it was there already, and is not made again.
    /// # Errors
    /// The disk is full, for example; then nothing is kept.
    pub fn put(&self, name: &Named, result: impl FnOnce() -> io::Result<KeptResult>, is_unsent: bool) -> io::Result<bool> {
        let path = file(&self.directory, &name.file);
        let known = read(&path).ok().and_then(|kept| kept.head);
        if known.is_some_and(|head| head.id == name.id) {
            return Ok(false);
        }
        let bytes = result()?.encode_to_vec();
        // Before the result: whoever is killed in between leaves a mark without a result, which means nothing.
        let mark = self.directory.join(UNSENT).join(&name.file);
        if is_unsent {
            fs::write(&mark, [])?;
        }
        let mut aside = tempfile::Builder::new().prefix(".result-").tempfile_in(&self.directory)?;
        aside.write_all(&bytes)?;
        aside.as_file().sync_all()?;
        aside.persist(&path).map_err(|fault| fault.error)?;
        let mut shelf = self.shelf();
        shelf.remove(&name.file);
        shelf.add((now(), name.file.as_str().into()), bytes.len() as u64, is_unsent);
        drop(shelf);
        self.sweep();
        Ok(true)
    }

    /// The service has it.
    pub fn mark_sent(&self, key: &Key) {
        if let Err(fault) = fs::remove_file(self.directory.join(UNSENT).join(&*key.1))
            && fault.kind() != io::ErrorKind::NotFound
        {
            // It is sent once more by the next process, and the service knows it.
            tracing::warn!(result = &*key.1, "a result that was sent cannot be marked: {fault}");
        }
        self.shelf().mark_sent(key);
        self.sweep();
    }

    /// What is to be sent, the oldest first.
    pub fn unsent(&self) -> Vec<Key> {
        self.shelf().unsent().cloned().collect()
    }

    /// One that was kept under this name.
    /// # Errors
    /// As for [`Store::read`].
    pub fn find(&self, name: &Named) -> io::Result<KeptResult> {
        read(&file(&self.directory, &name.file))
    }

    /// # Errors
    /// It is gone, or damaged.
    pub fn read(&self, key: &Key) -> io::Result<KeptResult> {
        read(&file(&self.directory, &key.1))
    }

    /// Removes what is too old or too much.
    fn sweep(&self) {
        let surplus = self.shelf().surplus(now());
        for Surplus { key: (_, name), was_unsent } in surplus {
            if was_unsent {
                tracing::error!(result = &*name, "a result is removed that the service never took: there are too many, or it is too old");
            }
            // What is not there needs no removal, and what cannot be removed is tried again by the next process.
            let _ = fs::remove_file(file(&self.directory, &name));
            let _ = fs::remove_file(self.directory.join(UNSENT).join(&*name));
        }
    }
}

/// What a result is called: as a file, and at the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub file: String,
    pub id: String,
}

/// Names and files of the results in a directory.
/// # Errors
/// It cannot be read.
pub fn listed(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_suffix(ENDING));
        if let Some(name) = name.filter(|name| parts(name).is_some()) {
            found.push((name.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// # Errors
/// It is not there, or no result.
pub fn read(path: &Path) -> io::Result<KeptResult> {
    KeptResult::decode(fs::read(path)?.as_slice()).map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))
}

fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}{ENDING}"))
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// For tests of others: what stands for a result.
#[cfg(test)]
pub fn named(number: u64) -> (Named, KeptResult) {
    use ci_proto::results::{Head, head::Job};
    let id = format!("r#{number}@1");
    let head = Head { id: id.clone(), job: Some(Job { number, ..Job::default() }), tree_bytes: 3, ..Head::default() };
    let kept = KeptResult { head: Some(head), tree: b"abc".to_vec().into(), payload: "{}".to_owned() };
    (Named { file: name("r", number), id }, kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: Limits = Limits { age: Duration::ZERO, count: 100, bytes: 1 << 20 };

    fn put(store: &Store, number: u64) -> bool {
        let (name, kept) = named(number);
        store.put(&name, || Ok(kept), true).expect("kept")
    }

    #[test]
    fn a_result_is_kept_once_and_sent_until_it_is_taken_whoever_opens_the_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path(), MANY).expect("a store");
        assert_eq!([put(&store, 7), put(&store, 7), put(&store, 8)], [true, false, true]);
        drop(store);
        let store = Store::open(directory.path(), MANY).expect("a store");
        let unsent = store.unsent();
        assert_eq!(unsent.iter().map(|key| &*key.1).collect::<Vec<_>>(), ["r~7", "r~8"]);
        assert_eq!(store.read(&unsent[0]).expect("a result").tree, "abc");
        store.mark_sent(&unsent[0]);
        assert_eq!(Store::open(directory.path(), MANY).expect("a store").unsent()[..], unsent[1..]);
    }

    #[test]
    fn a_runner_that_died_between_mark_and_result_left_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join(UNSENT)).expect("made");
        std::fs::write(directory.path().join(UNSENT).join("r~7"), []).expect("written");
        std::fs::write(directory.path().join(".result-x"), "half").expect("written");
        let store = Store::open(directory.path(), MANY).expect("a store");
        assert_eq!((store.unsent(), listed(directory.path()).expect("listed")), (Vec::new(), Vec::new()));
        assert!(put(&store, 7));
    }

    #[test]
    fn another_job_of_the_same_number_takes_the_place_and_what_is_too_much_goes_from_the_disk() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path(), Limits { bytes: 100, ..MANY }).expect("a store");
        assert!(put(&store, 7));
        let (mut name, mut kept) = named(7);
        name.id = "r#7@2".to_owned();
        kept.tree = vec![b'x'; 60].into();
        assert!(store.put(&name, || Ok(kept), true).expect("kept"));
        assert!(put(&store, 8));
        assert_eq!(listed(directory.path()).expect("listed").iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["r~8"]);
        assert!(!directory.path().join(UNSENT).join("r~7").exists());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_results() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(&directory.path().join("results"), MANY).expect("a store");
        put(&store, 7);
        let mode = |path: PathBuf| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(directory.path().join("results")), mode(directory.path().join("results/r~7.result"))), (0o700, 0o600));
    }

    #[test]
    fn names_are_of_runners_and_jobs() {
        assert_eq!(name("https://gitlab.example:8/a#1", 7), "https___gitlab.example_8_a_1~7");
        assert_eq!((parts("r~7"), parts("r"), parts("r~x")), (Some(("r", 7)), None, None));
    }
}
