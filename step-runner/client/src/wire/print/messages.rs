//! The messages that documents become, field by field in the order of their numbers.

use super::{Field, Printer};
use ci_proto::step_runner::spec::Content;
use ci_proto::step_runner::step::Reference;
use ci_proto::step_runner::step::reference::StepPath;
use ci_proto::step_runner::{Definition, SpecDefinition, Step};
use std::io;

pub(in crate::wire) fn step(printer: &mut Printer<'_>, step: &Step) -> io::Result<()> {
    printer.plain(Field::of("name"), &step.name)?;
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

pub(in crate::wire) fn spec_definition(printer: &mut Printer<'_>, document: &SpecDefinition) -> io::Result<()> {
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
    printer.plain(Field::of("delegate"), &definition.delegate)
}
