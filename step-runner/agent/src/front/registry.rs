//! The jobs that a front knows, by id. Nothing here is true of a job but by what its process, or its directory, has told.

use crate::frame::Refused;
use crate::job_process::Ask;
use crate::job_process::spool::Extent;
use crate::served_directory::ServedDirectory;
use crate::summary::Summary;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};

/// Where a job is in its life.
///
/// ```text
/// Born --> Refused
///     '--> Accepted --> Running --> Ended
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Its process has not answered yet.
    Born,
    Refused(Refused),
    /// Its first step has not started.
    Accepted,
    /// Nanoseconds since 1970.
    Running {
        start: i64,
    },
    Ended(Summary),
}

impl Phase {
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Ended(_))
    }
}

/// What changes about a job.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    pub phase: Phase,
    /// How far the log may be read.
    pub log: Extent,
    /// Its id is unknown by now.
    pub closed: bool,
}

#[derive(Debug)]
pub struct Job {
    pub id: String,
    pub news: watch::Sender<News>,
    /// To its process, by way of the task that listens to it.
    pub asks: mpsc::UnboundedSender<Ask>,
    directory: Mutex<ServedDirectory>,
    owner_record: Mutex<Bytes>,
    /// Of the job process; zero when it is not known, or gone.
    pub pid: AtomicU32,
    pub followers: AtomicUsize,
}

impl Job {
    /// The receiver is for the task that talks with the job process.
    pub fn new(id: &str, directory: ServedDirectory) -> (Arc<Self>, mpsc::UnboundedReceiver<Ask>) {
        let (asks, asked) = mpsc::unbounded_channel();
        let job = Self {
            id: id.to_owned(),
            news: watch::Sender::new(News { phase: Phase::Born, log: Extent::default(), closed: false }),
            asks,
            directory: Mutex::new(directory),
            owner_record: Mutex::default(),
            pid: AtomicU32::new(0),
            followers: AtomicUsize::new(0),
        };
        (Arc::new(job), asked)
    }

    pub fn directory(&self) -> MutexGuard<'_, ServedDirectory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn owner_record(&self) -> Bytes {
        self.owner_record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_owner_record(&self, record: impl Into<Bytes>) {
        *self.owner_record.lock().unwrap_or_else(PoisonError::into_inner) = record.into();
    }

    pub fn phase(&self) -> Phase {
        self.news.borrow().phase.clone()
    }

    pub fn set_phase(&self, phase: Phase) {
        self.news.send_modify(|news| news.phase = phase);
    }

    /// The phase, as soon as there is one that `is_it`.
    pub async fn reached(&self, is_it: impl Fn(&Phase) -> bool) -> Phase {
        let mut news = self.news.subscribe();
        let reached = news.wait_for(|news| is_it(&news.phase)).await;
        reached.map_or_else(|_| self.phase(), |news| news.phase.clone())
    }
}

/// All jobs of a front.
#[derive(Debug, Default)]
pub struct Registry {
    jobs: Mutex<BTreeMap<String, Arc<Job>>>,
    /// Jobs that are not over. Watched by whoever waits for the last one.
    alive: watch::Sender<usize>,
}

/// A job that this front counts as alive until it is dropped.
#[derive(Debug)]
pub struct Alive {
    registry: Arc<Registry>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.registry.alive.send_modify(|alive| *alive -= 1);
    }
}

impl Registry {
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn find(&self, id: &str) -> Option<Arc<Job>> {
        self.jobs().get(id).cloned()
    }

    /// In the order of their ids.
    pub fn all(&self) -> Vec<Arc<Job>> {
        self.jobs().values().cloned().collect()
    }

    /// The job of this id: the one that is there, or what `make` makes.
    pub fn find_or_add(&self, id: &str, make: impl FnOnce() -> Arc<Job>) -> Arc<Job> {
        self.jobs().entry(id.to_owned()).or_insert_with(make).clone()
    }

    /// Forgets the job, unless the id means another one by now. Tells whether it was there.
    pub fn forget(&self, job: &Arc<Job>) -> bool {
        let mut jobs = self.jobs();
        let is_there = jobs.get(&job.id).is_some_and(|known| Arc::ptr_eq(known, job));
        if is_there {
            jobs.remove(&job.id);
        }
        is_there
    }

    pub fn begin(self: &Arc<Self>) -> Alive {
        self.alive.send_modify(|alive| *alive += 1);
        Alive { registry: Arc::clone(self) }
    }

    /// Waits until no job runs.
    pub async fn until_idle(&self) {
        let mut alive = self.alive.subscribe();
        let _ = alive.wait_for(|alive| *alive == 0).await;
    }

    /// Waits until a job runs.
    #[cfg(target_os = "linux")]
    pub async fn until_busy(&self) {
        let mut alive = self.alive.subscribe();
        let _ = alive.wait_for(|alive| *alive > 0).await;
    }

    pub fn ask_all(&self, ask: Ask) {
        for job in self.all() {
            let _ = job.asks.send(ask);
        }
    }
}

/// Counts a follower as long as it is there.
#[derive(Debug)]
pub struct Follower(Arc<Job>);

impl Follower {
    pub fn of(job: Arc<Job>) -> Self {
        job.followers.fetch_add(1, Ordering::Relaxed);
        Self(job)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, Ordering::Relaxed);
    }
}
