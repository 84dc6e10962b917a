//! `step-runner docker`, and `step-runner docker clean-up`: what the host starts.

use crate::address::Address;
use crate::engine::Engine;
use crate::{job, sweep};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use step_sdk::Failure;

/// Removing waits no longer for an engine that says nothing.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(20);

/// Carries out what the words behind `step-runner docker` ask for.
pub fn main(words: &[String]) -> ExitCode {
    match words.split_first() {
        None => step_sdk::delegating(|step, cancellation| async move { job::run(&step, &cancellation).await }),
        Some((word, rest)) if word == "clean-up" => step_sdk::end(runtime().and_then(|runtime| runtime.block_on(clean_up(rest)))),
        Some((word, _)) => step_sdk::end(Err(unknown(word))),
    }
}

/// One thread is enough: everything waits for the engine.
/// # Errors
/// The system gives no more descriptors.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Failure::internal(format!("could not start: {error}")))
}

/// # Errors
/// Always: says which words there are.
pub fn unknown(word: &str) -> Failure {
    Failure::bad_input(format!("`{word}` is not known here"))
        .with_hint("this is a step, `builtin://docker` or `builtin://service`; `clean-up` removes what one left")
}

/// Which engine and which step, as the words of a clean-up command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanUp {
    pub address: Address,
    pub step: String,
}

impl CleanUp {
    /// The command for the host: this program, `subcommand`, and the words that [`CleanUp::read`] reads.
    pub fn command(&self, subcommand: &str) -> Vec<String> {
        let program = std::env::current_exe().map_or_else(|_| "step-runner".into(), PathBuf::into_os_string);
        let mut words = vec![program.to_string_lossy().into_owned(), subcommand.to_owned(), "clean-up".to_owned()];
        words.extend(["--host".to_owned(), self.address.to_string(), "--step".to_owned(), self.step.clone()]);
        if let Some(directory) = self.address.certificates() {
            words.extend(["--certificates".to_owned(), directory.display().to_string()]);
        }
        words
    }

    /// # Errors
    /// The words are not those of a clean-up command.
    pub fn read(words: &[String]) -> Result<Self, Failure> {
        let (mut host, mut step, mut certificates) = (None, None, None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| Failure::bad_input(format!("`{word}` has no value")))?;
            match word.as_str() {
                "--host" => host = Some(value.as_str()),
                "--step" => step = Some(value.clone()),
                "--certificates" => certificates = Some(PathBuf::from(value)),
                other => return Err(unknown(other)),
            }
        }
        let address = match host {
            None => Address::of(|name| std::env::var(name).ok()).map_err(|error| Failure::bad_input(error.to_string()))?,
            Some(host) => {
                Address::parse(host, certificates).ok_or_else(|| Failure::bad_input(format!("`{host}` is no address of an engine")))?
            }
        };
        let step = step.ok_or_else(|| Failure::bad_input("`--step ID` says whose things are to be removed"))?;
        Ok(Self { address, step })
    }
}

/// Removes everything that one step made.
/// # Errors
/// The words make no sense, or the engine does not do it.
pub async fn clean_up(words: &[String]) -> Result<(), Failure> {
    let CleanUp { address, step } = CleanUp::read(words)?;
    let engine = Engine::at(address, CLEAN_UP_TIMEOUT)?;
    sweep::remove_step(&engine, &step).await.map_err(|trouble| trouble.while_doing("remove what the step left", engine.address()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_clean_up_command_is_read_as_it_was_written() {
        for (host, certificates) in [("unix:///run/d.sock", None), ("tcp://e:2376", Some("/certs")), ("ssh://me@host:22", None)] {
            let address = Address::parse(host, certificates.map(PathBuf::from)).unwrap();
            let clean_up = CleanUp { address, step: "1".into() };
            let command = clean_up.command("docker");
            assert_eq!(command[1..3], ["docker", "clean-up"]);
            assert_eq!(CleanUp::read(&command[3..]), Ok(clean_up));
        }
    }

    #[test]
    fn words_that_make_no_sense_are_named() {
        let complaint = |line: &str| CleanUp::read(&words(line)).unwrap_err().message;
        assert_eq!(complaint("--host unix:///a"), "`--step ID` says whose things are to be removed");
        assert_eq!(complaint("--step"), "`--step` has no value");
        assert_eq!(complaint("--step 1 --host x"), "`x` is no address of an engine");
        assert_eq!(complaint("--all 1"), "`--all` is not known here");
    }
}
