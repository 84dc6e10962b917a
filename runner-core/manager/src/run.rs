//! `run`: takes jobs of the servers that a configuration names, until it is asked to end.

pub mod configuration;
mod entries;
mod logging;
mod reload;
mod service;
mod settings;
mod signals;
pub mod system_id;

use crate::drive::{self, Clock, World};
use crate::operations;
use crate::results::Results;
use crate::state::{Opened, State, StateFault};
use crate::telemetry::Telemetry;
use clap::Args;
use configuration::Configuration;
use entries::Entries;
pub use entries::connector;
use runner_control::Controller;
use runner_control::effect;
use runner_control::event::Event;
use signals::{Asked, Signals};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use tokio::sync::mpsc::unbounded_channel;

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "SIGQUIT: no new jobs, end with the last one. SIGTERM, SIGINT: end the jobs and then the program; a second one ends it at once.\n\
SIGUSR2: leave the jobs running and end at once; the next `run` finds them. SIGHUP: read the configuration again."
)]
pub struct RunArguments {
    /// The configuration, as GitLab's runner reads it. [default: $CONFIG_FILE, then the places where GitLab's runner looks]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where jobs in flight are remembered. [default: `.runner-core` beside the configuration]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// What is logged: debug, info, warning, error, fatal, panic. [default: `log_level` of the configuration, then info]
    #[arg(short, long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// How: runner, text, json. [default: `log_format` of the configuration, then runner]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
}

/// Serves the configuration.
/// # Errors
/// It cannot be used.
pub fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    let configuration = Configuration::read(arguments.config.as_deref())?;
    logging::start(arguments, &configuration.settings.global)?;
    configuration.tell();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(serve(configuration, arguments))?;
    // Tasks that still wait for a server or a plugin have nothing more to say.
    runtime.shutdown_background();
    Ok(exit)
}

async fn serve(configuration: Configuration, arguments: &RunArguments) -> Result<Exit, Stop> {
    let mut signals =
        Signals::catch().map_err(|fault| Stop::new(Exit::Fault, format!("could not listen to signals: {}", words(&fault))))?;
    let directory = arguments.state.clone().unwrap_or_else(|| configuration.directory.join(".runner-core"));
    let Opened { state, kept, generation } = State::open(&directory).map_err(no_state)?;
    let (events, happened) = unbounded_channel();
    let results = Results::open(&directory, &configuration.settings.global.results);
    let results = Arc::new(results.map_err(|why| Stop::new(Exit::Fault, why))?);
    let telemetry = Telemetry::default();
    let entries = Entries::new(&configuration, directory.clone(), events.clone(), results.clone(), telemetry.clone())?;
    let (change, settings) = entries.begin(&configuration.settings).await;
    let world = World::new(change.new, state, events.clone());

    let clock = Clock::start();
    let records = world.recover(&kept);
    tracing::info!(jobs = records.len(), runners = settings.runners.len(), concurrent = settings.concurrent, "runner-core begins");
    let (controller, effects) = Controller::start(settings, records, generation, drive::seed(), clock.now());
    let (looks, seen) = unbounded_channel();
    let mut running = pin!(drive::run(controller, effects, world.clone(), happened, seen, clock));
    operations::serve(&directory, configuration.settings.global.listen_address.as_deref(), looks, telemetry)
        .await
        .map_err(|fault| Stop::bad_input(format!("could not answer operators: {}", words(&fault))))?;
    service::tell_ready();
    let mut reload = reload::Reload::new(configuration, entries);
    let how = loop {
        tokio::select! {
            biased;
            how = &mut running => break how,
            asked = signals.next() => match asked {
                Asked::Reload => reload.now(&world, &events).await,
                asked => _ = events.send(event(asked, reload.detaches_on_term())),
            },
            () = reload.when_changed() => reload.now(&world, &events).await,
        }
    };
    tracing::info!(?how, "runner-core ends");
    if how != effect::Exit::AtOnce {
        results.finish().await;
        world.shut_down().await;
    }
    Ok(exit(how))
}

fn event(asked: Asked, detaches_on_term: bool) -> Event {
    match asked {
        Asked::Drain => Event::Drain,
        Asked::Detach => Event::Detach,
        Asked::Stop if detaches_on_term => Event::Detach,
        Asked::Stop | Asked::Reload => Event::Stop,
    }
}

fn exit(how: effect::Exit) -> Exit {
    match how {
        effect::Exit::Done | effect::Exit::Detached => Exit::Done,
        effect::Exit::TimedOut | effect::Exit::AtOnce => Exit::Failed,
    }
}

/// Why there is no state, with the way out.
pub fn no_state(fault: StateFault) -> Stop {
    let stop = Stop::new(Exit::Fault, fault.to_string());
    match fault.hint() {
        Some(hint) => stop.with_hint(hint),
        None => stop,
    }
}
