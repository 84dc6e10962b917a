//! The files of a step that is a program: its inputs, what is handed over to it, and where it leaves clean-up commands. They hold secrets, so nobody
//! else reads them, and they are removed when the program has ended, whatever else is kept.

use crate::system_error;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_engine::effect::{Process, Program};
use step_engine::event::{SpawnFault, SpawnFaultKind};
use step_model::value::Value;

/// Says where clean-up commands are left (docs/reference/step-programs.md).
const CLEANUP: &str = "STEP_RUNNER_CLEANUP";

/// Files that are removed with this value.
#[derive(Debug)]
pub struct ProgramFiles {
    paths: Vec<PathBuf>,
    cleanup: Arc<str>,
}

impl ProgramFiles {
    /// `cleanup`: made if it is not there, and not removed.
    /// # Errors
    /// A file cannot be written. None is left then.
    pub fn write(program: &Program, cleanup: &Path) -> Result<Self, SpawnFault> {
        let fault = |what: &str, error: &io::Error| SpawnFault {
            kind: SpawnFaultKind::Machine,
            message: format!("{what}: {}", system_error::text(error)),
        };
        let mut files = Self { paths: Vec::new(), cleanup: cleanup.to_string_lossy().into() };
        let inputs: serde_json::Map<_, _> = program.inputs.iter().map(|(name, value)| (name.to_string(), value.to_json())).collect();
        let inputs = serde_json::Value::Object(inputs).to_string();
        files.create(Path::new(&*program.inputs_file), inputs.as_bytes()).map_err(|error| fault("inputs file", &error))?;
        if let Some(handover) = &program.handover {
            let bytes = step_client::wire::plan::encode(&handover.plan);
            files.create(Path::new(&*handover.path), &bytes).map_err(|error| fault("handover file", &error))?;
        }
        private().append(true).create(true).open(cleanup).map_err(|error| fault("clean-up file", &error))?;
        Ok(files)
    }

    /// The process with the variable that says where clean-up commands are left.
    pub fn told(&self, process: &Process) -> Process {
        let mut process = process.clone();
        let variable = (Arc::from(CLEANUP), Value::string(Arc::clone(&self.cleanup)));
        match process.env.binary_search_by(|(name, _)| (**name).cmp(CLEANUP)) {
            Ok(index) => process.env[index] = variable,
            Err(index) => process.env.insert(index, variable),
        }
        process
    }

    fn create(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = private().write(true).create_new(true).open(path)?;
        self.paths.push(path.to_path_buf());
        file.write_all(content)
    }
}

impl Drop for ProgramFiles {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// 0600.
fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "the mode is Unix's"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
