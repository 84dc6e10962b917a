//! What every handler writes on: effects that go out, subjects that have to be looked at again, and the seed.

use crate::agenda::{Agenda, Subject};
use crate::attempt::Attempt;
use crate::backoff::Backoff;
use crate::dice::Dice;
use crate::effect::Effect;
use crate::id::{EffectId, Generation, InstanceId, JobId, RunnerId};
use std::collections::BTreeSet;
use step_model::time::Now;

#[derive(Debug)]
pub(crate) struct Desk {
    pub now: Now,
    pub generation: Generation,
    pub agenda: Agenda,
    effects: Vec<Effect>,
    dirty: BTreeSet<Subject>,
    latest: EffectId,
    /// Jitter of retries; ids have a number of their own, so one more id shifts no wait.
    dice: Dice,
}

impl Desk {
    pub fn new(seed: u64, generation: Generation, now: Now) -> Self {
        Self {
            now,
            generation,
            agenda: Agenda::default(),
            effects: Vec::new(),
            dirty: BTreeSet::new(),
            latest: EffectId(0),
            dice: Dice::new(seed),
        }
    }

    /// The latest effect that was asked for: what is asked for later has a higher id.
    pub fn latest(&self) -> EffectId {
        self.latest
    }

    pub fn tell(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Asks for an effect with an outcome.
    pub fn ask(&mut self, make: impl FnOnce(EffectId) -> Effect) -> EffectId {
        self.latest.0 += 1;
        self.effects.push(make(self.latest));
        self.latest
    }

    /// Asks if the attempt is neither open nor waiting for its next try.
    pub fn attempt(&mut self, attempt: &mut Attempt, make: impl FnOnce(EffectId) -> Effect) -> bool {
        let may_start = attempt.may_start(self.now);
        if may_start {
            attempt.asked(self.ask(make));
        }
        may_start
    }

    pub fn failed(&mut self, attempt: &mut Attempt, backoff: Backoff) {
        attempt.failed(backoff, &mut self.dice, self.now);
    }

    /// From zero to below one.
    pub fn fraction(&mut self) -> f64 {
        self.dice.fraction()
    }

    pub fn touch_job(&mut self, job: &JobId) {
        self.dirty.insert(Subject::Job(job.clone()));
    }

    pub fn touch_instance(&mut self, instance: &InstanceId) {
        self.dirty.insert(Subject::Instance(instance.clone()));
    }

    pub fn touch_runner(&mut self, runner: &RunnerId) {
        self.dirty.insert(Subject::Runner(runner.clone()));
    }

    pub fn touch(&mut self, subject: Subject) {
        self.dirty.insert(subject);
    }

    pub fn pop_dirty(&mut self) -> Option<Subject> {
        self.dirty.pop_first()
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}
