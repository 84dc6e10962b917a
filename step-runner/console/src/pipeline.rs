//! Reads a `.gitlab-ci.yml` with the local files that it includes.

use crate::exit::Stop;
use crate::given::{self, Given};
use std::path::{Path, PathBuf};
use step_payload::ci::{Configuration, Need};

/// No repository has more files for its pipeline; a pattern that meets more is a mistake.
const MOST_FILES: usize = 1_000;

/// Directories that hold no part of a pipeline and may be large.
const NOT_LOOKED_INTO: [&str; 3] = [".git", "node_modules", "target"];

/// Reads the file and all that it includes, which are looked for from the current directory, the root of the work tree.
/// # Errors
/// A file cannot be read.
pub fn read(given: &Given) -> Result<Configuration, Stop> {
    let mut configuration = Configuration::start(&given.name, &given.text);
    while let Some(need) = configuration.need().cloned() {
        let found = find(&need)?;
        configuration.on_files(found);
    }
    Ok(configuration)
}

fn find(need: &Need) -> Result<Vec<(String, String)>, Stop> {
    let root = Path::new(".");
    let paths = if need.is_pattern() { matching(root, need)? } else { vec![need.pattern.trim_start_matches('/').to_owned()] };
    let mut found = Vec::new();
    for path in paths {
        // A local include is a file of the repository; GitLab knows no other.
        let leaves = path.split('/').any(|part| part == "..");
        if !leaves && Path::new(&path).is_file() {
            found.push((path.clone(), given::file(Path::new(&path))?.text));
        }
    }
    Ok(found)
}

/// All files below `root` that a pattern means, sorted.
fn matching(root: &Path, need: &Need) -> Result<Vec<String>, Stop> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() && !NOT_LOOKED_INTO.iter().any(|skipped| name == **skipped) {
                open.push(entry.path());
            }
            let path = entry.path();
            let Some(relative) = path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
            let relative = relative.replace(std::path::MAIN_SEPARATOR, "/");
            if kind.is_file() && need.matches(&relative) {
                found.push(relative);
            }
        }
        if found.len() > MOST_FILES {
            return Err(Stop::bad_input(format!("`include: {}` means more than {MOST_FILES} files", need.pattern)));
        }
    }
    found.sort();
    Ok(found)
}
