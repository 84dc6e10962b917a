//! `result` and `payload`: what is kept of a job that has ended, for a person.

use super::{DIRECTORY, store};
use crate::operations::state_directory;
use ci_proto::results::{Head, KeptResult};
use clap::{Args, ValueEnum};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use step_client::wire::result::{Format, OwnedTree, Redaction, Writing, read_message, write};
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use step_console::tree;
use step_model::masking::Secrets;
use step_model::result::StepId;

/// Which job, of which runner.
#[derive(Debug, Clone, Args)]
pub struct WhichJob {
    /// The number of the job.
    #[arg(value_name = "JOB")]
    pub job: u64,
    /// The runner that had it, by name: where several servers have a job of this number.
    #[arg(long, value_name = "NAME")]
    pub runner: Option<String>,
    /// The configuration of the runner. [default: as for `run`]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Its state, where `run` was given one.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "What is kept, and for how long, stands in `[runner_core.results]` of the configuration.")]
pub struct ResultArguments {
    #[command(flatten)]
    which: WhichJob,
    /// Also commands, exports, used resources and where the definitions came from.
    #[arg(long, short)]
    verbose: bool,
    /// The form: `text` for people, `json` for programs.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Text, hide_default_value = true)]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Every secret of the job is replaced by its name; `step-runner run` says which it needs, and `--secrets FILE` supplies them."
)]
pub struct PayloadArguments {
    #[command(flatten)]
    which: WhichJob,
    /// Where to; `-` is standard output. [default: `job-JOB.json`]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints the result of a job as a tree.
/// # Errors
/// None is kept.
pub fn result(arguments: &ResultArguments) -> anyhow::Result<Exit> {
    let kept = found(&arguments.which)?;
    let head = kept.head.unwrap_or_default();
    let tree = if kept.tree.is_empty() { None } else { Some(read_message(&kept.tree).map_err(damaged)?) };
    let mut out = io::BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()));
    let written = match (arguments.output, tree) {
        (Form::Json, Some(tree)) => json(&mut out, &tree),
        (Form::Json, None) => return Err(no_tree(&head).into()),
        (Form::Text, Some(tree)) => out.write_all(tree::shown(&tree, &title(&head), tree::Detail::of_result(arguments.verbose)).as_bytes()),
        (Form::Text, None) => out.write_all(without_tree(&head).as_bytes()),
    };
    ended(written.and_then(|()| out.flush()))
}

/// Saves the payload of a job.
/// # Errors
/// None is kept, or it cannot be written.
pub fn payload(arguments: &PayloadArguments) -> anyhow::Result<Exit> {
    let kept = found(&arguments.which)?;
    if kept.payload.is_empty() {
        return Err(Stop::new(Exit::Failed, format!("the payload of job {} was no JSON, and was not kept", arguments.which.job)).into());
    }
    let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("job-{}.json", arguments.which.job)));
    if path == Path::new("-") {
        let mut out = io::stdout().lock();
        return ended(out.write_all(kept.payload.as_bytes()).and_then(|()| out.flush()));
    }
    save(&path, &kept.payload)
        .map_err(|fault| Stop::new(Exit::Fault, format!("could not write the payload to `{}`: {}", path.display(), words(&fault))))?;
    let _ = writeln!(anstream::stderr(), "the payload of job {} is in `{1}`: `step-runner run {1}`", arguments.which.job, path.display());
    Ok(Exit::Done)
}

fn save(path: &Path, payload: &str) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut aside = tempfile::Builder::new().prefix(".runner-core-payload-").tempfile_in(directory)?;
    aside.write_all(payload.as_bytes())?;
    aside.as_file().sync_all()?;
    aside.persist(path).map(drop).map_err(|fault| fault.error)
}

/// That whoever reads has seen enough is no error.
fn ended(written: io::Result<()>) -> anyhow::Result<Exit> {
    match written {
        Err(fault) if fault.kind() != io::ErrorKind::BrokenPipe => {
            Err(Stop::new(Exit::Fault, format!("could not write to standard output: {}", words(&fault))).into())
        }
        _ => Ok(Exit::Done),
    }
}

fn json(out: &mut dyn io::Write, tree: &OwnedTree) -> io::Result<()> {
    // What is secret was masked where the job ran; only its marks are left.
    let redaction = Redaction::new(Secrets::default(), Vec::new());
    write(out, tree, StepId::ROOT, Writing { format: Format::Json, our_fields: true, redaction: &redaction })
}

fn title(head: &Head) -> String {
    head.job.as_ref().map(|job| job.name.clone()).filter(|name| !name.is_empty()).unwrap_or_else(|| "job".to_owned())
}

/// A job that has no tree is one line too.
fn without_tree(head: &Head) -> String {
    let word = if head.state == "success" { "ok" } else { "failed" };
    let mut text = format!("{word:<11} {:>7}  {}", "", title(head));
    let why = if head.message.is_empty() { &head.failure_reason } else { &head.message };
    if !why.is_empty() {
        let _ = write!(text, ": {}", step_console::complaint::plain(why));
    }
    text + "\n"
}

fn no_tree(head: &Head) -> Stop {
    let why = if head.message.is_empty() { &head.failure_reason } else { &head.message };
    Stop::new(Exit::Failed, format!("the job has no result tree: {why}"))
}

fn damaged(fault: impl std::fmt::Display) -> Stop {
    Stop::new(Exit::Fault, format!("the result that is kept is damaged: {fault}"))
}

fn found(which: &WhichJob) -> Result<KeptResult, Stop> {
    let directory = state_directory(which.config.as_deref(), which.state.as_deref()).join(DIRECTORY);
    let listed = match store::listed(&directory) {
        Ok(listed) => listed,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(fault) => return Err(Stop::bad_input(format!("could not look into `{}`: {}", directory.display(), words(&fault)))),
    };
    let mut results = Vec::new();
    for (_, path) in listed.iter().filter(|(name, _)| store::parts(name).is_some_and(|(_, number)| number == which.job)) {
        let kept = store::read(path).map_err(damaged)?;
        let runner = kept.head.as_ref().and_then(|head| head.runner.as_ref()).map(|runner| runner.name.clone()).unwrap_or_default();
        if which.runner.as_ref().is_none_or(|wanted| *wanted == runner) {
            results.push((runner, kept));
        }
    }
    match results.len() {
        1 => Ok(results.remove(0).1),
        0 => Err(Stop::new(Exit::Failed, format!("no result of job {} is kept in `{}`", which.job, directory.display()))
            .with_hint("a job that runs has one when it has ended: `runner-core jobs`; old ones are removed: `[runner_core.results]`")),
        _ => {
            let runners = results.iter().map(|(runner, _)| format!("`{runner}`")).collect::<Vec<_>>().join(", ");
            Err(Stop::usage(format!("several runners have a result of job {}: {runners}", which.job))
                .with_hint("`--runner NAME` chooses one"))
        }
    }
}
