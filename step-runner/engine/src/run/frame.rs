//! One level of what is being done right now: the frames from the root to the step that runs are the whole live state of a job.

use crate::effect::{LoadId, StepFiles};
use crate::resolve::Resolver;
use crate::run::invocation::{Checked, Invocation};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::{Body, Sequence, When};
use step_model::environment::Scope;
use step_model::limits::Limits;
use step_model::plan::PlannedDocument;
use step_model::result::{Failure, StepId};
use step_model::time::Deadline;
use step_model::value::Object;

/// A step that has begun and not ended.
#[derive(Debug)]
pub(super) struct Frame {
    pub id: StepId,
    /// `None` for a script.
    pub planned: Option<Arc<PlannedDocument>>,
    /// With defaults: `inputs.*`.
    pub inputs: Arc<Object>,
    /// The variables of the step after its definition's were applied.
    pub scope: Option<Arc<Scope>>,
    pub files: Files,
    /// The steps that are handed over to it, resolved.
    pub inner: Option<Arc<PlannedDocument>>,
    /// Runs whatever happened, and is not disturbed by a stop that came later than its begin.
    pub is_always: bool,
    /// Reached through a reference that is computed: such a step may come back to a definition that is running.
    pub through_dynamic: bool,
    pub deadline: Option<Deadline>,
    /// Of the step and of all that it is in.
    pub limits: Limits,
    /// Set once the step should end: no more steps begin in it but those that always run.
    pub stop: Option<Stop>,
    /// The index of the step of a sequence that is looked at next.
    pub next: usize,
    /// Steps of a sequence that have ended; the last of a name counts.
    pub results: BTreeMap<Arc<str>, StepId>,
    /// The first failure in a sequence that is not allowed.
    pub failure: Option<Failed>,
}

/// A failure and the innermost step that it comes from.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    pub failure: Failure,
    pub step: StepId,
}

/// The output and export file of a step. They exist only when an expression names them: nobody could find them otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files {
    pub number: u32,
    pub named: bool,
    /// Asked for, and neither read nor removed.
    pub made: bool,
}

/// Why a step should end before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop {
    pub reason: Reason,
    /// Without asking and waiting.
    pub at_once: bool,
}

/// The later ones leave less that still runs, so they win over those before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Timeout,
    Cancelled,
    LogFailed,
}

/// What the run waits for. It is about the innermost frame.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing: the next step can begin. Never between two events.
    Ready,
    /// A definition that a step of the innermost frame, a sequence, refers to.
    Loading(Box<Loading>),
    /// The files of the innermost frame, a sequence. Then this step begins, if there is one already.
    Preparing(Option<Box<Invocation>>),
    /// The process of the innermost frame.
    Process(Process),
    /// What a step of the innermost frame hands over is being resolved.
    HandingOver(Box<HandingOver>),
    /// The files of the innermost frame, whose process has ended: well, unless a whole result was asked for.
    Reading(Option<Failure>),
    /// The root has ended.
    Finished,
}

#[derive(Debug)]
pub(super) struct Loading {
    pub load: LoadId,
    /// Of the step in its sequence.
    pub index: usize,
    /// What was there at plan time.
    pub seen: Option<Arc<PlannedDocument>>,
    pub dynamic: bool,
}

#[derive(Debug)]
pub(super) struct HandingOver {
    pub resolver: Resolver,
    /// What has passed its checks.
    pub checked: Checked,
    /// The problems of what is handed over were told before the run.
    pub is_told: bool,
}

/// A process that was asked for and has no outcome yet.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// It was asked to end, or killed, for this reason.
    pub stopped: Option<Stop>,
    /// When it is killed after it was asked.
    pub kill_at: Option<Deadline>,
    pub killed: bool,
}

impl Stop {
    /// Whether steps that always run still do.
    pub fn spares_always(self) -> bool {
        !self.at_once && self.reason != Reason::LogFailed
    }
}

impl Frame {
    pub fn root(planned: Arc<PlannedDocument>, inputs: Object, number: u32, deadline: Option<Deadline>) -> Self {
        Self {
            id: StepId::ROOT,
            planned: Some(planned),
            inputs: Arc::new(inputs),
            scope: None,
            files: Files { number, named: false, made: false },
            inner: None,
            is_always: false,
            through_dynamic: false,
            deadline,
            limits: Limits::default(),
            stop: None,
            next: 0,
            results: BTreeMap::new(),
            failure: None,
        }
    }

    pub fn sequence(&self) -> Option<&Sequence> {
        match &self.planned.as_ref()?.document.definition.body {
            Body::Sequence(sequence) => Some(sequence),
            Body::Exec(_) => None,
        }
    }

    /// Whether a step of this sequence runs after what has happened in it.
    pub fn admits(&self, when: When) -> bool {
        match (when, self.stop) {
            (_, Some(stop)) if !stop.spares_always() => false,
            (When::Always, _) => true,
            (When::OnSuccess, stop) => stop.is_none() && self.failure.is_none(),
            (When::OnFailure, None) => self.failure.is_some(),
            (When::OnFailure, Some(stop)) => self.failure.is_some() && stop.reason == Reason::Timeout,
        }
    }
}

/// Numbers of step files: each once, in an order that the seed decides. A stream of its own, so nothing else shifts it.
#[derive(Debug)]
pub(super) struct FileNumbers {
    seed: u32,
    used: u32,
}

impl FileNumbers {
    pub fn new(seed: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "both halves of the seed are folded into one")]
        let seed = (seed ^ (seed >> 32)) as u32;
        Self { seed, used: 0 }
    }

    pub fn next(&mut self) -> u32 {
        self.used = self.used.wrapping_add(1);
        self.used
    }

    /// The paths of both files.
    pub fn files(&self, dir: &str, number: u32) -> StepFiles {
        let path = |number: u32| Arc::from(format!("{dir}/step-file-{}", self.shuffled(number)));
        StepFiles { output: path(number.wrapping_mul(2)), export: path(number.wrapping_mul(2).wrapping_add(1)) }
    }

    /// A permutation of all numbers of 32 bits: each step can be undone, so no two numbers meet.
    fn shuffled(&self, number: u32) -> u32 {
        let mut mixed = number ^ self.seed;
        mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x7feb_352d);
        mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x846c_a68b);
        mixed ^ (mixed >> 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_steps_share_a_file() {
        let mut numbers = FileNumbers::new(7);
        let mut paths = BTreeSet::new();
        for _ in 0..10_000 {
            let number = numbers.next();
            let files = numbers.files("/d", number);
            assert!(paths.insert(files.output) && paths.insert(files.export));
        }
    }
}
