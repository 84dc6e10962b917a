//! The records of a journal, as they are written.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use step_engine::run::{Headline, Kind};
use step_model::masking::{MASK, Secrets};
use step_model::result::{Failure, FailureKind, Status, StepId, Usage};
use step_model::time::Timestamp;
use step_model::value::Value;

/// One record. `Started` and `Ended` hold all that is known of the step then; the later one counts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Record {
    Accepted {},
    Started(Step),
    Ended(Step),
    Finished { status: u8, failure: Option<WrittenFailure> },
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
    /// As a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WrittenFailure {
    kind: u8,
    message: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WrittenUsage {
    /// Nanoseconds, as `system`.
    user: u64,
    system: u64,
    /// Bytes.
    peak_memory: u64,
}

/// What a record tells its reader.
#[derive(Debug)]
pub enum News {
    Accepted,
    Step(StepId, Box<Headline>),
    Outcome(Status, Option<Failure>),
}

impl Record {
    /// Whatever the machine calls it by now, a step that starts is one that runs.
    pub fn started(step: StepId, headline: &Headline, secrets: &Secrets) -> Self {
        Self::Started(Step { status: Status::Running as u8, ..Step::of(step, headline, secrets) })
    }

    pub fn ended(step: StepId, headline: &Headline, secrets: &Secrets) -> Self {
        Self::Ended(Step::of(step, headline, secrets))
    }

    pub fn finished(status: Status, failure: Option<&Failure>, secrets: &Secrets) -> Self {
        Self::Finished { status: status as u8, failure: failure.map(|failure| WrittenFailure::of(failure, secrets)) }
    }

    pub fn into_news(self) -> News {
        match self {
            Self::Accepted {} => News::Accepted,
            Self::Started(step) | Self::Ended(step) => News::Step(StepId(step.step), Box::new(step.into_headline())),
            Self::Finished { status, failure } => News::Outcome(status_of(status), failure.map(WrittenFailure::into_failure)),
        }
    }
}

impl Step {
    fn of(step: StepId, headline: &Headline, secrets: &Secrets) -> Self {
        Self {
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
            trace: headline.trace.map(|trace| trace.to_string()),
        }
    }

    fn into_headline(self) -> Headline {
        Headline {
            name: self.name.into(),
            parent: self.parent.map(StepId),
            depth: self.depth,
            what: kind_of(&self.kind),
            status: status_of(self.status),
            failure: self.failure.map(WrittenFailure::into_failure),
            exit_code: self.exit_code,
            signal: self.signal,
            command: self.command.into_iter().map(Value::from).collect(),
            work_dir: self.work_dir.map(Value::from),
            start: self.start.map(Timestamp::from_nanoseconds),
            end: self.end.map(Timestamp::from_nanoseconds),
            usage: self.usage.map(WrittenUsage::into_usage),
            allowed_to_fail: self.allowed_to_fail,
            trace: self.trace.and_then(|trace| trace.parse().ok()),
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

impl WrittenUsage {
    fn of(usage: Usage) -> Self {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self { user: nanoseconds(usage.cpu_user), system: nanoseconds(usage.cpu_system), peak_memory: usage.peak_memory }
    }

    fn into_usage(self) -> Usage {
        Usage { cpu_user: Duration::from_nanos(self.user), cpu_system: Duration::from_nanos(self.system), peak_memory: self.peak_memory }
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
