//! How a run ended becomes how the program ends.

use super::signals::Signal;
use step_console::exit::Exit;
use step_model::result::{Failure, FailureKind, Status};

/// The exit code of a job. `own`: that of the step that failed, when it is to be passed on.
pub fn exit(status: Status, failure: Option<&Failure>, signal: Option<Signal>, own: Option<i32>) -> Exit {
    if status == Status::Success {
        return Exit::Done;
    }
    let kind = failure.map(|failure| failure.kind);
    match (kind, signal) {
        (Some(FailureKind::Timeout), _) => Exit::TimedOut,
        (Some(FailureKind::Cancelled), signal) => signal.map_or(Exit::Interrupted, Signal::exit),
        (Some(FailureKind::BadInput), _) => Exit::BadInput,
        (Some(FailureKind::Refused), _) => Exit::Refused,
        (Some(FailureKind::StepFailure), _) => match own.and_then(|code| u8::try_from(code).ok()) {
            Some(code @ 1..) => Exit::OfStep(code),
            _ => Exit::Failed,
        },
        (Some(FailureKind::Internal | FailureKind::Interrupted), _) => Exit::Fault,
        (None, Some(signal)) => signal.exit(),
        (None, None) if status == Status::Failure => Exit::Failed,
        (None, None) => Exit::Fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: FailureKind, signal: Option<Signal>, own: Option<i32>) -> u8 {
        exit(Status::Failure, Some(&Failure { kind, message: String::new() }), signal, own).code()
    }

    #[test]
    fn every_kind_of_failure_has_its_exit_code() {
        assert_eq!(exit(Status::Success, None, Some(Signal::Interrupt), None), Exit::Done);
        assert_eq!(failed(FailureKind::StepFailure, None, None), 1);
        assert_eq!(failed(FailureKind::BadInput, None, None), 3);
        assert_eq!(failed(FailureKind::Refused, None, None), 4);
        assert_eq!(failed(FailureKind::Internal, None, None), 70);
        assert_eq!(failed(FailureKind::Timeout, Some(Signal::Interrupt), None), 124);
        let signals = [Signal::Interrupt, Signal::Terminate, Signal::HangUp];
        assert_eq!(signals.map(|signal| failed(FailureKind::Cancelled, Some(signal), None)), [130, 143, 129]);
    }

    #[test]
    fn the_own_code_of_a_step_is_passed_on_when_it_is_one() {
        assert_eq!(failed(FailureKind::StepFailure, None, Some(7)), 7);
        assert_eq!(failed(FailureKind::StepFailure, None, Some(-1)), 1);
        assert_eq!(failed(FailureKind::StepFailure, None, Some(0)), 1);
        assert_eq!(failed(FailureKind::Timeout, None, Some(7)), 124);
    }
}
