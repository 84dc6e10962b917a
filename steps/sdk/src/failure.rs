//! Why a step did not do what it was asked, in the words of the job's result.

pub use ci_proto::step_runner::failure::Kind as FailureKind;
use std::fmt;
use std::process::ExitCode;

/// What went wrong, for a person, and of what kind it is, for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// What and why: a lowercase fragment without a final period. Nothing secret.
    pub message: String,
    /// The way out, when there is one.
    pub hint: Option<String>,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Of what was asked for: nothing else than another input helps.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::new(FailureKind::BadInput, message)
    }

    /// Something that the step needed was not there or did not work.
    pub fn step(message: impl Into<String>) -> Self {
        Self::new(FailureKind::StepFailure, message)
    }

    /// A rule of this machine or of its owner forbids it.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Refused, message)
    }

    /// Something that must not happen, whoever asks for what.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Internal, message)
    }

    pub fn cancelled() -> Self {
        Self::new(FailureKind::Cancelled, "cancelled")
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the program ends with, as every command of ours.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            FailureKind::BadInput => 3,
            FailureKind::Refused => 4,
            FailureKind::Internal => 70,
            FailureKind::Timeout => 124,
            FailureKind::Cancelled => 143,
            FailureKind::Unspecified | FailureKind::StepFailure | FailureKind::Interrupted => 1,
        }
    }
}

/// Message and hint, as they stand in the log.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// The end of a program: a failure is said in the log, and its kind becomes the exit code.
pub fn end(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            crate::say(&failure.to_string());
            failure.exit_code().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_why_and_the_way_out() {
        let failure = Failure::bad_input("`memory` is `lots`, expected a size").with_hint("write `512m` or `2g`");
        assert_eq!(failure.to_string(), "error: `memory` is `lots`, expected a size\n hint: write `512m` or `2g`");
        assert_eq!(failure.exit_code(), 3);
    }
}
