//! Environments that boot slowly, fail and vanish, and the agents in them.

use super::{Chaos, Time};
use crate::event::{DispatchFault, FollowEnd, Found, Granted, Health, InstanceState, Refusal};
use crate::id::{EffectId, Generation, InstanceId, InstanceName, JobId, RunnerId};
use crate::record::Record;
use crate::report::{Outcome, OutcomeKind};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Cloud {
    pub instances: BTreeMap<InstanceId, Machine>,
    made: u64,
    /// How often each job was begun, anywhere.
    pub runs: BTreeMap<JobId, u32>,
    /// How each job ended by itself, where it did.
    pub outcomes: BTreeMap<JobId, Outcome>,
    /// Jobs whose environment vanished under them, or forgot them.
    pub lost: BTreeMap<JobId, InstanceId>,
    pub most: u32,
}

#[derive(Debug)]
pub(super) struct Machine {
    /// `None`: it never boots.
    running_at: Option<Time>,
    deleted_at: Option<Time>,
    /// Asked for by somebody who answers calls of a later generation only.
    generation: Generation,
    pub jobs: BTreeMap<JobId, AgentJob>,
}

#[derive(Debug)]
pub(super) struct AgentJob {
    pub ends_at: Time,
    pub outcome: Outcome,
    /// What travelled with it.
    record: Record,
    /// Who follows it.
    pub follower: Option<(u32, EffectId)>,
    pub has_ended: bool,
}

fn refused(reason: &str) -> Refusal {
    Refusal { reason: reason.into(), is_final: false }
}

impl Cloud {
    pub fn increase(&mut self, runner: &RunnerId, count: u32, now: Time, chaos: &mut Chaos) -> Result<Granted, Refusal> {
        if chaos.happens(10) {
            return Err(refused("quota"));
        }
        let granted = if chaos.happens(10) { count / 2 } else { count };
        (0..granted).for_each(|_| {
            self.make(runner, now, chaos);
        });
        Ok(Granted::Count(granted))
    }

    pub fn provide(&mut self, runner: &RunnerId, now: Time, chaos: &mut Chaos) -> Result<Granted, Refusal> {
        if chaos.happens(10) {
            return Err(refused("quota"));
        }
        let name = self.make(runner, now, chaos);
        Ok(Granted::Instance(name))
    }

    fn make(&mut self, runner: &RunnerId, now: Time, chaos: &mut Chaos) -> InstanceName {
        self.made += 1;
        let name = InstanceName::new(&format!("m{}", self.made));
        let running_at = if chaos.happens(8) { None } else { Some(now + chaos.below(40_000)) };
        let machine = Machine { running_at, deleted_at: None, generation: Generation(0), jobs: BTreeMap::new() };
        self.instances.insert(InstanceId::new(runner, &name), machine);
        self.most = self.most.max(u32::try_from(self.instances.len()).unwrap());
        name
    }

    pub fn decrease(
        &mut self,
        runner: &RunnerId,
        names: &[InstanceName],
        now: Time,
        chaos: &mut Chaos,
    ) -> Result<Vec<InstanceName>, Refusal> {
        if chaos.happens(10) {
            return Err(refused("try later"));
        }
        for name in names {
            if let Some(machine) = self.instances.get_mut(&InstanceId::new(runner, name)) {
                machine.deleted_at.get_or_insert(now + chaos.below(10_000));
            }
        }
        Ok(names.to_vec())
    }

    /// Machines whose time has come are gone.
    pub fn tick(&mut self, now: Time) {
        let gone: Vec<_> =
            self.instances.iter().filter(|(_, machine)| machine.deleted_at.is_some_and(|at| at <= now)).map(|(id, _)| id.clone()).collect();
        gone.iter().for_each(|id| self.vanish(id));
    }

    pub fn vanish(&mut self, id: &InstanceId) {
        if let Some(machine) = self.instances.remove(id) {
            for (job, held) in machine.jobs {
                if !held.has_ended {
                    self.lost.insert(job.clone(), id.clone());
                }
                // A result that nobody fetched is lost too.
                self.lost.entry(job).or_insert_with(|| id.clone());
            }
        }
    }

    pub fn list(&mut self, runner: &RunnerId, now: Time) -> Vec<(InstanceName, InstanceState)> {
        self.tick(now);
        let ours = self.instances.iter().filter(|(id, _)| id.runner == *runner);
        ours.map(|(id, machine)| (id.name.clone(), machine.state(now))).collect()
    }

    pub fn health(&mut self, id: &InstanceId, now: Time, chaos: &mut Chaos) -> Health {
        self.tick(now);
        if chaos.happens(10) {
            return Health::Unknown { reason: "timeout".into() };
        }
        if self.instances.contains_key(id) { Health::Alive } else { Health::Gone { cause: "not found".into() } }
    }

    /// `None`: nobody answers.
    fn reach(&mut self, id: &InstanceId, generation: Generation, now: Time) -> Option<&mut Machine> {
        self.tick(now);
        let machine = self.instances.get_mut(id).filter(|machine| machine.state(now) == InstanceState::Running)?;
        machine.generation = machine.generation.max(generation);
        Some(machine)
    }

    pub fn connect(&mut self, id: &InstanceId, generation: Generation, now: Time) -> Result<Vec<Found>, Refusal> {
        let machine = self.reach(id, generation, now).ok_or_else(|| refused("connection refused"))?;
        let found = |(job, held): (&JobId, &AgentJob)| Found { job: job.clone(), record: Some(Box::new(held.record.clone())) };
        Ok(machine.jobs.iter().map(found).collect())
    }

    pub fn dispatch(
        &mut self,
        id: &InstanceId,
        record: Record,
        generation: Generation,
        now: Time,
        chaos: &mut Chaos,
    ) -> Result<(), DispatchFault> {
        let unreachable = || DispatchFault::Unreachable { reason: "reset".into() };
        let machine = self.reach(id, generation, now).ok_or_else(unreachable)?;
        if generation < machine.generation {
            return Err(DispatchFault::Fenced);
        }
        if chaos.happens(5) {
            return Err(DispatchFault::Busy { reason: "full".into() });
        }
        let job = record.job.clone();
        if machine.jobs.contains_key(&job) {
            return Ok(());
        }
        let outcome = match chaos.below(3) {
            0 => Outcome::Failure { kind: OutcomeKind::StepFailure, exit_code: Some(1), message: "exit status 1".into() },
            _ => Outcome::Success,
        };
        // Now and then a job that does not end by itself in time.
        let length = if chaos.happens(5) { 4_000_000 } else { chaos.below(100_000) };
        let held = AgentJob { ends_at: now + length, outcome, record, follower: None, has_ended: false };
        machine.jobs.insert(job.clone(), held);
        *self.runs.entry(job).or_default() += 1;
        Ok(())
    }

    /// `None`: it is followed, and its end will be told.
    pub fn follow(
        &mut self,
        id: &InstanceId,
        job: &JobId,
        follower: (u32, EffectId),
        generation: Generation,
        now: Time,
    ) -> Option<FollowEnd> {
        let Some(machine) = self.reach(id, generation, now) else { return Some(FollowEnd::Broken { reason: "reset".into() }) };
        if generation < machine.generation {
            return Some(FollowEnd::Fenced);
        }
        match machine.jobs.get_mut(job) {
            None => Some(FollowEnd::UnknownJob),
            Some(held) if held.has_ended => Some(FollowEnd::Ended(held.outcome.clone())),
            Some(held) => {
                held.follower = Some(follower);
                None
            }
        }
    }

    pub fn cancel(&mut self, id: &InstanceId, job: &JobId, at_once: bool, now: Time, chaos: &mut Chaos) -> Result<(), String> {
        let machine = self.reach(id, Generation(0), now).ok_or("reset")?;
        if let Some(held) = machine.jobs.get_mut(job).filter(|held| !held.has_ended) {
            let kind = OutcomeKind::Cancelled;
            held.outcome = Outcome::Failure { kind, exit_code: None, message: "cancelled".into() };
            let patience = if at_once { 1_000 } else { 20_000 };
            held.ends_at = held.ends_at.min(now + chaos.below(patience));
        }
        Ok(())
    }

    pub fn close(&mut self, id: &InstanceId, job: &JobId, now: Time) -> Result<(), String> {
        let machine = self.reach(id, Generation(0), now).ok_or("reset")?;
        machine.jobs.remove(job);
        Ok(())
    }

    /// Jobs that have come to their end, and who follows them.
    pub fn end_jobs(&mut self, now: Time) -> Vec<(JobId, (u32, EffectId), Outcome)> {
        self.tick(now);
        let mut told = Vec::new();
        for machine in self.instances.values_mut() {
            for (job, held) in machine.jobs.iter_mut().filter(|(_, held)| !held.has_ended && held.ends_at <= now) {
                held.has_ended = true;
                self.outcomes.insert(job.clone(), held.outcome.clone());
                told.extend(held.follower.take().map(|follower| (job.clone(), follower, held.outcome.clone())));
            }
        }
        told
    }

    pub fn next_end(&self) -> Option<Time> {
        let open = self.instances.values().flat_map(|machine| machine.jobs.values()).filter(|held| !held.has_ended);
        open.map(|held| held.ends_at).min()
    }
}

impl Machine {
    pub fn is_going(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn state(&self, now: Time) -> InstanceState {
        match (self.deleted_at, self.running_at) {
            (Some(_), _) => InstanceState::Deleting,
            (None, Some(at)) if at <= now => InstanceState::Running,
            _ => InstanceState::Creating,
        }
    }
}
