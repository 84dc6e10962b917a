//! An instance is moved on: reached, proven, asked about, and retired when it is of no use.

use super::Controller;
use super::ending::Mode;
use crate::agenda::Subject;
use crate::backoff::Backoff;
use crate::effect::Effect;
use crate::event::{Found, Health, InstanceState, Refusal};
use crate::fleet::instance::{Contact, Instance, Retired};
use crate::id::{EffectId, InstanceId, JobId};
use crate::settings::{Environments, Shape};
use std::collections::BTreeSet;
use step_model::time::{Deadline, Now};

impl Controller {
    pub(super) fn advance_instance(&mut self, id: &InstanceId) {
        if self.mode == Mode::Detaching {
            return;
        }
        let (now, generation) = (self.desk.now, self.desk.generation);
        let Some(runner) = self.runners.get_mut(&id.runner) else { return };
        let environments = &runner.settings.environments;
        let is_asked_for = !runner.fleet.asked_for.is_empty();
        let mut never_usable = false;
        let desk = &mut self.desk;
        let moved = runner.fleet.change(&id.name, environments, |instance| {
            instance.refresh(now);
            if instance.retired.is_none()
                && let Some(why) = reason_to_retire(instance, environments, is_asked_for, now)
            {
                instance.retire(why);
                never_usable = matches!(why, Retired::NeverCreated | Retired::NeverReady);
            }
            instance.patience = instance.patience.filter(|deadline| !deadline.has_passed(now));
            if instance.wants_contact() {
                desk.attempt(&mut instance.connect, |connect| Effect::Connect { id: connect, instance: id.clone(), generation });
                if matches!(instance.contact, Contact::Suspect { .. }) {
                    desk.attempt(&mut instance.inspect, |inspect| Effect::Inspect { id: inspect, instance: id.clone() });
                }
            }
            (instance.due(), instance.for_job.clone().filter(|_| instance.is_up() && instance.jobs.is_empty()))
        });
        let Some((due, for_job)) = moved else { return };
        if never_usable {
            runner.fleet.scaler.failed(now);
        }
        self.desk.agenda.set(&Subject::Instance(id.clone()), due.filter(|deadline| !deadline.has_passed(now)));
        if let Some(job) = for_job {
            self.place_awaited(&job, id);
        }
    }

    /// The environment that was made for a job is ready.
    fn place_awaited(&mut self, job: &JobId, instance: &InstanceId) {
        if let Some(mut turn) = self.turn(job).filter(|turn| matches!(turn.job.phase, crate::job::Phase::Waiting)) {
            turn.place(instance.name.clone());
        }
    }

    pub(super) fn on_connected(&mut self, id: EffectId, instance: &InstanceId, outcome: Result<Vec<Found>, Refusal>) {
        let now = self.desk.now;
        let Some(runner) = self.runners.get_mut(&instance.runner) else { return };
        let (desk, trouble) = (&mut self.desk, &mut runner.fleet.trouble.take());
        let environments = &runner.settings.environments;
        let mut scaler = std::mem::take(&mut runner.fleet.scaler);
        let answered = runner.fleet.change(&instance.name, environments, |known| {
            if !known.connect.take(id) {
                return None;
            }
            match outcome {
                Ok(found) => {
                    scaler.succeeded();
                    known.contact = Contact::Up;
                    known.note_idle(now);
                    known.connect.succeeded();
                    known.inspect.give_up();
                    known.inspect.succeeded();
                    known.patience = None;
                    known.foreign = 0;
                    Some(found)
                }
                Err(refusal) => {
                    // Until it is reached or removed, it counts as a place that is coming no more.
                    desk.failed(&mut known.connect, Backoff::AGENT);
                    if refusal.is_final && known.is_empty() && known.retired.is_none() {
                        known.retire(Retired::NeverReady);
                        scaler.failed(now);
                    }
                    *trouble = Some(refusal.reason);
                    known.patience.get_or_insert(Deadline::after(now, environments.ready_timeout));
                    None
                }
            }
        });
        runner.fleet.trouble = trouble.take();
        runner.fleet.scaler = scaler;
        if let Some(found) = answered.flatten() {
            runner.fleet.unsettled.remove(&instance.name);
            self.compare(id, instance, found);
        }
        self.desk.touch_instance(instance);
        self.desk.touch_runner(&instance.runner);
    }

    /// What the agent holds against what is known here.
    fn compare(&mut self, asked: EffectId, instance: &InstanceId, found: Vec<Found>) {
        let here: BTreeSet<JobId> = found.iter().map(|found| found.job.clone()).collect();
        let expected =
            self.runners.get(&instance.runner).and_then(|runner| runner.fleet.get(&instance.name)).map(|known| known.jobs.clone());
        for job in expected.into_iter().flatten() {
            let Some(mut turn) = self.turn(&job) else { continue };
            if here.contains(&job) {
                turn.on_found(&instance.name)
            } else {
                turn.on_not_found(&instance.name, asked)
            }
            self.desk.touch_job(&job);
        }
        for found in found {
            self.on_found(instance, found);
        }
        self.judge_found(instance);
    }

    /// One that was there at the start and holds no job is of no use where nobody knows what happened on it.
    fn judge_found(&mut self, instance: &InstanceId) {
        let Some(runner) = self.runners.get_mut(&instance.runner) else { return };
        let environments = &runner.settings.environments;
        runner.fleet.change(&instance.name, environments, |known| {
            let is_unknown = std::mem::take(&mut known.is_preexisting) && known.is_empty();
            if is_unknown && !environments.keeps_found {
                known.retire(Retired::NoData);
            }
        });
    }

    pub(super) fn on_disconnected(&mut self, instance: &InstanceId, reason: String) {
        let Some(runner) = self.runners.get_mut(&instance.runner) else { return };
        let patience = Deadline::after(self.desk.now, runner.settings.environments.ready_timeout);
        runner.fleet.change(&instance.name, &runner.settings.environments, |known| known.suspect(patience));
        runner.fleet.trouble = Some(reason);
        self.touch_contact(instance);
    }

    /// Whether it can be reached has changed: so has what its jobs can do.
    fn touch_contact(&mut self, instance: &InstanceId) {
        self.desk.touch_instance(instance);
        self.desk.touch_runner(&instance.runner);
        let Some(known) = self.runners.get(&instance.runner).and_then(|runner| runner.fleet.get(&instance.name)) else { return };
        known.jobs.iter().for_each(|job| self.desk.touch_job(job));
    }

    pub(super) fn on_inspected(&mut self, id: EffectId, instance: &InstanceId, health: Health) {
        let Some(runner) = self.runners.get_mut(&instance.runner) else { return };
        let desk = &mut self.desk;
        let is_awaited = runner.fleet.change(&instance.name, &runner.settings.environments, |known| {
            let is_awaited = known.inspect.take(id);
            if is_awaited && let Contact::Suspect { is_alive } = &mut known.contact {
                *is_alive = health == Health::Alive;
                desk.failed(&mut known.inspect, Backoff::PROVIDER);
            }
            is_awaited
        });
        match health {
            Health::Gone { cause } if is_awaited == Some(true) => self.is_gone(instance, &cause),
            _ => self.touch_contact(instance),
        }
    }
}

fn reason_to_retire(instance: &Instance, environments: &Environments, is_asked_for: bool, now: Now) -> Option<Retired> {
    if instance.patience.is_some_and(|deadline| deadline.has_passed(now)) && !instance.is_up() {
        return Some(match (instance.state, instance.contact) {
            (InstanceState::Creating, _) => Retired::NeverCreated,
            (_, Contact::Never) => Retired::NeverReady,
            _ => Retired::Unreachable,
        });
    }
    if instance.uses >= environments.uses() && instance.jobs.is_empty() {
        return Some(Retired::UsedUp);
    }
    // Reached, empty, made for nobody, and no request is open whose answer it could be.
    let is_nobodys = environments.shape == Shape::PerJob && instance.is_up() && instance.is_empty() && instance.for_job.is_none();
    (is_nobodys && !is_asked_for).then_some(Retired::Unclaimed)
}
