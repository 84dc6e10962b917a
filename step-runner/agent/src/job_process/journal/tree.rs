//! The result that a journal holds, put together: whole while the job runs, after it ended, and after its process died.

use super::Reading;
use super::content::{Changes, Content};
use ci_proto::step_runner::{StepResult as StepResultMessage, failure, step_result};
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use step_client::wire::result::message_of;
use step_engine::run::Headline;
use step_model::document::Dialect;
use step_model::result::{ExecResult, FailureKind, Status, StepId, StepResult};
use step_model::value::Value;

/// Of `sub_step_results` in `StepResult`.
const CHILDREN: u32 = 9;

/// What records told of one node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeRecord {
    /// Without environments and children.
    message: StepResultMessage,
    given: Changes,
    applied: Changes,
    has_applied: bool,
    has_message: bool,
}

impl NodeRecord {
    pub(super) fn take(&mut self, content: Content) {
        if let Some(bytes) = content.message() {
            // The record's sum was right, so what cannot be read is of a later version.
            if let Ok(later) = StepResultMessage::decode(bytes.as_slice()) {
                self.merge(later);
            }
        }
        if let Some(given) = content.given {
            self.given = given;
        }
        if let Some(applied) = content.applied {
            (self.applied, self.has_applied) = (applied, true);
        }
    }

    /// What is told again counts.
    fn merge(&mut self, later: StepResultMessage) {
        let known = std::mem::take(&mut self.message);
        self.message = StepResultMessage {
            step: later.step.or(known.step),
            spec_definition: later.spec_definition.or(known.spec_definition),
            exec_result: later.exec_result.or(known.exec_result),
            ..later
        };
        self.has_message = true;
    }

    /// The node, with its environments. `given` is that of the step before, and becomes this one's.
    fn message(&self, headline: &Headline, given: &mut BTreeMap<String, String>) -> StepResultMessage {
        self.given.apply(given);
        let mut message = if self.has_message { self.message.clone() } else { message_of(&node_of(headline), Dialect::Steps, None) };
        if headline.parent.is_some()
            && let Some(step) = &mut message.step
        {
            step.env.clone_from(given);
        }
        if self.has_applied {
            message.env.clone_from(given);
            self.applied.apply(&mut message.env);
        }
        message.set_status(status(headline.status));
        if let Some(failure) = headline.failure.as_ref().filter(|failure| failure.kind == FailureKind::Interrupted) {
            message.set_failure_kind(failure::Kind::Interrupted);
            message.failure_message.clone_from(&failure.message);
        }
        message
    }
}

/// A node of which only the headline is known.
fn node_of(headline: &Headline) -> StepResult {
    let exec = (!headline.command.is_empty()).then(|| ExecResult {
        command: headline.command.clone(),
        work_dir: headline.work_dir.clone().unwrap_or(Value::NULL),
        exit_code: headline.exit_code.unwrap_or(-1),
        signal: headline.signal,
    });
    StepResult {
        name: headline.name.clone(),
        step: None,
        document: None,
        inputs: Vec::new(),
        given_env: BTreeMap::new(),
        env: BTreeMap::new(),
        status: headline.status,
        outputs: Vec::new(),
        exports: Vec::new(),
        exec,
        start: headline.start,
        end: headline.end,
        usage: headline.usage,
        digest: None,
        provenance: None,
        failure: headline.failure.clone(),
        allowed_to_fail: headline.allowed_to_fail,
        sensitive_outputs: Vec::new(),
        trace: headline.trace,
        limits: headline.limits.clone(),
        filtered: headline.filtered.clone(),
    }
}

impl Reading {
    /// The result as a message. `None`: no step has started.
    pub fn result(&self) -> Option<StepResultMessage> {
        let mut messages: Vec<StepResultMessage> = Vec::with_capacity(self.steps.len());
        self.each(|message| messages.push(message));
        let places: HashMap<StepId, usize> = self.steps.iter().enumerate().map(|(place, (step, _))| (*step, place)).collect();
        // From the last: all that is below a node is there when it goes to its parent. Children arrive in reverse.
        while messages.len() > 1 {
            let mut message = messages.pop()?;
            message.sub_step_results.reverse();
            let parent = self.parent(messages.len(), &places);
            messages[parent].sub_step_results.push(message);
        }
        let mut root = messages.pop()?;
        root.sub_step_results.reverse();
        Some(root)
    }

    /// Writes the result as a serialized message, one node at a time. Returns its length; zero when no step has started.
    /// # Errors
    /// As `out`.
    pub fn write_result(&self, out: &mut dyn Write) -> io::Result<u64> {
        let places: HashMap<StepId, usize> = self.steps.iter().enumerate().map(|(place, (step, _))| (*step, place)).collect();
        let parents: Vec<usize> = (0..self.steps.len()).map(|place| self.parent(place, &places)).collect();
        if !is_in_order(&parents) {
            let whole = self.result().map(|message| message.encode_to_vec()).unwrap_or_default();
            return out.write_all(&whole).map(|()| whole.len() as u64);
        }
        let mut lengths = Vec::with_capacity(self.steps.len());
        self.each(|message| lengths.push(message.encoded_len()));
        for place in (1..lengths.len()).rev() {
            lengths[parents[place]] += key_len(CHILDREN) + encoded_len_varint(lengths[place] as u64) + lengths[place];
        }
        let (mut place, mut outcome, mut bytes) = (0, Ok(()), Vec::new());
        self.each(|message| {
            bytes.clear();
            if place > 0 {
                encode_key(CHILDREN, WireType::LengthDelimited, &mut bytes);
                encode_varint(lengths[place] as u64, &mut bytes);
            }
            message.encode_raw(&mut bytes);
            if outcome.is_ok() {
                outcome = out.write_all(&bytes);
            }
            place += 1;
        });
        outcome.map(|()| lengths.first().map_or(0, |length| *length as u64))
    }

    /// Every node in the order of their starts.
    fn each(&self, mut take: impl FnMut(StepResultMessage)) {
        let mut given = BTreeMap::new();
        let none = NodeRecord::default();
        for (step, headline) in &self.steps {
            take(self.nodes.get(step).unwrap_or(&none).message(headline, &mut given));
        }
    }

    /// The place of a step's parent. One whose parent is not known stands below the root.
    fn parent(&self, place: usize, places: &HashMap<StepId, usize>) -> usize {
        let parent = self.steps[place].1.parent.and_then(|parent| places.get(&parent));
        parent.copied().filter(|parent| *parent < place).unwrap_or(0)
    }
}

/// Whether every node starts while its parent is the last one or one around it: children stand together then.
fn is_in_order(parents: &[usize]) -> bool {
    let mut around: Vec<usize> = Vec::new();
    parents.iter().enumerate().all(|(place, parent)| {
        while place > 0 && around.last().is_some_and(|last| last != parent) {
            around.pop();
        }
        let is_in_order = place == 0 || !around.is_empty();
        around.push(place);
        is_in_order
    })
}

fn status(status: Status) -> step_result::Status {
    match status {
        Status::Unspecified => step_result::Status::Unspecified,
        Status::Running => step_result::Status::Running,
        Status::Success => step_result::Status::Success,
        Status::Failure => step_result::Status::Failure,
        Status::Cancelled => step_result::Status::Cancelled,
    }
}
