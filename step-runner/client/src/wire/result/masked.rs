//! A node as it may be kept: what `write` prints with a redaction, as a message.

use super::Redaction;
use super::message::message_of;
use ci_proto::step_runner::spec::Content;
use ci_proto::step_runner::step::Reference;
use ci_proto::step_runner::step::reference::StepPath;
use ci_proto::step_runner::{SpecDefinition, Step as StepMessage, StepResult as StepResultMessage};
use prost_types::Value as ValueMessage;
use prost_types::value::Kind;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::Dialect;
use step_model::masking::Secrets;
use step_model::result::StepResult;
use step_model::value::Value;

/// One node, without its children, redacted: sensitive values are marks, and every other text is masked. The dialect is that of the document
/// that invokes it.
pub fn redacted_message(node: &StepResult, dialect: Dialect, redaction: &Redaction) -> StepResultMessage {
    let mut message = message_of(node, dialect, Some(redaction));
    if !redaction.secrets().is_empty() {
        Masking { secrets: redaction.secrets() }.result(&mut message);
    }
    message
}

/// Environment variables as they may be kept.
pub fn redacted_env<'a>(env: impl Iterator<Item = (&'a Arc<str>, &'a Value)>, redaction: &Redaction) -> BTreeMap<String, String> {
    let shown = |value: &Value| {
        let text = redaction.text(value);
        redaction.secrets().mask(&text).into_owned()
    };
    env.map(|(name, value)| (name.to_string(), shown(value))).collect()
}

/// As the printer masks: every text, but no name, digest or word of the format.
struct Masking<'a> {
    secrets: &'a Secrets,
}

impl Masking<'_> {
    fn result(&self, result: &mut StepResultMessage) {
        if let Some(step) = &mut result.step {
            self.step(step);
        }
        if let Some(document) = &mut result.spec_definition {
            self.document(document);
        }
        self.values(&mut result.outputs);
        self.texts(result.exports.values_mut().chain(result.env.values_mut()));
        if let Some(exec) = &mut result.exec_result {
            self.texts(exec.command.iter_mut().chain([&mut exec.work_dir]));
        }
        self.texts([&mut result.failure_message]);
    }

    fn step(&self, step: &mut StepMessage) {
        if let Some(reference) = &mut step.step {
            self.reference(reference);
        }
        self.texts(step.env.values_mut());
        self.values(&mut step.inputs);
    }

    fn reference(&self, reference: &mut Reference) {
        let Reference { url, path, filename, version, registry, repository, tag, .. } = reference;
        self.texts([url, filename, version, registry, repository, tag].into_iter().chain(path));
        if let Some(inline) = &mut reference.spec_def {
            self.document(inline);
        }
        match &mut reference.step_path {
            None => {}
            Some(StepPath::PathExp(expression)) => self.texts([expression]),
            Some(StepPath::Paths(paths)) => self.texts(&mut paths.parts),
        }
    }

    fn document(&self, document: &mut SpecDefinition) {
        if let Some(content) = document.spec.as_mut().and_then(|spec| spec.spec.as_mut()) {
            let Content { inputs, outputs, .. } = content;
            inputs.values_mut().filter_map(|input| input.default.as_mut()).for_each(|default| self.value(default));
            outputs.values_mut().filter_map(|output| output.default.as_mut()).for_each(|default| self.value(default));
        }
        let Some(definition) = &mut document.definition else { return };
        if let Some(exec) = &mut definition.exec {
            self.texts(exec.command.iter_mut().chain([&mut exec.work_dir]));
        }
        definition.steps.iter_mut().for_each(|step| self.step(step));
        self.values(&mut definition.outputs);
        self.texts(definition.env.values_mut());
    }

    fn values(&self, values: &mut BTreeMap<String, ValueMessage>) {
        values.values_mut().for_each(|value| self.value(value));
    }

    fn value(&self, value: &mut ValueMessage) {
        match &mut value.kind {
            None | Some(Kind::NullValue(_) | Kind::BoolValue(_) | Kind::NumberValue(_)) => {}
            Some(Kind::StringValue(text)) => self.texts([text]),
            Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(|item| self.value(item)),
            Some(Kind::StructValue(object)) => {
                let fields = std::mem::take(&mut object.fields);
                object.fields = fields
                    .into_iter()
                    .map(|(mut key, mut value)| {
                        self.texts([&mut key]);
                        self.value(&mut value);
                        (key, value)
                    })
                    .collect();
            }
        }
    }

    fn texts<'t>(&self, texts: impl IntoIterator<Item = &'t mut String>) {
        for text in texts {
            if let Cow::Owned(masked) = self.secrets.mask(text) {
                *text = masked;
            }
        }
    }
}
