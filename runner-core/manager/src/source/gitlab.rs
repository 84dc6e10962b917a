//! A GitLab server as a source of jobs, for one entry of the configuration.

mod added;
mod caches;
mod kept;
mod live;
mod place;
mod presigned;
mod words;

pub use place::Place;

use crate::ports::{Job, JobKeeper, JobLog, JobSource, Pending, Standing, Taken};
use crate::results::Results;
use crate::source::slots::Slots;
use crate::telemetry::{RunnerLabels, Telemetry};
use kept::Kept;
use live::{Live, LiveLog};
use runner_control::event::{Acknowledgement, Event, Offer, PollAnswer, ReportAnswer};
use runner_control::id::{JobId, RunnerId};
use runner_control::record::Requirements;
use runner_control::report::Report;
use runner_gitlab::answer::{Accepted, Beat, Polled, Verified};
use runner_gitlab::trace::sending::SendingSettings;
use runner_gitlab::{Client, JobAccess, ReceivedJob, Token};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// GitLab's limit for a job that names none (GitLab Runner v19.4, common/consts.go).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(7200);

/// So many jobs that are over are remembered: a server that gives one of them again is not listened to.
const REMEMBERED: usize = 10_000;

/// What an entry says of its jobs.
#[derive(Debug, Clone)]
pub struct EntrySettings {
    pub place: Place,
    /// Of a trace, in bytes.
    pub output_limit: u64,
    /// `FF_TIMESTAMPS`.
    pub timestamps: bool,
    pub sending: SendingSettings,
    /// At once, when the server has nothing and says what it will hold the next request for. Not with `strict_check_interval`.
    pub asks_again: bool,
    /// The directories of jobs are made here.
    pub directory: PathBuf,
    /// Where their results are kept.
    pub results: Arc<Results>,
    /// Where they are counted, and as whose.
    pub telemetry: Telemetry,
    pub labels: RunnerLabels,
    pub system_id: String,
}

/// One entry, and its jobs in flight.
#[derive(Debug)]
pub struct GitLabSource {
    runner: RunnerId,
    client: Client,
    token: Token,
    settings: EntrySettings,
    jobs: Arc<Mutex<Jobs>>,
    events: UnboundedSender<Event>,
}

#[derive(Debug, Default)]
struct Jobs {
    live: BTreeMap<u64, Arc<Live>>,
    slots: Slots,
    over: BTreeSet<u64>,
    over_in_order: VecDeque<u64>,
}

impl GitLabSource {
    pub fn new(runner: RunnerId, client: Client, token: Token, settings: EntrySettings, events: UnboundedSender<Event>) -> Self {
        Self { runner, client, token, settings, jobs: Arc::default(), events }
    }

    /// The same entry with other settings: jobs in flight go on with those that they began with.
    pub fn renewed(&self, client: Client, token: Token, settings: EntrySettings) -> Self {
        Self { client, token, settings, ..self.handle() }
    }

    pub fn token(&self) -> &Token {
        &self.token
    }

    fn live(&self, job: &JobId) -> Option<Arc<Live>> {
        locked(&self.jobs).live.get(&job.number).cloned()
    }

    /// Makes a job known here. `kept`: with the numbers that another process gave it.
    fn begin(&self, received: ReceivedJob, access: JobAccess, kept: Option<&Kept>) -> Job {
        let project = received.facts.project.clone().unwrap_or_default();
        let slot = {
            let slots = &mut locked(&self.jobs).slots;
            match kept {
                Some(kept) => {
                    slots.take_again(&project, kept.slot);
                    kept.slot
                }
                None => slots.take(&project),
            }
        };
        let began = kept.map_or_else(live::now, |kept| kept.began());
        let placed = self.settings.place.put(&received, slot, &access.server, began);
        let id = JobId::new(&self.runner, received.id);
        let text = Kept::of(&received, slot, began).to_text();
        let number = received.id;
        let live = Live::new(id.clone(), access, received, project, slot, began, &self.settings, self.client.clone(), self.events.clone());
        locked(&self.jobs).live.insert(number, Arc::new(live));
        let (translation, fault) = match placed.steps {
            Ok(translation) => (Some(translation), None),
            Err(report) => (None, Some(report)),
        };
        Job {
            id,
            title: format!("job {number}"),
            translation,
            fault,
            build_dir: Some(placed.build_dir.into()),
            kept: text,
            owner_record: Mutex::default(),
        }
    }

    fn taken(&self, received: ReceivedJob, access: JobAccess) -> (PollAnswer, Option<Job>) {
        let number = received.id;
        let timeout = received.facts.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let offer = |fault| PollAnswer::Job(Box::new(Offer { number, timeout, requirements: Requirements::default(), fault }));
        let (is_over, is_live) = {
            let jobs = locked(&self.jobs);
            (jobs.over.contains(&number), jobs.live.contains_key(&number))
        };
        if is_over {
            tracing::warn!(job = number, "the server has given a job again that is over");
            return (PollAnswer::Nothing, None);
        }
        if is_live {
            return (offer(None), None);
        }
        let job = self.begin(received, access, None);
        self.settings.telemetry.job_taken(&self.settings.labels);
        (offer(job.fault.clone()), Some(job))
    }
}

impl JobSource for GitLabSource {
    fn take(&self, _open: u32) -> Pending<Taken> {
        let (client, token) = (self.client.clone(), self.token.clone());
        let source = self.handle();
        Box::pin(async move {
            let mut poll = client.request_job(&token, None).await;
            if poll.polled == Polled::NoJob && poll.has_new_ticket && source.settings.asks_again {
                // A job that comes now is not to wait for `check_interval`; the server holds this one.
                poll = client.request_job(&token, None).await;
            }
            let access = poll.access();
            let (answer, job) = match (poll.polled, access) {
                (Polled::Job(received), Some(access)) => source.taken(*received, access),
                (Polled::Job(_) | Polled::NoJob | Polled::Conflict, _) => (PollAnswer::Nothing, None),
                (Polled::Forbidden { why } | Polled::Unusable { why }, _) => (PollAnswer::Refused { reason: why }, None),
                (Polled::Failed { why }, _) => (PollAnswer::Failed { reason: why }, None),
                (Polled::Unavailable, _) => (PollAnswer::Failed { reason: "the server is not available".to_owned() }, None),
            };
            Taken { answer, job, was_retried: poll.was_retried }
        })
    }

    fn verify(&self) -> Pending<bool> {
        let (client, token) = (self.client.clone(), self.token.clone());
        Box::pin(async move { matches!(client.verify(&token).await, Verified::Good(_)) })
    }

    fn acknowledge(&self, job: &Arc<Job>, standing: Standing) -> Pending<Acknowledgement> {
        let Some(live) = self.live(&job.id) else { return Box::pin(async { Acknowledgement::Aborted }) };
        Box::pin(async move {
            match standing {
                Standing::Prepared => match live.beat().await {
                    Beat::Waits => Acknowledgement::Good,
                    Beat::Canceling => Acknowledgement::Canceling,
                    Beat::NotNeeded => Acknowledgement::Refused { reason: "the server does not wait for this job".to_owned() },
                    Beat::Gone => Acknowledgement::Aborted,
                    Beat::Unknown { why } => Acknowledgement::Failed { reason: why },
                },
                Standing::Runs => match live.accept().await {
                    Accepted::Running => Acknowledgement::Good,
                    Accepted::Canceling => Acknowledgement::Canceling,
                    Accepted::Gone => Acknowledgement::Aborted,
                    Accepted::Unknown { why } => Acknowledgement::Failed { reason: why },
                },
            }
        })
    }

    fn report(&self, job: &Arc<Job>, report: Report) -> Pending<ReportAnswer> {
        match self.live(&job.id) {
            Some(live) => Box::pin(async move { live.report(&report).await }),
            None => Box::pin(async { ReportAnswer::Unwanted }),
        }
    }
}

impl JobKeeper for GitLabSource {
    fn restore(&self, id: &JobId, kept: &str) -> Option<Job> {
        let found = Kept::read(kept).and_then(|kept| Ok((kept.received()?, kept)));
        let (received, kept) =
            found.inspect_err(|fault| tracing::warn!(job = %id, "what was kept of the job cannot be read: {fault}")).ok()?;
        let settings = self.client.settings();
        let server = runner_gitlab::cell::address(&received.token, &settings.cells, &settings.url).clone();
        let access = JobAccess { server, id: received.id, token: received.token.clone() };
        Some(self.begin(received, access, Some(&kept)))
    }

    fn log(&self, job: &Arc<Job>) -> io::Result<Box<dyn JobLog>> {
        let live = self.live(&job.id).ok_or_else(|| io::Error::other("the job is not known here any more"))?;
        Ok(Box::new(LiveLog::open(live)?))
    }

    fn release(&self, job: &Arc<Job>, is_kept: bool) {
        let number = job.id.number;
        let live = {
            let mut jobs = locked(&self.jobs);
            let live = jobs.live.remove(&number);
            if let Some(live) = &live {
                jobs.slots.free(&live.project, live.slot);
            }
            if jobs.over.insert(number) {
                jobs.over_in_order.push_back(number);
            }
            if jobs.over_in_order.len() > REMEMBERED
                && let Some(oldest) = jobs.over_in_order.pop_front()
            {
                jobs.over.remove(&oldest);
            }
            live
        };
        if let Some(live) = live {
            live.release(is_kept);
        }
    }
}

impl GitLabSource {
    /// The same source, for a task that outlives a borrow.
    fn handle(&self) -> Self {
        Self {
            runner: self.runner.clone(),
            client: self.client.clone(),
            token: self.token.clone(),
            settings: self.settings.clone(),
            jobs: self.jobs.clone(),
            events: self.events.clone(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
