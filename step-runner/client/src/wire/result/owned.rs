//! A result tree that is held in memory: one that was read.

use step_model::result::{ResultTree, StepId, StepResult};

/// Nodes by their number, parents before children.
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
