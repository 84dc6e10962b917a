//! How a log is framed. Pure: bytes and times in, bytes out.
//!
//! *Stamped* (original.md H.4, S 1.3): every line has a header of 32 bytes.
//!
//! ```text
//! 2026-11-20T17:53:54.410763Z 01O Running on vm...
//! '--- time, UTC, 27 bytes --' | |'-- ' ': a line begins; '+': it goes on, the newline before it was not written by the step
//!                     stream 01 '---- O standard output, E standard error
//! ```
//!
//! A line is cut where it has 8 KiB, after a carriage return (a progress bar), and where it stands still (a prompt). A carriage return that
//! ends a line together with its newline cuts nothing. A cut that is followed by the end of the line needs no second header: the next line
//! begins with a blank one, which says the same.
//!
//! *Raw*: bytes as they are. Only a line of ours begins at the beginning of a line.

use crate::job_process::Stream;
use step_model::time::Timestamp;

/// Of one line between header and newline.
const LONGEST: usize = 8192;
/// What stands before each stamped line.
pub const HEADER: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// As GitLab's step-runner of 2026 does: two pipes, a header per line.
    Stamped,
    /// As v0.12 of it does: one pipe, no headers.
    Raw,
}

/// Frames the log of one job.
#[derive(Debug)]
pub struct Framer {
    framing: Framing,
    output: Line,
    error: Line,
    /// Where the raw log stands.
    is_in_line: bool,
}

/// Where a stream stands.
#[derive(Debug, Default)]
struct Line {
    /// The beginning of a line, or of the rest of one, that was not written. At most [`LONGEST`] bytes.
    held: Vec<u8>,
    /// What was written last was not the end of a line.
    is_cut: bool,
}

impl Framer {
    pub fn new(framing: Framing) -> Self {
        Self { framing, output: Line::default(), error: Line::default(), is_in_line: false }
    }

    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// What a step wrote, in pieces of any size.
    pub fn output(&mut self, stream: Stream, bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        match self.framing {
            Framing::Raw => self.raw(bytes, out),
            Framing::Stamped if stream == Stream::Error => self.error.push(bytes, &header(now, b'E'), out),
            Framing::Stamped => self.output.push(bytes, &header(now, b'O'), out),
        }
    }

    /// A line of ours. It is never a part of a line that a step wrote.
    pub fn line(&mut self, text: &str, warning: bool, now: Timestamp, out: &mut Vec<u8>) {
        let prefix = if warning { "warning: " } else { "" };
        let line = [prefix, text, "\n"].concat();
        if self.framing == Framing::Raw {
            if self.is_in_line {
                out.push(b'\n');
            }
            return self.raw(line.as_bytes(), out);
        }
        self.release(now, out);
        let (stream, letter) = if warning { (&mut self.error, b'E') } else { (&mut self.output, b'O') };
        stream.is_cut = false;
        stream.push(line.as_bytes(), &header(now, letter), out);
    }

    /// Writes what is held back: it stood still, or nothing follows.
    pub fn release(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        self.output.release(&header(now, b'O'), out);
        self.error.release(&header(now, b'E'), out);
    }

    pub fn holds_back(&self) -> bool {
        !(self.output.held.is_empty() && self.error.held.is_empty())
    }

    fn raw(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(bytes);
        self.is_in_line = bytes.last().map_or(self.is_in_line, |last| *last != b'\n');
    }
}

impl Line {
    fn push(&mut self, mut rest: &[u8], header: &[u8; HEADER], out: &mut Vec<u8>) {
        if self.held.last() == Some(&b'\r') && !matches!(rest.first(), None | Some(b'\n' | b'\r')) {
            self.release(header, out);
        }
        while !rest.is_empty() {
            let room = LONGEST.saturating_sub(self.held.len());
            let window = &rest[..rest.len().min(room + 1)];
            let (body, after) = match memchr::memchr2(b'\n', b'\r', window) {
                Some(end) if rest[end] == b'\n' => (&rest[..end], Cut::Newline),
                Some(end) => after_returns(rest, end, room),
                None if window.len() <= room => (rest, Cut::None),
                None => (&rest[..boundary(rest, room)], Cut::Overflow),
            };
            let taken = body.len() + usize::from(after == Cut::Newline);
            match after {
                Cut::None => self.held.extend_from_slice(body),
                Cut::Newline => self.end(body, header, out),
                Cut::Return | Cut::Overflow => self.write(body, true, header, out),
            }
            rest = &rest[taken..];
        }
    }

    /// The line has ended. Where all of it was written and its end was left open, there is nothing to write.
    fn end(&mut self, body: &[u8], header: &[u8; HEADER], out: &mut Vec<u8>) {
        if self.is_cut && self.held.is_empty() && body.is_empty() {
            self.is_cut = false;
            return;
        }
        self.write(body, false, header, out);
    }

    fn release(&mut self, header: &[u8; HEADER], out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            self.write(&[], true, header, out);
        }
    }

    fn write(&mut self, body: &[u8], is_cut: bool, header: &[u8; HEADER], out: &mut Vec<u8>) {
        out.extend_from_slice(header);
        if self.is_cut
            && let Some(mark) = out.last_mut()
        {
            *mark = b'+';
        }
        out.append(&mut self.held);
        out.extend_from_slice(body);
        out.push(b'\n');
        self.is_cut = is_cut;
    }
}

/// Why a piece of a line ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Nothing more is there.
    None,
    Newline,
    Return,
    Overflow,
}

/// What belongs to the carriage return at `first`, and how it is followed.
fn after_returns(rest: &[u8], first: usize, room: usize) -> (&[u8], Cut) {
    let returns = rest[first..].iter().take_while(|byte| **byte == b'\r').count();
    let end = first + returns;
    match rest.get(end) {
        _ if end > room => (&rest[..room], Cut::Overflow),
        None => (&rest[..end], Cut::None),
        Some(b'\n') => (&rest[..end], Cut::Newline),
        Some(_) => (&rest[..end], Cut::Return),
    }
}

/// The last end of a character up to `room`, so that a line that is cut can be read by itself.
fn boundary(rest: &[u8], room: usize) -> usize {
    let is_boundary = |at: &usize| rest.get(*at).is_none_or(|byte| !(0x80..0xc0).contains(byte));
    (room.saturating_sub(3)..=room).rev().find(is_boundary).unwrap_or(room)
}

/// The header of a line that begins.
pub fn header(now: Timestamp, letter: u8) -> [u8; HEADER] {
    const SECOND: i64 = 1_000_000_000;
    const DAY: i64 = 86_400;
    let seconds = now.nanoseconds().div_euclid(SECOND);
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    let mut header = *b"0000-00-00T00:00:00.000000Z 01O ";
    put(&mut header[0..4], year);
    put(&mut header[5..7], month);
    put(&mut header[8..10], day);
    put(&mut header[11..13], of_day / 3600);
    put(&mut header[14..16], of_day / 60 % 60);
    put(&mut header[17..19], of_day % 60);
    put(&mut header[20..26], now.nanoseconds().rem_euclid(SECOND) / 1000);
    header[30] = letter;
    header
}

fn put(place: &mut [u8], mut number: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number.rem_euclid(10)).unwrap_or(0);
        number /= 10;
    }
}

/// Year, month and day of a day since 1970: eras of 400 years, which begin in March.
fn date(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_of_year = (5 * of_year + 2) / 153;
    let month = if month_of_year < 10 { month_of_year + 3 } else { month_of_year - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, of_year - (153 * month_of_year + 2) / 5 + 1)
}

#[cfg(test)]
mod tests;
