//! The `builtin://` steps and their inputs.

use crate::job::{Git, Image, Job};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use step_model::diagnostic::Problem;
use step_model::document::{Action, AllowFailure, Dialect, ScriptLegacy, Step, ValueTemplate, When};
use step_model::expression::Template;
use step_model::reference::StepReference;
use step_model::value::Value;

/// A step whose inputs are the fields of `inputs`; nothing in them is an expression.
pub(super) fn builtin_step(name: &str, builtin: &str, inputs: &impl Serialize) -> Step {
    let mut step = Step::new(name, Action::Reference(StepReference::Builtin { name: builtin.into() }));
    if let Ok(Json::Object(fields)) = serde_json::to_value(inputs) {
        step.inputs = fields.iter().map(|(key, value)| (Template::literal(key.as_str()), literal(value))).collect();
    }
    step
}

/// A step that starts a container: what GitLab calls the image's name is `image` here.
pub(super) fn container_step(name: &str, builtin: &str, image: &Image) -> Step {
    let mut step = builtin_step(name, builtin, image);
    if let Some((key, _)) = step.inputs.iter_mut().find(|(key, _)| key.source() == "name") {
        *key = Template::literal("image");
    }
    step
}

/// `builtin://cache` and `builtin://artifact` do several things; `action` says which.
pub(super) fn archive_step(name: &str, builtin: &str, action: &str, inputs: &impl Serialize) -> Step {
    let mut step = builtin_step(name, builtin, inputs);
    step.inputs.insert(0, (Template::literal("action"), ValueTemplate::Text(Template::literal(action))));
    step
}

pub(super) fn secret_input(name: &str, secret: &str) -> (Template, ValueTemplate) {
    (Template::literal(name), ValueTemplate::Scalar(Value::string(secret).sensitive()))
}

/// The fields of `git_info`, and the variables that GitLab's runner looks at when it checks out.
pub(super) fn checkout_step(job: &Job, git: &Git) -> Step {
    let settings: Map<String, Json> = job
        .variables
        .iter()
        .filter(|variable| variable.key.starts_with("GIT_") || variable.key == "GET_SOURCES_ATTEMPTS")
        .map(|variable| (variable.key.clone(), variable.value.clone().into()))
        .collect();
    let mut step = builtin_step("checkout", "checkout", git);
    step.inputs.retain(|(key, _)| key.source() != "repo_url");
    step.inputs.push(secret_input("repo_url", &git.repo_url)); // It holds the job's token.
    step.inputs.push((Template::literal("settings"), literal(&Json::Object(settings))));
    step
}

/// The job's own steps inside a container: `builtin://docker` takes them as a template (a handover). The sequence inside decides by the conditions
/// of its items, so the step itself has none.
pub(super) fn handover(job: &Job, image: &Image, own: &[Step], problems: &mut Vec<Problem>) -> Step {
    let mut step = container_step("job", "docker", image);
    let run = if job.run.is_empty() {
        ValueTemplate::Array(own.iter().map(script_item).collect())
    } else {
        serde_json::from_str(&job.run).map_or(ValueTemplate::Array(Vec::new()), |list| template(&list, problems))
    };
    step.inputs.push((Template::literal("run"), run));
    step
}

/// A script as an item of `run`: what has no syntax in files goes as inputs of `builtin://script_legacy`.
fn script_item(step: &Step) -> ValueTemplate {
    let Action::ScriptLegacy(script) = &step.action else { return ValueTemplate::Object(Vec::new()) };
    let ScriptLegacy { lines, echo, debug_trace, job_status } = script;
    let when = match step.when {
        When::OnSuccess => "on_success",
        When::OnFailure => "on_failure",
        When::Always => "always",
    };
    let mut inputs = json!({
        "script": lines.iter().map(|line| &**line).collect::<Vec<_>>(),
        "echo": echo,
        "debug_trace": debug_trace,
        "job_status": job_status,
        "when": when,
        "allow_failure": step.allow_failure != AllowFailure::No,
    });
    if let Some(timeout) = step.timeout {
        inputs["timeout"] = timeout.as_secs().into();
    }
    let env = step.env.iter().map(|(key, value)| (key.clone(), ValueTemplate::Text(value.clone()))).collect();
    let text = |text: &str| ValueTemplate::Text(Template::literal(text));
    ValueTemplate::Object(vec![
        (Template::literal("name"), text(&step.name)),
        (Template::literal("func"), text("builtin://script_legacy")),
        (Template::literal("env"), ValueTemplate::Object(env)),
        (Template::literal("inputs"), literal(&inputs)),
    ])
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

/// A value in which texts are expressions, evaluated where the steps run.
fn template(json: &Json, problems: &mut Vec<Problem>) -> ValueTemplate {
    match json {
        Json::String(text) => ValueTemplate::Text(parsed(text, problems)),
        Json::Array(items) => ValueTemplate::Array(items.iter().map(|item| template(item, problems)).collect()),
        Json::Object(members) => {
            ValueTemplate::Object(members.iter().map(|(key, value)| (parsed(key, problems), template(value, problems))).collect())
        }
        scalar => ValueTemplate::Scalar(Value::from_json(scalar)),
    }
}

fn parsed(text: &str, problems: &mut Vec<Problem>) -> Template {
    Template::parse(text, Dialect::Functions).unwrap_or_else(|error| {
        problems.push(Problem::error("expression", format!("in `run`: {error}"), None));
        Template::literal(text)
    })
}
