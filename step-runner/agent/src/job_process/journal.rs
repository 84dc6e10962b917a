//! What a job did, written down as it happens, so that it can be told after the job process was killed.
//!
//! The file `journal` in the job's directory:
//!
//! ```text
//! format number   4 bytes, little-endian: 1
//! then records    length of the text   4 bytes, little-endian
//!                 CRC-32 of the text   4 bytes, little-endian
//!                 text                 JSON, one of `Record`
//! ```
//!
//! A record is appended by one write. `Started` is written before its process is spawned, so a step without an end is the one that ran
//! when the job process died. Reading stops at the first record that is not whole. Additions to records are optional members; anything
//! else needs the next format number, and a reader refuses numbers that it does not know. Nothing secret is written: texts are masked,
//! marked values replaced. Nothing is synced: the journal survives the process, not the machine.

mod record;

use crate::job_directory;
use record::Record;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use step_engine::run::Headline;
use step_model::masking::Secrets;
use step_model::result::{Failure, FailureKind, Status, StepId};

const FILE: &str = "journal";
const FORMAT: u32 = 1;
/// No record is larger; a length beyond this is no length.
const LARGEST: usize = 64 * 1024 * 1024;

/// The writing end.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// A record on its way, to be used again.
    bytes: Vec<u8>,
}

impl Journal {
    /// Begins a journal in `directory`.
    /// # Errors
    /// It cannot be written, or there is one already.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(directory.join(FILE))?;
        file.write_all(&FORMAT.to_le_bytes())?;
        Ok(Self { file, bytes: Vec::new() })
    }

    /// Goes on with the journal in `directory`, or begins one.
    /// # Errors
    /// It cannot be written.
    pub fn open(directory: &Path) -> io::Result<Self> {
        match File::options().append(true).open(directory.join(FILE)) {
            Ok(file) => Ok(Self { file, bytes: Vec::new() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(directory),
            Err(error) => Err(error),
        }
    }

    /// The job will run: comes first, before whoever asked for it is answered.
    /// # Errors
    /// As [`Journal::started`].
    pub fn accepted(&mut self) -> io::Result<()> {
        self.append(&Record::Accepted {})
    }

    /// # Errors
    /// It cannot be written; then nothing more may be, since what follows would not be read.
    pub fn started(&mut self, step: StepId, headline: &Headline, secrets: &Secrets) -> io::Result<()> {
        self.append(&Record::started(step, headline, secrets))
    }

    /// # Errors
    /// As [`Journal::started`].
    pub fn ended(&mut self, step: StepId, headline: &Headline, secrets: &Secrets) -> io::Result<()> {
        self.append(&Record::ended(step, headline, secrets))
    }

    /// # Errors
    /// As [`Journal::started`].
    pub fn finished(&mut self, status: Status, failure: Option<&Failure>, secrets: &Secrets) -> io::Result<()> {
        self.append(&Record::finished(status, failure, secrets))
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        let head = size_of::<u32>() * 2;
        self.bytes.clear();
        self.bytes.resize(head, 0);
        serde_json::to_writer(&mut self.bytes, record)?;
        let text = &self.bytes[head..];
        let length = u32::try_from(text.len()).ok().filter(|_| text.len() <= LARGEST).ok_or(io::ErrorKind::FileTooLarge)?;
        let sum = crc32fast::hash(text);
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[4..head].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all(&self.bytes)
    }
}

/// What a journal tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The job was accepted. Not told of one that runs in the foreground.
    pub accepted: bool,
    /// In the order in which they started. One that has no end is a failure of kind `Interrupted`, unless it still runs.
    pub steps: Vec<(StepId, Headline)>,
    /// The innermost step that has no end: the one that ran last. `None` when the job has come to its end.
    pub open: Option<StepId>,
    /// How the job ended. `None`: it runs, or its process died.
    pub outcome: Option<(Status, Option<Failure>)>,
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is no journal in `{0}`")]
    Missing(String),
    #[error("the journal cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    #[error("the file is no journal: it does not begin with a format number")]
    NoJournal,
    #[error("the journal has format {0}, this program reads format {FORMAT}")]
    Newer(u32),
}

/// Reads the journal of the job whose directory this is. Whether its process still runs is told by the directory's lock.
/// # Errors
/// There is none that can be read. A journal that ends in the middle of a record is read up to there.
pub fn read(directory: &Path) -> Result<Reading, ReadError> {
    let bytes = std::fs::read(directory.join(FILE)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing(directory.display().to_string()),
        _ => ReadError::Unreadable(error),
    })?;
    let (format, mut rest) = bytes.split_first_chunk::<4>().ok_or(ReadError::NoJournal)?;
    match u32::from_le_bytes(*format) {
        FORMAT => {}
        newer if (FORMAT..100).contains(&newer) => return Err(ReadError::Newer(newer)),
        _ => return Err(ReadError::NoJournal),
    }
    let mut reading = Reading::default();
    while let Some((record, after)) = next_record(rest) {
        reading.take(record);
        rest = after;
    }
    if reading.outcome.is_none() {
        reading.open = reading.steps.iter().rev().find(|(_, headline)| headline.status == Status::Running).map(|(step, _)| *step);
        if !job_directory::is_alive(directory) {
            reading.interrupt();
        }
    }
    Ok(reading)
}

/// The first record and what follows it. `None`: the end, or a torn record.
fn next_record(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length <= LARGEST)?;
    let (text, rest) = rest.split_at_checked(length)?;
    if crc32fast::hash(text) != u32::from_le_bytes(*sum) {
        return None;
    }
    Some((serde_json::from_slice(text).ok()?, rest))
}

impl Reading {
    fn take(&mut self, record: Record) {
        match record.into_news() {
            record::News::Step(step, headline) => match self.steps.iter_mut().find(|(known, _)| *known == step) {
                Some((_, known)) => *known = *headline,
                None => self.steps.push((step, *headline)),
            },
            record::News::Accepted => self.accepted = true,
            record::News::Outcome(status, failure) => self.outcome = Some((status, failure)),
        }
    }

    /// The job process died: whatever had no end never got one.
    fn interrupt(&mut self) {
        for (_, headline) in self.steps.iter_mut().filter(|(_, headline)| headline.status == Status::Running) {
            headline.status = Status::Failure;
            let message = "interrupted: the process that ran the job has died".to_owned();
            headline.failure = Some(Failure { kind: FailureKind::Interrupted, message });
        }
    }
}

#[cfg(test)]
mod tests;
