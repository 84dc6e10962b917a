//! Masks secrets in what is written for people, also when they are split over writes or encoded.
//!
//! A secret is looked for as it is, line by line, and in the encodings of `forms.rs`. Every occurrence counts, also one that overlaps
//! another: what is covered by any of them becomes one [`MASK`]. Neighbours that only touch stay two.
//!
//! The price: a mask that is written next to other text may happen to complete a secret that looks like a part of `[MASKED]`.

mod automaton;
mod forms;
mod stream;
#[cfg(test)]
mod tests;

pub use stream::StreamMasker;

use automaton::Automaton;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What stands for a secret in a log.
pub const MASK: &str = "[MASKED]";

/// A secret has at least this many characters. Shorter ones occur everywhere: masking `on` would spoil every log and hide nothing
/// (actions/runner#326). GitLab's own minimum for masked variables is 8; sensitive values and PINs of a job may be shorter.
pub const MINIMUM: usize = 4;

/// The secrets of a job in all the forms that are masked. Grows while the job runs. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets {
    known: Arc<Known>,
}

#[derive(Clone, Default)]
struct Known {
    secrets: BTreeSet<Arc<str>>,
    forms: BTreeSet<Vec<u8>>,
    /// Built when the first text is masked after a change.
    automaton: OnceLock<Option<Arc<Automaton>>>,
}

impl Secrets {
    /// Adds a secret, without the white space around it. Nothing happens for an empty one. One that is too short to be masked without
    /// harm is refused.
    /// # Errors
    /// The secret is shorter than what can be masked; the caller warns.
    pub fn add(&mut self, secret: &str) -> Result<(), TooShort> {
        let secret = secret.trim();
        if secret.is_empty() || self.known.secrets.contains(secret) {
            return Ok(());
        }
        if secret.chars().count() < MINIMUM {
            return Err(TooShort { minimum: MINIMUM });
        }
        let known = Arc::make_mut(&mut self.known);
        known.secrets.insert(secret.into());
        known.forms.extend(forms::of(secret));
        known.automaton = OnceLock::new();
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.known.secrets.is_empty()
    }

    /// Every occurrence replaced by [`MASK`].
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replace(text, MASK)
    }

    /// Every occurrence replaced by `mask`.
    pub fn replace<'a>(&self, text: &'a str, mask: &str) -> Cow<'a, str> {
        let hits = self.occurrences(text.as_bytes());
        if hits.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(text.len());
        let mut end = 0;
        for hit in hits {
            // All forms are UTF-8, so an occurrence begins and ends between characters.
            masked.push_str(text.get(end..hit.start).unwrap_or_default());
            masked.push_str(mask);
            end = hit.end;
        }
        masked.push_str(text.get(end..).unwrap_or_default());
        Cow::Owned(masked)
    }

    /// Whether the whole text is one of the secrets, as it is or encoded.
    pub fn is_secret(&self, text: &str) -> bool {
        self.known.forms.contains(text.trim().as_bytes())
    }

    /// Where secrets stand in `bytes`, in order; what overlaps is one.
    fn occurrences(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut hits = Hits::default();
        if let Some(automaton) = self.automaton() {
            let mut state = automaton.start();
            automaton.scan(&mut state, bytes, |end, length| hits.add(end.saturating_sub(length)..end));
        }
        hits.ranges
    }

    fn automaton(&self) -> Option<&Arc<Automaton>> {
        self.known.automaton.get_or_init(|| Automaton::of(&self.known.forms).map(Arc::new)).as_ref()
    }
}

/// Only how many: nothing secret is ever printed.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.known.secrets.len())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret of fewer than {minimum} characters is not masked")]
pub struct TooShort {
    pub minimum: usize,
}

/// Occurrences in the order of their ends, made disjoint: one that overlaps those before it swallows them.
#[derive(Debug, Default)]
struct Hits {
    ranges: Vec<Range<usize>>,
}

impl Hits {
    fn add(&mut self, mut hit: Range<usize>) {
        while let Some(last) = self.ranges.last().filter(|last| last.end > hit.start) {
            hit.start = hit.start.min(last.start);
            hit.end = hit.end.max(last.end);
            self.ranges.pop();
        }
        self.ranges.push(hit);
    }
}
