//! A plan: a job whose references have been resolved as far as they can be before the first step starts.

use crate::builtin::Builtins;
use crate::document::StepDocument;
use crate::limits::Limits;
use crate::reference::Digest;
use crate::trace::TraceContext;
use crate::value::{Object, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Everything that a run needs to know at its start.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub root: Arc<PlannedDocument>,
    pub places: Places,
    /// Level 6 of the environment's precedence: what the agent's own process passes on.
    pub process_env: BTreeMap<Arc<str>, Value>,
    /// Level 5: the environment of the request.
    pub request_env: BTreeMap<Arc<str>, Value>,
    /// Job variables: `vars.NAME`, `job.NAME`. A file variable holds its path; a masked one is marked sensitive.
    pub variables: BTreeMap<Arc<str>, Value>,
    /// The contents of the file variables, by name: what a handover copies.
    pub file_variables: BTreeMap<Arc<str>, Arc<str>>,
    /// The limit of the whole job, from its start. `None`: none.
    pub timeout: Option<Duration>,
    /// For every step.
    pub limits: Limits,
    /// How long a process may take to end after it was asked to. Zero kills it at once.
    pub grace_period: Duration,
    pub level: Level,
    /// Warnings are errors.
    pub strict: bool,
    /// The span of the caller, which the spans of the job are joined to. `None`: the job begins a trace.
    pub trace_parent: Option<TraceContext>,
    /// The steps that are compiled into this program.
    pub builtins: Builtins,
    /// `None`: a job of its own.
    pub handover: Option<HandedOver>,
}

/// What steps that were handed over see of where they come from (docs/design/0007).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HandedOver {
    /// `inputs.*` of the outermost steps: values that the caller evaluated, with their marks.
    pub inputs: Object,
    /// Levels 1 to 3 of the environment's precedence around the step that handed over: an export of an inner step does not win over them.
    pub enclosing_env: BTreeMap<Arc<str>, Value>,
}

/// Directories of a job, absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Where commands run: `work_dir`.
    pub work_dir: Arc<str>,
    /// What relative references of the job itself are relative to.
    pub build_dir: Arc<str>,
    /// Holds the output and export files of the steps.
    pub files_dir: Arc<str>,
}

/// Which release of the original texts and framing follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// `Running step "name"`
    V0_12,
    /// `Running step name=name`
    #[default]
    V0_44,
}

/// A document, where it was found, and what its steps refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedDocument {
    pub document: Arc<StepDocument>,
    /// The directory of the definition file: `step_dir`, `func_dir`. The build directory for the job itself.
    pub dir: Arc<str>,
    /// The file inside `dir`, for messages; empty for the job itself.
    pub file: Arc<str>,
    /// Of the text of the definition file. `None` for the job itself and for what is compiled in.
    pub digest: Option<Digest>,
    /// `None` when it is not known or was not asked for.
    pub provenance: Option<Provenance>,
    /// One for each step of the sequence, in its order; empty for an exec.
    pub targets: Vec<Target>,
    /// The sequences that steps hand over, as they were seen before the run, by the position of the step.
    pub handovers: BTreeMap<usize, Arc<PlannedDocument>>,
    /// Compiled into the program: no file holds it.
    pub builtin: bool,
}

impl Plan {
    /// A plan with nothing but a root: no environment, no variables, no limits.
    pub fn of(root: Arc<PlannedDocument>, places: Places) -> Self {
        Self {
            root,
            places,
            process_env: BTreeMap::new(),
            request_env: BTreeMap::new(),
            variables: BTreeMap::new(),
            file_variables: BTreeMap::new(),
            timeout: None,
            limits: Limits::default(),
            grace_period: Duration::ZERO,
            level: Level::default(),
            strict: false,
            trace_parent: None,
            builtins: Builtins::default(),
            handover: None,
        }
    }
}

impl PlannedDocument {
    /// What no file holds, of which nothing is resolved yet. `dir`: what its references are relative to.
    pub fn of_job(document: Arc<StepDocument>, dir: Arc<str>) -> Self {
        Self {
            document,
            dir,
            file: Arc::from(""),
            digest: None,
            provenance: None,
            targets: Vec::new(),
            handovers: BTreeMap::new(),
            builtin: false,
        }
    }

    /// A program that finds its inputs in a file, and may get steps handed over (docs/reference/step-programs.md).
    pub fn is_program(&self) -> bool {
        self.builtin || self.document.spec.takes_steps()
    }
}

/// What one step of a sequence refers to.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A document that is known.
    Document(Arc<PlannedDocument>),
    /// The shell: there is no document.
    Script,
    /// Resolved when the run reaches it: a dynamic reference, or a local one that an earlier step may still write.
    /// What was there at plan time is kept: it is used again when the content is the same.
    Hole { seen: Option<Arc<PlannedDocument>> },
}

/// The commit that a local step came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// Hexadecimal.
    pub commit: Arc<str>,
    /// Whether the directory of the step differs from the commit.
    pub dirty: bool,
}
