//! What went wrong with an engine, in sentences that say what to do.

use crate::address::Address;
use bollard::errors::Error as EngineError;
use std::time::Duration;
use step_sdk::{Failure, FailureKind};

/// Why an engine did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody answers there, or not to us.
    Gone { why: String },
    /// It takes connections and says nothing.
    Hangs { after: Duration },
    /// It answered that it does not.
    Refused { status: u16, message: String },
    /// It sent what cannot be understood.
    Strange { why: String },
}

impl Trouble {
    pub fn of(error: EngineError, timeout: Duration) -> Self {
        match error {
            EngineError::DockerResponseServerError { status_code, message } => Self::Refused { status: status_code, message },
            // In the middle of a stream the engine has no status to give.
            EngineError::DockerStreamError { error } => Self::Refused { status: 500, message: error },
            EngineError::RequestTimeoutError => Self::Hangs { after: timeout },
            EngineError::JsonDataError { message, .. } => Self::Strange { why: message },
            EngineError::JsonSerdeError { err } => Self::Strange { why: err.to_string() },
            EngineError::SocketNotFoundError(path) => Self::Gone { why: format!("there is no socket `{path}`") },
            other => Self::Gone { why: innermost(&other) },
        }
    }

    /// It has no such thing.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// It has another one of that name, or is at it already.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }

    /// `doing`: what was being done, as "start the container".
    pub fn while_doing(self, doing: &str, engine: &Address) -> Failure {
        match self {
            Self::Gone { why } => {
                let failure = Failure::step(format!("could not {doing}: the engine at {engine} does not answer: {why}"));
                let denied = why.to_ascii_lowercase().contains("permission denied");
                failure.with_hint(if denied {
                    "this user may not talk to the engine: become a member of its group (`docker`), or name another with `DOCKER_HOST`"
                } else {
                    "start the engine (`dockerd`), or name another with `DOCKER_HOST`"
                })
            }
            Self::Hangs { after } => {
                Failure::step(format!("could not {doing}: the engine at {engine} has said nothing for {} s", after.as_secs_f64()))
                    .with_hint("look at what the engine is doing (`docker info`, its log); `engine_timeout` waits longer")
            }
            Self::Refused { message, .. } if is_no_space(&message) => {
                Failure::step(format!("could not {doing}: the disk of the engine at {engine} is full: {}", one_line(&message)))
                    .with_hint("`docker system df` shows what takes the space, `docker system prune` removes what nobody uses")
            }
            Self::Refused { message, .. } => Failure::step(format!("could not {doing}: {}", one_line(&message))),
            Self::Strange { why } => Failure::new(
                FailureKind::Internal,
                format!("could not {doing}: the engine at {engine} sent what cannot be understood: {why}"),
            ),
        }
    }
}

fn is_no_space(message: &str) -> bool {
    message.contains("no space left on device") || message.contains("disk quota exceeded")
}

/// Engines answer in several lines; a message is one.
pub fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The layers of an HTTP client say that there was an error; what it was says the last.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trouble_says_what_why_and_the_way_out() {
        let engine = Address::parse("unix:///run/d.sock", None).unwrap();
        let shown = [
            Trouble::Gone { why: "No such file or directory (os error 2)".into() },
            Trouble::Gone { why: "Permission denied (os error 13)".into() },
            Trouble::Hangs { after: Duration::from_millis(1500) },
            Trouble::Refused { status: 500, message: "write /var/lib/x: no space left on device".into() },
            Trouble::Refused { status: 400, message: "bad\n thing".into() },
            Trouble::Strange { why: "expected value".into() },
        ]
        .map(|trouble| trouble.while_doing("start the container", &engine).to_string());
        insta::assert_snapshot!(shown.join("\n"), @r"
        error: could not start the container: the engine at unix:///run/d.sock does not answer: No such file or directory (os error 2)
         hint: start the engine (`dockerd`), or name another with `DOCKER_HOST`
        error: could not start the container: the engine at unix:///run/d.sock does not answer: Permission denied (os error 13)
         hint: this user may not talk to the engine: become a member of its group (`docker`), or name another with `DOCKER_HOST`
        error: could not start the container: the engine at unix:///run/d.sock has said nothing for 1.5 s
         hint: look at what the engine is doing (`docker info`, its log); `engine_timeout` waits longer
        error: could not start the container: the disk of the engine at unix:///run/d.sock is full: write /var/lib/x: no space left on device
         hint: `docker system df` shows what takes the space, `docker system prune` removes what nobody uses
        error: could not start the container: bad thing
        error: could not start the container: the engine at unix:///run/d.sock sent what cannot be understood: expected value
        ");
    }
}
