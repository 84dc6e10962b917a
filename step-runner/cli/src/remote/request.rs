//! A job that was found here becomes a request that runs there.

use crate::remote::RemoteRunArguments;
use crate::run::job::{self, Job, LooseDefinition};
use crate::run::settings::Settings;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use step_client::RunRequest;
use step_client::wire::request::{Values, to_message};
use step_console::exit::{Complaint, Exit, Stop};
use step_model::document::{Body, StepDocument};

/// What the one step of a job is called when nobody has named it: a request has no steps without names.
pub const ONLY_STEP: &str = "step";

/// What cannot be done from here.
pub fn refused(arguments: &RemoteRunArguments) -> Vec<Complaint> {
    let run = &arguments.run;
    let of_the_agent = "it is a setting of the agent: `step-runner serve`";
    let all = [
        (run.shell, "--shell", "the step runs there; `--keep` leaves its log and result with the agent"),
        (run.grace.is_some(), "--grace", of_the_agent),
        (run.level.is_some(), "--level", of_the_agent),
        (!run.step.is_empty(), "--step", "the agent has no steps but its own there"),
        (run.cache.is_some(), "--cache", "it is for this machine, and the job runs elsewhere"),
        (run.artifacts.is_some(), "--artifacts", "it is for this machine, and the job runs elsewhere"),
        (run.checkout, "--checkout", "it is for this machine: check the commit out there, and name its directory with `--work-dir`"),
        (arguments.detach && run.result.is_some(), "--result", "with `--detach` there is none yet: `step-runner remote result ID`"),
        (arguments.detach && run.theirs.step_results_file.is_some(), "--step-results-file", "with `--detach` there is none yet"),
    ];
    all.into_iter()
        .filter(|(given, ..)| *given)
        .map(|(_, flag, why)| Complaint::new(format!("`{flag}` cannot be used with `remote run` like this")).with_hint(why))
        .collect()
}

/// The request. `work_dir`: where it runs there, if that is known here.
/// # Errors
/// It cannot be said in a request.
pub fn of_job(job: &Job, settings: &Settings, arguments: &RemoteRunArguments, work_dir: Option<Directories>) -> Result<RunRequest, Stop> {
    let mut request = job.request.clone();
    if let Some(definition) = &job.definition {
        request.steps = Arc::new(with_inputs(definition, job)?);
    }
    if job.is_wrapped && job.definition.is_none() {
        name_the_step(Arc::make_mut(&mut request.steps));
    }
    if let Some(id) = arguments.id.clone().or_else(|| request.id.is_empty().then(made_up_id)) {
        request.id = id.into();
    }
    request.timeout = settings.timeout.or(request.timeout);
    request.limits = request.limits.or(settings.limits);
    if let Some(dir) = &arguments.work_dir {
        (request.work_dir, request.build_dir) = (Some(dir.as_str().into()), Some(dir.as_str().into()));
    } else if let Some(directories) = work_dir {
        (request.work_dir, request.build_dir) = (Some(directories.work_dir), Some(directories.build_dir));
    }
    Ok(to_message(&request, Values::InClear))
}

/// Where a job runs on this machine.
#[derive(Debug, Clone)]
pub struct Directories {
    pub work_dir: Arc<str>,
    pub build_dir: Arc<str>,
}

fn made_up_id() -> String {
    format!("remote-{:016x}", RandomState::new().hash_one(2))
}

fn name_the_step(document: &mut StepDocument) {
    if let Body::Sequence(sequence) = &mut document.definition.body {
        for step in sequence.steps.iter_mut().filter(|step| step.name.is_empty()) {
            Arc::make_mut(step).name = ONLY_STEP.into();
        }
    }
}

/// A definition that no reference names is sent as the job itself; what was given for its inputs becomes their default.
fn with_inputs(definition: &LooseDefinition, job: &Job) -> Result<StepDocument, Stop> {
    let mut document = StepDocument::clone(&definition.document);
    if !matches!(document.definition.body, Body::Sequence(_)) {
        return Err(Stop::new(Exit::BadInput, format!("`{}` executes something by itself, and a request is a list of steps", job.title))
            .with_hint("put it into a directory that the agent has, and run that: `step-runner remote run /dir`"));
    }
    for (name, value) in job::given_values(job) {
        if let Some((_, input)) = document.spec.inputs.iter_mut().find(|(known, _)| **known == *name) {
            input.default = Some(value);
        }
    }
    Ok(document)
}
