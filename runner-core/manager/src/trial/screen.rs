//! What `try` shows: logs of the jobs on standard output, everything of ours on standard error.

use std::io::{self, Write as _};
use step_client::logs::{LogReader, Merged};

/// The log of one job, as a screen shows it: exact bytes of both streams. With several jobs each line begins with the job's name.
#[derive(Debug, Default)]
pub struct ShownLog {
    reader: LogReader,
    merged: Merged,
    /// Empty: the job is alone.
    prefix: String,
    /// The line of which no end has come, when there are prefixes.
    open: Vec<u8>,
}

impl ShownLog {
    /// `prefix`: what each line begins with. Empty: the bytes are shown as they come.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// What is to be shown now, after these bytes of the log.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (mut shown, merged) = (Vec::new(), &mut self.merged);
        self.reader.push(bytes, &mut |piece| merged.add(&piece, &mut shown));
        self.prefixed(shown)
    }

    /// The rest, when the log has ended.
    pub fn finish(&mut self) -> Vec<u8> {
        let (mut shown, merged) = (Vec::new(), &mut self.merged);
        self.reader.finish(&mut |piece| merged.add(&piece, &mut shown));
        let mut shown = self.prefixed(shown);
        if !self.open.is_empty() {
            shown.extend_from_slice(self.prefix.as_bytes());
            shown.append(&mut self.open);
            shown.push(b'\n');
        }
        shown
    }

    fn prefixed(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        if self.prefix.is_empty() {
            return bytes;
        }
        self.open.extend_from_slice(&bytes);
        let Some(end) = self.open.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.open.split_off(end + 1);
        let lines = std::mem::replace(&mut self.open, rest);
        let mut shown = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            shown.extend_from_slice(self.prefix.as_bytes());
            shown.extend_from_slice(line);
        }
        shown
    }
}

/// Writes to standard output at once.
/// # Errors
/// Nobody reads, or the disk is full.
pub fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// One line of ours.
pub fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_alone_is_shown_byte_by_byte() {
        let mut log = ShownLog::new("");
        assert_eq!(log.take(b"10%\r20%"), b"10%\r20%");
        assert_eq!(log.finish(), b"");
    }

    #[test]
    fn lines_of_several_jobs_say_whose_they_are() {
        let mut log = ShownLog::new("build | ");
        let mut shown =
            log.take(b"2026-11-20T17:53:54.410763Z 01O one\n2026-11-20T17:53:54.410763Z 01O two\n2026-11-20T17:53:54.410763Z 01E three");
        shown.extend(log.finish());
        assert_eq!(String::from_utf8_lossy(&shown), "build | one\nbuild | two\nbuild | three\n");
    }
}
