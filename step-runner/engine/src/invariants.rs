//! What holds after every event, whatever happened: checked in tests and simulations, and cheap enough for both.

use crate::effect::{Effect, LoadId};
use crate::run::Run;
use std::collections::{BTreeMap, BTreeSet};
use step_model::result::{ResultTree, Status, StepId};

/// Remembers what a run asked for. One for each run; it sees all effects in their order.
#[derive(Debug, Default)]
pub struct Watch {
    started: BTreeSet<StepId>,
    ended: BTreeSet<StepId>,
    processes: BTreeSet<StepId>,
    terminated: BTreeSet<StepId>,
    killed: BTreeSet<StepId>,
    files: BTreeMap<StepId, Files>,
    loads: BTreeSet<LoadId>,
    finished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    Made,
    Gone,
}

impl Watch {
    /// # Panics
    /// An invariant is broken; the message says which.
    pub fn check(&mut self, run: &Run, effects: &[Effect]) {
        for effect in effects {
            assert!(!self.finished, "nothing comes after Finished: {effect:?}");
            self.note(effect);
        }
        self.check_run(run);
    }

    fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::Started { step } => {
                assert!(self.started.insert(*step), "{step:?} starts once");
                assert_eq!(step.0 as usize, self.started.len() - 1, "steps are numbered as they start");
            }
            Effect::Ended { step } => {
                assert!(self.is_running(*step), "{step:?} ends once, after it started");
                assert!(self.files.get(step) != Some(&Files::Made), "{step:?} leaves no files behind");
                self.ended.insert(*step);
            }
            Effect::Spawn { step, process } => {
                assert!(self.is_running(*step), "{step:?} spawns while it runs");
                assert!(self.processes.insert(*step), "{step:?} has one process");
                let live = self.processes.iter().filter(|step| !self.ended.contains(step)).count();
                assert_eq!(live, 1, "one process at a time");
                assert!(process.env.windows(2).all(|pair| pair[0].0 < pair[1].0), "the environment is sorted, without duplicates");
                if process.files.is_some() {
                    assert_eq!(self.files.insert(*step, Files::Made), None, "files are made once");
                }
            }
            Effect::Terminate { step } => {
                assert!(self.processes.contains(step) && self.is_running(*step), "only a process is asked to end");
                assert!(!self.killed.contains(step), "{step:?} is asked before it is killed");
                assert!(self.terminated.insert(*step), "{step:?} is asked once");
            }
            Effect::Kill { step } => {
                assert!(self.processes.contains(step) && self.is_running(*step), "only a process is killed");
                assert!(self.killed.insert(*step), "{step:?} is killed once");
            }
            Effect::PrepareFiles { step, .. } => {
                assert!(self.is_running(*step), "{step:?} has files while it runs");
                assert_eq!(self.files.insert(*step, Files::Made), None, "files are made once");
            }
            Effect::ReadOutputs { step, .. } | Effect::RemoveFiles { step, .. } => {
                assert_eq!(
                    self.files.insert(*step, Files::Gone),
                    Some(Files::Made),
                    "files are read or removed once, after they were made"
                );
            }
            Effect::Load { load, .. } => assert!(self.loads.insert(*load), "{load:?} is used once"),
            Effect::Say { step, .. } => assert!(self.started.contains(step), "a line belongs to a step that started"),
            Effect::Mask { value } => assert!(value.holds_sensitive(), "what is masked is sensitive"),
            Effect::Finished => {
                assert_eq!(self.started, self.ended, "every step that started has ended");
                self.finished = true;
            }
        }
    }

    fn is_running(&self, step: StepId) -> bool {
        self.started.contains(&step) && !self.ended.contains(&step)
    }

    fn check_run(&self, run: &Run) {
        assert_eq!(run.is_finished(), self.finished, "Finished says that the run is");
        if self.finished {
            assert_eq!(run.next_deadline(), None, "a run that has finished waits for nothing");
            assert_ne!(run.status(), Status::Running);
            assert_eq!(run.failure().is_none(), run.status() == Status::Success, "who did not succeed says why");
            assert_eq!(run.failure().is_some(), run.failed_step().is_some(), "a failure comes from a step");
        } else {
            assert_eq!(run.status(), Status::Running);
        }
        // The path to what runs is all that can change, so it is all that is looked at: a whole tree after every event would be too much.
        let tree = run.result();
        let mut id = StepId::ROOT;
        loop {
            self.check_node(run, id);
            let children = tree.children(id);
            assert!(children.windows(2).all(|pair| pair[0] < pair[1]) && children.first().is_none_or(|child| *child > id), "in order");
            match children.last() {
                Some(last) => id = *last,
                None => break,
            }
        }
    }

    /// # Panics
    /// Every node of a tree, for the end of a test.
    pub fn check_tree(&self, run: &Run) {
        let tree = run.result();
        let mut ids = vec![StepId::ROOT];
        let mut seen = 0;
        while let Some(id) = ids.pop() {
            self.check_node(run, id);
            seen += 1;
            for child in tree.children(id) {
                assert_eq!(tree.headline(child).parent, Some(id), "children know their parents");
                assert_eq!(tree.headline(child).depth, tree.headline(id).depth + 1);
                ids.push(child);
            }
        }
        assert_eq!(seen, self.started.len(), "what started is in the tree, and nothing else");
    }

    fn check_node(&self, run: &Run, id: StepId) {
        let headline = run.result().headline(id);
        assert!(self.started.contains(&id), "{id:?} started");
        assert_eq!(headline.status == Status::Running, !self.ended.contains(&id), "{id:?} runs until it ends");
        assert_eq!(headline.end.is_some(), self.ended.contains(&id), "{id:?} has an end when it ended");
        assert_eq!(headline.failure.is_some(), headline.status == Status::Failure, "{id:?} says why it failed");
    }
}
