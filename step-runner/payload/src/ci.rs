//! `.gitlab-ci.yml` with its local includes: reads it file by file, and turns one job of it into steps.
//!
//! ```text
//! start -> need() = Some(pattern) -> on_files(found) -> ... -> need() = None -> job(name)
//! ```

use crate::{Here, Translation};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::diagnostic::Problem;

/// The configuration as far as it has been read.
#[derive(Debug)]
pub struct Configuration {}

/// Local files that are included and have not been given yet: a path relative to the root of the repository, or a pattern with `*` and `**`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub pattern: Arc<str>,
}

/// The problems of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileProblems {
    /// As it was named: `.gitlab-ci.yml`, `ci/build.yml`.
    pub file: Arc<str>,
    pub text: Arc<str>,
    pub problems: Vec<Problem>,
}

impl Need {
    /// Whether it stands for any number of files.
    pub fn is_pattern(&self) -> bool {
        self.pattern.contains('*')
    }

    /// Whether a file of the repository is meant; `path` is relative to its root, with `/`.
    pub fn matches(&self, _path: &str) -> bool {
        todo!()
    }
}

impl Configuration {
    /// Begins with the outermost file. `name` is for messages.
    pub fn start(_name: &str, _text: &str) -> Self {
        todo!()
    }

    /// What is to be given next with [`Configuration::on_files`]. `None`: complete.
    pub fn need(&self) -> Option<&Need> {
        todo!()
    }

    /// The files (path and text) that the need stands for; none of them if there are none.
    pub fn on_files(&mut self, _found: Vec<(String, String)>) {
        todo!()
    }

    /// The jobs that can be run, in the order in which they were written; hidden ones are left out.
    pub fn job_names(&self) -> Vec<Arc<str>> {
        todo!()
    }

    /// One job as steps.
    /// # Errors
    /// Every problem of every file; an unknown name, with the nearest known one.
    pub fn job(&self, _name: &str, _here: &Here, _supplied: &BTreeMap<String, String>) -> Result<Translation, Vec<FileProblems>> {
        todo!()
    }
}
