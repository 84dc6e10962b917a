//! A run: the machine that turns a plan into a result, one event at a time.

mod exit;
mod frame;
mod graft;
mod handing_over;
mod invocation;
mod limits;
mod loading;
mod masks;
mod node;
mod process;
mod program;
mod scope;
mod sequence;
mod stop;
mod trace;
mod view;

pub use invocation::MissingInput;

use crate::effect::{Effect, StepFiles};
use crate::event::Event;
use frame::{FileNumbers, Frame, Phase, Reason, Stop};
use masks::Masks;
use node::Node;
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::diagnostic::Verdict;
use step_model::document::{Spec, interface};
use step_model::environment::{Environment, Scope};
use step_model::plan::{Plan, PlannedDocument};
use step_model::reference::Digest;
use step_model::result::{Failure, FailureKind, Status, StepId, Usage};
use step_model::time::{Deadline, Now};
use step_model::value::{Object, Value};
use trace::Trace;

/// Ids and jitter come from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

/// A job that runs.
///
/// ```text
///              .--------------------------------------------------------------------------.
///              v                                                                          |
/// Ready --> Loading --> Preparing --> Process --> Reading --> the step has ended --> next step, or the
///      '----------^----------^-----------^                                           caller has ended
///       no hole, no files, no outputs: not passed through                                 '--> Finished
/// ```
///
/// The price of one step at a time: no two steps of a job run side by side.
#[derive(Debug)]
pub struct Run {
    plan: Plan,
    environment: Environment,
    /// The result tree; parents before their children.
    nodes: Vec<Node>,
    /// From the root to the step that runs.
    stack: Vec<Frame>,
    phase: Phase,
    /// What the event that is being handled asks for.
    effects: Vec<Effect>,
    numbers: FileNumbers,
    loads: u32,
    /// Definitions that were read during the run, by directory, file and digest.
    definitions: BTreeMap<(Arc<str>, Arc<str>, Digest), Arc<PlannedDocument>>,
    masks: Masks,
    trace: Trace,
    /// By all processes that have ended. `None`: none has.
    used: Option<Usage>,
    log_fault: Option<String>,
    failed_step: Option<StepId>,
    /// `CI_STEPS_DEBUG`: errors of files show the line.
    debug: bool,
}

impl Run {
    pub fn start(plan: Plan, seed: Seed, now: Now) -> (Self, Vec<Effect>) {
        let environment = Environment::new(&plan.process_env, &plan.request_env);
        let root = Arc::clone(&plan.root);
        let mut masks = Masks::default();
        for value in plan.variables.values().chain(plan.request_env.values()).chain(plan.process_env.values()) {
            masks.assume(value);
        }
        let debug = plan.variables.get("CI_STEPS_DEBUG").or_else(|| environment.get(None, "CI_STEPS_DEBUG")).and_then(Value::as_str);
        let mut run = Self {
            debug: debug.is_some_and(|text| matches!(text, "1" | "t" | "T" | "true" | "True" | "TRUE")),
            environment,
            nodes: Vec::new(),
            stack: Vec::new(),
            phase: Phase::Ready,
            effects: Vec::new(),
            numbers: FileNumbers::new(seed.0),
            loads: 0,
            definitions: BTreeMap::new(),
            masks,
            trace: Trace::begin(seed, plan.trace_parent),
            used: None,
            log_fault: None,
            failed_step: None,
            plan,
        };
        run.begin_root(&root, now);
        run.advance(now);
        let effects = std::mem::take(&mut run.effects);
        (run, effects)
    }

    /// Total: any event, at any time, without a panic. An outcome that nobody waits for is ignored.
    pub fn on(&mut self, event: Event, now: Now) -> Vec<Effect> {
        if self.is_finished() {
            return Vec::new();
        }
        match event {
            Event::FilesPrepared { step } => self.on_files_prepared(step, now),
            Event::FilesNotPrepared { step, fault } => self.on_files_not_prepared(step, &fault, now),
            Event::Spawned { .. } | Event::Woken => {}
            Event::Limited { step, limits } => self.on_limited(step, limits),
            Event::LimitReached { step, limit } => self.on_limit_reached(step, limit),
            Event::NotSpawned { step, fault } => self.on_not_spawned(step, fault, now),
            Event::Exited { step, exit, usage } => self.on_exited(step, exit, usage, now),
            Event::Outputs { step, output, export } => self.on_outputs(step, &output, &export, now),
            Event::Loaded { load, outcome } => self.on_loaded(load, outcome, now),
            Event::LogFailed { fault } => {
                self.log_fault.get_or_insert(fault);
                self.stop_from(0, Stop { reason: Reason::LogFailed, at_once: false }, now);
            }
            Event::Cancel => self.stop_from(0, Stop { reason: Reason::Cancelled, at_once: false }, now),
            Event::CancelNow => self.stop_from(0, Stop { reason: Reason::Cancelled, at_once: true }, now),
        }
        self.keep_deadlines(now);
        self.advance(now);
        std::mem::take(&mut self.effects)
    }

    /// `on(Event::Woken, ..)` is due no later than this.
    pub fn next_deadline(&self) -> Option<Deadline> {
        let kill_at = match &self.phase {
            Phase::Process(process) => process.kill_at,
            _ => None,
        };
        // Steps nest at most 64 deep, so this is short however many there are.
        self.stack.iter().filter_map(|frame| frame.deadline).chain(kill_at).min()
    }

    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished)
    }

    /// The outcome of the whole job: final when finished, `Running` before.
    pub fn status(&self) -> Status {
        match self.failure() {
            _ if !self.is_finished() => Status::Running,
            None => Status::Success,
            Some(Failure { kind: FailureKind::Cancelled, .. }) => Status::Cancelled,
            Some(_) => Status::Failure,
        }
    }

    /// Why the job did not succeed: kind, and the original's text (`step "a": step "b": exec: exit status 1`).
    pub fn failure(&self) -> Option<&Failure> {
        self.nodes.first()?.failure.as_deref()
    }

    /// The step whose failure failed the job (the innermost), if any. Of a step that could not be loaded, the sequence that it stands in.
    pub fn failed_step(&self) -> Option<StepId> {
        self.failed_step
    }

    /// Complete at any moment; a view, not a copy.
    pub fn result(&self) -> ResultView<'_> {
        ResultView { run: self }
    }

    fn begin_root(&mut self, planned: &Arc<PlannedDocument>, now: Now) {
        let handed_over = self.plan.handover.clone();
        let scope = handed_over.as_ref().and_then(|handed_over| Scope::over(None, handed_over.enclosing_env.clone()));
        let snapshot = self.environment.snapshot(scope.as_ref());
        self.nodes.push(Node { planned: Some(Arc::clone(planned)), ..Node::begun(sequence::kind_of(planned), snapshot, now) });
        let inputs = match handed_over {
            // They are as they are: nobody declares what is handed over.
            Some(handed_over) => {
                handed_over.enclosing_env.values().for_each(|value| self.mask(value));
                Ok(handed_over.inputs)
            }
            None => invocation::with_defaults(&planned.document.spec, &Object::new()),
        };
        let number = self.numbers.next();
        let deadline = self.plan.timeout.map(|timeout| Deadline::after(now, timeout));
        let frame = Frame {
            scope,
            limits: self.plan.limits,
            ..Frame::root(Arc::clone(planned), inputs.clone().unwrap_or_default(), number, deadline)
        };
        self.stack.push(frame);
        self.effects.push(Effect::Started { step: StepId::ROOT });
        match inputs {
            Ok(inputs) => {
                inputs.values().for_each(|value| self.mask(value));
                self.begin_document(planned, now);
            }
            Err(missing) => self.end_step(Some(Failure { kind: FailureKind::BadInput, message: missing.to_string() }), now),
        }
    }

    /// # Panics
    /// The run has finished: nothing of it is called then.
    fn innermost(&self) -> &Frame {
        self.stack.last().expect("a run that has not finished has a step")
    }

    fn innermost_mut(&mut self) -> &mut Frame {
        self.stack.last_mut().expect("a run that has not finished has a step")
    }

    fn files_of_innermost(&self) -> StepFiles {
        self.numbers.files(&self.plan.places.files_dir, self.innermost().files.number)
    }

    /// Whether what the original does not check (types, sensitive values, outputs of sequences) is an error in this document, or a warning
    /// because it runs there (compatibility.md).
    fn refuses_oddities(&self, planned: &PlannedDocument) -> bool {
        let oddity = interface::oddity(planned.document.dialect, !planned.file.is_empty());
        self.plan.strict || oddity == Verdict::Error
    }

    fn mask(&mut self, value: &Value) {
        if value.holds_sensitive() {
            let born = self.masks.announce(value);
            self.effects.extend(born.into_iter().map(|value| Effect::Mask { value }));
        }
    }

    fn warn(&mut self, step: StepId, line: String) {
        self.effects.push(Effect::Say { step, line, warning: true });
    }
}

/// The result of a run as it is now.
#[derive(Debug, Clone, Copy)]
pub struct ResultView<'a> {
    run: &'a Run,
}

/// A step in one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    pub name: std::sync::Arc<str>,
    /// `None` at the root.
    pub parent: Option<StepId>,
    /// 0 at the root.
    pub depth: usize,
    pub what: Kind,
    pub status: Status,
    pub failure: Option<Failure>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Expanded, where the step came so far. Sensitive arguments are marked.
    pub command: Vec<step_model::value::Value>,
    pub work_dir: Option<step_model::value::Value>,
    pub start: Option<step_model::time::Timestamp>,
    pub end: Option<step_model::time::Timestamp>,
    pub usage: Option<step_model::result::Usage>,
    /// The failure is allowed (`allow_failure`).
    pub allowed_to_fail: bool,
    /// What became of the limits of the step.
    pub limits: Vec<step_model::limits::AppliedLimit>,
    /// What the step left out of the results below it.
    pub filtered: Option<std::sync::Arc<str>>,
    /// The span of the step. `None` in a journal of a version that had none.
    pub trace: Option<step_model::trace::TraceContext>,
}

impl Headline {
    /// What the step is and runs: `executable step "go run ."`, the original's words.
    pub fn description(&self) -> String {
        let command = self.command.iter().map(|item| item.as_str().unwrap_or_default()).collect::<Vec<_>>().join(" ");
        match self.what {
            Kind::Exec => format!("executable step \"{command}\""),
            Kind::Script => format!("script step \"{command}\""),
            Kind::Unknown => format!("step \"{}\"", self.name),
            Kind::Sequence => format!("sequence of steps \"{}\"", self.name),
        }
    }
}

/// What a step is, as a person would say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Exec,
    Sequence,
    Script,
    /// Not loaded (yet).
    Unknown,
}

/// The first input that a document itself needs and nobody gives.
pub(crate) fn missing_input(spec: &Spec) -> Option<MissingInput> {
    invocation::with_defaults(spec, &Object::new()).err()
}

#[cfg(test)]
mod tests;
