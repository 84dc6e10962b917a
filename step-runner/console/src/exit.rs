//! How a command ends: its exit code, and what is said when it could not do its work.

use std::fmt;

/// How a command ended. The numbers are a promise to scripts: see `docs/compatibility.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    /// A job or a step failed, or a command that looks for something (`test`, `config check`) found it.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// A file, a payload, a definition or a configuration is wrong, or is not there.
    BadInput,
    /// Refused by lock or policy.
    Refused,
    /// Something that is not the fault of the input: a bug of ours, a full disk, no memory.
    Fault,
    TimedOut,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// SIGHUP.
    HungUp,
    /// `--pass-exit-code`: the failed step's own.
    OfStep(u8),
}

impl Exit {
    /// The number that the caller sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::BadInput => 3,
            Self::Refused => 4,
            Self::Fault => 70,
            Self::TimedOut => 124,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::OfStep(code) => code,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command ended without having done its work: one problem or several. Printed by `main`; any other error is a fault of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub exit: Exit,
    pub problems: Vec<Complaint>,
}

/// What is wrong, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// A lowercase fragment without a final period.
    pub message: String,
    /// Printed on a line of its own each.
    pub hints: Vec<String>,
}

impl Complaint {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new() }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl Stop {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, problems: vec![Complaint::new(message)] }
    }

    /// Several problems at once.
    pub fn all(exit: Exit, problems: Vec<Complaint>) -> Self {
        Self { exit, problems }
    }

    /// Everything has been said already.
    pub fn told(exit: Exit) -> Self {
        Self { exit, problems: Vec::new() }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::new(Exit::BadInput, message)
    }

    /// Adds a hint to the last problem.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(last) = self.problems.last_mut() {
            last.hints.push(hint.into());
        }
        self
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { "; " }, problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Stop {}
