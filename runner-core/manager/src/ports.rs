//! What the loop that carries effects out needs of others: where jobs come from, and where their logs go.

use runner_control::event::{Acknowledgement, PollAnswer, ReportAnswer};
use runner_control::id::JobId;
use runner_control::report::Report;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use step_client::{JobResult, JobStatus};
use step_payload::Translation;

/// What a call comes to.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Where the jobs of one runner entry come from, and who is told how they end. A server of GitLab, or files that a person gives.
pub trait JobSource: JobKeeper {
    /// Asks for one job. `open`: how many such calls are open, with this one. Dropped, it is given up.
    fn take(&self, open: u32) -> Pending<Taken>;
    /// Whether jobs are given to this runner at all.
    fn verify(&self) -> Pending<bool>;
    /// Tells that a job is being prepared, or that it runs.
    fn acknowledge(&self, job: &Arc<Job>, standing: Standing) -> Pending<Acknowledgement>;
    /// Sends what is left of the log, and the final state.
    fn report(&self, job: &Arc<Job>, report: Report) -> Pending<ReportAnswer>;
}

/// What is kept of the jobs of one runner entry while they are in flight.
pub trait JobKeeper: Send + Sync {
    /// A job that another process had, from what that one kept ([`Job::kept`]). `None`: it cannot be read.
    fn restore(&self, id: &JobId, kept: &str) -> Option<Job>;
    /// Where the log of a job goes. Called again for each stream of it.
    /// # Errors
    /// The log cannot be kept here.
    fn log(&self, job: &Arc<Job>) -> io::Result<Box<dyn JobLog>>;
    /// Nothing about this job follows. `is_kept`: another manager goes on with it, so what is kept of it stays.
    fn release(&self, job: &Arc<Job>, is_kept: bool);
}

/// What a poll brought. `job`: with a [`PollAnswer::Job`], and only then.
#[derive(Debug)]
pub struct Taken {
    pub answer: PollAnswer,
    pub job: Option<Job>,
    /// An answer on the way asked to slow down.
    pub was_retried: bool,
}

impl Taken {
    pub fn nothing() -> Self {
        Self { answer: PollAnswer::Nothing, job: None, was_retried: false }
    }
}

/// What a server is told of a job before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Prepared,
    Runs,
}

/// Where the log of one job goes, as its agent sends it. What was written is not asked for again.
pub trait JobLog: Send {
    /// The first byte of the agent's log that is not here yet.
    fn offset(&self) -> u64;
    /// # Errors
    /// The disk is full, for example; the bytes are asked for again.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// All of it is here: makes it durable, with the result where the agent has one.
    /// # Errors
    /// As for [`JobLog::write`].
    fn end(&mut self, status: &JobStatus, result: Option<&JobResult>) -> io::Result<()>;
}

/// A job as this process knows it, beside what the controller decides with.
#[derive(Debug)]
pub struct Job {
    pub id: JobId,
    /// What people call it.
    pub title: String,
    /// What the agent is asked to run. `None`: the record that was found does not say it, since the agent has it already.
    pub translation: Option<Translation>,
    /// What the server is told in place of running it: it cannot be run.
    pub fault: Option<Report>,
    /// Where it runs on its instance. `None`: where the agent stands.
    pub build_dir: Option<Arc<str>>,
    /// What the source needs to go on with the job in another process, and what makes the translation again. Holds the job's token.
    pub kept: String,
    /// The newest record, sealed: it travels with the job.
    pub owner_record: Mutex<Vec<u8>>,
}

impl Job {
    /// The newest record, sealed.
    pub fn owner_record(&self) -> Vec<u8> {
        self.owner_record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_owner_record(&self, sealed: Vec<u8>) {
        *self.owner_record.lock().unwrap_or_else(PoisonError::into_inner) = sealed;
    }
}
