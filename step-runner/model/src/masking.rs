//! Masks secrets in what is written for people, also when they are split over writes or encoded.
//!
//! A secret is looked for as it is, line by line, and in the encodings of `forms.rs`. Every occurrence counts, also one that overlaps
//! another: what is covered by any of them becomes one [`MASK`]. Neighbours that only touch stay two.
//!
//! Prices: of a secret of more than 128 KiB only longer runs are found (`long.rs`); and a mask that is written next to other text may happen
//! to complete a secret that looks like a part of `[MASKED]`.

mod automaton;
mod filter;
mod forms;
mod long;
mod stream;
#[cfg(test)]
mod tests;

pub use stream::StreamMasker;

use automaton::Automaton;
use long::LongSecret;
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
    long: Vec<Arc<LongSecret>>,
    /// For the forms that were known when a text was last masked.
    automata: Vec<Arc<Automaton>>,
    /// The forms that came since.
    young: BTreeSet<Vec<u8>>,
    /// For both. Built when the first text is masked after a change.
    all: OnceLock<Vec<Arc<Automaton>>>,
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
        if let Some(automata) = known.all.take() {
            known.automata = automata;
            known.young.clear();
        }
        let secret: Arc<str> = secret.into();
        if LongSecret::is_long(&secret) {
            let long = LongSecret::of(Arc::clone(&secret));
            known.young.extend(long.anchors());
            known.long.push(Arc::new(long));
        } else {
            known.young.extend(forms::of(&secret));
        }
        known.secrets.insert(secret);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.known.secrets.is_empty()
    }

    /// Every occurrence replaced by [`MASK`].
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.occur_in(text) {
            return Cow::Borrowed(text);
        }
        let mut masker = StreamMasker::new(self);
        let mut out = Vec::new();
        masker.push(text.as_bytes(), &mut out);
        masker.show(&mut out);
        // All forms are UTF-8, so an occurrence begins and ends between characters.
        match String::from_utf8(out) {
            Ok(masked) => Cow::Owned(masked),
            Err(fault) => Cow::Owned(String::from_utf8_lossy(fault.as_bytes()).into_owned()),
        }
    }

    /// Most texts hold nothing: that is known without a copy.
    fn occur_in(&self, text: &str) -> bool {
        self.automata().iter().any(|automaton| {
            let (mut state, mut found) = (automaton.start(), false);
            automaton.scan(&mut state, text.as_bytes(), |_, _| found = true);
            found
        })
    }

    #[cfg(test)]
    fn forms(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.automata().iter().flat_map(|automaton| automaton.forms())
    }

    fn automata(&self) -> &[Arc<Automaton>] {
        self.known.all.get_or_init(|| automaton::with(&self.known.automata, &self.known.young))
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
