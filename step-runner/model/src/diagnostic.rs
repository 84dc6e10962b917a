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

/// The nearest beginning of a character that is not after `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// How bad a problem is (agent.md 0.3).
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

/// The candidate that was probably meant: at most a third of the letters differ. `None` when nothing is near.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let nearest = |candidate: &&str| distance(&name, &candidate.to_lowercase());
    let allowed = (name.chars().count() / 3).max(1);
    let found = candidates.into_iter().min_by_key(nearest)?;
    (nearest(&found) <= allowed && !(name.chars().count() == 1 && nearest(&found) == 1)).then_some(found)
}

/// How many letters must be added, left out, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    // A name that long is no slip of the fingers, and the table grows with both.
    const LONGEST: usize = 64;
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().take(LONGEST).collect(), right.chars().take(LONGEST).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut cost = (row[j] + usize::from(a != b)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                cost = cost.min(before[j - 1] + 1);
            }
            next.push(cost);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters_not_bytes() {
        let text = "a: 1\nü: ö\n";
        let place = Lines::of(text).place(text, 9..11);
        assert_eq!(place, Place { line: 2, column: 4, span: 9..11 });
        assert_eq!(Lines::of(text).place(text, 400..500), Place { line: 3, column: 1, span: 12..12 });
        assert_eq!(Lines::of("").place("", 0..0), Place { line: 1, column: 1, span: 0..0 });
    }

    #[test]
    fn what_was_meant_is_near() {
        let keys = ["inputs", "outputs", "env", "name"];
        assert_eq!(closest("inptus", keys), Some("inputs"));
        assert_eq!(closest("input", keys), Some("inputs"));
        assert_eq!(closest("Env", keys), Some("env"));
        assert_eq!(closest("image", keys), None);
        assert_eq!(closest("x", ["y"]), None);
        assert_eq!(closest("", keys), None);
    }
}
