//! Waits for a change of a file below some paths.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// Between two looks. People do not notice it, and a look at some hundred files takes a millisecond.
const LOOK: Duration = Duration::from_millis(250);
/// More files than that are not looked at: the directory was hardly meant.
const MOST_FILES: usize = 20_000;

pub struct Watch {
    paths: Vec<PathBuf>,
    /// Absolute: what a round writes is no reason for the next.
    ignored: Vec<PathBuf>,
    seen: BTreeMap<PathBuf, (SystemTime, u64)>,
}

impl Watch {
    pub fn of(paths: &[PathBuf], ignored: &[PathBuf]) -> Self {
        // What a file refers to lies beside it as a rule.
        let dir =
            |path: &PathBuf| if path.is_file() { path.parent().map_or_else(|| path.clone(), Path::to_path_buf) } else { path.clone() };
        let paths: Vec<PathBuf> = paths.iter().map(dir).map(|path| if path.as_os_str().is_empty() { ".".into() } else { path }).collect();
        let ignored: Vec<PathBuf> = ignored.iter().filter_map(|path| absolute(path)).collect();
        let seen = look(&paths, &ignored);
        Self { paths, ignored, seen }
    }

    /// Whether something changed; `false` when it was cancelled.
    pub fn wait_for_change(&mut self, cancelled: &AtomicBool) -> bool {
        while !cancelled.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
            let now = look(&self.paths, &self.ignored);
            if now != self.seen {
                self.seen = now;
                return true;
            }
        }
        false
    }
}

/// Of a file that need not be there, in a directory that is.
fn absolute(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(parent.canonicalize().ok()?.join(path.file_name()?))
}

fn look(paths: &[PathBuf], ignored: &[PathBuf]) -> BTreeMap<PathBuf, (SystemTime, u64)> {
    let mut seen = BTreeMap::new();
    let mut open: Vec<PathBuf> = paths.to_vec();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok) {
            let name = entry.file_name();
            let Ok(metadata) = entry.metadata() else { continue };
            if ignored.iter().any(|path| path.file_name() == Some(&name))
                && absolute(&entry.path()).is_some_and(|path| ignored.contains(&path))
            {
                continue;
            }
            if metadata.is_dir() && !name.to_string_lossy().starts_with('.') && name != "target" && name != "node_modules" {
                open.push(entry.path());
            } else if metadata.is_file() && seen.len() < MOST_FILES {
                seen.insert(entry.path(), (metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len()));
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_a_change_and_a_report_or_what_a_tool_keeps_for_itself_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::create_dir_all(directory.path().join(name).parent().unwrap()).unwrap();
            fs::write(directory.path().join(name), text).unwrap();
        };
        file("a/func.yml", "1");
        let ignored = [directory.path().join("junit.xml")];
        let seen = || look(&[directory.path().to_path_buf()], &ignored.iter().filter_map(|path| absolute(path)).collect::<Vec<_>>());
        let before = seen();
        for name in ["junit.xml", ".git/index", "target/x", "node_modules/x"] {
            file(name, "1");
            assert_eq!(seen(), before, "{name}");
        }
        file("a/func.yml", "12");
        assert_ne!(seen(), before);
        file("a/func.yml", "1");
        file("b/junit.xml", "of somebody else");
        assert_eq!(seen().len(), before.len() + 1);
    }

    #[test]
    fn a_change_that_was_made_before_it_is_waited_for_counts_and_a_cancelled_wait_ends() {
        let directory = tempfile::tempdir().unwrap();
        let mut watch = Watch::of(&[directory.path().to_path_buf()], &[]);
        fs::write(directory.path().join("func.yml"), "1").unwrap();
        assert!(watch.wait_for_change(&AtomicBool::new(false)));
        assert!(!watch.wait_for_change(&AtomicBool::new(true)));
    }
}
