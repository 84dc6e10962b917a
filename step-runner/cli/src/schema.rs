//! Prints the JSON Schemas of the files.

use crate::exit::{Exit, Stop};

#[derive(Debug, clap::Args)]
pub struct SchemaArguments {}

/// # Errors
/// Always, so far.
pub fn run(_arguments: &SchemaArguments) -> anyhow::Result<Exit> {
    Err(Stop::new(Exit::Fault, "`schema` is not there yet").into())
}
