//! What an editor is told about a place: what it is, what could stand there, where it comes from.

use super::position::range;
use super::session::{Open, uri_of};
use super::surroundings::{Around, around, reference};
use crate::doc::table;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use step_agent::definitions::Loader;
use step_engine::effect::LoadedDefinition;
use step_model::diagnostic::Lines;
use step_model::document::raw;
use step_model::document::yaml;
use step_model::document::{Body, Dialect, Input, Output, Outputs, Sequence, Spec, StepDocument};
use step_model::reference::{LocalReference, StepReference};

/// What the names in expressions stand for.
const CONTEXTS: [(&str, &str); 9] = [
    ("inputs", "the inputs of this step, with defaults"),
    ("env", "the environment at this place"),
    ("vars", "job variables"),
    ("steps", "the steps before this one: `steps.NAME.outputs.OUTPUT`"),
    ("work_dir", "where commands run"),
    ("func_dir", "the directory of this definition"),
    ("step_dir", "the directory of this definition, by its older name"),
    ("output_file", "the file that takes outputs: a line of JSON each, `{\"name\": ..., \"value\": ...}`"),
    ("export_file", "the file that takes variables for all later steps: a line of JSON each"),
];

/// Kinds of completion items: field, variable, module, property.
const FIELD: u8 = 5;
const VARIABLE: u8 = 6;
const STEP: u8 = 9;
const KEY: u8 = 10;

/// The definition that is typed; of one that cannot be read in the moment, what is whole.
fn document(open: &Open) -> Option<Arc<StepDocument>> {
    let name = open.path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(document) = raw::read(&open.text, &name).draft {
        return Some(document);
    }
    // An expression that is being typed, or a line without a colon: without such lines the rest can often be read.
    let is_whole = |line: &&str| line.trim().is_empty() || line.contains(':') || line.trim_start().starts_with(['#', '-']);
    let rest: String = open.text.lines().filter(is_whole).flat_map(|line| [line, "\n"]).collect();
    raw::read(&rest, &name).draft
}

/// The definition that the step at `at` refers to.
fn callee(open: &Open, at: usize) -> Option<LoadedDefinition> {
    let text = reference(&open.text, at)?;
    let StepReference::Local(reference) = StepReference::parse(text, Dialect::Functions).ok()? else { return None };
    load(open, &reference)
}

fn load(open: &Open, reference: &LocalReference) -> Option<LoadedDefinition> {
    let dir = open.path.parent().unwrap_or(Path::new("/")).to_str()?;
    Loader::new(dir, false).load(dir, reference).ok()
}

/// The definition of the step `name` of a sequence.
fn step_definition(open: &Open, sequence: &Sequence, name: &str) -> Option<LoadedDefinition> {
    let step = sequence.steps.iter().rev().find(|step| *step.name == *name)?;
    match &step.action {
        step_model::document::Action::Reference(StepReference::Local(reference)) => load(open, reference),
        _ => None,
    }
}

fn sequence(document: &StepDocument) -> Option<&Sequence> {
    match &document.definition.body {
        Body::Sequence(sequence) => Some(sequence),
        Body::Exec(_) => None,
    }
}

fn read(definition: &LoadedDefinition) -> Option<Arc<StepDocument>> {
    raw::read(&definition.text, &definition.file).draft
}

pub fn hover(open: &Open, at: usize) -> Option<Json> {
    let text = match around(&open.text, at) {
        Around::Expression { whole, .. } => {
            let document = document(open)?;
            let parts: Vec<&str> = whole.split('.').collect();
            match parts[..] {
                ["inputs", name, ..] => described_input(name, &document.spec)?,
                ["steps", step, "outputs", name, ..] => {
                    let definition = step_definition(open, sequence(&document)?, step)?;
                    described_output(name, &read(&definition)?.spec)?
                }
                ["steps", step, ..] => {
                    let definition = step_definition(open, sequence(&document)?, step)?;
                    summary(&definition)?
                }
                [context, ..] => format!("`{context}`: {}", CONTEXTS.iter().find(|(name, _)| *name == context)?.1),
                [] => return None,
            }
        }
        Around::Keys(keys) => {
            let line = line_of(&open.text, at);
            let key = line.trim_start().trim_start_matches("- ").split(':').next().unwrap_or_default().trim();
            let inside: Vec<&str> = keys.iter().copied().filter(|key| *key != "-").collect();
            if let Some(definition) = callee(open, at) {
                let is_input = inside.iter().rev().nth(1).is_some_and(|above| *above == "inputs");
                if is_input { described_input(key, &read(&definition)?.spec)? } else { summary(&definition)? }
            } else {
                described_input(key, &document(open)?.spec)?
            }
        }
    };
    Some(json!({"contents": {"kind": "markdown", "value": text}}))
}

fn described_input(name: &str, spec: &Spec) -> Option<String> {
    let (_, input) = spec.inputs.iter().find(|(known, _)| **known == *name)?;
    Some(format!("input `{name}`: {}{}", detail_of_input(input), described(input.description.as_deref())))
}

fn described_output(name: &str, spec: &Spec) -> Option<String> {
    let Outputs::Declared(outputs) = &spec.outputs else { return None };
    let (_, output) = outputs.iter().find(|(known, _)| **known == *name)?;
    Some(format!("output `{name}`: {}{}", detail_of_output(output), described(output.description.as_deref())))
}

fn described(description: Option<&str>) -> String {
    description.map_or_else(String::new, |description| format!("\n\n{description}"))
}

fn detail_of_input(input: &Input) -> String {
    let default = match &input.default {
        Some(default) => format!(", default {}", default.to_json()),
        None => ", required".into(),
    };
    format!("{}{}{default}", input.kind, if input.sensitive { ", sensitive" } else { "" })
}

fn detail_of_output(output: &Output) -> String {
    format!("{}{}", output.kind, if output.sensitive { ", sensitive" } else { "" })
}

fn summary(definition: &LoadedDefinition) -> Option<String> {
    Some(format!("`{}/{}`\n\n{}", definition.dir, definition.file, table::of(&*read(definition)?)))
}

pub fn completion(open: &Open, at: usize) -> Option<Json> {
    let items = match around(&open.text, at) {
        Around::Expression { typed, .. } => in_expression(open, typed),
        Around::Keys(keys) => of_keys(open, at, &keys),
    };
    Some(json!({"isIncomplete": false, "items": items}))
}

fn item(label: &str, kind: u8, detail: &str) -> Json {
    json!({"label": label, "kind": kind, "detail": detail})
}

fn in_expression(open: &Open, typed: &str) -> Vec<Json> {
    let parts: Vec<&str> = typed.split('.').collect();
    let document = document(open);
    let steps = document.as_deref().and_then(sequence);
    match parts[..] {
        [_] => CONTEXTS.iter().map(|(name, what)| item(name, VARIABLE, what)).collect(),
        ["inputs", _] => inputs(document.as_deref().map(|document| &document.spec), ""),
        ["steps", _] => {
            let names = steps.into_iter().flat_map(|sequence| &sequence.steps).filter(|step| !step.name.is_empty());
            names.map(|step| item(&step.name, STEP, "a step of this sequence")).collect()
        }
        ["steps", _, _] => vec![item("outputs", FIELD, "what the step gave")],
        ["steps", name, "outputs", _] => {
            let definition = steps.and_then(|sequence| step_definition(open, sequence, name));
            outputs(definition.as_ref().and_then(read).as_deref().map(|document| &document.spec), "")
        }
        _ => Vec::new(),
    }
}

fn inputs(spec: Option<&Spec>, behind: &str) -> Vec<Json> {
    let inputs = spec.into_iter().flat_map(|spec| &spec.inputs);
    inputs.map(|(name, input)| with_text(item(name, FIELD, &detail_of_input(input)), name, behind, input.description.as_deref())).collect()
}

fn outputs(spec: Option<&Spec>, behind: &str) -> Vec<Json> {
    let Some(Outputs::Declared(outputs)) = spec.map(|spec| &spec.outputs) else { return Vec::new() };
    outputs
        .iter()
        .map(|(name, output)| with_text(item(name, FIELD, &detail_of_output(output)), name, behind, output.description.as_deref()))
        .collect()
}

fn with_text(mut item: Json, name: &str, behind: &str, description: Option<&str>) -> Json {
    if !behind.is_empty() {
        item["insertText"] = format!("{name}{behind}").into();
    }
    if let Some(description) = description {
        item["documentation"] = description.into();
    }
    item
}

fn of_keys(open: &Open, at: usize, keys: &[&str]) -> Vec<Json> {
    let Some((typed, above)) = keys.split_last() else { return Vec::new() };
    // Behind a colon stands a value, of which nothing is known.
    if typed.contains(':') {
        return Vec::new();
    }
    let name = open.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let listed = |keys: &[&str]| keys.iter().map(|key| json!({"label": key, "kind": KEY, "insertText": format!("{key}: ")})).collect();
    if name.ends_with("_test.yml") {
        let tested = open.path.parent().and_then(|dir| step_testing::subject::Subject::read(dir).ok());
        let spec = tested.as_ref().map(|subject| &subject.document.spec);
        return match above {
            [] => listed(&["cases", "defaults", "mutants", "step"]),
            ["cases", "-"] => {
                listed(&["name", "inputs", "env", "variables", "files", "fakes", "stubs", "hermetic", "timeout", "table", "skip", "expect"])
            }
            ["cases", "-", "inputs"] | ["defaults", "inputs"] => inputs(spec, ": "),
            ["cases", "-", "expect"] => {
                listed(&["outputs", "exports", "exit", "failure", "log", "files", "steps", "calls", "called", "that"])
            }
            ["cases", "-", "expect", "outputs"] => outputs(spec, ": "),
            _ => Vec::new(),
        };
    }
    match above {
        ["run", "-"] => listed(&["name", "func", "step", "script", "inputs", "env"]),
        ["run", "-", "inputs"] => inputs(callee(open, at).as_ref().and_then(read).as_deref().map(|document| &document.spec), ": "),
        ["outputs"] => outputs(document(open).as_deref().map(|document| &document.spec), ": "),
        ["spec"] => listed(&["inputs", "outputs"]),
        ["spec", "inputs", _] => listed(&["type", "default", "sensitive", "description"]),
        ["spec", "outputs", _] => listed(&["type", "default", "sensitive", "description"]),
        ["exec"] => listed(&["command", "work_dir"]),
        [] => listed(&["spec", "exec", "run", "env", "outputs", "delegate"]),
        _ => Vec::new(),
    }
}

pub fn definition(open: &Open, at: usize) -> Option<Json> {
    if let Around::Expression { whole, .. } = around(&open.text, at) {
        let parts: Vec<&str> = whole.split('.').collect();
        return match parts[..] {
            ["inputs", name, ..] => declared(&open.path, &open.text, "inputs", name),
            ["steps", step, "outputs", name, ..] => {
                let document = document(open)?;
                let definition = step_definition(open, sequence(&document)?, step)?;
                declared(&path_of(&definition), &definition.text, "outputs", name)
            }
            ["steps", step, ..] => {
                let document = document(open)?;
                let step = sequence(&document)?.steps.iter().rev().find(|known| *known.name == *step)?.clone();
                Some(json!({"uri": uri_of(&open.path), "range": range(&open.text, &step.place.as_ref()?.span)}))
            }
            _ => None,
        };
    }
    let definition = callee(open, at)?;
    let key = line_of(&open.text, at);
    let key = key.trim_start().trim_start_matches("- ").split(':').next().unwrap_or_default().trim();
    let path = path_of(&definition);
    declared(&path, &definition.text, "inputs", key)
        .or_else(|| Some(json!({"uri": uri_of(&path), "range": range(&definition.text, &(0..0))})))
}

fn path_of(definition: &LoadedDefinition) -> std::path::PathBuf {
    Path::new(&*definition.dir).join(&*definition.file)
}

/// Where a definition declares an input or output.
fn declared(path: &Path, text: &str, what: &str, name: &str) -> Option<Json> {
    let stream = yaml::parse(text, 1, &Lines::of(text));
    let spec = stream.documents.first()?.as_ref()?.get("spec")?.get(what)?;
    let (key, _) = spec.as_map()?.iter().find(|(key, _)| key.source_text() == Some(name))?;
    Some(json!({"uri": uri_of(path), "range": range(text, &key.span.range())}))
}

fn line_of(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..].lines().next().unwrap_or_default()
}
