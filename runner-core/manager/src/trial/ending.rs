//! How jobs ended becomes how the program ends.

use crate::trial::signals::Signal;
use step_console::exit::Exit;
use step_model::result::{FailureKind, Status};

/// The exit code for one job.
pub fn exit(status: Status, kind: Option<FailureKind>, signal: Option<Signal>) -> Exit {
    if status == Status::Success {
        return Exit::Done;
    }
    match (kind, signal) {
        (Some(FailureKind::Timeout), _) => Exit::TimedOut,
        (Some(FailureKind::Cancelled), signal) => signal.map_or(Exit::Interrupted, Signal::exit),
        (Some(FailureKind::BadInput), _) => Exit::BadInput,
        (Some(FailureKind::Refused), _) => Exit::Refused,
        (Some(FailureKind::StepFailure), _) => Exit::Failed,
        (Some(FailureKind::Internal | FailureKind::Interrupted), _) => Exit::Fault,
        (None, Some(signal)) => signal.exit(),
        (None, None) if status == Status::Failure => Exit::Failed,
        (None, None) => Exit::Fault,
    }
}

/// That of several jobs: the gravest. A fault of ours comes first, since it says that a job was not really tried.
pub fn gravest(exits: impl IntoIterator<Item = Exit>) -> Exit {
    let order = |exit: &Exit| match exit {
        Exit::Done => 0,
        Exit::Failed | Exit::OfStep(_) => 1,
        Exit::TimedOut => 2,
        Exit::Refused => 3,
        Exit::BadInput => 4,
        Exit::Usage => 5,
        Exit::Interrupted => 6,
        Exit::Terminated | Exit::HungUp => 7,
        Exit::Fault => 8,
    };
    exits.into_iter().max_by_key(order).unwrap_or(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_failure_has_its_exit_code() {
        let failed = |kind| exit(Status::Failure, Some(kind), None).code();
        assert_eq!(exit(Status::Success, None, Some(Signal::Interrupt)), Exit::Done);
        assert_eq!(
            [FailureKind::StepFailure, FailureKind::BadInput, FailureKind::Refused, FailureKind::Internal, FailureKind::Timeout]
                .map(failed),
            [1, 3, 4, 70, 124]
        );
        assert_eq!(exit(Status::Cancelled, Some(FailureKind::Cancelled), Some(Signal::Terminate)).code(), 143);
    }

    #[test]
    fn of_several_jobs_the_gravest_counts() {
        assert_eq!(gravest([Exit::Done, Exit::Failed, Exit::Done]), Exit::Failed);
        assert_eq!(gravest([Exit::Fault, Exit::Interrupted]), Exit::Fault);
        assert_eq!(gravest([]), Exit::Done);
    }
}
