//! Why a call did not succeed, as far as a caller can act on it.

use std::fmt;
use std::io;

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailed {
    /// There is no connection, so nothing was asked.
    #[error("could not reach the agent: {why}")]
    NotConnected { kind: io::ErrorKind, why: String },
    /// The connection broke. Whether the agent did what it was asked is not known.
    #[error("the connection to the agent was lost: {why}")]
    Lost { why: String },
    /// The agent does not know the method: it is an older one, or GitLab's.
    #[error("this agent cannot do that: it has no `{method}`")]
    Missing { method: &'static str },
    /// The agent answered, and did not do it.
    #[error("{message}")]
    Refused {
        code: Code,
        /// What a program can act on: `JOB_NOT_FOUND`. Agents of GitLab give none.
        reason: Option<String>,
        /// A sentence for people, in the original's words where it has them.
        message: String,
    },
}

impl CallFailed {
    /// The same call may succeed later, with nothing changed but time.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::NotConnected { kind, .. } => {
                !matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
            }
            Self::Lost { .. } => true,
            Self::Missing { .. } | Self::Refused { .. } => false,
        }
    }

    /// The agent has no job of this id, or none any more.
    pub fn is_unknown_job(&self) -> bool {
        matches!(self, Self::Refused { message, .. } if message.contains("no job with id"))
    }
}

/// The code of a gRPC status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    /// What GitLab's agent answers to everything.
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// Numbers that are not known are [`Code::Unknown`].
    pub fn of(number: i32) -> Self {
        const ALL: [Code; 17] = [
            Code::Ok,
            Code::Cancelled,
            Code::Unknown,
            Code::InvalidArgument,
            Code::DeadlineExceeded,
            Code::NotFound,
            Code::AlreadyExists,
            Code::PermissionDenied,
            Code::ResourceExhausted,
            Code::FailedPrecondition,
            Code::Aborted,
            Code::OutOfRange,
            Code::Unimplemented,
            Code::Internal,
            Code::Unavailable,
            Code::DataLoss,
            Code::Unauthenticated,
        ];
        usize::try_from(number).ok().and_then(|number| ALL.get(number).copied()).unwrap_or(Code::Unknown)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_numbers() {
        assert!((0..=16).all(|number| Code::of(number) as i32 == number));
        assert_eq!((Code::of(17), Code::of(-1)), (Code::Unknown, Code::Unknown));
    }

    #[test]
    fn only_what_can_change_by_itself_may_pass() {
        let not_connected = |kind| CallFailed::NotConnected { kind, why: String::new() };
        assert!(not_connected(io::ErrorKind::NotFound).may_pass());
        assert!(not_connected(io::ErrorKind::ConnectionRefused).may_pass());
        assert!(!not_connected(io::ErrorKind::PermissionDenied).may_pass());
        assert!(CallFailed::Lost { why: String::new() }.may_pass());
        assert!(!CallFailed::Missing { method: "Cancel" }.may_pass());
    }
}
