//! What was given becomes a job: a run request, and what has to be said about it before its first step.

mod reference;

use super::inputs;
use super::laptop::Laptop;
use super::place::Place;
use super::settings::{Settings, What};
use super::supply::Supply;
use crate::builtins;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_console::exit::{Complaint, Exit, Stop};
use step_console::given::{self, Given};
use step_console::pipeline;
use step_engine::resolve::DocumentProblems;
use step_model::diagnostic::Problem;
use step_model::document::{Action, Body, Dialect, Spec, Step, StepDocument, raw};
use step_model::expression::Template;
use step_model::expression::nearest;
use step_model::plan::Level;
use step_model::request::{RunRequest, Variable};
use step_model::value::Value;
use step_payload::recognise::{Recognised, recognise};
use step_payload::replaced;
use step_payload::{Here, NotDone, Translation};

/// A job that can be resolved.
#[derive(Debug)]
pub struct Job {
    pub request: RunRequest,
    /// What the job is called in the report: the argument as it was typed.
    pub title: String,
    /// The job is one step without a name.
    pub is_wrapped: bool,
    /// The one step runs this definition, which no reference can name: it came from standard input or as protobuf text.
    pub definition: Option<LooseDefinition>,
    pub not_done: Vec<NotDone>,
    /// The commit that the job was made for.
    pub commit: Option<String>,
    /// A step of the job brings that commit.
    pub checks_out: bool,
    /// The variables of the command line are in the request already.
    pub has_variables: bool,
    /// Values that nobody has supplied.
    pub missing: Vec<String>,
    /// Warnings about what was read.
    pub warnings: Vec<DocumentProblems>,
}

/// A definition that no reference names.
#[derive(Debug)]
pub struct LooseDefinition {
    pub document: Arc<StepDocument>,
    /// What its own references are relative to: the directory of its file. `None`: that of the job.
    pub dir: Option<PathBuf>,
}

/// Why there is no job.
#[derive(Debug)]
pub enum NoJob {
    Stop(Stop),
    /// Problems with a place in a text.
    Problems(Vec<DocumentProblems>),
}

impl From<Stop> for NoJob {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// Finds out what was given. `supply` has the values that a payload only names.
/// # Errors
/// It cannot be read, is nothing that can be run, or has problems.
pub fn find(settings: &Settings, place: &Place, supply: &mut Supply<'_>) -> Result<Job, NoJob> {
    let mut job = match &settings.what {
        What::Named(text) => named(text, settings, place, supply)?,
        What::JobOf { file, job } => {
            let source = given::file(Path::new(file))?;
            pipeline_job(&source, Some(job), settings, place, supply)?
        }
        What::StandardInput => of_source(&given::standard_input()?, None, settings, place, supply)?,
        What::Invocation(text) => of_invocation(text, "job")?,
        What::CiSteps(text) => of_steps(text, settings)?,
        What::Git { url, revision, dir } => one_step(reference::git(url, revision, dir)?, url),
        What::Oci { registry, repository, tag, dir, file } => {
            one_step(reference::oci(registry, repository, tag, dir, file)?, &format!("{registry}/{repository}:{tag}"))
        }
        What::DefinitionText(file) => of_definition_text(file)?,
    };
    around(&mut job, settings, place)?;
    add_settings(&mut job, settings, place, supply)?;
    Ok(job)
}

/// What a laptop was told to do around the job's own steps.
fn around(job: &mut Job, settings: &Settings, place: &Place) -> Result<(), NoJob> {
    let laptop = Laptop::of(settings, place);
    if let Some(checkout) = &laptop.checkout {
        if job.commit.is_none() {
            return Err(Stop::usage(format!("`--checkout` needs a commit, and `{}` names none", job.title))
                .with_hint("a GitLab job payload names one; without the flag the job runs in the work tree that is here")
                .into());
        }
        job.checks_out = true;
        job.request.work_dir = Some(checkout.to_string_lossy().into());
        job.request.build_dir = job.request.work_dir.clone();
    }
    if settings.dry_run { Ok(()) } else { Ok(laptop.prepare(&builtins::steps_program())?) }
}

fn named(text: &str, settings: &Settings, place: &Place, supply: &mut Supply<'_>) -> Result<Job, NoJob> {
    let path = Path::new(text);
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(one_step(reference::directory(text), text)),
        Ok(_) => of_source(&given::file(path)?, Some(text), settings, place, supply),
        Err(_) => Ok(one_step(reference::short(text)?, text)),
    }
}

/// A file is known by its content. `path`: the file, if it is one.
fn of_source(source: &Given, path: Option<&str>, settings: &Settings, place: &Place, supply: &mut Supply<'_>) -> Result<Job, NoJob> {
    let title = path.unwrap_or("job");
    match recognise(&source.text) {
        Recognised::RunRequest => of_request(source, title, settings, supply),
        Recognised::GitlabPayload => {
            let here = here(settings, place);
            let translation = supply.until_complete(|values| {
                let translation = step_payload::steps_of(&source.text, &here, values);
                wanted(translation.map_err(|problems| NoJob::Problems(vec![of_file(source, problems)]))?, settings, |names| {
                    place.absent(names)
                })
            })?;
            Ok(of_translation(translation, source, title))
        }
        Recognised::GitlabCi => pipeline_job(source, None, settings, place, supply),
        Recognised::Invocation => of_invocation(&source.text, title),
        Recognised::Definition => match path {
            Some(path) => Ok(one_step(reference::file(path), path)),
            None => of_definition(&source.text),
        },
        Recognised::Unknown => Err(Stop::bad_input(unknown(source))
            .with_hint(
                "`run` takes a run request or a GitLab job payload as JSON, a definition, or a `.gitlab-ci.yml` and the name of a job",
            )
            .into()),
    }
}

fn unknown(source: &Given) -> String {
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    if text.is_empty() {
        return format!("`{}` is empty", source.name);
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(fault) if text.starts_with(['{', '[']) => format!("`{}` is not valid JSON: {fault}", source.name),
        _ => format!("`{}` is nothing that can be run", source.name),
    }
}

fn of_request(source: &Given, title: &str, settings: &Settings, supply: &mut Supply<'_>) -> Result<Job, NoJob> {
    let text = source.text.trim_start_matches('\u{feff}');
    let dialect = match settings.level {
        Level::V0_12 => Dialect::Steps,
        Level::V0_44 => Dialect::Functions,
    };
    let (request, problems) =
        step_client::wire::request::read_as(text, dialect).map_err(|problems| NoJob::Problems(vec![of_file(source, problems)]))?;
    // Only what the request says is a variable: `[MASKED x]` may be a word of somebody's script.
    let known: BTreeSet<String> = request.variables.iter().map(|variable| variable.key.to_string()).collect();
    let request = supply.until_complete(|values| {
        let (restored, missing) = replaced::restore_in_json(text, &known, values);
        let missing: Vec<String> = missing.into_iter().collect();
        if restored == text {
            return Ok((missing, request.clone()));
        }
        let read = step_client::wire::request::read_as(&restored, dialect);
        let (restored, _) = read.map_err(|problems| NoJob::Problems(vec![of_file(source, problems)]))?;
        Ok::<_, NoJob>((missing, restored))
    })?;
    let mut job = Job::new(request, title);
    job.missing = supply.missing().to_vec();
    job.warnings.extend(warnings(source, problems));
    Ok(job)
}

fn of_translation(translation: Translation, source: &Given, title: &str) -> Job {
    let mut job = Job::new(translation.request, title);
    job.has_variables = true;
    job.not_done = translation.not_done;
    job.commit = translation.commit;
    job.missing = translation.missing;
    job.warnings.extend(warnings(source, translation.problems));
    job
}

fn pipeline_job(source: &Given, name: Option<&str>, settings: &Settings, place: &Place, supply: &mut Supply<'_>) -> Result<Job, NoJob> {
    let here = here(settings, place);
    let configuration = pipeline::read(source)?;
    let names = configuration.job_names();
    let known: Vec<&str> = names.iter().map(|name| &**name).collect();
    let listed = match known.is_empty() {
        true => "it has no jobs".to_owned(),
        false => format!("its jobs are `{}`", known.join("`, `")),
    };
    let Some(name) = name else {
        return Err(Stop::usage(format!("which job of `{}`?", source.name)).with_hint(listed).into());
    };
    if !known.contains(&name) {
        let hint = nearest(name, known.iter().copied()).map_or(listed, |near| format!("did you mean `{near}`?"));
        return Err(Stop::bad_input(format!("`{}` has no job `{name}`", source.name)).with_hint(hint).into());
    }
    let translation = supply.until_complete(|values| {
        let translation = configuration.job(name, &here, values).map_err(|files| {
            let problems =
                files.into_iter().map(|file| DocumentProblems { file: file.file, text: Some(file.text), problems: file.problems });
            NoJob::Problems(problems.collect())
        })?;
        wanted(translation, settings, |names| place.absent(names))
    })?;
    Ok(of_translation(translation, source, name))
}

fn here(settings: &Settings, place: &Place) -> Here {
    let no_containers = builtins::no_containers(&place.env);
    let laptop = Laptop::of(settings, place);
    Here {
        builtins: builtins::names(&no_containers, &laptop.steps()),
        references: settings.steps.clone(),
        caches: laptop.caches(),
        artifacts: laptop.artifacts_place(),
        no_containers: no_containers.unwrap_or_default(),
        ignore_image: settings.ignore_image,
        predefined: [("CI_PROJECT_DIR".to_owned(), laptop.project_dir(place))].into(),
        given: settings.variables.iter().cloned().collect(),
        live: false,
        dialect: (settings.level == Level::V0_12).then_some(Dialect::Steps),
        ..Here::default()
    }
}

fn of_invocation(text: &str, title: &str) -> Result<Job, NoJob> {
    let (step, problems) = raw::read_invocation(text, Dialect::Steps);
    let problems = DocumentProblems { file: "the argument".into(), text: Some(text.into()), problems };
    let Some(mut step) = step else { return Err(NoJob::Problems(vec![problems])) };
    step.name = "".into();
    let title = match &step.action {
        Action::Reference(_) => text.lines().find_map(reference::in_line).unwrap_or_else(|| title.to_owned()),
        Action::Script(_) | Action::ScriptLegacy(_) => "script".into(),
    };
    let mut job = Job::of_step(step, &title);
    job.warnings.extend(Some(problems).filter(|problems| !problems.problems.is_empty()));
    Ok(job)
}

/// The steps of the variable STEPS. The original does not hold them against its schema, so they need no names.
fn of_steps(text: &str, settings: &Settings) -> Result<Job, NoJob> {
    let wanted = (settings.level != Level::V0_12).then_some(Dialect::Functions);
    let (steps, mut problems) = raw::read_steps(text, wanted);
    problems.retain(|problem| problem.code != "missing-name");
    if steps.is_empty() && problems.iter().any(Problem::is_error) {
        problems
            .iter_mut()
            .for_each(|problem| problem.message = format!("reading STEPS {text:?}: unmarshalling steps: {}", problem.message));
    }
    let is_sound = !problems.iter().any(Problem::is_error);
    let problems = DocumentProblems { file: "STEPS".into(), text: Some(text.into()), problems };
    if !is_sound {
        return Err(NoJob::Problems(vec![problems]));
    }
    let mut request = Job::of_step(Step::new("", Action::Script(Template::literal(""))), "").request;
    request.steps = Arc::new(StepDocument::of_steps(raw::dialect_of_steps(text, wanted), steps));
    let mut job = Job::new(request, "STEPS");
    job.warnings.extend(Some(problems).filter(|problems| !problems.problems.is_empty()));
    Ok(job)
}

/// A definition that no file holds.
fn of_definition(text: &str) -> Result<Job, NoJob> {
    let reading = raw::read(text, "func.yml");
    let problems = DocumentProblems { file: "standard input".into(), text: Some(text.into()), problems: reading.problems };
    let Some(document) = reading.document else { return Err(NoJob::Problems(vec![problems])) };
    let mut job = one_step(reference::directory("."), "standard input");
    job.definition = Some(LooseDefinition { document, dir: None });
    job.warnings.extend(Some(problems).filter(|problems| !problems.problems.is_empty()));
    Ok(job)
}

fn of_definition_text(file: &Path) -> Result<Job, NoJob> {
    let source = given::file(file)?;
    let document = step_client::wire::definition::read_text(&source.text)
        .map_err(|fault| Stop::bad_input(format!("`{}` is no definition: {fault}", source.name)))?;
    let mut job = one_step(reference::file(&source.name), &source.name);
    job.definition = Some(LooseDefinition { document: Arc::new(document), dir: file.parent().map(Path::to_path_buf) });
    Ok(job)
}

fn one_step(reference: step_model::reference::StepReference, title: &str) -> Job {
    Job::of_step(Step::new("", Action::Reference(reference)), title)
}

impl Job {
    fn new(request: RunRequest, title: &str) -> Self {
        Self {
            request,
            title: title.to_owned(),
            is_wrapped: false,
            definition: None,
            not_done: Vec::new(),
            commit: None,
            checks_out: false,
            has_variables: false,
            missing: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn of_step(step: Step, title: &str) -> Self {
        let request = RunRequest {
            id: "".into(),
            work_dir: None,
            build_dir: None,
            env: Default::default(),
            variables: Vec::new(),
            steps: Arc::new(StepDocument::of_steps(Dialect::Functions, [step])),
            timeout: None,
            limits: Default::default(),
            trace_parent: None,
            plan: None,
        };
        Self { is_wrapped: true, ..Self::new(request, title) }
    }

    /// The one step of a wrapped job, to be changed.
    fn step(&mut self) -> Option<&mut Step> {
        let document = Arc::make_mut(&mut self.request.steps);
        match &mut document.definition.body {
            Body::Sequence(sequence) if self.is_wrapped => sequence.steps.first_mut().map(Arc::make_mut),
            _ => None,
        }
    }
}

/// Flags and files of variables go where they belong: to the one step, or to the request.
fn add_settings(job: &mut Job, settings: &Settings, place: &Place, supply: &Supply<'_>) -> Result<(), NoJob> {
    let files = super::supply::read_pairs(&settings.env_files)?;
    if job.is_wrapped {
        let spec = match &job.definition {
            Some(definition) => Some(definition.document.spec.clone()),
            None => spec_of(job, place),
        };
        let Some(step) = job.step() else { return Ok(()) };
        let elsewhere: Vec<String> = step.inputs.iter().filter_map(|(name, _)| name.as_literal().map(str::to_owned)).collect();
        let elsewhere: Vec<&str> = elsewhere.iter().map(String::as_str).collect();
        let inputs = inputs::read(spec.as_ref(), &settings.inputs, &elsewhere).map_err(|problems| Stop::all(Exit::BadInput, problems))?;
        step.inputs.retain(|(name, _)| !inputs.iter().any(|(given, _)| given.source() == name.source()));
        step.inputs.extend(inputs);
        for (name, value) in files {
            set_env(step, &name, Template::literal(value));
        }
        for (name, value) in &settings.env {
            let value = Template::parse(value.as_str(), Dialect::Steps)
                .map_err(|fault| Stop::bad_input(format!("`--env`: `{name}`: {}", fault.message)))?;
            set_env(step, name, value);
        }
        let masked = supply.given().iter().map(|(key, value)| variable(key, value, true));
        job.request.variables.extend(masked);
    } else {
        if !settings.inputs.is_empty() {
            let message = format!("`{}` is a job, and a job takes no inputs", job.title);
            return Err(Stop::usage(message)
                .with_hint("`--job NAME=VALUE` sets a job variable, `--env NAME=VALUE` an environment variable")
                .into());
        }
        let env = files.into_iter().chain(settings.env.iter().cloned());
        job.request.env.extend(env.map(|(name, value)| (name.into(), value.into())));
    }
    if !job.has_variables {
        job.request.variables.extend(settings.variables.iter().map(|(key, value)| variable(key, value, false)));
    }
    Ok(())
}

fn set_env(step: &mut Step, name: &str, value: Template) {
    step.env.retain(|(known, _)| known.source() != name);
    step.env.push((Template::literal(name), value));
}

fn variable(key: &str, value: &str, masked: bool) -> Variable {
    Variable { key: key.into(), value: value.into(), file: false, masked }
}

/// What the one step declares, if it is a local one that can be read. Its problems are told when it is resolved.
fn spec_of(job: &mut Job, place: &Place) -> Option<Spec> {
    let Action::Reference(reference) = job.step()?.action.clone() else { return None };
    let candidates = reference::files(&reference, &place.dir)?;
    let (text, name) = candidates.iter().find_map(|path| Some((std::fs::read(path).ok()?, path.to_string_lossy())))?;
    Some(raw::read(raw::text_of(&text).ok()?, &name).document?.spec.clone())
}

fn of_file(source: &Given, problems: Vec<Problem>) -> DocumentProblems {
    DocumentProblems { file: source.name.as_str().into(), text: Some(source.text.as_str().into()), problems }
}

fn warnings(source: &Given, problems: Vec<Problem>) -> Option<DocumentProblems> {
    (!problems.is_empty()).then(|| of_file(source, problems))
}

/// The inputs of the one step as far as they are known: name and value.
pub fn given_values(job: &Job) -> Vec<(String, Value)> {
    let Body::Sequence(sequence) = &job.request.steps.definition.body else { return Vec::new() };
    let steps = sequence.steps.iter().filter(|_| job.is_wrapped);
    steps
        .flat_map(|step| &step.inputs)
        .filter_map(|(name, value)| Some((name.as_literal()?.to_owned(), inputs::literal_value(value)?)))
        .collect()
}

/// What has to be asked for, unless the job cannot run here at all: then that comes first, with all ways out and all that would be asked for.
fn wanted(
    translation: Translation,
    settings: &Settings,
    supply_hint: impl Fn(&[String]) -> Option<Complaint>,
) -> Result<(Vec<String>, Translation), NoJob> {
    let refused = translation.not_done.iter().filter(|part| part.refused && !settings.dry_run);
    let mut problems: Vec<Complaint> = refused.map(|part| Complaint::new(&part.what).with_hint(&part.way_out)).collect();
    if problems.is_empty() {
        return Ok((translation.missing.clone(), translation));
    }
    problems.extend(supply_hint(&translation.missing));
    Err(Stop::all(Exit::BadInput, problems).into())
}
