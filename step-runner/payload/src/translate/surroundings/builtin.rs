//! The `builtin://` steps and their inputs.

use crate::Here;
use crate::job::Image;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::{Action, Dialect, Step, StepDocument, ValueTemplate};
use step_model::expression::Template;
use step_model::reference::StepReference;
use step_model::value::Value;

/// A step whose inputs are the fields of `inputs`; nothing in them is an expression. Which step it is, the place may say.
pub(super) fn builtin_step(here: &Here, name: &str, builtin: &str, inputs: &impl Serialize) -> Step {
    let reference = here.references.get(builtin).cloned().unwrap_or_else(|| StepReference::Builtin { name: builtin.into() });
    let mut step = Step::new(name, Action::Reference(reference));
    if let Ok(Json::Object(fields)) = serde_json::to_value(inputs) {
        step.inputs = fields.iter().map(|(key, value)| (Template::literal(key.as_str()), literal(value))).collect();
    }
    step
}

/// A step that starts a container: what GitLab calls the image's name is `image` here.
pub(super) fn container_step(here: &Here, name: &str, builtin: &str, image: &Image) -> Step {
    let mut step = builtin_step(here, name, builtin, image);
    if let Some((key, _)) = step.inputs.iter_mut().find(|(key, _)| key.source() == "name") {
        *key = Template::literal("image");
    }
    step
}

/// Inputs that the step does not have yet.
pub(super) fn add_missing(step: &mut Step, inputs: &BTreeMap<String, Json>) {
    for (name, value) in inputs {
        if !step.inputs.iter().any(|(key, _)| key.source() == name) {
            step.inputs.push(value_input(name, value));
        }
    }
}

pub(super) fn secret_input(name: &str, secret: &str) -> (Template, ValueTemplate) {
    (Template::literal(name), ValueTemplate::Scalar(Value::string(secret).sensitive()))
}

/// A value of which nothing is for a log.
pub(super) fn secret_json(name: &str, value: &Json) -> (Template, ValueTemplate) {
    (Template::literal(name), ValueTemplate::Scalar(Value::from_json(value).sensitive()))
}

pub(super) fn text_input(name: &str, text: &str) -> (Template, ValueTemplate) {
    (Template::literal(name), ValueTemplate::Text(Template::literal(text)))
}

/// A value in which nothing is an expression.
pub(super) fn value_input(name: &str, value: &Json) -> (Template, ValueTemplate) {
    (Template::literal(name), literal(value))
}

/// The job's own steps inside a container: what is handed over to `builtin://docker`, with their conditions. The sequence inside decides by these, so the
/// step itself has none.
pub(super) fn handover(here: &Here, image: &Image, own: Vec<Step>) -> Step {
    let mut step = container_step(here, "job", "docker", image);
    step.inner = Some(Arc::new(StepDocument::of_steps(here.dialect.unwrap_or(Dialect::Functions), own)));
    step
}

/// A value in which no text is an expression.
fn literal(json: &Json) -> ValueTemplate {
    match json {
        Json::String(text) => ValueTemplate::Text(Template::literal(text.as_str())),
        Json::Array(items) => ValueTemplate::Array(items.iter().map(literal).collect()),
        Json::Object(members) => {
            ValueTemplate::Object(members.iter().map(|(key, value)| (Template::literal(key.as_str()), literal(value))).collect())
        }
        scalar => ValueTemplate::Scalar(Value::from_json(scalar)),
    }
}
