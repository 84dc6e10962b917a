//! Problems of a document: what, where, why, and the way out.

use std::fmt;
use std::ops::Range;

/// A place in a text that a person can find.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
    /// The bytes of the text that are meant; empty for a point.
    pub span: Range<usize>,
}

impl Place {
    /// Bytes whose line and column nobody has counted yet: see [`locate`].
    pub(crate) fn uncounted(span: Range<usize>) -> Self {
        Self { line: 0, column: 0, span }
    }

    /// The place of bytes that stand behind the beginning of this one. Costs what lies between, however long the text is.
    pub fn further(&self, text: &str, span: Range<usize>) -> Self {
        let start = floor(text, span.start).max(self.span.start);
        let end = floor(text, span.end).max(start);
        let between = text.get(self.span.start..start).unwrap_or_default();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let column = match between.rsplit_once('\n') {
            Some((_, line)) => count(line.chars().count() + 1),
            None => self.column.saturating_add(count(between.chars().count())),
        };
        Self { line: self.line.saturating_add(count(between.matches('\n').count())), column, span: start..end }
    }
}

/// Where the lines of a text begin: turns bytes into lines and columns.
#[derive(Debug, Clone)]
pub struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    pub fn of(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX))).collect();
        Self { starts }
    }

    /// The line of a byte, counted from 1.
    pub fn line(&self, at: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|&first| first as usize <= at).max(1)).unwrap_or(u32::MAX)
    }

    /// The place of some bytes of the text that this was made of. Bytes beyond its end are taken as its end.
    pub fn place(&self, text: &str, span: Range<usize>) -> Place {
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let line = self.starts.partition_point(|&first| first as usize <= start).max(1);
        let first = self.starts[line - 1] as usize;
        let column = text[first.min(start)..start].chars().count() + 1;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Place { line: count(line), column: count(column), span: start..end }
    }
}

/// Sorts problems by their places and counts lines and columns: once along the text, since a line can be as long as the text.
pub(crate) fn locate(problems: &mut [Problem], text: &str, lines: &Lines) {
    problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span.start));
    let mut cursor = Cursor::default();
    for place in problems.iter_mut().filter_map(|problem| problem.place.as_mut()) {
        *place = cursor.place(text, lines, place.span.clone());
    }
}

/// Counts lines and columns from the place that was asked for last: cheap for whoever goes through a text from its beginning to its end.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    last: Place,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { last: Place { line: 1, column: 1, span: 0..0 } }
    }
}

impl Cursor {
    pub(crate) fn place(&mut self, text: &str, lines: &Lines, span: Range<usize>) -> Place {
        let is_on_the_same_line = lines.line(span.start) == self.last.line;
        self.last =
            if is_on_the_same_line && self.last.span.start <= span.start { self.last.further(text, span) } else { lines.place(text, span) };
        self.last.clone()
    }
}

/// The nearest beginning of a character that is not after `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// How bad a problem is (original.md 0.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It runs as it does in the original, and the log says so. An error with `--strict`.
    Warning,
    /// The original refuses it too, or to run it would be unsafe.
    Error,
}

/// One problem of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub verdict: Verdict,
    /// Stable, for editors and filters: `unknown-key`, `missing-type`, ...
    pub code: &'static str,
    /// A lowercase fragment without a final period.
    pub message: String,
    /// `None`: the whole document.
    pub place: Option<Place>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    pub fn error(code: &'static str, message: impl Into<String>, place: Option<Place>) -> Self {
        Self { verdict: Verdict::Error, code, message: message.into(), place, hint: None }
    }

    pub fn warning(code: &'static str, message: impl Into<String>, place: Option<Place>) -> Self {
        Self { verdict: Verdict::Warning, ..Self::error(code, message, place) }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.verdict == Verdict::Error
    }
}

/// One line: `line 3, column 5: message`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "line {}, column {}: ", place.line, place.column)?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_behind_another_is_the_same_as_from_the_beginning() {
        let text = "a: ü\n  b: ö ä\nc: d\n";
        let lines = Lines::of(text);
        let all: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for from in &all {
            for at in all.iter().filter(|at| *at >= from) {
                let place = lines.place(text, *from..text.len());
                assert_eq!(place.further(text, *at..text.len()), lines.place(text, *at..text.len()), "{from} {at}");
            }
        }
    }

    #[test]
    fn a_place_counts_characters_not_bytes() {
        let text = "a: 1\nü: ö\n";
        let place = Lines::of(text).place(text, 9..11);
        assert_eq!(place, Place { line: 2, column: 4, span: 9..11 });
        assert_eq!(Lines::of(text).place(text, 400..500), Place { line: 3, column: 1, span: 12..12 });
        assert_eq!(Lines::of("").place("", 0..0), Place { line: 1, column: 1, span: 0..0 });
    }
}
