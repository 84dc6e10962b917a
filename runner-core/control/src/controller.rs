//! The machine: events go to whom they concern, and whatever they touched is moved on as far as it can go.

mod ending;
mod fleet_events;
mod growing;
mod instances;
mod intake;
mod job_events;
mod recovery;
mod reload;
mod scaling;

use crate::agenda::Subject;
use crate::desk::Desk;
use crate::effect::Effect;
use crate::event::Event;
use crate::id::{Generation, JobId, RunnerId};
use crate::job::{Job, LOSS_PATIENCE};
use crate::record::Record;
use crate::runner::Runner;
use crate::settings::Settings;
use crate::turn::{Fate, Turn};
use ending::Mode;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use step_model::time::{Deadline, Now};

/// Jitter comes from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

/// So many jobs that are over are remembered, so that one that is offered or found again is not run again.
const REMEMBERED: usize = 10_000;

/// Which job runs where and when, over all runners of a process.
///
/// ```text
///  event --> whom it concerns is changed, and marked as touched
///            then, until nothing is marked:  job > instance > runner > process   are moved on as far as they can go
///            each says when it wants to be looked at again
/// ```
///
/// Only what is touched is visited, so an event costs `O(log n)` with 10,000 jobs as with ten.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    mode: Mode,
    runners: BTreeMap<RunnerId, Runner>,
    jobs: BTreeMap<JobId, Job>,
    /// Polls that are open, of all runners.
    polls: u32,
    /// Runners that only `concurrent` holds back, in the order in which it began to.
    hungry: BTreeSet<(u64, RunnerId)>,
    /// The runner whose turn among them it is.
    called: Option<RunnerId>,
    /// Numbers of arrivals and of turns.
    counter: u64,
    over: Remembered,
    /// When the process exits whatever is left.
    end_by: Option<Deadline>,
    /// While detaching: jobs whose record is not durable as it is.
    unsaved: BTreeSet<JobId>,
    /// Records of runners that the configuration does not have. They stay in the store.
    unserved: Vec<JobId>,
    desk: Desk,
}

/// Jobs that are over, the latest ones.
#[derive(Debug, Default)]
struct Remembered {
    known: BTreeSet<JobId>,
    order: VecDeque<JobId>,
}

impl Controller {
    /// `records`: what the store holds of the process before. `generation`: higher than that of any process that wrote to this store.
    pub fn start(settings: Settings, records: Vec<Record>, generation: Generation, seed: Seed, now: Now) -> (Self, Vec<Effect>) {
        let mut controller = Self {
            mode: Mode::Serving,
            runners: BTreeMap::new(),
            jobs: BTreeMap::new(),
            polls: 0,
            hungry: BTreeSet::new(),
            called: None,
            counter: 0,
            over: Remembered::default(),
            end_by: None,
            unsaved: BTreeSet::new(),
            unserved: Vec::new(),
            desk: Desk::new(seed.0, generation, now),
            settings,
        };
        controller.begin_runners();
        records.into_iter().for_each(|record| controller.recover(record));
        controller.tidy();
        let effects = controller.desk.take_effects();
        (controller, effects)
    }

    /// Total: any event, at any time, without a panic. An outcome that nobody waits for is ignored.
    pub fn on(&mut self, event: Event, now: Now) -> Vec<Effect> {
        if self.mode == Mode::Exited {
            return Vec::new();
        }
        self.desk.now = now;
        while let Some(subject) = self.desk.agenda.pop_due(now) {
            self.desk.touch(subject);
        }
        self.handle(event);
        self.tidy();
        self.desk.take_effects()
    }

    /// `on(Event::Woken, ..)` is due no later than this.
    pub fn next_deadline(&self) -> Option<Deadline> {
        if self.mode == Mode::Exited { None } else { self.desk.agenda.next() }
    }

    /// Jobs whose records name a runner that the configuration does not have. They stay as they are.
    pub fn unserved(&self) -> &[JobId] {
        &self.unserved
    }

    pub fn has_exited(&self) -> bool {
        self.mode == Mode::Exited
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Polled { id, runner, answer, was_retried } => self.on_polled(id, &runner, answer, was_retried),
            Event::Verified { id, runner, is_served } => self.on_verified(id, &runner, is_served),
            Event::Saved { id, job, outcome } => self.on_saved(id, &job, outcome),
            Event::Beaten { id, job, answer } => self.on_beaten(id, &job, answer),
            Event::Accepted { id, job, answer } => self.on_accepted(id, &job, answer),
            Event::Increased { id, runner, outcome } => self.on_increased(id, &runner, outcome),
            Event::Decreased { id, runner, outcome } => self.on_decreased(id, &runner, outcome),
            Event::Updated { id, runner, outcome } => self.on_updated(id, &runner, outcome),
            Event::Inspected { id, instance, health } => self.on_inspected(id, &instance, health),
            Event::Connected { id, instance, outcome } => self.on_connected(id, &instance, outcome),
            Event::Disconnected { instance, reason } => self.on_disconnected(&instance, reason),
            Event::Dispatched { id, job, outcome } => self.on_dispatched(id, &job, outcome),
            Event::Progressed { job, bytes } => self.on_progressed(&job, bytes),
            Event::Followed { id, job, end } => self.on_followed(id, &job, end),
            Event::CancelSent { id, job, outcome } => self.on_cancel_sent(id, &job, outcome),
            Event::Closed { id, job, outcome } => self.on_closed(id, &job, outcome),
            Event::Reported { id, job, answer } => self.on_reported(id, &job, answer),
            Event::ServerSaid { job, word } => self.on_server_said(&job, word),
            Event::Announced { runner, jobs } => self.on_announced(&runner, jobs),
            Event::Reloaded { settings } => self.on_reloaded(*settings),
            Event::Drain => self.on_drain(),
            Event::Stop => self.on_stop(),
            Event::Detach => self.on_detach(),
            Event::Woken => {}
        }
    }

    /// Moves on whatever was touched, until nothing more follows from it.
    fn tidy(&mut self) {
        loop {
            match self.desk.pop_dirty() {
                Some(Subject::Job(job)) => self.advance_job(&job),
                Some(Subject::Instance(instance)) => self.advance_instance(&instance),
                Some(Subject::Runner(runner)) => self.advance_runner(&runner),
                Some(Subject::Process) => self.advance_ending(),
                None => match self.next_hungry() {
                    Some(runner) => self.desk.touch_runner(&runner),
                    None => return,
                },
            }
            if self.mode == Mode::Exited {
                return;
            }
        }
    }

    fn advance_job(&mut self, id: &JobId) {
        let is_leaving = self.mode == Mode::Detaching;
        let Some(mut turn) = self.turn(id) else { return };
        let fate = turn.advance(is_leaving);
        self.keep(id, fate);
    }

    /// After a turn.
    fn keep(&mut self, id: &JobId, fate: Fate) {
        let effect = match fate {
            Fate::Stays => {
                let Some(job) = self.jobs.get(id) else { return };
                let due = job.due().filter(|deadline| !deadline.has_passed(self.desk.now));
                self.desk.agenda.set(&Subject::Job(id.clone()), due);
                if self.mode == Mode::Detaching {
                    self.note_unsaved(id);
                }
                return;
            }
            Fate::Over => Effect::Forget { job: id.clone() },
            Fate::Disowned => Effect::Disown { job: id.clone() },
        };
        self.desk.tell(effect);
        self.unsaved.remove(id);
        self.desk.agenda.set(&Subject::Job(id.clone()), None);
        // Nobody ran one that was given back: should it be offered again, it is taken.
        let has_run = self.jobs.get(id).is_some_and(|job| job.record.accepted);
        if has_run {
            self.remember(id);
        }
        self.jobs.remove(id);
        if let Some(runner) = self.runners.get_mut(&id.runner) {
            runner.jobs -= 1;
        }
        self.desk.touch_runner(&id.runner);
        self.desk.touch(Subject::Process);
    }

    /// `None`: there is no such job.
    fn turn<'a>(&'a mut self, id: &'a JobId) -> Option<Turn<'a>> {
        let job = self.jobs.get_mut(id)?;
        let runner = self.runners.get_mut(&id.runner)?;
        Some(Turn { id, job, runner, desk: &mut self.desk })
    }

    fn remember(&mut self, id: &JobId) {
        if self.over.known.insert(id.clone()) {
            self.over.order.push_back(id.clone());
        }
        if self.over.order.len() > REMEMBERED
            && let Some(oldest) = self.over.order.pop_front()
        {
            self.over.known.remove(&oldest);
        }
    }

    fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn begin_runners(&mut self) {
        let now = self.desk.now;
        let count = u32::try_from(self.settings.runners.len()).unwrap_or(u32::MAX).max(1);
        let pause = self.settings.pause() / count;
        let settle_by = Deadline::after(now, LOSS_PATIENCE);
        // One after another over the first interval, as a feeder that goes round would poll them.
        for (index, (id, settings)) in (0..).zip(&self.settings.runners) {
            let next = (index > 0).then(|| Deadline::after(now, pause * index));
            self.runners.insert(id.clone(), Runner::new(settings.clone(), next, settle_by));
            self.desk.touch_runner(id);
        }
    }

    #[cfg(test)]
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// When the latest event happened.
    pub(crate) fn now(&self) -> Now {
        self.desk.now
    }

    pub(crate) fn all_jobs(&self) -> impl Iterator<Item = (&JobId, &Job)> {
        self.jobs.iter()
    }

    pub(crate) fn get_job(&self, id: &JobId) -> Option<&Job> {
        self.jobs.get(id)
    }

    pub(crate) fn all_runners(&self) -> impl Iterator<Item = (&RunnerId, &Runner)> {
        self.runners.iter()
    }

    pub(crate) fn concurrent(&self) -> u32 {
        self.settings.concurrent
    }

    pub(crate) fn polls(&self) -> u32 {
        self.polls
    }

    /// Jobs and polls that count against `concurrent`.
    pub(crate) fn busy(&self) -> u32 {
        u32::try_from(self.jobs.len()).unwrap_or(u32::MAX).saturating_add(self.polls)
    }
}

#[cfg(test)]
mod tests;
