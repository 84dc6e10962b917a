//! What a plugin writes is read for ever, or it would stop; what of it becomes log is limited, or it would be a flood.

use super::LogSink;
use crate::records::{Level, Reader, Record};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A line that is longer comes in pieces, which are never taken for records: as in the Go library.
const LONGEST_LINE: usize = 64 << 10;

/// How much may be logged: so many records at once, and so many a second in the long run.
const BURST: u64 = 2_000;
const A_SECOND: u64 = 500;

/// Bytes become lines.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
    /// A part of the line that is pending was told already.
    cut: bool,
}

/// A line, or a piece of one that is too long.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub whole: bool,
}

impl Lines {
    pub fn take(&mut self, bytes: &[u8], mut tell: impl FnMut(Piece)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let body = part.strip_suffix(b"\n");
            self.pending.extend_from_slice(body.unwrap_or(part));
            while self.pending.len() > LONGEST_LINE {
                let rest = self.pending.split_off(LONGEST_LINE);
                self.cut = true;
                tell(self.piece());
                self.pending = rest;
            }
            if body.is_some() {
                tell(self.piece());
                self.cut = false;
            }
        }
    }

    /// What came after the last end of a line.
    pub fn end(&mut self, mut tell: impl FnMut(Piece)) {
        if !self.pending.is_empty() {
            tell(self.piece());
        }
    }

    fn piece(&mut self) -> Piece {
        let mut bytes = std::mem::take(&mut self.pending);
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        Piece { text: String::from_utf8_lossy(&bytes).into_owned(), whole: !self.cut }
    }
}

/// Lets so much through and counts the rest.
#[derive(Debug)]
pub struct Valve {
    tokens: u64,
    filled: Duration,
    left_out: u64,
}

impl Default for Valve {
    fn default() -> Self {
        Self { tokens: BURST, filled: Duration::ZERO, left_out: 0 }
    }
}

impl Valve {
    /// `None`: it is left out. `Some(n)`: it goes through, and n were left out since the last that did.
    pub fn admit(&mut self, now: Duration) -> Option<u64> {
        let seconds = now.saturating_sub(self.filled).as_secs();
        if seconds > 0 {
            self.tokens = self.tokens.saturating_add(seconds.saturating_mul(A_SECOND)).min(BURST);
            self.filled += Duration::from_secs(seconds);
        }
        if self.tokens == 0 {
            self.left_out += 1;
            return None;
        }
        self.tokens -= 1;
        Some(std::mem::take(&mut self.left_out))
    }

    /// At the end: what nobody was told about.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Reads one stream of a plugin to its end and logs it.
pub async fn follow(mut stream: impl AsyncRead + Unpin, name: String, log: LogSink) {
    let begun = tokio::time::Instant::now();
    let mut told = Told { reader: Reader::default(), valve: Valve::default(), name, log };
    let mut lines = Lines::default();
    let mut buffer = vec![0; LONGEST_LINE];
    // An error is an end as well: nothing can come after it.
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        lines.take(&buffer[..read], |piece| told.tell(piece, begun.elapsed()));
        // A flood must not keep others from being served.
        tokio::task::yield_now().await;
    }
    lines.end(|piece| told.tell(piece, begun.elapsed()));
    told.end();
}

struct Told {
    reader: Reader,
    valve: Valve,
    name: String,
    log: LogSink,
}

impl Told {
    fn tell(&mut self, piece: Piece, now: Duration) {
        let Some(left_out) = self.valve.admit(now) else { return };
        self.say_left_out(left_out);
        let record = if piece.whole { self.reader.read(&piece.text) } else { plain(Level::Debug, piece.text) };
        (self.log)(&self.name, &record);
    }

    fn say_left_out(&self, count: u64) {
        if count > 0 {
            let text = format!("{count} lines of the plugin's log were left out: it writes more than {A_SECOND} a second");
            (self.log)(&self.name, &plain(Level::Warn, text));
        }
    }

    fn end(&self) {
        self.say_left_out(self.valve.left_out());
    }
}

/// A record of text alone.
pub fn plain(level: Level, message: String) -> Record {
    Record { level, module: None, message, timestamp: None, fields: serde_json::Map::new() }
}

/// The usual place: the host's own log.
pub fn to_tracing(plugin: &str, record: &Record) {
    let fields = serde_json::Value::Object(record.fields.clone());
    let fields = if record.fields.is_empty() { None } else { Some(fields.to_string()) };
    let (fields, module, message) = (fields.as_deref(), record.module.as_deref(), record.message.as_str());
    match record.level {
        Level::Trace => tracing::trace!(target: "fleeting::plugin", plugin, module, fields, "{message}"),
        Level::Debug => tracing::debug!(target: "fleeting::plugin", plugin, module, fields, "{message}"),
        Level::Info => tracing::info!(target: "fleeting::plugin", plugin, module, fields, "{message}"),
        Level::Warn => tracing::warn!(target: "fleeting::plugin", plugin, module, fields, "{message}"),
        Level::Error => tracing::error!(target: "fleeting::plugin", plugin, module, fields, "{message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(parts: &[&[u8]]) -> Vec<(usize, bool)> {
        let (mut lines, mut told) = (Lines::default(), Vec::new());
        for part in parts {
            lines.take(part, |piece| told.push((piece.text.len(), piece.whole)));
        }
        lines.end(|piece| told.push((piece.text.len(), piece.whole)));
        told
    }

    #[test]
    fn lines_are_put_together_and_end_as_on_any_system() {
        let mut told = Vec::new();
        let mut lines = Lines::default();
        for part in [b"a\nb".as_slice(), b"c\r\n", b"d"] {
            lines.take(part, |piece| told.push(piece.text));
        }
        lines.end(|piece| told.push(piece.text));
        assert_eq!(told, ["a", "bc", "d"]);
    }

    #[test]
    fn flh_31_a_line_of_200_kib_comes_in_pieces_and_the_next_one_is_whole() {
        let long = [b"x".repeat(200 << 10), b"\nnext\n".to_vec()].concat();
        let expected = vec![(65_536, false), (65_536, false), (65_536, false), (8_192, false), (4, true)];
        let parts: Vec<&[u8]> = long.chunks(1000).collect();
        assert_eq!(pieces(&parts), expected);
        assert_eq!(pieces(&[&long]), expected);
    }

    #[test]
    fn a_flood_is_cut_and_what_was_left_out_is_counted() {
        let mut valve = Valve::default();
        let now = Duration::from_millis(500);
        assert!((0..BURST).all(|_| valve.admit(now) == Some(0)));
        assert!((0..1_000_000).all(|_| valve.admit(now).is_none()));
        assert_eq!(valve.admit(Duration::from_secs(1)), Some(1_000_000));
        assert_eq!((1..A_SECOND).filter(|_| valve.admit(Duration::from_secs(1)) == Some(0)).count() as u64, A_SECOND - 1);
        assert_eq!(valve.admit(Duration::from_secs(1)), None);
    }
}
