//! Logs as clients get them, in both framings, back to what steps wrote.
//!
//! An agent sends a log as bytes, in pieces of any size. *Raw*, they are what the steps wrote, both streams in one. *Stamped*, each line has a header
//! of 32 bytes with time and stream, and `+` in it where the newline before it is not the step's (original.md H.4, S 1.3).
//!
//! ```
//! use step_client::logs::{LogReader, Merged};
//!
//! let (mut reader, mut merged, mut shown) = (LogReader::new(), Merged::default(), Vec::new());
//! for piece in ["2026-11-20T17:53:54.410763Z 01O 10%\r\n2026-11-20T17:", "53:55.000000Z 01O+done\n2026-11-20T17:53:55.1"] {
//!     reader.push(piece.as_bytes(), &mut |piece| merged.add(&piece, &mut shown));
//! }
//! reader.finish(&mut |piece| merged.add(&piece, &mut shown));
//! assert_eq!(shown, b"10%\rdone\n");
//! ```

#[cfg(test)]
mod tests;

/// Where a step wrote something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
    /// The log does not say: it is raw.
    Unknown,
}

/// Bytes of one stream, as the step wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    pub stream: Stream,
    pub bytes: &'a [u8],
    /// When the line was written: `2026-11-20T17:53:54.410763Z`. `None` in a raw log.
    pub time: Option<&'a str>,
}

/// Somebody who takes pieces.
pub type Take<'a> = dyn FnMut(Piece<'_>) + 'a;

const HEADER: usize = 32;
const TIME: usize = 27;
const LETTER: usize = 30;
const MARK: usize = 31;
/// A line with as many bytes was cut because of its length.
const LONGEST: usize = 8192;

/// Reads a log. Finds out by itself how it is framed: a stamped one begins with a header.
///
/// The newline of a line is only handed on with the next line of its stream, which says whether it was the step's own; see
/// [`LogReader::quiet`]. The bytes of each stream are exact, but for a last line without a newline, which has one.
#[derive(Debug, Clone, Default)]
pub struct LogReader {
    framing: Framing,
    place: Place,
    /// The header of the line that is read, as far as it came.
    header: Vec<u8>,
    output: Ended,
    error: Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Framing {
    #[default]
    Unknown,
    Raw,
    Stamped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Header,
    Body(Stream),
    /// In a line without a header: somebody began to read in the middle of it.
    Loose,
}

/// How the last line of a stream ended.
#[derive(Debug, Clone, Copy, Default)]
struct Ended {
    owes_newline: bool,
    /// Bytes of the line since its header.
    length: usize,
    last_byte: u8,
}

impl LogReader {
    /// For a log from its beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a log from somewhere: from any byte of a stamped one. What is left of the first line has no stream.
    pub fn stamped_from_the_middle() -> Self {
        Self { framing: Framing::Stamped, place: Place::Loose, ..Self::default() }
    }

    /// Whether the log is stamped. `None`: too little of it came.
    pub fn is_stamped(&self) -> Option<bool> {
        match self.framing {
            Framing::Unknown => None,
            Framing::Raw => Some(false),
            Framing::Stamped => Some(true),
        }
    }

    /// Takes bytes as they come, and hands on what can be said for sure.
    pub fn push(&mut self, mut bytes: &[u8], take: &mut Take<'_>) {
        while !bytes.is_empty() {
            let taken = match (self.framing, self.place) {
                (Framing::Raw, _) => {
                    take(Piece { stream: Stream::Unknown, bytes, time: None });
                    bytes.len()
                }
                (_, Place::Header) => self.read_header(bytes, take),
                (_, Place::Body(stream)) => self.read_body(stream, bytes, take),
                (_, Place::Loose) => self.read_loose(bytes, take),
            };
            bytes = &bytes[taken..];
        }
    }

    /// Nothing comes for a moment: hands on newlines that are most likely the steps' own. A prompt that goes on later then stands in two
    /// lines. For readers that wait for whole lines; a terminal does not need it.
    pub fn quiet(&mut self, take: &mut Take<'_>) {
        for stream in [Stream::Output, Stream::Error] {
            let ended = self.ended(stream);
            if ended.last_byte != b'\r' && ended.length < LONGEST - 3 {
                Self::pay(ended, stream, take);
            }
        }
    }

    /// The log has ended.
    pub fn finish(&mut self, take: &mut Take<'_>) {
        if self.framing == Framing::Unknown && !self.header.is_empty() {
            take(Piece { stream: Stream::Unknown, bytes: &self.header, time: None });
            self.header.clear();
        }
        for stream in [Stream::Output, Stream::Error] {
            Self::pay(self.ended(stream), stream, take);
        }
    }

    fn read_header(&mut self, bytes: &[u8], take: &mut Take<'_>) -> usize {
        let fits = |(at, byte): (usize, &u8)| is_of_header(at, *byte);
        let known = self.header.len();
        let taken = bytes.iter().enumerate().take(HEADER - known).take_while(|(at, byte)| fits((known + at, byte))).count();
        self.header.extend_from_slice(&bytes[..taken]);
        if self.header.len() < HEADER {
            if taken < bytes.len() {
                self.read_no_header(bytes[taken], take);
            }
            return taken;
        }
        self.framing = Framing::Stamped;
        let stream = if self.header[LETTER] == b'E' { Stream::Error } else { Stream::Output };
        let goes_on = self.header[MARK] == b'+';
        let ended = self.ended(stream);
        if goes_on {
            ended.owes_newline = false;
        } else {
            Self::pay(ended, stream, take);
        }
        *ended = Ended::default();
        self.place = Place::Body(stream);
        taken
    }

    /// The beginning of a header was followed by something else.
    fn read_no_header(&mut self, next: u8, take: &mut Take<'_>) {
        if self.framing == Framing::Unknown {
            self.framing = Framing::Raw;
            if !self.header.is_empty() {
                take(Piece { stream: Stream::Unknown, bytes: &self.header, time: None });
            }
            return;
        }
        self.place = Place::Loose;
        // A header that was torn when the process that wrote it died says nothing to anybody.
        if next != b'\n' && !self.header.is_empty() {
            take(Piece { stream: Stream::Unknown, bytes: &self.header, time: None });
        }
        self.header.clear();
    }

    fn read_body(&mut self, stream: Stream, bytes: &[u8], take: &mut Take<'_>) -> usize {
        let end = memchr::memchr(b'\n', bytes);
        let body = &bytes[..end.unwrap_or(bytes.len())];
        if let Some(last) = body.last() {
            let time = std::str::from_utf8(&self.header[..TIME]).ok();
            take(Piece { stream, bytes: body, time });
            let ended = self.ended(stream);
            (ended.length, ended.last_byte) = (ended.length + body.len(), *last);
        }
        if end.is_some() {
            let ended = self.ended(stream);
            ended.owes_newline = true;
            // Nobody cuts a line where nothing of it is.
            if ended.length == 0 {
                Self::pay(ended, stream, take);
            }
            self.header.clear();
            self.place = Place::Header;
        }
        body.len() + usize::from(end.is_some())
    }

    fn read_loose(&mut self, bytes: &[u8], take: &mut Take<'_>) -> usize {
        let end = memchr::memchr(b'\n', bytes);
        let line = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
        take(Piece { stream: Stream::Unknown, bytes: line, time: None });
        if end.is_some() {
            self.place = Place::Header;
        }
        line.len()
    }

    fn ended(&mut self, stream: Stream) -> &mut Ended {
        if stream == Stream::Error { &mut self.error } else { &mut self.output }
    }

    fn pay(ended: &mut Ended, stream: Stream, take: &mut Take<'_>) {
        if std::mem::take(&mut ended.owes_newline) {
            take(Piece { stream, bytes: b"\n", time: None });
        }
    }
}

/// `2026-11-20T17:53:54.410763Z 01O `
fn is_of_header(at: usize, byte: u8) -> bool {
    match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        19 => byte == b'.',
        26 => byte == b'Z',
        27 => byte == b' ',
        28 | 29 => byte.is_ascii_hexdigit(),
        LETTER => matches!(byte, b'O' | b'E'),
        MARK => matches!(byte, b' ' | b'+'),
        _ => byte.is_ascii_digit(),
    }
}

/// Both streams in one, for a screen: a line of one never stands inside a line of the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Merged {
    /// The stream whose line has no end yet.
    open: Option<Stream>,
    /// Lines that were ended because the other stream wrote something.
    broken: [bool; 3],
}

impl Merged {
    /// Appends a piece to what is shown.
    pub fn add(&mut self, piece: &Piece<'_>, shown: &mut Vec<u8>) {
        let Some(last) = piece.bytes.last() else { return };
        if let Some(open) = self.open.filter(|open| *open != piece.stream) {
            shown.push(b'\n');
            self.broken[open as usize] = true;
            self.open = None;
        }
        let was_broken = std::mem::take(&mut self.broken[piece.stream as usize]);
        if !(was_broken && piece.bytes == b"\n") {
            shown.extend_from_slice(piece.bytes);
            self.open = (*last != b'\n').then_some(piece.stream);
        }
    }
}
