//! The ends of jobs: one whose process has died, one that nobody asks for any more, one that is closed.

use super::birth::Nursery;
use super::registry::{Job, Phase, Registry};
use crate::job_process::Ask;
use crate::job_process::journal::{self, Reading};
use crate::job_process::remains::Remains;
use crate::job_process::spool::Extent;
use crate::served_directory::ServedDirectory;
use crate::summary::Summary;
use rustix::process::{Pid, Signal};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use step_model::result::FailureKind;

/// How long the process of a job that is closed may take to kill what runs. The original waits as long.
const PATIENCE: Duration = Duration::from_secs(2);
/// A log of as many bytes is removed in less than a tenth of a millisecond.
const SMALL_LOG: u64 = 1 << 20;
/// Between two looks whether a process that has let go of us is gone.
const LOOK: Duration = Duration::from_millis(1);

/// The process of the job has died: what is left of it is put in order, and told.
pub async fn interrupted(job: &Job) -> Summary {
    let directory = job.directory().clone();
    // The kernel closes what the process had open one by one: its lock may be the last.
    for _ in 0..1000 {
        if !matches!(directory.abandoned(), Ok(None)) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    let id = job.id.clone();
    let finished = tokio::task::spawn_blocking(move || finish(&id, &directory)).await;
    let (summary, extent) = finished.unwrap_or_default();
    job.news.send_modify(|news| news.log = Extent { bytes: news.log.bytes.max(extent.bytes), is_cut: extent.is_cut });
    summary
}

/// Puts in order what is left of a job whose process is gone. Blocks: processes are killed, and clean-up commands run. Returns how it ended, and
/// how long its log is.
pub fn finish(id: &str, directory: &ServedDirectory) -> (Summary, Extent) {
    let remains = Remains { inner: directory.inner(), log: Some(directory.log()) };
    match remains.finish() {
        Ok(reading) => ended(id, directory, &reading),
        // The disk does not take the last words: they are said all the same.
        Err(_) => {
            let reading = journal::read(&directory.inner()).unwrap_or_default();
            let reading = if reading.outcome.is_some() { reading } else { reading.interrupted() };
            ended(id, directory, &reading)
        }
    }
}

/// How a job has ended whose journal is complete, and how long its log is.
pub fn ended(id: &str, directory: &ServedDirectory, reading: &Reading) -> (Summary, Extent) {
    let start = reading.steps.first().and_then(|(_, root)| root.start);
    let bytes = || std::fs::metadata(directory.log()).map_or(0, |found| found.len());
    let extent = reading
        .closed
        .map_or_else(|| Extent { bytes: bytes(), is_cut: false }, |closed| Extent { bytes: closed.log_bytes, is_cut: closed.log_is_cut });
    let summary = reading
        .outcome
        .as_ref()
        .map(|outcome| Summary::of(id, outcome.status, outcome.failure.as_ref(), outcome.exit_code, start, outcome.end));
    (summary.unwrap_or_default(), extent)
}

/// Collects the job when it was finished long enough.
pub fn keep(nursery: &Arc<Nursery>, registry: &Arc<Registry>, job: Arc<Job>) {
    let (nursery, registry, patience) = (Arc::clone(nursery), Arc::clone(registry), nursery.keep_finished);
    let Phase::Ended(summary) = job.phase() else { return };
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let since =
        summary.end.and_then(|end| u64::try_from(end).ok()).map_or(Duration::ZERO, |end| now.saturating_sub(Duration::from_nanos(end)));
    let job = Arc::downgrade(&job);
    tokio::spawn(async move {
        tokio::time::sleep(patience.saturating_sub(since)).await;
        if let Some(job) = job.upgrade() {
            close(&nursery, &registry, job).await;
        }
    });
}

/// Ends the job and forgets it: its id is unknown at once, and nothing of it runs when this returns.
pub async fn close(nursery: &Nursery, registry: &Registry, job: Arc<Job>) {
    if !registry.forget(&job) {
        return;
    }
    // Whoever asked for it is answered first.
    job.reached(|phase| *phase != Phase::Born).await;
    let is_aside = job.directory().put_aside();
    job.news.send_modify(|news| news.closed = true);
    if !job.phase().is_over() {
        let _ = job.asks.send(Ask::EndNow);
        if tokio::time::timeout(PATIENCE, job.reached(Phase::is_over)).await.is_err() {
            kill(&job);
            job.reached(Phase::is_over).await;
        }
    }
    let directory = job.directory().clone();
    if is_aside.is_ok() {
        // Another thread costs more than to empty or to remove a few small files.
        let is_small = job.news.borrow().log.bytes <= SMALL_LOG;
        // Whoever reads something of the job holds it.
        let is_free = Arc::strong_count(&job) == 1 && has_come_to_its_end(&job.phase());
        if !(is_small && (is_free && nursery.spares.keep(&directory) || directory.remove_usual())) {
            let _ = tokio::task::spawn_blocking(move || directory.remove()).await;
        }
    }
}

/// Its process has seen to it that nothing of the job runs any more.
fn has_come_to_its_end(phase: &Phase) -> bool {
    matches!(phase, Phase::Ended(summary) if summary.failure != FailureKind::Interrupted as u8)
}

/// A job process that does not answer.
fn kill(job: &Job) {
    let pid = i32::try_from(job.pid.load(Ordering::Relaxed)).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}
