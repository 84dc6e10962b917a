//! `step-runner service`, and `step-runner service clean-up`: what the host starts.

use crate::service;
use std::process::ExitCode;
use step_docker::program::{clean_up, runtime, unknown};
use step_sdk::{Cancellation, Failure, Step};

/// Carries out what the words behind `step-runner service` ask for.
pub fn main(words: &[String]) -> ExitCode {
    step_sdk::end(runtime().and_then(|runtime| runtime.block_on(carry_out(words))))
}

async fn carry_out(words: &[String]) -> Result<(), Failure> {
    match words.split_first() {
        None => {
            let cancellation =
                Cancellation::of_signals().map_err(|error| Failure::internal(format!("could not listen to signals: {error}")))?;
            service::run(&Step::from_environment(), &cancellation).await
        }
        Some((word, rest)) if word == "clean-up" => clean_up(rest).await,
        Some((word, _)) => Err(unknown(word)),
    }
}
