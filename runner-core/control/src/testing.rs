//! A world for tests that does what it is asked for, at once, unless a test says otherwise.

use crate::controller::{Controller, Seed};
use crate::effect::{Ask, Effect};
use crate::event::{Acknowledgement, Event, FollowEnd, Found, Granted, InstanceState, Offer, PollAnswer, ReportAnswer};
use crate::id::{Generation, InstanceId, InstanceName, JobId, RunnerId};
use crate::record::{Record, Requirements};
use crate::report::Outcome;
use crate::settings::{Environments, RunnerSettings, Settings, Shape};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use step_model::time::{Now, Timestamp};

/// A runner with a group of so many instances.
pub(crate) fn runner(instances: u32) -> RunnerSettings {
    RunnerSettings::new("a", Environments::new(Shape::Group, instances))
}

pub(crate) fn at(seconds: u64) -> Now {
    let nanoseconds = i64::try_from(seconds).unwrap() * 1_000_000_000;
    Now { monotonic: Duration::from_secs(seconds), wall: Timestamp::from_nanoseconds(nanoseconds) }
}

pub(crate) fn id(runner: &str) -> RunnerId {
    RunnerId::new(runner)
}

pub(crate) fn job(number: u64) -> JobId {
    JobId::new(&id("a"), number)
}

pub(crate) fn instance(name: &str) -> InstanceId {
    InstanceId::new(&id("a"), &InstanceName::new(name))
}

pub(crate) fn offer(number: u64) -> Offer {
    Offer { number, timeout: Duration::from_secs(3600), requirements: Requirements::default(), fault: None }
}

/// Settings with this one runner, called `a`.
pub(crate) fn with(runner: RunnerSettings) -> Settings {
    Settings { concurrent: 100, runners: [(id("a"), runner)].into(), ..Settings::default() }
}

/// Carries effects out, the way a calm world would: jobs come in their order, run until the test ends them, and every request is granted.
pub(crate) struct World {
    pub controller: Controller,
    pub now: Now,
    /// Jobs that the server has.
    pub offers: VecDeque<Offer>,
    pub instances: BTreeSet<InstanceName>,
    /// What the agents hold.
    pub held: BTreeSet<(InstanceId, JobId)>,
    /// What the test answers itself, by the name of the effect.
    pub kept_open: BTreeSet<&'static str>,
    /// Everything that was asked for and is not answered.
    pub open: Vec<Effect>,
    /// Everything that was asked for.
    pub asked: Vec<Effect>,
}

impl World {
    pub fn new(settings: Settings) -> Self {
        Self::with_records(settings, Vec::new(), &[])
    }

    /// After a restart.
    pub fn with_records(settings: Settings, records: Vec<Record>, instances: &[&str]) -> Self {
        let (controller, effects) = Controller::start(settings, records, Generation(1), Seed(1), at(0));
        let mut world = Self {
            controller,
            now: at(0),
            offers: VecDeque::new(),
            instances: instances.iter().map(|name| InstanceName::new(name)).collect(),
            held: BTreeSet::new(),
            kept_open: BTreeSet::new(),
            open: Vec::new(),
            asked: Vec::new(),
        };
        world.open = effects;
        world
    }

    /// The test answers effects of these names.
    pub fn keeping(mut self, names: &[&'static str]) -> Self {
        self.kept_open.extend(names);
        self
    }

    pub fn offering(mut self, numbers: std::ops::RangeInclusive<u64>) -> Self {
        self.offers.extend(numbers.map(offer));
        self
    }

    /// Answers everything that the test does not keep for itself.
    pub fn run(&mut self) -> &mut Self {
        while let Some(index) = self.open.iter().position(|effect| !self.kept_open.contains(name_of(effect))) {
            let effect = self.open.remove(index);
            self.asked.push(effect.clone());
            if let Some(event) = self.answer(&effect) {
                let effects = self.controller.on(event, self.now);
                self.open.extend(effects);
            }
        }
        self
    }

    /// Tells an event, and lets the world go on.
    pub fn tell(&mut self, event: Event) -> &mut Self {
        let effects = self.controller.on(event, self.now);
        self.open.extend(effects);
        self.run()
    }

    /// Lets so many seconds pass, and wakes the controller whenever it wants to be.
    pub fn pass(&mut self, seconds: u64) -> &mut Self {
        let end = self.now.monotonic + Duration::from_secs(seconds);
        loop {
            let due = self.controller.next_deadline().map(|deadline| self.now.monotonic + deadline.remaining(self.now));
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.move_to(due);
            self.tell(Event::Woken);
        }
        self.move_to(end);
        self
    }

    fn move_to(&mut self, monotonic: Duration) {
        let nanoseconds = i64::try_from(monotonic.as_nanos()).unwrap();
        self.now = Now { monotonic, wall: Timestamp::from_nanoseconds(nanoseconds) };
    }

    /// As it was started with, for another number of instances.
    pub fn controller_settings(&self, most: u32) -> Settings {
        let mut settings = self.controller.settings().clone();
        settings.runners.values_mut().for_each(|runner| runner.environments.max_instances = most);
        settings
    }

    /// Takes the only open effect of this name.
    pub fn take(&mut self, name: &str) -> Effect {
        let indexes: Vec<_> = self.open.iter().enumerate().filter(|(_, effect)| name_of(effect) == name).map(|(index, _)| index).collect();
        assert_eq!(indexes.len(), 1, "open are {:?}", self.open);
        let effect = self.open.remove(indexes[0]);
        self.asked.push(effect.clone());
        effect
    }

    /// How many of these are open.
    pub fn count_open(&self, name: &str) -> usize {
        self.open.iter().filter(|effect| name_of(effect) == name).count()
    }

    /// The names of what was asked for about a job, in order.
    pub fn asked_about(&self, job: &JobId) -> Vec<&'static str> {
        self.asked.iter().chain(&self.open).filter(|effect| job_of(effect) == Some(job)).map(name_of).collect()
    }

    pub fn asked_for(&self, name: &str) -> Vec<&Effect> {
        self.asked.iter().chain(&self.open).filter(|effect| name_of(effect) == name).collect()
    }

    /// The job's end, by the agent's word.
    pub fn end(&mut self, job: &JobId, outcome: Outcome) -> &mut Self {
        let follow = self.open.iter().position(|effect| matches!(effect, Effect::Follow { job: followed, .. } if followed == job));
        let effect = self.open.remove(follow.unwrap_or_else(|| panic!("{job} is not followed: {:?}", self.open)));
        let id = effect.id().unwrap();
        self.asked.push(effect);
        self.tell(Event::Followed { id, job: job.clone(), end: FollowEnd::Ended(outcome) })
    }

    fn answer(&mut self, effect: &Effect) -> Option<Event> {
        Some(match effect.clone() {
            Effect::Take { id, runner, .. } => {
                let answer = self.offers.pop_front().map_or(PollAnswer::Nothing, |offer| PollAnswer::Job(Box::new(offer)));
                Event::Polled { id, runner, answer, was_retried: false }
            }
            Effect::Verify { id, runner } => Event::Verified { id, runner, is_served: true },
            Effect::Save { id, record } => Event::Saved { id, job: record.job, outcome: Ok(()) },
            Effect::Heartbeat { id, job } => Event::Beaten { id, job, answer: Acknowledgement::Good },
            Effect::Accept { id, job } => Event::Accepted { id, job, answer: Acknowledgement::Good },
            Effect::Increase { id, runner, ask: Ask::Count(count) } => {
                let names = (0..).map(|number| InstanceName::new(&format!("i-{number}")));
                let new: Vec<_> = names.filter(|name| !self.instances.contains(name)).take(usize::try_from(count).unwrap()).collect();
                self.instances.extend(new);
                Event::Increased { id, runner, outcome: Ok(Granted::Count(count)) }
            }
            Effect::Increase { id, runner, ask: Ask::ForJob { job, .. } } => {
                let name = InstanceName::new(&format!("for-{}", job.number));
                self.instances.insert(name.clone());
                Event::Increased { id, runner, outcome: Ok(Granted::Instance(name)) }
            }
            Effect::Decrease { id, runner, instances } => {
                self.instances.retain(|name| !instances.contains(name));
                Event::Decreased { id, runner, outcome: Ok(instances) }
            }
            Effect::Update { id, runner } => {
                let listed = self.instances.iter().map(|name| (name.clone(), InstanceState::Running)).collect();
                Event::Updated { id, runner, outcome: Ok(listed) }
            }
            Effect::Inspect { id, instance } => Event::Inspected { id, instance, health: crate::event::Health::Alive },
            Effect::Connect { id, instance, .. } => {
                let held = self.held.iter().filter(|(place, _)| *place == instance);
                let found = held.map(|(_, job)| Found { job: job.clone(), record: None }).collect();
                Event::Connected { id, instance, outcome: Ok(found) }
            }
            Effect::Dispatch { id, job, instance, .. } => {
                self.held.insert((instance, job.clone()));
                Event::Dispatched { id, job, outcome: Ok(()) }
            }
            Effect::Cancel { id, job, .. } => Event::CancelSent { id, job, outcome: Ok(()) },
            Effect::Close { id, job, instance, .. } => {
                self.held.remove(&(instance, job.clone()));
                Event::Closed { id, job, outcome: Ok(()) }
            }
            Effect::Report { id, job, .. } => Event::Reported { id, job, answer: ReportAnswer::Delivered },
            Effect::Follow { .. } => panic!("a test ends its jobs: keep `Follow` open"),
            Effect::Withdraw { .. } | Effect::Disconnect { .. } | Effect::Forget { .. } | Effect::Disown { .. } | Effect::Exit { .. } => {
                return None;
            }
        })
    }
}

pub(crate) fn name_of(effect: &Effect) -> &'static str {
    match effect {
        Effect::Take { .. } => "Take",
        Effect::Withdraw { .. } => "Withdraw",
        Effect::Verify { .. } => "Verify",
        Effect::Save { .. } => "Save",
        Effect::Heartbeat { .. } => "Heartbeat",
        Effect::Accept { .. } => "Accept",
        Effect::Increase { .. } => "Increase",
        Effect::Decrease { .. } => "Decrease",
        Effect::Update { .. } => "Update",
        Effect::Inspect { .. } => "Inspect",
        Effect::Connect { .. } => "Connect",
        Effect::Disconnect { .. } => "Disconnect",
        Effect::Dispatch { .. } => "Dispatch",
        Effect::Follow { .. } => "Follow",
        Effect::Cancel { .. } => "Cancel",
        Effect::Close { .. } => "Close",
        Effect::Report { .. } => "Report",
        Effect::Forget { .. } => "Forget",
        Effect::Disown { .. } => "Disown",
        Effect::Exit { .. } => "Exit",
    }
}

pub(crate) fn job_of(effect: &Effect) -> Option<&JobId> {
    match effect {
        Effect::Heartbeat { job, .. }
        | Effect::Accept { job, .. }
        | Effect::Dispatch { job, .. }
        | Effect::Follow { job, .. }
        | Effect::Cancel { job, .. }
        | Effect::Close { job, .. }
        | Effect::Report { job, .. }
        | Effect::Forget { job }
        | Effect::Disown { job }
        | Effect::Increase { ask: Ask::ForJob { job, .. }, .. } => Some(job),
        Effect::Save { record, .. } => Some(&record.job),
        _ => None,
    }
}
