//! The result of a run, asked node by node.

use crate::event::Exit;
use crate::run::node::Node;
use crate::run::{Headline, ResultView, graft};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::Dialect;
use step_model::environment::Difference;
use step_model::limits::AppliedLimit;
use step_model::result::{ExecResult, ResultTree, StepId, StepResult, Usage};
use step_model::value::{Object, Value};

impl ResultTree for ResultView<'_> {
    /// # Panics
    /// There is no such node: ids come from effects, from [`ResultTree::children`], or are the root's.
    fn node(&self, id: StepId) -> StepResult {
        let node = self.find(id);
        if let Some(grafted) = &node.grafted {
            return (**grafted).clone();
        }
        let values = |snapshot| self.run.environment.values_at(snapshot);
        StepResult {
            given_env: values(&node.given),
            env: node.applied.as_ref().map(values).unwrap_or_default(),
            ..self.node_without_environments(id)
        }
    }

    fn children(&self, id: StepId) -> Vec<StepId> {
        std::iter::successors(self.find(id).first_child, |child| self.find(*child).next_sibling).collect()
    }
}

impl<'a> ResultView<'a> {
    fn find(&self, id: StepId) -> &'a Node {
        &self.run.nodes[id.0 as usize]
    }

    /// A node whose environments are empty: cheap.
    /// # Panics
    /// There is no such node.
    pub fn node_without_environments(&self, id: StepId) -> StepResult {
        let node = self.find(id);
        if let Some(grafted) = &node.grafted {
            return StepResult { given_env: BTreeMap::new(), env: BTreeMap::new(), ..(**grafted).clone() };
        }
        let planned = node.planned.as_ref();
        StepResult {
            name: node.name(),
            step: node.step.clone(),
            document: planned.map(|planned| Arc::clone(&planned.document)),
            inputs: entries(node.inputs.as_ref()),
            given_env: BTreeMap::new(),
            env: BTreeMap::new(),
            status: node.status,
            outputs: entries(node.outputs.as_ref()),
            exports: entries(node.exports.as_ref()),
            exec: node.exec.as_ref().map(|exec| ExecResult {
                command: exec.command.to_vec(),
                work_dir: exec.work_dir.clone(),
                exit_code: exit_code(exec.exit).unwrap_or(-1),
                signal: signal(exec.exit),
            }),
            start: Some(node.start),
            end: node.end,
            usage: self.usage(id),
            digest: planned.and_then(|planned| planned.digest),
            provenance: planned.and_then(|planned| planned.provenance.clone()),
            failure: node.failure.as_deref().cloned(),
            allowed_to_fail: node.allowed_to_fail,
            sensitive_outputs: sensitive_names(node.outputs.as_ref()),
            trace: Some(self.run.trace_of(id)),
            limits: limits(node),
            filtered: node.filtered.clone(),
        }
    }

    /// The dialect of the document that invokes a step.
    /// # Panics
    /// There is no such node.
    pub fn calling_dialect(&self, id: StepId) -> Dialect {
        let mut node = self.find(id);
        let mut id = id;
        while id != StepId::ROOT {
            id = node.parent;
            node = self.find(id);
            if let Some(planned) = &node.planned {
                return planned.document.dialect;
            }
        }
        Dialect::Steps
    }

    /// What the environment that was given to a step has other than that of `base`; all of it for `None`.
    /// # Panics
    /// There is no such node.
    pub fn given_changes(&self, id: StepId, base: Option<StepId>) -> Difference {
        let given = &self.find(id).given;
        let is_grafted = |id: StepId| self.find(id).grafted.is_some();
        match base {
            Some(base) if is_grafted(id) || is_grafted(base) => graft::difference(&self.given(base), &self.given(id)),
            None if is_grafted(id) => graft::difference(&BTreeMap::new(), &self.given(id)),
            Some(base) => self.run.environment.difference(&self.find(base).given, given),
            None => Difference { set: self.run.environment.values_at(given), gone: Vec::new() },
        }
    }

    fn given(&self, id: StepId) -> BTreeMap<Arc<str>, Value> {
        let node = self.find(id);
        match &node.grafted {
            Some(grafted) => grafted.given_env.clone(),
            None => self.run.environment.values_at(&node.given),
        }
    }

    /// What the definition's own environment changed in the one that was given. `None`: it was not applied yet.
    /// # Panics
    /// There is no such node.
    pub fn applied_changes(&self, id: StepId) -> Option<Difference> {
        let node = self.find(id);
        if let Some(grafted) = &node.grafted {
            return Some(graft::difference(&grafted.given_env, &grafted.env));
        }
        Some(self.run.environment.difference(&node.given, node.applied.as_ref()?))
    }

    /// At the root, what the whole job has used.
    fn usage(&self, id: StepId) -> Option<Usage> {
        if id == StepId::ROOT { self.run.used } else { self.find(id).exec.as_ref().and_then(|exec| exec.usage) }
    }

    /// What a reporter needs to say about a step, without building its environment: cheap.
    /// # Panics
    /// There is no such node.
    pub fn headline(&self, id: StepId) -> Headline {
        let node = self.find(id);
        if let Some(grafted) = &node.grafted {
            return graft::headline(node, grafted);
        }
        Headline {
            name: node.name(),
            parent: (id != StepId::ROOT).then_some(node.parent),
            depth: node.depth as usize,
            what: node.kind,
            status: node.status,
            failure: node.failure.as_deref().cloned(),
            exit_code: exit_code(node.exit()),
            signal: signal(node.exit()),
            command: node.exec.as_ref().map(|exec| exec.command.to_vec()).unwrap_or_default(),
            work_dir: node.exec.as_ref().map(|exec| exec.work_dir.clone()),
            start: Some(node.start),
            end: node.end,
            usage: self.usage(id),
            allowed_to_fail: node.allowed_to_fail,
            limits: limits(node),
            filtered: node.filtered.clone(),
            trace: Some(self.run.trace_of(id)),
        }
    }
}

fn limits(node: &Node) -> Vec<AppliedLimit> {
    node.exec.as_ref().and_then(|exec| exec.limits.as_deref()).unwrap_or_default().to_vec()
}

fn entries(object: Option<&Arc<Object>>) -> Vec<(Arc<str>, Value)> {
    object.map(|object| object.iter().map(|(name, value)| (Arc::clone(name), value.clone())).collect()).unwrap_or_default()
}

fn sensitive_names(outputs: Option<&Arc<Object>>) -> Vec<Arc<str>> {
    let sensitive = |(name, value): (&Arc<str>, &Value)| value.holds_sensitive().then(|| Arc::clone(name));
    outputs.map(|outputs| outputs.iter().filter_map(sensitive).collect()).unwrap_or_default()
}

fn exit_code(exit: Option<Exit>) -> Option<i32> {
    match exit {
        Some(Exit::Code(code)) => Some(code),
        Some(Exit::Signal(_)) | None => None,
    }
}

fn signal(exit: Option<Exit>) -> Option<i32> {
    match exit {
        Some(Exit::Signal(signal)) => Some(signal),
        Some(Exit::Code(_)) | None => None,
    }
}
