//! Prints a result as a tree.

use crate::exit::{Exit, Stop};

#[derive(Debug, clap::Args)]
pub struct ShowArguments {}

/// # Errors
/// Always, so far.
pub fn run(_arguments: &ShowArguments) -> anyhow::Result<Exit> {
    Err(Stop::new(Exit::Fault, "`show` is not there yet").into())
}
