//! How a job comes to its process: a directory, a process forked from the zygote, and one message with the lock.

use super::Settings;
use super::registry::{Alive, Job, Phase, Registry};
use super::spares::Spares;
use super::{link, refusal};
use crate::frame::{Birth, Frames, FromJob, Refused, ToJob};
use crate::job_process::Ask;
use crate::served_directory::ServedDirectory;
use crate::system::detached;
use crate::system_error;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use step_model::plan::Level;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tonic::Status;

/// What all jobs of a front have in common.
#[derive(Debug)]
pub struct Nursery {
    /// Where the directories of jobs are.
    pub directory: PathBuf,
    /// Where a job runs that names no directory.
    pub work_dir: PathBuf,
    pub level: Level,
    pub stamped: bool,
    pub grace_period: Duration,
    pub job_timeout: Option<Duration>,
    pub keep_finished: Duration,
    /// Added to the environment of job processes.
    pub environment: Vec<(String, PathBuf)>,
    /// `None`: it has not been started, or has died.
    zygote: Mutex<Option<Zygote>>,
    pub spares: Spares,
}

/// A process of this program that waits, and from which each job process is forked: a fork costs a fifth of a start.
#[derive(Debug)]
struct Zygote {
    process: Child,
    asks: std::os::unix::net::UnixStream,
}

impl Zygote {
    fn start(environment: &[(String, PathBuf)]) -> io::Result<Self> {
        let (process, asks) = detached::start_own(&["job"], environment)?;
        Ok(Self { process, asks })
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }
}

/// A job process that has its job.
struct Newborn {
    /// Zero: it has not said.
    pid: u32,
    link: UnixStream,
    frames: Frames,
}

impl Nursery {
    pub fn new(settings: &Settings, environment: Vec<(String, PathBuf)>) -> Self {
        Self {
            directory: settings.directory.clone(),
            work_dir: settings.work_dir.clone(),
            level: settings.level,
            stamped: settings.stamped,
            grace_period: settings.grace_period,
            job_timeout: settings.job_timeout,
            keep_finished: settings.keep_finished,
            environment,
            zygote: Mutex::default(),
            spares: Spares::default(),
        }
    }

    /// Starts what job processes are forked from. Without it the first job tries by itself, and its caller is told.
    pub fn prepare(&self) {
        let started = Zygote::start(&self.environment);
        // Whoever runs the front learns it before that.
        let started = started.inspect_err(|error| {
            eprintln!("step-runner: no process for the next job can be started: {}", system_error::text(error));
        });
        *self.zygote() = started.ok();
    }

    /// No process and no directory without a job is left behind.
    pub fn dismiss(&self) {
        *self.zygote() = None;
        self.spares.remove();
    }

    fn zygote(&self) -> MutexGuard<'_, Option<Zygote>> {
        self.zygote.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The link to a new process.
    fn process(&self) -> io::Result<std::os::unix::net::UnixStream> {
        let mut zygote = self.zygote();
        if let Some(living) = &mut *zygote {
            match detached::fork_over(&living.asks) {
                Ok(link) => return Ok(link),
                Err(error) if !living.has_ended() => return Err(error),
                Err(_) => {}
            }
        }
        let fresh = Zygote::start(&self.environment)?;
        let link = detached::fork_over(&fresh.asks)?;
        *zygote = Some(fresh);
        Ok(link)
    }

    /// Nobody will fork any more. Somebody has killed it, or the system has, for memory.
    fn has_lost_its_zygote(&self) -> bool {
        self.zygote().as_mut().is_none_or(Zygote::has_ended)
    }

    /// Hands the job over. Small until the request: nobody waits here.
    async fn deliver(&self, id: &str, directory: &ServedDirectory, lock: &File, request: Bytes) -> io::Result<Newborn> {
        let birth = Birth {
            id: id.to_owned(),
            directory: directory.path().to_path_buf(),
            work_dir: self.work_dir.clone(),
            level: Birth::number_of(self.level),
            stamped: self.stamped,
            grace_period: self.grace_period,
            timeout: self.job_timeout,
            log_limit: None,
        };
        let birth = ToJob::Birth(birth).encode();
        let request = ToJob::Request(request).encode();
        let link = self.process()?;
        detached::send_with(&link, &birth, lock)?;
        link.set_nonblocking(true)?;
        let mut link = UnixStream::from_std(link)?;
        // A process that refuses early may not read all of it; its answer says why.
        let _ = link.write_all(&request).await;
        Ok(Newborn { pid: 0, link, frames: Frames::default() })
    }

    /// Hands the job over, and hears what its process answers.
    async fn bear(&self, id: &str, directory: &ServedDirectory, lock: &File, request: Bytes) -> Result<Newborn, Refused> {
        let mut newborn =
            self.deliver(id, directory, lock, request).await.map_err(|error| machine("start a process for the job", &error))?;
        match answer(&mut newborn).await.map_err(|error| machine("start the job: its process has died", &error))? {
            FromJob::Refused(refused) => Err(refused),
            FromJob::Accepted { pid } => Ok(Newborn { pid, ..newborn }),
            _ => Ok(newborn),
        }
    }
}

/// From a request to a job that is over. The job's phase tells how far it is.
pub async fn live(
    nursery: Arc<Nursery>,
    registry: Arc<Registry>,
    job: Arc<Job>,
    asked: mpsc::UnboundedReceiver<Ask>,
    request: Bytes,
    alive: Alive,
) {
    match be_born(&nursery, &job, request).await {
        Ok(newborn) => {
            job.pid.store(newborn.pid, Ordering::Relaxed);
            link::listen(&nursery, &registry, job, newborn.link, newborn.frames, asked, alive).await;
        }
        Err(refused) => {
            registry.forget(&job);
            job.set_phase(Phase::Refused(refused));
        }
    }
}

/// The process has answered that the job will run. Of one that is refused nothing is left.
async fn be_born(nursery: &Nursery, job: &Job, request: Bytes) -> Result<Newborn, Refused> {
    let (directory, lock) = make_directory(nursery, &job.id).map_err(|error| machine("make the directory of the job", &error))?;
    let mut born = nursery.bear(&job.id, &directory, &lock, request.clone()).await;
    // Nothing of the job has begun: its process comes from another zygote.
    if born.is_err() && nursery.has_lost_its_zygote() {
        born = nursery.bear(&job.id, &directory, &lock, request).await;
    }
    if born.is_err() {
        directory.remove();
    }
    born
}

fn machine(what: &str, error: &io::Error) -> Refused {
    Refused { reason: "MACHINE".into(), message: format!("could not {what}: {}", system_error::text(error)), is_ours: true }
}

/// The directory and its lock. One that was never accepted makes room.
fn make_directory(nursery: &Nursery, id: &str) -> io::Result<(ServedDirectory, File)> {
    for _ in 0..2 {
        if let Some(made) = nursery.spares.directory(&nursery.directory, id)? {
            return Ok(made);
        }
        let mut there = ServedDirectory::of(&nursery.directory, id);
        if there.abandoned()?.is_none() || crate::job_process::journal::read(&there.inner()).is_ok_and(|reading| reading.accepted) {
            break;
        }
        there.put_aside()?;
        there.remove();
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

async fn answer(newborn: &mut Newborn) -> io::Result<FromJob> {
    loop {
        let frame = newborn.frames.next_from_job().map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
        if let Some(frame @ (FromJob::Accepted { .. } | FromJob::Refused(_))) = frame {
            return Ok(frame);
        }
        if newborn.link.read_buf(&mut newborn.frames.bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Why an id cannot name a directory, if so.
/// # Errors
/// What the caller is told.
pub fn check_id(id: &str) -> Result<(), Status> {
    let fault = step_client::wire::request::unsafe_name(id);
    let longest = 255 - ServedDirectory::of(std::path::Path::new(""), "").path().as_os_str().len();
    match fault {
        Some(fault) => Err(refusal::unsafe_id(id, fault)),
        None if id.len() > longest => Err(refusal::unsafe_id(&id[..id.floor_char_boundary(40)], "it is too long")),
        None => Ok(()),
    }
}
