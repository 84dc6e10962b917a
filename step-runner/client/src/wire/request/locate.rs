//! Finds the bytes of a value in a JSON text that is known to be well-formed.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Key(String),
    Index(usize),
}

impl From<&str> for Segment {
    fn from(name: &str) -> Self {
        Self::Key(name.to_owned())
    }
}

/// The bytes of the value at a path; of its container where there is none. Of a key that is written twice the last counts.
pub(super) fn locate(text: &str, path: &[Segment]) -> Option<Range<usize>> {
    let mut cursor = Cursor { text, at: 0 };
    let mut span = cursor.value()?;
    for segment in path {
        let Some(inner) = (Cursor { text, at: span.start }).member(segment) else { break };
        span = inner;
    }
    Some(span)
}

/// The bytes of the text that stand for a part of what a JSON string says.
pub(super) fn in_string(text: &str, string: &Range<usize>, part: &Range<usize>) -> Range<usize> {
    let (start, end) = (string.start + 1, string.end.saturating_sub(1));
    let Some(raw) = text.get(start..end) else { return string.clone() };
    // Where the character at each byte of the meaning begins in the raw text.
    let find = |wanted: usize| {
        let (mut meaning, mut characters) = (0, raw.char_indices());
        while meaning < wanted {
            let Some((at, character)) = characters.next() else { return end };
            meaning += match (character, raw.as_bytes().get(at + 1)) {
                ('\\', Some(b'u')) => {
                    characters.by_ref().take(5).for_each(drop);
                    let unit = raw.get(at + 2..at + 6).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default();
                    // Half of a pair counts for half of its four bytes.
                    char::from_u32(unit).map_or(2, char::len_utf8)
                }
                ('\\', _) => {
                    characters.next();
                    1
                }
                (character, _) => character.len_utf8(),
            };
        }
        start + characters.offset()
    };
    find(part.start)..find(part.end)
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl Cursor<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().position(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b',' | b':' | 0xef | 0xbb | 0xbf))?;
        self.text.as_bytes().get(self.at).copied()
    }

    /// Steps over a value.
    fn value(&mut self) -> Option<Range<usize>> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.string()?,
            b'{' | b'[' => {
                let mut depth = 0_usize;
                loop {
                    match self.peek()? {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => {
                let rest = &self.text.as_bytes()[start..];
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        Some(start..self.at)
    }

    fn string(&mut self) -> Option<()> {
        let mut escaped = false;
        for (offset, byte) in self.text.as_bytes().get(self.at + 1..)?.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.at += offset + 2;
                    return Some(());
                }
                _ => {}
            }
        }
        None
    }

    /// The value of a member of the object or array that begins here.
    fn member(&mut self, segment: &Segment) -> Option<Range<usize>> {
        let opening = self.peek()?;
        self.at += 1;
        let mut found = None;
        let mut index = 0;
        while !matches!(self.peek()?, b'}' | b']') {
            let is_wanted = match (opening, segment) {
                (b'{', Segment::Key(wanted)) => {
                    let name = self.value()?;
                    serde_json::from_str::<String>(&self.text[name]).is_ok_and(|name| name == *wanted)
                }
                (b'[', Segment::Index(wanted)) => index == *wanted,
                _ => return None,
            };
            let value = self.value()?;
            if is_wanted {
                found = Some(value);
            }
            index += 1;
        }
        found
    }
}
