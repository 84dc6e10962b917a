//! Lines get the moment at which they began, and the stream that they are of. Source: GitLab's runner,
//! common/buildlogger/internal/timestamper.

use std::fmt::Write as _;
use step_model::time::Timestamp;

/// A line that is longer goes out in pieces.
const LONGEST_ENTRY: usize = 8 << 10;

/// Which stream of a job a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// 0: the runner itself; 1: the job's work; from 15 on: services.
    pub number: u8,
    pub is_error: bool,
}

impl Stream {
    /// What the runner itself says.
    pub const RUNNER: Self = Self { number: 0, is_error: false };
}

/// What stands before each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamps {
    /// Time and stream.
    Full,
    /// The stream alone.
    Stream,
}

/// Stamps one stream.
#[derive(Debug)]
pub struct Stamper {
    stream: Stream,
    stamps: Stamps,
    entry: Vec<u8>,
    /// When the first byte of the entry came.
    began: Timestamp,
    /// The entry belongs to the line of the one before.
    continues: bool,
}

impl Stamper {
    pub fn new(stream: Stream, stamps: Stamps) -> Self {
        Self { stream, stamps, entry: Vec::new(), began: Timestamp::default(), continues: false }
    }

    /// Appends the entries that are complete with these bytes.
    pub fn push(&mut self, mut bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end + 1);
            self.take(&line[..end], now, out);
            self.begin(now);
            self.emit(false, out);
            bytes = rest;
        }
        if !bytes.is_empty() {
            self.take(bytes, now, out);
            // A progress bar: shown as it is, and what follows belongs to it.
            if memchr::memchr(b'\r', bytes).is_some() && !self.entry.is_empty() {
                self.emit(true, out);
            }
        }
    }

    /// The stream has ended: what is left is a line.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.entry.is_empty() {
            self.emit(false, out);
        }
    }

    fn begin(&mut self, now: Timestamp) {
        if self.entry.is_empty() {
            self.began = now;
        }
    }

    fn take(&mut self, mut bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            self.begin(now);
            let room = LONGEST_ENTRY - self.entry.len();
            if bytes.len() < room {
                return self.entry.extend_from_slice(bytes);
            }
            let (fits, rest) = bytes.split_at(room);
            self.entry.extend_from_slice(fits);
            // A character stays whole; the original splits it.
            let kept = self.entry.len() - cut_off(&self.entry);
            let split = self.entry.split_off(kept);
            self.emit(true, out);
            self.begin(now);
            self.entry = split;
            bytes = rest;
        }
    }

    fn emit(&mut self, is_continued: bool, out: &mut Vec<u8>) {
        let mut head = String::with_capacity(32);
        if self.stamps == Stamps::Full {
            let time = jiff::Timestamp::from_nanosecond(i128::from(self.began.nanoseconds())).unwrap_or_default();
            // A text takes everything.
            let _ = write!(head, "{} ", time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"));
        }
        let _ = write!(
            head,
            "{:02x}{}{}",
            self.stream.number,
            if self.stream.is_error { 'E' } else { 'O' },
            if self.continues { '+' } else { ' ' }
        );
        out.extend_from_slice(head.as_bytes());
        out.append(&mut self.entry);
        out.push(b'\n');
        self.continues = is_continued;
    }
}

/// How many bytes at the end begin a character that is not complete.
pub(super) fn cut_off(bytes: &[u8]) -> usize {
    let begin = bytes.iter().rev().take(4).position(|byte| byte & 0xc0 != 0x80).map(|back| back + 1);
    begin
        .filter(|back| {
            let needed = match bytes[bytes.len() - back] {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            needed > *back
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2021-01-01T01:00:00.020010Z and some seconds.
    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_nanoseconds(1_609_462_800_020_010_000 + seconds * 1_000_000_000)
    }

    fn stamped(stamps: Stamps, writes: &[(&str, Timestamp)]) -> String {
        let mut stamper = Stamper::new(Stream { number: 255, is_error: true }, stamps);
        let mut out = Vec::new();
        writes.iter().for_each(|(text, now)| stamper.push(text.as_bytes(), *now, &mut out));
        stamper.finish(&mut out);
        stamper.finish(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn runner_132_a_line_has_time_stream_and_kind() {
        assert_eq!(stamped(Stamps::Full, &[("a line\n", at(0))]), "2021-01-01T01:00:00.020010Z ffE a line\n");
    }

    #[test]
    fn runner_133_writes_that_make_one_line_are_one_entry_of_the_first_moment() {
        let entry = stamped(Stamps::Full, &[("a ", at(0)), ("li", at(1)), ("ne\n", at(2))]);
        assert_eq!(entry, "2021-01-01T01:00:00.020010Z ffE a line\n");
    }

    #[test]
    fn runner_135_carriage_returns_before_a_newline_do_not_split() {
        assert_eq!(stamped(Stamps::Stream, &[("x\r\r\r\r\n", at(0))]), "ffE x\r\r\r\r\n");
        assert_eq!(stamped(Stamps::Stream, &[("10%\r20%\r", at(0)), ("30%\n", at(1))]), "ffE 10%\r20%\r\nffE+30%\n");
    }

    #[test]
    fn runner_136_three_lines_are_three_entries() {
        assert_eq!(stamped(Stamps::Stream, &[("a\nb\nc\n", at(0))]), "ffE a\nffE b\nffE c\n");
    }

    #[test]
    fn runner_138_a_line_without_end_goes_out_in_pieces() {
        let long = "a".repeat(LONGEST_ENTRY);
        let out = stamped(Stamps::Stream, &[(&long, at(0)), (&long, at(1)), ("b", at(2))]);
        assert_eq!(out, format!("ffE {long}\nffE+{long}\nffE+b\n"));
        let wide = "ü".repeat(LONGEST_ENTRY / 2);
        let out = stamped(Stamps::Stream, &[(&format!("x{wide}"), at(0))]);
        assert_eq!(out, format!("ffE x{}\nffE+ü\n", "ü".repeat(LONGEST_ENTRY / 2 - 1)));
    }

    #[test]
    fn runner_139_entries_of_one_second_differ_in_their_microseconds() {
        let later = Timestamp::from_nanoseconds(at(0).nanoseconds() + 5_000);
        let out = stamped(Stamps::Full, &[("a\n", at(0)), ("b\n", later)]);
        assert_eq!(out, "2021-01-01T01:00:00.020010Z ffE a\n2021-01-01T01:00:00.020015Z ffE b\n");
    }

    #[test]
    fn runner_141_without_times_the_stream_is_left() {
        assert_eq!(stamped(Stamps::Stream, &[("a\nb", at(0))]), "ffE a\nffE b\n");
    }

    #[test]
    fn an_empty_line_is_an_entry_and_nothing_is_none() {
        assert_eq!(stamped(Stamps::Stream, &[("\n\n", at(0))]), "ffE \nffE \n");
        assert_eq!(stamped(Stamps::Stream, &[("", at(0))]), "");
    }
}
