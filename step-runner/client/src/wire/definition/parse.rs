//! Messages become documents: definitions that travel, and those that were written as protobuf text.

use super::{FUNCTION_FILE, SCRIPT, SCRIPT_LEGACY, STEP_FILE};
use crate::wire::value;
use ci_proto::step_runner::step::Reference;
use ci_proto::step_runner::step::reference::StepPath;
use ci_proto::step_runner::{
    Definition, DefinitionType, OutputMethod, SpecDefinition, Step as StepMessage, StepReferenceProtocol as Protocol, ValueType,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::{
    self, Action, Body, Dialect, Exec, Input, Output, Outputs, ScriptLegacy, Sequence, Spec, Step, StepDocument, ValueTemplate,
};
use step_model::expression::{ExpressionError, Template};
use step_model::reference::{GitReference, LocalReference, OciReference, ReferenceError, StepReference};
use step_model::value::{Data, Kind, Value};

/// Why a message is no definition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DefinitionFault {
    #[error("at least one of `script`, `action`, `run` or `exec` must be provided")]
    NothingToDo,
    #[error("only one of `exec` and `steps` may be provided")]
    TwoThingsToDo,
    #[error("`exec.command` needs at least one item")]
    NoCommand,
    #[error("step \"{step}\": unknown step reference protocol: {protocol}")]
    UnknownProtocol { step: String, protocol: String },
    #[error("step \"{step}\": a definition inside a reference is only known for an image")]
    InlineDefinition { step: String },
    #[error("step \"{step}\": {fault}")]
    Reference { step: String, fault: ReferenceError },
    #[error("{place}: {fault}")]
    Expression { place: String, fault: ExpressionError },
    #[error("{place}: {fault}")]
    Value { place: String, fault: value::TooDeep },
    #[error("missing {place} type")]
    NoType { place: String },
}

/// The document that a message says. Defaults of optional fields are taken as absent. Messages do not say the dialect of their expressions.
/// # Errors
/// Everything that is wrong with it.
pub fn document_of(message: &SpecDefinition, dialect: Dialect) -> Result<StepDocument, Vec<DefinitionFault>> {
    let mut parser = Parser { dialect, faults: Vec::new() };
    let spec = parser.spec(message);
    let definition = parser.definition(&message.definition.clone().unwrap_or_default());
    match definition {
        Some(definition) if parser.faults.is_empty() => Ok(StepDocument { dialect, spec, definition }),
        _ => Err(parser.faults),
    }
}

/// The invocation that a message says.
/// # Errors
/// Everything that is wrong with it.
pub fn step_of(message: &StepMessage, dialect: Dialect) -> Result<Step, Vec<DefinitionFault>> {
    let mut parser = Parser { dialect, faults: Vec::new() };
    match parser.step(message) {
        Some(step) if parser.faults.is_empty() => Ok(step),
        _ => Err(parser.faults),
    }
}

/// An environment that a message says: values may hold expressions.
/// # Errors
/// Everything that is wrong with it.
pub fn environment_of(env: &BTreeMap<String, String>, dialect: Dialect) -> Result<Vec<(Template, Template)>, Vec<DefinitionFault>> {
    let mut parser = Parser { dialect, faults: Vec::new() };
    let env = parser.environment(env, "env");
    if parser.faults.is_empty() { Ok(env) } else { Err(parser.faults) }
}

struct Parser {
    dialect: Dialect,
    faults: Vec<DefinitionFault>,
}

impl Parser {
    fn spec(&mut self, message: &SpecDefinition) -> Spec {
        let Some(content) = message.spec.as_ref().and_then(|spec| spec.spec.as_ref()) else { return Spec::default() };
        let mut inputs = Vec::new();
        for (name, input) in &content.inputs {
            let place = format!("input \"{name}\"");
            let default = input.default.as_ref().and_then(|default| self.value(default, &place));
            let Some(kind) = self.kind(input.r#type, "input") else { continue };
            inputs.push((name.as_str().into(), Input { kind, default, sensitive: input.sensitive, description: None, template: false }));
        }
        if content.output_method() == OutputMethod::Delegate {
            return Spec { inputs, outputs: Outputs::Delegate };
        }
        let mut outputs = Vec::new();
        for (name, output) in &content.outputs {
            let place = format!("output \"{name}\"");
            let default = output.default.as_ref().and_then(|default| self.value(default, &place));
            let Some(kind) = self.kind(output.r#type, "output") else { continue };
            outputs.push((name.as_str().into(), Output { kind, default, sensitive: output.sensitive, description: None }));
        }
        Spec { inputs, outputs: Outputs::Declared(outputs) }
    }

    fn kind(&mut self, number: i32, place: &str) -> Option<Kind> {
        match ValueType::try_from(number) {
            Ok(ValueType::String) => Some(Kind::String),
            Ok(ValueType::Number) => Some(Kind::Number),
            Ok(ValueType::Boolean) => Some(Kind::Boolean),
            Ok(ValueType::Struct) => Some(Kind::Struct),
            Ok(ValueType::Array) => Some(Kind::Array),
            Ok(ValueType::Unspecified) | Err(_) => {
                self.faults.push(DefinitionFault::NoType { place: place.to_owned() });
                None
            }
        }
    }

    fn definition(&mut self, message: &Definition) -> Option<document::Definition> {
        let env = self.environment(&message.env, "env");
        let exec = message.exec.as_ref().filter(|exec| !exec.command.is_empty());
        // The type decides; without it, what is there.
        let body = match (message.r#type(), exec, message.steps.is_empty()) {
            (DefinitionType::Unspecified, Some(_), false) => return self.fault(DefinitionFault::TwoThingsToDo),
            (DefinitionType::Unspecified, None, true) => return self.fault(DefinitionFault::NothingToDo),
            (DefinitionType::Exec, None, _) => return self.fault(DefinitionFault::NoCommand),
            (DefinitionType::Exec, Some(exec), _) | (DefinitionType::Unspecified, Some(exec), true) => Body::Exec(Exec {
                command: exec.command.iter().filter_map(|item| self.template(item, "exec.command")).collect(),
                work_dir: Some(exec.work_dir.as_str()).filter(|dir| !dir.is_empty()).and_then(|dir| self.template(dir, "exec.work_dir")),
            }),
            (DefinitionType::Steps, ..) | (DefinitionType::Unspecified, None, false) => Body::Sequence(Sequence {
                steps: message.steps.iter().filter_map(|step| self.step(step)).map(Arc::new).collect(),
                outputs: message.outputs.iter().filter_map(|(name, output)| self.named_template(name, output)).collect(),
                delegate: Some(message.delegate.as_str()).filter(|name| !name.is_empty()).map(Arc::from),
            }),
        };
        Some(document::Definition { env, body })
    }

    fn step(&mut self, message: &StepMessage) -> Option<Step> {
        let absent = Reference::default();
        let reference = message.step.as_ref().unwrap_or(&absent);
        // The pair that stands for an image carries the caller's inputs inside.
        let image = image_of(reference);
        let inputs = image.map_or(&message.inputs, |(_, run)| &run.inputs);
        let action = match image {
            Some((fetch, run)) => Some(Action::Reference(StepReference::Oci(Box::new(self.image(fetch, run)?)))),
            None => self.action(&message.name, reference, inputs),
        }?;
        let is_script = matches!(action, Action::Script(_) | Action::ScriptLegacy(_));
        let mut given = Vec::new();
        for (name, input) in inputs.iter().filter(|_| !is_script) {
            let place = format!("expand input \"{name}\"");
            if let (Some(name), Some(input)) = (self.template(name, &place), self.value_template(input, &place)) {
                given.push((name, input));
            }
        }
        let env = self.environment(&message.env, &format!("step \"{}\": env", message.name));
        Some(Step { env, inputs: given, ..Step::new(message.name.as_str(), action) })
    }

    fn action(&mut self, step: &str, reference: &Reference, inputs: &BTreeMap<String, prost_types::Value>) -> Option<Action> {
        let protocol = Protocol::try_from(reference.protocol).unwrap_or(Protocol::Unspecified);
        let file = Some(reference.filename.as_str()).filter(|file| !file.is_empty() && *file != STEP_FILE && *file != FUNCTION_FILE);
        let file = file.map(Arc::from);
        Some(Action::Reference(match protocol {
            Protocol::Local => match &reference.step_path {
                Some(StepPath::PathExp(expression)) => {
                    let text = file.map_or_else(|| expression.clone(), |file: Arc<str>| format!("{expression}/{file}"));
                    StepReference::Dynamic(self.template(&text, &format!("step \"{step}\": path_exp"))?)
                }
                Some(StepPath::Paths(paths)) => StepReference::Local(LocalReference { path: local_path(&paths.parts), file }),
                None => StepReference::Local(LocalReference { path: local_path(&reference.path), file }),
            },
            Protocol::Git => StepReference::Git(Box::new(GitReference {
                url: self.template(&reference.url, &format!("step \"{step}\": url"))?,
                revision: reference.version.as_str().into(),
                path: shared(&reference.path),
                file,
            })),
            Protocol::Dist => match (reference.path.as_slice(), inputs.get(SCRIPT).map(|script| &script.kind)) {
                ([name], Some(Some(prost_types::value::Kind::StringValue(script)))) if name == SCRIPT => {
                    return Some(Action::Script(self.template(script, &format!("step \"{step}\": script"))?));
                }
                (path, _) => StepReference::Dist { path: shared(path) },
            },
            Protocol::Dynamic if reference.url == SCRIPT_LEGACY => return Some(Action::ScriptLegacy(legacy(inputs))),
            Protocol::Dynamic => match StepReference::parse(&reference.url, self.dialect) {
                Ok(reference) => reference,
                Err(fault) => return self.fault(DefinitionFault::Reference { step: step.to_owned(), fault }),
            },
            Protocol::SpecDef => return self.fault(DefinitionFault::InlineDefinition { step: step.to_owned() }),
            Protocol::Unspecified | Protocol::Zip | Protocol::Oci => {
                let protocol = protocol.as_str_name().to_owned();
                return self.fault(DefinitionFault::UnknownProtocol { step: step.to_owned(), protocol });
            }
        }))
    }

    fn image(&mut self, fetch: &StepMessage, run: &StepMessage) -> Option<OciReference> {
        let mut input = |name: &str| {
            let text = match fetch.inputs.get(name).map(|value| &value.kind) {
                Some(Some(prost_types::value::Kind::StringValue(text))) => text.as_str(),
                _ => "",
            };
            self.template(text, &format!("step \"{}\": {name}", run.name))
        };
        let (registry, repository, tag, path) = (input("registry")?, input("repository")?, input("tag")?, input("step_path")?);
        let file = run.step.as_ref().map(|step| step.filename.as_str());
        Some(OciReference {
            registry,
            repository,
            tag,
            path: path.source().split('/').filter(|part| !part.is_empty()).map(Arc::from).collect(),
            file: file.filter(|file| !file.is_empty() && *file != STEP_FILE && *file != FUNCTION_FILE).map(Arc::from),
        })
    }

    fn environment(&mut self, env: &BTreeMap<String, String>, place: &str) -> Vec<(Template, Template)> {
        let entries = env.iter().filter_map(|(name, value)| {
            let place = format!("{place} \"{name}\"");
            Some((Template::literal(name.as_str()), self.template(value, &place)?))
        });
        entries.collect()
    }

    fn named_template(&mut self, name: &str, output: &prost_types::Value) -> Option<(Arc<str>, ValueTemplate)> {
        Some((name.into(), self.value_template(output, &format!("expand \"{name}\""))?))
    }

    fn value_template(&mut self, message: &prost_types::Value, place: &str) -> Option<ValueTemplate> {
        let value = self.value(message, place)?;
        self.with_expressions(&value, place)
    }

    fn with_expressions(&mut self, value: &Value, place: &str) -> Option<ValueTemplate> {
        Some(match value.data() {
            Data::Null | Data::Boolean(_) | Data::Number(_) => ValueTemplate::Scalar(value.clone()),
            Data::String(text) => ValueTemplate::Text(self.template(text, place)?),
            Data::Array(items) => {
                ValueTemplate::Array(items.iter().map(|item| self.with_expressions(item, place)).collect::<Option<Vec<_>>>()?)
            }
            Data::Object(object) => {
                let entries =
                    object.iter().map(|(key, value)| Some((Template::literal(Arc::clone(key)), self.with_expressions(value, place)?)));
                ValueTemplate::Object(entries.collect::<Option<Vec<_>>>()?)
            }
        })
    }

    fn value(&mut self, message: &prost_types::Value, place: &str) -> Option<Value> {
        match value::from_proto(message) {
            Ok(value) => Some(value),
            Err(fault) => self.fault(DefinitionFault::Value { place: place.to_owned(), fault }),
        }
    }

    fn template(&mut self, text: &str, place: &str) -> Option<Template> {
        match Template::parse(text, self.dialect) {
            Ok(template) => Some(template),
            Err(fault) => self.fault(DefinitionFault::Expression { place: place.to_owned(), fault }),
        }
    }

    fn fault<T>(&mut self, fault: DefinitionFault) -> Option<T> {
        self.faults.push(fault);
        None
    }
}

/// The fetching and the fetched step of a reference that stands for an image.
fn image_of(reference: &Reference) -> Option<(&StepMessage, &StepMessage)> {
    let definition = reference.spec_def.as_ref()?.definition.as_ref()?;
    let [fetch, run] = definition.steps.as_slice() else { return None };
    let path = &fetch.step.as_ref()?.path;
    (reference.protocol() == Protocol::SpecDef && *path == ["step", "oci", "fetch"] && definition.delegate == run.name)
        .then_some((fetch, run))
}

fn legacy(inputs: &BTreeMap<String, prost_types::Value>) -> ScriptLegacy {
    use prost_types::value::Kind;
    let is_set = |name: &str| matches!(inputs.get(name).map(|input| &input.kind), Some(Some(Kind::BoolValue(true))));
    let lines = match inputs.get(SCRIPT).map(|script| &script.kind) {
        Some(Some(Kind::ListValue(list))) => list.values.as_slice(),
        _ => &[],
    };
    let texts = lines.iter().filter_map(|line| match &line.kind {
        Some(Kind::StringValue(text)) => Some(Arc::from(text.as_str())),
        _ => None,
    });
    ScriptLegacy { lines: texts.collect(), echo: is_set("echo"), debug_trace: is_set("debug_trace"), job_status: is_set("job_status") }
}

/// A path in the old field may come undivided, and without the dot that says it is relative.
fn local_path(parts: &[String]) -> Vec<Arc<str>> {
    let mut path: Vec<Arc<str>> = Vec::new();
    for part in parts {
        if path.is_empty() && part.starts_with('/') {
            path.push("/".into());
        }
        path.extend(part.split('/').filter(|part| !part.is_empty()).map(Arc::from));
    }
    if !matches!(path.first().map(AsRef::as_ref), Some("/" | "." | "..")) {
        path.insert(0, ".".into());
    }
    path
}

fn shared(parts: &[String]) -> Vec<Arc<str>> {
    parts.iter().map(|part| part.as_str().into()).collect()
}
