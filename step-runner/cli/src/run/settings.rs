//! The command line of `run` as it is meant: checked once, every problem at once.

use super::typed::{Output, RunArguments, TypedLevel};
use super::{duration, pairs};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use step_console::exit::{Complaint, Exit, Stop};
use step_model::document::Dialect;
use step_model::limits::Limits;
use step_model::plan::Level;
use step_model::reference::StepReference;

/// How long a step may take to end after it was asked to, when nothing else is said: that of GitLab's step-runner.
const GRACE_PERIOD: Duration = Duration::from_secs(30);

/// What a person wants from `run`.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub what: What,
    pub inputs: Vec<(String, GivenInput)>,
    pub env: Vec<(String, String)>,
    pub env_files: Vec<PathBuf>,
    /// Job variables.
    pub variables: Vec<(String, String)>,
    pub secrets: Vec<PathBuf>,
    /// `None`: no limit but the job's own.
    pub timeout: Option<Duration>,
    /// For every step, in place of what the job says.
    pub limits: Limits,
    pub grace_period: Duration,
    pub level: Level,
    pub strict: bool,
    pub dry_run: bool,
    pub ignore_image: bool,
    /// Fetch the commit of the job, and run it there.
    pub checkout: bool,
    /// Steps in place of builtin ones, by their names.
    pub steps: BTreeMap<String, StepReference>,
    /// Restore and save caches, in this directory. Empty: the usual one.
    pub cache: Option<String>,
    /// Take artifacts of earlier jobs from this directory, and keep those of this job. Empty: the usual one.
    pub artifacts: Option<String>,
    pub keep: bool,
    pub shell: bool,
    pub talk: Talk,
    pub output: Output,
    pub result_files: Vec<ResultFile>,
    pub pass_exit_code: bool,
}

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A file, a directory or a reference: what is there decides.
    Named(String),
    /// A job of a `.gitlab-ci.yml`.
    JobOf {
        file: String,
        job: String,
    },
    StandardInput,
    /// One invocation in YAML: text beginning `step:` or `func:`.
    Invocation(String),
    /// A list of steps whose names may be missing: the variable STEPS.
    CiSteps(String),
    Git {
        url: String,
        revision: String,
        dir: String,
    },
    Oci {
        registry: String,
        repository: String,
        tag: String,
        dir: String,
        file: String,
    },
    /// A definition as protobuf text.
    DefinitionText(PathBuf),
}

/// An input as it was given, before anybody knows its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenInput {
    /// `--input`: the declared type decides how it is read.
    Plain(String),
    /// `--inputs`: read as YAML.
    Yaml(String),
}

/// How much is said on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Talk {
    Quiet,
    #[default]
    Normal,
    Verbose,
}

/// A result tree to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFile {
    pub path: PathBuf,
    pub format: ResultFormat,
    /// With the fields that GitLab's step-runner does not know.
    pub our_fields: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    Json,
    Text,
}

impl Settings {
    /// # Errors
    /// Everything on the command line that makes no sense.
    pub fn read(typed: &RunArguments) -> Result<Self, Stop> {
        Self::checked(typed, what(typed))
    }

    /// The same for something that was not typed.
    /// # Errors
    /// As for [`Settings::read`].
    pub fn of(typed: &RunArguments, what: What) -> Result<Self, Stop> {
        Self::checked(typed, Ok(what))
    }

    fn checked(typed: &RunArguments, what: Result<What, Complaint>) -> Result<Self, Stop> {
        let mut problems = Problems::default();
        let what = problems.keep(what);
        let inputs = inputs(typed, &mut problems);
        let env = problems.pairs("--env", &typed.theirs.env);
        let variables = problems.pairs("--job", &typed.theirs.job);
        let steps = steps(typed, &mut problems);
        let timeout = problems.time("--timeout", typed.timeout.as_deref());
        let limits = problems.limits(&typed.limit);
        let grace_period = problems.time("--grace", typed.grace.as_deref());
        if timeout == Some(Duration::ZERO) {
            problems.add("`--timeout` must be longer than zero");
        }
        let result_files = problems.keep(result_files(typed)).unwrap_or_default();
        if typed.shell && typed.output == Output::Json {
            problems.add("`--shell` and `--output json` exclude each other");
        }
        match what {
            Some(what) if problems.0.is_empty() => Ok(Self {
                what,
                inputs,
                env,
                env_files: typed.env_file.clone(),
                variables,
                secrets: typed.secrets.clone(),
                timeout,
                limits,
                grace_period: grace_period.unwrap_or(GRACE_PERIOD),
                level: level(typed.level),
                strict: typed.strict,
                dry_run: typed.dry_run,
                ignore_image: typed.ignore_image,
                checkout: typed.checkout,
                steps,
                cache: typed.cache.clone(),
                artifacts: typed.artifacts.clone(),
                keep: typed.keep,
                shell: typed.shell,
                talk: talk(typed),
                output: typed.output,
                result_files,
                pass_exit_code: typed.pass_exit_code,
            }),
            _ => Err(Stop::all(Exit::Usage, problems.0)),
        }
    }
}

/// What was typed says what is to be run in the order in which GitLab's step-runner asks; a flag that has no effect is a problem.
fn what(typed: &RunArguments) -> Result<What, Complaint> {
    let theirs = &typed.theirs;
    let git = [&theirs.git_url, &theirs.git_rev, &theirs.git_dir].into_iter().any(Option::is_some);
    let oci = [&theirs.oci_registry, &theirs.oci_repository, &theirs.oci_tag, &theirs.oci_dir, &theirs.oci_filename];
    let oci = oci.into_iter().any(Option::is_some);
    let ways = [typed.what.is_some(), git, oci, theirs.text_proto_step_file.is_some()];
    if ways.into_iter().filter(|way| *way).count() > 1 {
        return Err(
            Complaint::new("more than one step specified").with_hint("give one of WHAT, `--git-*`, `--oci-*`, `--text-proto-step-file`")
        );
    }
    if let Some(text) = &typed.what {
        return named(text, typed.job_name.as_deref());
    }
    if git {
        let (Some(url), Some(revision)) = (&theirs.git_url, &theirs.git_rev) else {
            return Err(Complaint::new("a step in Git needs both `--git-url` and `--git-rev`"));
        };
        let dir = theirs.git_dir.clone().unwrap_or_default();
        return Ok(What::Git { url: url.clone(), revision: revision.clone(), dir });
    }
    if oci {
        let (Some(registry), Some(repository), Some(tag)) = (&theirs.oci_registry, &theirs.oci_repository, &theirs.oci_tag) else {
            return Err(Complaint::new("a step in a registry needs `--oci-registry`, `--oci-repository` and `--oci-tag`"));
        };
        let (registry, repository, tag) = (registry.clone(), repository.clone(), tag.clone());
        let (dir, file) = (theirs.oci_dir.clone().unwrap_or_default(), theirs.oci_filename.clone().unwrap_or_default());
        return Ok(What::Oci { registry, repository, tag, dir, file });
    }
    match &theirs.text_proto_step_file {
        Some(file) => Ok(What::DefinitionText(file.clone())),
        None => Err(Complaint::new("no step specified")
            .with_hint("`step-runner run ./my-step`, `step-runner run job.json`, or `step-runner run .gitlab-ci.yml JOB`")),
    }
}

fn named(text: &str, job: Option<&str>) -> Result<What, Complaint> {
    let begins = text.trim_start();
    let what = if text == "-" {
        What::StandardInput
    } else if begins.starts_with("step:") || begins.starts_with("func:") {
        What::Invocation(text.to_owned())
    } else if text.trim().is_empty() {
        return Err(Complaint::new("no step specified"));
    } else if let Some(job) = job {
        return Ok(What::JobOf { file: text.to_owned(), job: job.to_owned() });
    } else {
        What::Named(text.to_owned())
    };
    match job {
        Some(job) => Err(Complaint::new(format!("a job can only be named for a file: `{job}`"))),
        None => Ok(what),
    }
}

/// The last of a name wins, as everywhere on a command line.
fn inputs(typed: &RunArguments, problems: &mut Problems) -> Vec<(String, GivenInput)> {
    let yaml = problems.pairs("--inputs", &typed.theirs.inputs);
    let mut inputs: Vec<(String, GivenInput)> = yaml.into_iter().map(|(name, text)| (name, GivenInput::Yaml(text))).collect();
    for text in &typed.input {
        match pairs::one(text) {
            Ok((name, value)) => set(&mut inputs, name, GivenInput::Plain(value)),
            Err(problem) => problems.add(format!("`--input`: {problem}")),
        }
    }
    inputs
}

/// Those that may be replaced here: what changes the files of a job.
const REPLACED: [&str; 3] = ["checkout", "cache", "artifact"];

fn steps(typed: &RunArguments, problems: &mut Problems) -> BTreeMap<String, StepReference> {
    let mut steps = BTreeMap::new();
    for text in &typed.step {
        let (name, reference) = match pairs::one(text) {
            Ok(pair) => pair,
            Err(problem) => {
                problems.add(format!("`--step`: {problem}"));
                continue;
            }
        };
        if !REPLACED.contains(&name.as_str()) {
            problems.add(format!("`--step`: `{name}` is none of `{}`", REPLACED.join("`, `")));
            continue;
        }
        match StepReference::parse(&reference, Dialect::Functions) {
            Ok(reference) => drop(steps.insert(name, reference)),
            Err(fault) => problems.add(format!("`--step`: `{reference}` is no reference: {fault}")),
        }
    }
    steps
}

fn set<V>(pairs: &mut Vec<(String, V)>, name: String, value: V) {
    pairs.retain(|(known, _)| *known != name);
    pairs.push((name, value));
}

fn result_files(typed: &RunArguments) -> Result<Vec<ResultFile>, Complaint> {
    let mut files = Vec::new();
    if let Some(path) = &typed.result {
        files.push(ResultFile { path: path.clone(), format: ResultFormat::Json, our_fields: true });
    }
    let theirs = &typed.theirs;
    let (format, name) = match theirs.step_results_format.as_deref() {
        None | Some("json") => (ResultFormat::Json, "step-results.json"),
        Some("prototext") => (ResultFormat::Text, "step-results.txtpb"),
        Some(other) => return Err(Complaint::new(format!("unsupported format: {other}")).with_hint("`json` or `prototext`")),
    };
    if theirs.write_steps_results || theirs.step_results_file.is_some() {
        let path = theirs.step_results_file.clone().unwrap_or_else(|| PathBuf::from(name));
        files.push(ResultFile { path, format, our_fields: false });
    }
    Ok(files)
}

pub fn level(typed: Option<TypedLevel>) -> Level {
    match typed {
        Some(TypedLevel::V0_12) => Level::V0_12,
        Some(TypedLevel::V0_44) | None => Level::V0_44,
    }
}

fn talk(typed: &RunArguments) -> Talk {
    match (typed.quiet, typed.verbose) {
        (true, _) => Talk::Quiet,
        (_, true) => Talk::Verbose,
        _ => Talk::Normal,
    }
}

#[derive(Default)]
struct Problems(Vec<Complaint>);

impl Problems {
    fn add(&mut self, message: impl Into<String>) {
        self.0.push(Complaint::new(message));
    }

    fn keep<T>(&mut self, outcome: Result<T, Complaint>) -> Option<T> {
        outcome.map_err(|problem| self.0.push(problem)).ok()
    }

    fn pairs(&mut self, flag: &str, texts: &[String]) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for text in texts {
            match pairs::several(text) {
                Ok(pairs) => pairs.into_iter().for_each(|(name, value)| set(&mut all, name, value)),
                Err(problem) => self.add(format!("`{flag}`: {problem}")),
            }
        }
        all
    }

    /// Of the same name the last counts.
    fn limits(&mut self, texts: &[String]) -> Limits {
        let mut limits = Limits::default();
        for text in texts {
            match Limits::parse(text) {
                Ok(more) => limits = limits.or(more),
                Err(faults) => {
                    self.0.extend(faults.iter().map(|fault| Complaint::new(format!("`--limit`: {fault}")).with_hint(fault.hint())))
                }
            }
        }
        limits
    }

    fn time(&mut self, flag: &str, text: Option<&str>) -> Option<Duration> {
        self.keep(time(flag, text)).flatten()
    }
}

/// A length of time that was given with a flag, if it was.
/// # Errors
/// What is wrong with it.
pub fn time(flag: &str, text: Option<&str>) -> Result<Option<Duration>, Complaint> {
    let Some(text) = text else { return Ok(None) };
    let wrong = |problem| Complaint::new(format!("`{flag}`: `{text}` {problem}")).with_hint("`90s`, `5m`, `1h30m`");
    duration::parse(text).map(Some).map_err(wrong)
}

#[cfg(test)]
mod tests;
