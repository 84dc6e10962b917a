//! The records of a journal, as they are written.

use super::content::Content;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use step_engine::run::{Headline, Kind};
use step_model::limits::{AppliedLimit, LimitName};
use step_model::masking::{MASK, Secrets};
use step_model::result::{Failure, FailureKind, Means, Status, StepId, Traffic, Usage};
use step_model::time::Timestamp;
use step_model::value::Value;

/// One record. `Started` and `Ended` hold all that is known of the step then; the later one counts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Record {
    /// The job will run.
    Accepted {},
    /// The job process has begun.
    Begun(Begun),
    Started(Step),
    Ended(Step),
    /// The outcome is known.
    Finished(Finished),
    /// Nothing of the job runs any more, and its log is complete.
    Closed(Closed),
    /// Of a later version of the same format.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Begun {
    /// What every process of the job has in its environment.
    pub marker: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stamped: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Finished {
    status: u8,
    failure: Option<WrittenFailure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed_step: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<i64>,
}

/// How the log of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub log_bytes: u64,
    /// Bytes are missing at its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log_is_cut: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Step {
    step: u32,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
    depth: usize,
    kind: String,
    status: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<WrittenFailure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work_dir: Option<String>,
    /// Nanoseconds since 1970, as `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<WrittenUsage>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    allowed_to_fail: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    limits: Vec<WrittenLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filtered: Option<String>,
    /// As a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(default)]
    pub content: Content,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WrittenFailure {
    kind: u8,
    message: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WrittenUsage {
    /// Nanoseconds, as `system`.
    user: u64,
    system: u64,
    /// Bytes.
    peak_memory: u64,
    /// Bytes read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disk: Option<(u64, u64)>,
    /// Bytes received and sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    means: Option<String>,
}

/// What became of a limit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WrittenLimit {
    name: String,
    value: String,
    means: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    reached: bool,
}

/// What a record tells its reader.
#[derive(Debug)]
pub enum News {
    Accepted,
    Begun(Begun),
    Started(StepId, Box<Headline>, Content),
    Ended(StepId, Box<Headline>, Content),
    Outcome(Outcome),
    Closed(Closed),
    Unknown,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub status: Status,
    pub failure: Option<Failure>,
    /// The innermost step whose failure failed the job.
    pub failed_step: Option<StepId>,
    /// Of that step.
    pub exit_code: Option<i32>,
    pub end: Option<Timestamp>,
}

impl Outcome {
    /// The process of the job died.
    pub fn is_interrupted(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Interrupted)
    }
}

impl Record {
    /// Whatever the machine calls it by now, a step that starts is one that runs.
    pub fn started(step: StepId, headline: &Headline, content: Content, secrets: &Secrets) -> Self {
        Self::Started(Step { status: Status::Running as u8, ..Step::of(step, headline, content, secrets) })
    }

    pub fn ended(step: StepId, headline: &Headline, content: Content, secrets: &Secrets) -> Self {
        Self::Ended(Step::of(step, headline, content, secrets))
    }

    pub fn finished(outcome: &Outcome, secrets: &Secrets) -> Self {
        Self::Finished(Finished {
            status: outcome.status as u8,
            failure: outcome.failure.as_ref().map(|failure| WrittenFailure::of(failure, secrets)),
            failed_step: outcome.failed_step.map(|step| step.0),
            exit_code: outcome.exit_code,
            end: outcome.end.map(Timestamp::nanoseconds),
        })
    }

    /// Leaves out what may be large. `false`: there was nothing.
    pub fn shorten(&mut self) -> bool {
        match self {
            Self::Started(step) | Self::Ended(step) => step.content.shorten(),
            _ => false,
        }
    }

    pub fn into_news(self) -> News {
        match self {
            Self::Accepted {} => News::Accepted,
            Self::Begun(begun) => News::Begun(begun),
            Self::Started(step) => News::Started(StepId(step.step), Box::new(step.headline()), step.content),
            Self::Ended(step) => News::Ended(StepId(step.step), Box::new(step.headline()), step.content),
            Self::Finished(finished) => News::Outcome(Outcome {
                status: status_of(finished.status),
                failure: finished.failure.map(WrittenFailure::into_failure),
                failed_step: finished.failed_step.map(StepId),
                exit_code: finished.exit_code,
                end: finished.end.map(Timestamp::from_nanoseconds),
            }),
            Self::Closed(closed) => News::Closed(closed),
            Self::Unknown => News::Unknown,
        }
    }
}

impl Step {
    fn of(step: StepId, headline: &Headline, content: Content, secrets: &Secrets) -> Self {
        Self {
            content,
            step: step.0,
            name: secrets.mask(&headline.name).into_owned(),
            parent: headline.parent.map(|parent| parent.0),
            depth: headline.depth,
            kind: name_of(headline.what).to_owned(),
            status: headline.status as u8,
            failure: headline.failure.as_ref().map(|failure| WrittenFailure::of(failure, secrets)),
            exit_code: headline.exit_code,
            signal: headline.signal,
            command: headline.command.iter().map(|word| written(word, secrets)).collect(),
            work_dir: headline.work_dir.as_ref().map(|work_dir| written(work_dir, secrets)),
            start: headline.start.map(Timestamp::nanoseconds),
            end: headline.end.map(Timestamp::nanoseconds),
            usage: headline.usage.map(WrittenUsage::of),
            allowed_to_fail: headline.allowed_to_fail,
            limits: headline.limits.iter().map(WrittenLimit::of).collect(),
            filtered: headline.filtered.as_ref().map(|filtered| secrets.mask(filtered).into_owned()),
            trace: headline.trace.map(|trace| trace.to_string()),
        }
    }

    fn headline(&self) -> Headline {
        Headline {
            name: self.name.as_str().into(),
            parent: self.parent.map(StepId),
            depth: self.depth,
            what: kind_of(&self.kind),
            status: status_of(self.status),
            failure: self.failure.clone().map(WrittenFailure::into_failure),
            exit_code: self.exit_code,
            signal: self.signal,
            command: self.command.iter().map(|word| Value::from(word.as_str())).collect(),
            work_dir: self.work_dir.as_deref().map(Value::from),
            start: self.start.map(Timestamp::from_nanoseconds),
            end: self.end.map(Timestamp::from_nanoseconds),
            usage: self.usage.clone().map(WrittenUsage::into_usage),
            allowed_to_fail: self.allowed_to_fail,
            limits: self.limits.iter().filter_map(WrittenLimit::limit).collect(),
            filtered: self.filtered.as_deref().map(Into::into),
            trace: self.trace.as_ref().and_then(|trace| trace.parse().ok()),
        }
    }
}

/// A value without what is secret in it.
fn written(value: &Value, secrets: &Secrets) -> String {
    if value.holds_sensitive() {
        return MASK.to_owned();
    }
    match value.as_str() {
        Some(text) => secrets.mask(text).into_owned(),
        None => secrets.mask(&value.to_json().to_string()).into_owned(),
    }
}

impl WrittenFailure {
    fn of(failure: &Failure, secrets: &Secrets) -> Self {
        Self { kind: failure.kind as u8, message: secrets.mask(&failure.message).into_owned() }
    }

    fn into_failure(self) -> Failure {
        let known = [
            FailureKind::StepFailure,
            FailureKind::BadInput,
            FailureKind::Refused,
            FailureKind::Cancelled,
            FailureKind::Timeout,
            FailureKind::Internal,
            FailureKind::Interrupted,
        ];
        let kind = known.into_iter().find(|kind| *kind as u8 == self.kind).unwrap_or(FailureKind::Internal);
        Failure { kind, message: self.message }
    }
}

impl WrittenLimit {
    fn of(limit: &AppliedLimit) -> Self {
        Self { name: limit.name.to_string(), value: limit.value.to_string(), means: limit.means.to_string(), reached: limit.reached }
    }

    /// `None`: another version has more limits.
    fn limit(&self) -> Option<AppliedLimit> {
        let name = LimitName::named(&self.name)?;
        Some(AppliedLimit { name, value: self.value.as_str().into(), means: self.means.as_str().into(), reached: self.reached })
    }
}

impl WrittenUsage {
    fn of(usage: Usage) -> Self {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let pair = |traffic: Traffic| (traffic.incoming, traffic.outgoing);
        Self {
            user: nanoseconds(usage.cpu_user),
            system: nanoseconds(usage.cpu_system),
            peak_memory: usage.peak_memory,
            disk: usage.disk.map(pair),
            network: usage.network.map(pair),
            means: Some(usage.means).filter(|means| *means != Means::default()).map(|means| means.name().to_owned()),
        }
    }

    fn into_usage(self) -> Usage {
        let traffic = |(incoming, outgoing)| Traffic { incoming, outgoing };
        Usage {
            cpu_user: Duration::from_nanos(self.user),
            cpu_system: Duration::from_nanos(self.system),
            peak_memory: self.peak_memory,
            disk: self.disk.map(traffic),
            network: self.network.map(traffic),
            means: self.means.and_then(|means| Means::named(&means)).unwrap_or_default(),
        }
    }
}

fn status_of(number: u8) -> Status {
    let known = [Status::Running, Status::Success, Status::Failure, Status::Cancelled];
    known.into_iter().find(|status| *status as u8 == number).unwrap_or_default()
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Exec => "exec",
        Kind::Sequence => "sequence",
        Kind::Script => "script",
        Kind::Unknown => "unknown",
    }
}

fn kind_of(name: &str) -> Kind {
    [Kind::Exec, Kind::Sequence, Kind::Script].into_iter().find(|kind| name_of(*kind) == name).unwrap_or(Kind::Unknown)
}
