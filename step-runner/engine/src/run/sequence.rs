//! A sequence: which step begins next, how each begins and ends, and what the sequence gives at its end.

use crate::effect::Effect;
use crate::files::Problem;
use crate::run::frame::{Failed, Files, Frame, Phase, Reason};
use crate::run::invocation::{Callee, Invocation, expand_environment};
use crate::run::node::Node;
use crate::run::process::StepError;
use crate::run::scope::ExpressionScope;
use crate::run::stop::ALWAYS_LIMIT;
use crate::run::{Kind, Run, exit};
use std::sync::Arc;
use step_model::document::{AllowFailure, Body, Outputs, Sequence, Step, When};
use step_model::environment::Scope as Variables;
use step_model::plan::PlannedDocument;
use step_model::result::{Failure, FailureKind, Status, StepId};
use step_model::time::{Deadline, Now};
use step_model::value::{Object, Value};

impl Run {
    /// Moves on as far as it goes without an answer from outside.
    pub(super) fn advance(&mut self, now: Now) {
        while matches!(self.phase, Phase::Ready) {
            let frame = self.innermost_mut();
            let Some(step) = frame.sequence().and_then(|sequence| sequence.steps.get(frame.next)).cloned() else {
                self.end_sequence(now);
                continue;
            };
            let index = frame.next;
            frame.next += 1;
            if frame.admits(step.when) {
                self.invoke(index, &step, now);
            } else if let (When::OnSuccess, None, Some(stop)) = (step.when, &frame.failure, frame.stop) {
                let step = frame.id;
                let failure = exit::not_begun(stop, self.log_fault.as_deref().unwrap_or_default());
                self.innermost_mut().failure = Some(Failed { failure, step });
            }
        }
    }

    /// A step of the innermost sequence has passed its checks. It begins, once the files that it names are there.
    pub(super) fn enter(&mut self, invocation: Invocation, names_files_of_caller: bool, now: Now) {
        self.innermost_mut().files.named |= names_files_of_caller;
        if self.prepare_files() {
            self.phase = Phase::Preparing(Some(Box::new(invocation)));
        } else {
            self.begin(invocation, now);
        }
    }

    /// Asks for the files of the innermost sequence, if they are named and not there. Whether it had to.
    fn prepare_files(&mut self) -> bool {
        let frame = self.innermost_mut();
        if !frame.files.named || frame.files.made {
            return false;
        }
        frame.files.made = true;
        let step = frame.id;
        let files = self.files_of_innermost();
        self.effects.push(Effect::PrepareFiles { step, files });
        true
    }

    pub(super) fn on_files_prepared(&mut self, step: StepId, now: Now) {
        if self.innermost().id != step {
            return;
        }
        match std::mem::replace(&mut self.phase, Phase::Ready) {
            Phase::Preparing(Some(invocation)) => self.begin(*invocation, now),
            Phase::Preparing(None) => {}
            other => self.phase = other,
        }
    }

    pub(super) fn on_files_not_prepared(&mut self, step: StepId, fault: &str, now: Now) {
        if matches!(self.phase, Phase::Preparing(_)) && self.innermost().id == step {
            // One of the two may be there, so they are removed all the same.
            let message = format!("creating step files: {fault}");
            self.end_step(Some(Failure { kind: FailureKind::Internal, message }), now);
        }
    }

    fn begin(&mut self, mut invocation: Invocation, now: Now) {
        let caller = self.innermost();
        let legacy = invocation.callee.legacy(&invocation.inputs);
        if legacy.as_ref().is_some_and(|legacy| legacy.job_status) {
            let status = (Arc::from("CI_JOB_STATUS"), Value::from(job_status(caller)));
            invocation.scope = Variables::over(invocation.scope.as_ref(), [status]);
        }
        // Whatever runs although the job should end has an end of its own.
        let timeout = invocation.step.timeout.or(caller.stop.map(|_| ALWAYS_LIMIT));
        let is_always = invocation.step.when == When::Always;
        let limits = caller.limits.and(invocation.step.limits);
        let planned = match &invocation.callee {
            Callee::Document(planned) => Some(Arc::clone(planned)),
            Callee::Script | Callee::Legacy(_) | Callee::LegacyByInputs => None,
        };
        let id = self.add_node(&invocation, planned.clone(), now);
        self.stack.push(Frame {
            id,
            planned: planned.clone(),
            inputs: Arc::clone(&invocation.inputs),
            scope: invocation.scope.clone(),
            files: Files { number: invocation.file_number, named: invocation.files_named, made: false },
            inner: invocation.inner.take(),
            is_always,
            through_dynamic: invocation.through_dynamic,
            deadline: timeout.map(|timeout| Deadline::after(now, timeout)),
            limits,
            stop: None,
            next: 0,
            results: Default::default(),
            failure: None,
        });
        for value in &invocation.born {
            self.mask(value);
        }
        self.effects.push(Effect::Started { step: id });
        for warning in std::mem::take(&mut invocation.warnings) {
            self.warn(id, warning);
        }
        match planned {
            Some(planned) => self.begin_document(&planned, now),
            None => {
                self.say_running(id);
                self.nodes[id.0 as usize].applied = Some(self.environment.snapshot(invocation.scope.as_ref()));
                self.begin_script(&invocation, legacy);
            }
        }
    }

    /// The innermost frame has just been pushed: its environment is applied, and its work begins.
    pub(super) fn begin_document(&mut self, planned: &Arc<PlannedDocument>, now: Now) {
        let definition = &planned.document.definition;
        let id = self.innermost().id;
        if matches!(definition.body, Body::Exec(_)) {
            self.say_running(id);
        }
        if let Err(error) = self.apply_environment(planned) {
            return self.end_step(Some(error.into()), now);
        }
        match &definition.body {
            Body::Exec(exec) => self.begin_exec(exec, now),
            Body::Sequence(_) if self.prepare_files() => self.phase = Phase::Preparing(None),
            Body::Sequence(_) => self.phase = Phase::Ready,
        }
    }

    fn apply_environment(&mut self, planned: &PlannedDocument) -> Result<(), StepError> {
        let frame = self.innermost();
        let scope = ExpressionScope::of(self, frame);
        let variables = expand_environment(&planned.document.definition.env, &scope, StepError::Environment)?;
        let files_named = scope.files_named();
        let born: Vec<Value> = variables.values().filter(|value| value.is_sensitive()).cloned().collect();
        let scope = Variables::over(frame.scope.as_ref(), variables);
        let id = frame.id;
        self.nodes[id.0 as usize].applied = Some(self.environment.snapshot(scope.as_ref()));
        let frame = self.innermost_mut();
        frame.scope = scope;
        frame.files.named |= files_named;
        born.iter().for_each(|value| self.mask(value));
        Ok(())
    }

    fn add_node(&mut self, invocation: &Invocation, planned: Option<Arc<PlannedDocument>>, now: Now) -> StepId {
        let parent = self.innermost().id;
        #[expect(clippy::cast_possible_truncation, reason = "a job of four billion steps does not fit into memory")]
        let id = StepId(self.nodes.len() as u32);
        let kind = planned.as_ref().map_or(Kind::Script, |planned| kind_of(planned));
        let given = self.environment.snapshot(invocation.scope.as_ref());
        self.nodes.push(Node {
            parent,
            depth: self.nodes[parent.0 as usize].depth + 1,
            step: Some(Arc::clone(&invocation.step)),
            planned,
            inputs: invocation.given.clone(),
            ..Node::begun(kind, given, now)
        });
        self.link(parent, id);
        id
    }

    /// Puts a new node behind the other children of its parent.
    pub(super) fn link(&mut self, parent: StepId, id: StepId) {
        match self.nodes[parent.0 as usize].last_child.replace(id) {
            Some(sibling) => self.nodes[sibling.0 as usize].next_sibling = Some(id),
            None => self.nodes[parent.0 as usize].first_child = Some(id),
        }
    }

    /// The innermost sequence has no more steps to run.
    fn end_sequence(&mut self, now: Now) {
        let frame = self.innermost();
        let id = frame.id;
        let mut failure = frame.failure.as_ref().map(|failed| failed.failure.clone());
        if let (None, Some(stop)) = (&failure, frame.stop.filter(|stop| stop.reason == Reason::LogFailed)) {
            // Part of the log is lost, so the job did not succeed, even if nothing was left to run.
            failure = Some(exit::not_begun(stop, self.log_fault.as_deref().unwrap_or_default()));
        }
        let Some(planned) = frame.planned.clone() else { return self.end_step(failure, now) };
        let Body::Sequence(sequence) = &planned.document.definition.body else { return self.end_step(failure, now) };
        let mut warnings = Vec::new();
        let given = self.sequence_outputs(frame, &planned, sequence, failure.is_some(), &mut warnings);
        match given {
            Ok(outputs) => {
                outputs.values().for_each(|value| self.mask(value));
                self.nodes[id.0 as usize].outputs = (!outputs.is_empty()).then(|| Arc::new(outputs));
                warnings.into_iter().for_each(|warning| self.warn(id, warning));
            }
            Err(message) => failure = failure.or(Some(Failure { kind: FailureKind::BadInput, message })),
        }
        self.end_step(failure, now);
    }

    /// What a sequence gives. One that failed gives what it came to, without a word about the rest (compatibility.md).
    fn sequence_outputs(
        &self,
        frame: &Frame,
        planned: &PlannedDocument,
        sequence: &Sequence,
        failed: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Object, String> {
        let spec = match &planned.document.spec.outputs {
            Outputs::Declared(declared) => declared,
            Outputs::Delegate => {
                let name = sequence.delegate.as_deref().unwrap_or_default();
                let Some(id) = frame.results.get(name) else {
                    return if failed {
                        Ok(Object::new())
                    } else {
                        Err(format!("outputs: delegate: could not find step with name \"{name}\""))
                    };
                };
                return Ok(self.nodes[id.0 as usize].outputs.as_deref().cloned().unwrap_or_default());
            }
        };
        let scope = ExpressionScope::of(self, frame);
        let mut written = Object::with_capacity(sequence.outputs.len());
        for (name, template) in &sequence.outputs {
            match template.evaluate(&scope) {
                Ok(value) => {
                    written.insert(Arc::clone(name), value);
                }
                Err(_) if failed => {}
                Err(error) => return Err(format!("outputs: expand \"{name}\": {error}")),
            }
        }
        if frame.id == StepId::ROOT && self.plan.handover.is_some() {
            return Ok(written);
        }
        let mut faults = Vec::new();
        let mut outputs = Object::with_capacity(spec.len());
        for (name, output) in spec {
            let Some(value) = written.shift_remove(name).or_else(|| output.default.clone()) else {
                faults.push(Problem::Missing { key: Arc::clone(name) });
                continue;
            };
            if value.kind() != output.kind {
                faults.push(Problem::Mismatched { key: Arc::clone(name), declared: output.kind, received: value.kind() });
            }
            outputs.insert(Arc::clone(name), value.marked(output.sensitive));
        }
        faults.extend(written.keys().map(|name| Problem::Unexpected { key: Arc::clone(name) }));
        outputs.extend(written);
        if failed {
            return Ok(outputs);
        }
        match faults.first() {
            Some(fault) if self.refuses_oddities(planned) => Err(format!("outputs: {fault}")),
            _ => {
                warnings.extend(faults.iter().map(|fault| format!("outputs: {fault}")));
                Ok(outputs)
            }
        }
    }

    /// The innermost step has its final status.
    pub(super) fn end_step(&mut self, failure: Option<Failure>, now: Now) {
        let Some(frame) = self.stack.pop() else { return };
        let id = frame.id;
        if frame.files.made {
            let files = self.numbers.files(&self.plan.places.files_dir, frame.files.number);
            self.effects.push(Effect::RemoveFiles { step: id, files });
        }
        let origin = frame.failure.map_or(id, |failed| failed.step);
        let node = &mut self.nodes[id.0 as usize];
        node.status = if failure.is_none() { Status::Success } else { Status::Failure };
        node.end = Some(now.wall);
        node.failure = failure.clone().map(Box::new);
        if let (Some(failure), Some(step)) = (failure, node.step.clone()) {
            self.fail_in_caller(&step, Failed { failure, step: origin }, id);
        } else if node.step.is_none() && node.failure.is_some() {
            self.failed_step = Some(origin);
        }
        self.effects.push(Effect::Ended { step: id });
        match self.stack.last_mut() {
            Some(caller) => {
                caller.results.insert(self.nodes[id.0 as usize].name(), id);
                self.phase = Phase::Ready;
            }
            None => {
                self.phase = Phase::Finished;
                self.effects.push(Effect::Finished);
            }
        }
    }

    fn fail_in_caller(&mut self, step: &Step, failed: Failed, id: StepId) {
        let exit = self.nodes[failed.step.0 as usize].exit();
        let Some(caller) = self.stack.last_mut() else { return };
        if caller.stop.is_none() && is_allowed(&step.allow_failure, failed.failure.kind, exit) {
            self.nodes[id.0 as usize].allowed_to_fail = true;
            return;
        }
        caller.fail(&step.name, failed);
    }

    /// A step of the innermost sequence that could not even begin. It has no node.
    pub(super) fn fail_to_load(&mut self, step: &Step, kind: FailureKind, why: &str) {
        let frame = self.innermost_mut();
        let failure = Failure { kind, message: format!("failed to load: {why}") };
        let failed = Failed { failure, step: frame.id };
        if frame.stop.is_some() || !is_allowed(&step.allow_failure, kind, None) {
            frame.fail(&step.name, failed);
        }
        self.phase = Phase::Ready;
    }
}

impl Frame {
    /// The first failure counts; what runs after it cannot change why the sequence failed.
    fn fail(&mut self, name: &str, Failed { failure, step }: Failed) {
        let message = format!("step \"{name}\": {}", failure.message);
        self.failure.get_or_insert(Failed { failure: Failure { message, ..failure }, step });
    }
}

/// A step that was stopped with its job, and a machine that could not start it, are no failures of the step.
fn is_allowed(allow: &AllowFailure, kind: FailureKind, exit: Option<crate::event::Exit>) -> bool {
    if matches!(kind, FailureKind::Cancelled | FailureKind::Internal | FailureKind::Interrupted) {
        return false;
    }
    match (allow, exit) {
        (AllowFailure::No, _) => false,
        (AllowFailure::Any, _) => true,
        (AllowFailure::ExitCodes(codes), Some(crate::event::Exit::Code(code))) => kind == FailureKind::StepFailure && codes.contains(&code),
        (AllowFailure::ExitCodes(_), _) => false,
    }
}

/// The value of `CI_JOB_STATUS` that `after_script` sees (GitLab Runner v19.4, `functions/concrete`).
fn job_status(frame: &Frame) -> &'static str {
    let kind = match (&frame.failure, frame.stop) {
        (Some(failed), _) => failed.failure.kind,
        (None, Some(stop)) => exit::stop_kind(stop),
        (None, None) => return "success",
    };
    match kind {
        FailureKind::Timeout => "timedout",
        FailureKind::Cancelled => "canceled",
        _ => "failed",
    }
}

pub(super) fn kind_of(planned: &PlannedDocument) -> Kind {
    match planned.document.definition.body {
        Body::Exec(_) => Kind::Exec,
        Body::Sequence(_) => Kind::Sequence,
    }
}
