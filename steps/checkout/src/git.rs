//! The program `git`, called in one directory with one set of settings.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use step_sdk::Failure;

/// What would lead git somewhere else than into the directory. A hook that starts a job leaves these behind.
const NOT_INHERITED: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CEILING_DIRECTORIES",
];

#[derive(Debug)]
pub struct Git {
    dir: PathBuf,
    settings: Vec<OsString>,
    environment: Vec<(&'static str, String)>,
}

impl Git {
    pub fn new(dir: &Path, settings: Vec<(String, String)>, environment: Vec<(&'static str, String)>) -> Self {
        let settings = settings.into_iter().flat_map(|(key, value)| [OsString::from("-c"), format!("{key}={value}").into()]);
        Self { dir: dir.to_owned(), settings: settings.collect(), environment }
    }

    /// Runs it with its output in the log of the job. `false`: it has failed, and has said why.
    /// # Errors
    /// It could not be started.
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Result<bool, Failure> {
        let status = self.command(words).status();
        status.map(|status| status.success()).map_err(|error| not_started(&error))
    }

    /// Runs it unseen. `None`: it has failed.
    /// # Errors
    /// It could not be started.
    pub fn ask<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Result<Option<String>, Failure> {
        let output = self.command(words).stderr(Stdio::null()).output().map_err(|error| not_started(&error))?;
        Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned()))
    }

    fn command<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Command {
        let mut command = Command::new("git");
        command.args(&self.settings).args(words).current_dir(&self.dir).stdin(Stdio::null());
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        // Nobody is there to answer.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GCM_INTERACTIVE", "never");
        command.envs(self.environment.iter().map(|(name, value)| (*name, value)));
        command
    }
}

fn not_started(error: &io::Error) -> Failure {
    let failure = Failure::step(format!("could not start `git`: {error}"));
    if error.kind() == io::ErrorKind::NotFound { failure.with_hint("install git where the job runs") } else { failure }
}
