//! A job becomes steps: its own, and around them what GitLab's runner does before and after.
//!
//! In this order: services, checkout, caches, artifacts of earlier jobs, the job's own steps, `after_script`, caches, artifacts.

mod own_steps;
mod surroundings;

use crate::job::{Job, JobVariable};
use crate::variables::Variables;
use crate::{CacheUse, Here, Translation, inputs, replaced};
use std::collections::BTreeMap;
use step_model::diagnostic::{Place, Problem};
use step_model::document::{Dialect, StepDocument};
use step_model::request::{RunRequest, Variable};

/// Job variables that are meant for GitLab's runner alone.
const NOT_HANDED_ON: [&str; 2] = ["STEPS", "FF_USE_NATIVE_STEPS"];

/// `place_of` says where a part of the job (`run`, `steps[0].script`) stands in its source.
/// # Errors
/// Every problem, when one of them is an error.
pub(crate) fn translate(
    mut job: Job,
    here: &Here,
    supplied: &BTreeMap<String, String>,
    place_of: &dyn Fn(&str) -> Option<Place>,
) -> Result<Translation, Vec<Problem>> {
    let mut problems = check(&job, place_of);
    give(&mut job, &here.given);
    let missing = replaced::restore(&mut job, supplied);
    add_predefined(&mut job, here);
    inputs::expand(&mut job, &mut problems, place_of);
    let variables = handed_on(&job, &mut problems);
    let own = own_steps::of(&job, here, &mut problems, place_of);
    let around = surroundings::of(&job, here, own, &mut problems);
    if problems.iter().any(Problem::is_error) {
        return Err(problems);
    }
    let request = RunRequest {
        id: job.id.map(|id| id.to_string()).unwrap_or_default().into(),
        work_dir: None,
        build_dir: None,
        env: BTreeMap::new(),
        variables,
        steps: StepDocument::of_steps(here.dialect.unwrap_or(Dialect::Functions), around.steps).into(),
        timeout: job.timeout,
        limits: Default::default(),
        trace_parent: None,
        plan: None,
    };
    let commit = job.git.map(|git| git.sha).filter(|sha| !sha.is_empty());
    Ok(Translation { request, not_done: around.not_done, missing: missing.into_iter().collect(), commit, problems })
}

/// The keys of the caches of a job.
/// # Errors
/// Every problem, when one of them is an error.
pub(crate) fn cache_uses(mut job: Job) -> Result<Vec<CacheUse>, Vec<Problem>> {
    let mut problems = Vec::new();
    job.keep_last_of_each_name();
    inputs::expand(&mut job, &mut problems, &|_| None);
    let uses = surroundings::cache_uses(&job, &mut problems);
    if problems.iter().any(Problem::is_error) { Err(problems) } else { Ok(uses) }
}

/// What GitLab's runner refuses, in its words.
fn check(job: &Job, place_of: &dyn Fn(&str) -> Option<Place>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !job.run.is_empty() && job.steps.iter().any(|step| !step.script.is_empty()) {
        let message = "the `run` and `script` keywords cannot be used together";
        problems.push(Problem::error("run-and-script", message, place_of("run")));
    }
    if !job.run.is_empty() && job.variable("STEPS").is_some_and(|variable| !variable.value.is_empty()) {
        let message = "the `run` keyword requires the exclusive use of the variable STEPS";
        problems.push(Problem::error("run-and-steps", message, place_of("run")));
    }
    if job.run.is_empty() && job.steps.iter().all(|step| step.script.is_empty()) {
        problems.push(Problem::warning("nothing-to-run", "the job has neither `run` nor a script: nothing will be done", None));
    }
    problems
}

/// A given value takes the place of the job's own; whether it is masked or a file stays.
fn give(job: &mut Job, given: &BTreeMap<String, String>) {
    for (key, value) in given {
        let known = job.variable(key).cloned().unwrap_or_default();
        job.variables.push(JobVariable { key: key.clone(), value: value.clone(), raw: true, ..known });
    }
    job.keep_last_of_each_name();
}

/// What the place adds comes first: the job's own variables win.
fn add_predefined(job: &mut Job, here: &Here) {
    let added = here.predefined.iter().map(|(key, value)| JobVariable {
        key: key.clone(),
        value: value.clone(),
        raw: true,
        ..JobVariable::default()
    });
    let files = here.added.files.iter().map(|(key, value)| JobVariable {
        key: key.clone(),
        value: value.clone(),
        raw: true,
        file: true,
        ..JobVariable::default()
    });
    job.variables.splice(0..0, added.chain(files));
    job.keep_last_of_each_name();
}

/// The variables of the job as the agent gets them: expanded once, as GitLab's runner does.
fn handed_on(job: &Job, problems: &mut Vec<Problem>) -> Vec<Variable> {
    let lookup = Variables::new(&job.variables);
    let handed_on = job.variables.iter().filter(|variable| !NOT_HANDED_ON.contains(&variable.key.as_str()));
    handed_on
        .filter(|variable| {
            let is_safe = !variable.file || is_file_name(&variable.key);
            if !is_safe {
                let message = format!("the file variable `{}` cannot become a file of that name", variable.key.escape_debug());
                problems.push(Problem::error("file-variable-name", message, None).with_hint("a name of letters, digits and `_`"));
            }
            is_safe
        })
        .map(|variable| {
            let value = if variable.raw { variable.value.clone() } else { lookup.expand_text(&variable.value) };
            Variable { key: variable.key.as_str().into(), value: value.into(), file: variable.file, masked: variable.masked }
        })
        .collect()
}

/// Whether a name stays in its directory on every system.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0', ':'])
}

/// GitLab's reading of a flag: the words of Go's `ParseBool` in any case.
fn is_true(job: &Job, key: &str) -> bool {
    let value = job.variable(key).map(|variable| variable.value.to_lowercase()).unwrap_or_default();
    matches!(value.as_str(), "1" | "t" | "true") || value.parse() == Ok(1)
}

#[cfg(test)]
mod tests;
