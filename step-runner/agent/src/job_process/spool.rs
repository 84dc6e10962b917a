//! The log of a job as a file: what followers are sent is what stands there, masked and framed already, so an offset is an offset in it.
//!
//! ```text
//! pump (masks) --> Framer: lines get their headers --> Limit: the tail is cut --> LogFile: a full disk ends the log --> Extent, told to all
//! ```
//!
//! Three rules hold whatever happens: a byte that was told of never moves or goes; of what ends a log early there is one marker; and no step
//! is ever stopped by its log.

mod file;
mod framing;
mod limit;
mod marker;

pub use framing::Framing;
pub use marker::{Marker, mark};

use super::{Audience, Stream};
use crate::job_directory;
use crate::job_process::reserve::Reserve;
use crate::system_error;
use file::{Append, LogFile};
use framing::Framer;
use limit::Limit;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::SystemTime;
use step_engine::run::Headline;
use step_model::result::StepId;
use step_model::time::Timestamp;
use tokio::sync::watch;

/// The name of the file in a job's directory.
pub const FILE: &str = "logs";
/// A hundred times what GitLab takes of a job's log (100 MB at most on gitlab.com), and little beside a disk that runs jobs.
pub const DEFAULT_LIMIT: u64 = 10 << 30;

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolSettings {
    pub framing: Framing,
    /// Bytes of the file, headers included. The marker that says that it was reached comes after them.
    pub limit: u64,
}

impl Default for SpoolSettings {
    fn default() -> Self {
        Self { framing: Framing::Stamped, limit: DEFAULT_LIMIT }
    }
}

/// How long a log is: what followers may read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    pub bytes: u64,
    /// Bytes are missing at its end: it reached its limit, or the disk was full.
    pub is_cut: bool,
}

/// Writes the log of one job. An [`Audience`] that cannot fail.
#[derive(Debug)]
pub struct Spool<F = File> {
    framer: Framer,
    limit: Limit,
    /// `None`: the log has ended before the job.
    file: Option<LogFile<F>>,
    reserve: Reserve,
    extent: watch::Sender<Extent>,
    /// Framed bytes on their way, to be used again.
    framed: Vec<u8>,
}

impl Spool {
    /// Begins the log of the job whose directory this is (0600). It keeps room for a marker on a disk that becomes full; `inner` holds that room
    /// when the log is long.
    /// # Errors
    /// There is a log already, or none can be made.
    pub fn create(directory: &Path, inner: &Path, settings: SpoolSettings) -> io::Result<Self> {
        let file = job_directory::empty_file(&directory.join(FILE))?;
        let reserve = Reserve::of(&file, inner, "logs.reserve");
        Ok(Self::over(file, settings, reserve))
    }
}

impl<F: Append> Spool<F> {
    fn over(file: F, settings: SpoolSettings, reserve: Reserve) -> Self {
        Self {
            framer: Framer::new(settings.framing),
            limit: Limit::new(settings.framing, settings.limit),
            file: Some(LogFile::new(file)),
            reserve,
            extent: watch::Sender::default(),
            framed: Vec::new(),
        }
    }

    /// Tells how long the log is, after each write. Others may read that far, and no further.
    pub fn extent(&self) -> watch::Receiver<Extent> {
        self.extent.subscribe()
    }

    /// Writes what is held back of the last line. To be called when nothing more comes.
    pub fn finish(&mut self) {
        self.write(Framer::release);
    }

    fn write(&mut self, frame: impl FnOnce(&mut Framer, Timestamp, &mut Vec<u8>)) {
        if self.file.is_none() {
            return;
        }
        let mut framed = std::mem::take(&mut self.framed);
        frame(&mut self.framer, now(), &mut framed);
        let admitted = self.limit.admit(&framed);
        self.append(&framed[..admitted]);
        if admitted < framed.len() {
            self.end(&Marker::Limit { bytes: self.limit.bytes() });
        }
        framed.clear();
        self.framed = framed;
    }

    fn append(&mut self, bytes: &[u8]) {
        let Some(file) = self.file.as_mut().filter(|_| !bytes.is_empty()) else { return };
        let kept = self.reserve.keep_beyond(file.length() + bytes.len() as u64);
        match kept.and_then(|()| file.append(bytes, self.framer.framing())) {
            Ok(()) => self.tell(false),
            Err(error) => {
                self.reserve.release();
                self.end(&Marker::Disk { why: system_error::text(&error) });
            }
        }
    }

    /// Nothing follows the marker. A disk that has no room even for that gets none.
    fn end(&mut self, marker: &Marker) {
        if let Some(mut file) = self.file.take() {
            let line = marker.line(self.framer.framing(), file.last_byte(), now());
            let _ = file.append_whole(&line);
            self.extent.send_replace(Extent { bytes: file.length(), is_cut: true });
        }
    }

    fn tell(&self, is_cut: bool) {
        if let Some(file) = &self.file {
            self.extent.send_replace(Extent { bytes: file.length(), is_cut });
        }
    }
}

impl<F: Append + Send + 'static> Audience for Spool<F> {
    fn started(&mut self, _: StepId, _: &Headline) {}

    fn output(&mut self, _: StepId, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.write(|framer, now, out| framer.output(stream, bytes, now, out));
        Ok(())
    }

    fn said(&mut self, _: StepId, line: &str, warning: bool) {
        self.write(|framer, now, out| framer.line(line, warning, now, out));
    }

    fn ended(&mut self, _: StepId, _: &Headline, _: &[u8]) {}

    fn holds_back(&self) -> bool {
        self.framer.holds_back()
    }

    fn quiet(&mut self) {
        self.write(Framer::release);
    }
}

fn now() -> Timestamp {
    let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    Timestamp::from_nanoseconds(since)
}

#[cfg(test)]
mod tests;
