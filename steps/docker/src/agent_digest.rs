//! The digest of an agent, which names the volume that holds it. To read and to hash eight megabytes takes half of what a container may cost above `docker run`, so it is remembered.
//!
//! `$XDG_CACHE_HOME/step-runner/agents.json` (`~/.cache`) says for each path which file was there when it was hashed, by what changes when the file does. A file that was changed less than two seconds
//! before is not remembered: it could change again and look the same.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Younger than that, a file may change and keep its times.
const SETTLED: Duration = Duration::from_secs(2);
/// Agents of other versions and places. More are hardly in use; the rest is forgotten.
const MOST: usize = 32;

/// An agent, and what its volume is named after.
#[derive(Debug, PartialEq, Eq)]
pub struct Agent {
    pub digest: String,
    path: PathBuf,
}

impl Agent {
    /// All of it, to be put somewhere. The digest is that of these bytes.
    /// # Errors
    /// It cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let bytes = std::fs::read(&self.path)?;
        self.digest = digest_of(&bytes);
        Ok(bytes)
    }
}

/// The agent at this path. `cache`: the directory where digests are remembered; without it none is.
/// # Errors
/// It cannot be read.
pub fn of(agent: &Path, cache: Option<&Path>) -> io::Result<Agent> {
    let found = Found::of(&std::fs::metadata(agent)?);
    let file = cache.map(|directory| directory.join("agents.json"));
    let mut known: BTreeMap<PathBuf, Remembered> = file.as_deref().map(remembered).unwrap_or_default();
    if let Some(remembered) = known.get(agent).filter(|remembered| remembered.found == found && is_digest(&remembered.digest)) {
        return Ok(Agent { digest: remembered.digest.clone(), path: agent.to_path_buf() });
    }
    let digest = digest_of(&std::fs::read(agent)?);
    // What was there before and after the reading was there meanwhile.
    if let Some(file) = file.filter(|_| found.is_settled()).filter(|_| std::fs::metadata(agent).is_ok_and(|now| Found::of(&now) == found)) {
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(agent.to_path_buf(), Remembered { found, digest: digest.clone() });
        // The next one hashes again.
        let _ = remember(&file, &known);
    }
    Ok(Agent { digest, path: agent.to_path_buf() })
}

/// Where this user's programs remember what they can find out again.
pub fn cache(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Some(named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?.join("step-runner"))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    found: Found,
    digest: String,
}

/// Everything about a file that a change of it changes. Nobody can set the second time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Found {
    length: u64,
    modified: Option<Duration>,
    changed: Option<Duration>,
    number: u64,
}

impl Found {
    fn of(found: &Metadata) -> Self {
        let modified = found.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let changed = u64::try_from(found.ctime()).ok().zip(u32::try_from(found.ctime_nsec()).ok());
            Self {
                length: found.len(),
                modified,
                changed: changed.map(|(seconds, rest)| Duration::new(seconds, rest)),
                number: found.ino(),
            }
        }
        #[cfg(not(unix))]
        Self { length: found.len(), modified, changed: None, number: 0 }
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        self.changed.or(self.modified).is_some_and(|last| last + SETTLED < now)
    }
}

fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Nothing, when there is nothing that can be read.
fn remembered(file: &Path) -> BTreeMap<PathBuf, Remembered> {
    std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn remember(file: &Path, known: &BTreeMap<PathBuf, Remembered>) -> io::Result<()> {
    let Some(directory) = file.parent() else { return Ok(()) };
    std::fs::create_dir_all(directory)?;
    let mut aside = tempfile::NamedTempFile::new_in(directory)?;
    aside.write_all(&serde_json::to_vec(known)?)?;
    aside.as_file().sync_all()?;
    aside.persist(file).map(drop).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent that was put there a while ago.
    fn agent(directory: &Path, text: &str) -> PathBuf {
        let path = directory.join("step-agent");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Remembers, of the file as it is, a digest that tells where it came from.
    fn pretend(path: &Path, cache: &Path) -> String {
        let digest = "ab".repeat(32);
        let found = Found::of(&std::fs::metadata(path).unwrap());
        remember(&cache.join("agents.json"), &[(path.to_path_buf(), Remembered { found, digest: digest.clone() })].into()).unwrap();
        digest
    }

    #[test]
    fn a_file_that_has_not_changed_is_not_read_again_and_one_that_has_is() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path().join("cache/step-runner");
        let path = agent(directory.path(), "one");
        assert_eq!(of(&path, Some(&cache)).unwrap().digest, digest_of(b"one"));
        assert!(!cache.exists(), "it may change within the same moment");
        let told = pretend(&path, &cache);
        assert_eq!(of(&path, Some(&cache)).unwrap().digest, told);
        assert_eq!(of(&path, None).unwrap().digest, digest_of(b"one"));
        let path = agent(directory.path(), "other");
        let mut changed = of(&path, Some(&cache)).unwrap();
        assert_eq!(changed.digest, digest_of(b"other"));
        assert_eq!((changed.read().unwrap(), changed.digest), (b"other".to_vec(), digest_of(b"other")));
    }

    #[test]
    fn what_is_put_into_the_volume_gives_the_name_also_when_what_was_remembered_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let path = agent(directory.path(), "one");
        pretend(&path, directory.path());
        let mut agent = of(&path, Some(directory.path())).unwrap();
        agent.read().unwrap();
        assert_eq!(agent.digest, digest_of(b"one"));
    }

    #[test]
    fn a_cache_that_is_damaged_or_cannot_be_written_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = agent(directory.path(), "one");
        std::fs::write(directory.path().join("agents.json"), "{\"torn").unwrap();
        assert_eq!(of(&path, Some(directory.path())).unwrap().digest, digest_of(b"one"));
        assert_eq!(of(&path, Some(&path)).unwrap().digest, digest_of(b"one"), "its directory is a file");
        assert!(of(&directory.path().join("nowhere"), Some(directory.path())).is_err());
    }

    #[test]
    fn it_lies_where_the_user_wants_caches() {
        let of = |name: &'static str, value: &'static str| cache(move |asked| (asked == name).then(|| value.to_owned()));
        assert_eq!(of("XDG_CACHE_HOME", "/c"), Some("/c/step-runner".into()));
        assert_eq!(of("HOME", "/h"), Some("/h/.cache/step-runner".into()));
        assert_eq!(of("HOME", "relative"), None);
        assert_eq!(of("OTHER", "/h"), None);
    }
}
