//! What is left of a job whose process died, and how that is put in order.
//!
//! ```text
//! its processes are killed --> its clean-up commands run --> its log is ended, marked --> the journal gets the outcome, and is closed
//! ```
//!
//! Each step leaves the directory so that whoever is killed in here is followed by somebody who completes it: nothing is done twice that shows.

use super::cleanup;
use super::host::confinement;
use super::journal::{self, Closed, Journal, Outcome, ReadError, Reading};
use super::spool::{Framing, Marker, mark};
use crate::system;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use step_model::masking::Secrets;
use step_model::result::{Failure, FailureKind, Status, StepId};
use step_model::time::Timestamp;

/// Rounds of looking whether the killed are gone.
const LOOK: Duration = Duration::from_millis(2);
/// A process that a kill does not end within this time waits for a device; nobody can end it.
const UNKILLABLE: Duration = Duration::from_secs(10);

/// The places of a dead job. Whoever has made this holds the job's lock.
#[derive(Debug)]
pub struct Remains {
    /// Where journal and clean-up commands are.
    pub inner: PathBuf,
    /// `None`: the job wrote its log somewhere else.
    pub log: Option<PathBuf>,
}

/// Why a dead job is not put in order.
#[derive(Debug, thiserror::Error)]
pub enum Unfinished {
    #[error(transparent)]
    Journal(#[from] ReadError),
    #[error("what is left of the job cannot be put in order: {0}")]
    Disk(#[from] io::Error),
}

impl Remains {
    /// Puts in order what is left, and returns how the job ended. Blocks: processes are killed and clean-up commands run. Once it has
    /// returned, calling it again changes nothing.
    /// # Errors
    /// There is no journal of ours, or the disk does not take the last words.
    pub fn finish(&self) -> Result<Reading, Unfinished> {
        let reading = journal::read(&self.inner)?;
        if reading.closed.is_some() {
            return Ok(reading);
        }
        if let Some(marker) = &reading.marker {
            kill_marked(marker);
            confinement::remove_recorded(&self.inner, marker);
        }
        let output = File::options().append(true).open(self.inner.join("output")).ok();
        cleanup::run(&self.inner, output.as_ref(), cleanup::LIMIT)?;
        let framing = if reading.stamped { Framing::Stamped } else { Framing::Raw };
        let log_is_cut = self.end_log(framing)?;
        let mut journal = Journal::open(&self.inner)?;
        if reading.outcome.is_none() {
            journal.finished(&outcome(&reading), &Secrets::default())?;
        }
        let log_bytes = self.log.as_ref().and_then(|log| log.metadata().ok()).map_or(0, |found| found.len());
        journal.closed(Closed { log_bytes, log_is_cut })?;
        Ok(journal::read(&self.inner)?)
    }

    /// Whether bytes are missing at its end for another reason.
    fn end_log(&self, framing: Framing) -> io::Result<bool> {
        let Some(log) = &self.log else { return Ok(false) };
        match File::options().read(true).append(true).open(log) {
            Ok(mut log) => mark(&mut log, framing, &Marker::Died, now()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What is told of a job that nobody could end.
fn outcome(reading: &Reading) -> Outcome {
    let names = reading.running().into_iter().map(|name| format!("step {name:?}: ")).collect::<String>();
    let message = format!("{names}interrupted: the process that ran the job has died");
    Outcome {
        status: Status::Failure,
        failure: Some(Failure { kind: FailureKind::Interrupted, message }),
        failed_step: reading.open,
        exit_code: None,
        end: Some(now()),
    }
}

impl Reading {
    /// What is told of a job that nobody has ended.
    pub fn interrupted(mut self) -> Self {
        self.outcome = Some(outcome(&self));
        self
    }

    /// The names of the steps that run, or ran when the job's process died, from the outermost. The root has none.
    pub fn running(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut next = self.open;
        while let Some(headline) = next.and_then(|step| self.headline(step)) {
            if !headline.name.is_empty() {
                names.push(&*headline.name);
            }
            // Parents have smaller numbers: a journal that says otherwise must not lead in circles.
            next = headline.parent.filter(|parent| Some(*parent) < next);
        }
        names.reverse();
        names
    }

    fn headline(&self, step: StepId) -> Option<&step_engine::run::Headline> {
        self.steps.iter().rev().find(|(known, _)| *known == step).map(|(_, headline)| headline)
    }
}

/// Kills every process of ours that has this word in its environment.
pub fn kill_marked(marker: &str) {
    let deadline = Instant::now() + UNKILLABLE;
    loop {
        let left = system::marked(marker);
        if left.is_empty() || Instant::now() >= deadline {
            return;
        }
        left.iter().for_each(system::Leftover::kill);
        std::thread::sleep(LOOK);
    }
}

/// Ends what the job of a dead process in `directory` has left running, and writes down that it was interrupted.
/// # Errors
/// As [`Remains::finish`].
pub fn finish_foreground(directory: &Path) -> Result<(), Unfinished> {
    Remains { inner: directory.to_path_buf(), log: None }.finish().map(drop)
}

fn now() -> Timestamp {
    let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    Timestamp::from_nanoseconds(since)
}
