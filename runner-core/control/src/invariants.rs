//! What holds after every event, whatever happened: checked in tests and simulations.

use crate::agenda::Subject;
use crate::controller::Controller;
use crate::effect::{Ask, Effect};
use crate::event::{Acknowledgement, Event, ReportAnswer};
use crate::fleet::instance::Instance;
use crate::id::{EffectId, InstanceId, JobId, RunnerId};
use crate::job::Phase;
use crate::record::{Stage, StopReason};
use crate::settings::Shape;
use std::collections::{BTreeMap, BTreeSet};
use step_model::time::Now;

/// Remembers what a process was told and asked for. One for each life of a controller; it sees all events and effects in their order.
#[derive(Debug, Default)]
pub struct Watch {
    latest: u64,
    /// Stages that are durable, by job.
    saved: BTreeMap<JobId, Stage>,
    saving: BTreeMap<EffectId, (JobId, Stage)>,
    accepted: BTreeSet<JobId>,
    /// The server has the report, or wants none.
    reported: BTreeSet<JobId>,
    /// Nothing may follow.
    forgotten: BTreeSet<JobId>,
    /// Where an agent was asked to run it.
    dispatched: BTreeMap<JobId, InstanceId>,
    /// Effects about one subject that are open, by what they do.
    open: BTreeMap<EffectId, (&'static str, Subject)>,
    open_subjects: BTreeSet<(&'static str, Subject)>,
    has_exited: bool,
}

impl Watch {
    /// Of a process that begins with these records.
    pub fn of_records(records: &[crate::record::Record]) -> Self {
        let mut watch = Self::default();
        for record in records {
            watch.saved.insert(record.job.clone(), record.stage.clone());
            if record.accepted {
                watch.accepted.insert(record.job.clone());
            }
        }
        watch
    }

    /// # Panics
    /// When an invariant is broken, with the words of the invariant.
    pub fn check(&mut self, controller: &Controller, event: Option<&Event>, effects: &[Effect], now: Now) {
        if let Some(event) = event {
            self.hear(event);
        }
        effects.iter().for_each(|effect| self.see(controller, effect));
        check_sums(controller);
        check_slots(controller);
        check_queues(controller);
        if let Some(deadline) = controller.next_deadline() {
            assert!(!deadline.has_passed(now), "what is due is done, or is not waited for");
        }
    }

    fn hear(&mut self, event: &Event) {
        if let Some(kind) = id_of(event).and_then(|id| self.open.remove(&id)) {
            self.open_subjects.remove(&kind);
        }
        match event {
            Event::Saved { id, outcome: Ok(()), .. } => {
                if let Some((job, stage)) = self.saving.remove(id) {
                    self.saved.insert(job, stage);
                }
            }
            Event::Accepted { job, answer: Acknowledgement::Good | Acknowledgement::Canceling, .. } => {
                self.accepted.insert(job.clone());
            }
            Event::Reported { job, answer: ReportAnswer::Delivered | ReportAnswer::Unwanted, .. } => {
                self.reported.insert(job.clone());
            }
            // It was accepted by a process that is gone.
            Event::Connected { outcome: Ok(found), .. } => self.accepted.extend(found.iter().map(|found| found.job.clone())),
            _ => {}
        }
    }

    fn see(&mut self, controller: &Controller, effect: &Effect) {
        assert!(!self.has_exited, "nothing follows the exit: {effect:?}");
        if let Some(id) = effect.id() {
            assert!(id.0 > self.latest, "ids rise");
            self.latest = id.0;
        }
        if let Some((what, subject)) = kind_of(effect) {
            let is_new = self.open_subjects.insert((what, subject.clone()));
            assert!(is_new, "one {what} at a time: {effect:?}");
            self.open.extend(effect.id().map(|id| (id, (what, subject))));
        }
        if let Some(job) = job_of(effect) {
            assert!(!self.forgotten.contains(job), "nothing follows for a job that is over: {effect:?}");
        }
        match effect {
            Effect::Take { runner, .. } => check_intake(controller, runner),
            Effect::Save { id, record } => {
                self.saving.insert(*id, (record.job.clone(), record.stage.clone()));
            }
            Effect::Heartbeat { job, .. } | Effect::Accept { job, .. } => {
                assert!(self.saved.contains_key(job), "the record is durable before the server hears of it: {effect:?}");
            }
            Effect::Dispatch { job, instance, .. } => {
                assert!(self.accepted.contains(job), "nothing runs that was not accepted: {effect:?}");
                let is_named = matches!(self.saved.get(job), Some(Stage::Dispatching { instance: saved }) if *saved == instance.name);
                assert!(is_named, "the record names the environment before its agent is asked: {effect:?}");
                self.dispatched.insert(job.clone(), instance.clone());
            }
            Effect::Report { job, .. } => {
                let was_canceled = controller.get_job(job).is_some_and(|job| job.record.stopping == Some(StopReason::Canceled));
                assert!(self.accepted.contains(job) || was_canceled, "a report follows what was accepted: {effect:?}");
                assert!(!self.reported.contains(job), "a report is not repeated: {effect:?}");
            }
            Effect::Increase { runner, ask: Ask::Count(_), .. } => check_most(controller, runner),
            Effect::Decrease { runner, instances, .. } => {
                for name in instances {
                    let fleet = controller.all_runners().find(|(id, _)| *id == runner).map(|(_, runner)| &runner.fleet);
                    let is_empty = fleet.and_then(|fleet| fleet.get(name)).is_none_or(Instance::is_empty);
                    assert!(is_empty, "nothing is removed that holds a job: {name}");
                }
            }
            Effect::Forget { job } => {
                // A number that was given back may be offered again, as long as nobody ran it.
                if self.dispatched.contains_key(job) || self.reported.contains(job) {
                    self.forgotten.insert(job.clone());
                }
                self.saved.remove(job);
            }
            Effect::Disown { job } => {
                self.forgotten.insert(job.clone());
            }
            Effect::Exit { .. } => self.has_exited = true,
            _ => {}
        }
    }
}

/// What is asked for, what there is and what is being removed are together no more than there may be.
fn check_most(controller: &Controller, id: &RunnerId) {
    let Some((_, runner)) = controller.all_runners().find(|(runner, _)| *runner == id) else { panic!("{id} is no runner") };
    let figures = runner.figures();
    let most = runner.settings.environments.max_instances;
    assert!(figures.total <= most, "never more instances than there may be: {figures:?} of {most}");
}

/// A poll is only opened when its job would find a place.
fn check_intake(controller: &Controller, id: &RunnerId) {
    let Some((_, runner)) = controller.all_runners().find(|(runner, _)| *runner == id) else { panic!("{id} is no runner") };
    let limit = runner.settings.limit;
    assert!(limit == 0 || runner.jobs + runner.open() <= limit, "`limit` holds, open polls included");
    assert!(controller.busy() <= controller.concurrent(), "`concurrent` holds, open polls included");
    assert!(runner.open() <= runner.settings.request_concurrency(), "`request_concurrency` holds");
    let environments = &runner.settings.environments;
    // A provider may have made more than it was asked for.
    let most = environments.max_instances.max(runner.fleet.len()).saturating_mul(environments.capacity());
    // One that has ended may have given its place to another before its record said so.
    let placed = controller.all_jobs().filter(|(job, known)| job.runner == *id && known.instance().is_some() && !known.has_ended());
    let holding = u32::try_from(placed.count()).unwrap_or(u32::MAX);
    let waiting = u32::try_from(runner.queue.len()).unwrap_or(u32::MAX);
    assert!(holding + waiting + runner.open() <= most, "no job is asked for without a place");
}

fn check_sums(controller: &Controller) {
    let mut polls = 0;
    for (id, runner) in controller.all_runners() {
        runner.fleet.check_counts(&runner.settings.environments);
        let jobs = controller.all_jobs().filter(|(job, _)| job.runner == *id).count();
        assert_eq!(usize::try_from(runner.jobs), Ok(jobs), "a runner knows how many jobs it has");
        polls += runner.open();
    }
    assert_eq!(polls, controller.polls(), "open polls are those of the runners");
}

/// Every slot is in exactly one state, and both sides know it.
fn check_slots(controller: &Controller) {
    for (id, runner) in controller.all_runners() {
        let environments = &runner.settings.environments;
        assert!(runner.fleet.len() >= runner.fleet.counts.live);
        for (name, instance) in runner.fleet.instances() {
            // One that has ended may have given its place to another before its record said so.
            let has_place = |job: &&JobId| controller.get_job(job).is_none_or(|job| !job.has_ended());
            let used = u32::try_from(instance.jobs.iter().filter(has_place).count()).unwrap_or(u32::MAX);
            assert!(used <= environments.capacity(), "{name} holds {used} jobs");
            for job in &instance.jobs {
                let place = controller.get_job(job).and_then(|job| job.instance());
                assert_eq!(place, Some(name), "{job} knows where it is");
            }
            assert!(environments.shape == Shape::Group || used <= 1);
        }
        for (job_id, job) in controller.all_jobs().filter(|(job, _)| job.runner == *id) {
            let Some(name) = job.instance() else { continue };
            match runner.fleet.get(name) {
                Some(instance) => assert!(instance.jobs.contains(job_id), "{name} knows what it holds"),
                None => assert!(job.has_ended(), "{job_id} has a place that does not exist"),
            }
        }
    }
}

fn check_queues(controller: &Controller) {
    for (id, runner) in controller.all_runners() {
        for (arrival, job) in &runner.queue {
            let job = controller.get_job(job).unwrap_or_else(|| panic!("{job} waits and does not exist"));
            assert!(matches!(job.phase, Phase::Waiting) && job.arrival == *arrival, "only what waits is in the queue");
        }
        let waiting = controller.all_jobs().filter(|(job_id, job)| job_id.runner == *id && matches!(job.phase, Phase::Waiting)).count();
        assert_eq!(waiting, runner.queue.len(), "all that waits is in the queue");
    }
}

/// What may be open only once, and about whom.
fn kind_of(effect: &Effect) -> Option<(&'static str, Subject)> {
    let (job_of, runner_of) = (|job: &JobId| Subject::Job(job.clone()), |runner: &RunnerId| Subject::Runner(runner.clone()));
    Some(match effect {
        Effect::Save { record, .. } => ("Save", job_of(&record.job)),
        Effect::Heartbeat { job, .. } => ("Heartbeat", job_of(job)),
        Effect::Accept { job, .. } => ("Accept", job_of(job)),
        Effect::Dispatch { job, .. } => ("Dispatch", job_of(job)),
        Effect::Follow { job, .. } => ("Follow", job_of(job)),
        Effect::Close { job, .. } => ("Close", job_of(job)),
        Effect::Report { job, .. } => ("Report", job_of(job)),
        Effect::Update { runner, .. } => ("Update", runner_of(runner)),
        Effect::Decrease { runner, .. } => ("Decrease", runner_of(runner)),
        Effect::Connect { instance, .. } => ("Connect", Subject::Instance(instance.clone())),
        Effect::Verify { runner, .. } => ("Verify", runner_of(runner)),
        _ => return None,
    })
}

fn job_of(effect: &Effect) -> Option<&JobId> {
    match effect {
        Effect::Heartbeat { job, .. }
        | Effect::Accept { job, .. }
        | Effect::Dispatch { job, .. }
        | Effect::Follow { job, .. }
        | Effect::Cancel { job, .. }
        | Effect::Close { job, .. }
        | Effect::Report { job, .. }
        | Effect::Forget { job } => Some(job),
        Effect::Save { record, .. } => Some(&record.job),
        _ => None,
    }
}

fn id_of(event: &Event) -> Option<EffectId> {
    match event {
        Event::Polled { id, .. }
        | Event::Verified { id, .. }
        | Event::Saved { id, .. }
        | Event::Beaten { id, .. }
        | Event::Accepted { id, .. }
        | Event::Increased { id, .. }
        | Event::Decreased { id, .. }
        | Event::Updated { id, .. }
        | Event::Inspected { id, .. }
        | Event::Connected { id, .. }
        | Event::Dispatched { id, .. }
        | Event::Followed { id, .. }
        | Event::CancelSent { id, .. }
        | Event::Closed { id, .. }
        | Event::Reported { id, .. } => Some(*id),
        _ => None,
    }
}
