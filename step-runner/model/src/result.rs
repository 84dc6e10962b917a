//! What ran, with which parameters, and what it produced.

use crate::document::StepDocument;
use crate::limits::AppliedLimit;
use crate::plan::Provenance;
use crate::reference::Digest;
use crate::time::Timestamp;
use crate::trace::TraceContext;
use crate::value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The number of a node in its tree. The root is 0; parents come before their children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub u32);

impl StepId {
    pub const ROOT: Self = Self(0);
}

/// A result tree that is asked node by node: nobody builds the whole to write it.
pub trait ResultTree {
    /// A node by itself, made on demand.
    fn node(&self, id: StepId) -> StepResult;
    /// In execution order, as far as reached.
    fn children(&self, id: StepId) -> Vec<StepId>;
}

/// One node of a result tree, without its children. Values are as they were: whoever writes them for others redacts them.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult {
    /// Empty at the root.
    pub name: Arc<str>,
    /// The invocation as its document writes it, unexpanded; `None` at the root.
    pub step: Option<Arc<crate::document::Step>>,
    /// The definition that ran. `None` for a script, and where it could not be loaded.
    pub document: Option<Arc<StepDocument>>,
    /// What the caller gave, expanded; defaults are not added.
    pub inputs: Vec<(Arc<str>, Value)>,
    /// All values when the step was loaded.
    pub given_env: BTreeMap<Arc<str>, Value>,
    /// All values after the environment of the definition was applied. Empty until then.
    pub env: BTreeMap<Arc<str>, Value>,
    pub status: Status,
    pub outputs: Vec<(Arc<str>, Value)>,
    pub exports: Vec<(Arc<str>, Value)>,
    pub exec: Option<ExecResult>,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    pub usage: Option<Usage>,
    /// Of the definition file that ran.
    pub digest: Option<Digest>,
    pub provenance: Option<Provenance>,
    pub failure: Option<Failure>,
    /// The failure does not fail what the step is a part of (`allow_failure`).
    pub allowed_to_fail: bool,
    /// The names of outputs whose values are sensitive.
    pub sensitive_outputs: Vec<Arc<str>>,
    /// The span of the step. `None` where nobody made one: GitLab's results.
    pub trace: Option<TraceContext>,
    /// What became of the limits of the step. Empty: it had none.
    pub limits: Vec<AppliedLimit>,
    /// What the step left out of the results below it, in a sentence. `None`: nothing.
    pub filtered: Option<Arc<str>>,
}

/// Numbers as on the wire (`StepResult.Status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    #[default]
    Unspecified = 0,
    Running = 1,
    Success = 2,
    Failure = 3,
    Cancelled = 4,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExecResult {
    pub command: Vec<Value>,
    pub work_dir: Value,
    /// -1 when a signal ended it or it never started.
    pub exit_code: i32,
    pub signal: Option<i32>,
}

/// What a process and its waited-for children used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub cpu_user: Duration,
    pub cpu_system: Duration,
    /// Bytes resident at the peak.
    pub peak_memory: u64,
    /// What went to and came from disks, past what memory already held. `None`: the system does not tell.
    pub disk: Option<Traffic>,
    /// Only of a container, which has a network of its own.
    pub network: Option<Traffic>,
    pub means: Means,
}

/// Bytes in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Read, or received.
    pub incoming: u64,
    /// Written, or sent.
    pub outgoing: u64,
}

/// Who told what was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Means {
    /// The system, of the process and the children that it waited for, when it ended.
    #[default]
    Process,
    /// The counters of a container: everything that ran in it.
    Container,
    /// The counters of a control group: everything that ran in it.
    Cgroup,
}

impl Means {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Container => "container",
            Self::Cgroup => "cgroup",
        }
    }

    /// `None`: another version has more means.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Process, Self::Container, Self::Cgroup].into_iter().find(|means| means.name() == name)
    }
}

impl Usage {
    /// Of two that ran one after the other: sums, and the higher peak.
    pub fn then(self, other: Self) -> Self {
        Self {
            cpu_user: self.cpu_user.saturating_add(other.cpu_user),
            cpu_system: self.cpu_system.saturating_add(other.cpu_system),
            peak_memory: self.peak_memory.max(other.peak_memory),
            disk: sum(self.disk, other.disk),
            network: sum(self.network, other.network),
            means: self.means,
        }
    }
}

/// What is not known of one is what is known of the other.
fn sum(one: Option<Traffic>, other: Option<Traffic>) -> Option<Traffic> {
    match (one, other) {
        (Some(one), Some(other)) => {
            Some(Traffic { incoming: one.incoming.saturating_add(other.incoming), outgoing: one.outgoing.saturating_add(other.outgoing) })
        }
        (one, other) => one.or(other),
    }
}

/// Why a step or a job did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// The original's text, ending in `exit status N` where there is one.
    pub message: String,
}

/// Numbers as on the wire (docs/reference/result.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    StepFailure = 1,
    BadInput = 2,
    Refused = 3,
    Cancelled = 4,
    Timeout = 5,
    Internal = 6,
    Interrupted = 7,
}

/// A result tree that is held in memory: one that was read. Nodes by their number, parents before children.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnedTree {
    nodes: Vec<StepResult>,
    children: Vec<Vec<StepId>>,
}

impl OwnedTree {
    /// A tree of one node: the first that is given, the root.
    pub fn of(root: StepResult) -> Self {
        Self { nodes: vec![root], children: vec![Vec::new()] }
    }

    /// Adds a node below one that is there. `None`: there is no such parent, or no number is left.
    pub fn add(&mut self, parent: StepId, node: StepResult) -> Option<StepId> {
        let id = StepId(u32::try_from(self.nodes.len()).ok()?);
        self.children.get_mut(usize::try_from(parent.0).ok()?)?.push(id);
        self.nodes.push(node);
        self.children.push(Vec::new());
        Some(id)
    }

    /// A node as it is held. `None`: there is none of this number.
    pub fn get(&self, id: StepId) -> Option<&StepResult> {
        self.nodes.get(usize::try_from(id.0).ok()?)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl ResultTree for OwnedTree {
    /// # Panics
    /// There is no node of this number.
    fn node(&self, id: StepId) -> StepResult {
        self.nodes[id.0 as usize].clone()
    }

    fn children(&self, id: StepId) -> Vec<StepId> {
        self.children.get(id.0 as usize).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_steps_used_is_the_sum_and_the_higher_peak() {
        let traffic = |incoming, outgoing| Some(Traffic { incoming, outgoing });
        let one = Usage { cpu_user: Duration::from_secs(1), peak_memory: 7, disk: traffic(1, 2), ..Usage::default() };
        let other = Usage { cpu_user: Duration::from_secs(2), peak_memory: 5, disk: traffic(3, 4), network: traffic(5, 6), ..one };
        let both = Usage { cpu_user: Duration::from_secs(3), peak_memory: 7, disk: traffic(4, 6), network: traffic(5, 6), ..one };
        assert_eq!(one.then(other), both);
    }
}
