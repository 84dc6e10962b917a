//! The report for programs: one JSON object per line and event, on standard output.
//!
//! Every line has `version` (1; it grows when a field changes its meaning, not when one is added) and `event`. The events are described
//! in `docs/reference/events.md`.

use super::{Paths, Surface};
use crate::run::plan_text::PlanOutline;
use base64::Engine as _;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use step_agent::job_process::{Audience, Stream};
use step_engine::run::{Headline, Kind};
use step_model::diagnostic;
use step_model::limits::AppliedLimit;
use step_model::result::{Failure, FailureKind, Status, StepId};

/// Grows when a field changes its meaning, or goes.
pub const VERSION: u32 = 1;

/// Tells programs what happens.
#[derive(Debug)]
pub struct Lines<S> {
    surface: S,
    paths: Paths,
    /// The beginning of a character whose end has not been written yet, per step and stream.
    split: BTreeMap<(StepId, &'static str), Vec<u8>>,
    /// Why a line could not be written; the first one.
    lost: Option<String>,
    reader_left: bool,
}

/// One line. Absent members are not written.
#[derive(Serialize)]
struct Line<'a, E> {
    version: u32,
    event: &'a str,
    #[serde(flatten)]
    members: E,
}

#[derive(Serialize)]
struct Started<'a> {
    step: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
    name: &'a str,
    path: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

#[derive(Serialize)]
struct Output<'a> {
    step: u32,
    stream: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[derive(Serialize)]
struct Said<'a> {
    step: u32,
    line: &'a str,
    warning: bool,
}

#[derive(Serialize)]
struct Ended<'a> {
    step: u32,
    name: &'a str,
    path: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Cause<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    allowed_to_fail: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_read_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_written_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_received_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_sent_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<Limit<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filtered: Option<&'a str>,
}

#[derive(Serialize)]
struct Limit<'a> {
    name: &'static str,
    value: &'a str,
    means: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reached: bool,
}

#[derive(Serialize)]
struct Cause<'a> {
    kind: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct Finished<'a> {
    status: &'static str,
    /// Of the program that tells this.
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_step: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Cause<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct Problem<'a> {
    verdict: &'static str,
    code: &'a str,
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

#[derive(Serialize)]
struct Fault<'a> {
    message: &'a str,
    hints: &'a [String],
}

#[derive(Serialize)]
struct NotDone<'a> {
    part: &'a str,
    what: &'a str,
    way_out: &'a str,
    refused: bool,
}

#[derive(Serialize)]
struct Note<'a> {
    message: &'a str,
    warning: bool,
}

impl<S: Surface> Lines<S> {
    pub fn new(surface: S) -> Self {
        Self { surface, paths: Paths::default(), split: BTreeMap::new(), lost: None, reader_left: false }
    }

    /// What stands for the one step without a name.
    pub fn set_title(&mut self, title: &str) {
        self.paths.set_title(title);
    }

    /// What is said about the job before its first step or after its last.
    pub fn note(&mut self, message: &str, warning: bool) -> io::Result<()> {
        self.write("note", Note { message, warning })
    }

    pub fn not_done(&mut self, part: &step_payload::NotDone) -> io::Result<()> {
        self.write("not_done", NotDone { part: part.part, what: &part.what, way_out: &part.way_out, refused: part.refused })
    }

    pub fn problem(&mut self, file: &str, problem: &diagnostic::Problem) -> io::Result<()> {
        let members = Problem {
            verdict: if problem.is_error() { "error" } else { "warning" },
            code: problem.code,
            file,
            line: problem.place.as_ref().map(|place| place.line),
            column: problem.place.as_ref().map(|place| place.column),
            message: &problem.message,
            hint: problem.hint.as_deref(),
        };
        self.write("problem", members)
    }

    /// What would run.
    pub fn plan(&mut self, plan: &PlanOutline) -> io::Result<()> {
        self.write("plan", plan)
    }

    /// Why a line could not be written, if one could not.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Whoever read standard output does so no longer.
    pub fn reader_left(&self) -> bool {
        self.reader_left
    }

    /// Why nothing ran, or what went wrong after the last step.
    pub fn error(&mut self, message: &str, hints: &[String]) -> io::Result<()> {
        self.write("error", Fault { message, hints })
    }

    /// The last line, when nothing ran.
    pub fn finished(&mut self, status: &'static str, exit_code: u8) -> io::Result<()> {
        self.write("finished", Finished { status, exit_code, failed_step: None, failure: None, seconds: None })
    }

    /// The last line.
    pub fn ended_job(
        &mut self,
        status: Status,
        failure: Option<&Failure>,
        failed_step: Option<StepId>,
        exit_code: u8,
        took: Option<Duration>,
    ) -> io::Result<()> {
        let members = Finished {
            status: status_name(status),
            exit_code,
            failed_step: failed_step.map(|step| step.0),
            failure: failure.map(cause),
            seconds: took.map(|took| took.as_secs_f64()),
        };
        self.write("finished", members)
    }

    fn write(&mut self, event: &str, members: impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line { version: VERSION, event, members }).map_err(io::Error::other)?;
        line.push(b'\n');
        let outcome = self.surface.output(&line);
        if let (Err(fault), None) = (&outcome, &self.lost) {
            self.lost = Some(fault.to_string());
            self.reader_left = fault.kind() == io::ErrorKind::BrokenPipe;
        }
        outcome
    }

    /// Text goes out as text, anything else as base64; together the lines hold every byte in order.
    fn piece(&mut self, step: StepId, stream: &'static str, bytes: &[u8]) -> io::Result<()> {
        let text = std::str::from_utf8(bytes).ok();
        let base64 = if text.is_some() { None } else { Some(base64::engine::general_purpose::STANDARD.encode(bytes)) };
        if bytes.is_empty() { Ok(()) } else { self.write("output", Output { step: step.0, stream, text, base64 }) }
    }
}

impl<S: Surface> Audience for Lines<S> {
    fn started(&mut self, step: StepId, headline: &Headline) {
        let path = self.paths.of(step, headline);
        let members = Started {
            step: step.0,
            parent: headline.parent.map(|parent| parent.0),
            name: &headline.name,
            path: &path,
            kind: kind_name(headline.what),
            time: headline.start.map(|time| time.to_string()),
        };
        // A standard output that is gone is told by the next piece of the step's output, which ends the job.
        let _ = self.write("started", members);
    }

    fn output(&mut self, step: StepId, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let stream = stream_name(stream);
        let joined;
        let bytes = match self.split.remove(&(step, stream)) {
            Some(mut begun) => {
                begun.extend_from_slice(bytes);
                joined = begun;
                &joined[..]
            }
            None => bytes,
        };
        let whole = bytes.len() - begun_character(bytes);
        if whole < bytes.len() {
            self.split.insert((step, stream), bytes[whole..].to_vec());
        }
        self.piece(step, stream, &bytes[..whole])
    }

    fn said(&mut self, step: StepId, line: &str, warning: bool) {
        let _ = self.write("said", Said { step: step.0, line, warning });
    }

    fn ended(&mut self, step: StepId, headline: &Headline, _tail: &[u8]) {
        for stream in ["output", "stdout", "stderr"] {
            if let Some(rest) = self.split.remove(&(step, stream)) {
                let _ = self.piece(step, stream, &rest);
            }
        }
        let path = self.paths.of(step, headline);
        self.paths.forget(step);
        let (disk, network) = (headline.usage.and_then(|usage| usage.disk), headline.usage.and_then(|usage| usage.network));
        let members = Ended {
            step: step.0,
            name: &headline.name,
            path: &path,
            status: status_name(headline.status),
            exit_code: headline.exit_code,
            signal: headline.signal,
            failure: headline.failure.as_ref().map(cause),
            allowed_to_fail: headline.allowed_to_fail,
            start: headline.start.map(|time| time.to_string()),
            end: headline.end.map(|time| time.to_string()),
            cpu_seconds: headline.usage.map(|usage| (usage.cpu_user + usage.cpu_system).as_secs_f64()),
            peak_memory_bytes: headline.usage.map(|usage| usage.peak_memory),
            disk_read_bytes: disk.map(|disk| disk.incoming),
            disk_written_bytes: disk.map(|disk| disk.outgoing),
            network_received_bytes: network.map(|network| network.incoming),
            network_sent_bytes: network.map(|network| network.outgoing),
            limits: headline.limits.iter().map(limit).collect(),
            filtered: headline.filtered.as_deref(),
        };
        let _ = self.write("ended", members);
    }
}

/// How many bytes at the end are the beginning of a character that is not complete.
fn begun_character(bytes: &[u8]) -> usize {
    for length in 1..=bytes.len().min(3) {
        let first = bytes[bytes.len() - length];
        let expected = match first {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => return 0,
        };
        return if length < expected { length } else { 0 };
    }
    0
}

fn limit(limit: &AppliedLimit) -> Limit<'_> {
    Limit { name: limit.name.as_str(), value: &limit.value, means: &limit.means, reached: limit.reached }
}

fn cause(failure: &Failure) -> Cause<'_> {
    Cause { kind: failure_name(failure.kind), message: &failure.message }
}

fn stream_name(stream: Stream) -> &'static str {
    match stream {
        Stream::Output => "stdout",
        Stream::Error => "stderr",
        Stream::Both => "output",
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Exec => "exec",
        Kind::Sequence => "sequence",
        Kind::Script => "script",
        Kind::Unknown => "unknown",
    }
}

pub fn status_name(status: Status) -> &'static str {
    match status {
        Status::Unspecified => "unspecified",
        Status::Running => "running",
        Status::Success => "success",
        Status::Failure => "failure",
        Status::Cancelled => "cancelled",
    }
}

pub fn failure_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::StepFailure => "step_failure",
        FailureKind::BadInput => "bad_input",
        FailureKind::Refused => "refused",
        FailureKind::Cancelled => "cancelled",
        FailureKind::Timeout => "timeout",
        FailureKind::Internal => "internal",
        FailureKind::Interrupted => "interrupted",
    }
}

#[cfg(test)]
mod tests;
