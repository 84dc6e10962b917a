//! What the engine wants done.

use std::sync::Arc;
use step_model::limits::Limits;
use step_model::plan::{Plan, Provenance};
use step_model::reference::{Digest, LocalReference};
use step_model::result::StepId;
use step_model::value::{Object, Value};

/// The number of a request to load a definition. Every load gets exactly one [`crate::event::Event::Loaded`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoadId(pub u32);

/// What should happen. Effects that can fail carry an id, and get exactly one outcome with that id.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Create the two empty files of a sequence that names them. Outcome: `FilesPrepared` or `FilesNotPrepared`.
    PrepareFiles { step: StepId, files: StepFiles },
    /// Create the step's files, if it has any, and start a process. Outcome: `Spawned` or `NotSpawned`; after `Spawned`, one `Exited`.
    Spawn { step: StepId, process: Process },
    /// Ask the processes of the step to end. Before `Spawned` the host keeps it and applies it at birth. No outcome.
    Terminate { step: StepId },
    /// End the processes of the step. As `Terminate`.
    Kill { step: StepId },
    /// Read both files of the step and remove them. `result`: what the output file holds may be a whole result (`FileContent::Result`).
    /// Outcome: `Outputs`.
    ReadOutputs { step: StepId, files: StepFiles, result: bool },
    /// Remove both files of the step without a look at them. No outcome.
    RemoveFiles { step: StepId, files: StepFiles },
    /// Read a definition. Outcome: `Loaded`.
    Load { load: LoadId, from: Arc<str>, reference: LocalReference },
    /// A line of the engine's own for the log, without a newline: `Running step name=x`, or a warning. No outcome.
    Say { step: StepId, line: String, warning: bool },
    /// A sensitive value was born: mask it from here on. No outcome. Comes before any effect that could show it.
    Mask { value: Value },
    /// The step has begun; written down before it is spawned. Details are asked of the run. No outcome.
    Started { step: StepId },
    /// The step has its final status. No outcome.
    Ended { step: StepId },
    /// The run is over: the result is final, and nothing but clean-up is left to do. The last effect, exactly once.
    Finished,
}

/// A process to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// At least the program. A name without a slash is looked for in the PATH of `env`.
    pub command: Vec<Value>,
    /// Absolute.
    pub work_dir: Value,
    /// Sorted by name; names are unique.
    pub env: Vec<(Arc<str>, Value)>,
    /// To be created empty before the process starts. `None`: no expression of the step names its files, so nobody can know where they are;
    /// none are created, and none are read.
    pub files: Option<StepFiles>,
    /// The shell is chosen by the host, and the command is what the script needs (original.md F.5).
    pub script: Option<Script>,
    /// The files of a step that is a program.
    pub program: Option<Box<Program>>,
    /// What it may use. The host says what became of each (`Limited`).
    pub limits: Limits,
}

/// What a step that is a program finds in files of its own (docs/reference/step-programs.md). The host makes them before the process starts, for
/// nobody else to read, and removes them when it has ended. It also says in `STEP_RUNNER_CLEANUP` where clean-up commands are left.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Absolute, as `STEP_RUNNER_INPUTS` says.
    pub inputs_file: Arc<str>,
    /// To be written as one JSON object.
    pub inputs: Object,
    pub handover: Option<HandoverFile>,
}

/// Steps that are handed over.
#[derive(Debug, Clone, PartialEq)]
pub struct HandoverFile {
    /// Absolute, as `STEP_RUNNER_HANDOVER` says.
    pub path: Arc<str>,
    /// With the places of this job. Its `process_env` is empty.
    pub plan: Plan,
}

/// A text for the shell instead of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Script {
    /// `script:`: one `-c` argument; errexit and pipefail stay off in the text. bash, else sh.
    Text(Value),
    /// A GitLab job's script: errexit, pipefail where the shell has it, entries as given.
    Legacy(step_model::document::ScriptLegacy),
}

/// The paths of a step's output and export files. Absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFiles {
    pub output: Arc<str>,
    pub export: Arc<str>,
}

/// What a load found.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedDefinition {
    pub text: String,
    /// Of the bytes of the file.
    pub digest: Digest,
    /// The directory of the file: absolute, without symbolic links.
    pub dir: Arc<str>,
    /// The name of the file in it: `func.yml`, `step.yml` or what was named.
    pub file: Arc<str>,
    pub provenance: Option<Provenance>,
}
