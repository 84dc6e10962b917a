//! Run requests as messages and as protobuf JSON.

use super::limits;
use crate::wire::definition;
use crate::wire::print::messages::step as print_step;
use crate::wire::print::{Field, Format, Printer};
use ci_proto::step_runner::job_step::When as WhenMessage;
use ci_proto::step_runner::{AllowFailure as AllowFailureMessage, Job, JobStep, JobSteps};
use ci_proto::step_runner::{
    Limits as LimitsMessage, RunRequest as RunRequestMessage, ScriptLegacy as ScriptLegacyMessage, Variable as VariableMessage,
};
use std::time::Duration;
use step_model::document::{Action, AllowFailure, Body, Dialect, Step, StepDocument, When, write};
use step_model::request::RunRequest;

/// Whether the values of masked and of file variables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    InClear,
    /// `[MASKED NAME]` stands for each: a request that is stored, and whose values are supplied when it runs again.
    Named,
}

/// A request as one line of protobuf JSON.
pub fn to_json(request: &RunRequest, values: Values) -> String {
    message_to_json(&to_message(request, values))
}

/// A request that is a message already, as one line of protobuf JSON.
pub fn message_to_json(message: &RunRequestMessage) -> String {
    let mut out = Vec::new();
    let written = Printer::new(&mut out, Format::Json, None).root(&mut |printer| print(printer, message));
    debug_assert!(written.is_ok(), "memory takes everything");
    String::from_utf8_lossy(&out).into_owned()
}

/// A request as a message. Steps that carry what no file can say travel as `job_steps`, all others as text.
pub fn to_message(request: &RunRequest, values: Values) -> RunRequestMessage {
    let variables = request.variables.iter().map(|variable| {
        let is_named = values == Values::Named && (variable.masked || variable.file);
        VariableMessage {
            key: variable.key.to_string(),
            value: if is_named { format!("[MASKED {}]", variable.key) } else { variable.value.to_string() },
            file: variable.file,
            masked: variable.masked,
        }
    });
    let variables: Vec<_> = variables.collect();
    let build_dir = request.build_dir.as_deref().unwrap_or_default().to_owned();
    let job_steps = job_steps(&request.steps);
    RunRequestMessage {
        id: request.id.to_string(),
        work_dir: request.work_dir.as_deref().unwrap_or_default().to_owned(),
        env: request.env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        job: (!variables.is_empty() || !build_dir.is_empty()).then_some(Job { variables, build_dir }),
        steps: if job_steps.is_none() { write::to_yaml(&request.steps) } else { String::new() },
        timeout: request.timeout.map(duration),
        limits: limits::message(request.limits),
        traceparent: request.trace_parent.map(|trace| trace.to_string()).unwrap_or_default(),
        job_steps,
        ..RunRequestMessage::default()
    }
}

/// `None`: a text says all of it.
fn job_steps(document: &StepDocument) -> Option<JobSteps> {
    let Body::Sequence(sequence) = &document.definition.body else { return None };
    let is_beyond_text = |step: &Step| {
        matches!(step.action, Action::ScriptLegacy(_))
            || step.when != When::default()
            || step.allow_failure != AllowFailure::default()
            || step.timeout.is_some()
            || !step.limits.is_empty()
            || step.inner.is_some()
    };
    if !sequence.steps.iter().any(|step| is_beyond_text(step)) {
        return None;
    }
    Some(all_job_steps(document))
}

fn all_job_steps(document: &StepDocument) -> JobSteps {
    let steps = match &document.definition.body {
        Body::Sequence(sequence) => sequence.steps.as_slice(),
        Body::Exec(_) => &[],
    };
    JobSteps {
        steps: steps.iter().map(|step| job_step(step, document.dialect)).collect(),
        env: definition::environment(&document.definition.env),
        functions_dialect: document.dialect == Dialect::Functions,
    }
}

fn job_step(step: &Step, dialect: Dialect) -> JobStep {
    let mut message = definition::compile_step(step, dialect);
    let script_legacy = match &step.action {
        Action::ScriptLegacy(script) => {
            message.step = None;
            message.inputs.clear();
            Some(ScriptLegacyMessage {
                lines: script.lines.iter().map(ToString::to_string).collect(),
                echo: script.echo,
                debug_trace: script.debug_trace,
                job_status: script.job_status,
            })
        }
        Action::Reference(_) | Action::Script(_) => None,
    };
    let when = match step.when {
        When::OnSuccess => WhenMessage::OnSuccess,
        When::OnFailure => WhenMessage::OnFailure,
        When::Always => WhenMessage::Always,
    };
    let allow_failure = match &step.allow_failure {
        AllowFailure::No => None,
        AllowFailure::Any => Some(AllowFailureMessage::default()),
        AllowFailure::ExitCodes(codes) => Some(AllowFailureMessage { exit_codes: codes.clone() }),
    };
    let inner = step.inner.as_deref().map(all_job_steps);
    JobStep {
        step: Some(message),
        when: when.into(),
        allow_failure,
        timeout: step.timeout.map(duration),
        script_legacy,
        inner,
        limits: limits::message(step.limits),
    }
}

fn duration(duration: Duration) -> prost_types::Duration {
    let nanos = i32::try_from(duration.subsec_nanos()).unwrap_or_default();
    prost_types::Duration { seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), nanos }
}

fn print(printer: &mut Printer<'_>, request: &RunRequestMessage) -> std::io::Result<()> {
    printer.string(Field::of("id"), &request.id)?;
    printer.string(Field::named("workDir", "work_dir"), &request.work_dir)?;
    printer.string_map(Field::of("env"), &request.env)?;
    if let Some(job) = &request.job {
        printer.message(Field::of("job"), &mut |printer| {
            printer.messages(Field::of("variables"), &job.variables, &mut |printer, variable| {
                printer.string(Field::of("key"), &variable.key)?;
                printer.string(Field::of("value"), &variable.value)?;
                printer.boolean(Field::of("file"), variable.file)?;
                printer.boolean(Field::of("masked"), variable.masked)
            })?;
            printer.string(Field::named("buildDir", "build_dir"), &job.build_dir)
        })?;
    }
    printer.string(Field::of("steps"), &request.steps)?;
    if let Some(timeout) = &request.timeout {
        printer.duration(Field::of("timeout"), timeout)?;
    }
    printer.plain(Field::of("traceparent"), &request.traceparent)?;
    print_limits(printer, request.limits.as_ref())?;
    let Some(job_steps) = &request.job_steps else { return Ok(()) };
    printer.message(Field::named("jobSteps", "job_steps"), &mut |printer| print_job_steps(printer, job_steps))
}

fn print_job_steps(printer: &mut Printer<'_>, job_steps: &JobSteps) -> std::io::Result<()> {
    printer.messages(Field::of("steps"), &job_steps.steps, &mut |printer, step| print_job_step(printer, step))?;
    printer.string_map(Field::of("env"), &job_steps.env)?;
    printer.boolean(Field::named("functionsDialect", "functions_dialect"), job_steps.functions_dialect)
}

fn print_job_step(printer: &mut Printer<'_>, step: &JobStep) -> std::io::Result<()> {
    if let Some(inner) = &step.step {
        printer.message(Field::of("step"), &mut |printer| print_step(printer, inner))?;
    }
    printer.enumeration(Field::of("when"), step.when, step.when().as_str_name())?;
    if let Some(allowed) = &step.allow_failure {
        printer.message(Field::named("allowFailure", "allow_failure"), &mut |printer| {
            printer.integers(Field::named("exitCodes", "exit_codes"), &allowed.exit_codes)
        })?;
    }
    if let Some(timeout) = &step.timeout {
        printer.duration(Field::of("timeout"), timeout)?;
    }
    if let Some(script) = &step.script_legacy {
        printer.message(Field::named("scriptLegacy", "script_legacy"), &mut |printer| {
            printer.strings(Field::of("lines"), &script.lines)?;
            printer.boolean(Field::of("echo"), script.echo)?;
            printer.boolean(Field::named("debugTrace", "debug_trace"), script.debug_trace)?;
            printer.boolean(Field::named("jobStatus", "job_status"), script.job_status)
        })?;
    }
    print_limits(printer, step.limits.as_ref())?;
    match &step.inner {
        Some(inner) => printer.message(Field::of("inner"), &mut |printer| print_job_steps(printer, inner)),
        None => Ok(()),
    }
}

fn print_limits(printer: &mut Printer<'_>, limits: Option<&LimitsMessage>) -> std::io::Result<()> {
    let Some(limits) = limits else { return Ok(()) };
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    printer.message(Field::of("limits"), &mut |printer| {
        printer.number(Field::of("cpus"), limits.cpus)?;
        printer.large_integer(Field::of("memory"), number(limits.memory))?;
        printer.large_integer(Field::of("pids"), number(limits.pids))?;
        printer.large_integer(Field::of("disk"), number(limits.disk))?;
        printer.boolean(Field::named("noNetwork", "no_network"), limits.no_network)
    })
}
