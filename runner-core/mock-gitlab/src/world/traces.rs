//! `PATCH jobs/:id/trace`: bytes at exactly the place where the last ones ended.

use super::{Stage, World};
use crate::checker::{Fault, Violation};
use crate::message::{Reply, Request};
use crate::scenario::CancelWhen;
use std::time::Duration;

/// GitLab's runner never sends more at once.
const LARGEST_PIECE: usize = 1 << 20;

impl World {
    pub(super) fn patch(&mut self, request: &Request, id: &str, now: Duration) -> Reply {
        let Some(key) = self.job_of(request).filter(|key| key.id.to_string() == id) else { return Reply::message(403, "Forbidden") };
        let limit = self.scenario.trace_limit;
        let Some(job) = self.jobs.get_mut(&key) else { return Reply::message(403, "Forbidden") };
        let mut found = Vec::new();
        if !matches!(job.stage, Stage::Running | Stage::Canceling) {
            if job.knows_its_end && !job.is_forgiven {
                found.push(Fault::AfterTheEnd { call: "PATCH trace".to_owned() });
            }
            self.violations.extend(found.into_iter().map(|what| Violation { job: Some(key), at: now, what }));
            return self.with_job_headers(key, Reply::message(403, "Forbidden"), now);
        }
        let range = request.header("content-range").and_then(range);
        let stored = job.trace.len() as u64;
        let length = request.body.len() as u64;
        let reply = match range {
            None => {
                found.push(Fault::NoRange);
                Reply::message(400, "Missing header Content-Range")
            }
            Some((first, _)) if first != stored => {
                // Whoever was told where the server stands, sends from there.
                if job.told_length == Some(stored) {
                    found.push(Fault::Offset { sent: first, told: stored });
                }
                Reply::message(416, "Range Not Satisfiable").with("range", format!("0-{stored}"))
            }
            Some((first, last)) => {
                if request.body.is_empty() {
                    found.push(Fault::EmptyPiece);
                } else if last + 1 - first.min(last + 1) != length {
                    found.push(Fault::RangeLength { said: last + 1 - first.min(last + 1), is: length });
                }
                if request.body.len() > LARGEST_PIECE {
                    found.push(Fault::LargePiece { bytes: length });
                }
                if stored + length > limit {
                    job.end_by_server("failed", "trace_size_exceeded");
                    Reply::message(403, "Forbidden")
                } else {
                    job.trace.extend_from_slice(&request.body);
                    if job.is_corrupt && stored == 0 {
                        job.trace[0] ^= 1;
                    }
                    job.reached(CancelWhen::Trace, now);
                    job.tick(&self.scenario, now);
                    Reply::status(202).with("range", format!("0-{}", stored + length))
                }
            }
        };
        job.pieces.push((range.map_or(0, |(first, _)| first), length, reply.status));
        self.violations.extend(found.into_iter().map(|what| Violation { job: Some(key), at: now, what }));
        self.with_job_headers(key, reply, now)
    }
}

/// `FIRST-LAST`, both counted.
fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}
