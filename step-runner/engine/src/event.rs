//! What happened.

use crate::effect::{LoadId, LoadedDefinition};
use step_model::limits::{AppliedLimit, LimitName};
use step_model::result::{OwnedTree, StepId, Usage};

/// Outcomes of effects, and what comes from outside. An outcome that nobody waits for is legal and ignored.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    FilesPrepared {
        step: StepId,
    },
    FilesNotPrepared {
        step: StepId,
        fault: String,
    },
    /// What became of the limits of a step. Comes before its `Exited`, and only where there are any.
    Limited {
        step: StepId,
        limits: Vec<AppliedLimit>,
    },
    /// A step came to this limit, and something of it failed for that. Comes before its `Exited`.
    LimitReached {
        step: StepId,
        limit: LimitName,
    },
    Spawned {
        step: StepId,
    },
    NotSpawned {
        step: StepId,
        fault: SpawnFault,
    },
    /// The process of the step has ended and what it wrote until then is in the log.
    Exited {
        step: StepId,
        exit: Exit,
        usage: Usage,
    },
    Outputs {
        step: StepId,
        output: FileContent,
        export: FileContent,
    },
    Loaded {
        load: LoadId,
        outcome: Result<LoadedDefinition, LoadFault>,
    },
    /// The log cannot be written any more (a closed or full standard output): the job is over.
    LogFailed {
        fault: String,
    },
    /// Somebody wants the job to end: ask, wait for the grace period, kill.
    Cancel,
    /// Somebody wants the job to end at once.
    CancelNow,
    /// Time has passed: due no later than `Run::next_deadline`.
    Woken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// Why a process did not start. `message` is the original's text after `exec: `, made by the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnFault {
    pub kind: SpawnFaultKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnFaultKind {
    /// The step asked for something that is not there: program, interpreter, work directory, permission.
    Step,
    /// The machine could not: no memory, no process, no space.
    Machine,
}

/// What was found where a step was to write a file.
#[derive(Debug, Clone, PartialEq)]
pub enum FileContent {
    /// Empty when nothing was written.
    Bytes(Vec<u8>),
    /// A whole result, where one was looked for: what ran in another environment.
    Result(Box<OwnedTree>),
    /// It was meant as a whole result, and is none. Says why.
    NoResult(String),
    /// It cannot be read as a file: removed, a directory, a FIFO, too large, no permission. Says which.
    Unreadable(String),
}

/// Why a definition could not be loaded. `message` is the original's text after `failed to load: `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFault {
    pub kind: LoadFaultKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadFaultKind {
    /// There is nothing at that path (yet).
    NotFound,
    /// It leaves the repository, is no regular file, is too large, or cannot be read.
    Refused,
}
