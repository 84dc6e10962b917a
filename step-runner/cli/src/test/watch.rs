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
    seen: BTreeMap<PathBuf, (SystemTime, u64)>,
}

impl Watch {
    pub fn of(paths: &[PathBuf]) -> Self {
        // What a file refers to lies beside it as a rule.
        let dir =
            |path: &PathBuf| if path.is_file() { path.parent().map_or_else(|| path.clone(), Path::to_path_buf) } else { path.clone() };
        let paths: Vec<PathBuf> = paths.iter().map(dir).map(|path| if path.as_os_str().is_empty() { ".".into() } else { path }).collect();
        let seen = look(&paths);
        Self { paths, seen }
    }

    /// Whether something changed; `false` when it was cancelled.
    pub fn wait_for_change(&mut self, cancelled: &AtomicBool) -> bool {
        while !cancelled.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
            let now = look(&self.paths);
            if now != self.seen {
                self.seen = now;
                return true;
            }
        }
        false
    }
}

fn look(paths: &[PathBuf]) -> BTreeMap<PathBuf, (SystemTime, u64)> {
    let mut seen = BTreeMap::new();
    let mut open: Vec<PathBuf> = paths.to_vec();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok) {
            let name = entry.file_name();
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && !name.to_string_lossy().starts_with('.') && name != "target" && name != "node_modules" {
                open.push(entry.path());
            } else if metadata.is_file() && seen.len() < MOST_FILES {
                seen.insert(entry.path(), (metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len()));
            }
        }
    }
    seen
}
