//! A run request becomes a plan, on the job's side: its places, its variables, its environment, and its references resolved.

use crate::definitions;
use crate::frame::{Birth, Refused};
use crate::handover::{self, Inside};
use crate::served_directory::ServedDirectory;
use crate::surroundings;
use crate::system_error;
use crate::variables::{self, VariablesFault};
use ci_proto::step_runner::RunRequest as RunRequestMessage;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_client::wire::request;
use step_engine::resolve::DocumentProblems;
use step_model::builtin::Builtins;
use step_model::diagnostic::Problem;
use step_model::document::Dialect;
use step_model::masking::Secrets;
use step_model::plan::{Level, Places, Plan, PlannedDocument};
use step_model::request::RunRequest;

/// A request that will run, checked as far as its caller is told of it at once.
#[derive(Debug)]
pub struct Prepared {
    pub secrets: Secrets,
    /// Warnings, said before the first step.
    pub notes: Vec<String>,
    /// The files of file variables, removed when the run ends.
    pub variable_files: Vec<PathBuf>,
    plan: Plan,
    /// `None`: they were handed over, and are in the plan already.
    steps: Option<Arc<step_model::document::StepDocument>>,
}

/// Reads the request, and makes everything in the directory that the job needs.
/// # Errors
/// What the caller is told.
pub fn prepare(message: &RunRequestMessage, birth: &Birth, directory: &ServedDirectory, builtins: &Builtins) -> Result<Prepared, Refused> {
    let dialect = if birth.level() == Level::V0_12 { Dialect::Steps } else { Dialect::Functions };
    let (request, problems) = request::of_message(message, dialect).map_err(|problems| refused(message, &problems))?;
    let taken = request.variables.iter().find(|variable| variable.file && !ServedDirectory::is_free(&variable.key));
    if let Some(variable) = taken {
        let message = format!("initializing request: the file variable {:?} cannot name a file: the name is taken", variable.key);
        return Err(Refused { reason: "UNSAFE_VARIABLE".into(), message, is_ours: false });
    }
    let places = places(&request, birth, directory)?;
    if let Some(plan) = request.plan.clone() {
        return take_in(*plan, request, places, birth, directory, builtins);
    }
    let mut secrets = Secrets::default();
    let variables = variables::prepare(&request.variables, directory.path(), &mut secrets).map_err(no_variables)?;
    let process_env = process_env(variables.values.get("CI_STEPS_LOG_LEVEL").and_then(step_model::value::Value::as_str))?;
    let notes = problems.iter().map(ToString::to_string);
    let in_clear = variables.in_clear.iter().map(|name| format!("the value of `{name}` is too short to be masked"));
    let files = request.variables.iter().filter(|variable| variable.file).map(|variable| directory.path().join(&*variable.key));
    Ok(Prepared {
        notes: notes.chain(in_clear).collect(),
        variable_files: files.collect(),
        secrets,
        steps: Some(request.steps.clone()),
        plan: Plan {
            process_env,
            request_env: request.env.iter().map(|(name, value)| (name.clone(), step_model::value::Value::string(value.clone()))).collect(),
            variables: variables.values,
            file_variables: variables.files,
            timeout: request.timeout.or(birth.timeout),
            limits: request.limits,
            grace_period: birth.grace_period,
            level: birth.level(),
            trace_parent: request.trace_parent,
            builtins: builtins.clone(),
            ..Plan::of(Arc::new(PlannedDocument::of_job(request.steps.clone(), places.build_dir.clone())), places)
        },
    })
}

/// What was handed over becomes a job: its places are those of this request, and what it says of itself counts.
fn take_in(
    plan: Plan,
    request: RunRequest,
    places: Places,
    birth: &Birth,
    directory: &ServedDirectory,
    builtins: &Builtins,
) -> Result<Prepared, Refused> {
    let level = plan.variables.get("CI_STEPS_LOG_LEVEL").and_then(step_model::value::Value::as_str).map(str::to_owned);
    let inside = Inside { places, variables_dir: directory.path().to_path_buf(), process_env: process_env(level.as_deref())? };
    let variable_files = plan.file_variables.keys().map(|name| directory.path().join(&**name)).collect();
    let (plan, secrets) = handover::take_in(plan, inside).map_err(|fault| Refused {
        reason: "MACHINE".into(),
        message: format!("preparing environment: {fault}"),
        is_ours: true,
    })?;
    // The environment of the request is that of the place, so what was handed over wins over it.
    let env = request.env.iter().map(|(name, value)| (name.clone(), step_model::value::Value::string(value.clone())));
    let mut request_env: std::collections::BTreeMap<_, _> = env.collect();
    request_env.extend(plan.request_env.clone());
    let plan = Plan {
        request_env,
        timeout: request.timeout.or(birth.timeout),
        limits: plan.limits.and(request.limits),
        trace_parent: request.trace_parent,
        builtins: builtins.clone(),
        ..plan
    };
    Ok(Prepared { secrets, notes: Vec::new(), variable_files, plan, steps: None })
}

fn process_env(log_level: Option<&str>) -> Result<std::collections::BTreeMap<Arc<str>, step_model::value::Value>, Refused> {
    let env: Vec<(String, String)> = own_environment();
    surroundings::process_env(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), log_level).map_err(|fault| Refused {
        reason: "BAD_LOG_LEVEL".into(),
        message: format!("initializing global environment: {fault}"),
        is_ours: false,
    })
}

impl Prepared {
    /// The plan, with every reference resolved that can be before the first step. The lines are for the log.
    /// # Errors
    /// The text for `Status`, and the lines for the log: a job whose definitions cannot be loaded fails, it is not refused
    /// (original.md S 2.3).
    pub fn resolve(self) -> Result<(Plan, Vec<Line>), (String, Vec<Line>)> {
        let Some(steps) = self.steps else { return Ok((self.plan, Vec::new())) };
        match definitions::resolve(steps, &self.plan.places.build_dir, false, &self.plan.builtins) {
            Ok((root, problems)) => Ok((Plan { root, ..self.plan }, lines(&problems))),
            Err(problems) => Err((failure_text(&problems), lines(&problems))),
        }
    }
}

fn refused(message: &RunRequestMessage, problems: &[Problem]) -> Refused {
    let code = problems.iter().find(|problem| problem.is_error()).map_or("", |problem| problem.code);
    let reason = match code {
        "unsafe-id" | "unsafe-variable" | "bad-environment" | "missing-input" | "bad-timeout" | "bad-directory" | "bad-limits" => {
            code.replace('-', "_").to_uppercase()
        }
        "policy" => "NOT_SUPPORTED".into(),
        "plan" => "BAD_PLAN".into(),
        _ => "BAD_STEPS".into(),
    };
    Refused { reason, message: request::refusal(message, problems), is_ours: false }
}

fn no_variables(fault: VariablesFault) -> Refused {
    let is_ours = matches!(fault, VariablesFault::Unwritten { .. });
    let reason = if is_ours { "MACHINE" } else { "UNSAFE_VARIABLE" };
    Refused { reason: reason.into(), message: format!("preparing environment: {fault}"), is_ours }
}

/// The directory that the request names, made if it is not there (original.md H.3).
fn places(request: &RunRequest, birth: &Birth, directory: &ServedDirectory) -> Result<Places, Refused> {
    let base = Path::new(&birth.work_dir);
    let named = |dir: &Option<Arc<str>>| dir.as_deref().filter(|dir| !dir.is_empty()).map(|dir| base.join(dir));
    let (work_dir, build_dir) = (named(&request.work_dir), named(&request.build_dir));
    let work_dir = work_dir.or_else(|| build_dir.clone()).unwrap_or_else(|| base.to_path_buf());
    let build_dir = build_dir.unwrap_or_else(|| work_dir.clone());
    for dir in [&work_dir, &build_dir] {
        make(dir).map_err(|error| {
            let message = format!("initializing request: making directory \"{}\": {}", dir.display(), system_error::text(&error));
            Refused { reason: "NO_DIRECTORY".into(), message, is_ours: false }
        })?;
    }
    let text = |path: &Path| -> Arc<str> { path.to_string_lossy().into() };
    Ok(Places { work_dir: text(&work_dir), build_dir: text(&build_dir), files_dir: text(&directory.files()) })
}

fn make(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// What is not UTF-8 is not passed on.
fn own_environment() -> Vec<(String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

/// A line of ours for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub warning: bool,
}

/// Every problem with where it is and the way out.
fn lines(files: &[DocumentProblems]) -> Vec<Line> {
    let mut lines = Vec::new();
    for file in files {
        for problem in &file.problems {
            let kind = if problem.is_error() { "error: " } else { "" };
            let name = if file.file.is_empty() { String::new() } else { format!("{}: ", file.file) };
            lines.push(Line { text: format!("{kind}{name}{problem}"), warning: !problem.is_error() });
            lines.extend(problem.hint.iter().map(|hint| Line { text: format!(" hint: {hint}"), warning: false }));
        }
    }
    lines
}

/// Every error, without its place: callers know these texts.
fn failure_text(files: &[DocumentProblems]) -> String {
    let errors =
        files.iter().flat_map(|file| file.problems.iter().filter(|problem| problem.is_error()).map(move |problem| (file, problem)));
    let texts = errors.map(|(file, problem)| match file.file.is_empty() {
        true => problem.message.clone(),
        false => format!("{}: {problem}", file.file),
    });
    texts.collect::<Vec<_>>().join("; ")
}
