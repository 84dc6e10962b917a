//! `doctor`: tries out every runner of a configuration, from its server to a real job, and says of each part whether it works, and what to do when not.
//!
//! It uses an instance that is there, or makes one and removes it. It never makes one beside a runner that serves the same configuration: that one
//! would take it. A signal ends it, and what it made is removed first; a second one ends it at once.

mod borrowed;
mod examination;
mod job;
mod sheet;

use crate::config_command::{EntryFile, WhichFile};
use crate::operations::state_directory;
use clap::{Args, ValueEnum};
use examination::Examination;
use runner_config::settings::Runner;
use sheet::{Check, Sheet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit code 0: all that was tried works; 1: something does not. What was made for it is removed, also after Ctrl-C.")]
pub struct DoctorArguments {
    #[command(flatten)]
    which: WhichFile,
    /// Only runners of this name.
    #[arg(long, value_name = "NAME")]
    runner: Option<String>,
    /// The state, where `run` is given one: whether it runs is seen there.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// How long an instance may take to be there, and its agent to answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    wait: u64,
    /// The form: `text` for people, `json` for programs.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Text, hide_default_value = true)]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

/// Ends with 1 when something does not work.
/// # Errors
/// The configuration cannot be used, or has no such runner.
pub fn run(arguments: &DoctorArguments) -> anyhow::Result<Exit> {
    let file = EntryFile::read(&arguments.which)?;
    let settings = file.settings()?;
    let reasons =
        |runner: &Runner| settings.refused.iter().find(|refused| refused.runner == *runner).map(|refused| refused.reasons.clone());
    let is_meant = |runner: &&Runner| arguments.runner.as_ref().is_none_or(|name| runner.name.as_ref() == Some(name));
    let patients: Vec<(Runner, Vec<String>)> =
        settings.entries().into_iter().filter(is_meant).map(|runner| (runner.clone(), reasons(runner).unwrap_or_default())).collect();
    if patients.is_empty() {
        return Err(Stop::bad_input(format!("there is no such runner in `{}`", file.shown()))
            .with_hint("`runner-core list` shows all")
            .into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(examine(arguments, &file.directory(), patients))?;
    runtime.shutdown_background();
    Ok(exit)
}

async fn examine(arguments: &DoctorArguments, directory: &Path, patients: Vec<(Runner, Vec<String>)>) -> anyhow::Result<Exit> {
    let mut signals = Signals::catch()?;
    let is_served = is_served(&state_directory(Some(&directory.join("config.toml")), arguments.state.as_deref()));
    let mut sheets = Vec::new();
    for (entry, refused) in patients {
        let is_text = arguments.output == Form::Text;
        if is_text {
            say(&format!("{}\n", heading(&entry)))?;
        }
        // A line that cannot be written is found out at the next one that is not a check.
        let tell = move |check: &Check| _ = is_text.then(|| say(&check.line()));
        let mut examination =
            Examination::new(entry, refused, directory.to_path_buf(), is_served, Duration::from_secs(arguments.wait), tell);
        let stopped = tokio::select! {
            () = examination.run() => None,
            exit = signals.next() => Some(exit),
        };
        tokio::select! {
            left = examination.clean_up() => left.iter().for_each(|left| warn(left)),
            exit = signals.next() => return Ok(exit),
        }
        if let Some(exit) = stopped {
            return Ok(exit);
        }
        sheets.push(examination.sheet);
    }
    match arguments.output {
        Form::Json => say(&format!("{}\n", sheet::json(&sheets)))?,
        Form::Text => say(&sheet::summary(&sheets))?,
    }
    Ok(if sheets.iter().any(Sheet::has_failed) { Exit::Failed } else { Exit::Done })
}

/// What could not be removed is said, whatever else is printed.
fn warn(left: &str) {
    let _ = writeln!(anstream::stderr(), "warning: {}", step_console::complaint::plain(left));
}

fn heading(entry: &Runner) -> String {
    step_console::complaint::plain(&format!("runner {} ({})", entry.shown_name(), if entry.url.is_empty() { "no url" } else { &entry.url }))
}

fn say(text: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Whether a runner serves this configuration now: it holds the lock of its state.
fn is_served(state: &Path) -> bool {
    let lock = std::fs::File::open(state.join("runner-core.lock"));
    lock.is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// SIGINT and SIGTERM, none of which ends the program by itself.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn catch() -> Result<Self, Stop> {
        let fault = |fault: std::io::Error| Stop::new(Exit::Fault, format!("could not listen to signals: {}", words(&fault)));
        Ok(Self { interrupt: signal(SignalKind::interrupt()).map_err(fault)?, terminate: signal(SignalKind::terminate()).map_err(fault)? })
    }

    async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}
