//! How a job comes to its process: a directory, a spare process or a new one, and one message with the lock.

use super::Settings;
use super::registry::{Alive, Job, Phase, Registry};
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
use std::sync::{Arc, Mutex, PoisonError};
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
    /// A job process that has no job yet: most of its start is behind it.
    spare: Mutex<Option<(Child, std::os::unix::net::UnixStream)>>,
    /// Held by whoever starts the next spare.
    making: Mutex<()>,
}

/// A job process that has its job.
struct Newborn {
    child: Child,
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
            spare: Mutex::default(),
            making: Mutex::default(),
        }
    }

    /// Starts a job process for the next job, unless there is one. Takes as long as a spawn, in which jobs go on being born.
    pub fn prepare_spare(&self) {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.spare.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return;
        }
        let fresh = match detached::start_own(&["job"], &self.environment) {
            Ok(fresh) => Some(fresh),
            // The next job tries by itself, and its caller is told. Whoever runs the front learns it before that.
            Err(error) => {
                eprintln!("step-runner: no process for the next job can be started: {}", system_error::text(&error));
                None
            }
        };
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    /// No spare process is left behind.
    pub fn dismiss_spare(&self) {
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn process(&self) -> io::Result<(Child, std::os::unix::net::UnixStream)> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut child, link)) = spare
            && matches!(child.try_wait(), Ok(None))
        {
            return Ok((child, link));
        }
        detached::start_own(&["job"], &self.environment)
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
        let (mut child, link) = self.process()?;
        if detached::send_with(&link, &birth, lock).is_err() {
            // The spare has died since it was looked at.
            let _ = child.kill();
            let _ = child.wait();
            let (fresh, link) = detached::start_own(&["job"], &self.environment)?;
            detached::send_with(&link, &birth, lock)?;
            return self.deliver_request(fresh, link, request).await;
        }
        self.deliver_request(child, link, request).await
    }

    async fn deliver_request(&self, child: Child, link: std::os::unix::net::UnixStream, request: Vec<u8>) -> io::Result<Newborn> {
        link.set_nonblocking(true)?;
        let mut link = UnixStream::from_std(link)?;
        // A process that refuses early may not read all of it; its answer says why.
        let _ = link.write_all(&request).await;
        Ok(Newborn { child, link, frames: Frames::default() })
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
    let born = be_born(&nursery, &job, request).await;
    // Not before the answer, and not on this thread: a caller waits for the one, all others for the other.
    let for_the_next = Arc::clone(&nursery);
    tokio::task::spawn_blocking(move || for_the_next.prepare_spare());
    match born {
        Ok(newborn) => {
            job.pid.store(newborn.child.id(), Ordering::Relaxed);
            link::listen(&nursery, &registry, job, newborn.link, newborn.frames, asked, Some(newborn.child), alive).await;
        }
        Err(refused) => {
            registry.forget(&job);
            job.set_phase(Phase::Refused(refused));
        }
    }
}

/// The process has answered that the job will run. Of one that is refused nothing is left.
async fn be_born(nursery: &Nursery, job: &Job, request: Bytes) -> Result<Newborn, Refused> {
    let machine = |what: &str, error: &io::Error| Refused {
        reason: "MACHINE".into(),
        message: format!("could not {what}: {}", system_error::text(error)),
        is_ours: true,
    };
    let (directory, lock) = make_directory(nursery, &job.id).map_err(|error| machine("make the directory of the job", &error))?;
    let born = async {
        let mut newborn =
            nursery.deliver(&job.id, &directory, &lock, request).await.map_err(|error| machine("start a process for the job", &error))?;
        match answer(&mut newborn).await.map_err(|error| machine("start the job: its process has died", &error))? {
            FromJob::Refused(refused) => {
                link::reap(newborn.child);
                Err(refused)
            }
            _ => Ok(newborn),
        }
    };
    let born = born.await;
    if born.is_err() {
        directory.remove();
    }
    born
}

/// The directory and its lock. One that was never accepted makes room.
fn make_directory(nursery: &Nursery, id: &str) -> io::Result<(ServedDirectory, File)> {
    for _ in 0..2 {
        if let Some(made) = ServedDirectory::create(&nursery.directory, id)? {
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
        if let Some(frame @ (FromJob::Accepted | FromJob::Refused(_))) = frame {
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
