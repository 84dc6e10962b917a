//! A job that ended elsewhere, as a report tells of it.

use crate::report::outline::Outline;
use step_client::JobStatus;
use step_client::wire::result::OwnedTree;
use step_engine::run::{Headline, Kind};
use step_model::document::{Action, Body};
use step_model::result::{Failure, FailureKind, ResultTree as _, Status, StepId, StepResult};

/// Its status, and its result tree where the agent has one.
#[derive(Debug)]
pub struct EndedJob {
    pub tree: OwnedTree,
    status: Status,
    failure: Option<Failure>,
    parents: Vec<Option<StepId>>,
}

impl EndedJob {
    /// `tree`: `None` at agents of GitLab, which have none.
    pub fn new(status: &JobStatus, tree: Option<OwnedTree>) -> Self {
        let tree = tree.unwrap_or_else(|| OwnedTree::of(bare(status)));
        let failure = (status.status != Status::Success).then(|| Failure {
            // An agent that does not know why has lost the job.
            kind: status.kind.unwrap_or(FailureKind::Interrupted),
            message: status.outcome().into_result().err().map(|failure| failure.to_string()).unwrap_or_default(),
        });
        let mut parents = vec![None; tree.len()];
        for parent in (0..tree.len()).filter_map(|id| u32::try_from(id).ok()).map(StepId) {
            for child in tree.children(parent) {
                parents[child.0 as usize] = Some(parent);
            }
        }
        Self { tree, status: status.status, failure, parents }
    }

    /// All steps, parents before their children, in the order in which they ran.
    pub fn steps(&self) -> Vec<StepId> {
        let (mut open, mut steps) = (vec![StepId::ROOT], Vec::new());
        while let Some(step) = open.pop() {
            steps.push(step);
            open.extend(self.tree.children(step).into_iter().rev());
        }
        steps
    }
}

/// A node that says no more than the status does.
fn bare(status: &JobStatus) -> StepResult {
    let mut root = step_client::wire::result::read_message(&[])
        .map(|tree| tree.node(StepId::ROOT))
        .unwrap_or_else(|_| unreachable!("an empty message is one"));
    (root.status, root.start, root.end) = (status.status, status.start, status.end);
    root
}

impl Outline for EndedJob {
    fn status(&self) -> Status {
        self.status
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The last one on every level: a job ends with the step that fails it.
    fn failed_step(&self) -> Option<StepId> {
        self.failure.as_ref()?;
        let fails = |step: &StepId| {
            let node = self.tree.node(*step);
            !node.allowed_to_fail && matches!(node.status, Status::Failure | Status::Cancelled)
        };
        let below = |step: &StepId| self.tree.children(*step).into_iter().rev().find(fails);
        std::iter::successors(below(&StepId::ROOT), below).last()
    }

    fn headline(&self, step: StepId) -> Headline {
        let node = self.tree.node(step);
        let parent = self.parents[step.0 as usize];
        let depth = std::iter::successors(parent, |parent| self.parents[parent.0 as usize]).count();
        let is_over = |code: &i32| *code != -1;
        Headline {
            what: kind(&node, !self.tree.children(step).is_empty()),
            parent,
            depth,
            exit_code: node.exec.as_ref().map(|exec| exec.exit_code).filter(is_over),
            signal: node.exec.as_ref().and_then(|exec| exec.signal),
            command: node.exec.as_ref().map(|exec| exec.command.clone()).unwrap_or_default(),
            work_dir: node.exec.as_ref().map(|exec| exec.work_dir.clone()),
            name: node.name,
            status: node.status,
            failure: node.failure,
            start: node.start,
            end: node.end,
            usage: node.usage,
            allowed_to_fail: node.allowed_to_fail,
            limits: node.limits,
            filtered: node.filtered,
            trace: node.trace,
        }
    }

    fn children(&self, step: StepId) -> Vec<StepId> {
        self.tree.children(step)
    }
}

fn kind(node: &StepResult, has_children: bool) -> Kind {
    let is_script = node.step.as_ref().is_some_and(|step| matches!(step.action, Action::Script(_) | Action::ScriptLegacy(_)));
    match node.document.as_deref().map(|document| &document.definition.body) {
        Some(Body::Exec(_)) => Kind::Exec,
        Some(Body::Sequence(_)) => Kind::Sequence,
        None if is_script => Kind::Script,
        None if has_children => Kind::Sequence,
        None if node.exec.is_some() => Kind::Exec,
        None => Kind::Unknown,
    }
}
