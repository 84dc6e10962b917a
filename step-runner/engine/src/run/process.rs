//! A step that is one process: an exec or a script, from its command to its outputs.

use crate::effect::{Effect, Process, Script};
use crate::event::{Exit, FileContent, SpawnFault, SpawnFaultKind};
use crate::files;
use crate::run::frame::{Phase, Process as Pending};
use crate::run::invocation::{Callee, Invocation};
use crate::run::limits;
use crate::run::node;
use crate::run::scope::{ExpressionScope, text};
use crate::run::{Run, exit};
use std::sync::{Arc, LazyLock};
use step_model::document::{Exec, Outputs, ScriptLegacy};
use step_model::expression::ExpressionError;
use step_model::plan::Level;
use step_model::result::{Failure, FailureKind, StepId, Usage};
use step_model::time::Now;
use step_model::value::{Object, Value};

/// Why a step that was loaded cannot do its work. The texts are the original's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepError {
    #[error("env variable \"{0}\": {1}")]
    Environment(Arc<str>, ExpressionError),
    #[error("interpolate command argument \"{0}\": {1}")]
    Argument(Arc<str>, ExpressionError),
    #[error("interpolate workdir \"{0}\": {1}")]
    WorkDir(Arc<str>, ExpressionError),
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Self { kind: FailureKind::BadInput, message: error.to_string() }
    }
}

/// Set to the work directory, as the original does.
static PWD: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("PWD"));
/// What a program joins its own spans to: the span of its step.
static TRACEPARENT: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("TRACEPARENT"));
/// Asks the writer of a whole result to keep our own fields (docs/reference/result.md).
static RESULT_FIELDS: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("STEP_RUNNER_RESULT_FIELDS"));

impl Run {
    /// The innermost frame is an exec whose environment has been applied.
    pub(super) fn begin_exec(&mut self, exec: &Exec, now: Now) {
        let frame = self.innermost();
        let scope = ExpressionScope::of(self, frame);
        let expanded = expand_exec(exec, &scope);
        let files_named = scope.files_named();
        let (command, work_dir) = match expanded {
            Ok(expanded) => expanded,
            Err(error) => return self.end_step(Some(error.into()), now),
        };
        let frame = self.innermost_mut();
        frame.files.named |= files_named || frame.planned.as_ref().is_some_and(|planned| planned.is_program());
        for value in command.iter().chain(&work_dir) {
            self.mask(value);
        }
        self.spawn(command, work_dir, None);
    }

    /// The innermost frame is a script.
    pub(super) fn begin_script(&mut self, invocation: &Invocation, legacy: Option<ScriptLegacy>) {
        let script = match legacy {
            Some(legacy) => Script::Legacy(legacy),
            None => Script::Text(text_of(invocation.inputs.get("script"))),
        };
        let command = match &script {
            Script::Text(text) => vec![text.clone()],
            Script::Legacy(legacy) => legacy.lines.iter().map(|line| Value::string(Arc::clone(line))).collect(),
        };
        self.spawn(command, None, Some(script));
    }

    pub(super) fn say_running(&mut self, step: StepId) {
        let name = self.nodes[step.0 as usize].name();
        let line = match self.plan.level {
            Level::V0_12 => format!("Running step \"{name}\""),
            Level::V0_44 => format!("Running step name={name}"),
        };
        self.effects.push(Effect::Say { step, line, warning: false });
    }

    fn spawn(&mut self, command: Vec<Value>, work_dir: Option<Value>, script: Option<Script>) {
        let job_dir = Value::string(Arc::clone(&self.plan.places.work_dir));
        let work_dir = work_dir.unwrap_or(job_dir);
        let frame = self.innermost();
        let step = frame.id;
        let files = frame.files.named.then(|| self.numbers.files(&self.plan.places.files_dir, frame.files.number));
        let program = files.as_ref().and_then(|files| self.program(frame, files)).map(Box::new);
        let absolute = self.absolute(&work_dir);
        let mut env = self.environment.values(frame.scope.as_ref());
        set(&mut env, &PWD, absolute.clone());
        set(&mut env, &TRACEPARENT, Value::string(self.trace_of(step).to_string()));
        for (name, path) in program.iter().zip(&files).flat_map(|(program, files)| program.variables(files)) {
            set(&mut env, &name, path);
        }
        if frame.planned.as_ref().is_some_and(|planned| planned.document.spec.outputs == Outputs::Delegate) {
            set(&mut env, &RESULT_FIELDS, Value::from("1"));
        }
        self.innermost_mut().files.made = files.is_some();
        self.nodes[step.0 as usize].exec =
            Some(Box::new(node::Exec { command: command.clone().into(), work_dir, exit: None, usage: None, limits: None }));
        let command = if script.is_some() { Vec::new() } else { command };
        let limits = self.limits_of(program.as_deref());
        self.effects.push(Effect::Spawn { step, process: Process { command, work_dir: absolute, env, files, script, program, limits } });
        self.phase = Phase::Process(Pending::default());
    }

    /// A relative directory belongs to the job's: the directory of the agent itself is an accident.
    fn absolute(&self, work_dir: &Value) -> Value {
        let base = &self.plan.places.work_dir;
        match work_dir.as_str() {
            None | Some("") => Value::string(Arc::clone(base)),
            Some(dir) if dir.starts_with(['/', '\\']) || dir.get(1..2) == Some(":") => work_dir.clone(),
            Some(dir) => Value::string(format!("{}/{dir}", base.trim_end_matches('/'))).marked(work_dir.is_sensitive()),
        }
    }

    pub(super) fn on_not_spawned(&mut self, step: StepId, fault: SpawnFault, now: Now) {
        let Phase::Process(process) = &self.phase else { return };
        if self.innermost().id != step {
            return;
        }
        let kind = match (process.stopped, fault.kind) {
            (Some(stop), _) => exit::stop_kind(stop),
            (None, SpawnFaultKind::Step) => FailureKind::StepFailure,
            (None, SpawnFaultKind::Machine) => FailureKind::Internal,
        };
        self.end_step(Some(Failure { kind, message: format!("exec: {}", fault.message) }), now);
    }

    pub(super) fn on_exited(&mut self, step: StepId, exit: Exit, usage: Usage, now: Now) {
        let Phase::Process(process) = &self.phase else { return };
        if self.innermost().id != step {
            return;
        }
        let reached = self.nodes[step.0 as usize].exec.as_ref().and_then(|exec| limits::reached(exec));
        let failure = exit::failure(exit, process.stopped, self.log_fault.as_deref().unwrap_or_default(), reached.as_deref());
        if let (Some(reached), None) = (&reached, &failure) {
            self.warn(step, format!("{reached}, and the step succeeded all the same"));
        }
        if let Some(exec) = &mut self.nodes[step.0 as usize].exec {
            exec.exit = Some(exit);
            exec.usage = Some(usage);
        }
        self.used = Some(self.used.map_or(usage, |used| used.then(usage)));
        let frame = self.innermost_mut();
        let result = frame.planned.as_ref().is_some_and(|planned| planned.document.spec.outputs == Outputs::Delegate);
        if failure.is_some() && !(result && frame.files.made) {
            return self.end_step(failure, now);
        }
        if frame.files.made {
            frame.files.made = false;
            let files = self.files_of_innermost();
            self.effects.push(Effect::ReadOutputs { step, files, result });
            self.phase = Phase::Reading(failure);
            return;
        }
        self.read(step, &FileContent::Bytes(Vec::new()), &FileContent::Bytes(Vec::new()), now);
    }

    pub(super) fn on_outputs(&mut self, step: StepId, output: &FileContent, export: &FileContent, now: Now) {
        let Phase::Reading(failure) = &self.phase else { return };
        if self.innermost().id != step {
            return;
        }
        let failure = failure.clone();
        let failure = match output {
            FileContent::Result(tree) => self.graft(step, tree, failure, now),
            _ => failure,
        };
        match failure {
            None => self.read(step, output, export, now),
            failure => self.end_step(failure, now),
        }
    }

    fn read(&mut self, step: StepId, output: &FileContent, export: &FileContent, now: Now) {
        let outputs = match self.outputs_of(step, output) {
            Ok(outputs) => outputs,
            Err(message) => return self.end_step(Some(Failure { kind: FailureKind::StepFailure, message }), now),
        };
        for value in outputs.values() {
            self.mask(value);
        }
        if !matches!(output, FileContent::Result(_)) {
            self.nodes[step.0 as usize].outputs = (!outputs.is_empty()).then(|| Arc::new(outputs));
        }
        match self.exports_of(export) {
            Ok(exports) => {
                for (name, value) in &exports {
                    self.environment.export(name, value.clone());
                }
                self.nodes[step.0 as usize].exports = (!exports.is_empty()).then(|| Arc::new(exports));
                self.end_step(None, now);
            }
            Err(message) => self.end_step(Some(Failure { kind: FailureKind::StepFailure, message }), now),
        }
    }

    fn outputs_of(&mut self, step: StepId, content: &FileContent) -> Result<Object, String> {
        let fault = |why: String| format!("output file: read output file: {why}");
        let planned = self.nodes[step.0 as usize].planned.clone();
        let Some(planned) = planned else {
            // A script declares no outputs. The original lets it write into a file that nobody reads.
            if *content != FileContent::Bytes(Vec::new()) {
                self.warn(step, "the output file of a script is not read: only a step with a definition has outputs".into());
            }
            return Ok(Object::new());
        };
        match (content, &planned.document.spec.outputs) {
            (FileContent::Unreadable(why), _) => Err(fault(why.clone())),
            (FileContent::NoResult(why), _) => Err(format!("output file: {}", files::not_a_result(why))),
            // It has been grafted.
            (FileContent::Result(_), _) => Ok(Object::new()),
            (FileContent::Bytes(bytes), Outputs::Declared(declared)) => {
                files::outputs(bytes, declared).map_err(|error| fault(error.text(self.debug)))
            }
            (FileContent::Bytes(bytes), Outputs::Delegate) => {
                files::delegated_outputs(bytes).map_err(|error| format!("output file: {}", error.text(self.debug)))
            }
        }
    }

    fn exports_of(&self, content: &FileContent) -> Result<Object, String> {
        let fault = |why: String| format!("export file: read env file: {why}");
        match content {
            FileContent::Unreadable(why) => Err(fault(why.clone())),
            FileContent::Result(_) | FileContent::NoResult(_) => Err(fault("it is a result".into())),
            FileContent::Bytes(bytes) => files::exports(bytes).map_err(|error| fault(error.text(self.debug))),
        }
    }
}

fn expand_exec(exec: &Exec, scope: &ExpressionScope<'_>) -> Result<(Vec<Value>, Option<Value>), StepError> {
    let argument = |template: &step_model::expression::Template| {
        text(template, scope).map(|(_, value)| value).map_err(|error| StepError::Argument(Arc::from(template.source()), error))
    };
    let command: Result<Vec<_>, _> = exec.command.iter().map(argument).collect();
    let command = command?;
    let Some(template) = &exec.work_dir else { return Ok((command, None)) };
    let (_, work_dir) = text(template, scope).map_err(|error| StepError::WorkDir(Arc::from(template.source()), error))?;
    Ok((command, Some(work_dir)))
}

/// The text of a script input, whatever its kind.
fn text_of(value: Option<&Value>) -> Value {
    match value {
        Some(value) if value.as_str().is_some() => value.clone(),
        Some(value) => Value::string(value.to_json().to_string()).marked(value.holds_sensitive()),
        None => Value::from(""),
    }
}

/// Sets a variable in a sorted list.
fn set(env: &mut Vec<(Arc<str>, Value)>, name: &Arc<str>, value: Value) {
    match env.binary_search_by(|(key, _)| key.cmp(name)) {
        Ok(index) => env[index].1 = value,
        Err(index) => env.insert(index, (Arc::clone(name), value)),
    }
}

impl Callee {
    /// The script of a GitLab job, where this is one.
    pub(super) fn legacy(&self, inputs: &Object) -> Option<ScriptLegacy> {
        match self {
            Self::Legacy(legacy) => Some(legacy.clone()),
            Self::LegacyByInputs => {
                let lines = inputs.get("script").and_then(Value::as_array).unwrap_or_default();
                let lines = lines.iter().map(|line| Arc::from(text_of(Some(line)).as_str().unwrap_or_default())).collect();
                let debug_trace = inputs.get("debug_trace") == Some(&Value::from(true));
                Some(ScriptLegacy { lines, echo: true, debug_trace, ..ScriptLegacy::default() })
            }
            Self::Document(_) | Self::Script => None,
        }
    }
}
