//! Reads definitions and reports every problem of every file.

use crate::exit::{Exit, Stop};

#[derive(Debug, clap::Args)]
pub struct CheckArguments {}

/// # Errors
/// Always, so far.
pub fn run(_arguments: &CheckArguments) -> anyhow::Result<Exit> {
    Err(Stop::new(Exit::Fault, "`check` is not there yet").into())
}
