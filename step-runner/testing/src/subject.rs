//! The definition that is tested: read once, planned for every case.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_model::diagnostic::Problem;
use step_model::document::StepDocument;
use step_model::document::raw;
use step_model::reference::Digest;

/// Looked for in this order, as `step-runner run` does.
const FILES: [&str; 2] = ["func.yml", "step.yml"];

/// A definition at hand.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Absolute, without symbolic links.
    pub dir: Arc<str>,
    pub file: Arc<str>,
    /// What its references must not leave, besides a repository: where the tests are run, if it lies there.
    pub boundary: Arc<str>,
    pub text: Arc<str>,
    pub digest: Digest,
    pub document: Arc<StepDocument>,
}

/// Why there is nothing to test.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoSubject {
    #[error("there is no `func.yml` and no `step.yml` in `{0}`")]
    NotThere(String),
    #[error("could not read `{file}`: {why}")]
    Unreadable { file: String, why: String },
    /// Every problem; in a test a warning is an error.
    #[error("`{file}` has {} problems", problems.len())]
    Problems { file: String, text: Arc<str>, problems: Vec<Problem> },
}

impl Subject {
    /// Reads a definition, or the one of a directory.
    /// # Errors
    /// It is not there, or has problems.
    pub fn read(path: &Path) -> Result<Self, NoSubject> {
        let file = if path.is_dir() {
            let found = FILES.iter().map(|file| path.join(file)).find(|file| file.is_file());
            found.ok_or_else(|| NoSubject::NotThere(path.display().to_string()))?
        } else {
            path.to_path_buf()
        };
        let shown = file.display().to_string();
        let unreadable = |why: String| NoSubject::Unreadable { file: shown.clone(), why };
        let real = file.canonicalize().map_err(|error| unreadable(in_words(&error)))?;
        let bytes = fs::read(&real).map_err(|error| unreadable(in_words(&error)))?;
        let problems = |text: &str, problems| NoSubject::Problems { file: shown.clone(), text: text.into(), problems };
        let text = raw::text_of(&bytes).map_err(|problem| problems("", vec![problem]))?;
        let (dir, name) = parts_of(&real).ok_or_else(|| unreadable("its path is not UTF-8".into()))?;
        let reading = raw::read(text, &name);
        let document = reading.document.filter(|_| reading.problems.is_empty()).ok_or_else(|| problems(text, reading.problems))?;
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
        let here = here.as_deref().filter(|here| Path::new(&*dir).starts_with(here)).and_then(Path::to_str);
        let boundary = here.map_or_else(|| Arc::clone(&dir), Arc::from);
        Ok(Self { boundary, dir, file: name, digest: Digest::of(text.as_bytes()), text: text.into(), document })
    }

    pub fn path(&self) -> PathBuf {
        Path::new(&*self.dir).join(&*self.file)
    }
}

fn parts_of(path: &Path) -> Option<(Arc<str>, Arc<str>)> {
    Some((path.parent()?.to_str()?.into(), path.file_name()?.to_str()?.into()))
}

/// What the system says, without its number.
pub(crate) fn in_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
