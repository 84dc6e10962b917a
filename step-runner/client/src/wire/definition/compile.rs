//! Documents become messages.
//!
//! Source: original.md A.4 and A.5 (GitLab step-runner, `schema/v1/step.go`, `reference.go`).

use super::{FUNCTION_FILE, LITERAL_OPENING, SCRIPT, SCRIPT_LEGACY, STEP_FILE};
use crate::wire::value;
use ci_proto::step_runner::definition::Exec;
use ci_proto::step_runner::spec::Content;
use ci_proto::step_runner::spec::content::{Input, Output};
use ci_proto::step_runner::step::Reference;
use ci_proto::step_runner::step::reference::StepPath;
use ci_proto::step_runner::{
    Definition, DefinitionType, OutputMethod, Spec, SpecDefinition, Step as StepMessage, StepReferenceProtocol as Protocol, ValueType,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::{self, Action, Body, Dialect, Outputs, ScriptLegacy, Step, StepDocument, ValueTemplate};
use step_model::expression::Template;
use step_model::reference::{OciReference, StepReference};
use step_model::value::{Kind, Value};

/// The document as it was written: nothing is expanded.
pub fn compile(document: &StepDocument) -> SpecDefinition {
    SpecDefinition { spec: Some(Spec { spec: Some(content(&document.spec)) }), definition: Some(definition(document)) }
}

fn content(spec: &document::Spec) -> Content {
    let inputs = spec.inputs.iter().map(|(name, input)| {
        let default = input.default.as_ref().map(value::to_proto);
        (name.to_string(), Input { r#type: kind(input.kind).into(), default, sensitive: input.sensitive })
    });
    let (outputs, output_method) = match &spec.outputs {
        Outputs::Delegate => (BTreeMap::new(), OutputMethod::Delegate),
        Outputs::Declared(outputs) => {
            let outputs = outputs.iter().map(|(name, output)| {
                let default = output.default.as_ref().map(value::to_proto);
                (name.to_string(), Output { r#type: kind(output.kind).into(), default, sensitive: output.sensitive })
            });
            (outputs.collect(), OutputMethod::Outputs)
        }
    };
    Content { inputs: inputs.collect(), outputs, output_method: output_method.into() }
}

fn kind(kind: Kind) -> ValueType {
    match kind {
        Kind::Null => ValueType::Unspecified,
        Kind::Boolean => ValueType::Boolean,
        Kind::Number => ValueType::Number,
        Kind::String => ValueType::String,
        Kind::Array => ValueType::Array,
        Kind::Struct => ValueType::Struct,
    }
}

fn definition(document: &StepDocument) -> Definition {
    let env = environment(&document.definition.env);
    match &document.definition.body {
        Body::Exec(exec) => Definition {
            r#type: DefinitionType::Exec.into(),
            exec: Some(Exec {
                command: exec.command.iter().map(text).collect(),
                work_dir: exec.work_dir.as_ref().map(text).unwrap_or_default(),
            }),
            env,
            ..Definition::default()
        },
        Body::Sequence(sequence) => Definition {
            r#type: DefinitionType::Steps.into(),
            steps: sequence.steps.iter().map(|step| compile_step(step, document.dialect)).collect(),
            outputs: sequence.outputs.iter().map(|(name, output)| (name.to_string(), value::to_proto(&unexpanded(output)))).collect(),
            env,
            delegate: sequence.delegate.as_deref().unwrap_or_default().to_owned(),
            ..Definition::default()
        },
    }
}

/// An invocation as it was written. The dialect is that of the document that holds it.
pub fn compile_step(step: &Step, dialect: Dialect) -> StepMessage {
    let mut inputs: BTreeMap<String, prost_types::Value> =
        step.inputs.iter().map(|(name, input)| (text(name), value::to_proto(&unexpanded(input)))).collect();
    let env = environment(&step.env);
    let reference = match &step.action {
        Action::Reference(StepReference::Oci(oci)) => oci_sequence(&step.name, oci, &env, std::mem::take(&mut inputs), dialect),
        Action::Reference(other) => reference(other, dialect),
        Action::Script(script) => {
            inputs.insert(SCRIPT.into(), string(text(script)));
            path_reference(Protocol::Dist, [SCRIPT], STEP_FILE)
        }
        Action::ScriptLegacy(script) => {
            inputs.extend(legacy_inputs(script));
            Reference { protocol: Protocol::Dynamic.into(), url: SCRIPT_LEGACY.into(), ..Reference::default() }
        }
    };
    StepMessage { name: step.name.to_string(), step: Some(reference), env, inputs }
}

fn reference(reference: &StepReference, dialect: Dialect) -> Reference {
    match reference {
        StepReference::Local(local) => path_reference(Protocol::Local, parts(&local.path), file(local.file.as_ref(), dialect)),
        StepReference::Dist { path } => path_reference(Protocol::Dist, parts(path), STEP_FILE),
        StepReference::Git(git) => Reference {
            url: text(&git.url),
            version: git.revision.to_string(),
            ..path_reference(Protocol::Git, parts(&git.path), file(git.file.as_ref(), dialect))
        },
        // As the text that a caller could have written: whoever reads it classifies it again.
        StepReference::Builtin { name } => {
            Reference { protocol: Protocol::Dynamic.into(), url: format!("builtin://{name}"), ..Reference::default() }
        }
        StepReference::Dynamic(template) => Reference { protocol: Protocol::Dynamic.into(), url: text(template), ..Reference::default() },
        StepReference::Oci(oci) => Reference {
            registry: text(&oci.registry),
            repository: text(&oci.repository),
            tag: text(&oci.tag),
            ..path_reference(Protocol::Oci, parts(&oci.path), file(oci.file.as_ref(), dialect))
        },
    }
}

/// An image is fetched by a bundled step and then used as a directory; the pair stands in the place of the reference, and the outer
/// invocation carries no inputs.
fn oci_sequence(
    name: &str,
    oci: &OciReference,
    env: &BTreeMap<String, String>,
    inputs: BTreeMap<String, prost_types::Value>,
    dialect: Dialect,
) -> Reference {
    let fetch_name = format!("fetch_step_{name}");
    let tag = Some(text(&oci.tag)).filter(|tag| !tag.is_empty()).unwrap_or_else(|| "latest".into());
    let mut coordinates = BTreeMap::from([
        ("registry".into(), string(text(&oci.registry))),
        ("repository".into(), string(text(&oci.repository))),
        ("tag".into(), string(tag)),
    ]);
    if !oci.path.is_empty() {
        coordinates.insert("step_path".into(), string(oci.path.join("/")));
    }
    let fetch = StepMessage {
        name: fetch_name.clone(),
        step: Some(path_reference(Protocol::Dist, ["step", "oci", "fetch"], STEP_FILE)),
        env: env.clone(),
        inputs: coordinates,
    };
    let fetched = StepPath::PathExp(format!("${{{{steps.{fetch_name}.outputs.fetched_step_path}}}}"));
    let run = StepMessage {
        name: name.to_owned(),
        step: Some(Reference { step_path: Some(fetched), ..path_reference(Protocol::Local, [], file(oci.file.as_ref(), dialect)) }),
        env: env.clone(),
        inputs,
    };
    let spec = Spec { spec: Some(Content { output_method: OutputMethod::Delegate.into(), ..Content::default() }) };
    let definition =
        Definition { r#type: DefinitionType::Steps.into(), steps: vec![fetch, run], delegate: name.to_owned(), ..Definition::default() };
    Reference {
        protocol: Protocol::SpecDef.into(),
        spec_def: Some(SpecDefinition { spec: Some(spec), definition: Some(definition) }),
        ..Reference::default()
    }
}

fn legacy_inputs(script: &ScriptLegacy) -> impl Iterator<Item = (String, prost_types::Value)> {
    let lines = Value::array(script.lines.iter().cloned().map(Value::from));
    let marks = [("echo", script.echo), ("debug_trace", script.debug_trace), ("job_status", script.job_status)];
    let set = marks.into_iter().filter(|(_, set)| *set).map(|(name, set)| (name, set.into()));
    std::iter::once((SCRIPT, lines)).chain(set).map(|(name, input)| (name.to_owned(), value::to_proto(&input)))
}

fn path_reference<'a>(protocol: Protocol, path: impl IntoIterator<Item = &'a str>, file: &str) -> Reference {
    let path = path.into_iter().map(str::to_owned).collect();
    Reference { protocol: protocol.into(), path, filename: file.to_owned(), ..Reference::default() }
}

fn parts(path: &[Arc<str>]) -> impl Iterator<Item = &str> {
    path.iter().map(AsRef::as_ref)
}

fn file(named: Option<&Arc<str>>, dialect: Dialect) -> &str {
    match (named, dialect) {
        (Some(named), _) => named,
        (None, Dialect::Steps) => STEP_FILE,
        (None, Dialect::Functions) => FUNCTION_FILE,
    }
}

/// An environment as it was written.
pub fn environment(env: &[(Template, Template)]) -> BTreeMap<String, String> {
    env.iter().map(|(name, value)| (text(name), text(value))).collect()
}

/// A value with its expressions as they were written.
fn unexpanded(template: &ValueTemplate) -> Value {
    match template {
        ValueTemplate::Scalar(value) => value.clone(),
        ValueTemplate::Text(template) => text(template).into(),
        ValueTemplate::Array(items) => Value::array(items.iter().map(unexpanded)),
        ValueTemplate::Object(entries) => Value::object(entries.iter().map(|(key, value)| (text(key), unexpanded(value)))),
    }
}

/// A template as a document would write it. One that was made from plain text must not turn into an expression on the way.
fn text(template: &Template) -> String {
    let source = template.source();
    if source.contains("${{") && template.as_literal() == Some(source) {
        return source.replace("${{", LITERAL_OPENING);
    }
    source.to_owned()
}

fn string(text: String) -> prost_types::Value {
    prost_types::Value { kind: Some(prost_types::value::Kind::StringValue(text)) }
}
