//! The log of an agent: lines with a header each, of several streams at once. It is sanitised stream by stream; the headers stay.
//!
//! The same bytes make the same trace, however they are split and whoever reads them: a process that goes on where another one stopped, with
//! its [`State`], writes what that one would have written.

use super::sanitise::{Prefixes, Sanitiser};
use super::stamp::cut_off;
use serde::{Deserialize, Serialize};

/// `2021-01-01T01:00:00.020010Z 01O `: time, stream, and whether the line goes on with the one before.
const HEADER: usize = 32;

/// A line of an agent has 8 KiB at most. What is longer comes from something else, and is taken in pieces.
const LONGEST_LINE: usize = 16 << 10;

/// As many streams are remembered: the runner, the job and its services have two each.
const MOST_STREAMS: usize = 64;

/// What is kept of the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// Time and stream: what GitLab shows.
    Full,
    /// Nothing, and lines that were split are one again: for `FF_TIMESTAMPS: false`.
    None,
}

/// What must be known of the bytes so far to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// A few: a list is faster than a tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    streams: Vec<(Name, Sanitiser)>,
    /// The line is longer than can be held: it goes on, in this stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inside: Option<Name>,
    /// Without headers: the line of this stream has ended, and it is not known yet whether it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unended: Option<Name>,
}

/// A stream by the two digits and the letter of its header; zeros for lines that have none.
type Name = [u8; 3];

const NO_NAME: Name = [0; 3];

/// Makes a trace of an agent's log.
#[derive(Debug)]
pub struct Framed {
    headers: Headers,
    prefixes: Prefixes,
    state: State,
    /// The beginning of a line whose end has not come.
    held: Vec<u8>,
    /// The bytes at hand are text, and no prefix of a token is among them.
    is_plain: bool,
    scratch: Vec<u8>,
}

impl Framed {
    pub fn new(headers: Headers, prefixes: Prefixes, state: State) -> Self {
        Self { headers, prefixes, state, held: Vec::new(), is_plain: false, scratch: Vec::new() }
    }

    /// Bytes that were taken and of which nothing has come out: whoever goes on with [`Framed::state`] needs them again.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Appends what comes of these bytes: characters only.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            let room = LONGEST_LINE - self.held.len();
            let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(room)]).map_or(bytes.len().min(room), |end| end + 1);
            let (head, rest) = bytes.split_at(end);
            self.held.extend_from_slice(head);
            if !self.held.ends_with(b"\n") && self.held.len() < LONGEST_LINE {
                return;
            }
            let held = std::mem::take(&mut self.held);
            let used = self.take(&held, out);
            self.held = held;
            self.held.drain(..used);
            bytes = rest;
            if !self.held.is_empty() {
                // The beginning of a character at the end of a piece.
                return self.push(bytes, out);
            }
        }
        // Most of what is logged holds nothing: that is known of all of it at once.
        let lines = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        self.is_plain = !self.prefixes.occur_in(&bytes[..lines]) && std::str::from_utf8(&bytes[..lines]).is_ok();
        while !bytes.is_empty() {
            let near = &bytes[..bytes.len().min(LONGEST_LINE)];
            let piece = match memchr::memchr(b'\n', near) {
                Some(end) => &bytes[..=end],
                None if near.len() == LONGEST_LINE => near,
                None => {
                    self.held.extend_from_slice(bytes);
                    break;
                }
            };
            let used = self.take(piece, out);
            bytes = &bytes[used..];
        }
        self.is_plain = false;
    }

    /// Something else is written next: a line whose end was not written yet ends here.
    pub fn interrupt(&mut self, out: &mut Vec<u8>) {
        if self.state.unended.take().is_some() {
            out.push(b'\n');
        }
    }

    /// The log has ended: what is held is a line.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            let mut held = std::mem::take(&mut self.held);
            held.push(b'\n');
            self.line(&held, out);
        } else if self.state.inside.take().is_some() {
            out.push(b'\n');
        }
        self.interrupt(out);
    }

    /// Takes a line, or a piece of a long one; says how much of it was used.
    fn take(&mut self, piece: &[u8], out: &mut Vec<u8>) -> usize {
        let used = if piece.ends_with(b"\n") { piece.len() } else { piece.len() - cut_off(piece) };
        self.line(&piece[..used], out);
        used
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let (body, is_whole) = line.strip_suffix(b"\n").map_or((line, false), |body| (body, true));
        let (stream, body) = match self.state.inside.take() {
            Some(stream) => (stream, body),
            None => match Header::of(body) {
                Some(header) => {
                    self.begin(&header, &body[..HEADER], out);
                    (header.stream, &body[HEADER..])
                }
                None => {
                    self.begin(&Header { stream: NO_NAME, continues: false }, &[], out);
                    (NO_NAME, body)
                }
            },
        };
        let sanitiser = self.state.sanitiser(stream);
        if !(self.is_plain && is_whole && sanitiser.pass(body, &self.prefixes, out)) {
            match std::str::from_utf8(body) {
                Ok(_) => sanitiser.push(body, &self.prefixes, &mut self.scratch, out),
                Err(_) => sanitiser.push(String::from_utf8_lossy(body).as_bytes(), &self.prefixes, &mut self.scratch, out),
            }
        }
        if !is_whole {
            self.state.inside = Some(stream);
        } else if self.headers == Headers::None && stream != NO_NAME {
            self.state.unended = Some(stream);
        } else {
            out.push(b'\n');
        }
    }

    fn begin(&mut self, header: &Header, text: &[u8], out: &mut Vec<u8>) {
        if !header.continues {
            self.state.sanitiser(header.stream).end_line();
        }
        let unended = self.state.unended.take();
        if unended.is_some_and(|unended| !header.continues || unended != header.stream) {
            out.push(b'\n');
        }
        if self.headers == Headers::Full {
            out.extend_from_slice(text);
        }
    }
}

impl State {
    /// That of a stream; a new one where it has none.
    fn sanitiser(&mut self, stream: Name) -> &mut Sanitiser {
        let index = self.streams.iter().position(|(name, _)| *name == stream).unwrap_or_else(|| {
            if self.streams.len() >= MOST_STREAMS {
                self.streams.remove(0);
            }
            self.streams.push((stream, Sanitiser::default()));
            self.streams.len() - 1
        });
        &mut self.streams[index].1
    }
}

struct Header {
    stream: Name,
    continues: bool,
}

impl Header {
    fn of(line: &[u8]) -> Option<Self> {
        let header = line.get(..HEADER)?;
        let is_time = header[..27].iter().zip(b"0000-00-00T00:00:00.000000Z").all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        });
        let [b' ', high, low, kind, goes_on @ (b' ' | b'+')] = header[27..] else { return None };
        let is_stream = high.is_ascii_hexdigit() && low.is_ascii_hexdigit() && matches!(kind, b'O' | b'E');
        (is_time && is_stream).then_some(Self { stream: [high, low, kind], continues: goes_on == b'+' })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2021-01-01T01:00:00.020010Z";

    fn made(headers: Headers, log: &str) -> String {
        let whole = in_pieces(headers, log, log.len().max(1));
        for piece in [1, 2, 3, 7, 31, 33, 100] {
            assert_eq!(in_pieces(headers, log, piece), whole, "in pieces of {piece}");
        }
        whole
    }

    /// Each piece by another process, that knows the state and asks for what was held.
    fn in_pieces(headers: Headers, log: &str, piece: usize) -> String {
        let prefixes = Prefixes::new(&[]);
        let (mut out, mut state, mut offset, mut read) = (Vec::new(), State::default(), 0, 0);
        while read < log.len() {
            read = (read + piece).min(log.len());
            let mut framed = Framed::new(headers, prefixes.clone(), state);
            framed.push(&log.as_bytes()[offset..read], &mut out);
            offset = read - framed.held();
            state = serde_json::from_str(&serde_json::to_string(framed.state()).expect("JSON")).expect("a state");
            if read == log.len() {
                framed.finish(&mut out);
            }
        }
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn lines_keep_their_headers_and_lose_their_secrets() {
        let log = format!("{TIME} 01O token glpat-abc here\n{TIME} 01E see ?private_token=x\n{TIME} 01O plain ü\n");
        assert_eq!(
            made(Headers::Full, &log),
            format!("{TIME} 01O token glpat-[MASKED] here\n{TIME} 01E see ?private_token=[MASKED]\n{TIME} 01O plain ü\n")
        );
    }

    #[test]
    fn a_token_that_goes_on_in_the_next_entry_of_its_stream_is_still_one() {
        let log = format!("{TIME} 01O a glp\n{TIME} 01E between\n{TIME} 01O+at-abc\n{TIME} 01O+def and\n{TIME} 01O def\n");
        assert_eq!(
            made(Headers::Full, &log),
            format!("{TIME} 01O a glp\n{TIME} 01E between\n{TIME} 01O+at-[MASKED]\n{TIME} 01O+ and\n{TIME} 01O def\n")
        );
    }

    #[test]
    fn a_new_line_ends_what_is_masked() {
        let log = format!("{TIME} 01O glpat-abc\n{TIME} 01O def glpat-\n{TIME} 01O ghi\n");
        assert_eq!(made(Headers::Full, &log), format!("{TIME} 01O glpat-[MASKED]\n{TIME} 01O def glpat-\n{TIME} 01O ghi\n"));
    }

    #[test]
    fn without_headers_lines_that_were_split_are_one_again() {
        let log = format!("{TIME} 01O 10%\r\n{TIME} 01O+20%\n{TIME} 01E err\n{TIME} 01O next\n");
        assert_eq!(made(Headers::None, &log), "10%\r20%\nerr\nnext\n");
    }

    #[test]
    fn lines_without_a_header_are_lines() {
        assert_eq!(made(Headers::Full, "no header glpat-abc\n\nlast without end"), "no header glpat-[MASKED]\n\nlast without end\n");
        let nearly = "2021-01-01T01:00:00.020010Z 01X text\n";
        assert_eq!(made(Headers::Full, nearly), nearly);
        assert_eq!(made(Headers::None, &format!("{TIME} 01O a\nbare\n")), "a\nbare\n");
    }

    #[test]
    fn a_line_that_is_too_long_to_be_held_goes_through_in_pieces() {
        let long = format!("{TIME} 01O {}glpat-abc{}\n{TIME} 01O short\n", "ü".repeat(LONGEST_LINE), "x".repeat(LONGEST_LINE));
        assert_eq!(in_pieces(Headers::Full, &long, 1000), in_pieces(Headers::Full, &long, long.len()));
        let made = in_pieces(Headers::Full, &long, 1 << 20);
        assert!(made.contains("glpat-[MASKED]") && !made.contains("abc") && made.ends_with(&format!("[MASKED]\n{TIME} 01O short\n")));
    }

    #[test]
    fn what_is_no_text_becomes_text() {
        let (mut framed, mut out) = (Framed::new(Headers::Full, Prefixes::new(&[]), State::default()), Vec::new());
        framed.push(b"a\xff\xfeb\n\xc3\n", &mut out);
        framed.finish(&mut out);
        assert_eq!(String::from_utf8(out).expect("text"), "a\u{fffd}\u{fffd}b\n\u{fffd}\n");
    }
}
