//! Results read back, ours and GitLab's. Lenient: what is not known is left out, what is missing is absent.

use super::OwnedTree;
use super::redaction::is_mark;
use crate::wire::{definition, json, value};
use ci_proto::step_runner::step_result::Status as StatusMessage;
use ci_proto::step_runner::{AppliedLimit as AppliedLimitMessage, StepResult as StepResultMessage, failure};
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;
use step_model::document::Dialect;
use step_model::limits::{AppliedLimit, LimitName};
use step_model::plan::Provenance;
use step_model::result::{ExecResult, Failure, FailureKind, Means, Status, StepId, StepResult, Traffic, Usage};
use step_model::time::Timestamp;
use step_model::value::{Data, Value};

/// Steps nest at most this deep in a result (compatibility.md, limits), and a level of steps is two of JSON.
const DEEPEST: usize = 400;

/// Why a text is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error(transparent)]
    Json(#[from] json::NotJson),
    #[error("{0}")]
    NoResult(&'static str),
    #[error("`{place}` is not what a result has there: {fault}")]
    Field { place: String, fault: String },
}

/// Reads a result as protobuf JSON.
/// # Errors
/// The text is cut off or no JSON, or it is not a result.
pub fn read(text: &str) -> Result<OwnedTree, Unreadable> {
    let root = json::parse(text, DEEPEST)?;
    let Json::Object(fields) = &root else { return Err(Unreadable::NoResult("it is not an object")) };
    if !["status", "step", "specDefinition", "spec_definition", "subStepResults", "execResult"].iter().any(|key| fields.contains_key(*key))
    {
        return Err(Unreadable::NoResult("it has neither `status` nor `step`"));
    }
    let description = ci_proto::message("StepResult").ok_or(Unreadable::NoResult("there is no description of results"))?;
    let (node, children) = read_node(root, &description, "result")?;
    let mut tree = OwnedTree::of(node);
    add_children(&mut tree, StepId::ROOT, children, &description, "result")?;
    Ok(tree)
}

fn add_children(
    tree: &mut OwnedTree,
    parent: StepId,
    children: Vec<Json>,
    description: &MessageDescriptor,
    place: &str,
) -> Result<(), Unreadable> {
    for (at, child) in children.into_iter().enumerate() {
        let place = format!("{place}.subStepResults[{at}]");
        let (node, children) = read_node(child, description, &place)?;
        let id = tree.add(parent, node).ok_or(Unreadable::NoResult("it has more steps than can be numbered"))?;
        add_children(tree, id, children, description, &place)?;
    }
    Ok(())
}

/// A node by itself, so that the depth of the tree does not count against the depth of its values.
fn read_node(mut json: Json, description: &MessageDescriptor, place: &str) -> Result<(StepResult, Vec<Json>), Unreadable> {
    let mut children = Vec::new();
    if let Json::Object(fields) = &mut json {
        for name in ["subStepResults", "sub_step_results"] {
            if let Some(Json::Array(items)) = fields.remove(name) {
                children.extend(items);
            }
        }
    }
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let field = |fault: String| Unreadable::Field { place: place.to_owned(), fault };
    let dynamic =
        DynamicMessage::deserialize_with_options(description.clone(), json, &options).map_err(|fault| field(fault.to_string()))?;
    let message: StepResultMessage = dynamic.transcode_to().map_err(|fault| field(fault.to_string()))?;
    Ok((node_of(message), children))
}

/// A message as a node, without its children. Marks of redaction are sensitive values again.
pub fn node_of(message: StepResultMessage) -> StepResult {
    let step = message.step.clone().unwrap_or_default();
    let is_sensitive = |name: &str| message.sensitive_outputs.iter().any(|output| output == name);
    let outputs = message.outputs.iter().map(|(name, output)| (Arc::from(name.as_str()), read_value(output).marked(is_sensitive(name))));
    StepResult {
        name: step.name.as_str().into(),
        step: step.step.as_ref().and_then(|_| definition::step_of(&step, Dialect::Steps).ok()).map(Arc::new),
        document: message
            .spec_definition
            .as_ref()
            .and_then(|document| definition::document_of(document, Dialect::Steps).ok())
            .map(Arc::new),
        inputs: step.inputs.iter().map(|(name, input)| (name.as_str().into(), read_value(input))).collect(),
        given_env: step.env.iter().map(|(name, text)| (name.as_str().into(), read_text(text))).collect(),
        env: message.env.iter().map(|(name, text)| (name.as_str().into(), read_text(text))).collect(),
        status: status(message.status()),
        outputs: outputs.collect(),
        exports: message.exports.iter().map(|(name, text)| (name.as_str().into(), read_text(text))).collect(),
        exec: message.exec_result.as_ref().map(|exec| ExecResult {
            command: exec.command.iter().map(|item| read_text(item)).collect(),
            work_dir: read_text(&exec.work_dir),
            exit_code: exec.exit_code,
            signal: Some(message.signal).filter(|signal| *signal != 0),
        }),
        start: message.start_time.as_ref().map(timestamp),
        end: message.end_time.as_ref().map(timestamp),
        usage: message.usage.as_ref().map(|usage| Usage {
            cpu_user: duration(usage.cpu_user.as_ref()),
            cpu_system: duration(usage.cpu_system.as_ref()),
            peak_memory: usage.peak_memory,
            disk: traffic(usage.disk_read, usage.disk_written),
            network: traffic(usage.network_received, usage.network_sent),
            means: Means::named(&usage.means).unwrap_or_default(),
        }),
        digest: message.digest.parse().ok(),
        provenance: Some(message.commit.as_str())
            .filter(|commit| !commit.is_empty())
            .map(|commit| Provenance { commit: commit.into(), dirty: message.dirty }),
        failure: failure_kind(message.failure_kind()).map(|kind| Failure { kind, message: message.failure_message.clone() }),
        allowed_to_fail: message.failure_allowed,
        trace: message.traceparent.parse().ok(),
        sensitive_outputs: message.sensitive_outputs.iter().map(|name| name.as_str().into()).collect(),
        limits: message.limits.iter().filter_map(limit).collect(),
        filtered: Some(message.filtered.as_str()).filter(|filtered| !filtered.is_empty()).map(Arc::from),
    }
}

fn read_value(message: &prost_types::Value) -> Value {
    with_marks(&value::from_proto(message).unwrap_or(Value::NULL))
}

fn with_marks(value: &Value) -> Value {
    match value.data() {
        Data::Null | Data::Boolean(_) | Data::Number(_) => value.clone(),
        Data::String(text) => value.clone().marked(is_mark(text)),
        Data::Array(items) => Value::array(items.iter().map(with_marks)),
        Data::Object(object) => Value::object(object.iter().map(|(key, value)| (Arc::clone(key), with_marks(value)))),
    }
}

fn read_text(text: &str) -> Value {
    Value::from(text).marked(is_mark(text))
}

pub(crate) fn status(status: StatusMessage) -> Status {
    match status {
        StatusMessage::Unspecified => Status::Unspecified,
        StatusMessage::Running => Status::Running,
        StatusMessage::Success => Status::Success,
        StatusMessage::Failure => Status::Failure,
        StatusMessage::Cancelled => Status::Cancelled,
    }
}

/// `None`: nothing failed, or GitLab wrote it, which does not say.
pub(crate) fn failure_kind(kind: failure::Kind) -> Option<FailureKind> {
    Some(match kind {
        failure::Kind::Unspecified => return None,
        failure::Kind::StepFailure => FailureKind::StepFailure,
        failure::Kind::BadInput => FailureKind::BadInput,
        failure::Kind::Refused => FailureKind::Refused,
        failure::Kind::Cancelled => FailureKind::Cancelled,
        failure::Kind::Timeout => FailureKind::Timeout,
        failure::Kind::Internal => FailureKind::Internal,
        failure::Kind::Interrupted => FailureKind::Interrupted,
    })
}

pub(crate) fn timestamp(message: &prost_types::Timestamp) -> Timestamp {
    Timestamp::from_nanoseconds(message.seconds.saturating_mul(1_000_000_000).saturating_add(message.nanos.into()))
}

/// `None`: another version has more limits.
fn limit(message: &AppliedLimitMessage) -> Option<AppliedLimit> {
    let name = LimitName::named(&message.name)?;
    Some(AppliedLimit { name, value: message.value.as_str().into(), means: message.means.as_str().into(), reached: message.reached })
}

fn traffic(incoming: u64, outgoing: u64) -> Option<Traffic> {
    (incoming != 0 || outgoing != 0).then_some(Traffic { incoming, outgoing })
}

fn duration(message: Option<&prost_types::Duration>) -> Duration {
    let Some(message) = message else { return Duration::ZERO };
    Duration::new(u64::try_from(message.seconds).unwrap_or(0), u32::try_from(message.nanos).unwrap_or(0))
}
