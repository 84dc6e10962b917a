//! Calls about jobs: asking for one, accepting it, saying that it lives, sending its trace, saying how it ended.

use super::call::{Call, Content};
use super::{Client, Endpoint};
use crate::answer::{self, Accepted, Answered, Beat, Patched, Polled, Updated};
use crate::request::{JobRequest, JobState, Session, Update, UpdateBody};
use crate::{ServerUrl, Token};
use bytes::Bytes;
use serde::Serialize;

/// What came of asking for a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Poll {
    pub polled: Polled,
    /// The server has too much to do: fewer requests at once.
    pub was_retried: bool,
    /// The server gave another ticket than it was shown: it holds the next request until there is a job.
    pub has_new_ticket: bool,
    /// Where the job, if there is one, is reported.
    pub server: ServerUrl,
}

/// What calls about one job need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAccess {
    /// Where it came from: another cell may have another job of this number.
    pub server: ServerUrl,
    pub id: u64,
    pub token: Token,
}

impl Poll {
    /// How the job that was received is spoken about.
    pub fn access(&self) -> Option<JobAccess> {
        match &self.polled {
            Polled::Job(job) => Some(JobAccess { server: self.server.clone(), id: job.id, token: job.token.clone() }),
            _ => None,
        }
    }
}

impl Client {
    /// Asks for a job. The server may hold the request for a minute while there is none; dropping the future gives it up at once.
    pub async fn request_job(&self, token: &Token, session: Option<&Session>) -> Poll {
        let server = self.address(token).clone();
        let settings = &self.inner.settings;
        let last_update = self.ticket(&server, token);
        let shown = last_update.clone();
        let body = JobRequest { info: &settings.info, token, system_id: &settings.system_id, last_update, session };
        let answered = self
            .call(&Call {
                endpoint: Endpoint::RequestJob,
                method: "POST",
                url: server.endpoint("jobs/request"),
                token: Some(("runner-token", token)),
                headers: Vec::new(),
                content: json(&body),
                expects_json: true,
                longest_answer: settings.limits.job,
            })
            .await;
        let ticket = answered.as_ref().ok().and_then(|answer| answer.headers.last_update.as_deref()).filter(|ticket| !ticket.is_empty());
        if let Some(ticket) = ticket {
            self.keep_ticket(&server, token, ticket);
        }
        let has_new_ticket = ticket.is_some() && ticket != shown.as_deref();
        let polled = answer::polled(&answered);
        let correlation = answered.as_ref().ok().and_then(|answer| answer.headers.request_id.as_deref()).unwrap_or_default();
        tell(&polled, token, correlation);
        let was_retried = answered.is_ok_and(|answer| answer.was_retried);
        let server = match &polled {
            Polled::Job(job) => crate::cell::of(&job.token).and_then(|cell| settings.cells.get(&cell)).unwrap_or(&server).clone(),
            _ => server,
        };
        Poll { polled, was_retried, has_new_ticket, server }
    }

    /// Says that an environment for a job is being made. `is_late`: more than two minutes have passed since the last one was answered.
    pub async fn beat(&self, job: &JobAccess, is_late: bool) -> Beat {
        answer::beaten(&self.put(job, &Update { state: JobState::Pending, trace: None }).await, is_late)
    }

    /// Says that a job runs from now on.
    pub async fn accept(&self, job: &JobAccess) -> Accepted {
        answer::accepted(&self.put(job, &Update { state: JobState::Running, trace: None }).await)
    }

    /// Says how a job is, or how it ended.
    pub async fn update_job(&self, job: &JobAccess, update: &Update) -> Updated {
        answer::updated(&self.put(job, update).await)
    }

    async fn put(&self, job: &JobAccess, update: &Update) -> Answered {
        let settings = &self.inner.settings;
        self.call(&Call {
            endpoint: Endpoint::UpdateJob,
            method: "PUT",
            url: job.server.endpoint(&format!("jobs/{}", job.id)),
            token: Some(("job-token", &job.token)),
            headers: Vec::new(),
            content: json(&UpdateBody::new(&settings.info, &job.token, update)),
            expects_json: false,
            longest_answer: settings.limits.other,
        })
        .await
    }

    /// Sends the piece of a trace that begins at `first`. An empty one is not sent, and counts as sent.
    pub async fn patch_trace(&self, job: &JobAccess, first: u64, piece: Bytes, debug_trace: bool) -> Patched {
        let end = first + piece.len() as u64;
        if piece.is_empty() {
            return Patched { outcome: answer::PatchOutcome::Accepted { end }, cancel_requested: false, interval: None };
        }
        let mut url = job.server.endpoint(&format!("jobs/{}/trace", job.id));
        url.set_query(Some(&format!("debug_trace={debug_trace}")));
        let answered = self
            .call(&Call {
                endpoint: Endpoint::PatchTrace,
                method: "PATCH",
                url,
                token: Some(("job-token", &job.token)),
                headers: vec![("content-range", format!("{first}-{}", end - 1))],
                content: Content::Text(piece),
                expects_json: false,
                longest_answer: self.inner.settings.limits.other,
            })
            .await;
        answer::patched(&answered, end)
    }
}

pub(super) fn json(body: &impl Serialize) -> Content {
    // Texts, numbers and lists of ours: there is nothing in them that JSON cannot say.
    Content::Json(serde_json::to_vec(body).map_or_else(|_| Bytes::new(), Bytes::from))
}

fn tell(polled: &Polled, token: &Token, correlation: &str) {
    let runner = token.short();
    match polled {
        Polled::Job(job) => {
            let repository = job.facts.repository.as_deref().unwrap_or_default();
            tracing::info!(job = job.id, repository, runner, correlation_id = correlation, "a job was received");
        }
        Polled::NoJob => tracing::trace!(runner, correlation_id = correlation, "there is no job"),
        Polled::Forbidden { why } => tracing::error!(runner, correlation_id = correlation, why, "asking for a job is forbidden"),
        Polled::Conflict => tracing::warn!(runner, correlation_id = correlation, "asking for a job failed: another manager was faster"),
        Polled::Unavailable => tracing::warn!(runner, correlation_id = correlation, "GitLab instance currently unavailable"),
        Polled::Failed { why } => tracing::warn!(runner, correlation_id = correlation, why, "asking for a job failed"),
        Polled::Unusable { why } => tracing::error!(runner, why, "asking for a job is not possible with these settings"),
    }
}
