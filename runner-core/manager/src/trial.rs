//! `try`: jobs run on this machine, on the whole path that jobs of a server take.
//!
//! ```text
//! files -> jobs -> offered to the Controller -> a local group -> an agent -> log on the terminal, result tree, exit code
//! ```

mod ending;
mod jobs;
mod laptop;
mod meant;
mod result_files;
mod screen;
mod signals;
mod source;

use crate::drive::{self, Clock, Runner, World};
use crate::local_group::LocalGroup;
use crate::run::no_state;
use crate::seal::Seal;
use crate::state::{Opened, State};
use anstyle::{AnsiColor, Style};
use clap::Args;
use jobs::GivenJob;
use meant::Meant;
use result_files::ResultFiles;
use runner_control::Controller;
use runner_control::event::Event;
use runner_control::id::RunnerId;
use runner_control::settings::{Environments, RunnerSettings, Settings, Shape};
use runner_fleeting::InstanceGroup as _;
use signals::{Signal, Signals};
use source::{EndedJob, TrialSource};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use step_console::complaint::plain;
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use step_console::tree;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const BAD: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "A JOB is a file with a job payload of GitLab (`-`: standard input), or a `.gitlab-ci.yml` followed by the names of its jobs.\n\
The jobs run in the current directory, on instances that are agents on this machine, and are offered, placed, delivered,\n\
followed and reported by what does this for jobs of a server."
)]
pub struct TryArguments {
    /// What to run: `job.json`, or `.gitlab-ci.yml build test`.
    #[arg(value_name = "JOB", required = true)]
    pub jobs: Vec<String>,
    /// A job variable; it wins over one of the job. `--job NAME` takes the value from the environment. Repeatable.
    #[arg(long = "job", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// How many instances there may be at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: u32,
    /// How many jobs an instance takes at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub capacity: u32,
    /// The program of the agents. [default: `step-runner` beside this program, then on the PATH]
    #[arg(long, value_name = "FILE")]
    pub agent: Option<PathBuf>,
    /// Write the result tree of the job as JSON. A directory gets one file for each job.
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
    /// Run on this machine although the job names an image.
    #[arg(long)]
    pub ignore_image: bool,
    /// Fetch the commit of the job into `.step-runner/checkout` and run it there, in place of the current directory.
    #[arg(long)]
    pub checkout: bool,
    /// Take this step in place of `builtin://checkout`, `builtin://cache` or `builtin://artifact`: `cache=./my-cache`.
    #[arg(long, value_name = "NAME=REFERENCE")]
    pub step: Vec<String>,
    /// Restore and save the caches of jobs. [default DIR: .step-runner/cache]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub cache: Option<String>,
    /// Take the artifacts of earlier jobs from a directory, and keep those of these jobs in `.step-runner/artifacts`, which
    /// is also the default of DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub artifacts: Option<String>,
    /// Say what the runner does, not only how jobs end.
    #[arg(short, long)]
    pub verbose: bool,
}

/// Runs the jobs.
/// # Errors
/// Why nothing ran.
pub fn run(arguments: &TryArguments) -> anyhow::Result<Exit> {
    let meant = Meant::of(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(trial(meant))?;
    Ok(exit)
}

async fn trial(meant: Meant) -> Result<Exit, Stop> {
    let fault = |what: &'static str| move |fault: std::io::Error| Stop::new(Exit::Fault, format!("could not {what}: {}", words(&fault)));
    let mut signals = Signals::catch().map_err(fault("listen to signals"))?;
    let directory = tempfile::Builder::new().prefix("runner-core-try.").tempdir().map_err(fault("make a private directory"))?;
    let work_dir = std::env::current_dir().map_err(fault("find the current directory"))?;
    say_what_is_not_done(&meant.jobs);

    let runner = RunnerId::new("try");
    let settings = settings(&runner, &meant);
    let number_of_jobs = meant.jobs.len();
    let group = Arc::new(LocalGroup::new(meant.agent, directory.path().to_path_buf(), work_dir));
    let (events, happened) = unbounded_channel();
    let source = Arc::new(TrialSource::new(runner.clone(), meant.jobs, meant.build_dir, events.clone()));
    // Nobody has to find these jobs again, but they take the same path as those of a server.
    let Opened { state, kept, generation } = State::open(&directory.path().join("state")).map_err(no_state)?;
    let seal = Seal::of_token(&format!("{:x}", drive::seed().0));
    let entry = Runner::new(source.clone(), group.clone(), seal);
    let world = World::new([(runner.clone(), entry)].into(), state, events.clone());

    let clock = Clock::start();
    let (controller, effects) = Controller::start(settings, world.recover(&kept), generation, drive::seed(), clock.now());
    // Nobody looks at it from outside.
    let (_looks, seen) = unbounded_channel();
    let running = drive::run(controller, effects, world, happened, seen, clock);
    let (how, signal) = until_the_end(running, &mut signals, &source, &events).await;
    let _ = group.shutdown().await;

    let exit = tell_ends(&source.ended(), number_of_jobs, signal, meant.results.as_ref(), meant.is_verbose)?;
    Ok(if how == runner_control::effect::Exit::Done { exit } else { signal.map_or(Exit::Fault, Signal::exit) })
}

/// Until the controller says that the process may end. A first signal cancels the jobs as a server does; a second ends them at once.
async fn until_the_end(
    running: impl Future<Output = runner_control::effect::Exit>,
    signals: &mut Signals,
    source: &TrialSource,
    events: &UnboundedSender<Event>,
) -> (runner_control::effect::Exit, Option<Signal>) {
    let mut running = pin!(running);
    let mut first = None;
    loop {
        tokio::select! {
            biased;
            how = &mut running => return (how, first),
            signal = signals.next() => match first {
                None => {
                    first = Some(signal);
                    source.cancel();
                }
                Some(_) => drop(events.send(Event::Stop)),
            },
        }
    }
}

/// For a fleet of this machine: nothing is waited for that need not be.
fn settings(runner: &RunnerId, meant: &Meant) -> Settings {
    let environments = Environments {
        capacity_per_instance: meant.capacity,
        update_interval_when_expecting: Duration::from_millis(10),
        creation_timeout: Duration::from_secs(30),
        ready_timeout: Duration::from_secs(30),
        acquire_timeout: Duration::from_secs(20),
        delete_on_shutdown: true,
        ..Environments::new(Shape::Group, meant.instances)
    };
    let entry = RunnerSettings {
        request_concurrency: meant.instances.saturating_mul(meant.capacity),
        is_adaptive: false,
        beats: false,
        ..RunnerSettings::new("try", environments)
    };
    Settings {
        concurrent: meant.instances.saturating_mul(meant.capacity),
        runners: [(runner.clone(), entry)].into(),
        ..Settings::default()
    }
}

/// Parts of jobs that are not carried out here, each said once, before the first step.
fn say_what_is_not_done(jobs: &[GivenJob]) {
    let mut said = BTreeSet::new();
    for job in jobs {
        for part in &job.translation.not_done {
            let whose = if jobs.len() > 1 { format!("{}: ", job.title) } else { String::new() };
            if said.insert(format!("{whose}{}", part.what)) {
                screen::say(&format!("{WARNING}not done{WARNING:#}: {whose}{}\n hint: {}", plain(&part.what), plain(&part.way_out)));
            }
        }
    }
}

/// Shows how each job ended, writes the results, and says what that makes of the program.
fn tell_ends(
    ended: &[EndedJob],
    number_of_jobs: usize,
    signal: Option<Signal>,
    results: Option<&ResultFiles>,
    is_verbose: bool,
) -> Result<Exit, Stop> {
    let detail = if is_verbose { tree::Detail::Everything } else { tree::Detail::Outcomes };
    let mut exits = Vec::new();
    for job in ended {
        let exit = match &job.status {
            Some(status) => ending::exit(status.status, status.kind, signal),
            None => signal.map_or(Exit::Fault, Signal::exit),
        };
        let has_failed = exit != Exit::Done;
        if let Some(message) = job.report.message.as_ref().filter(|_| has_failed) {
            screen::say(&format!("{BAD}error{BAD:#}: {}: {}", plain(&job.title), plain(message)));
        }
        if let Some(tree) = &job.tree {
            if has_failed || is_verbose || number_of_jobs > 1 {
                screen::say(tree::shown(tree, &job.title, detail).trim_end());
            }
            if let Some(results) = results {
                results.write(&job.title, job.number, tree)?;
            }
        }
        exits.push(exit);
    }
    if ended.len() < number_of_jobs {
        screen::say(&format!("{BAD}error{BAD:#}: {} of {number_of_jobs} jobs did not run", number_of_jobs - ended.len()));
        exits.push(signal.map_or(Exit::Fault, Signal::exit));
    }
    Ok(ending::gravest(exits))
}
