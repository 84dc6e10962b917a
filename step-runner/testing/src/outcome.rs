//! What came out of a case, as values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use step_engine::run::Run;
use step_model::document::StepDocument;
use step_model::result::{Failure, FailureKind, ResultTree as _, Status, StepId};
use step_model::value::Value;

/// Everything that a case can be compared with.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub succeeded: bool,
    pub failure: Option<Failure>,
    /// Of the step that failed, where its process ended with one.
    pub exit: Option<i32>,
    pub outputs: Vec<(Arc<str>, Value)>,
    /// By all steps, the last of a name.
    pub exports: BTreeMap<Arc<str>, Value>,
    /// What the steps wrote, masked.
    pub log: String,
    /// The tested step first, in the order in which they began.
    pub steps: Vec<Reached>,
    /// Of stubs, in order.
    pub calls: Vec<Call>,
    /// How often each fake was reached, by its position in the case.
    pub fakes: BTreeMap<usize, u64>,
    /// Of the paths that the case asks about.
    pub files: BTreeMap<Arc<str>, Found>,
    /// What the stage refused or could not do; a case with one of them fails.
    pub faults: Vec<String>,
    pub duration: Duration,
    /// Real processes that were started.
    pub processes: u32,
}

/// A step that began.
#[derive(Debug, Clone)]
pub struct Reached {
    /// The names on the way to it; empty for the tested step.
    pub path: Vec<Arc<str>>,
    pub succeeded: bool,
    pub exit: Option<i32>,
    pub failure: Option<Failure>,
    /// With defaults.
    pub inputs: Vec<(Arc<str>, Value)>,
    pub outputs: Vec<(Arc<str>, Value)>,
    pub exports: Vec<(Arc<str>, Value)>,
    pub env: BTreeMap<Arc<str>, Value>,
    /// `None` for a script.
    pub document: Option<Arc<StepDocument>>,
    /// The definition that ran, `dir/file`, where one did.
    pub digest: Option<step_model::reference::Digest>,
}

/// A call of a stub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: Arc<str>,
    pub args: Vec<Arc<str>>,
    pub dir: Arc<str>,
}

/// What is where a case expects a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Nothing,
    File(Vec<u8>),
    /// Why it cannot be read as a file.
    Other(String),
}

impl Outcome {
    /// An output of the tested step.
    pub fn output(&self, name: &str) -> Option<&Value> {
        self.outputs.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// A step by the names on the way to it, `build/link`; the last of the name.
    pub fn step(&self, path: &str) -> Option<&Reached> {
        self.steps.iter().rev().find(|step| step.path.iter().map(|name| &**name).eq(path.split('/')))
    }

    pub fn timed_out(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Timeout)
    }

    /// Takes over what the run knows.
    pub(crate) fn take(&mut self, run: &Run) {
        let tree = run.result();
        self.succeeded = run.status() == Status::Success;
        // The tested step itself has no name.
        self.failure = run.failure().cloned().map(|failure| Failure {
            message: failure.message.strip_prefix("step \"\": ").map_or_else(|| failure.message.clone(), str::to_owned),
            ..failure
        });
        self.exit = run.failed_step().and_then(|step| tree.headline(step).exit_code);
        let mut open: Vec<(StepId, Vec<Arc<str>>)> = tree.children(StepId::ROOT).into_iter().map(|id| (id, Vec::new())).collect();
        while let Some((id, path)) = open.pop() {
            let node = tree.node(id);
            for (name, value) in &node.exports {
                self.exports.insert(Arc::clone(name), value.clone());
            }
            let children = tree.children(id);
            open.extend(children.into_iter().rev().map(|child| {
                let name = tree.headline(child).name;
                (child, path.iter().cloned().chain([name]).collect())
            }));
            if path.is_empty() {
                self.outputs.clone_from(&node.outputs);
            }
            let mut inputs = node.inputs;
            for (name, input) in node.document.iter().flat_map(|document| &document.spec.inputs) {
                if let (false, Some(default)) = (inputs.iter().any(|(known, _)| known == name), &input.default) {
                    inputs.push((Arc::clone(name), default.clone().marked(input.sensitive)));
                }
            }
            self.steps.push(Reached {
                path,
                succeeded: node.status == Status::Success,
                exit: node.exec.as_ref().map(|exec| exec.exit_code).filter(|code| *code >= 0),
                failure: node.failure,
                inputs,
                outputs: node.outputs,
                exports: node.exports,
                env: if node.env.is_empty() { node.given_env } else { node.env },
                document: node.document,
                digest: node.digest,
            });
        }
    }
}
