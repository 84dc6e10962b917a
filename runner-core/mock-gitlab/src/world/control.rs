//! `/mock/...`: how a test or a person looks at a server from outside and changes it. No part of GitLab.

use super::{JobKey, World};
use crate::message::{Reply, Request};
use crate::scenario::{Burst, Fault};
use serde_json::{Value, json};
use std::time::Duration;

/// A runner that lives has read an answer and written down what follows from it within this time, also on a busy machine.
const MOMENT: Duration = Duration::from_secs(1);

impl World {
    pub(super) fn control(&mut self, request: &Request, now: Duration) -> Reply {
        let parts: Vec<&str> = request.path.trim_matches('/').split('/').skip(1).collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", [] | ["report"]) => Reply::json(200, &self.report().as_json()),
            ("GET", ["jobs"]) => Reply::json(200, &Value::Array(self.jobs.values().map(super::Job::as_json).collect())),
            ("GET", ["results"]) => Reply::json(200, &Value::Array(self.results.iter().map(super::TakenResult::as_json).collect())),
            ("GET", ["requests"]) => Reply::json(200, &json!(self.record.entries())),
            ("POST", ["jobs"]) => match serde_json::from_slice::<Burst>(&request.body) {
                Ok(burst) => Reply::json(201, &json!(self.plan(&burst, now))),
                Err(fault) => Reply::message(400, &fault.to_string()),
            },
            ("POST", ["faults"]) => match serde_json::from_slice::<Fault>(&request.body) {
                Ok(fault) => {
                    self.faults.add(fault);
                    Reply::status(204)
                }
                Err(fault) => Reply::message(400, &fault.to_string()),
            },
            ("GET", ["jobs", cell, id]) => self.with_job(cell, id, |job| Reply::json(200, &job.as_json())),
            ("GET", ["jobs", cell, id, "trace"]) => self.with_job(cell, id, |job| Reply {
                body: job.trace.clone().into(),
                ..Reply::status(200).with("content-type", "text/plain")
            }),
            ("POST", ["jobs", cell, id, how @ ("cancel" | "kill")]) => self.with_job(cell, id, |job| {
                job.cancel(*how == "kill", now);
                Reply::status(204)
            }),
            _ => Reply::message(404, "Not Found"),
        }
    }

    fn with_job(&mut self, cell: &str, id: &str, act: impl FnOnce(&mut super::Job) -> Reply) -> Reply {
        let key = cell.parse().ok().zip(id.parse().ok()).map(|(cell, id)| JobKey { cell, id });
        match key.and_then(|key| self.jobs.get_mut(&key)) {
            Some(job) => act(job),
            None => Reply::message(404, "Not Found"),
        }
    }

    /// Somebody presses the button.
    pub fn cancel(&mut self, key: JobKey, hard: bool, now: Duration) {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.cancel(hard, now);
        }
    }

    /// Somebody killed the runner now: what it was told a moment before it may never have read, so it may tell the end of a job again.
    pub fn runner_died(&mut self, now: Duration) {
        for job in self.jobs.values_mut().filter(|job| job.told_its_end.is_some_and(|told| now.saturating_sub(told) < MOMENT)) {
            job.is_forgiven = true;
        }
    }

    /// From now on.
    pub fn add_fault(&mut self, fault: Fault) {
        self.faults.add(fault);
    }
}
