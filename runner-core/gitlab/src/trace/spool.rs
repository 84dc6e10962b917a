//! A trace on disk: what the server has not acknowledged survives the process that wrote it.
//!
//! `trace` holds the bytes as they are sent. `trace.mark` says up to where they are right, and from which byte of the agent's log they go on: two
//! slots, written in turn, so that one is whole whatever happens. A new process cuts the trace at its mark and asks the agent for what follows;
//! since the same log makes the same trace, what the server has already stays the beginning of it.

mod mark;

use super::framed::{Framed, Headers};
use super::limit::Limit;
use super::sanitise::{Prefixes, Sanitiser};
use super::stamp::{Stamper, Stamps, Stream};
use crate::request::TraceDigest;
use bytes::Bytes;
use mark::{Mark, Marks};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use step_model::masking::Secrets;
use step_model::time::Timestamp;

/// How a trace is made.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// In bytes.
    pub limit: u64,
    pub headers: Headers,
    pub prefixes: Prefixes,
    /// Masked in what the runner itself says. The agent masks its own log.
    pub secrets: Secrets,
}

/// The trace of one job.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    file: File,
    marks: Marks,
    settings: TraceSettings,
    framed: Framed,
    limit: Limit,
    checksum: crc32fast::Hasher,
    /// What stands in the file.
    length: u64,
    /// Bytes of the agent's log of which everything stands in the file.
    agent: u64,
    out: Vec<u8>,
}

impl Trace {
    /// Begins in a directory of the job, or goes on with what stands there.
    /// # Errors
    /// The disk is full or broken.
    pub fn open(directory: &Path, settings: TraceSettings) -> io::Result<Self> {
        let path = directory.join("trace");
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let marks = Marks::open(&directory.join("trace.mark"), &options)?;
        let mark = marks.newest(file.metadata()?.len()).unwrap_or_default();
        file.set_len(mark.length)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self {
            framed: Framed::new(settings.headers, settings.prefixes.clone(), mark.state),
            limit: Limit::resume(settings.limit, mark.length, mark.is_limited),
            checksum: crc32fast::Hasher::new_with_initial_len(mark.crc, mark.length),
            length: mark.length,
            agent: mark.agent,
            path,
            file,
            marks,
            settings,
            out: Vec::new(),
        })
    }

    /// The first byte of the agent's log that is missing here.
    pub fn agent_offset(&self) -> u64 {
        self.agent + self.framed.held() as u64
    }

    /// What it has so far.
    pub fn digest(&self) -> TraceDigest {
        TraceDigest { bytes: self.length, crc: self.checksum.clone().finalize() }
    }

    /// Takes the next bytes of the agent's log.
    /// # Errors
    /// The disk is full or broken. Nothing more can be taken then: open the trace again, it goes on at its mark.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.framed.held() as u64;
        let mut out = std::mem::take(&mut self.out);
        self.framed.push(bytes, &mut out);
        self.agent = self.agent + before + bytes.len() as u64 - self.framed.held() as u64;
        self.keep(out)
    }

    /// Says something of the runner's own: whole lines, between those of the agent.
    /// # Errors
    /// The disk is full or broken.
    pub fn say(&mut self, text: &str, now: Timestamp) -> io::Result<()> {
        let masked = self.settings.secrets.mask(text);
        let (mut sanitised, mut scratch) = (Vec::new(), Vec::new());
        Sanitiser::default().push(masked.as_bytes(), &self.settings.prefixes, &mut scratch, &mut sanitised);
        let mut out = std::mem::take(&mut self.out);
        self.framed.interrupt(&mut out);
        match self.settings.headers {
            Headers::Full => {
                let mut stamper = Stamper::new(Stream::RUNNER, Stamps::Full);
                stamper.push(&sanitised, now, &mut out);
                stamper.finish(&mut out);
            }
            Headers::None => {
                out.append(&mut sanitised);
                if !out.ends_with(b"\n") {
                    out.push(b'\n');
                }
            }
        }
        self.keep(out)
    }

    /// The log of the agent has ended: writes what is held, and makes everything durable.
    /// # Errors
    /// The disk is full or broken.
    pub fn finish(&mut self) -> io::Result<()> {
        self.agent = self.agent_offset();
        let mut out = std::mem::take(&mut self.out);
        self.framed.finish(&mut out);
        self.keep(out)?;
        self.file.sync_data()
    }

    /// Reads what was written, from elsewhere.
    /// # Errors
    /// The file is gone.
    pub fn reader(&self) -> io::Result<TraceReader> {
        TraceReader::open(&self.path)
    }

    fn keep(&mut self, mut out: Vec<u8>) -> io::Result<()> {
        // All that comes here is text: the pieces were made of whole characters.
        let text = String::from_utf8_lossy(&out);
        let (kept, message) = self.limit.cut(&text);
        for part in [kept, message.as_deref().unwrap_or_default()] {
            self.file.write_all(part.as_bytes())?;
            self.checksum.update(part.as_bytes());
            self.length += part.len() as u64;
        }
        let mark = Mark {
            agent: self.agent,
            length: self.length,
            crc: self.checksum.clone().finalize(),
            is_limited: self.limit.is_reached(),
            state: self.framed.state().clone(),
        };
        drop(text);
        out.clear();
        self.out = out;
        self.marks.write(&mark)
    }
}

/// Reads pieces of a trace while it grows.
#[derive(Debug)]
pub struct TraceReader {
    file: File,
}

/// Why a piece of a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NotRead {
    #[error("the trace has {written} bytes, there is nothing at {offset}")]
    InvalidOffset { offset: u64, written: u64 },
    #[error("could not read the trace")]
    Io(#[from] io::Error),
}

impl TraceReader {
    /// # Errors
    /// There is no such file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)? })
    }

    /// At most `length` bytes from `offset` on.
    /// # Errors
    /// The offset lies behind the end, or the disk is broken.
    pub fn read(&mut self, offset: u64, length: u64) -> Result<Bytes, NotRead> {
        let written = self.file.metadata()?.len();
        if offset > written {
            return Err(NotRead::InvalidOffset { offset, written });
        }
        let length = length.min(written - offset);
        let mut piece = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        self.file.seek(SeekFrom::Start(offset))?;
        Read::by_ref(&mut self.file).take(length).read_to_end(&mut piece)?;
        Ok(Bytes::from(piece))
    }
}

#[cfg(test)]
mod tests;
