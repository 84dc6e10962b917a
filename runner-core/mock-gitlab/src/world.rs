//! What a server knows and how it answers, as a machine over values: requests and time come in, answers go out.
//!
//! ```text
//!   Planned --at--> Queued --201--> Offered --PUT running--> Running --PUT success, failed--> Archiving --> Ended
//!                     ^                |  (two-phase; else        |                                            ^
//!                     '-- offered twice'   Running at once)       '-- cancelled, too long ---------------------'
//! ```

mod artifacts;
mod control;
mod faults;
mod jobs;
mod offers;
mod results;
mod runners;
mod traces;
mod updates;

pub use jobs::{Ended, Job, JobKey, Stage};
pub use results::{ResultAnswer, TakenResult};

use crate::checker::Violation;
use crate::message::{Delivery, Reply, Request};
use crate::record::{Entry, Record};
use crate::scenario::{CallKind, Scenario, Wrong};
use faults::Faults;
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether a request is answered now.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    Answer(Reply),
    /// Ask again when something has changed, at the latest then.
    Hold {
        until: Duration,
    },
}

/// A whole server.
#[derive(Debug)]
pub struct World {
    scenario: Scenario,
    /// How runners reach it; stands in payloads.
    url: String,
    jobs: BTreeMap<JobKey, Job>,
    runners: BTreeMap<String, runners::Account>,
    next_runner: u64,
    next_job: BTreeMap<u64, u64>,
    faults: Faults,
    results: Vec<TakenResult>,
    record: Record,
    violations: Vec<Violation>,
}

impl World {
    pub fn new(scenario: Scenario, url: impl Into<String>) -> Self {
        let runners = runners::of(&scenario);
        let mut world = Self {
            url: url.into(),
            jobs: BTreeMap::new(),
            next_runner: runners.values().map(|runner| runner.id).max().unwrap_or(0) + 1,
            runners,
            next_job: BTreeMap::new(),
            faults: Faults::new(&scenario.faults),
            results: Vec::new(),
            record: Record::default(),
            violations: Vec::new(),
            scenario,
        };
        for burst in world.scenario.bursts.clone() {
            world.plan(&burst, Duration::ZERO);
        }
        world
    }

    /// Answers a request. `arrived` is when it came; `now` is the same, or later when it was held.
    pub fn on(&mut self, request: &Request, arrived: Duration, now: Duration) -> Turn {
        self.tick(now);
        if request.path.starts_with("/mock/") || request.path == "/mock" {
            return Turn::Answer(self.control(request, now));
        }
        let call = self.kind_of(request);
        let fault = self.faults.hit(call, self.job_of(request).map(|key| key.id), arrived == now);
        let turn = match fault.as_ref().and_then(faults::instead) {
            Some(reply) => Turn::Answer(reply),
            None => self.answer(request, call, arrived, now),
        };
        let mut reply = match turn {
            // A fault that was used up by a request that is held is remembered for it.
            Turn::Hold { until } => {
                self.faults.give_back(fault);
                return Turn::Hold { until };
            }
            Turn::Answer(reply) => reply,
        };
        match fault.as_ref() {
            Some(Wrong::Half) => reply.delivery = Delivery::Half,
            Some(Wrong::Lost) => reply.delivery = Delivery::Lost,
            Some(Wrong::Slow { seconds }) => reply.delivery = Delivery::Late(seconds.duration()),
            _ => {}
        }
        self.note(request, call, &reply, now);
        Turn::Answer(reply)
    }

    fn answer(&mut self, request: &Request, call: CallKind, arrived: Duration, now: Duration) -> Turn {
        self.check_form(request, call, now);
        let parts: Vec<&str> = request.path.split('/').collect();
        let reply = match (request.method.as_str(), parts.as_slice()) {
            ("POST", ["jobs", "request"]) => return self.offer(request, arrived, now),
            ("PUT", ["jobs", id]) => self.update(request, id, now),
            ("PATCH", ["jobs", id, "trace"]) => self.patch(request, id, now),
            ("POST", ["jobs", id, "artifacts"]) => self.upload(request, id),
            ("GET", ["jobs", id, "artifacts"]) => self.download(request, id),
            ("POST", ["runners"]) => self.register(request),
            ("POST", ["user", "runners"]) => self.create(request),
            ("POST", ["runners", "verify"]) => self.verify(request),
            ("POST", ["runners", "reset_authentication_token"]) => self.reset(request),
            ("POST", ["runners", id, "reset_authentication_token"]) => self.reset_by_user(request, id),
            ("DELETE", ["runners"]) => self.remove(request),
            ("DELETE", ["runners", "managers"]) => self.remove_manager(request),
            _ => Reply::message(404, "Not Found"),
        };
        Turn::Answer(reply)
    }

    /// When something happens by itself. The owner of the clock calls [`World::tick`] then.
    pub fn next_change(&self) -> Option<Duration> {
        self.jobs.values().filter_map(|job| job.next_change(&self.scenario)).min()
    }

    /// Moves to `now` what time moves: jobs that come, cancels, jobs that nobody accepted.
    pub fn tick(&mut self, now: Duration) {
        let due: Vec<JobKey> =
            self.jobs.iter().filter(|(_, job)| job.next_change(&self.scenario).is_some_and(|at| at <= now)).map(|(key, _)| *key).collect();
        for key in due {
            if let Some(job) = self.jobs.get_mut(&key) {
                job.tick(&self.scenario, now);
            }
            if self.jobs.get(&key).is_some_and(|job| job.stage == Stage::Queued) {
                self.new_ticket(key);
            }
        }
    }

    pub fn jobs(&self) -> &BTreeMap<JobKey, Job> {
        &self.jobs
    }

    pub fn record(&self) -> &[Entry] {
        self.record.entries()
    }

    /// What runners did that a server does not allow or does not expect.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn note(&mut self, request: &Request, call: CallKind, reply: &Reply, now: Duration) {
        let job = self.job_of(request);
        self.record.add(Entry::of(request, call, job, reply, now));
        if let Some(job) = job.and_then(|key| self.jobs.get_mut(&key)) {
            job.told(call, reply, now);
        }
    }

    fn kind_of(&self, request: &Request) -> CallKind {
        let parts: Vec<&str> = request.path.split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            (_, ["jobs", "request"]) => CallKind::Request,
            ("PUT", ["jobs", _]) => match request.json()["state"].as_str() {
                Some("pending") => CallKind::Beat,
                Some("running") => match self.job_of(request).and_then(|key| self.jobs.get(&key)) {
                    Some(job) if job.was_accepted => CallKind::Touch,
                    _ => CallKind::Accept,
                },
                _ => CallKind::Final,
            },
            (_, ["jobs", _, "trace"]) => CallKind::Trace,
            (_, ["jobs", _, "artifacts", ..]) => CallKind::Artifacts,
            _ => CallKind::Runners,
        }
    }

    /// The job that a request is about: the one that its token opens, on whichever cell.
    fn job_of(&self, request: &Request) -> Option<JobKey> {
        let id = request.path.strip_prefix("jobs/")?.split('/').next()?.parse().ok()?;
        let token = request.header("job-token")?;
        let cell = jobs::cell_of(token)?;
        Some(JobKey { cell, id }).filter(|key| self.jobs.get(key).is_some_and(|job| job.token == token))
    }
}

impl World {
    fn check_form(&mut self, request: &Request, call: CallKind, now: Duration) {
        let job = self.job_of(request);
        let found = self.form_of(request, call);
        self.violations.extend(found.into_iter().map(|what| Violation { job, at: now, what }));
    }
}
