//! Runs a job, a payload or a step in the foreground.

use crate::exit::{Exit, Stop};

#[derive(Debug, clap::Args)]
pub struct RunArguments {}

/// # Errors
/// Always, so far.
pub fn run(_arguments: RunArguments) -> anyhow::Result<Exit> {
    Err(Stop::new(Exit::Fault, "`run` is not there yet").into())
}
