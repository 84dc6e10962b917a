//! The configuration file as these commands use it: read, changed as a text, and written aside, synced, renamed.

use super::WhichFile;
use crate::run::configuration::{default_path, environment};
use runner_config::settings::Runner;
use runner_config::{Parsed, Settings, parse};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use step_console::exit::{Exit, Stop};
use step_console::given::{self, words};
use tempfile::NamedTempFile;

/// A file that was read; empty when there is none yet.
#[derive(Debug)]
pub struct EntryFile {
    pub path: PathBuf,
    pub text: String,
    /// Of the process: the file refers to it.
    pub variables: BTreeMap<String, String>,
    pub parsed: Parsed,
}

impl EntryFile {
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn read(which: &WhichFile) -> Result<Self, Stop> {
        let (path, variables) = place(which);
        let text = given::file(&path).map_err(|stop| stop.with_hint("`--config FILE` names another one"))?.text;
        Ok(Self::of(path, text, variables))
    }

    /// The same where it need not be there.
    /// # Errors
    /// It is there and cannot be read.
    pub fn read_or_begin(which: &WhichFile) -> Result<Self, Stop> {
        let (path, variables) = place(which);
        let text = if path.exists() { given::file(&path)?.text } else { String::new() };
        Ok(Self::of(path, text, variables))
    }

    fn of(path: PathBuf, text: String, variables: BTreeMap<String, String>) -> Self {
        let parsed = parse(&text, &variables);
        Self { path, text, variables, parsed }
    }

    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Where files that belong to it lie.
    pub fn directory(&self) -> PathBuf {
        let absolute = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        absolute.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
    }

    /// # Errors
    /// The file cannot be used; `config check` says why.
    pub fn settings(&self) -> Result<&Settings, Stop> {
        self.parsed.settings.as_ref().ok_or_else(|| {
            Stop::bad_input(format!("`{}` cannot be used", self.shown())).with_hint("`runner-core config check` names every mistake")
        })
    }

    /// All entries, served or not.
    /// # Errors
    /// As for [`EntryFile::settings`].
    pub fn entries(&self) -> Result<Vec<Runner>, Stop> {
        Ok(self.settings()?.entries().into_iter().cloned().collect())
    }

    /// A place beside the file for its next text. Made before a server is asked for something that must not be lost.
    /// # Errors
    /// The directory cannot be written.
    pub fn aside(&self) -> Result<NamedTempFile, Stop> {
        let directory = self.directory();
        let fault = |error: &std::io::Error| {
            Stop::new(Exit::BadInput, format!("could not write into `{}`: {}", directory.display(), words(error)))
                .with_hint("`--config FILE` names another file")
        };
        std::fs::create_dir_all(&directory).map_err(|error| fault(&error))?;
        tempfile::Builder::new().prefix(".config.toml.").tempfile_in(&directory).map_err(|error| fault(&error))
    }

    /// Replaces the file. It keeps its rights; a new one is readable by its owner alone, since it holds tokens.
    /// # Errors
    /// It could not be written, and is as it was.
    pub fn replace(&mut self, mut aside: NamedTempFile, text: String) -> Result<(), Stop> {
        // A link goes on leading to the file.
        let target = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let mut write = || {
            if let Ok(known) = std::fs::metadata(&target) {
                aside.as_file().set_permissions(known.permissions())?;
            }
            aside.write_all(text.as_bytes())?;
            aside.as_file().sync_all()
        };
        let fault = |error: &std::io::Error| Stop::new(Exit::Fault, format!("could not write `{}`: {}", target.display(), words(error)));
        write().map_err(|error| fault(&error))?;
        aside.persist(&target).map_err(|error| fault(&error.error))?;
        self.parsed = parse(&text, &self.variables);
        self.text = text;
        Ok(())
    }
}

fn place(which: &WhichFile) -> (PathBuf, BTreeMap<String, String>) {
    let variables = environment();
    let path = which.config.clone().unwrap_or_else(|| default_path(&variables));
    (path, variables)
}
