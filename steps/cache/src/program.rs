//! `step-runner-steps cache`: what the host starts.

use crate::inputs::Inputs;
use crate::settings::{Action, Settings};
use crate::store::Store;
use crate::{restore, save};
use std::path::Path;
use std::process::ExitCode;
use step_sdk::{Failure, Step, say};

/// Carries out what the words behind `step-runner-steps cache` ask for: there are none.
pub fn main(words: &[String]) -> ExitCode {
    step_sdk::end(match words {
        [] => start(),
        [word, ..] => {
            Err(Failure::bad_input(format!("`{word}` is not known here")).with_hint("this is a step, `builtin://cache`: it takes no words"))
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
    // A second one is no fault: whoever was first has chosen.
    let _chosen = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("could not start: {error}")))?;
    runtime.block_on(async {
        settings.warnings.iter().for_each(|warning| say(&format!("WARNING: {warning}")));
        let store = Store::open(&settings.store, settings.timeout).map_err(|trouble| Failure::step(trouble.to_string()))?;
        match settings.action {
            Action::Restore => restore::restore(settings, root, &store, step).await,
            Action::Archive => save::save(settings, root, &store, step).await,
        }
    })
}

#[cfg(test)]
mod tests;
