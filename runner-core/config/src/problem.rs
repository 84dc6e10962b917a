//! What is wrong or doubtful in a configuration file: what, where, why, and the way out.

use std::fmt;
use step_model::diagnostic::Place;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; everything works as it stands.
    Notice,
    /// Something that stands in the file has no effect, or not the one that was probably meant.
    Warning,
    /// This entry of `[[runners]]` cannot work and is not served; the others are.
    Refused,
    /// The file cannot be used.
    Error,
}

impl Severity {
    pub fn word(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Refused => "refused",
            Self::Error => "error",
        }
    }
}

/// One problem of one file. Never holds a secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub severity: Severity,
    /// Stable, for filters: `unknown-key`, `wrong-type`, ...
    pub code: &'static str,
    /// A lowercase fragment without a final period.
    pub message: String,
    /// `None`: the whole file.
    pub place: Option<Place>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The entry of `[[runners]]` that it is about, counted from 0.
    pub entry: Option<usize>,
}

impl Problem {
    /// Whether `config check` ends with an exit code of its own because of it.
    pub fn is_finding(&self) -> bool {
        self.severity > Severity::Notice
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
