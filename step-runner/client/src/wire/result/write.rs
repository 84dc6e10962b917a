//! A result tree to a stream: one node at a time is in memory, never the whole.

use super::Redaction;
use super::message::message_of;
use crate::wire::print::messages::{spec_definition, step};
use crate::wire::print::{Field, Format, Printer};
use ci_proto::step_runner::StepResult;
use std::io::{self, Write};
use step_model::document::Dialect;
use step_model::result::{ResultTree, StepId};

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
            printer.large_integer(Field::named("peakMemory", "peak_memory"), usage.peak_memory)?;
            printer.large_integer(Field::named("diskRead", "disk_read"), usage.disk_read)?;
            printer.large_integer(Field::named("diskWritten", "disk_written"), usage.disk_written)?;
            printer.large_integer(Field::named("networkReceived", "network_received"), usage.network_received)?;
            printer.large_integer(Field::named("networkSent", "network_sent"), usage.network_sent)?;
            printer.plain(Field::of("means"), &usage.means)
        })?;
    }
    printer.plain(Field::of("digest"), &result.digest)?;
    printer.enumeration(Field::named("failureKind", "failure_kind"), result.failure_kind, result.failure_kind().as_str_name())?;
    printer.integer(Field::of("signal"), result.signal.into())?;
    printer.plain(Field::of("commit"), &result.commit)?;
    printer.boolean(Field::of("dirty"), result.dirty)?;
    printer.strings(Field::named("sensitiveOutputs", "sensitive_outputs"), &result.sensitive_outputs)?;
    printer.string(Field::named("failureMessage", "failure_message"), &result.failure_message)?;
    printer.plain(Field::of("traceparent"), &result.traceparent)?;
    printer.messages(Field::of("limits"), &result.limits, &mut |printer, limit| {
        printer.plain(Field::of("name"), &limit.name)?;
        printer.plain(Field::of("value"), &limit.value)?;
        printer.plain(Field::of("means"), &limit.means)?;
        printer.boolean(Field::of("reached"), limit.reached)
    })?;
    printer.boolean(Field::named("failureAllowed", "failure_allowed"), result.failure_allowed)?;
    printer.string(Field::of("filtered"), &result.filtered)
}
