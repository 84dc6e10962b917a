//! What a definition file says, once it has been read and checked: `StepDocument` cannot be wrong.
//!
//! Source: original.md A (GitLab step-runner, `schema/v1`).

pub mod format;
pub mod handover;
pub mod interface;
pub mod lint;
pub mod raw;
#[cfg(feature = "schema")]
pub mod schema;
pub mod write;
pub mod yaml;

use crate::diagnostic::Place;
use crate::expression::Template;
use crate::limits::Limits;
use crate::reference::StepReference;
use crate::value::{Kind, Value};
use std::sync::Arc;
use std::time::Duration;

/// Which of the two languages a document is written in (original.md 0.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// `step.yml` of v0.12.
    Steps,
    /// `func.yml`, or a document whose `run` uses `func:`.
    Functions,
}

/// A definition file: what the step takes and gives, and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct StepDocument {
    pub dialect: Dialect,
    pub spec: Spec,
    pub definition: Definition,
}

/// The face of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    /// In the order in which they were written.
    pub inputs: Vec<(Arc<str>, Input)>,
    pub outputs: Outputs,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    pub kind: Kind,
    /// `None`: the input must be given. Never expanded.
    pub default: Option<Value>,
    pub sensitive: bool,
    pub description: Option<Arc<str>>,
    /// The value is handed over unexpanded to another environment (functions dialect): an array of steps, or a struct of their outputs.
    pub template: bool,
}

impl Spec {
    /// Whether steps are handed over to it: it has an input that is not expanded.
    pub fn takes_steps(&self) -> bool {
        self.inputs.iter().any(|(_, input)| input.template)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outputs {
    Declared(Vec<(Arc<str>, Output)>),
    /// The outputs of a named child, or of what an exec writes as a whole result, become ours.
    Delegate,
}

impl Default for Outputs {
    fn default() -> Self {
        Self::Declared(Vec::new())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub kind: Kind,
    /// `None`: the step must write it.
    pub default: Option<Value>,
    pub sensitive: bool,
    pub description: Option<Arc<str>>,
}

/// The work of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Environment for the process, or for every step of the sequence. Names may hold expressions in the functions dialect.
    pub env: Vec<(Template, Template)>,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Exec(Exec),
    Sequence(Sequence),
}

/// A command that is executed as it stands; no shell is involved.
#[derive(Debug, Clone, PartialEq)]
pub struct Exec {
    /// At least one item.
    pub command: Vec<Template>,
    /// `None`: the work directory of the job.
    pub work_dir: Option<Template>,
}

/// Steps that run one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sequence {
    pub steps: Vec<Arc<Step>>,
    /// Evaluated after the last step.
    pub outputs: Vec<(Arc<str>, ValueTemplate)>,
    /// The child whose outputs become ours; effective only with [`Outputs::Delegate`].
    pub delegate: Option<Arc<str>>,
}

/// One item of a sequence: an invocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Empty for the one step that `run` wraps, and for items of `ci` without a name.
    pub name: Arc<str>,
    pub action: Action,
    pub env: Vec<(Template, Template)>,
    pub inputs: Vec<(Template, ValueTemplate)>,
    /// Set by `step-payload` and policy only; no file syntax.
    pub when: When,
    /// Exit codes that do not fail the job. Set by `step-payload` and policy only.
    pub allow_failure: AllowFailure,
    /// `None`: only the job's limit holds. Set by `step-payload` and policy only.
    pub timeout: Option<Duration>,
    /// For it and every step in it, besides those of the job. Set by `step-payload` and policy only.
    pub limits: Limits,
    /// The steps that it hands over, in place of an input. Set by `step-payload` only.
    pub inner: Option<Arc<StepDocument>>,
    /// Where the document says so; `None` for a step that no file wrote.
    pub place: Option<Place>,
}

/// What an invocation runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Reference(StepReference),
    /// `script:`: a text for the shell, expanded first. Reported as `dist://script` or `builtin://script`.
    Script(Template),
    /// The script of a GitLab job: no expression is evaluated in it.
    ScriptLegacy(ScriptLegacy),
}

/// A script of a GitLab job, as the generated shell script of a runner would execute it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScriptLegacy {
    /// One entry of `script:` each; executed by one shell, which stops at the first that fails.
    pub lines: Vec<Arc<str>>,
    /// Each entry is printed before it is executed (`$ make`).
    pub echo: bool,
    /// `CI_DEBUG_TRACE`: the shell prints every command.
    pub debug_trace: bool,
    /// The environment gets `CI_JOB_STATUS`, which says how the steps before this one went: `success`, `failed`, `timedout` or `canceled`.
    pub job_status: bool,
}

/// Under which outcome of the steps before it a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    #[default]
    OnSuccess,
    OnFailure,
    Always,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AllowFailure {
    #[default]
    No,
    Any,
    /// Only these exit codes.
    ExitCodes(Vec<i32>),
}

/// A value in which texts may hold expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueTemplate {
    /// Null, boolean or number as written.
    Scalar(Value),
    Text(Template),
    Array(Vec<ValueTemplate>),
    /// Keys may hold expressions in the functions dialect.
    Object(Vec<(Template, ValueTemplate)>),
}

impl Step {
    /// A step that no file wrote, with nothing but a name and an action.
    pub fn new(name: impl Into<Arc<str>>, action: Action) -> Self {
        Self {
            name: name.into(),
            action,
            env: Vec::new(),
            inputs: Vec::new(),
            when: When::default(),
            allow_failure: AllowFailure::default(),
            timeout: None,
            limits: Limits::default(),
            inner: None,
            place: None,
        }
    }
}

impl StepDocument {
    /// A sequence that takes no inputs and gives no outputs: what a job or the argument of `run` becomes.
    pub fn of_steps(dialect: Dialect, steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            dialect,
            spec: Spec::default(),
            definition: Definition {
                env: Vec::new(),
                body: Body::Sequence(Sequence { steps: steps.into_iter().map(Arc::new).collect(), ..Sequence::default() }),
            },
        }
    }
}
