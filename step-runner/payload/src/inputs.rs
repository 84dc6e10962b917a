//! `${{ job.inputs.NAME }}` in the parts of a job that GitLab's runner expands: scripts, image, services, cache and artifacts.
//!
//! A job without inputs is left alone: its `${{ }}` belong to somebody else. Source: GitLab Runner, `common/spec/inputs.go`.

use crate::job::{Image, Job, JobInput};
use step_model::diagnostic::Problem;
use step_model::document::Dialect;
use step_model::expression::{ExpressionError, Scope, Template};
use step_model::value::Value;

/// The context `job`, with `inputs` and nothing else in it.
struct Inputs {
    job: Value,
}

impl Scope for Inputs {
    fn context(&self, name: &str) -> Option<Value> {
        (name == "job").then(|| self.job.clone())
    }
}

/// Expands every part in place.
pub(crate) fn expand(job: &mut Job, problems: &mut Vec<Problem>) {
    if job.inputs.is_empty() {
        return;
    }
    let inputs = Value::object(job.inputs.iter().map(|JobInput { key, value }| (key.as_str(), value.clone())));
    let scope = Inputs { job: Value::object([("inputs", inputs)]) };
    let mut expand = |at: &str, text: &mut String| match evaluate(text, &scope) {
        Ok(expanded) => *text = expanded,
        Err(message) => problems.push(Problem::error("job-input", format!("{at}: {message}"), None)),
    };
    for (index, step) in job.steps.iter_mut().enumerate().filter(|(_, step)| matches!(step.name.as_str(), "script" | "after_script")) {
        step.script.iter_mut().enumerate().for_each(|(line, text)| expand(&format!("`steps[{index}].script[{line}]`"), text));
    }
    if let Some(image) = &mut job.image {
        texts_of(image).for_each(|text| expand("`image`", text));
    }
    for (index, service) in job.services.iter_mut().enumerate() {
        texts_of(service).for_each(|text| expand(&format!("`services[{index}]`"), text));
    }
    for (index, cache) in job.cache.iter_mut().enumerate() {
        let texts = [&mut cache.key, &mut cache.policy].into_iter().chain(&mut cache.paths).chain(&mut cache.fallback_keys);
        texts.for_each(|text| expand(&format!("`cache[{index}]`"), text));
    }
    for (index, artifact) in job.artifacts.iter_mut().enumerate() {
        let texts = [&mut artifact.name, &mut artifact.expire_in].into_iter().chain(&mut artifact.paths).chain(&mut artifact.exclude);
        texts.for_each(|text| expand(&format!("`artifacts[{index}]`"), text));
    }
}

fn texts_of(image: &mut Image) -> impl Iterator<Item = &mut String> {
    [&mut image.name, &mut image.platform, &mut image.user]
        .into_iter()
        .chain(&mut image.command)
        .chain(&mut image.entrypoint)
        .chain(&mut image.pull_policy)
}

fn evaluate(text: &str, scope: &Inputs) -> Result<String, String> {
    let failed = |error: ExpressionError| format!("failed to interpolate job inputs: {}", error.message);
    let value = Template::parse(text, Dialect::Functions).and_then(|template| template.evaluate_text(scope)).map_err(failed)?;
    if value.holds_sensitive() {
        return Err("sensitive inputs are unsupported in interpolations yet".to_owned());
    }
    Ok(value.as_str().unwrap_or_default().to_owned())
}
