//! A job becomes a plan: its places, its environment, and its references resolved.

use super::job::Job;
use super::place::Place;
use super::settings::Settings;
use super::variables::Variables;
use crate::builtins;
use crate::telemetry;
use std::path::Path;
use std::sync::Arc;
use step_agent::definitions;
use step_console::exit::Stop;
use step_engine::resolve::DocumentProblems;
use step_model::builtin::Builtins;
use step_model::document::StepDocument;
use step_model::plan::{Places, Plan, PlannedDocument, Target};
use step_model::value::{Kind, Value};

/// Where a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    pub work_dir: Arc<str>,
    pub build_dir: Arc<str>,
    /// What is said when a directory of the job is not there.
    pub note: Option<String>,
}

impl Directories {
    /// A job that was made for another machine names a directory of that machine; the current one stands in for it.
    pub fn of(job: &Job, place: &Place) -> Self {
        let here = |dir: &str| -> Arc<str> { Path::new(&*place.dir).join(dir).to_string_lossy().into() };
        let named = |dir: &Option<Arc<str>>| dir.as_deref().filter(|dir| !dir.is_empty()).map(here);
        let (work_dir, build_dir) = (named(&job.request.work_dir), named(&job.request.build_dir));
        let wanted = work_dir.or_else(|| build_dir.clone());
        match wanted {
            None => Self { work_dir: place.dir.clone(), build_dir: place.dir.clone(), note: None },
            Some(dir) if Path::new(&*dir).is_dir() => {
                let build_dir = build_dir.filter(|build_dir| Path::new(&**build_dir).is_dir()).unwrap_or_else(|| dir.clone());
                Self { work_dir: dir, build_dir, note: None }
            }
            Some(dir) => {
                let note = format!("the job wants to run in {dir}, which is not here: it runs in {}", place.dir);
                Self { work_dir: place.dir.clone(), build_dir: place.dir.clone(), note: Some(note) }
            }
        }
    }
}

/// Reads all definitions that can be read before the first step. `provenance`: ask for their commits.
/// # Errors
/// The problems, when one of them is an error.
pub fn resolve(
    job: &Job,
    build_dir: &str,
    provenance: bool,
    builtins: &Builtins,
) -> Result<(Arc<PlannedDocument>, Vec<DocumentProblems>), Vec<DocumentProblems>> {
    let Some(definition) = &job.definition else { return definitions::resolve(job.request.steps.clone(), build_dir, provenance, builtins) };
    let dir = Path::new(build_dir).join(definition.dir.as_deref().unwrap_or(Path::new("")));
    let dir = dir.to_string_lossy();
    let dir = dir.strip_suffix('/').filter(|dir| !dir.is_empty()).unwrap_or(&dir);
    let (planned, problems) = definitions::resolve(Arc::new(with_all_inputs(&definition.document)), dir, provenance, builtins)?;
    let planned = Arc::new(PlannedDocument { document: definition.document.clone(), ..(*planned).clone() });
    let root = PlannedDocument {
        targets: vec![Target::Document(planned)],
        ..PlannedDocument::of_job(job.request.steps.clone(), build_dir.into())
    };
    Ok((Arc::new(root), problems))
}

/// The same definition as if every input had been given. What stands at the top cannot be called with inputs; ours are given by the level around
/// it, and have been checked.
fn with_all_inputs(definition: &StepDocument) -> StepDocument {
    let mut definition = definition.clone();
    for (_, input) in &mut definition.spec.inputs {
        input.default.get_or_insert_with(|| match input.kind {
            Kind::Boolean => false.into(),
            Kind::Number => 0.0.into(),
            Kind::Array => Value::array([]),
            Kind::Struct => Value::object::<Arc<str>>([]),
            Kind::String | Kind::Null => "".into(),
        });
    }
    definition
}

/// The plan. `files_dir` is private to the job.
/// # Errors
/// The job variables name a log level that is none.
pub fn plan(
    job: &Job,
    root: Arc<PlannedDocument>,
    directories: &Directories,
    variables: Variables,
    files_dir: &Path,
    settings: &Settings,
    place: &Place,
) -> Result<Plan, Stop> {
    let mut process_env = place.process_env(variables.values.get("CI_STEPS_LOG_LEVEL").and_then(Value::as_str))?;
    if !telemetry::caller(&place.env).is_ok_and(|caller| caller.is_some()) {
        // It belongs to the span of a caller.
        process_env.remove("TRACESTATE");
    }
    let places = Places {
        work_dir: directories.work_dir.clone(),
        build_dir: directories.build_dir.clone(),
        files_dir: files_dir.to_string_lossy().into(),
    };
    Ok(Plan {
        process_env,
        request_env: job.request.env.iter().map(|(name, value)| (name.clone(), Value::string(value.clone()))).collect(),
        variables: variables.values,
        file_variables: variables.files,
        timeout: settings.timeout.or(job.request.timeout),
        limits: job.request.limits.or(settings.limits),
        grace_period: settings.grace_period,
        level: settings.level,
        strict: settings.strict,
        trace_parent: job.request.trace_parent,
        builtins: builtins::all(),
        ..Plan::of(root, places)
    })
}

/// Whether the one step of a wrapped job declares this input as sensitive.
pub fn is_sensitive_input(root: &PlannedDocument, name: &str) -> bool {
    let [Target::Document(planned)] = &root.targets[..] else { return false };
    planned.document.spec.inputs.iter().any(|(known, input)| **known == *name && input.sensitive)
}
