//! Judges what runners did: each job once, its trace without a gap, its end reported, and nothing that the API does not allow.

use crate::message::Request;
use crate::scenario::CallKind;
use crate::world::{Job, JobKey, Stage, World};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Something that a runner did and should not have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Violation {
    pub job: Option<JobKey>,
    pub at: Duration,
    #[serde(flatten)]
    pub what: Fault,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// A piece began elsewhere, though the runner had been told where the server stands. After a restart it cannot know: see [`Report::without_offsets`].
    Offset {
        sent: u64,
        told: u64,
    },
    RangeLength {
        said: u64,
        is: u64,
    },
    NoRange,
    EmptyPiece,
    LargePiece {
        bytes: u64,
    },
    /// Checksum or length of the last update are not those of the trace.
    Checksum {
        said: String,
        is: String,
    },
    NoChecksum,
    /// A call about a job whose end the runner had been told.
    AfterTheEnd {
        call: String,
    },
    SystemId {
        was: String,
    },
    MissingHeader {
        name: &'static str,
    },
    /// The value itself is not told.
    TokenInAddress,
    /// The header and the body name different tokens.
    TwoTokens,
    /// A result was sent again though the runner had been told that it is kept.
    ResultTwice,
    /// A result is of no job that was handed out.
    ResultOfNoJob {
        number: u64,
    },
    ResultLength {
        said: u64,
        is: u64,
    },
    /// A value that must not be logged stands in a result. The value itself is not told.
    SecretInResult,
}

/// How it stands with everything.
#[derive(Debug, Clone)]
pub struct Report {
    pub jobs: u64,
    pub ended: BTreeMap<String, u64>,
    /// Handed out, and no end was reported.
    pub open: Vec<JobKey>,
    /// Never handed out.
    pub waiting: Vec<JobKey>,
    /// Accepted, and the server ended them because nothing more was heard.
    pub lost: Vec<JobKey>,
    /// Of how many jobs a result has come.
    pub results: u64,
    pub violations: Vec<Violation>,
}

impl World {
    /// How it stands with everything.
    pub fn report(&self) -> Report {
        let keys = |choose: &dyn Fn(&Job) -> bool| self.jobs().values().filter(|job| choose(job)).map(|job| job.key).collect();
        let mut ended = BTreeMap::new();
        for job in self.jobs().values() {
            if let Some(end) = job.ended.as_ref().filter(|_| job.stage == Stage::Ended) {
                *ended
                    .entry(
                        end.reason
                            .as_ref()
                            .filter(|_| end.status == "failed")
                            .map_or(end.status.to_owned(), |reason| format!("failed: {reason}")),
                    )
                    .or_insert(0) += 1;
            }
        }
        Report {
            jobs: self.jobs().len() as u64,
            ended,
            open: keys(&|job| matches!(job.stage, Stage::Offered | Stage::Running | Stage::Canceling | Stage::Archiving)),
            waiting: keys(&|job| matches!(job.stage, Stage::Planned | Stage::Queued)),
            lost: keys(&|job| {
                job.stage == Stage::Ended
                    && job.was_accepted
                    && job.ended.as_ref().is_some_and(|end| !end.by_runner && end.status == "failed")
            }),
            results: self.results().len() as u64,
            violations: self.violations().to_vec(),
        }
    }

    /// What every request must have. Violations, not refusals: Rails would let most of it pass.
    pub(crate) fn form_of(&self, request: &Request, call: CallKind) -> Vec<Fault> {
        let mut faults = Vec::new();
        let needed: &[&'static str] = match call {
            CallKind::Request => &["runner-token", "x-request-id", "user-agent", "content-type", "accept"],
            CallKind::Trace => &["job-token", "x-request-id", "user-agent", "content-type", "content-range"],
            CallKind::Beat | CallKind::Accept | CallKind::Touch | CallKind::Final => {
                &["job-token", "x-request-id", "user-agent", "content-type"]
            }
            _ => &["x-request-id", "user-agent"],
        };
        faults.extend(needed.iter().filter(|name| request.header(name).is_none()).map(|name| Fault::MissingHeader { name }));
        let tokens = ["runner-token", "job-token", "private-token"].map(|name| request.header(name));
        let address = format!("{}?{}", request.path, request.query);
        if tokens.iter().flatten().any(|token| !token.is_empty() && address.contains(*token)) {
            faults.push(Fault::TokenInAddress);
        }
        if matches!(call, CallKind::Request | CallKind::Beat | CallKind::Accept | CallKind::Touch | CallKind::Final) {
            let body = request.json();
            if body["token"].as_str() != tokens[0].or(tokens[1]) {
                faults.push(Fault::TwoTokens);
            }
        }
        faults
    }
}

impl Report {
    /// Whether every job that came has an end that a runner reported, and nothing was done wrong.
    pub fn is_clean(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty() && self.lost.is_empty() && self.violations.is_empty()
    }

    /// Without the pieces that began elsewhere, and the results that came again: a runner that was killed does not know what it had been told, and asks
    /// by sending.
    #[must_use]
    pub fn without_offsets(mut self) -> Self {
        self.violations.retain(|violation| !matches!(violation.what, Fault::Offset { .. } | Fault::ResultTwice));
        self
    }

    pub fn as_json(&self) -> Value {
        json!({"jobs": self.jobs, "ended": self.ended, "open": self.open, "waiting": self.waiting, "lost": self.lost, "results": self.results, "violations": self.violations, "clean": self.is_clean()})
    }
}

/// A few lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} jobs: {} waiting, {} open, {} lost", self.jobs, self.waiting.len(), self.open.len(), self.lost.len())?;
        if self.results > 0 {
            writeln!(f, "  {} with a result", self.results)?;
        }
        self.ended.iter().try_for_each(|(how, count)| writeln!(f, "  {count} {how}"))?;
        for violation in &self.violations {
            let job = violation.job.map(|key| format!("job {} of cell {}", key.id, key.cell)).unwrap_or_default();
            writeln!(f, "  violation after {:.3} s {job}: {:?}", violation.at.as_secs_f64(), violation.what)?;
        }
        Ok(())
    }
}

impl Job {
    pub(crate) fn as_json(&self) -> Value {
        json!({
            "cell": self.key.cell, "id": self.key.id, "name": self.burst.name, "stage": self.stage, "status": self.status(), "offers": self.offered_to.len(),
            "managers": self.offered_to.iter().map(|(_, system_id)| system_id).collect::<Vec<_>>(), "accepted": self.was_accepted, "beats": self.beats,
            "trace_bytes": self.trace.len(), "pieces": self.pieces, "updates": self.updates, "ended": self.ended, "artifacts": self.artifacts.len(),
        })
    }
}
