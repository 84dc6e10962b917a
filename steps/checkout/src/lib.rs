//! `builtin://checkout`: brings a job's work tree to its commit.
//!
//! What decides and what acts are apart: [`settings`] checks the inputs, [`planning`] says from them and the [`tree`] as it was found which commands
//! bring it to the commit, and what follows when one fails; [`checkout`] looks, carries out, and decides nothing.

mod checkout;
mod credentials;
mod git;
mod inputs;
pub mod planning;
pub mod remote;
pub mod settings;
pub mod tree;

use std::process::ExitCode;
use step_sdk::{Failure, Step};

/// The `func.yml` of `builtin://checkout`.
pub const DEFINITION: &str = include_str!("../func.yml");

/// Carries out what the words behind `step-runner-steps checkout` ask for.
pub fn main(words: &[String]) -> ExitCode {
    step_sdk::end(match words {
        [] => checkout::run(&Step::from_environment()),
        [word, directory] if word == "clean-up" => checkout::clean_up(directory),
        [word, ..] => Err(Failure::bad_input(format!("`{word}` is not known here"))
            .with_hint("this is a step, `builtin://checkout`; `clean-up DIRECTORY` removes what a killed one left")),
    })
}
