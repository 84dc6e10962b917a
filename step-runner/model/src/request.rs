//! What somebody asks an agent to run.

use crate::document::StepDocument;
use crate::limits::Limits;
use crate::plan::Plan;
use crate::trace::TraceContext;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A run request, read and checked (message `RunRequest` of the wire).
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Empty when the request has none.
    pub id: Arc<str>,
    /// Where commands run. `None`: the build directory, else the agent's own.
    pub work_dir: Option<Arc<str>>,
    /// What references of the job are relative to. `None`: the work directory.
    pub build_dir: Option<Arc<str>>,
    pub env: BTreeMap<Arc<str>, Arc<str>>,
    /// The last of a name wins.
    pub variables: Vec<Variable>,
    pub steps: Arc<StepDocument>,
    /// `None`: no limit.
    pub timeout: Option<Duration>,
    /// For every step.
    pub limits: Limits,
    /// The span of the caller. `None`: the job begins a trace.
    pub trace_parent: Option<TraceContext>,
    /// What was handed over, in place of steps: places, paths and the environment of the process are those of the sender.
    pub plan: Option<Box<Plan>>,
}

/// A job variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub key: Arc<str>,
    pub value: Arc<str>,
    /// The value is written to a file, and the variable holds its path.
    pub file: bool,
    pub masked: bool,
}
