//! Messages become plans. Whatever cannot be right is refused: the sender may be another program.

use super::NoPlan;
use ci_proto::agent::reference::Kind as ReferenceKind;
use ci_proto::agent::value::Kind as ValueKind;
use ci_proto::agent::{self, invocation, step_document, target};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use step_model::document::{
    Action, AllowFailure, Body, Definition, Dialect, Exec, Input, Output, Outputs, ScriptLegacy, Sequence, Spec, Step, StepDocument,
    ValueTemplate, When,
};
use step_model::expression::Template;
use step_model::limits::{Cores, Limits};
use step_model::plan::{HandedOver, Level, Places, Plan, PlannedDocument, Provenance, Target};
use step_model::reference::{Digest, GitReference, LocalReference, OciReference, StepReference};
use step_model::value::{Kind, MAXIMUM_DEPTH, Object, Value};

/// How deep documents may refer to each other (compatibility.md, limits).
const MAXIMUM_NESTING: usize = 64;

type Read<T> = Result<T, NoPlan>;

fn impossible<T>(what: impl Into<String>) -> Read<T> {
    Err(NoPlan::Impossible(what.into()))
}

pub(super) fn plan(message: &agent::Handover) -> Read<Plan> {
    let root = root(&message.documents)?;
    let places =
        Places { work_dir: message.work_dir.as_str().into(), build_dir: message.build_dir.as_str().into(), files_dir: Arc::from("") };
    let file_variables: BTreeMap<Arc<str>, Arc<str>> =
        message.files.iter().map(|(name, content)| (name.as_str().into(), content.as_str().into())).collect();
    if let Some(name) = file_variables.keys().find(|name| !is_file_name(name)) {
        return impossible(format!("the file variable {name:?} cannot be a file of that name"));
    }
    Ok(Plan {
        request_env: environment(&message.request_env)?,
        variables: named(&message.variables)?.collect::<Read<_>>()?,
        file_variables,
        grace_period: duration(message.grace_period.as_ref())?.unwrap_or_default(),
        level: match message.level {
            12 => Level::V0_12,
            44 => Level::V0_44,
            other => return impossible(format!("there is no level {other}")),
        },
        strict: message.strict,
        limits: limits(message.limits.as_ref())?,
        handover: Some(HandedOver {
            inputs: named(&message.inputs)?.collect::<Read<Object>>()?,
            enclosing_env: environment(&message.enclosing_env)?,
        }),
        ..Plan::of(root, places)
    })
}

/// What a document refers to stands before it, so no document leads to itself.
fn root(messages: &[agent::Planned]) -> Read<Arc<PlannedDocument>> {
    let mut read: Vec<(Arc<PlannedDocument>, usize)> = Vec::with_capacity(messages.len());
    for message in messages {
        let document = planned(message, &read)?;
        if document.1 > MAXIMUM_NESTING {
            return impossible(format!("steps nest deeper than {MAXIMUM_NESTING} levels"));
        }
        read.push((Arc::new(document.0), document.1));
    }
    match read.pop() {
        Some((root, _)) if matches!(root.document.definition.body, Body::Sequence(_)) => Ok(root),
        Some(_) => impossible("its outermost document is no sequence"),
        None => impossible("it has no document"),
    }
}

/// A document and its levels of steps.
fn planned(message: &agent::Planned, before: &[(Arc<PlannedDocument>, usize)]) -> Read<(PlannedDocument, usize)> {
    let Some(written) = &message.document else { return impossible("a document says nothing") };
    let document = Arc::new(document(written, 0)?);
    let steps = match &document.definition.body {
        Body::Sequence(sequence) => sequence.steps.len(),
        Body::Exec(_) => 0,
    };
    if message.targets.len() != steps {
        return impossible(format!("a sequence of {steps} steps has {} targets", message.targets.len()));
    }
    let mut height = 0;
    let mut at = |position: u32| -> Read<Option<Arc<PlannedDocument>>> {
        let Some(index) = usize::try_from(position).ok().and_then(|position| position.checked_sub(1)) else { return Ok(None) };
        let Some((found, below)) = before.get(index) else {
            return impossible("a step refers to a document that does not stand before it");
        };
        height = height.max(*below);
        Ok(Some(Arc::clone(found)))
    };
    let mut targets = Vec::with_capacity(steps);
    for target in &message.targets {
        targets.push(match (target::Kind::try_from(target.kind), at(target.planned)?) {
            (Ok(target::Kind::Script), _) => Target::Script,
            (Ok(target::Kind::Hole), seen) => Target::Hole { seen },
            (Ok(target::Kind::Document), Some(planned)) => Target::Document(planned),
            (Ok(target::Kind::Document), None) => return impossible("a step refers to no document"),
            (Err(_), _) => return impossible("a step refers to something unknown"),
        });
    }
    let mut handovers = BTreeMap::new();
    for given in &message.given {
        match (usize::try_from(given.step), at(given.document)?) {
            (Ok(step), Some(planned)) if step < steps => drop(handovers.insert(step, planned)),
            _ => return impossible("what a step hands over is not there"),
        }
    }
    let digest = match message.digest.as_slice() {
        [] => None,
        bytes => match <[u8; 32]>::try_from(bytes) {
            Ok(bytes) => Some(Digest::from(bytes)),
            Err(_) => return impossible("a digest has 32 bytes"),
        },
    };
    let is_known = !message.commit.is_empty();
    let planned = PlannedDocument {
        file: message.file.as_str().into(),
        digest,
        provenance: is_known.then(|| Provenance { commit: message.commit.as_str().into(), dirty: message.dirty }),
        targets,
        handovers,
        ..PlannedDocument::of_job(document, message.dir.as_str().into())
    };
    Ok((planned, height + usize::from(steps > 0)))
}

fn document(message: &agent::StepDocument, depth: usize) -> Read<StepDocument> {
    if depth > MAXIMUM_NESTING {
        return impossible(format!("steps nest deeper than {MAXIMUM_NESTING} levels"));
    }
    let mut inputs = Vec::with_capacity(message.inputs.len());
    for declared in &message.inputs {
        let Declaration { name, kind, default, description } = declaration(declared)?;
        inputs.push((name, Input { kind, default, sensitive: declared.sensitive, description, template: declared.template }));
    }
    let mut outputs = Vec::with_capacity(message.outputs.len());
    for declared in &message.outputs {
        let Declaration { name, kind, default, description } = declaration(declared)?;
        outputs.push((name, Output { kind, default, sensitive: declared.sensitive, description }));
    }
    let outputs = if message.delegate_outputs { Outputs::Delegate } else { Outputs::Declared(outputs) };
    let body = match &message.body {
        Some(step_document::Body::Exec(exec)) => {
            if exec.command.is_empty() {
                return impossible("a command is empty");
            }
            let command = exec.command.iter().map(template).collect::<Read<_>>()?;
            Body::Exec(Exec { command, work_dir: exec.work_dir.as_ref().map(template).transpose()? })
        }
        Some(step_document::Body::Sequence(sequence)) => Body::Sequence(Sequence {
            steps: sequence.steps.iter().map(|step| invocation(step, depth).map(Arc::new)).collect::<Read<_>>()?,
            outputs: sequence
                .outputs
                .iter()
                .map(|output| Ok((output.name.as_str().into(), value_template(output.value.as_ref(), 0)?)))
                .collect::<Read<_>>()?,
            delegate: sequence.delegate.as_deref().map(Arc::from),
        }),
        None => return impossible("a definition does nothing"),
    };
    let dialect = if message.steps_dialect { Dialect::Steps } else { Dialect::Functions };
    Ok(StepDocument { dialect, spec: Spec { inputs, outputs }, definition: Definition { env: pairs(&message.env)?, body } })
}

/// What inputs and outputs have in common.
struct Declaration {
    name: Arc<str>,
    kind: Kind,
    default: Option<Value>,
    description: Option<Arc<str>>,
}

fn declaration(message: &agent::Declaration) -> Read<Declaration> {
    let Some(kind) = Kind::declared(&message.r#type) else { return impossible("an input or output has no known type") };
    Ok(Declaration {
        name: message.name.as_str().into(),
        kind,
        default: message.default.as_ref().map(|default| value(default, 0)).transpose()?,
        description: message.description.as_deref().map(Arc::from),
    })
}

fn invocation(message: &agent::Invocation, depth: usize) -> Read<Step> {
    let action = match &message.action {
        Some(invocation::Action::Reference(named)) => Action::Reference(reference(named)?),
        Some(invocation::Action::Script(script)) => Action::Script(template(script)?),
        Some(invocation::Action::ScriptLegacy(script)) => Action::ScriptLegacy(ScriptLegacy {
            lines: script.lines.iter().map(|line| line.as_str().into()).collect(),
            echo: script.echo,
            debug_trace: script.debug_trace,
            job_status: script.job_status,
        }),
        None => return impossible("a step runs nothing"),
    };
    let given = |input: &agent::GivenInput| Ok((required(input.name.as_ref())?, value_template(input.value.as_ref(), 0)?));
    let mut step = Step::new(message.name.as_str(), action);
    step.env = pairs(&message.env)?;
    step.inputs = message.inputs.iter().map(given).collect::<Read<_>>()?;
    step.when = match message.when {
        0 => When::OnSuccess,
        1 => When::OnFailure,
        2 => When::Always,
        _ => return impossible("a step runs under a condition that is not known"),
    };
    step.allow_failure = match &message.allow_failure {
        None => AllowFailure::No,
        Some(allowed) if allowed.exit_codes.is_empty() => AllowFailure::Any,
        Some(allowed) => AllowFailure::ExitCodes(allowed.exit_codes.clone()),
    };
    step.timeout = duration(message.timeout.as_ref())?;
    step.limits = limits(message.limits.as_ref())?;
    step.inner = message.inner.as_ref().map(|inner| document(inner, depth + 1).map(Arc::new)).transpose()?;
    Ok(step)
}

fn reference(message: &agent::Reference) -> Read<StepReference> {
    let parts = |path: &[String]| path.iter().map(|part| part.as_str().into()).collect();
    let file = |file: &Option<String>| file.as_deref().map(Arc::from);
    Ok(match &message.kind {
        Some(ReferenceKind::Local(local)) => StepReference::Local(LocalReference { path: parts(&local.path), file: file(&local.file) }),
        Some(ReferenceKind::Git(git)) => StepReference::Git(Box::new(GitReference {
            url: required(git.url.as_ref())?,
            revision: git.revision.as_str().into(),
            path: parts(&git.path),
            file: file(&git.file),
        })),
        Some(ReferenceKind::Oci(oci)) => StepReference::Oci(Box::new(OciReference {
            registry: required(oci.registry.as_ref())?,
            repository: required(oci.repository.as_ref())?,
            tag: required(oci.tag.as_ref())?,
            path: parts(&oci.path),
            file: file(&oci.file),
        })),
        Some(ReferenceKind::Dist(dist)) => StepReference::Dist { path: parts(&dist.path) },
        Some(ReferenceKind::Builtin(name)) => StepReference::Builtin { name: name.as_str().into() },
        Some(ReferenceKind::Dynamic(named)) => StepReference::Dynamic(template(named)?),
        None => return impossible("a reference names nothing"),
    })
}

fn required(message: Option<&agent::Template>) -> Read<Template> {
    match message {
        Some(message) => template(message),
        None => impossible("a text is missing"),
    }
}

fn template(message: &agent::Template) -> Read<Template> {
    let dialect = if message.steps_dialect { Dialect::Steps } else { Dialect::Functions };
    if message.literal && dialect == Dialect::Functions {
        return Ok(Template::literal(message.source.as_str()));
    }
    Template::parse(message.source.as_str(), dialect).or_else(|_| impossible("an expression is not of the language"))
}

fn pairs(pairs: &[agent::TemplatePair]) -> Read<Vec<(Template, Template)>> {
    pairs.iter().map(|pair| Ok((required(pair.name.as_ref())?, required(pair.value.as_ref())?))).collect()
}

fn named(values: &[agent::NamedValue]) -> Read<impl Iterator<Item = Read<(Arc<str>, Value)>>> {
    let names: BTreeSet<&str> = values.iter().map(|named| named.name.as_str()).collect();
    if names.len() < values.len() {
        return impossible("a name is given twice");
    }
    Ok(values.iter().map(|named| match &named.value {
        Some(message) => Ok((Arc::from(named.name.as_str()), value(message, 0)?)),
        None => impossible("a value is missing"),
    }))
}

/// Names and values that a process can be given.
fn environment(values: &[agent::NamedValue]) -> Read<BTreeMap<Arc<str>, Value>> {
    let variables: BTreeMap<Arc<str>, Value> = named(values)?.collect::<Read<_>>()?;
    match variables.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        Some(name) => impossible(format!("{name:?} cannot be the name of an environment variable")),
        None => Ok(variables),
    }
}

fn value(message: &agent::Value, depth: usize) -> Read<Value> {
    let is_nested = matches!(message.kind, Some(ValueKind::Array(_) | ValueKind::Object(_)));
    if is_nested && depth >= MAXIMUM_DEPTH {
        return impossible(format!("a value nests deeper than {MAXIMUM_DEPTH} levels"));
    }
    let value = match &message.kind {
        Some(ValueKind::Null(_)) => Value::NULL,
        Some(ValueKind::Boolean(boolean)) => (*boolean).into(),
        Some(ValueKind::Number(number)) => (*number).into(),
        Some(ValueKind::Text(text)) => text.as_str().into(),
        Some(ValueKind::Array(array)) => Value::array(array.items.iter().map(|item| value(item, depth + 1)).collect::<Read<Vec<_>>>()?),
        Some(ValueKind::Object(object)) => {
            if object.keys.len() != object.values.len() {
                return impossible("an object has another number of keys than of values");
            }
            let entries = object.keys.iter().zip(&object.values);
            Value::object(entries.map(|(key, member)| Ok((key.source.as_str(), value(member, depth + 1)?))).collect::<Read<Vec<_>>>()?)
        }
        Some(ValueKind::Template(_)) | None => return impossible("a value is none"),
    };
    Ok(value.marked(message.sensitive))
}

fn value_template(message: Option<&agent::Value>, depth: usize) -> Read<ValueTemplate> {
    let Some(message) = message else { return impossible("a value is missing") };
    if message.whole {
        return value(message, depth).map(ValueTemplate::Scalar);
    }
    if depth >= MAXIMUM_DEPTH && matches!(message.kind, Some(ValueKind::Array(_) | ValueKind::Object(_))) {
        return impossible(format!("a value nests deeper than {MAXIMUM_DEPTH} levels"));
    }
    Ok(match &message.kind {
        Some(ValueKind::Template(text)) => ValueTemplate::Text(template(text)?),
        Some(ValueKind::Array(array)) => {
            ValueTemplate::Array(array.items.iter().map(|item| value_template(Some(item), depth + 1)).collect::<Read<_>>()?)
        }
        Some(ValueKind::Object(object)) => {
            if object.keys.len() != object.values.len() {
                return impossible("an object has another number of keys than of values");
            }
            let entries = object.keys.iter().zip(&object.values);
            ValueTemplate::Object(
                entries.map(|(key, member)| Ok((template(key)?, value_template(Some(member), depth + 1)?))).collect::<Read<_>>()?,
            )
        }
        _ => return impossible("a template is none"),
    })
}

/// Zero is no limit.
fn limits(message: Option<&agent::StepLimits>) -> Read<Limits> {
    let Some(message) = message else { return Ok(Limits::default()) };
    let given = |number: u64| Some(number).filter(|number| *number > 0);
    let cpus = Some(message.millicores).filter(|thousandths| *thousandths > 0);
    let cpus = cpus.map(|thousandths| Cores::of(f64::from(thousandths) / 1000.0));
    if cpus == Some(None) {
        return impossible("a limit of processor cores is less than a hundredth");
    }
    Ok(Limits {
        cpus: cpus.flatten(),
        memory: given(message.memory),
        pids: given(message.pids),
        disk: given(message.disk),
        no_network: message.no_network,
    })
}

fn duration(message: Option<&prost_types::Duration>) -> Read<Option<Duration>> {
    let Some(message) = message else { return Ok(None) };
    match (u64::try_from(message.seconds), u32::try_from(message.nanos)) {
        (Ok(seconds), Ok(nanos)) if nanos < 1_000_000_000 => Ok(Some(Duration::new(seconds, nanos))),
        _ => impossible("a time is negative or no duration"),
    }
}

/// Not a path, and not a name that means a directory.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | ".." | "logs" | ".job") && !name.contains(['/', '\\', '\0', ':'])
}
