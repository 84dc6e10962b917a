//! `PUT jobs/:id`: accepting a job, beats before that, signs of life, and the end.

use super::jobs::Ended;
use super::{Job, Stage, World};
use crate::checker::{Fault, Violation};
use crate::message::{Reply, Request};
use crate::scenario::CancelWhen;
use serde_json::Value;
use std::time::Duration;

impl World {
    pub(super) fn update(&mut self, request: &Request, id: &str, now: Duration) -> Reply {
        let Some(key) = self.job_of(request).filter(|key| key.id.to_string() == id) else { return Reply::message(403, "Forbidden") };
        let body = request.json();
        let state = body["state"].as_str().unwrap_or_default().to_owned();
        let (two_phase, archive) = (self.scenario.two_phase, self.scenario.archive.duration());
        let Some(job) = self.jobs.get_mut(&key) else { return Reply::message(403, "Forbidden") };
        let mut found = Vec::new();
        let reply = match (job.stage.clone(), state.as_str()) {
            (Stage::Offered | Stage::Canceling, "pending") if !job.was_accepted => {
                (job.beats, job.since) = (job.beats + 1, now);
                Reply::status(200)
            }
            (Stage::Offered, "running") => {
                (job.stage, job.since, job.was_accepted) = (Stage::Running, now, true);
                job.reached(CancelWhen::Running, now);
                Reply::status(200)
            }
            (Stage::Queued, "running") if !job.offered_to.is_empty() => {
                // Offered to another one as well; whoever accepts first has it.
                (job.stage, job.since, job.was_accepted) = (Stage::Running, now, true);
                Reply::status(200)
            }
            (Stage::Canceling, "running") => {
                job.was_accepted = true;
                Reply::status(200)
            }
            (Stage::Running, "running") => Reply::status(200),
            (Stage::Running, "pending") => Reply::message(if two_phase { 409 } else { 400 }, "Bad request"),
            (Stage::Running | Stage::Canceling, "success" | "failed") => job.end(&body, &state, archive, now, &mut found),
            (Stage::Archiving, "success" | "failed") if now >= job.since + archive => job.close(),
            (Stage::Archiving, "success" | "failed") => Reply::status(202),
            (Stage::Ended, "pending" | "running")
                if job.ended.as_ref().is_some_and(|ended| ended.reason.as_deref() == Some("runner_provisioning_timeout")) =>
            {
                Reply::message(400, "Bad request: nobody waits for this job")
            }
            (Stage::Ended, _) => {
                if job.knows_its_end && !job.is_forgiven {
                    found.push(Fault::AfterTheEnd { call: format!("PUT {state}") });
                }
                Reply::message(403, "Forbidden")
            }
            _ => Reply::message(400, "Bad request"),
        };
        job.tick(&self.scenario, now);
        job.updates.push((state, reply.status));
        self.violations.extend(found.into_iter().map(|what| Violation { job: Some(key), at: now, what }));
        self.with_job_headers(key, reply, now)
    }

    /// What every answer about a job carries.
    pub(super) fn with_job_headers(&self, key: super::JobKey, reply: Reply, now: Duration) -> Reply {
        let Some(job) = self.jobs.get(&key) else { return reply };
        let interval = match job.stage {
            // Of no meaning to a runner: it goes on as it began.
            _ if self.scenario.trace_interval.0 <= 0.0 => 0,
            // rails: lib/gitlab/ci/runner/backoff.rb
            Stage::Archiving => 1 << (now.saturating_sub(job.since).as_secs() / 4).min(6),
            _ => self.scenario.trace_interval.duration().as_secs().max(1),
        };
        // The end itself is answered with what the job was before: who reports a failure is not told to stop.
        let status = if reply.status == 200 && job.stage == Stage::Ended { "running" } else { job.status() };
        reply.with("job-status", status).with("x-gitlab-trace-update-interval", interval.to_string())
    }
}

impl Job {
    /// The runner says how it ended. Its trace is compared with what it should be.
    fn end(&mut self, body: &Value, state: &str, archive: Duration, now: Duration, found: &mut Vec<Fault>) -> Reply {
        if !self.was_accepted {
            // Nobody may end what nobody has begun, but for a cancel that came in between.
            return if self.stage == Stage::Canceling { self.close_with(body, state) } else { Reply::message(400, "Bad request") };
        }
        let checksum = body["output"]["checksum"].as_str().or_else(|| body["checksum"].as_str());
        let size = body["output"]["bytesize"].as_u64();
        let is = (format!("crc32:{:08x}", crc32fast::hash(&self.trace)), self.trace.len() as u64);
        if checksum.is_some_and(|said| said != is.0) || size.is_some_and(|said| said != is.1) {
            if !std::mem::take(&mut self.is_corrupt) {
                found.push(Fault::Checksum {
                    said: format!("{} {}", checksum.unwrap_or_default(), size.unwrap_or(0)),
                    is: format!("{} {}", is.0, is.1),
                });
            }
            self.trace.clear();
            return Reply::message(412, "Precondition Failed");
        }
        if checksum.is_none() {
            found.push(Fault::NoChecksum);
        }
        if archive > Duration::ZERO {
            self.close_with(body, state);
            (self.stage, self.since) = (Stage::Archiving, now);
            return Reply::status(202);
        }
        self.close_with(body, state)
    }

    fn close_with(&mut self, body: &Value, state: &str) -> Reply {
        // Rails makes of a cancelled job what it was cancelled to.
        let status = if self.stage == Stage::Canceling {
            "canceled"
        } else if state == "success" {
            "success"
        } else {
            "failed"
        };
        self.ended = Some(Ended {
            status,
            reason: body["failure_reason"].as_str().map(str::to_owned),
            exit_code: body["exit_code"].as_i64().unwrap_or(0),
            by_runner: true,
        });
        self.environment = body["runtime_environment_key"].as_str().map(str::to_owned);
        self.close()
    }

    fn close(&mut self) -> Reply {
        self.stage = Stage::Ended;
        Reply::status(200)
    }
}
