//! One job of a server while it is in flight: its trace, and the task that sends it.

use super::{EntrySettings, locked, words};
use crate::ports::JobLog;
use crate::results::Ended;
use crate::source::slots::Slot;
use bytes::Bytes;
use ci_proto::results::head::Runner;
use runner_control::event::{Event, ReportAnswer, ServerWord};
use runner_control::id::JobId;
use runner_control::report::Report;
use runner_gitlab::answer::{Accepted, Beat};
use runner_gitlab::client::Uploaded;
use runner_gitlab::trace::deliver::{Delivery, Signal, Told};
use runner_gitlab::trace::framed::Headers;
use runner_gitlab::trace::sanitise::Prefixes;
use runner_gitlab::trace::sending::Delivered;
use runner_gitlab::trace::spool::{Trace, TraceSettings};
use runner_gitlab::{Client, Finished, JobAccess, JobFacts, ReceivedJob, reason};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use step_client::{JobResult, JobStatus};
use step_model::masking::Secrets;
use step_model::time::Timestamp;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A server that has heard nothing for so long gives a job to somebody else.
const BEAT_LIMIT: Duration = Duration::from_secs(120);

/// A result is kept here anyhow: the end of a job does not wait long for a server that does not take it.
const TO_UPLOAD: Duration = Duration::from_secs(30);

pub struct Live {
    id: JobId,
    access: JobAccess,
    payload: Bytes,
    facts: JobFacts,
    pub project: String,
    pub slot: Slot,
    began: Timestamp,
    client: Client,
    settings: EntrySettings,
    directory: PathBuf,
    events: UnboundedSender<Event>,
    trace: Mutex<Option<Trace>>,
    told: watch::Sender<Told>,
    /// The task that sends, and what it came to.
    sending: Mutex<Option<JoinHandle<()>>>,
    delivered: watch::Sender<Sent>,
    beaten: Mutex<Option<Instant>>,
    /// When the agent says that the job ended.
    ended: Mutex<Option<Timestamp>>,
}

/// How far sending has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sent {
    #[default]
    OnItsWay,
    Overdue,
    Done(Delivered),
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Live({})", self.id)
    }
}

impl Live {
    #[expect(clippy::too_many_arguments, reason = "called once, by the source that has all of it")]
    pub fn new(
        id: JobId,
        access: JobAccess,
        received: ReceivedJob,
        project: String,
        slot: Slot,
        began: Timestamp,
        settings: &EntrySettings,
        client: Client,
        events: UnboundedSender<Event>,
    ) -> Self {
        let directory = settings.directory.join(id.number.to_string());
        Self {
            id,
            access,
            payload: received.payload,
            facts: received.facts,
            project,
            slot,
            began,
            client,
            settings: settings.clone(),
            directory,
            events,
            trace: Mutex::default(),
            told: watch::Sender::new(Told::default()),
            sending: Mutex::default(),
            delivered: watch::Sender::new(Sent::default()),
            beaten: Mutex::default(),
            ended: Mutex::default(),
        }
    }

    pub async fn beat(&self) -> Beat {
        let is_late = locked(&self.beaten).is_some_and(|last| last.elapsed() > BEAT_LIMIT);
        let beat = self.client.beat(&self.access, is_late).await;
        if !matches!(beat, Beat::Unknown { .. }) {
            *locked(&self.beaten) = Some(Instant::now());
        }
        beat
    }

    pub async fn accept(self: &Arc<Self>) -> Accepted {
        let accepted = self.client.accept(&self.access).await;
        if accepted == Accepted::Running
            && let Err(fault) = self.send()
        {
            // The log is followed later: it fails there again if the disk stays as it is.
            tracing::error!(job = %self.id, "the trace cannot be kept: {fault}");
        }
        accepted
    }

    /// Does something with the trace, which is opened if need be. After a fault it is opened anew, at its mark.
    fn with_trace<T>(&self, work: impl FnOnce(&mut Trace) -> io::Result<T>) -> io::Result<T> {
        let mut trace = locked(&self.trace);
        let opened = match trace.take() {
            Some(opened) => opened,
            None => self.open()?,
        };
        let opened = trace.insert(opened);
        let outcome = work(opened);
        let digest = opened.digest();
        if outcome.is_err() {
            *trace = None;
        }
        self.told.send_modify(|told| told.trace = digest);
        outcome
    }

    fn open(&self) -> io::Result<Trace> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.directory)?;
        let mut secrets = Secrets::default();
        for secret in &self.facts.secrets {
            // One that is too short to be masked was said by the agent.
            let _ = secrets.add(secret);
        }
        let settings = TraceSettings {
            limit: self.settings.output_limit,
            headers: if self.settings.timestamps { Headers::Full } else { Headers::None },
            prefixes: Prefixes::new(&self.facts.token_mask_prefixes),
            secrets,
        };
        let mut trace = Trace::open(&self.directory, settings)?;
        if trace.digest().bytes == 0 && trace.agent_offset() == 0 {
            let place = &self.settings.place;
            trace.say(&words::beginning(env!("CARGO_PKG_VERSION"), &place.name, &place.short_token), self.began)?;
        }
        Ok(trace)
    }

    /// Starts the task that sends the trace, unless it runs.
    fn send(self: &Arc<Self>) -> io::Result<()> {
        let mut sending = locked(&self.sending);
        if sending.is_some() {
            return Ok(());
        }
        let reader = self.with_trace(|trace| trace.reader())?;
        let delivery = Delivery {
            client: self.client.clone(),
            job: self.access.clone(),
            trace: reader,
            debug_trace: self.facts.debug_trace,
            settings: self.settings.sending,
            sent: 0,
        };
        let (signals, mut heard) = unbounded_channel();
        let (told, live) = (self.told.subscribe(), self.clone());
        *sending = Some(tokio::spawn(async move {
            let mut running = std::pin::pin!(delivery.run(told, signals));
            loop {
                tokio::select! {
                    delivered = &mut running => {
                        live.delivered.send_replace(Sent::Done(delivered));
                        return;
                    }
                    Some(signal) = heard.recv() => live.heard(signal),
                }
            }
        }));
        Ok(())
    }

    fn heard(&self, signal: Signal) {
        let word = match signal {
            Signal::Cancel => ServerWord::Canceling,
            Signal::Abort => ServerWord::Aborted,
            Signal::Overdue => {
                self.delivered.send_replace(Sent::Overdue);
                return;
            }
        };
        let _ = self.events.send(Event::ServerSaid { job: self.id.clone(), word });
    }

    /// Whether the result of the job can be had from here. The job ends as it ends, whatever becomes of its result.
    async fn keep_result(&self, report: &Report) -> bool {
        let ended = self.ended_with(report);
        if let Err(fault) = self.settings.results.keep(ended.clone()).await {
            tracing::warn!(job = %self.id, "the result of the job is not kept: {fault}");
            return false;
        }
        // The server takes artifacts of a job that has not ended, once.
        let mark = self.directory.join("uploaded");
        if self.settings.results.is_artifact() && !mark.exists() {
            let uploaded = tokio::time::timeout(TO_UPLOAD, self.upload(&ended)).await;
            let outcome = uploaded.unwrap_or_else(|_| Err(format!("it took more than {} s", TO_UPLOAD.as_secs())));
            let outcome = outcome.and_then(|()| std::fs::write(&mark, []).map_err(|fault| fault.to_string()));
            if let Err(why) = outcome {
                tracing::warn!(job = %self.id, "the result of the job is no artifact of it: {why}");
            }
        }
        true
    }

    async fn upload(&self, ended: &Ended) -> Result<(), String> {
        let Some(artifact) = self.settings.results.artifact(ended).await.map_err(|fault| fault.to_string())? else { return Ok(()) };
        match self.client.upload_artifact(&self.access, &artifact).await {
            Uploaded::Done => Ok(()),
            Uploaded::Refused { why } | Uploaded::Failed { why } => Err(why),
        }
    }

    fn ended_with(&self, report: &Report) -> Ended {
        let place = &self.settings.place;
        Ended {
            job: self.id.clone(),
            server: self.access.server.to_string(),
            payload: self.payload.clone(),
            reason: report
                .failure
                .map(|why| reason::sent_as(words::reason(why), &self.facts.failure_reasons).to_owned())
                .unwrap_or_default(),
            report: report.clone(),
            runner: Runner {
                name: place.name.clone(),
                short_token: place.short_token.clone(),
                system_id: self.settings.system_id.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            received: self.began,
            ended: locked(&self.ended).unwrap_or_else(now),
            tree: self.directory.join("result"),
        }
    }

    /// Says in the trace how the job ended, once, whoever was killed in between.
    fn say_the_end(&self, report: &Report, has_result: bool) -> io::Result<()> {
        let mark = self.directory.join("ended");
        let ended = locked(&self.ended).unwrap_or_else(now);
        self.with_trace(|trace| {
            let said_at = std::fs::read_to_string(&mark).ok().and_then(|text| text.parse::<u64>().ok());
            let bytes = trace.digest().bytes;
            if said_at.is_some_and(|at| bytes > at) {
                return Ok(());
            }
            std::fs::write(&mark, bytes.to_string())?;
            trace.say(&words::ending(report), ended)?;
            if report.failure.is_some() && has_result {
                trace.say(&words::what_ran(self.id.number), ended)?;
            }
            trace.finish()
        })
    }

    pub async fn report(self: &Arc<Self>, report: &Report) -> ReportAnswer {
        let has_result = self.keep_result(report).await;
        let said = self.say_the_end(report, has_result).and_then(|()| self.send());
        if let Err(fault) = said {
            return ReportAnswer::Failed { reason: format!("the trace cannot be kept: {fault}") };
        }
        let failure = report.failure.map(|why| reason::sent_as(words::reason(why), &self.facts.failure_reasons).to_owned());
        let finished = Finished { failure, exit_code: report.exit_code, environment: None };
        self.told.send_modify(|told| told.finished = Some(finished));
        let mut delivered = self.delivered.subscribe();
        // Overdue once is overdue for the controller, which asks again later: then whatever came meanwhile counts.
        let outcome = delivered.wait_for(|sent| *sent != Sent::OnItsWay).await.map(|sent| *sent);
        match outcome {
            Ok(Sent::Done(Delivered::Reported)) => {
                let took = now().since(self.began);
                self.settings.telemetry.job_ended(&self.settings.labels, report.failure.map(words::reason), took);
                ReportAnswer::Delivered
            }
            Ok(Sent::Done(Delivered::Refused)) => ReportAnswer::Unwanted,
            Ok(Sent::Done(Delivered::GaveUp)) => ReportAnswer::Failed { reason: "the server did not take it for a day".to_owned() },
            Ok(Sent::Overdue | Sent::OnItsWay) | Err(_) => {
                self.delivered.send_if_modified(|sent| {
                    *sent == Sent::Overdue && {
                        *sent = Sent::OnItsWay;
                        true
                    }
                });
                ReportAnswer::Failed { reason: "the server has not taken it yet".to_owned() }
            }
        }
    }

    /// Nothing follows about this job here.
    pub fn release(&self, is_kept: bool) {
        if let Some(sending) = locked(&self.sending).take() {
            sending.abort();
        }
        *locked(&self.trace) = None;
        if is_kept {
            return;
        }
        if let Err(fault) = std::fs::remove_dir_all(&self.directory)
            && fault.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(job = %self.id, "what was kept of the job could not be removed: {fault}");
        }
    }
}

/// The log of the agent, on its way into the trace.
pub struct LiveLog(Arc<Live>);

impl LiveLog {
    /// # Errors
    /// The disk is full or broken.
    pub fn open(live: Arc<Live>) -> io::Result<Self> {
        live.send()?;
        // What was held of an unfinished line is asked for again.
        *locked(&live.trace) = None;
        live.with_trace(|_| Ok(()))?;
        Ok(Self(live))
    }
}

impl JobLog for LiveLog {
    fn offset(&self) -> u64 {
        self.0.with_trace(|trace| Ok(trace.agent_offset())).unwrap_or_default()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.with_trace(|trace| trace.push(bytes))
    }

    fn end(&mut self, status: &JobStatus, result: Option<&JobResult>) -> io::Result<()> {
        *locked(&self.0.ended) = status.end;
        if let Some(result) = result {
            let mut aside = tempfile::Builder::new().prefix("result.").tempfile_in(&self.0.directory)?;
            io::Write::write_all(&mut aside, &result.message)?;
            aside.as_file().sync_all()?;
            aside.persist(self.0.directory.join("result")).map_err(|fault| fault.error)?;
        }
        self.0.with_trace(Trace::finish)
    }
}

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanoseconds(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
