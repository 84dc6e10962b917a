//! Nodes of a result tree as messages.

use super::Redaction;
use crate::wire::{definition, value};
use ci_proto::step_runner::step_result::{ExecResult, Status as StatusMessage};
use ci_proto::step_runner::{
    AppliedLimit as AppliedLimitMessage, SpecDefinition, Step as StepMessage, StepResult as StepResultMessage, Usage as UsageMessage,
    failure,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use step_model::document::{Dialect, Outputs, StepDocument};
use step_model::limits::AppliedLimit;
use step_model::result::{FailureKind, ResultTree, Status, StepId, StepResult, Usage};
use step_model::time::Timestamp;
use step_model::value::Value;

/// A whole tree with its values in clear: what a handover gives back to the agent that asked for it. For anybody else, write it redacted.
pub fn tree_message(tree: &dyn ResultTree, root: StepId) -> StepResultMessage {
    subtree(tree, root, Dialect::Steps)
}

fn subtree(tree: &dyn ResultTree, id: StepId, dialect: Dialect) -> StepResultMessage {
    let node = tree.node(id);
    let inner = node.document.as_ref().map_or(dialect, |document| document.dialect);
    let sub_step_results = tree.children(id).into_iter().map(|child| subtree(tree, child, inner)).collect();
    StepResultMessage { sub_step_results, ..message_of(&node, dialect, None) }
}

/// One node, without its children. The dialect is that of the document that invokes it. Texts of documents are not redacted here: what
/// prints the message masks every text.
pub fn message_of(node: &StepResult, dialect: Dialect, redaction: Option<&Redaction>) -> StepResultMessage {
    let shown = Shown { redaction };
    StepResultMessage {
        step: Some(shown.step(node, dialect)),
        spec_definition: node.document.as_deref().map(|document| shown.document(document)),
        status: status(node.status).into(),
        outputs: shown.outputs(node),
        exports: node.exports.iter().map(|(name, value)| (name.to_string(), shown.text(value))).collect(),
        env: shown.texts(&node.env),
        exec_result: node.exec.as_ref().map(|exec| ExecResult {
            command: exec.command.iter().map(|item| shown.text(item)).collect(),
            work_dir: shown.text(&exec.work_dir),
            exit_code: exec.exit_code,
        }),
        sub_step_results: Vec::new(),
        start_time: node.start.map(timestamp),
        end_time: node.end.map(timestamp),
        usage: node.usage.map(usage),
        digest: node.digest.map(|digest| digest.to_string()).unwrap_or_default(),
        failure_kind: node.failure.as_ref().map_or(failure::Kind::Unspecified, |failure| failure_kind(failure.kind)).into(),
        signal: node.exec.as_ref().and_then(|exec| exec.signal).unwrap_or_default(),
        commit: node.provenance.as_ref().map(|provenance| provenance.commit.to_string()).unwrap_or_default(),
        dirty: node.provenance.as_ref().is_some_and(|provenance| provenance.dirty),
        sensitive_outputs: node.sensitive_outputs.iter().map(ToString::to_string).collect(),
        limits: node.limits.iter().map(limit).collect(),
        filtered: node.filtered.as_deref().unwrap_or_default().to_owned(),
        failure_message: node.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default(),
        traceparent: node.trace.map(|trace| trace.to_string()).unwrap_or_default(),
        failure_allowed: node.allowed_to_fail,
    }
}

/// Values as the reader of the message may see them.
struct Shown<'a> {
    redaction: Option<&'a Redaction>,
}

impl Shown<'_> {
    /// Nobody invokes the root: its message is empty, also where its environment is known.
    fn step(&self, node: &StepResult, dialect: Dialect) -> StepMessage {
        if node.step.is_none() && node.name.is_empty() {
            return StepMessage::default();
        }
        StepMessage {
            name: node.name.to_string(),
            step: node.step.as_deref().and_then(|step| definition::compile_step(step, dialect).step),
            env: self.texts(&node.given_env),
            inputs: self.values(&node.inputs),
        }
    }

    fn document(&self, document: &StepDocument) -> SpecDefinition {
        let mut message = definition::compile(document);
        let content = message.spec.as_mut().and_then(|spec| spec.spec.as_mut());
        if let (Some(redaction), Some(content)) = (self.redaction, content) {
            // A default that was written into a definition is as secret as a value that is given.
            for (name, input) in &document.spec.inputs {
                if let (true, Some(default), Some(shown)) = (input.sensitive, &input.default, content.inputs.get_mut(&**name)) {
                    shown.default = Some(value::to_proto(&redaction.mark(default).into()));
                }
            }
            for (name, output) in declared(&document.spec.outputs) {
                if let (true, Some(default), Some(shown)) = (output.sensitive, &output.default, content.outputs.get_mut(&**name)) {
                    shown.default = Some(value::to_proto(&redaction.mark(default).into()));
                }
            }
        }
        message
    }

    /// An output that is said to be sensitive is, whatever its value says.
    fn outputs(&self, node: &StepResult) -> BTreeMap<String, prost_types::Value> {
        let outputs = node.outputs.iter().map(|(name, value)| {
            let is_sensitive = node.sensitive_outputs.contains(name);
            (Arc::clone(name), value.clone().marked(is_sensitive))
        });
        self.values(&outputs.collect::<Vec<_>>())
    }

    fn values(&self, values: &[(Arc<str>, Value)]) -> BTreeMap<String, prost_types::Value> {
        let shown = values.iter().map(|(name, value)| match self.redaction {
            Some(redaction) => (name.to_string(), value::to_proto(&redaction.value(value))),
            None => (name.to_string(), value::to_proto(value)),
        });
        shown.collect()
    }

    fn texts(&self, env: &BTreeMap<Arc<str>, Value>) -> BTreeMap<String, String> {
        env.iter().map(|(name, value)| (name.to_string(), self.text(value))).collect()
    }

    fn text(&self, value: &Value) -> String {
        match (self.redaction, value.as_str()) {
            (Some(redaction), _) => redaction.text(value),
            (None, Some(text)) => text.to_owned(),
            (None, None) => value.to_json().to_string(),
        }
    }
}

fn declared(outputs: &Outputs) -> &[(Arc<str>, step_model::document::Output)] {
    match outputs {
        Outputs::Declared(outputs) => outputs,
        Outputs::Delegate => &[],
    }
}

fn status(status: Status) -> StatusMessage {
    match status {
        Status::Unspecified => StatusMessage::Unspecified,
        Status::Running => StatusMessage::Running,
        Status::Success => StatusMessage::Success,
        Status::Failure => StatusMessage::Failure,
        Status::Cancelled => StatusMessage::Cancelled,
    }
}

fn failure_kind(kind: FailureKind) -> failure::Kind {
    match kind {
        FailureKind::StepFailure => failure::Kind::StepFailure,
        FailureKind::BadInput => failure::Kind::BadInput,
        FailureKind::Refused => failure::Kind::Refused,
        FailureKind::Cancelled => failure::Kind::Cancelled,
        FailureKind::Timeout => failure::Kind::Timeout,
        FailureKind::Internal => failure::Kind::Internal,
        FailureKind::Interrupted => failure::Kind::Interrupted,
    }
}

fn limit(limit: &AppliedLimit) -> AppliedLimitMessage {
    AppliedLimitMessage {
        name: limit.name.to_string(),
        value: limit.value.to_string(),
        means: limit.means.to_string(),
        reached: limit.reached,
    }
}

fn usage(usage: Usage) -> UsageMessage {
    let (disk, network) = (usage.disk.unwrap_or_default(), usage.network.unwrap_or_default());
    UsageMessage {
        cpu_user: Some(duration(usage.cpu_user)),
        cpu_system: Some(duration(usage.cpu_system)),
        peak_memory: usage.peak_memory,
        disk_read: disk.incoming,
        disk_written: disk.outgoing,
        network_received: network.incoming,
        network_sent: network.outgoing,
        means: usage.means.name().to_owned(),
    }
}

fn timestamp(timestamp: Timestamp) -> prost_types::Timestamp {
    const SECOND: i64 = 1_000_000_000;
    let nanoseconds = timestamp.nanoseconds();
    let nanos = i32::try_from(nanoseconds.rem_euclid(SECOND)).unwrap_or_default();
    prost_types::Timestamp { seconds: nanoseconds.div_euclid(SECOND), nanos }
}

fn duration(duration: Duration) -> prost_types::Duration {
    let nanos = i32::try_from(duration.subsec_nanos()).unwrap_or_default();
    prost_types::Duration { seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), nanos }
}
