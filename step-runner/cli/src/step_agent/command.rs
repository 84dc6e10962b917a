//! The words that `step-agent` understands.

use std::ffi::OsString;

pub const HELP: &str = "\
Runs steps where it is put: the part of step-runner that works inside a container or a machine.

Usage: step-agent COMMAND

Options:
  -h, --help     Print help
  -V, --version  Print version
";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Version,
    Help,
}

/// Words that mean nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    #[error("a command is missing")]
    NoCommand,
    #[error("there is no command `{0}`")]
    UnknownCommand(String),
    #[error("`{0}` is one word too many")]
    TooMany(String),
}

impl Command {
    /// What was asked for. The first word is the name of the program.
    /// # Errors
    /// The words are not a command.
    pub fn of(words: impl IntoIterator<Item = OsString>) -> Result<Self, Misuse> {
        let mut words = words.into_iter().skip(1);
        let first = words.next().ok_or(Misuse::NoCommand)?;
        let command = match first.to_str() {
            Some("-V" | "--version") => Self::Version,
            Some("-h" | "--help" | "help") => Self::Help,
            _ => return Err(Misuse::UnknownCommand(first.to_string_lossy().into_owned())),
        };
        match words.next() {
            Some(more) => Err(Misuse::TooMany(more.to_string_lossy().into_owned())),
            None => Ok(command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Command, Misuse> {
        Command::of(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn words_become_a_command() {
        assert_eq!(of("step-agent --version"), Ok(Command::Version));
        assert_eq!(of("step-agent -h"), Ok(Command::Help));
    }

    #[test]
    fn words_that_mean_nothing_are_named() {
        let complaint = |line: &str| of(line).unwrap_err().to_string();
        assert_eq!(complaint("step-agent"), "a command is missing");
        assert_eq!(complaint("step-agent srve"), "there is no command `srve`");
        assert_eq!(complaint("step-agent --version now"), "`now` is one word too many");
    }
}
