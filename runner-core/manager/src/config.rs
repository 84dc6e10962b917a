//! `config check`: what becomes of every key of a configuration.

use crate::exit::Exit;
use crate::given;
use crate::run::configuration::{default_path, environment};
use clap::{Args, Subcommand};
use runner_config::Look;
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub struct ConfigArguments {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Say of every key whether it is honoured, and everything that is wrong. Exit code 1 when there is something to look at.
    Check {
        /// The configuration. [default: as for `run`]
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// # Errors
/// The file cannot be read.
pub fn run(arguments: &ConfigArguments) -> anyhow::Result<Exit> {
    let ConfigCommand::Check { config } = &arguments.command;
    let environment = environment();
    let path = config.clone().unwrap_or_else(|| default_path(&environment));
    let given = given::file(&path)?;
    let parsed = runner_config::parse(&given.text, &environment);
    let mut out = anstream::stdout().lock();
    write!(out, "{}", parsed.report(&given.name, &given.text, Look::Coloured))?;
    out.flush()?;
    Ok(if parsed.has_findings() { Exit::Failed } else { Exit::Done })
}
