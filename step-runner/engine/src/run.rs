//! A run: the machine that turns a plan into a result, one event at a time.

use crate::effect::Effect;
use crate::event::Event;
use step_model::plan::Plan;
use step_model::result::{Failure, ResultTree, Status, StepId, StepResult};
use step_model::time::{Deadline, Now};

/// Ids and jitter come from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

/// A job that runs.
#[derive(Debug)]
pub struct Run {}

impl Run {
    pub fn start(_plan: Plan, _seed: Seed, _now: Now) -> (Self, Vec<Effect>) {
        todo!()
    }

    /// Total: any event, at any time, without a panic.
    pub fn on(&mut self, _event: Event, _now: Now) -> Vec<Effect> {
        todo!()
    }

    /// `on(Event::Woken, ..)` is due no later than this.
    pub fn next_deadline(&self) -> Option<Deadline> {
        todo!()
    }

    pub fn is_finished(&self) -> bool {
        todo!()
    }

    /// The outcome of the whole job: final when finished, `Running` before.
    pub fn status(&self) -> Status {
        todo!()
    }

    /// Why the job did not succeed: kind, and the original's text (`step "a": step "b": exec: exit status 1`).
    pub fn failure(&self) -> Option<&Failure> {
        todo!()
    }

    /// The step whose failure failed the job (the innermost), if any.
    pub fn failed_step(&self) -> Option<StepId> {
        todo!()
    }

    /// Complete at any moment; a view, not a copy.
    pub fn result(&self) -> ResultView<'_> {
        todo!()
    }
}

/// The result of a run as it is now.
#[derive(Debug, Clone, Copy)]
pub struct ResultView<'a> {
    #[expect(dead_code, reason = "skeleton")]
    run: &'a Run,
}

impl ResultTree for ResultView<'_> {
    fn node(&self, _id: StepId) -> StepResult {
        todo!()
    }

    fn children(&self, _id: StepId) -> Vec<StepId> {
        todo!()
    }
}

impl ResultView<'_> {
    /// What a reporter needs to say about a step, without building its environment: cheap.
    pub fn headline(&self, _id: StepId) -> Headline {
        todo!()
    }
}

/// A step in one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    pub name: std::sync::Arc<str>,
    /// `None` at the root.
    pub parent: Option<StepId>,
    /// 0 at the root.
    pub depth: usize,
    pub what: Kind,
    pub status: Status,
    pub failure: Option<Failure>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Expanded, where the step came so far. Sensitive arguments are marked.
    pub command: Vec<step_model::value::Value>,
    pub work_dir: Option<step_model::value::Value>,
    pub start: Option<step_model::time::Timestamp>,
    pub end: Option<step_model::time::Timestamp>,
    pub usage: Option<step_model::result::Usage>,
    /// The failure is allowed (`allow_failure`).
    pub allowed_to_fail: bool,
}

/// What a step is, as a person would say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Exec,
    Sequence,
    Script,
    /// Not loaded (yet).
    Unknown,
}
