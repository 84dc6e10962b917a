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
