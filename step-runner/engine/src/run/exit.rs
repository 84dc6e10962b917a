//! The end of a process in the words of the original.

use crate::event::Exit;
use crate::run::frame::{Reason, Stop};
use step_model::result::{Failure, FailureKind};

/// Why a process that ended did not succeed; `None`: it did. A process that was stopped did not, whatever it says. `reached`: the limit that it came
/// to. The text ends as callers need it, with what the system said.
pub(super) fn failure(exit: Exit, stopped: Option<Stop>, log_fault: &str, reached: Option<&str>) -> Option<Failure> {
    let Some(stop) = stopped else {
        let message = text(exit)?;
        let message = reached.map_or_else(|| message.clone(), |reached| format!("{reached}: {message}"));
        return Some(Failure { kind: FailureKind::StepFailure, message: format!("exec: {message}") });
    };
    let message = match text(exit) {
        Some(message) if stop.reason != Reason::LogFailed => message,
        _ => stop_text(stop, log_fault),
    };
    Some(Failure { kind: stop_kind(stop), message: format!("exec: {message}") })
}

/// Why a step that would have run did not begin.
pub(super) fn not_begun(stop: Stop, log_fault: &str) -> Failure {
    Failure { kind: stop_kind(stop), message: stop_text(stop, log_fault) }
}

pub(super) fn stop_kind(stop: Stop) -> FailureKind {
    match stop.reason {
        Reason::Cancelled => FailureKind::Cancelled,
        Reason::Timeout => FailureKind::Timeout,
        Reason::LogFailed => FailureKind::Internal,
    }
}

fn stop_text(stop: Stop, log_fault: &str) -> String {
    match stop.reason {
        Reason::Cancelled => "context canceled".into(),
        Reason::Timeout => "context deadline exceeded".into(),
        Reason::LogFailed => format!("writing to stdout: {log_fault}"),
    }
}

/// `exit status 3`, `signal: killed`; `None` for success.
fn text(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("exit status {code}")),
        Exit::Signal(number) => {
            Some(signal_name(number).map_or_else(|| format!("signal: signal {number}"), |name| format!("signal: {name}")))
        }
    }
}

/// The names that Go prints, by the numbers of Linux.
fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "hangup",
        2 => "interrupt",
        3 => "quit",
        4 => "illegal instruction",
        5 => "trace/breakpoint trap",
        6 => "aborted",
        7 => "bus error",
        8 => "floating point exception",
        9 => "killed",
        10 => "user defined signal 1",
        11 => "segmentation fault",
        12 => "user defined signal 2",
        13 => "broken pipe",
        14 => "alarm clock",
        15 => "terminated",
        25 => "file size limit exceeded",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_described_as_the_original_does() {
        let message = |exit| failure(exit, None, "", None).map(|failure| failure.message);
        assert_eq!(message(Exit::Code(0)), None);
        assert_eq!(message(Exit::Code(7)).as_deref(), Some("exec: exit status 7"));
        assert_eq!(message(Exit::Signal(9)).as_deref(), Some("exec: signal: killed"));
        assert_eq!(message(Exit::Signal(34)).as_deref(), Some("exec: signal: signal 34"));
        let reached = failure(Exit::Code(137), None, "", Some("out of memory (the limit is 64MiB)")).map(|failure| failure.message);
        assert_eq!(reached.as_deref(), Some("exec: out of memory (the limit is 64MiB): exit status 137"));
    }

    #[test]
    fn a_stopped_process_that_ends_well_was_stopped_all_the_same() {
        let stop = Stop { reason: Reason::Timeout, at_once: false };
        let expected = Failure { kind: FailureKind::Timeout, message: "exec: context deadline exceeded".into() };
        assert_eq!(failure(Exit::Code(0), Some(stop), "", None), Some(expected));
    }
}
