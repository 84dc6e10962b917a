//! Commands about the configuration file: it is checked, its runners are listed, registered, verified and removed.

mod check;
mod entry_file;
mod list;
mod questions;
mod register;
mod server;
mod unregister;
mod verify;

pub use entry_file::EntryFile;
pub use list::run as list;
pub use register::{RegisterArguments, run as register};
pub use server::client;
pub use unregister::{UnregisterArguments, run as unregister};
pub use verify::{VerifyArguments, run as verify};

use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use step_console::exit::Exit;
use step_model::time::Timestamp;

/// Which configuration.
#[derive(Debug, Clone, Default, Args)]
pub struct WhichFile {
    /// The configuration, as GitLab's runner reads it. [default: $CONFIG_FILE, then the places where GitLab's runner looks]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum ConfigCommand {
    /// Say of every key what becomes of it, and name all mistakes. Ends with 1 when there are any.
    Check(check::CheckArguments),
}

/// # Errors
/// There is no such file, or an argument makes no sense.
pub fn run(arguments: &ConfigArguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        ConfigCommand::Check(arguments) => check::run(arguments),
    }
}

/// What the clock on the wall says.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_nanoseconds(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
