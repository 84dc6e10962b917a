//! The words that `step-agent` understands.

use std::ffi::OsString;
use std::path::PathBuf;

pub const HELP: &str = "\
Runs steps where it is put: the part of step-runner that works inside a container or a machine.

Usage: step-agent COMMAND

Commands:
  serve [--stdio] [--log stamped|raw] [--level 0.12|0.44] [--replace] [DIR]
                            Answer callers on DIR/step-runner.sock, or one caller on standard input and output
  proxy [--socket PATH]     Carry standard input and output to the socket of an agent, and back
  bootstrap DIR             Put this program into a directory

Options:
  -h, --help     Print help
  -V, --version  Print version
";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Version,
    Help,
    Serve(Serve),
    Proxy {
        socket: Option<PathBuf>,
    },
    /// Into a directory.
    Bootstrap(PathBuf),
    /// To a file.
    BootstrapFile(PathBuf),
    /// Started by `serve`.
    Job,
}

/// What was said about serving; the rest is as step-runner has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Serve {
    pub directory: Option<PathBuf>,
    pub socket: Option<PathBuf>,
    pub stdio: bool,
    pub raw: bool,
    pub level_of_2025: bool,
    pub replace: bool,
    /// Beside it (`steps serve CMD`).
    pub command: Vec<OsString>,
}

/// Words that mean nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    #[error("a command is missing")]
    NoCommand,
    #[error("there is no command `{0}`")]
    UnknownCommand(String),
    #[error("there is no option `{0}` here")]
    UnknownOption(String),
    #[error("`{0}` needs a value")]
    NoValue(String),
    #[error("`{0}` cannot be `{1}`")]
    BadValue(&'static str, String),
    #[error("`{0}` needs a path")]
    NoPath(&'static str),
    #[error("`{0}` is one word too many")]
    TooMany(String),
}

impl Command {
    /// What was asked for. The first word is the name of the program.
    /// # Errors
    /// The words are not a command.
    pub fn of(words: impl IntoIterator<Item = OsString>) -> Result<Self, Misuse> {
        let mut words = Words(words.into_iter().skip(1).collect::<Vec<_>>().into_iter());
        let first = words.0.next().ok_or(Misuse::NoCommand)?;
        let command = match first.to_str() {
            Some("-V" | "--version") => Self::Version,
            Some("-h" | "--help" | "help") => Self::Help,
            Some("serve") => return words.serve(false).map(Self::Serve),
            Some("proxy") => Self::Proxy { socket: words.socket()? },
            Some("bootstrap") => Self::Bootstrap(words.path("bootstrap")?),
            Some("job") => Self::Job,
            Some("steps") => return words.steps(),
            _ => return Err(Misuse::UnknownCommand(first.to_string_lossy().into_owned())),
        };
        words.end(command)
    }
}

/// What is left of the command line.
struct Words(std::vec::IntoIter<OsString>);

impl Words {
    /// As GitLab's runner calls gitlab-runner-helper.
    fn steps(mut self) -> Result<Command, Misuse> {
        let word = self.0.next().ok_or(Misuse::NoCommand)?;
        match word.to_str() {
            Some("serve") => self.serve(true).map(Command::Serve),
            Some("proxy") => {
                let socket = self.socket()?;
                self.end(Command::Proxy { socket })
            }
            Some("bootstrap") => {
                let file = self.path("bootstrap")?;
                self.end(Command::BootstrapFile(file))
            }
            _ => Err(Misuse::UnknownCommand(format!("steps {}", word.to_string_lossy()))),
        }
    }

    fn serve(mut self, is_helper: bool) -> Result<Serve, Misuse> {
        let mut serve = Serve::default();
        while let Some(word) = self.0.next() {
            match word.to_str() {
                Some("--socket") if is_helper => serve.socket = Some(self.value("--socket")?.into()),
                Some("--stdio") if !is_helper => serve.stdio = true,
                Some("--replace") if !is_helper => serve.replace = true,
                Some("--log") if !is_helper => serve.raw = self.choice("--log", ["stamped", "raw"])?,
                Some("--level") if !is_helper => serve.level_of_2025 = self.choice("--level", ["0.44", "0.12"])?,
                Some(option) if option.starts_with('-') => return Err(Misuse::UnknownOption(option.to_owned())),
                _ if is_helper => {
                    serve.command = std::iter::once(word).chain(self.0.by_ref()).collect();
                }
                _ if serve.directory.is_some() => return Err(Misuse::TooMany(word.to_string_lossy().into_owned())),
                _ => serve.directory = Some(word.into()),
            }
        }
        Ok(serve)
    }

    fn value(&mut self, option: &str) -> Result<OsString, Misuse> {
        self.0.next().ok_or_else(|| Misuse::NoValue(option.to_owned()))
    }

    /// Whether it is the second.
    fn choice(&mut self, option: &'static str, choices: [&str; 2]) -> Result<bool, Misuse> {
        let value = self.value(option)?;
        let position = choices.iter().position(|choice| value == *choice);
        position.map(|position| position == 1).ok_or_else(|| Misuse::BadValue(option, value.to_string_lossy().into_owned()))
    }

    fn socket(&mut self) -> Result<Option<PathBuf>, Misuse> {
        match self.0.next() {
            Some(word) if word == "--socket" => Ok(Some(self.value("--socket")?.into())),
            Some(word) => Err(Misuse::TooMany(word.to_string_lossy().into_owned())),
            None => Ok(None),
        }
    }

    fn path(&mut self, command: &'static str) -> Result<PathBuf, Misuse> {
        self.0.next().map(PathBuf::from).ok_or(Misuse::NoPath(command))
    }

    fn end(mut self, command: Command) -> Result<Command, Misuse> {
        match self.0.next() {
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
        assert_eq!(of("step-agent job"), Ok(Command::Job));
        assert_eq!(of("step-agent bootstrap /x"), Ok(Command::Bootstrap("/x".into())));
        assert_eq!(of("step-agent proxy --socket /s"), Ok(Command::Proxy { socket: Some("/s".into()) }));
        let serve = Serve { directory: Some("/d".into()), stdio: true, raw: true, ..Serve::default() };
        assert_eq!(of("step-agent serve --stdio --log raw /d"), Ok(Command::Serve(serve)));
    }

    #[test]
    fn the_runner_calls_it_as_its_helper() {
        let serve = Serve { socket: Some("/s".into()), command: vec!["sh".into(), "-c".into()], ..Serve::default() };
        assert_eq!(of("gitlab-runner-helper steps serve --socket /s sh -c"), Ok(Command::Serve(serve)));
        assert_eq!(of("gitlab-runner-helper steps bootstrap /f"), Ok(Command::BootstrapFile("/f".into())));
        assert_eq!(of("gitlab-runner-helper steps proxy"), Ok(Command::Proxy { socket: None }));
    }

    #[test]
    fn words_that_mean_nothing_are_named() {
        let complaint = |line: &str| of(line).unwrap_err().to_string();
        assert_eq!(complaint("step-agent"), "a command is missing");
        assert_eq!(complaint("step-agent srve"), "there is no command `srve`");
        assert_eq!(complaint("step-agent --version now"), "`now` is one word too many");
        assert_eq!(complaint("step-agent serve --gracious"), "there is no option `--gracious` here");
        assert_eq!(complaint("step-agent serve --log"), "`--log` needs a value");
        assert_eq!(complaint("step-agent serve --log pretty"), "`--log` cannot be `pretty`");
        assert_eq!(complaint("step-agent bootstrap"), "`bootstrap` needs a path");
        assert_eq!(complaint("step-agent steps dance"), "there is no command `steps dance`");
    }
}
