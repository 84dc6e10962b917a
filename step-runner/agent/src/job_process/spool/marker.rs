//! The last line of a log that ends before its job does: why it ends.

use super::Framing;
use super::framing::{HEADER, header};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use step_model::time::Timestamp;

/// Every marker's.
const BEGINNING: &str = "step-runner: the log ends here:";

/// Why a log ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    Limit {
        bytes: u64,
    },
    /// In the system's words.
    Disk {
        why: String,
    },
    /// The process that ran the job died.
    Died,
}

impl Marker {
    fn text(&self) -> String {
        match self {
            Self::Limit { bytes } => format!("it has reached its limit of {}; the job goes on", Size(*bytes)),
            Self::Disk { why } => format!("it could not be written ({why}); the job goes on"),
            Self::Died => "the process that ran the job died; bytes that were still in a pipe are lost".to_owned(),
        }
    }

    /// The line of a log whose last byte this is. It begins at the beginning of a line.
    pub(super) fn line(&self, framing: Framing, last_byte: Option<u8>, now: Timestamp) -> Vec<u8> {
        let mut line = Vec::new();
        if last_byte.is_some_and(|byte| byte != b'\n') {
            line.push(b'\n');
        }
        if framing == Framing::Stamped {
            line.extend_from_slice(&header(now, b'E'));
        }
        line.extend_from_slice(self.row().as_bytes());
        line.push(b'\n');
        line
    }

    fn row(&self) -> String {
        format!("{BEGINNING} {}", self.text())
    }
}

/// Ends a log that nobody writes any more: a torn line is ended, and the marker appended, unless it is there already,
/// or another one. Whoever is killed
/// in here is followed by somebody who completes it. Returns whether the log was cut
/// before.
/// # Errors
/// The file cannot be read or written.
pub fn mark(log: &mut File, framing: Framing, marker: &Marker, now: Timestamp) -> io::Result<bool> {
    let length = log.seek(SeekFrom::End(0))?;
    log.seek(SeekFrom::Start(length.saturating_sub(1024)))?;
    let mut end = Vec::new();
    log.read_to_end(&mut end)?;
    let is_cut = is_cut(&end, marker);
    if !is_cut {
        log.write_all(&what_is_missing(&end, marker, framing, now))?;
    }
    Ok(is_cut)
}

/// Whether the last line is another marker: there is only one.
fn is_cut(end: &[u8], marker: &Marker) -> bool {
    let last = end.strip_suffix(b"\n").map(|whole| &whole[memchr::memrchr(b'\n', whole).map_or(0, |before| before + 1)..]);
    let row = last.and_then(|last| memchr::memmem::find(last, BEGINNING.as_bytes()).map(|at| &last[at..]));
    row.is_some_and(|row| row != marker.row().as_bytes())
}

/// What makes a log that ends so one that ends with the marker.
fn what_is_missing(end: &[u8], marker: &Marker, framing: Framing, now: Timestamp) -> Vec<u8> {
    let header = if framing == Framing::Stamped { HEADER } else { 0 };
    let text = marker.row();
    let is_whole = end.last() == Some(&b'\n');
    let last = end.strip_suffix(b"\n").unwrap_or(end);
    let last = &last[memchr::memrchr(b'\n', last).map_or(0, |before| before + 1)..];
    match last.get(header..) {
        Some(row) if is_whole && text.as_bytes() == row => Vec::new(),
        Some(row) if !is_whole && !row.is_empty() && text.as_bytes().starts_with(row) => [&text.as_bytes()[row.len()..], b"\n"].concat(),
        _ => marker.line(framing, end.last().copied(), now),
    }
}

/// As people say it, where it is a round number.
struct Size(u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.into_iter().find(|(unit, _)| self.0 >= *unit && self.0.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(log: &str, framing: Framing) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(log.as_bytes()).unwrap();
        for _ in 0..2 {
            mark(&mut file, framing, &Marker::Died, Timestamp::from_nanoseconds(0)).unwrap();
        }
        file.rewind().unwrap();
        io::read_to_string(file).unwrap()
    }

    #[test]
    fn a_torn_line_is_ended_and_the_marker_stands_once() {
        let died = "the log ends here: the process that ran the job died; bytes that were still in a pipe are lost\n";
        assert_eq!(marked("", Framing::Raw), format!("step-runner: {died}"));
        assert_eq!(marked("a\nb", Framing::Raw), format!("a\nb\nstep-runner: {died}"));
        assert_eq!(marked("a\n", Framing::Stamped), format!("a\n1970-01-01T00:00:00.000000Z 01E step-runner: {died}"));
    }

    #[test]
    fn a_marker_that_was_torn_anywhere_is_completed() {
        for framing in [Framing::Raw, Framing::Stamped] {
            let whole = marked("a\nb", framing);
            for length in 3..whole.len() {
                let torn = marked(&whole[..length], framing);
                assert_eq!(torn.matches("the process that ran the job died").count(), 1, "{torn}");
                assert!(torn.ends_with("a pipe are lost\n"), "{torn}");
            }
        }
    }

    #[test]
    fn sizes_are_read_by_people() {
        let text = |bytes| Size(bytes).to_string();
        assert_eq!([text(10 << 30), text(3 << 20), text(1 << 10), text(1025)], ["10 GiB", "3 MiB", "1 KiB", "1025 bytes"]);
    }
}
