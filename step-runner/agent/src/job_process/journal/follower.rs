//! A journal that is read while it grows: only what is new, and only what is asked of a job that runs.

use super::record::{Closed, News, Outcome, Record};
use super::{Head, LARGEST, ReadError, check_format, frame};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use step_model::result::StepId;
use step_model::time::Timestamp;

/// Where somebody is in a journal, and how the job stands there. Costs what is new; its memory does not grow with the number of steps.
#[derive(Debug)]
pub struct Follower {
    file: File,
    offset: u64,
    standing: Standing,
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    pub accepted: bool,
    /// What every process of the job has in its environment. `None`: none has begun.
    pub marker: Option<String>,
    /// When the first step started.
    pub start: Option<Timestamp>,
    /// Steps that have begun and not ended, from the outermost, with their names. The root has none.
    pub open: Vec<(StepId, Arc<str>)>,
    /// How many steps have begun.
    pub steps: u64,
    pub outcome: Option<Outcome>,
    /// `None`: the job is not over, or its process died.
    pub closed: Option<Closed>,
}

impl Follower {
    /// # Errors
    /// There is no journal, or it is newer than this program.
    pub fn open(directory: &Path) -> Result<Self, ReadError> {
        let mut file = super::open(directory)?;
        let mut format = [0; 4];
        file.read_exact(&mut format).map_err(|_| ReadError::NoJournal)?;
        check_format(format)?;
        Ok(Self { file, offset: 4, standing: Standing::default() })
    }

    /// Reads what is new. Returns whether anything was.
    /// # Errors
    /// The file cannot be read.
    pub fn advance(&mut self) -> io::Result<bool> {
        let before = self.offset;
        while let Some(record) = self.next()? {
            self.standing.take(record.into_news());
        }
        Ok(self.offset > before)
    }

    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The next record. `None`: the end, or one that is not whole.
    fn next(&mut self) -> io::Result<Option<Record>> {
        let mut head = Head::default();
        self.file.seek(SeekFrom::Start(self.offset))?;
        if !read_whole(&mut self.file, &mut head)? {
            return Ok(None);
        }
        let (Some(length), sum) = frame(&head) else { return Ok(None) };
        if length > LARGEST {
            return Ok(None);
        }
        let mut text = Vec::new();
        (&self.file).take(length as u64).read_to_end(&mut text)?;
        if text.len() < length || crc32fast::hash(&text) != sum {
            return Ok(None);
        }
        let record = serde_json::from_slice(&text).ok();
        self.offset += record.as_ref().map_or(0, |_| (head.len() + length) as u64);
        Ok(record)
    }
}

fn read_whole(file: &mut File, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

impl Standing {
    /// The names of the steps that run now, from the outermost.
    pub fn running(&self) -> Vec<String> {
        self.open.iter().filter(|(_, name)| !name.is_empty()).map(|(_, name)| name.to_string()).collect()
    }

    fn take(&mut self, news: News) {
        match news {
            News::Accepted => self.accepted = true,
            News::Begun(begun) => self.marker = Some(begun.marker),
            News::Started(step, headline, _) => {
                if self.start.is_none() {
                    self.start = headline.start;
                }
                self.steps += 1;
                self.open.push((step, headline.name));
            }
            News::Ended(step, ..) => self.open.retain(|(open, _)| *open != step),
            News::Outcome(outcome) => self.outcome = Some(outcome),
            News::Closed(closed) => self.closed = Some(closed),
            News::Unknown => {}
        }
    }
}
