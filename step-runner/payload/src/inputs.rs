//! `${{ job.inputs.NAME }}` in the parts of a job that GitLab's runner expands: scripts, image, services, cache and artifacts.
//!
//! A job without inputs is left alone: its `${{ }}` belong to somebody else. Source: GitLab Runner, `common/spec/inputs.go`.

use crate::job::{Image, Job, JobInput};
use step_model::diagnostic::{Place, Problem};
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
pub(crate) fn expand(job: &mut Job, problems: &mut Vec<Problem>, place_of: &dyn Fn(&str) -> Option<Place>) {
    if job.inputs.is_empty() {
        return;
    }
    let inputs = Value::object(job.inputs.iter().map(|JobInput { key, value }| (key.as_str(), value.clone())));
    let scope = Inputs { job: Value::object([("inputs", inputs)]) };
    let mut expand = |at: &str, text: &mut String| match evaluate(text, &scope) {
        Ok(expanded) => *text = expanded,
        Err(message) => problems.push(Problem::error("job-input", format!("`{at}`: {message}"), place_of(at))),
    };
    for (index, step) in job.steps.iter_mut().enumerate().filter(|(_, step)| matches!(step.name.as_str(), "script" | "after_script")) {
        step.script.iter_mut().enumerate().for_each(|(line, text)| expand(&format!("steps[{index}].script[{line}]"), text));
    }
    if let Some(image) = &mut job.image {
        texts_of(image).for_each(|text| expand("image", text));
    }
    for (index, service) in job.services.iter_mut().enumerate() {
        texts_of(service).for_each(|text| expand(&format!("services[{index}]"), text));
    }
    for (index, cache) in job.cache.iter_mut().enumerate() {
        let texts = [&mut cache.key, &mut cache.policy].into_iter().chain(&mut cache.paths).chain(&mut cache.fallback_keys);
        texts.for_each(|text| expand(&format!("cache[{index}]"), text));
    }
    for (index, artifact) in job.artifacts.iter_mut().enumerate() {
        let texts = [&mut artifact.name, &mut artifact.expire_in].into_iter().chain(&mut artifact.paths).chain(&mut artifact.exclude);
        texts.for_each(|text| expand(&format!("artifacts[{index}]"), text));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Cache, JobStep};

    /// The script after the inputs, or what is wrong.
    fn script(line: &str, inputs: &[(&str, Value)]) -> Result<String, String> {
        let inputs = inputs.iter().map(|(key, value)| JobInput { key: (*key).to_owned(), value: value.clone() }).collect();
        let steps = vec![JobStep { name: "script".to_owned(), script: vec![line.to_owned()], ..JobStep::default() }];
        let mut job = Job { inputs, steps, ..Job::default() };
        let mut problems = Vec::new();
        expand(&mut job, &mut problems, &|_| None);
        match problems.pop() {
            Some(problem) => Err(problem.message),
            None => Ok(job.steps[0].script[0].clone()),
        }
    }

    #[test]
    fn inputs_become_text() {
        let inputs = [("s", Value::from("a")), ("n", Value::from(4.0)), ("l", Value::array([Value::from("x"), Value::from(true)]))];
        assert_eq!(script("${{ job.inputs.s }} ${{job.inputs.n}} ${{ job.inputs.l }}", &inputs).as_deref(), Ok("a 4 [\"x\", true]"));
        assert_eq!(script("$HOME \\${{ x }}", &inputs).as_deref(), Ok("$HOME ${{ x }}"));
    }

    #[test]
    fn a_job_without_inputs_is_left_alone() {
        assert_eq!(script("${{ job.inputs.s }} ${{ (", &[]).as_deref(), Ok("${{ job.inputs.s }} ${{ ("));
    }

    #[test]
    fn a_sensitive_input_is_refused_in_the_words_of_the_original() {
        let refused = Err("`steps[0].script[0]`: sensitive inputs are unsupported in interpolations yet".to_owned());
        assert_eq!(script("echo ${{ job.inputs.s }}", &[("s", Value::from("a").sensitive())]), refused);
    }

    #[test]
    fn what_cannot_be_evaluated_is_named() {
        let inputs = [("s", Value::from("a"))];
        let failed = Err("`steps[0].script[0]`: failed to interpolate job inputs: attribute not found: `nope` in `job.inputs`".to_owned());
        assert_eq!(script("${{ job.inputs.nope }}", &inputs), failed);
        assert!(script("${{ job.inputs.", &inputs).is_err_and(|message| message.contains("failed to interpolate job inputs: ")));
    }

    #[test]
    fn every_tagged_part_is_expanded_and_a_release_is_not() {
        let text = || "${{ job.inputs.s }}".to_owned();
        let mut job = Job {
            inputs: vec![JobInput { key: "s".to_owned(), value: Value::from("a") }],
            image: Some(Image { name: text(), entrypoint: vec![text()], ..Image::default() }),
            cache: vec![Cache { key: text(), paths: vec![text()], ..Cache::default() }],
            steps: vec![JobStep { name: "release".to_owned(), script: vec![text()], ..JobStep::default() }],
            ..Job::default()
        };
        expand(&mut job, &mut Vec::new(), &|_| None);
        assert_eq!(job.image, Some(Image { name: "a".to_owned(), entrypoint: vec!["a".to_owned()], ..Image::default() }));
        assert_eq!(job.cache, [Cache { key: "a".to_owned(), paths: vec!["a".to_owned()], ..Cache::default() }]);
        assert_eq!(job.steps[0].script, [text()]);
    }
}
