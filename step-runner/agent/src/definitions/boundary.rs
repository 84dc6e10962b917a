//! How far relative references may lead: the Git work tree around the job or around the document, else their directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The repository of a job, and those of documents that lie elsewhere.
#[derive(Debug)]
pub struct Boundary {
    job: PathBuf,
    /// By the directory of a document. They do not move while a job runs.
    documents: HashMap<PathBuf, PathBuf>,
}

impl Boundary {
    pub fn of(build_dir: &Path) -> Self {
        let build_dir = build_dir.canonicalize().unwrap_or_else(|_| build_dir.to_path_buf());
        Self { job: repository_of(&build_dir).unwrap_or(build_dir), documents: HashMap::new() }
    }

    /// The repository that a reference in a document of `from` leaves when it leads to `real`. `None`: it stays inside.
    pub fn is_left(&mut self, from: &Path, real: &Path) -> Option<PathBuf> {
        if real.starts_with(&self.job) {
            return None;
        }
        let document = self.documents.entry(from.to_path_buf()).or_insert_with(|| {
            let from = from.canonicalize().unwrap_or_else(|_| from.to_path_buf());
            repository_of(&from).unwrap_or(from)
        });
        if real.starts_with(&document) {
            return None;
        }
        Some(if from.starts_with(&self.job) { self.job.clone() } else { document.clone() })
    }
}

/// The top of the work tree that holds a directory: where `.git` is, a directory, or a file in a linked work tree or submodule.
fn repository_of(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find(|ancestor| ancestor.join(".git").exists()).map(Path::to_path_buf)
}
