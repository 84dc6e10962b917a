//! One task for each job that is not over: hears what the job process tells, and passes on what callers ask.

use super::birth::Nursery;
use super::ending;
use super::registry::{Alive, Job, Phase, Registry};
use crate::frame::{Frames, FromJob, ToJob};
use crate::job_process::Ask;
use crate::summary::Summary;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// Listens until the job is over, and sees to its end.
pub async fn listen(
    nursery: &Arc<Nursery>,
    registry: &Arc<Registry>,
    job: Arc<Job>,
    link: UnixStream,
    frames: Frames,
    asked: mpsc::UnboundedReceiver<Ask>,
    alive: Alive,
) {
    if job.phase() == Phase::Born {
        job.set_phase(Phase::Accepted);
    }
    let summary = hear(&job, link, frames, asked).await;
    let summary = match summary {
        Some(summary) => summary,
        None => ending::interrupted(&job).await,
    };
    job.pid.store(0, Ordering::Relaxed);
    job.set_phase(Phase::Ended(summary));
    drop(alive);
    ending::keep(nursery, registry, job);
}

/// `None`: the job process has left without a word about the end.
async fn hear(job: &Job, mut link: UnixStream, mut frames: Frames, mut asked: mpsc::UnboundedReceiver<Ask>) -> Option<Summary> {
    loop {
        while let Some(frame) = frames.next_from_job().ok()? {
            match frame {
                FromJob::Log(log) => job.news.send_modify(|news| news.log = log),
                FromJob::Running { start } => job.set_phase(Phase::Running { start }),
                FromJob::Ended(summary) => return Some(summary),
                FromJob::Accepted { .. } | FromJob::Refused(_) => {}
            }
        }
        tokio::select! {
            read = link.read_buf(&mut frames.bytes) => if !matches!(read, Ok(1..)) { return None },
            Some(ask) = asked.recv() => {
                // Nine bytes fit, or nobody is there to read them.
                let _ = link.write_all(&ToJob::Ask(ask).encode()).await;
            }
        }
    }
}
