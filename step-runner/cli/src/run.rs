//! Runs a job, a payload or a step in the foreground.
//!
//! ```text
//! as typed -> as meant -> a job (what was given) -> a plan (all that can be read before the first step) -> its end -> result files
//! ```

mod ask;
mod commit;
mod dotenv;
pub mod duration;
pub mod ending;
mod inputs;
pub mod job;
mod laptop;
mod pairs;
pub mod place;
pub mod plan;
pub mod plan_text;
pub mod result_file;
pub mod settings;
mod shell;
pub mod signals;
mod supply;
pub mod typed;

pub use typed::RunArguments;

use crate::builtins;
use crate::report::screen::Screen;
use crate::report::teller::{Ending, Teller};
use crate::telemetry;
use job::{Job, NoJob};
use place::Place;
use plan::Directories;
use result_file::Prepared;
use settings::{ResultFormat, Settings, Talk};
use signals::{Asked, Signals};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use step_agent::job_directory::{self, JobDirectory};
use step_agent::job_process::{self, Ended};
use step_agent::variables::{self, VariablesFault};
use step_client::wire::result::{Format, Redaction, Writing};
use step_console::exit::{Complaint, Exit, Stop};
use step_console::given::words;
use step_engine::resolve::DocumentProblems;
use step_engine::run::{Run, Seed};
use step_model::diagnostic::Verdict;
use step_model::document::lint;
use step_model::masking::Secrets;
use step_model::plan::{Plan, PlannedDocument};
use step_model::result::{ResultTree as _, StepId};
use supply::Supply;

/// What a job that was killed has left is removed by a later one, but not before somebody could look at it.
const LEFT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs what the command line says and tells of it.
/// # Errors
/// Why nothing ran.
pub fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    let settings = Settings::read(arguments)?;
    run_in(&settings, Place::read())
}

/// Runs what is meant, in its surroundings.
/// # Errors
/// Why nothing ran.
pub fn run_in(settings: &Settings, place: Result<Place, Stop>) -> anyhow::Result<Exit> {
    let asked = Asked::default();
    let screen = || Screen::new(settings.talk > Talk::Quiet && settings.output == typed::Output::Text);
    let mut teller = Teller::new(settings, screen(), asked.clone());
    let outcome = place.and_then(|place| {
        let prepared = prepare(settings, &place, &mut teller)?;
        if settings.dry_run {
            teller
                .plan(&plan_text::of(&prepared.job, &prepared.root, &prepared.directories, prepared.job.request.limits.or(settings.limits)))
                .map_err(not_written)?;
            teller.stopped(&[], Exit::Done);
            return Ok(None);
        }
        Ok(Some((prepared, place)))
    });
    match outcome {
        Ok(Some((prepared, place))) => {
            let mut teller = Some(teller);
            let outcome = Execution { settings, place: &place, prepared: &prepared, asked }.carry_out(&mut teller, screen);
            if let (Err(stop), Some(teller)) = (&outcome, &mut teller) {
                teller.stopped(&stop.problems, stop.exit);
            }
            job_directory::sweep(&place.temporary, LEFT_FOR);
            Ok(outcome?)
        }
        Ok(None) => Ok(Exit::Done),
        Err(stop) => {
            teller.stopped(&stop.problems, stop.exit);
            Err(stop.into())
        }
    }
}

/// A job with everything that is known about it before its first step.
struct PreparedJob {
    job: Job,
    /// The values of `--secrets`, also those that the job never asks for.
    secrets: Vec<String>,
    root: Arc<PlannedDocument>,
    directories: Directories,
    /// The first step is not there, so the run will end with that: what to do about it.
    way_out: Option<String>,
}

/// Finds the job that was given, and tells what is wrong with it. Also returns the values of `--secrets`.
/// # Errors
/// There is none.
pub fn find(settings: &Settings, place: &Place, teller: &mut Teller<Screen>) -> Result<(Job, Vec<String>), Stop> {
    let mut ask = |name: &str| if settings.output == typed::Output::Text { ask::secret(name) } else { None };
    let mut supply = Supply::new(&settings.secrets, place, settings.dry_run, &mut ask)?;
    let mut job = job::find(settings, place, &mut supply).map_err(|no_job| match no_job {
        NoJob::Stop(stop) => stop,
        NoJob::Problems(problems) => {
            teller.problems(&near(problems, place));
            Stop::told(Exit::BadInput)
        }
    })?;
    teller.set_title(&job.title);
    match telemetry::caller(&place.env) {
        // Who runs the job now is its caller, whoever was when the request was made.
        Ok(caller) => job.request.trace_parent = caller.or(job.request.trace_parent),
        Err(ignored) => teller.warn(&ignored),
    }
    Ok((job, supply.given().values().cloned().collect()))
}

fn prepare(settings: &Settings, place: &Place, teller: &mut Teller<Screen>) -> Result<PreparedJob, Stop> {
    let (job, secrets) = find(settings, place, teller)?;
    let directories = Directories::of(&job, place);
    if !settings.dry_run {
        tell_what_differs(&job, &directories, place, teller);
    }
    let provenance = !settings.dry_run && settings.result_files.iter().any(|file| file.our_fields);
    let (root, problems) = plan::resolve(&job, &directories.build_dir, provenance, &builtins::all()).map_err(|problems| {
        teller.problems(&near(problems, place));
        Stop::told(Exit::BadInput)
    })?;
    let mut problems = problems;
    let is_run_for_people = !settings.dry_run && !settings.strict && settings.output == typed::Output::Text;
    let way_out = if is_run_for_people { leave_to_the_run(&mut problems, &job, &directories) } else { None };
    let warnings: Vec<DocumentProblems> = job.warnings.iter().cloned().chain(problems).chain(variables_in_scripts(&job, place)).collect();
    tell_warnings(near(warnings, place), settings, teller)?;
    Ok(PreparedJob { job, secrets, root, directories, way_out })
}

/// A step that is not there and has none before it that could write it: the run ends with the same words at once, so people need not read them
/// twice. What is left to tell is the way out.
fn leave_to_the_run(problems: &mut [DocumentProblems], job: &Job, directories: &Directories) -> Option<String> {
    let is_missing = |problem: &step_model::diagnostic::Problem| problem.code == "not-found";
    let known = problems.iter().flat_map(|file| &file.problems).any(is_missing);
    problems.iter_mut().for_each(|file| file.problems.retain(|problem| !is_missing(problem)));
    known.then(|| {
        let step = "a step is a directory with a `func.yml` or a `step.yml` in it";
        if job.is_wrapped {
            format!("{step}; `{}` was looked for in {}", job.title, directories.build_dir)
        } else {
            format!("{step}; a relative path begins where the file lies that names it")
        }
    })
}

/// Job variables are not in the environment of a script, which surprises people.
fn variables_in_scripts(job: &Job, place: &Place) -> Option<DocumentProblems> {
    let is_variable = |name: &str| job.request.variables.iter().any(|variable| *variable.key == *name);
    let environment = place.process_env(None).unwrap_or_default();
    let is_in_environment = |name: &str| job.request.env.contains_key(name) || environment.contains_key(name);
    let problems = lint::job_variables_in_scripts(&job.request.steps, &is_variable, &is_in_environment);
    (!problems.is_empty()).then(|| DocumentProblems { file: "".into(), text: None, problems })
}

/// Files by their names from where the person is, and messages without the level that nobody wrote.
fn near(mut files: Vec<DocumentProblems>, place: &Place) -> Vec<DocumentProblems> {
    for file in &mut files {
        if let Some(name) = file.file.strip_prefix(&*place.dir).and_then(|name| name.strip_prefix('/')) {
            file.file = name.into();
        }
        for problem in &mut file.problems {
            if let Some(message) = problem.message.strip_prefix("step \"\": ") {
                problem.message = message.to_owned();
            }
        }
    }
    files
}

/// What a person who knows the job from elsewhere would be surprised by.
fn tell_what_differs(job: &Job, directories: &Directories, place: &Place, teller: &mut Teller<Screen>) {
    // A checkout brings the commit, whatever is here.
    let wanted = job.commit.as_deref().filter(|_| !job.checks_out);
    let difference = wanted.and_then(|wanted| {
        let here = commit::checked_out(Path::new(&*place.dir));
        commit::difference(wanted, here.as_deref())
    });
    for note in difference.iter().chain(&directories.note) {
        teller.warn(note);
    }
    for name in &place.strange {
        teller.warn(&format!("the environment variable `{}` is not passed on: it is not UTF-8", name.escape_debug()));
    }
    // Nothing has to be checked out when the work tree is at the commit of the job already.
    let is_checked_out = job.commit.is_some() && difference.is_none();
    let not_done = job.not_done.iter().filter(|part| !(part.refused || is_checked_out && part.part == "checkout"));
    not_done.for_each(|part| teller.not_done(part));
}

fn tell_warnings(mut files: Vec<DocumentProblems>, settings: &Settings, teller: &mut Teller<Screen>) -> Result<(), Stop> {
    if settings.strict {
        files.iter_mut().flat_map(|file| &mut file.problems).for_each(|problem| problem.verdict = Verdict::Error);
    }
    teller.problems(&files);
    let is_refused = files.iter().flat_map(|file| &file.problems).any(step_model::diagnostic::Problem::is_error);
    if is_refused { Err(Stop::told(Exit::BadInput)) } else { Ok(()) }
}

/// From the first file that is written to the last.
struct Execution<'a> {
    settings: &'a Settings,
    place: &'a Place,
    prepared: &'a PreparedJob,
    asked: Asked,
}

impl Execution<'_> {
    fn carry_out(&self, teller: &mut Option<Teller<Screen>>, screen: impl Fn() -> Screen) -> Result<Exit, Stop> {
        let fault =
            |what: &'static str| move |error: std::io::Error| Stop::new(Exit::Fault, format!("could not {what}: {}", words(&error)));
        // From here on a signal no longer ends us between two steps of our own: what we make, we remove.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(fault("start"))?;
        let signals = {
            let _context = runtime.enter();
            Signals::catch().map_err(fault("listen to signals"))?
        };
        let result_files = self.settings.result_files.iter().map(Prepared::new).collect::<Result<Vec<_>, _>>()?;
        let directory = JobDirectory::create(&self.place.temporary).map_err(fault("make a private directory"))?;
        // Without it what is left of a job that is killed is ended by the next run.
        #[cfg(target_os = "linux")]
        let _watched = job_directory::watch_over(&directory);
        let mut secrets = Secrets::default();
        let plan = self.plan(&directory, &mut secrets, teller)?;
        let job_settings = self.job_settings(&directory, &secrets, teller);
        let Some(watching) = teller.take() else { return Err(Stop::new(Exit::Fault, "nobody can tell of the job")) };
        let (asks, asked) = tokio::sync::mpsc::unbounded_channel();
        let ended = runtime.block_on(async {
            tokio::select! {
                biased;
                never = signals.pass_on(asks, self.asked.clone()) => match never {},
                ended = job_process::run(plan, job_settings, watching, asked) => ended,
            }
        });
        // The end of the process takes the runtime down; to do it bit by bit takes as long as a short step.
        std::mem::forget(runtime);
        let Ended { run, audience, redaction, log_failure, .. } = ended.map_err(fault("run the job"))?;
        let teller = teller.insert(audience.unwrap_or_else(|| Teller::new(self.settings, screen(), self.asked.clone())));
        self.end(&run, log_failure, &redaction, result_files, directory, teller)
    }

    fn plan(&self, directory: &JobDirectory, secrets: &mut Secrets, teller: &mut Option<Teller<Screen>>) -> Result<Plan, Stop> {
        let fault = |error: std::io::Error| Stop::new(Exit::Fault, format!("could not make a private directory: {}", words(&error)));
        let (files, variables) = (directory.path().join("files"), directory.path().join("variables"));
        let job = &self.prepared.job;
        if job.request.variables.iter().any(|variable| variable.file) {
            std::fs::create_dir(&variables).map_err(fault)?;
        }
        let variables = variables::prepare(&job.request.variables, &variables, secrets).map_err(no_variables)?;
        for name in &variables.in_clear {
            if let Some(teller) = teller {
                teller.warn(&format!("the value of `{name}` is too short to be masked"));
            }
        }
        for secret in &self.prepared.secrets {
            // One that is too short was given for a variable, and that has been warned of.
            let _ = secrets.add(secret);
        }
        self.add_sensitive_inputs(secrets);
        let root = self.prepared.root.clone();
        plan::plan(job, root, &self.prepared.directories, variables, &files, self.settings, self.place)
    }

    /// What was given for a sensitive input must not appear anywhere, also not before the engine has seen it.
    fn add_sensitive_inputs(&self, secrets: &mut Secrets) {
        for (name, value) in job::given_values(&self.prepared.job) {
            if plan::is_sensitive_input(&self.prepared.root, &name) {
                variables::add_secret(secrets, &value);
            }
        }
    }

    fn job_settings(&self, directory: &JobDirectory, secrets: &Secrets, teller: &mut Option<Teller<Screen>>) -> job_process::Settings {
        let journal = directory.path().to_path_buf();
        if let Some(teller) = teller {
            teller.note(&format!("journal: {}", journal.display()), Talk::Verbose);
        }
        job_process::Settings {
            seed: Seed(RandomState::new().hash_one(0)),
            secrets: secrets.clone(),
            streams: teller.as_ref().map_or(job_process::Streams::Shared, Teller::streams),
            journal: Some(journal),
            provenance: self.settings.result_files.iter().any(|file| file.our_fields),
            keep_files: self.settings.keep,
        }
    }

    /// Everything after the last step.
    fn end(
        &self,
        run: &Run,
        log_failure: Option<String>,
        redaction: &Redaction,
        result_files: Vec<Prepared>,
        directory: JobDirectory,
        teller: &mut Teller<Screen>,
    ) -> Result<Exit, Stop> {
        let own = run.failed_step().filter(|_| self.settings.pass_exit_code);
        let own = own.and_then(|step| run.result().headline(step).exit_code);
        let signal = self.asked.so_far().map(|(signal, _)| signal);
        let mut exit = ending::exit(run.status(), run.failure(), signal, own);
        let mut late = Vec::new();
        if let Some(failure) = log_failure.or_else(|| teller.lost().map(str::to_owned)) {
            late.push(format!("writing to stdout: {failure}"));
        }
        late.extend(write_results(run, redaction, result_files).into_iter().filter_map(|fault| match fault {
            Unwritten::Ours(stop) => Some(stop.to_string()),
            Unwritten::Theirs(stop) => {
                teller.warn(&stop.to_string());
                None
            }
        }));
        if let Err(lost) = telemetry::export(&self.place.env, &run.result(), self.prepared.job.request.trace_parent, redaction) {
            teller.warn(&lost);
        }
        if !late.is_empty() && exit == Exit::Done {
            exit = Exit::Fault;
        }
        // No fault of ours, and nothing to look into: as `sh` and `make` end when nobody reads them.
        if exit == Exit::Fault && teller.reader_left() {
            exit = Exit::Failed;
        }
        teller.end(&Ending {
            run,
            exit,
            wrapped: self.prepared.job.is_wrapped.then_some(""),
            before: if matches!(self.settings.what, settings::What::CiSteps(_)) { "failed to run steps: " } else { "" },
            faults: &late,
            way_out: self.prepared.way_out.as_deref(),
        });
        if self.settings.shell && !matches!(exit, Exit::Done | Exit::Interrupted | Exit::Terminated | Exit::HungUp) {
            self.open_shell(run, teller)?;
        }
        if self.settings.keep {
            let kept = directory.keep();
            // File variables are removed when the run ends, whatever else is kept.
            let _ = std::fs::remove_dir_all(kept.join("variables"));
            teller.note(&format!("kept: {}", kept.display()), Talk::Quiet);
        }
        Ok(exit)
    }

    fn open_shell(&self, run: &Run, teller: &mut Teller<Screen>) -> Result<(), Stop> {
        let Some(step) = run.failed_step() else { return Ok(()) };
        if !shell::is_possible() {
            teller.warn("there is no terminal for a shell: run the same command in one");
            return Ok(());
        }
        let node = run.result().node(step);
        teller.note("this is the environment and the directory of the failed step; `exit` ends the shell and the run", Talk::Quiet);
        let shell = self.place.env.get("SHELL").map(String::as_str);
        shell::open(&node, &self.prepared.directories.work_dir, shell)
    }
}

/// A result that could not be written: ours is a promise, theirs is said and no more (original.md F.4).
enum Unwritten {
    Ours(Stop),
    Theirs(Stop),
}

fn write_results(run: &Run, redaction: &Redaction, files: Vec<Prepared>) -> Vec<Unwritten> {
    let mut faults = Vec::new();
    for file in files {
        let our_fields = file.file.our_fields;
        let format = match file.file.format {
            ResultFormat::Json => Format::Json,
            ResultFormat::Text => Format::PrettyText,
        };
        let writing = Writing { format, our_fields, redaction };
        if let Err(stop) = file.write(|out| step_client::wire::result::write(out, &run.result(), StepId::ROOT, writing)) {
            faults.push(if our_fields { Unwritten::Ours(stop) } else { Unwritten::Theirs(stop) });
        }
    }
    faults
}

/// A name is the fault of the job; a file that cannot be written is one of the machine.
fn no_variables(fault: VariablesFault) -> Stop {
    match fault {
        VariablesFault::Names(names) => {
            let one = |name| Complaint::new(VariablesFault::Names(vec![name]).to_string());
            Stop::all(Exit::BadInput, names.into_iter().map(one).collect())
        }
        unwritten @ VariablesFault::Unwritten { .. } => Stop::new(Exit::Fault, unwritten.to_string()),
    }
}

fn not_written(fault: std::io::Error) -> Stop {
    Stop::new(Exit::Fault, format!("could not write to standard output: {}", words(&fault)))
}
