//! A directory of its own for one journey: files are put there, and the program is run in it.

use crate::program::{Finished, Invocation, path};
use std::path::{Path, PathBuf};

/// Removed at the end, with everything in it. The program's temporary files go to `tmp` inside it, so that what it leaves can be seen.
#[derive(Debug)]
pub struct Workshop {
    directory: tempfile::TempDir,
}

impl Default for Workshop {
    fn default() -> Self {
        Self::new()
    }
}

impl Workshop {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("journey-").tempdir().expect("a temporary directory can be made");
        std::fs::create_dir(directory.path().join("tmp")).expect("a directory can be made");
        Self { directory }
    }

    pub fn dir(&self) -> &Path {
        self.directory.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Writes a file and the directories above it.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("below the workshop")).expect("directories can be made");
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("could not read {name}: {error}"))
    }

    /// `step-runner ARGUMENTS` in the workshop.
    pub fn step_runner(&self, arguments: &[&str]) -> Invocation {
        Invocation::step_runner(arguments).dir(self.dir()).env("TMPDIR", self.path("tmp"))
    }

    /// `runner-core ARGUMENTS` in the workshop.
    pub fn runner_core(&self, arguments: &[&str]) -> Invocation {
        Invocation::of(&path("RUNNER_CORE"), arguments).dir(self.dir()).env("TMPDIR", self.path("tmp"))
    }

    /// A shell line in the workshop, with `step-runner` and `runner-core` in the PATH.
    pub fn shell(&self, line: &str) -> Invocation {
        let programs = self.path("programs");
        std::fs::create_dir_all(&programs).expect("a directory can be made");
        for (name, variable) in [("step-runner", "STEP_RUNNER"), ("runner-core", "RUNNER_CORE")] {
            let link = programs.join(name);
            if link.exists() {
                continue;
            }
            #[cfg(unix)]
            std::os::unix::fs::symlink(path(variable), &link).expect("a link can be made");
            #[cfg(not(unix))]
            std::fs::copy(path(variable), &link).map(drop).expect("a program can be copied");
        }
        let search = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        Invocation::of(Path::new("/bin/sh"), ["-c", line]).dir(self.dir()).env("PATH", search).env("TMPDIR", self.path("tmp"))
    }

    /// Writes a definition as `step.yml` in the directory `job` and runs it.
    pub fn run_definition(&self, definition: &str, more: &[&str]) -> Invocation {
        self.file("job/step.yml", definition);
        let arguments: Vec<&str> = ["run", "./job"].into_iter().chain(more.iter().copied()).collect();
        self.step_runner(&arguments)
    }

    /// The result tree that a run wrote.
    pub fn result(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).unwrap_or_else(|error| panic!("{name} is not JSON: {error}\n{}", self.read(name)))
    }

    /// What is in the temporary directory of the program: nothing, when it has tidied up.
    pub fn left_behind(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("tmp")).expect("the directory can be listed");
        entries.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

/// A run request as protobuf JSON: the text of the steps, and other fields as they are given.
pub fn run_request(steps: &str, more: serde_json::Value) -> String {
    let mut request = serde_json::json!({"id": "journey", "steps": format!("{{}}\n---\n{steps}")});
    if let (Some(request), Some(more)) = (request.as_object_mut(), more.as_object()) {
        request.extend(more.clone());
    }
    request.to_string()
}

/// Runs to the end and asserts the exit code.
pub trait Ends {
    fn ends(self, code: i32) -> Finished;
}

impl Ends for Invocation {
    #[track_caller]
    fn ends(self, code: i32) -> Finished {
        self.finish().exits(code)
    }
}
