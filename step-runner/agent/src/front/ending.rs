//! The ends of jobs: one whose process has died, one that nobody asks for any more, one that is closed.

use super::birth::Nursery;
use super::registry::{Job, Phase, Registry};
use crate::job_process::{Ask, journal};
use crate::served_directory::ServedDirectory;
use crate::summary::Summary;
use rustix::process::{Pid, Signal};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use step_model::result::{Failure, FailureKind, Status};
use step_model::time::Timestamp;

/// How long the process of a job that is closed may take to kill what runs. The original waits as long.
const PATIENCE: Duration = Duration::from_secs(2);
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
    let (summary, length) = finished.unwrap_or_default();
    job.news.send_modify(|news| news.log.bytes = news.log.bytes.max(length));
    summary
}

/// The end of a job whose process is gone, from its directory, and the length of its log.
pub fn finish(id: &str, directory: &ServedDirectory) -> (Summary, u64) {
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    let reading = journal::read(&directory.inner()).unwrap_or_default();
    let root = reading.steps.first().map(|(_, headline)| headline.clone());
    let start = root.as_ref().and_then(|root| root.start);
    let length = || std::fs::metadata(directory.log()).map_or(0, |found| found.len());
    if let Some((status, failure)) = &reading.outcome {
        let exit_code = reading.steps.iter().rev().find_map(|(_, step)| step.exit_code.filter(|code| *code != 0));
        let end = root.and_then(|root| root.end);
        return (Summary::of(id, *status, failure.as_ref(), exit_code, start, end), length());
    }
    let open = reading.open.and_then(|open| reading.steps.iter().find(|(step, _)| *step == open));
    let name = open.map_or("", |(_, headline)| &*headline.name);
    let message = format!("step {name:?}: interrupted: the process that ran the job has died");
    if let Ok(mut log) = std::fs::File::options().append(true).open(directory.log()) {
        let _ = log.write_all(format!("\n{message}; what was still in its pipes is lost\n").as_bytes());
    }
    let failure = Failure { kind: FailureKind::Interrupted, message };
    let summary = Summary::of(id, Status::Failure, Some(&failure), None, start, Some(Timestamp::from_nanoseconds(now)));
    (summary, length())
}

/// Collects the job when it was finished long enough.
pub fn keep(nursery: &Arc<Nursery>, registry: &Arc<Registry>, job: Arc<Job>) {
    let (registry, patience) = (Arc::clone(registry), nursery.keep_finished);
    let Phase::Ended(summary) = job.phase() else { return };
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let since =
        summary.end.and_then(|end| u64::try_from(end).ok()).map_or(Duration::ZERO, |end| now.saturating_sub(Duration::from_nanos(end)));
    let job = Arc::downgrade(&job);
    tokio::spawn(async move {
        tokio::time::sleep(patience.saturating_sub(since)).await;
        if let Some(job) = job.upgrade() {
            close(&registry, job).await;
        }
    });
}

/// Ends the job and forgets it: its id is unknown at once, and nothing of it runs when this returns.
pub async fn close(registry: &Registry, job: Arc<Job>) {
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
        let _ = tokio::task::spawn_blocking(move || directory.remove()).await;
    }
}

/// A job process that does not answer.
fn kill(job: &Job) {
    let pid = i32::try_from(job.pid.load(Ordering::Relaxed)).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}
