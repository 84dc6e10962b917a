//! What a record holds of a node of the result: redacted, and of its environment only what differs from the step that started before it.
//!
//! A record of a start has the invocation, and the definition if it is known; a record of an end has the rest. The price of writing as it happens: a
//! secret that is born later is in clear where it stood before by chance, in a definition for example.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ci_proto::step_runner::StepResult as StepResultMessage;
use prost::Message;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use step_client::wire::result::{Redaction, redacted_env, redacted_message};
use step_engine::run::ResultView;
use step_model::environment::Difference;
use step_model::result::StepId;

/// Members of a record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Content {
    /// A `StepResult` without environments and sub-results, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The environment that was given, as it differs from the one of the step that started before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Changes>,
    /// The environment after that of the definition, as it differs from the one that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Changes>,
}

/// What makes one environment another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Changes {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    set: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
}

impl Content {
    /// `None`: there is no message, or it cannot be read.
    pub fn message(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.node.as_ref()?).ok()
    }

    /// A node that is too large for a record is told of by its headline only.
    pub fn shorten(&mut self) -> bool {
        self.node.take().is_some()
    }
}

impl Changes {
    fn of(difference: &Difference, redaction: &Redaction) -> Self {
        let gone = difference.gone.iter().map(ToString::to_string).collect();
        Self { set: redacted_env(difference.set.iter(), redaction), gone }
    }

    pub fn apply(&self, env: &mut BTreeMap<String, String>) {
        env.extend(self.set.iter().map(|(name, text)| (name.clone(), text.clone())));
        for name in &self.gone {
            env.remove(name);
        }
    }
}

/// What has been written of the nodes.
#[derive(Debug, Default)]
pub struct Written {
    last_started: Option<StepId>,
    open: HashMap<StepId, Known>,
}

/// What the record of a start held already.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Sums of the messages: a secret that was born meanwhile changes them.
    invocation: u32,
    document: u32,
    applied: bool,
}

impl Written {
    pub fn start(&mut self, result: ResultView<'_>, step: StepId, redaction: &Redaction) -> Content {
        let whole = redacted_message(&result.node_without_environments(step), result.calling_dialect(step), redaction);
        let applied = result.applied_changes(step).map(|changes| Changes::of(&changes, redaction));
        let known =
            Known { invocation: sum(whole.step.as_ref()), document: sum(whole.spec_definition.as_ref()), applied: applied.is_some() };
        let message = StepResultMessage {
            step: whole.step,
            spec_definition: whole.spec_definition,
            start_time: whole.start_time,
            digest: whole.digest,
            commit: whole.commit,
            dirty: whole.dirty,
            traceparent: whole.traceparent,
            exec_result: whole.exec_result,
            ..StepResultMessage::default()
        };
        let given = Changes::of(&result.given_changes(step, self.last_started), redaction);
        self.last_started = Some(step);
        self.open.insert(step, known);
        Content { node: Some(encoded(&message)), given: Some(given), applied }
    }

    pub fn end(&mut self, result: ResultView<'_>, step: StepId, redaction: &Redaction) -> Content {
        let known = self.open.remove(&step).unwrap_or_default();
        let mut message = redacted_message(&result.node_without_environments(step), result.calling_dialect(step), redaction);
        // What is as it was is not written again.
        message.step = message.step.filter(|step| sum(Some(step)) != known.invocation);
        message.spec_definition = message.spec_definition.filter(|document| sum(Some(document)) != known.document);
        let applied = result.applied_changes(step).filter(|_| !known.applied);
        Content { node: Some(encoded(&message)), given: None, applied: applied.map(|changes| Changes::of(&changes, redaction)) }
    }
}

/// Zero: there is none.
fn sum(message: Option<&impl Message>) -> u32 {
    message.map_or(0, |message| crc32fast::hash(&message.encode_to_vec()).max(1))
}

fn encoded(message: &StepResultMessage) -> String {
    STANDARD.encode(message.encode_to_vec())
}
