//! The steps that the job itself brings: the list of `run:`, or one step for each of its scripts.

use super::{NOT_HANDED_ON, is_true};
use crate::Here;
use crate::duration::go_duration;
use crate::job::{Job, JobStep};
use crate::variables::{Piece, Variables};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use step_model::diagnostic::{Place, Problem};
use step_model::document::{Action, AllowFailure, Dialect, ScriptLegacy, Step, When, raw};
use step_model::expression::Template;

/// GitLab's limit for `after_script` (GitLab Runner v19.4, `common/build.go`).
const AFTER_SCRIPT_TIMEOUT: Duration = Duration::from_mins(5);

pub(super) fn of(job: &Job, here: &Here, problems: &mut Vec<Problem>, place_of: &dyn Fn(&str) -> Option<Place>) -> Vec<Step> {
    if job.run.is_empty() {
        return scripts(job, here, problems);
    }
    warn_of_paths_in_values(job, problems);
    let (mut steps, of_run) = raw::read_steps(&job.run, Some(here.dialect.unwrap_or(Dialect::Functions)));
    let whole = place_of("run");
    problems.extend(of_run.into_iter().map(|problem| {
        // The list is a text inside the source: its own lines and columns are said, the place is that of the whole.
        let message = match &problem.place {
            Some(place) if place.line > 1 => format!("in `run`, line {}, column {}: {}", place.line, place.column, problem.message),
            Some(place) => format!("in `run`, column {}: {}", place.column, problem.message),
            None => format!("in `run`: {}", problem.message),
        };
        Problem { message, place: whole.clone(), ..problem }
    }));
    steps.iter_mut().for_each(|step| step.place = None);
    steps
}

/// `vars.A` is a text: where `A` mentions a file variable, the path is not in it.
fn warn_of_paths_in_values(job: &Job, problems: &mut Vec<Problem>) {
    let lookup = Variables::new(&job.variables);
    for variable in job.variables.iter().filter(|variable| !variable.raw && variable.value.contains('$')) {
        for piece in lookup.expand(&variable.value) {
            if let Piece::FileOf(name) = piece {
                let message = format!(
                    "`vars.{}` keeps the text `${{{name}}}`: the path of a file variable is known only when the job runs",
                    variable.key
                );
                problems.push(
                    Problem::warning("file-variable-in-value", message, None).with_hint(format!("use `${{{{ vars.{name} }}}}` itself")),
                );
            }
        }
    }
}

fn scripts(job: &Job, here: &Here, problems: &mut Vec<Problem>) -> Vec<Step> {
    let env = environment(job, problems);
    let mut names = BTreeSet::new();
    let written = job.steps.iter().filter(|step| !step.script.is_empty());
    // `after_script` goes last, whatever the payload's order says (GitLab Runner v19.4, `functions/concrete`).
    let (after, before): (Vec<_>, Vec<_>) = written.partition(|step| step.name == "after_script");
    before
        .into_iter()
        .chain(after)
        .map(|script| {
            let mut step = script_step(job, here, script);
            step.name = unique(&mut names, &script.name).into();
            step.env.clone_from(&env);
            step
        })
        .collect()
}

/// A script as one step of one shell.
fn script_step(job: &Job, here: &Here, script: &JobStep) -> Step {
    let is_after = script.name == "after_script";
    let mut lines: Vec<Arc<str>> = match script.name.as_str() {
        "release" => {
            let lookup = Variables::new(&job.variables);
            script.script.iter().map(|line| lookup.expand_text(line).into()).collect()
        }
        _ => script.script.iter().map(|line| line.as_str().into()).collect(),
    };
    let added = |text: &str| (!is_after && !text.is_empty()).then(|| Arc::from(text));
    lines.splice(0..0, added(&here.added.pre_build));
    lines.extend(added(&here.added.post_build));
    let mut step = Step::new(
        script.name.as_str(),
        Action::ScriptLegacy(ScriptLegacy {
            lines,
            echo: true,
            debug_trace: is_true(job, "CI_DEBUG_TRACE"),
            job_status: is_after || script.when != When::OnSuccess,
        }),
    );
    step.when = if is_after { When::Always } else { script.when };
    step.allow_failure = match is_after {
        true if ignores_errors_of_after_script(job) => AllowFailure::Any,
        false if script.allow_failure => AllowFailure::Any,
        _ => AllowFailure::No,
    };
    step.timeout = timeout(job, script, is_after);
    step
}

fn ignores_errors_of_after_script(job: &Job) -> bool {
    !job.variable("AFTER_SCRIPT_IGNORE_ERRORS")
        .is_some_and(|variable| matches!(variable.value.to_lowercase().as_str(), "0" | "f" | "false"))
}

/// The limit of a script. `None`: only the job's holds, so one that is not shorter is left out.
fn timeout(job: &Job, script: &JobStep, is_after: bool) -> Option<Duration> {
    let variable = if is_after { "RUNNER_AFTER_SCRIPT_TIMEOUT" } else { "RUNNER_SCRIPT_TIMEOUT" };
    let default = is_after.then_some(AFTER_SCRIPT_TIMEOUT);
    let wanted = job
        .variable(variable)
        .and_then(|variable| go_duration(&variable.value))
        .map_or(default, |wanted| Some(wanted).filter(|wanted| !wanted.is_zero()));
    let shortest = [wanted, script.timeout].into_iter().flatten().min();
    shortest.filter(|limit| job.timeout.is_none_or(|whole| *limit < whole))
}

/// Job variables for the shell. Each is an expression, so that a masked one stays marked and a file variable is its path.
pub(super) fn environment(job: &Job, problems: &mut Vec<Problem>) -> Vec<(Template, Template)> {
    let lookup = Variables::new(&job.variables);
    let mut environment = Vec::with_capacity(job.variables.len());
    for variable in job.variables.iter().filter(|variable| !NOT_HANDED_ON.contains(&variable.key.as_str())) {
        if variable.key.contains(['=', '\0']) || (variable.value.contains('\0') && !variable.file) {
            let message =
                format!("the variable `{}` is not exported to the script: no environment can hold it", variable.key.escape_debug());
            problems.push(Problem::warning("not-exported", message, None));
            continue;
        }
        let pieces = if variable.raw || variable.file { Vec::new() } else { lookup.expand(&variable.value) };
        let refers_to_files = pieces.iter().any(|piece| matches!(piece, Piece::FileOf(_)));
        let expression = if refers_to_files { concatenation(&pieces) } else { of_variable(&variable.key) };
        match Template::parse(format!("${{{{ {expression} }}}}"), Dialect::Functions) {
            Ok(template) => environment.push((Template::literal(variable.key.as_str()), template)),
            Err(error) => {
                let message = format!("the variable `{}` is not exported to the script: {error}", variable.key.escape_debug());
                problems.push(Problem::warning("not-exported", message, None));
            }
        }
    }
    environment
}

fn concatenation(pieces: &[Piece]) -> String {
    let parts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => quoted(text),
        Piece::FileOf(name) => of_variable(name),
    });
    parts.collect::<Vec<_>>().join(" + ")
}

fn of_variable(key: &str) -> String {
    let is_identifier =
        key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !key.starts_with(|first: char| first.is_ascii_digit());
    if is_identifier { format!("vars.{key}") } else { format!("vars[{}]", quoted(key)) }
}

/// A string of the language in which nothing is evaluated.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn unique(names: &mut BTreeSet<String>, name: &str) -> String {
    let name = if name.is_empty() { "script" } else { name };
    let free = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}_{number}"))).find(|name| !names.contains(name));
    let free = free.unwrap_or_default();
    names.insert(free.clone());
    free
}
