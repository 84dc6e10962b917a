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
//!
//! `Accepted`, `Begun`, then `Started` and `Ended` for each step, `Finished` with the outcome, and `Closed` when nothing of the job runs any
//! more and its log is complete. From all of it the result can be put together at any time ([`Reading::write_result`]).

mod content;
mod follower;
mod record;
mod tree;

pub use follower::{Follower, Standing};
pub use record::{Closed, Outcome};

use super::reserve::Reserve;
use crate::job_directory;
use content::{Content, Written};
use record::{Begun, News, Record};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use step_client::wire::result::Redaction;
use step_engine::run::{Headline, ResultView};
use step_model::masking::Secrets;
use step_model::result::{Failure, FailureKind, Status, StepId};
use tree::NodeRecord;

/// Its name in the directory of a job.
pub const FILE: &str = "journal";
const FORMAT: u32 = 1;
/// No record is larger; a length beyond this is no length.
const LARGEST: usize = 64 * 1024 * 1024;

/// Length and sum of a record's text.
type Head = [u8; 8];

/// The writing end.
#[derive(Debug)]
pub struct Journal {
    file: File,
    length: u64,
    /// A record on its way, to be used again.
    bytes: Vec<u8>,
    written: Written,
    /// Given back when the disk is full.
    reserve: Reserve,
}

impl Journal {
    /// Begins a journal in `directory`, where an empty file may be.
    /// # Errors
    /// It cannot be written, or there is one already.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let mut file = job_directory::empty_file(&directory.join(FILE))?;
        file.write_all(&FORMAT.to_le_bytes())?;
        Ok(Self::at_the_end_of(file, 4, Reserve::default()))
    }

    /// Goes on with the journal in `directory`, or begins one. What was torn at its end goes. It keeps room for its last records on a disk
    /// that becomes full.
    /// # Errors
    /// It cannot be read or written.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let mut file = match File::options().append(true).read(true).open(directory.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::create(directory),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut whole = bytes.get(4..).unwrap_or_default();
        while let Some((_, after)) = next_record(whole) {
            whole = after;
        }
        let length = (bytes.len() - whole.len()) as u64;
        if !whole.is_empty() {
            file.set_len(length)?;
        }
        let reserve = Reserve::of(&file, directory, "journal.reserve");
        let mut journal = Self::at_the_end_of(file, length, reserve);
        if bytes.len() < 4 {
            journal.file.set_len(0)?;
            journal.file.write_all(&FORMAT.to_le_bytes())?;
            journal.length = 4;
        }
        Ok(journal)
    }

    fn at_the_end_of(file: File, length: u64, reserve: Reserve) -> Self {
        Self { file, length, bytes: Vec::new(), written: Written::default(), reserve }
    }

    /// The job will run: comes first, before whoever asked for it is answered.
    /// # Errors
    /// As [`Journal::started`].
    pub fn accepted(&mut self) -> io::Result<()> {
        self.append(Record::Accepted {})
    }

    /// Every process of the job will have `marker` in its environment.
    /// # Errors
    /// As [`Journal::started`].
    pub fn begun(&mut self, marker: &str, stamped: bool) -> io::Result<()> {
        self.append(Record::Begun(Begun { marker: marker.to_owned(), stamped }))
    }

    /// A step of which no more is known than its headline.
    /// # Errors
    /// It cannot be written. What was written before can still be read, and later records may find room again.
    pub fn started(&mut self, step: StepId, headline: &Headline, secrets: &Secrets) -> io::Result<()> {
        self.append(Record::started(step, headline, Content::default(), secrets))
    }

    /// # Errors
    /// As [`Journal::started`].
    pub fn ended(&mut self, step: StepId, headline: &Headline, secrets: &Secrets) -> io::Result<()> {
        self.append(Record::ended(step, headline, Content::default(), secrets))
    }

    /// A step, with its node of the result.
    /// # Errors
    /// As [`Journal::started`].
    pub fn node_started(&mut self, result: ResultView<'_>, step: StepId, redaction: &Redaction) -> io::Result<()> {
        let content = self.written.start(result, step, redaction);
        self.append(Record::started(step, &result.headline(step), content, redaction.secrets()))
    }

    /// # Errors
    /// As [`Journal::started`].
    pub fn node_ended(&mut self, result: ResultView<'_>, step: StepId, redaction: &Redaction) -> io::Result<()> {
        let content = self.written.end(result, step, redaction);
        self.append(Record::ended(step, &result.headline(step), content, redaction.secrets()))
    }

    /// # Errors
    /// As [`Journal::started`].
    pub fn finished(&mut self, outcome: &Outcome, secrets: &Secrets) -> io::Result<()> {
        self.append(Record::finished(outcome, secrets))
    }

    /// The last record of a job.
    /// # Errors
    /// As [`Journal::started`].
    pub fn closed(&mut self, closed: Closed) -> io::Result<()> {
        self.append(Record::Closed(closed))
    }

    fn append(&mut self, mut record: Record) -> io::Result<()> {
        self.frame(&record)?;
        if self.bytes.len() - size_of::<Head>() > LARGEST && record.shorten() {
            self.frame(&record)?;
        }
        if self.bytes.len() - size_of::<Head>() > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.write().or_else(|_| {
            self.reserve.release();
            self.write()
        })
    }

    fn frame(&mut self, record: &Record) -> io::Result<()> {
        self.bytes.clear();
        self.bytes.resize(size_of::<Head>(), 0);
        serde_json::to_writer(&mut self.bytes, record)?;
        let text = &self.bytes[size_of::<Head>()..];
        let (length, sum) = (u32::try_from(text.len()).unwrap_or(u32::MAX), crc32fast::hash(text));
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[4..size_of::<Head>()].copy_from_slice(&sum.to_le_bytes());
        Ok(())
    }

    /// All of it or nothing: behind a part of a record no other would be found.
    fn write(&mut self) -> io::Result<()> {
        // On a disk that is full the room ahead is what it was kept for.
        let _ = self.reserve.keep_beyond(self.length + self.bytes.len() as u64);
        self.file.write_all(&self.bytes).inspect_err(|_| drop(self.file.set_len(self.length)))?;
        self.length += self.bytes.len() as u64;
        if self.bytes.capacity() > LARGE {
            self.bytes = Vec::new();
        }
        Ok(())
    }
}

/// Room for a record that is not worth keeping.
const LARGE: usize = 1 << 20;

/// What a journal tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The job was accepted. Not told of one that runs in the foreground.
    pub accepted: bool,
    /// What every process of the job has in its environment. `None`: none has begun.
    pub marker: Option<String>,
    /// The log has headers.
    pub stamped: bool,
    /// In the order in which they started. One that has no end is a failure of kind `Interrupted`, unless it still runs.
    pub steps: Vec<(StepId, Headline)>,
    /// The innermost step that has no end: the one that ran last. `None` when the job has come to its end.
    pub open: Option<StepId>,
    /// How the job ended. `None`: it runs, or its process died.
    pub outcome: Option<Outcome>,
    /// `None`: the job is not over, or its process died.
    pub closed: Option<Closed>,
    nodes: HashMap<StepId, NodeRecord>,
    places: HashMap<StepId, usize>,
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
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut open(directory)?, &mut bytes).map_err(ReadError::Unreadable)?;
    let (format, mut rest) = bytes.split_first_chunk::<4>().ok_or(ReadError::NoJournal)?;
    check_format(*format)?;
    let mut reading = Reading::default();
    while let Some((record, after)) = next_record(rest) {
        reading.take(record);
        rest = after;
    }
    let was_interrupted = reading.outcome.as_ref().is_some_and(Outcome::is_interrupted);
    if reading.outcome.is_none() || was_interrupted {
        reading.open = reading.steps.iter().rev().find(|(_, headline)| headline.status == Status::Running).map(|(step, _)| *step);
        if was_interrupted || !job_directory::is_alive(directory) {
            reading.interrupt();
        }
    }
    Ok(reading)
}

fn open(directory: &Path) -> Result<File, ReadError> {
    File::open(directory.join(FILE)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing(directory.display().to_string()),
        _ => ReadError::Unreadable(error),
    })
}

fn check_format(format: [u8; 4]) -> Result<(), ReadError> {
    match u32::from_le_bytes(format) {
        FORMAT => Ok(()),
        newer if (FORMAT..100).contains(&newer) => Err(ReadError::Newer(newer)),
        _ => Err(ReadError::NoJournal),
    }
}

/// The first record and what follows it. `None`: the end, or a torn record.
fn next_record(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<{ size_of::<Head>() }>()?;
    let (length, sum) = frame(head);
    let (text, rest) = rest.split_at_checked(length.filter(|length| *length <= LARGEST)?)?;
    if crc32fast::hash(text) != sum {
        return None;
    }
    Some((serde_json::from_slice(text).ok()?, rest))
}

/// Length and sum. `None`: no length of this machine.
fn frame(head: &Head) -> (Option<usize>, u32) {
    let [a, b, c, d, e, f, g, h] = *head;
    (usize::try_from(u32::from_le_bytes([a, b, c, d])).ok(), u32::from_le_bytes([e, f, g, h]))
}

impl Reading {
    fn take(&mut self, record: Record) {
        match record.into_news() {
            News::Accepted => self.accepted = true,
            News::Begun(begun) => (self.marker, self.stamped) = (Some(begun.marker), begun.stamped),
            News::Started(step, headline, content) | News::Ended(step, headline, content) => {
                let next = self.steps.len();
                match *self.places.entry(step).or_insert(next) {
                    place if place < next => self.steps[place].1 = *headline,
                    _ => self.steps.push((step, *headline)),
                }
                self.nodes.entry(step).or_default().take(content);
            }
            News::Outcome(outcome) => self.outcome = Some(outcome),
            News::Closed(closed) => self.closed = Some(closed),
            News::Unknown => {}
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
