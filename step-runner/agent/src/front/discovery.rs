//! What a front finds when it starts: jobs that run, jobs that have ended, and what was never accepted.

use super::birth::Nursery;
use super::registry::{Job, News, Phase, Registry};
use super::{ending, link};
use crate::frame::Frames;
use crate::job_process::journal;
use crate::job_process::served::SOCKET;
use crate::served_directory::{self, ServedDirectory};
use crate::system::detached;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::watch;

/// A job process makes its socket when its front has left, if it is not about to end: looked for again after these pauses, as long as it lives.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);
/// How long a front waits at its start for what jobs that run have to tell. One that is stopped tells nothing.
const PATIENCE: Duration = Duration::from_millis(50);

/// Takes up every job of the directory. Called while no other front is there, and before anybody may call.
pub async fn take_up(nursery: &Arc<Nursery>, registry: &Arc<Registry>) {
    served_directory::sweep(&nursery.directory);
    let mut news = Vec::new();
    for (id, directory) in ServedDirectory::all(&nursery.directory) {
        match directory.abandoned() {
            Ok(None) => news.push(alive(nursery, registry, &id, directory)),
            Ok(Some(_lock)) => dead(nursery, registry, &id, directory),
            // Something of another program, or of a front that made no locks.
            Err(_) => {}
        }
    }
    let heard = async {
        for mut news in news {
            let _ = news.changed().await;
        }
    };
    let _ = tokio::time::timeout(PATIENCE, heard).await;
}

fn dead(nursery: &Arc<Nursery>, registry: &Arc<Registry>, id: &str, directory: ServedDirectory) {
    let reading = match journal::read(&directory.inner()) {
        Ok(reading) if reading.accepted => reading,
        // Never touched: it is newer than we are.
        Err(journal::ReadError::Newer(_)) => return,
        _ => return directory.remove(),
    };
    if reading.closed.is_none() {
        return interrupted(nursery, registry, id, directory);
    }
    let (summary, extent) = ending::ended(id, &directory, &reading);
    let job = add(registry, id, directory).0;
    job.news.send_modify(|news| {
        news.log = extent;
        news.phase = Phase::Ended(summary);
    });
    ending::keep(nursery, registry, job);
}

/// To put in order what is left takes a while, and nobody waits for it.
fn interrupted(nursery: &Arc<Nursery>, registry: &Arc<Registry>, id: &str, directory: ServedDirectory) {
    let length = std::fs::metadata(directory.log()).map_or(0, |found| found.len());
    let job = add(registry, id, directory).0;
    job.news.send_modify(|news| {
        news.log.bytes = length;
        news.phase = Phase::Accepted;
    });
    let (nursery, registry, alive) = (Arc::clone(nursery), Arc::clone(registry), registry.begin());
    tokio::spawn(async move {
        let summary = ending::interrupted(&job).await;
        job.set_phase(Phase::Ended(summary));
        drop(alive);
        ending::keep(&nursery, &registry, job);
    });
}

/// Returns what tells of the job: it changes once the job process has told how it stands.
fn alive(nursery: &Arc<Nursery>, registry: &Arc<Registry>, id: &str, directory: ServedDirectory) -> watch::Receiver<News> {
    let connected = connect_now(&directory);
    let length = std::fs::metadata(directory.log()).map_or(0, |found| found.len());
    let (job, asked) = add(registry, id, directory.clone());
    job.news.send_modify(|news| {
        news.log.bytes = length;
        news.phase = Phase::Accepted;
    });
    let news = job.news.subscribe();
    let (nursery, registry, alive) = (Arc::clone(nursery), Arc::clone(registry), registry.begin());
    tokio::spawn(async move {
        let connected = match connected {
            Ok(link) => Ok(link),
            Err(_) => connect(&directory).await,
        };
        match connected {
            Ok(stream) => {
                // Of whoever made the socket.
                let pid = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
                job.pid.store(pid.unwrap_or(0), Ordering::Relaxed);
                link::listen(&nursery, &registry, job, stream, Frames::default(), asked, alive).await;
            }
            Err(_) => {
                let summary = ending::interrupted(&job).await;
                job.set_phase(Phase::Ended(summary));
                drop(alive);
                ending::keep(&nursery, &registry, job);
            }
        }
    });
    news
}

/// # Errors
/// The job process has ended.
async fn connect(directory: &ServedDirectory) -> io::Result<UnixStream> {
    let mut pause = FIRST_PAUSE;
    while matches!(directory.abandoned(), Ok(None)) {
        if let Ok(link) = connect_now(directory) {
            return Ok(link);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
    Err(io::ErrorKind::NotConnected.into())
}

fn connect_now(directory: &ServedDirectory) -> io::Result<UnixStream> {
    detached::connect_in(&directory.inner(), SOCKET).and_then(UnixStream::from_std)
}

fn add(
    registry: &Registry,
    id: &str,
    directory: ServedDirectory,
) -> (Arc<Job>, tokio::sync::mpsc::UnboundedReceiver<crate::job_process::Ask>) {
    let owner_record = std::fs::read(directory.owner_record()).unwrap_or_default();
    let (job, asked) = Job::new(id, directory);
    job.set_owner_record(owner_record);
    registry.find_or_add(id, || Arc::clone(&job));
    (job, asked)
}
