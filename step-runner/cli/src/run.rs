//! Runs a job, a payload or a step in the foreground.

mod dotenv;
mod duration;
mod inputs;
mod pairs;
mod place;
pub mod settings;
pub mod source;
mod typed;
mod variables;

pub use typed::RunArguments;

use crate::exit::{Exit, Stop};
use settings::Settings;

/// # Errors
/// Always, so far.
pub fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    let _settings = Settings::read(arguments)?;
    Err(Stop::new(Exit::Fault, "`run` is not there yet").into())
}
