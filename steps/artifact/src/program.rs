//! `step-runner-steps artifact`: what the host starts.

use crate::inputs::Inputs;
use crate::settings::{Action, Settings};
use crate::{download, upload};
use std::path::Path;
use std::process::ExitCode;
use step_sdk::{Failure, Step};

/// Carries out what the words behind `step-runner-steps artifact` ask for: there are none.
pub fn main(words: &[String]) -> ExitCode {
    step_sdk::end(match words {
        [] => start(),
        [word, ..] => {
            Err(Failure::bad_input(format!("`{word}` is not known here"))
                .with_hint("this is a step, `builtin://artifact`: it takes no words"))
        }
    })
}

fn start() -> Result<(), Failure> {
    let step = Step::from_environment();
    let settings = Settings::of(step.inputs::<Inputs>()?)?;
    let root = std::env::current_dir().map_err(|error| Failure::internal(format!("could not find the work directory: {error}")))?;
    run_in(&step, &settings, &root)
}

/// Waits for the network and for nothing else, so one thread is enough. A signal ends the program as it ends any other: what it made lies under names that
/// nobody looks for.
pub(crate) fn run_in(step: &Step, settings: &Settings, root: &Path) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("could not start: {error}")))?;
    runtime.block_on(async {
        match &settings.action {
            Action::Upload(wanted) => upload::upload(settings, wanted, root, step).await,
            Action::Download(wanted) => download::download(settings, wanted, root, step).await,
        }
    })
}

#[cfg(test)]
mod tests;
