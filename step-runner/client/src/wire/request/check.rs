//! A run request as a message, checked: nothing that could leave the job's directory, and a definition that can be read.

use super::{Finding, Segment, limits};
use crate::wire::{definition, plan};
use ci_proto::step_runner::{JobStep, JobSteps, RunRequest as RunRequestMessage, job_step};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use step_model::diagnostic::Problem;
use step_model::document::{Action, AllowFailure, Dialect, ScriptLegacy, Step, StepDocument, When, raw};
use step_model::limits::Limits;
use step_model::plan::Plan;
use step_model::request::{RunRequest, Variable};
use step_model::trace::{NotATraceContext, TraceContext};

/// Reads a run request that came over the wire. The dialect is that of a document that does not say its own.
/// # Errors
/// Every problem. Places are those in the text of the definition.
pub fn of_message(message: &RunRequestMessage, default: Dialect) -> Result<(RunRequest, Vec<Problem>), Vec<Problem>> {
    let (request, findings) = check(message, default);
    let problems: Vec<Problem> = findings.into_iter().map(|finding| finding.problem).collect();
    match request {
        Some(request) if !problems.iter().any(Problem::is_error) => Ok((request, problems)),
        _ => Err(problems),
    }
}

pub(super) fn check(message: &RunRequestMessage, default: Dialect) -> (Option<RunRequest>, Vec<Finding>) {
    let mut checker = Checker { findings: Vec::new() };
    let request = checker.request(message, default);
    (request, checker.findings)
}

struct Checker {
    findings: Vec<Finding>,
}

impl Checker {
    fn request(&mut self, message: &RunRequestMessage, default: Dialect) -> Option<RunRequest> {
        if let Some(fault) = unsafe_name(&message.id).filter(|_| !message.id.is_empty()) {
            let text = format!("the id {:?} cannot name a directory: {fault}", message.id);
            self.error(&["id".into()], "unsafe-id", text);
        }
        self.refuse_what_cannot_be_done(message);
        let limits = self.limits(message);
        let timeout = self.timeout(message);
        let trace_parent = self.trace_parent(message);
        self.environment(&message.env);
        let job = message.job.clone().unwrap_or_default();
        self.variables(&job.variables);
        self.directory(&["workDir".into()], &message.work_dir);
        self.directory(&["job".into(), "buildDir".into()], &job.build_dir);
        let plan = self.plan(message);
        let steps = self.steps(message, default)?;
        Some(RunRequest {
            id: message.id.as_str().into(),
            work_dir: not_empty(&message.work_dir),
            build_dir: not_empty(&job.build_dir),
            env: message.env.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect(),
            variables: job.variables.iter().map(variable).collect(),
            steps,
            timeout,
            limits,
            trace_parent,
            plan,
        })
    }

    /// A request that asks for more than is done here must not run with less.
    fn refuse_what_cannot_be_done(&mut self, message: &RunRequestMessage) {
        if !message.policy.is_empty() {
            self.error(&["policy".into()], "policy", "the request carries a policy, and policies cannot be applied here yet".into());
        }
    }

    fn limits(&mut self, message: &RunRequestMessage) -> Limits {
        let limits = message.limits.as_ref().map_or(Ok(Limits::default()), limits::of_message);
        limits.unwrap_or_else(|fault| {
            self.error(&["limits".into()], "bad-limits", fault);
            Limits::default()
        })
    }

    /// What was handed over. A plan that cannot be read is an error: to run nothing would look like success.
    fn plan(&mut self, message: &RunRequestMessage) -> Option<Box<Plan>> {
        if message.plan.is_empty() {
            return None;
        }
        match plan::decode(&message.plan) {
            Ok(plan) => Some(Box::new(plan)),
            Err(fault) => {
                self.error(&["plan".into()], "plan", fault.to_string());
                None
            }
        }
    }

    /// Zero, as an absent one, is no limit.
    fn timeout(&mut self, message: &RunRequestMessage) -> Option<Duration> {
        let timeout = message.timeout.as_ref()?;
        let seconds = u64::try_from(timeout.seconds).ok();
        let nanos = u32::try_from(timeout.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
        let Some((seconds, nanos)) = seconds.zip(nanos) else {
            self.error(&["timeout".into()], "bad-timeout", "the timeout is negative or no duration".into());
            return None;
        };
        Some(Duration::new(seconds, nanos)).filter(|timeout| !timeout.is_zero())
    }

    /// A trace that is not understood is no reason not to run.
    fn trace_parent(&mut self, message: &RunRequestMessage) -> Option<TraceContext> {
        if message.traceparent.is_empty() {
            return None;
        }
        let parsed = message.traceparent.parse();
        parsed
            .inspect_err(|fault| self.findings.push(Finding::at(&["traceparent".into()], bad_traceparent(&message.traceparent, *fault))))
            .ok()
    }

    fn environment(&mut self, env: &BTreeMap<String, String>) {
        for (name, value) in env {
            let path = ["env".into(), name.as_str().into()];
            if name.is_empty() || name.contains(['=', '\0']) {
                self.error(&path, "bad-environment", format!("{name:?} cannot be the name of an environment variable"));
            }
            if value.contains('\0') {
                self.error(&path, "bad-environment", format!("the value of the environment variable `{name}` holds a NUL"));
            }
        }
    }

    fn variables(&mut self, variables: &[ci_proto::step_runner::Variable]) {
        for (index, variable) in variables.iter().enumerate().filter(|(_, variable)| variable.file) {
            if let Some(fault) = unsafe_name(&variable.key) {
                let path = ["job".into(), "variables".into(), Segment::Index(index), "key".into()];
                self.error(&path, "unsafe-variable", format!("the file variable {:?} cannot name a file: {fault}", variable.key));
            }
        }
    }

    fn directory(&mut self, path: &[Segment], directory: &str) {
        if directory.contains('\0') {
            self.error(path, "bad-directory", format!("`{}` holds a NUL", super::written(path)));
        }
    }

    fn steps(&mut self, message: &RunRequestMessage, default: Dialect) -> Option<Arc<StepDocument>> {
        let path = ["steps".into()];
        match &message.job_steps {
            Some(_) if !message.steps.is_empty() => {
                self.error(&path, "two-steps", "only one of `steps` and `jobSteps` may be given".into());
                return None;
            }
            Some(job) => return self.job_steps(job),
            // The steps are in the plan.
            None if message.steps.is_empty() && !message.plan.is_empty() => return Some(Arc::new(StepDocument::of_steps(default, []))),
            None if !message.plan.is_empty() => {
                self.error(&path, "two-steps", "only one of `steps` and `plan` may be given".into());
                return None;
            }
            None => {}
        }
        let reading = raw::read_job(&message.steps, default);
        let found = reading.problems.into_iter().map(|problem| Finding { path: path.to_vec(), problem, is_inside: true });
        self.findings.extend(found);
        let document = reading.document?;
        for (name, _) in document.spec.inputs.iter().filter(|(_, input)| input.default.is_none()) {
            // Nobody gives inputs to a job.
            self.error(&path, "missing-input", format!("input \"{name}\" required, but not defined"));
        }
        Some(document)
    }

    fn job_steps(&mut self, job: &JobSteps) -> Option<Arc<StepDocument>> {
        let dialect = if job.functions_dialect { Dialect::Functions } else { Dialect::Steps };
        let env = definition::environment_of(&job.env, dialect).unwrap_or_else(|faults| {
            faults.iter().for_each(|fault| self.error(&["jobSteps".into(), "env".into()], "bad-environment", fault.to_string()));
            Vec::new()
        });
        let mut steps = Vec::new();
        for (index, message) in job.steps.iter().enumerate() {
            match job_step(message, dialect) {
                Ok(step) => match message.limits.as_ref().map_or(Ok(Limits::default()), limits::of_message) {
                    Ok(limits) => steps.push(Step { limits, ..step }),
                    Err(fault) => {
                        self.error(&["jobSteps".into(), "steps".into(), Segment::Index(index), "limits".into()], "bad-limits", fault);
                    }
                },
                Err(faults) => {
                    let path = ["jobSteps".into(), "steps".into(), Segment::Index(index)];
                    faults.iter().for_each(|fault| self.error(&path, "bad-step", fault.to_string()));
                }
            }
        }
        let mut document = StepDocument::of_steps(dialect, steps);
        document.definition.env = env;
        Some(Arc::new(document))
    }

    fn error(&mut self, path: &[Segment], code: &'static str, message: String) {
        self.findings.push(Finding::at(path, Problem::error(code, message, None)));
    }
}

/// Steps that are handed over. Readers of messages stop at a hundred levels, so this ends.
fn inner_document(job: &JobSteps) -> Result<StepDocument, Vec<definition::DefinitionFault>> {
    let dialect = if job.functions_dialect { Dialect::Functions } else { Dialect::Steps };
    let steps = job.steps.iter().map(|step| job_step(step, dialect)).collect::<Result<Vec<_>, _>>()?;
    let mut document = StepDocument::of_steps(dialect, steps);
    document.definition.env = definition::environment_of(&job.env, dialect)?;
    Ok(document)
}

fn job_step(message: &JobStep, dialect: Dialect) -> Result<Step, Vec<definition::DefinitionFault>> {
    let invocation = message.step.clone().unwrap_or_default();
    let mut step = match &message.script_legacy {
        Some(script) => {
            let script = ScriptLegacy {
                lines: script.lines.iter().map(|line| line.as_str().into()).collect(),
                echo: script.echo,
                debug_trace: script.debug_trace,
                job_status: script.job_status,
            };
            let env = definition::environment_of(&invocation.env, dialect)?;
            Step { env, ..Step::new(invocation.name.as_str(), Action::ScriptLegacy(script)) }
        }
        None => definition::step_of(&invocation, dialect)?,
    };
    step.inner = message.inner.as_ref().map(inner_document).transpose()?.map(Arc::new);
    step.when = match message.when() {
        job_step::When::OnSuccess => When::OnSuccess,
        job_step::When::OnFailure => When::OnFailure,
        job_step::When::Always => When::Always,
    };
    step.allow_failure = match &message.allow_failure {
        None => AllowFailure::No,
        Some(allowed) if allowed.exit_codes.is_empty() => AllowFailure::Any,
        Some(allowed) => AllowFailure::ExitCodes(allowed.exit_codes.clone()),
    };
    step.timeout = message.timeout.as_ref().and_then(|timeout| {
        Some(Duration::new(u64::try_from(timeout.seconds).ok()?, u32::try_from(timeout.nanos).ok()?)).filter(|timeout| !timeout.is_zero())
    });
    Ok(step)
}

fn variable(message: &ci_proto::step_runner::Variable) -> Variable {
    Variable { key: message.key.as_str().into(), value: message.value.as_str().into(), file: message.file, masked: message.masked }
}

fn not_empty(text: &str) -> Option<Arc<str>> {
    Some(text).filter(|text| !text.is_empty()).map(Arc::from)
}

fn bad_traceparent(text: &str, fault: NotATraceContext) -> Problem {
    Problem::warning("bad-traceparent", format!("the traceparent {text:?} is ignored, the job begins a trace of its own: {fault}"), None)
}

/// Why a name is not the name of one directory entry, on any system (compatibility.md).
pub fn unsafe_name(name: &str) -> Option<&'static str> {
    let bytes = name.as_bytes();
    match name {
        "" => Some("it is empty"),
        "." | ".." => Some("it is a directory already"),
        _ if name.contains(['/', '\\']) => Some("it is a path"),
        _ if name.contains('\0') => Some("it holds a NUL"),
        _ if bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' => Some("it begins with a drive"),
        _ => None,
    }
}
