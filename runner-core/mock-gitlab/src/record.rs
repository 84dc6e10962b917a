//! Everything that came in, without tokens and bodies.

use crate::message::{Reply, Request};
use crate::scenario::CallKind;
use crate::world::JobKey;
use serde::Serialize;
use std::time::Duration;

/// One request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Since the start.
    pub at: Duration,
    pub call: &'static str,
    pub method: String,
    pub path: String,
    pub job: Option<JobKey>,
    /// `state` of an update, `Content-Range` of a piece of a trace.
    pub detail: String,
    pub bytes: usize,
    pub status: u16,
    /// Whether the answer arrived.
    pub answered: bool,
    pub request_id: String,
}

/// As many as are kept. Of a run that is longer, the last.
const MOST: usize = 100_000;

#[derive(Debug, Default)]
pub struct Record {
    entries: Vec<Entry>,
}

impl Record {
    pub fn add(&mut self, entry: Entry) {
        if self.entries.len() >= MOST {
            self.entries.drain(..MOST / 2);
        }
        self.entries.push(entry);
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Entry {
    pub fn of(request: &Request, call: CallKind, job: Option<JobKey>, reply: &Reply, at: Duration) -> Self {
        let state = || request.json()["state"].as_str().unwrap_or_default().to_owned();
        let detail = match call {
            CallKind::Trace => request.header("content-range").unwrap_or_default().to_owned(),
            CallKind::Beat | CallKind::Accept | CallKind::Touch | CallKind::Final => state(),
            _ => String::new(),
        };
        Self {
            at,
            call: name(call),
            method: request.method.clone(),
            path: request.path.clone(),
            job,
            detail,
            bytes: request.body.len(),
            status: reply.status,
            answered: reply.delivery.arrives(),
            request_id: request.header("x-request-id").unwrap_or_default().to_owned(),
        }
    }
}

const fn name(call: CallKind) -> &'static str {
    match call {
        CallKind::Any => "any",
        CallKind::Request => "request",
        CallKind::Beat => "beat",
        CallKind::Accept => "accept",
        CallKind::Touch => "touch",
        CallKind::Final => "final",
        CallKind::Trace => "trace",
        CallKind::Runners => "runners",
        CallKind::Artifacts => "artifacts",
        CallKind::Result => "result",
    }
}
