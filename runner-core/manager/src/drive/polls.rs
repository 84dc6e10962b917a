//! Asking sources for jobs.

use super::World;
use crate::ports::Taken;
use runner_control::event::Event;
use runner_control::id::{EffectId, RunnerId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Polls that are open, so that they can be withdrawn.
#[derive(Debug, Default)]
pub struct Polls(Mutex<BTreeMap<EffectId, oneshot::Sender<()>>>);

impl Polls {
    /// What is returned is done when the poll is withdrawn.
    fn open(&self, id: EffectId) -> oneshot::Receiver<()> {
        let (sender, withdrawn) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        withdrawn
    }

    pub fn withdraw(&self, id: EffectId) {
        // It may have been answered already.
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
    }
}

impl World {
    pub(super) fn take(self: &Arc<Self>, id: EffectId, runner: RunnerId, open: u32) {
        let Some(source) = self.runner(&runner).map(|runner| runner.source.clone()) else { return };
        let withdrawn = self.polls.open(id);
        let world = self.clone();
        tokio::spawn(async move {
            let taken = tokio::select! {
                biased;
                taken = source.take(open) => taken,
                _ = withdrawn => Taken::nothing(),
            };
            world.polls.withdraw(id);
            if let Some(job) = taken.job {
                world.add(job);
            }
            world.tell(Event::Polled { id, runner, answer: taken.answer, was_retried: taken.was_retried });
        });
    }

    pub(super) fn verify(self: &Arc<Self>, id: EffectId, runner: RunnerId) {
        let Some(source) = self.runner(&runner).map(|runner| runner.source.clone()) else { return };
        let world = self.clone();
        tokio::spawn(async move {
            let is_served = source.verify().await;
            world.tell(Event::Verified { id, runner, is_served });
        });
    }
}
