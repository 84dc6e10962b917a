//! The jobs of `try` as a source: offered one by one, their logs shown as they come, their ends remembered.

use super::jobs::GivenJob;
use super::screen::{self, ShownLog};
use crate::ports::{Job, JobKeeper, JobLog, JobSource, Pending, Standing, Taken};
use runner_control::event::{Acknowledgement, Event, Offer, PollAnswer, ReportAnswer, ServerWord};
use runner_control::id::{JobId, RunnerId};
use runner_control::record::Requirements;
use runner_control::report::Report;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use step_client::wire::result::OwnedTree;
use step_client::{JobResult, JobStatus};
use tokio::sync::mpsc::UnboundedSender;

/// GitLab's limit for a job that names none (GitLab Runner v19.4, common/consts.go).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(7200);

/// How a job of `try` ended.
#[derive(Debug)]
pub struct EndedJob {
    pub number: u64,
    pub title: String,
    /// What a server would have been told.
    pub report: Report,
    /// What the agent said in the end. `None`: no agent ran it to its end.
    pub status: Option<JobStatus>,
    pub tree: Option<OwnedTree>,
}

#[derive(Debug)]
pub struct TrialSource {
    runner: RunnerId,
    waiting: Mutex<VecDeque<(u64, GivenJob)>>,
    /// Where jobs run. `None`: where their agent stands.
    build_dir: Option<Arc<str>>,
    /// Whether lines say whose they are.
    are_several: bool,
    /// How far each log has come, and what was said at its end.
    seen: Arc<Mutex<BTreeMap<u64, Seen>>>,
    ended: Mutex<Vec<EndedJob>>,
    /// Hears when there are no more jobs to take.
    events: UnboundedSender<Event>,
}

#[derive(Debug, Default)]
struct Seen {
    offset: u64,
    shown: ShownLog,
    status: Option<JobStatus>,
    tree: Option<OwnedTree>,
}

impl TrialSource {
    pub fn new(runner: RunnerId, jobs: Vec<GivenJob>, build_dir: Option<Arc<str>>, events: UnboundedSender<Event>) -> Self {
        let are_several = jobs.len() > 1;
        let waiting = (1..).zip(jobs).collect();
        Self { runner, waiting: Mutex::new(waiting), build_dir, are_several, seen: Arc::default(), ended: Mutex::default(), events }
    }

    /// The jobs that have ended, in the order in which they were given.
    pub fn ended(&self) -> Vec<EndedJob> {
        let mut ended = std::mem::take(&mut *locked(&self.ended));
        ended.sort_by_key(|job| job.number);
        ended
    }

    /// As a server cancels: what runs is asked to end and tells how it did, what waits is not taken.
    pub fn cancel(&self) {
        locked(&self.waiting).clear();
        let _ = self.events.send(Event::Drain);
        for number in locked(&self.seen).keys() {
            let _ = self.events.send(Event::ServerSaid { job: JobId::new(&self.runner, *number), word: ServerWord::Canceling });
        }
    }

    fn offer(&self) -> Option<Taken> {
        let (next, is_last) = {
            let mut waiting = locked(&self.waiting);
            (waiting.pop_front(), waiting.is_empty())
        };
        let (number, given) = next?;
        if is_last {
            // Nothing more will come: the runner ends with its last job.
            let _ = self.events.send(Event::Drain);
        }
        let prefix = if self.are_several { format!("{} | ", given.title) } else { String::new() };
        locked(&self.seen).insert(number, Seen { shown: ShownLog::new(prefix), ..Seen::default() });
        let timeout = given.translation.request.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let offer = Offer { number, timeout, requirements: Requirements::default(), fault: None };
        let job = Job {
            id: JobId::new(&self.runner, number),
            title: given.title,
            translation: Some(given.translation),
            fault: None,
            build_dir: self.build_dir.clone(),
            kept: String::new(),
            owner_record: Mutex::default(),
        };
        Some(Taken { answer: PollAnswer::Job(Box::new(offer)), job: Some(job), was_retried: false })
    }
}

impl JobSource for TrialSource {
    fn take(&self, _open: u32) -> Pending<Taken> {
        // Nothing is given only after the last job was: the runner does not ask again then.
        let taken = self.offer().unwrap_or_else(Taken::nothing);
        Box::pin(async { taken })
    }

    fn verify(&self) -> Pending<bool> {
        Box::pin(async { true })
    }

    fn acknowledge(&self, _job: &Arc<Job>, _standing: Standing) -> Pending<Acknowledgement> {
        Box::pin(async { Acknowledgement::Good })
    }

    fn report(&self, job: &Arc<Job>, report: Report) -> Pending<ReportAnswer> {
        let number = job.id.number;
        let seen = locked(&self.seen).remove(&number).unwrap_or_default();
        locked(&self.ended).push(EndedJob { number, title: job.title.clone(), report, status: seen.status, tree: seen.tree });
        Box::pin(async { ReportAnswer::Delivered })
    }
}

impl JobKeeper for TrialSource {
    fn restore(&self, _id: &JobId, _kept: &str) -> Option<Job> {
        None
    }

    fn log(&self, job: &Arc<Job>) -> io::Result<Box<dyn JobLog>> {
        Ok(Box::new(TrialLog { number: job.id.number, seen: self.seen.clone() }))
    }

    fn release(&self, _job: &Arc<Job>, _is_kept: bool) {}
}

/// The log of one job, on its way to the terminal.
struct TrialLog {
    number: u64,
    seen: Arc<Mutex<BTreeMap<u64, Seen>>>,
}

impl JobLog for TrialLog {
    fn offset(&self) -> u64 {
        locked(&self.seen).get(&self.number).map_or(0, |seen| seen.offset)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let shown = match locked(&self.seen).get_mut(&self.number) {
            Some(seen) => {
                seen.offset += bytes.len() as u64;
                seen.shown.take(bytes)
            }
            None => return Ok(()),
        };
        screen::print(&shown)
    }

    fn end(&mut self, status: &JobStatus, result: Option<&JobResult>) -> io::Result<()> {
        let shown = match locked(&self.seen).get_mut(&self.number) {
            Some(seen) => {
                seen.status = Some(status.clone());
                seen.tree = result.and_then(|result| result.tree().ok());
                seen.shown.finish()
            }
            None => return Ok(()),
        };
        screen::print(&shown)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
