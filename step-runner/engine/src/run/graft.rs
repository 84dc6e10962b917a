//! A result that came back from another environment becomes a part of ours: its sub-results are the step's own, its outputs the step's outputs, its
//! failure the step's failure. What it says is not believed where it cannot be.

use crate::effect::Effect;
use crate::event::Exit;
use crate::files;
use crate::resolve::{MAXIMUM_NESTING, nests_too_deep};
use crate::run::frame::Failed;
use crate::run::node::Node;
use crate::run::{Headline, Kind, Run};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::{Body, Outputs};
use step_model::environment::Difference;
use step_model::result::{Failure, FailureKind, OwnedTree, ResultTree, Status, StepId, StepResult};
use step_model::time::Now;
use step_model::value::{MAXIMUM_DEPTH, Object, Value};

/// More sub-results than that are not taken over: far beyond any real job, and few enough to be held in memory.
pub const MAXIMUM_GRAFTED: usize = 100_000;

impl Run {
    /// Takes a result over as that of the step whose process wrote it, and has ended with `exited`. Gives the reason why the step failed, if it did.
    pub(super) fn graft(&mut self, step: StepId, tree: &OwnedTree, exited: Option<Failure>, now: Now) -> Option<Failure> {
        let was_stopped = exited.as_ref().is_some_and(|failure| failure.kind != FailureKind::StepFailure);
        let root = tree.node(StepId::ROOT);
        if let Err(why) = self.check(step, tree, &root) {
            let message = format!("output file: {}", files::not_a_result(&why));
            return exited.or(Some(Failure { kind: FailureKind::StepFailure, message }));
        }
        let failed_child = self.graft_children(step, tree, StepId::ROOT, root.failure.as_ref(), now);
        let outputs = marked_outputs(&root);
        outputs.values().for_each(|value| self.mask(value));
        let node = &mut self.nodes[step.0 as usize];
        node.outputs = (!outputs.is_empty()).then(|| Arc::new(outputs));
        node.filtered = root.filtered.clone();
        // What the job has used is that and what it took to wait for it.
        self.used = match (self.used, root.usage) {
            (Some(used), Some(inside)) => Some(used.then(inside)),
            (used, inside) => used.or(inside),
        };
        if let (Some(exec), Some(usage)) = (&mut node.exec, root.usage) {
            // What the other environment has used, and not what it took to wait for it.
            exec.usage = Some(usage);
        }
        let inside = failure_of(&root).filter(|_| !was_stopped);
        let failure = inside.clone().or(exited)?;
        if let (Some(_), Some(origin)) = (inside, failed_child) {
            self.innermost_mut().failure = Some(Failed { failure: failure.clone(), step: origin });
        }
        Some(failure)
    }

    /// Whether the result can be one of a step that has ended.
    fn check(&self, step: StepId, tree: &OwnedTree, root: &StepResult) -> Result<(), String> {
        if tree.len() > MAXIMUM_GRAFTED {
            return Err(format!("it has {} results; at most {MAXIMUM_GRAFTED} are taken over", tree.len()));
        }
        match root.status {
            Status::Success | Status::Failure | Status::Cancelled => {}
            Status::Running => return Err("its status is running, but the step has ended".into()),
            Status::Unspecified => return Err("its status is none of success, failure and cancelled".into()),
        }
        if let Some((name, _)) = root.outputs.iter().find(|(_, value)| value.depth() > MAXIMUM_DEPTH) {
            return Err(format!("key \"{name}\": value nests deeper than {MAXIMUM_DEPTH} levels"));
        }
        let own_depth = self.nodes[step.0 as usize].depth as usize;
        if own_depth + height(tree) > MAXIMUM_NESTING {
            return Err(nests_too_deep());
        }
        contradiction(tree).map_or(Ok(()), Err)
    }

    /// Adds what lies below a node of the tree, and says of each that it began and ended. Returns the innermost step that `failure` comes from.
    fn graft_children(&mut self, parent: StepId, tree: &OwnedTree, id: StepId, failure: Option<&Failure>, now: Now) -> Option<StepId> {
        let mut origin = None;
        for child in tree.children(id) {
            let result = settled(tree.node(child));
            let own_failure = result.failure.clone();
            let is_origin = match (&own_failure, failure) {
                (Some(own), Some(whole)) => whole.message == format!("step \"{}\": {}", result.name, own.message),
                _ => false,
            };
            let node = self.graft_node(parent, result, now);
            let inner = self.graft_children(node, tree, child, own_failure.as_ref(), now);
            self.effects.push(Effect::Ended { step: node });
            if is_origin {
                origin = inner.or(Some(node));
            }
        }
        origin
    }

    fn graft_node(&mut self, parent: StepId, mut result: StepResult, now: Now) -> StepId {
        mark_what_is_declared(&mut result);
        result.outputs.iter().chain(&result.inputs).for_each(|(_, value)| self.mask(value));
        #[expect(clippy::cast_possible_truncation, reason = "a job of four billion steps does not fit into memory")]
        let id = StepId(self.nodes.len() as u32);
        let depth = self.nodes[parent.0 as usize].depth + 1;
        let node = Node {
            parent,
            depth,
            status: result.status,
            start: result.start.unwrap_or_default(),
            end: result.end,
            failure: result.failure.clone().map(Box::new),
            allowed_to_fail: result.allowed_to_fail,
            grafted: Some(Box::new(result)),
            ..Node::begun(Kind::Unknown, Default::default(), now)
        };
        self.nodes.push(node);
        self.link(parent, id);
        self.effects.push(Effect::Started { step: id });
        id
    }
}

/// What a reporter needs to say about a node that came back.
pub(super) fn headline(node: &Node, result: &StepResult) -> Headline {
    let exit = exit_of(result);
    Headline {
        name: Arc::clone(&result.name),
        parent: Some(node.parent),
        depth: node.depth as usize,
        what: kind_of(result),
        status: result.status,
        failure: result.failure.clone(),
        exit_code: exit.and_then(|exit| if let Exit::Code(code) = exit { Some(code) } else { None }),
        signal: exit.and_then(|exit| if let Exit::Signal(signal) = exit { Some(signal) } else { None }),
        command: result.exec.as_ref().map(|exec| exec.command.clone()).unwrap_or_default(),
        work_dir: result.exec.as_ref().map(|exec| exec.work_dir.clone()),
        start: result.start,
        end: result.end,
        usage: result.usage,
        allowed_to_fail: result.allowed_to_fail,
        limits: result.limits.clone(),
        filtered: result.filtered.clone(),
        trace: result.trace,
    }
}

/// What one environment has other than another.
pub(super) fn difference(from: &BTreeMap<Arc<str>, Value>, to: &BTreeMap<Arc<str>, Value>) -> Difference {
    let is_other = |(name, value): &(&Arc<str>, &Value)| from.get(*name) != Some(*value);
    Difference {
        set: to.iter().filter(is_other).map(|(name, value)| (Arc::clone(name), value.clone())).collect(),
        gone: from.keys().filter(|name| !to.contains_key(*name)).cloned().collect(),
    }
}

/// How the process of a node ended, as far as its result says.
pub(super) fn exit_of(result: &StepResult) -> Option<Exit> {
    let exec = result.exec.as_ref()?;
    match exec.signal.filter(|signal| *signal != 0) {
        Some(signal) => Some(Exit::Signal(signal)),
        None => (exec.exit_code >= 0).then_some(Exit::Code(exec.exit_code)),
    }
}

fn kind_of(result: &StepResult) -> Kind {
    match (&result.document, &result.exec) {
        (Some(document), _) => match document.definition.body {
            Body::Exec(_) => Kind::Exec,
            Body::Sequence(_) => Kind::Sequence,
        },
        (None, Some(_)) => Kind::Script,
        (None, None) => Kind::Unknown,
    }
}

/// A node of a job that is over has ended, and says why it failed if it did.
fn settled(mut result: StepResult) -> StepResult {
    let allowed_to_fail = is_excused(&result);
    let (status, failure) = match (result.status, result.failure.take()) {
        (Status::Success, _) => (Status::Success, None),
        (Status::Cancelled, failure) => {
            let cancelled = || Failure { kind: FailureKind::Cancelled, message: "context canceled".into() };
            (Status::Failure, Some(failure.unwrap_or_else(cancelled)))
        }
        (Status::Failure, failure) => (Status::Failure, Some(failure.unwrap_or_else(|| unexplained(&result)))),
        (Status::Running | Status::Unspecified, failure) => {
            let interrupted = || Failure { kind: FailureKind::Interrupted, message: "the step did not finish running".into() };
            (Status::Failure, Some(failure.unwrap_or_else(interrupted)))
        }
    };
    let start = result.start.unwrap_or_default();
    let end = result.end.unwrap_or(start).max(start);
    StepResult { status, failure, allowed_to_fail, start: Some(start), end: Some(end), ..result }
}

/// Why the whole failed, if it did.
fn failure_of(root: &StepResult) -> Option<Failure> {
    match root.status {
        Status::Failure => Some(root.failure.clone().unwrap_or_else(|| unexplained(root))),
        Status::Cancelled => {
            let cancelled = || Failure { kind: FailureKind::Cancelled, message: "context canceled".into() };
            Some(root.failure.clone().unwrap_or_else(cancelled))
        }
        // Neither is taken over.
        Status::Success | Status::Unspecified | Status::Running => None,
    }
}

/// GitLab's results do not say why.
fn unexplained(result: &StepResult) -> Failure {
    let message = match exit_of(result) {
        Some(Exit::Code(code)) if code != 0 => format!("exec: exit status {code}"),
        Some(Exit::Signal(signal)) => format!("exec: signal: signal {signal}"),
        _ => "its result says that it failed, and not why".into(),
    };
    Failure { kind: FailureKind::StepFailure, message }
}

fn marked_outputs(result: &StepResult) -> Object {
    let is_sensitive = |name: &Arc<str>| result.sensitive_outputs.contains(name);
    result.outputs.iter().map(|(name, value)| (Arc::clone(name), value.clone().marked(is_sensitive(name)))).collect()
}

/// What the definition that ran declares as sensitive is, whoever wrote the result.
fn mark_what_is_declared(result: &mut StepResult) {
    let names = result.sensitive_outputs.clone();
    let Some(document) = result.document.clone() else {
        result.outputs.iter_mut().for_each(|(name, value)| *value = value.clone().marked(names.contains(name)));
        return;
    };
    let spec = &document.spec;
    let output = |name: &str| match &spec.outputs {
        Outputs::Declared(declared) => declared.iter().any(|(known, output)| **known == *name && output.sensitive),
        Outputs::Delegate => false,
    };
    for (name, value) in &mut result.outputs {
        *value = value.clone().marked(names.contains(name) || output(name));
    }
    for (name, value) in &mut result.inputs {
        let is_sensitive = spec.inputs.iter().any(|(known, input)| known == name && input.sensitive);
        *value = value.clone().marked(is_sensitive);
    }
    result.sensitive_outputs =
        result.outputs.iter().filter(|(_, value)| value.holds_sensitive()).map(|(name, _)| Arc::clone(name)).collect();
}

/// What does not succeed fails what it is a part of, unless its failure is allowed.
fn contradiction(tree: &OwnedTree) -> Option<String> {
    let mut open = vec![StepId::ROOT];
    while let Some(id) = open.pop() {
        let node = tree.get(id)?;
        for child in tree.children(id) {
            let result = tree.get(child)?;
            if node.status == Status::Success && result.status != Status::Success && !is_excused(result) {
                let whole = if id == StepId::ROOT { "it succeeded".to_owned() } else { format!("step \"{}\" succeeded", node.name) };
                return Some(format!("{whole}, and its step \"{}\" did not", result.name));
            }
            open.push(child);
        }
    }
    None
}

/// Whether a failure is one that can be allowed, and is. What was stopped with its job cannot be.
fn is_excused(result: &StepResult) -> bool {
    let kind = result.failure.as_ref().map_or(FailureKind::StepFailure, |failure| failure.kind);
    let is_own = !matches!(kind, FailureKind::Cancelled | FailureKind::Internal | FailureKind::Interrupted);
    result.status == Status::Failure && is_own && result.allowed_to_fail
}

/// Levels of steps below the root.
fn height(tree: &OwnedTree) -> usize {
    let mut deepest = 0;
    let mut open = vec![(StepId::ROOT, 0)];
    while let Some((id, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(tree.children(id).into_iter().map(|child| (child, depth + 1)));
    }
    deepest
}
