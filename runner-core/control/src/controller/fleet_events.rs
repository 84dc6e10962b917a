//! What a provider says: believed over memory.

use super::Controller;
use crate::agenda::Subject;
use crate::backoff::Backoff;
use crate::desk::Desk;
use crate::effect::Effect;
use crate::event::{Granted, InstanceState, Refusal};
use crate::fleet::instance::{Instance, Retired};
use crate::id::{EffectId, InstanceId, InstanceName, JobId, RunnerId};
use crate::runner::Runner;
use std::collections::{BTreeMap, BTreeSet};
use step_model::time::Deadline;

impl Controller {
    pub(super) fn on_updated(&mut self, id: EffectId, runner: &RunnerId, outcome: Result<Vec<(InstanceName, InstanceState)>, String>) {
        let Some(known) = self.runners.get_mut(runner) else { return };
        if !known.fleet.update.take(id) {
            return;
        }
        self.desk.touch_runner(runner);
        self.desk.touch(Subject::Process);
        let listed: BTreeMap<_, _> = match outcome {
            Ok(listed) => listed.into_iter().collect(),
            Err(reason) => {
                // It takes nothing away: what is known to run can still be used.
                known.fleet.trouble = Some(reason);
                self.desk.failed(&mut known.fleet.update, Backoff::PROVIDER);
                return;
            }
        };
        known.fleet.update.succeeded();
        known.fleet.gone.retain(|_, since| *since >= id);
        let is_first = !known.fleet.is_known;
        for (name, state) in &listed {
            let is_new = known.fleet.get(name).is_none();
            note_state(runner, known, name, *state, &mut self.desk);
            if is_first && is_new {
                known.fleet.change(name, &known.settings.environments, |instance| instance.is_preexisting = true);
            }
        }
        let missing: Vec<_> = known
            .fleet
            .instances()
            .filter(|(name, instance)| !listed.contains_key(*name) && instance.known_since < id)
            .map(|(name, _)| name.clone())
            .collect();
        if !known.fleet.is_known {
            known.fleet.is_known = true;
            known.fleet.unsettled = known
                .fleet
                .instances()
                .filter(|(name, instance)| instance.state == InstanceState::Running && !missing.contains(name))
                .map(|(name, _)| name.clone())
                .collect();
            // Jobs of before ask their provider only now, since it may have made their environment already.
            known.queue.values().for_each(|job| self.desk.touch_job(job));
        }
        schedule_update(known, &self.desk);
        for name in missing {
            self.is_gone(&InstanceId::new(runner, &name), "instance unexpectedly removed");
        }
    }

    /// An environment does not exist any more: its jobs hear of it.
    pub(super) fn is_gone(&mut self, instance: &InstanceId, cause: &str) {
        let Some(runner) = self.runners.get_mut(&instance.runner) else { return };
        let Some(gone) = runner.fleet.remove(&instance.name, &runner.settings.environments) else { return };
        runner.fleet.gone.insert(instance.name.clone(), self.desk.latest());
        for job in &gone.jobs {
            if let Some(job) = self.jobs.get_mut(job) {
                job.loss = Some(cause.to_owned());
            }
            self.desk.touch_job(job);
        }
        if let Some(job) = &gone.for_job {
            self.desk.touch_job(job);
        }
        if gone.connect.latest().is_some() {
            self.desk.tell(Effect::Disconnect { instance: instance.clone() });
        }
        self.desk.agenda.set(&Subject::Instance(instance.clone()), None);
        self.desk.touch_runner(&instance.runner);
        self.desk.touch(Subject::Process);
    }

    pub(super) fn on_increased(&mut self, id: EffectId, runner: &RunnerId, outcome: Result<Granted, Refusal>) {
        let Some(known) = self.runners.get_mut(runner) else { return };
        if known.fleet.increase.take(id) {
            self.on_group_increased(runner, outcome);
        } else if let Some(job) = known.fleet.asked_for.remove(&id) {
            self.on_provided(runner, id, &job, outcome);
        }
    }

    fn on_group_increased(&mut self, runner: &RunnerId, outcome: Result<Granted, Refusal>) {
        let Some(known) = self.runners.get_mut(runner) else { return };
        let fleet = &mut known.fleet;
        let asked = std::mem::take(&mut fleet.increasing);
        match outcome {
            Ok(granted) => {
                let granted = if let Granted::Count(granted) = granted { granted.min(asked) } else { 1 };
                fleet.requested = fleet.requested.saturating_sub(asked.saturating_sub(granted));
                fleet.trouble = None;
                if granted == asked {
                    fleet.increase.succeeded();
                } else {
                    // All that there is for now.
                    fleet.trouble = Some(format!("{granted} of {asked} environments were granted"));
                    self.desk.failed(&mut fleet.increase, Backoff::PROVIDER);
                }
                update_soon(known);
            }
            Err(refusal) => {
                fleet.requested = fleet.requested.saturating_sub(asked);
                fleet.trouble = Some(refusal.reason);
                self.desk.failed(&mut fleet.increase, Backoff::PROVIDER);
            }
        }
        if known.fleet.requested == 0 {
            known.fleet.requested_until = None;
        }
        self.desk.touch_runner(runner);
    }

    /// The provider that is asked per job has answered.
    fn on_provided(&mut self, runner: &RunnerId, asked: EffectId, id: &JobId, outcome: Result<Granted, Refusal>) {
        let Some(known) = self.runners.get_mut(runner) else { return };
        // A job that was given back and offered again may have asked twice.
        let is_awaited = known.fleet.made_for(id).is_none();
        let is_wanted = self.jobs.get_mut(id).is_some_and(|job| {
            job.provide.take(asked);
            is_awaited && matches!(job.phase, crate::job::Phase::Waiting)
        });
        match outcome {
            Ok(Granted::Instance(name)) => {
                known.fleet.trouble = None;
                let (now, environments, latest) = (self.desk.now, &known.settings.environments, self.desk.latest());
                if known.fleet.get(&name).is_none() {
                    known.fleet.insert(name.clone(), Instance::new(InstanceState::Running, latest), environments);
                }
                known.fleet.change(&name, environments, |instance| {
                    instance.is_listed = true;
                    instance.patience.get_or_insert(Deadline::after(now, environments.ready_timeout));
                    if is_wanted {
                        instance.for_job = Some(id.clone());
                    } else {
                        instance.retire(Retired::Unclaimed);
                    }
                });
                self.desk.touch_instance(&InstanceId::new(runner, &name));
            }
            Ok(Granted::Count(_)) => update_soon(known),
            Err(refusal) => {
                known.fleet.trouble = Some(refusal.reason.clone());
                if let Some(mut turn) = self.turn(id) {
                    turn.job.trouble = Some(refusal.reason.clone());
                    turn.desk.failed(&mut turn.job.provide, Backoff::PROVIDER);
                    if refusal.is_final {
                        turn.on_impossible(refusal.reason);
                    }
                }
            }
        }
        self.desk.touch_job(id);
        self.touch_unclaimed(runner);
        self.desk.touch_runner(runner);
    }

    /// Nobody has asked for those that are left over when no request is open.
    fn touch_unclaimed(&mut self, runner: &RunnerId) {
        let Some(known) = self.runners.get(runner).filter(|known| known.fleet.asked_for.is_empty()) else { return };
        for name in known.fleet.unclaimed() {
            self.desk.touch_instance(&InstanceId::new(runner, name));
        }
    }

    pub(super) fn on_decreased(&mut self, id: EffectId, runner: &RunnerId, outcome: Result<Vec<InstanceName>, Refusal>) {
        let Some(known) = self.runners.get_mut(runner) else { return };
        if !known.fleet.decrease.take(id) {
            return;
        }
        let asked = std::mem::take(&mut known.fleet.leaving);
        let removed: BTreeSet<_> = match outcome {
            Ok(removed) => removed.into_iter().collect(),
            Err(refusal) => {
                known.fleet.trouble = Some(refusal.reason);
                BTreeSet::new()
            }
        };
        let environments = &known.settings.environments;
        for name in &asked {
            known.fleet.change(name, environments, |instance| {
                if removed.contains(name) {
                    instance.state = InstanceState::Deleting;
                } else {
                    instance.is_leaving = false;
                }
            });
        }
        if removed.len() < asked.len() {
            known.fleet.decrease.not_before(Deadline::after(self.desk.now, environments.deletion_retry_interval));
        } else {
            known.fleet.decrease.succeeded();
        }
        update_soon(known);
        self.desk.touch_runner(runner);
    }
}

/// One line of an update.
fn note_state(runner: &RunnerId, known: &mut Runner, name: &InstanceName, state: InstanceState, desk: &mut Desk) {
    let environments = &known.settings.environments;
    if known.fleet.get(name).is_none() {
        // One that is known to be gone is only in lists that are older than that.
        if state == InstanceState::Deleting || known.fleet.gone.contains_key(name) {
            return;
        }
        known.fleet.requested = known.fleet.requested.saturating_sub(1);
        if known.fleet.requested == 0 {
            known.fleet.requested_until = None;
        }
        known.fleet.insert(name.clone(), Instance::new(InstanceState::Creating, EffectId(0)), environments);
    }
    let is_news = known.fleet.get(name).is_some_and(|instance| instance.state != state || !instance.is_listed);
    if !is_news {
        return;
    }
    let now = desk.now;
    known.fleet.change(name, environments, |instance| {
        // What was asked to go is not taken back by a list that was made before.
        if instance.state == InstanceState::Deleting {
            return;
        }
        let timeout = if state == InstanceState::Creating { environments.creation_timeout } else { environments.ready_timeout };
        instance.state = state;
        instance.is_listed = true;
        instance.patience = Some(Deadline::after(now, timeout));
    });
    if known.fleet.is_closing {
        known.fleet.change(name, environments, |instance| instance.retire(Retired::ShuttingDown));
    }
    desk.touch_instance(&InstanceId::new(runner, name));
}

/// The next regular one.
fn schedule_update(runner: &mut Runner, desk: &Desk) {
    let environments = &runner.settings.environments;
    let fleet = &mut runner.fleet;
    let interval = if fleet.expects_change() { environments.update_interval_when_expecting } else { environments.update_interval };
    if !std::mem::take(&mut fleet.is_stale) {
        fleet.update.not_before(Deadline::after(desk.now, interval));
    }
}

/// Something changed: no interval is waited for.
fn update_soon(runner: &mut Runner) {
    runner.fleet.is_stale = runner.fleet.update.is_open();
    runner.fleet.update.hurry();
}
