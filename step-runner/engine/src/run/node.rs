//! One node of the result tree as it is kept: what is large is shared with documents, scopes and other nodes.

use crate::event::Exit;
use crate::run::{Kind, graft};
use std::sync::Arc;
use step_model::document::Step;
use step_model::environment::Snapshot;
use step_model::limits::AppliedLimit;
use step_model::plan::PlannedDocument;
use step_model::result::{Failure, Status, StepId, StepResult, Usage};
use step_model::time::{Now, Timestamp};
use step_model::value::{Object, Value};

#[derive(Debug)]
pub(super) struct Node {
    /// The root is its own parent.
    pub parent: StepId,
    pub depth: u32,
    pub first_child: Option<StepId>,
    pub last_child: Option<StepId>,
    pub next_sibling: Option<StepId>,
    /// `None` at the root.
    pub step: Option<Arc<Step>>,
    /// `None` for a script.
    pub planned: Option<Arc<PlannedDocument>>,
    pub kind: Kind,
    /// As the caller gave them. `None`: none.
    pub inputs: Option<Arc<Object>>,
    pub given: Snapshot,
    /// After the environment of the definition was applied.
    pub applied: Option<Snapshot>,
    pub status: Status,
    pub outputs: Option<Arc<Object>>,
    pub exports: Option<Arc<Object>>,
    pub exec: Option<Box<Exec>>,
    pub start: Timestamp,
    pub end: Option<Timestamp>,
    pub failure: Option<Box<Failure>>,
    pub allowed_to_fail: bool,
    /// What the step left out of the results below it.
    pub filtered: Option<Arc<str>>,
    /// The node is one of a result that came back from another environment: this is all of it.
    pub grafted: Option<Box<StepResult>>,
}

/// The command of a node.
#[derive(Debug)]
pub(super) struct Exec {
    pub command: Box<[Value]>,
    /// As it was given; the job's where nothing was.
    pub work_dir: Value,
    /// `None` while it runs, and when it never started.
    pub exit: Option<Exit>,
    pub usage: Option<Usage>,
    /// What became of its limits. `None`: it has none, or it is not known yet.
    pub limits: Option<Box<[AppliedLimit]>>,
}

impl Node {
    /// A node of which nothing is known but that it has begun.
    pub fn begun(kind: Kind, given: Snapshot, now: Now) -> Self {
        Self {
            parent: StepId::ROOT,
            depth: 0,
            first_child: None,
            last_child: None,
            next_sibling: None,
            step: None,
            planned: None,
            kind,
            inputs: None,
            given,
            applied: None,
            status: Status::Running,
            outputs: None,
            exports: None,
            exec: None,
            start: now.wall,
            end: None,
            failure: None,
            allowed_to_fail: false,
            filtered: None,
            grafted: None,
        }
    }

    pub fn name(&self) -> Arc<str> {
        match (&self.grafted, &self.step) {
            (Some(grafted), _) => Arc::clone(&grafted.name),
            (None, Some(step)) => Arc::clone(&step.name),
            (None, None) => Arc::from(""),
        }
    }

    pub fn exit(&self) -> Option<Exit> {
        match &self.grafted {
            Some(grafted) => graft::exit_of(grafted),
            None => self.exec.as_ref()?.exit,
        }
    }
}
