//! `POST jobs/request`: which job a runner gets, and how long it waits for one.

use super::{JobKey, Stage, Turn, World};
use crate::checker::{Fault, Violation};
use crate::message::{Reply, Request};
use crate::scenario::CancelWhen;
use std::time::Duration;

impl World {
    pub(super) fn offer(&mut self, request: &Request, arrived: Duration, now: Duration) -> Turn {
        let body = request.json();
        let token = request.header("runner-token").or_else(|| body["token"].as_str()).unwrap_or_default().to_owned();
        let system_id = body["system_id"].as_str().unwrap_or_default().to_owned();
        if !is_system_id(&system_id) {
            self.violations.push(Violation { job: None, at: now, what: Fault::SystemId { was: system_id.clone() } });
        }
        let Some(runner) = self.runners.get_mut(&token) else { return Turn::Answer(Reply::message(403, "Forbidden")) };
        runner.contact(&system_id, &body["info"]);
        let (ticket, paused, cell) = (runner.ticket(), runner.paused, runner.cell);
        // As the gatekeeper of a real one does it: while nothing is new for this runner, its request is not even looked at.
        let until = arrived + self.scenario.long_poll.duration();
        if body["last_update"].as_str() == Some(ticket.as_str()) && now < until {
            return Turn::Hold { until };
        }
        let key = self
            .jobs
            .values()
            .find(|job| job.stage == Stage::Queued && job.key.cell == cell && job.burst.runner.as_ref().is_none_or(|only| *only == token));
        let Some(key) = key.map(|job| job.key).filter(|_| !paused) else {
            return Turn::Answer(Reply::status(204).with("x-gitlab-last-update", ticket));
        };
        Turn::Answer(self.hand_out(key, token, system_id, now))
    }

    fn hand_out(&mut self, key: JobKey, token: String, system_id: String, now: Duration) -> Reply {
        let Some(job) = self.jobs.get_mut(&key) else { return Reply::message(500, "Internal Server Error") };
        job.offered_to.push((token, system_id));
        // A job that is offered twice stays in the queue until the last time.
        if (job.offered_to.len() as u64) < job.burst.offers {
            self.new_ticket(key);
        } else {
            job.since = now;
            job.stage = if self.scenario.two_phase { Stage::Offered } else { Stage::Running };
            job.was_accepted |= !self.scenario.two_phase;
            job.reached(CancelWhen::Offered, now);
            if !self.scenario.two_phase {
                job.reached(CancelWhen::Running, now);
            }
            job.tick(&self.scenario, now);
        }
        match self.jobs.get(&key) {
            Some(job) => Reply::json(201, &self.payload_of(job)),
            None => Reply::message(500, "Internal Server Error"),
        }
    }

    /// Whoever may run this job has something new to look at.
    pub(super) fn new_ticket(&mut self, key: JobKey) {
        let only = self.jobs.get(&key).and_then(|job| job.burst.runner.clone());
        for (token, runner) in &mut self.runners {
            if runner.cell == key.cell && only.as_ref().is_none_or(|only| only == token) {
                runner.news += 1;
            }
        }
    }
}

fn is_system_id(text: &str) -> bool {
    text.len() == 14 && (text.starts_with("s_") || text.starts_with("r_")) && text[2..].bytes().all(|byte| byte.is_ascii_alphanumeric())
}
