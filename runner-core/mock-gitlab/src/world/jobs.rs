//! One job on the server.

use super::World;
use crate::message::Reply;
use crate::payload;
use crate::scenario::{Burst, CallKind, Cancel, CancelWhen, Scenario};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Two cells may both have a job 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct JobKey {
    pub cell: u64,
    pub id: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Comes at this time.
    Planned,
    Queued,
    /// Handed out to this manager, which has not accepted it.
    Offered,
    Running,
    /// Somebody cancelled it; it may end by itself.
    Canceling,
    /// Its end was reported, and its trace is being put together.
    Archiving,
    Ended,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ended {
    /// `success`, `failed` or `canceled`.
    pub status: &'static str,
    pub reason: Option<String>,
    pub exit_code: i64,
    /// Who said so: the runner, or the server by itself.
    pub by_runner: bool,
}

#[derive(Debug, Clone)]
pub struct Job {
    pub key: JobKey,
    pub token: String,
    pub burst: Burst,
    pub stage: Stage,
    /// When it comes, was handed out, last heard of, or its archive is done: what the stage waits from.
    pub since: Duration,
    /// The managers that were given it, by runner token and system id.
    pub offered_to: Vec<(String, String)>,
    pub was_accepted: bool,
    pub beats: u64,
    pub trace: Vec<u8>,
    /// Every piece as it was sent: first byte, length, status of the answer.
    pub pieces: Vec<(u64, u64, u16)>,
    /// What a PUT said, in order, with the status of the answer.
    pub updates: Vec<(String, u16)>,
    pub ended: Option<Ended>,
    pub artifacts: Vec<(String, bytes::Bytes)>,
    pub environment: Option<String>,
    /// The length of the trace that an answer told the runner.
    pub told_length: Option<u64>,
    /// An answer that told the runner of the job's end has arrived.
    pub knows_its_end: bool,
    /// When such an answer was sent first.
    pub told_its_end: Option<Duration>,
    /// Its runner was killed a moment after it was told: what it does once more is no fault.
    pub is_forgiven: bool,
    pub cancel_at: Option<Duration>,
    /// The cancel of the scenario has been set off.
    pub was_cancelled: bool,
    pub is_corrupt: bool,
}

impl Job {
    /// What `Job-Status` says.
    pub fn status(&self) -> &'static str {
        match &self.stage {
            Stage::Planned | Stage::Queued | Stage::Offered => "pending",
            Stage::Running | Stage::Archiving => "running",
            Stage::Canceling => "canceling",
            Stage::Ended => self.ended.as_ref().map_or("failed", |ended| ended.status),
        }
    }

    pub(super) fn next_change(&self, scenario: &Scenario) -> Option<Duration> {
        let stage = match self.stage {
            Stage::Planned => Some(self.since),
            Stage::Offered => Some(self.since + scenario.beat.duration()),
            Stage::Archiving => Some(self.since + scenario.archive.duration()),
            _ => None,
        };
        let cancel = self.cancel_at.filter(|_| self.is_open());
        stage.into_iter().chain(cancel).min()
    }

    pub(super) fn tick(&mut self, scenario: &Scenario, now: Duration) {
        if self.cancel_at.is_some_and(|at| at <= now) && self.is_open() {
            self.cancel_at = None;
            let hard = self.burst.cancel.as_ref().is_none_or(|cancel| cancel.hard);
            self.cancel(hard, now);
        }
        match self.stage {
            Stage::Planned if self.since <= now => self.stage = Stage::Queued,
            Stage::Offered if self.since + scenario.beat.duration() <= now => self.end_by_server("failed", "runner_provisioning_timeout"),
            _ => {}
        }
    }

    fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Queued | Stage::Offered | Stage::Running)
    }

    /// Somebody presses the button. What nobody has taken ends at once.
    pub fn cancel(&mut self, hard: bool, now: Duration) {
        match self.stage {
            Stage::Offered | Stage::Running if !hard => (self.stage, self.since) = (Stage::Canceling, now),
            Stage::Ended | Stage::Archiving => {}
            _ => self.end_by_server("canceled", "job_canceled"),
        }
    }

    pub(super) fn end_by_server(&mut self, status: &'static str, reason: &str) {
        self.stage = Stage::Ended;
        self.ended = Some(Ended { status, reason: Some(reason.to_owned()), exit_code: 0, by_runner: false });
    }

    /// A cancel that was planned for this moment. It happens once.
    pub(super) fn reached(&mut self, when: CancelWhen, now: Duration) {
        let planned = self.burst.cancel.as_ref().filter(|cancel| cancel.when == when && !self.was_cancelled);
        if let Some(Cancel { after, .. }) = planned {
            self.cancel_at = Some(now + after.duration());
            self.was_cancelled = true;
        }
    }

    /// What the runner knows after an answer.
    pub(super) fn told(&mut self, call: CallKind, reply: &Reply, now: Duration) {
        if !reply.delivery.arrives() {
            return;
        }
        match call {
            CallKind::Trace if reply.status == 202 || reply.status == 416 => {
                let length = reply.header("range").and_then(|range| range.strip_prefix("0-")).and_then(|length| length.parse().ok());
                self.told_length = Some(length.unwrap_or(0));
            }
            CallKind::Final if reply.status == 412 => self.told_length = Some(0),
            _ => {}
        }
        if self.stage == Stage::Ended && call != CallKind::Request {
            self.knows_its_end = true;
            self.told_its_end.get_or_insert(now);
            self.is_forgiven &= call != CallKind::Final;
        }
    }
}

/// The cell that a token of ours names: `glcbt-mock_CELL_ID`.
pub(super) fn cell_of(token: &str) -> Option<u64> {
    token.strip_prefix("glcbt-mock_")?.split('_').next()?.parse().ok()
}

impl World {
    /// Adds the jobs of a burst.
    pub fn plan(&mut self, burst: &Burst, now: Duration) -> Vec<JobKey> {
        let mut keys = Vec::new();
        for number in 0..burst.count {
            let id = self.next_job.entry(burst.cell).or_insert(1);
            let key = JobKey { cell: burst.cell, id: *id };
            *id += 1;
            let since = now + burst.at.duration() + burst.every.duration().saturating_mul(u32::try_from(number).unwrap_or(u32::MAX));
            // Long enough to be masked, different for every job, and the same in every run.
            let token = format!("glcbt-mock_{}_{}_{:016x}", key.cell, key.id, key.id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let job = Job {
                key,
                token,
                burst: burst.clone(),
                stage: Stage::Planned,
                since,
                offered_to: Vec::new(),
                was_accepted: false,
                beats: 0,
                trace: Vec::new(),
                pieces: Vec::new(),
                updates: Vec::new(),
                ended: None,
                artifacts: Vec::new(),
                environment: None,
                told_length: None,
                knows_its_end: false,
                told_its_end: None,
                is_forgiven: false,
                cancel_at: None,
                was_cancelled: false,
                is_corrupt: burst.corrupt,
            };
            self.jobs.insert(key, job);
            keys.push(key);
        }
        self.tick(now);
        keys
    }

    pub(super) fn payload_of(&self, job: &Job) -> serde_json::Value {
        payload::of(&job.burst, job.key.id, &job.token, &self.url)
    }

    /// How many jobs are in which stage.
    pub fn count(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for job in self.jobs.values() {
            *counts.entry(job.status()).or_insert(0) += 1;
        }
        counts
    }
}
