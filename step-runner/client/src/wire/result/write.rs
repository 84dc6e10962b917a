//! A result tree to a stream: one node at a time is in memory, never the whole.

use super::Redaction;
use super::message::message_of;
use super::print::{Field, Printer};
use ci_proto::step_runner::spec::Content;
use ci_proto::step_runner::step::Reference;
use ci_proto::step_runner::step::reference::StepPath;
use ci_proto::step_runner::{Definition, SpecDefinition, Step, StepResult};
use std::io::{self, Write};
use step_model::document::Dialect;
use step_model::result::{ResultTree, StepId};

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One line without blanks.
    Json,
    PrettyJson,
    /// Protobuf's text format, one line.
    Text,
    PrettyText,
}

/// How a result tree is written.
#[derive(Debug, Clone, Copy)]
pub struct Writing<'a> {
    pub format: Format,
    /// With the fields from 1000 upwards; strict readers of the original refuse their names.
    pub our_fields: bool,
    pub redaction: &'a Redaction,
}

/// Writes the tree below `root`, and a line end.
/// # Errors
/// As `out`.
pub fn write(out: &mut dyn Write, tree: &dyn ResultTree, root: StepId, writing: Writing<'_>) -> io::Result<()> {
    let mut printer = Printer::new(out, writing.format, Some(writing.redaction.secrets()));
    printer.root(&mut |printer| node(printer, tree, root, Dialect::Steps, writing))
}

/// By field number; the children stand between the original's fields and ours.
fn node(printer: &mut Printer<'_>, tree: &dyn ResultTree, id: StepId, dialect: Dialect, writing: Writing<'_>) -> io::Result<()> {
    let (result, inner) = {
        let node = tree.node(id);
        let inner = node.document.as_ref().map_or(dialect, |document| document.dialect);
        (message_of(&node, dialect, Some(writing.redaction)), inner)
    };
    original_fields(printer, &result)?;
    let ours = StepResult { step: None, spec_definition: None, outputs: [].into(), exports: [].into(), env: [].into(), ..result };
    printer.messages(Field::named("subStepResults", "sub_step_results"), &tree.children(id), &mut |printer, child| {
        node(printer, tree, *child, inner, writing)
    })?;
    if writing.our_fields { our_fields(printer, &ours) } else { Ok(()) }
}

fn original_fields(printer: &mut Printer<'_>, result: &StepResult) -> io::Result<()> {
    if let Some(invocation) = &result.step {
        printer.message(Field::of("step"), &mut |printer| step(printer, invocation))?;
    }
    if let Some(document) = &result.spec_definition {
        printer.message(Field::of("specDefinition"), &mut |printer| spec_definition(printer, document))?;
    }
    printer.enumeration(Field::of("status"), result.status, result.status().as_str_name())?;
    printer.value_map(Field::of("outputs"), &result.outputs)?;
    printer.string_map(Field::of("exports"), &result.exports)?;
    printer.string_map(Field::of("env"), &result.env)?;
    let Some(exec) = &result.exec_result else { return Ok(()) };
    printer.message(Field::named("execResult", "exec_result"), &mut |printer| {
        printer.strings(Field::of("command"), &exec.command)?;
        printer.string(Field::named("workDir", "work_dir"), &exec.work_dir)?;
        printer.integer(Field::named("exitCode", "exit_code"), exec.exit_code.into())
    })
}

fn our_fields(printer: &mut Printer<'_>, result: &StepResult) -> io::Result<()> {
    if let Some(start) = &result.start_time {
        printer.timestamp(Field::named("startTime", "start_time"), start)?;
    }
    if let Some(end) = &result.end_time {
        printer.timestamp(Field::named("endTime", "end_time"), end)?;
    }
    if let Some(usage) = &result.usage {
        printer.message(Field::of("usage"), &mut |printer| {
            if let Some(user) = &usage.cpu_user {
                printer.duration(Field::named("cpuUser", "cpu_user"), user)?;
            }
            if let Some(system) = &usage.cpu_system {
                printer.duration(Field::named("cpuSystem", "cpu_system"), system)?;
            }
            printer.large_integer(Field::named("peakMemory", "peak_memory"), usage.peak_memory)
        })?;
    }
    printer.string(Field::of("digest"), &result.digest)?;
    printer.enumeration(Field::named("failureKind", "failure_kind"), result.failure_kind, result.failure_kind().as_str_name())?;
    printer.integer(Field::of("signal"), result.signal.into())?;
    printer.string(Field::of("commit"), &result.commit)?;
    printer.boolean(Field::of("dirty"), result.dirty)?;
    printer.strings(Field::named("sensitiveOutputs", "sensitive_outputs"), &result.sensitive_outputs)?;
    printer.string(Field::named("failureMessage", "failure_message"), &result.failure_message)
}

fn step(printer: &mut Printer<'_>, step: &Step) -> io::Result<()> {
    printer.string(Field::of("name"), &step.name)?;
    if let Some(invoked) = &step.step {
        printer.message(Field::of("step"), &mut |printer| reference(printer, invoked))?;
    }
    printer.string_map(Field::of("env"), &step.env)?;
    printer.value_map(Field::of("inputs"), &step.inputs)
}

fn reference(printer: &mut Printer<'_>, reference: &Reference) -> io::Result<()> {
    printer.enumeration(Field::of("protocol"), reference.protocol, reference.protocol().as_str_name())?;
    printer.string(Field::of("url"), &reference.url)?;
    printer.strings(Field::of("path"), &reference.path)?;
    printer.string(Field::of("filename"), &reference.filename)?;
    printer.string(Field::of("version"), &reference.version)?;
    printer.string(Field::of("registry"), &reference.registry)?;
    printer.string(Field::of("repository"), &reference.repository)?;
    printer.string(Field::of("tag"), &reference.tag)?;
    if let Some(inline) = &reference.spec_def {
        printer.message(Field::of("specDef"), &mut |printer| spec_definition(printer, inline))?;
    }
    match &reference.step_path {
        None => Ok(()),
        Some(StepPath::PathExp(expression)) => printer.string(Field::named("pathExp", "path_exp"), expression),
        Some(StepPath::Paths(paths)) => {
            printer.message(Field::of("paths"), &mut |printer| printer.strings(Field::of("parts"), &paths.parts))
        }
    }
}

fn spec_definition(printer: &mut Printer<'_>, document: &SpecDefinition) -> io::Result<()> {
    if let Some(spec) = &document.spec {
        printer.message(Field::of("spec"), &mut |printer| match &spec.spec {
            Some(inner) => printer.message(Field::of("spec"), &mut |printer| content(printer, inner)),
            None => Ok(()),
        })?;
    }
    match &document.definition {
        Some(inner) => printer.message(Field::of("definition"), &mut |printer| definition(printer, inner)),
        None => Ok(()),
    }
}

fn content(printer: &mut Printer<'_>, content: &Content) -> io::Result<()> {
    // Inputs and outputs are two messages with the same fields.
    macro_rules! declarations {
        ($name:literal, $declared:expr) => {
            printer.map(Field::of($name), $declared, &mut |printer, declared| {
                printer.bare_message(&mut |printer| {
                    printer.enumeration(Field::of("type"), declared.r#type, declared.r#type().as_str_name())?;
                    if let Some(default) = &declared.default {
                        printer.value(Field::of("default"), default)?;
                    }
                    printer.boolean(Field::of("sensitive"), declared.sensitive)
                })
            })
        };
    }
    declarations!("inputs", &content.inputs)?;
    declarations!("outputs", &content.outputs)?;
    printer.enumeration(Field::named("outputMethod", "output_method"), content.output_method, content.output_method().as_str_name())
}

fn definition(printer: &mut Printer<'_>, definition: &Definition) -> io::Result<()> {
    printer.enumeration(Field::of("type"), definition.r#type, definition.r#type().as_str_name())?;
    if let Some(exec) = &definition.exec {
        printer.message(Field::of("exec"), &mut |printer| {
            printer.strings(Field::of("command"), &exec.command)?;
            printer.string(Field::named("workDir", "work_dir"), &exec.work_dir)
        })?;
    }
    printer.messages(Field::of("steps"), &definition.steps, &mut |printer, inner| step(printer, inner))?;
    printer.value_map(Field::of("outputs"), &definition.outputs)?;
    printer.string_map(Field::of("env"), &definition.env)?;
    printer.string(Field::of("delegate"), &definition.delegate)
}
