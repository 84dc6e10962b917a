//! Masks a stream of bytes as it comes, in pieces of any size.

use super::long::Following;
use super::{Automaton, Hits, MASK, Secrets};
use aho_corasick::automaton::StateID;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A beginning of fewer bytes than this is shown when the stream is quiet or ends: it is most likely a prompt or a last word.
const SHOWN_WHEN_QUIET: usize = 4;

/// Masks one stream of bytes. Holds back only what may be the beginning of a secret.
///
/// ```text
///   ... written ...  | pending: the longest end of the stream that begins a form
///                    | released |  masked  |   held back        |
///                      shown      behind a    unless a form that
///                      when quiet written     ends later covers
///                                 mask        them: shown later
/// ```
pub struct StreamMasker {
    secrets: Secrets,
    /// Each with where it is. None: there is nothing to mask.
    searches: Vec<(Arc<Automaton>, StateID)>,
    pending: Vec<u8>,
    /// How many of the pending bytes were shown by [`StreamMasker::quiet`].
    released: usize,
    /// How many of the pending bytes a mask stands for that has been written.
    masked: usize,
    /// Occurrences in the pending bytes whose masks have not been written.
    hits: Hits,
    following: Following,
    /// Occurrences of one push, to be used again.
    found: Vec<Range<usize>>,
}

impl StreamMasker {
    pub fn new(secrets: &Secrets) -> Self {
        let mut masker = Self {
            secrets: secrets.clone(),
            searches: Vec::new(),
            pending: Vec::new(),
            released: 0,
            masked: 0,
            hits: Hits::default(),
            following: Following::default(),
            found: Vec::new(),
        };
        masker.start_searches();
        masker
    }

    /// Takes newly known secrets into account, also for what is held back.
    pub fn update(&mut self, secrets: &Secrets) {
        if Arc::ptr_eq(&self.secrets.known, &secrets.known) {
            return;
        }
        self.secrets = secrets.clone();
        self.start_searches();
        let pending = std::mem::take(&mut self.pending);
        self.search(&pending, 0);
        self.pending = pending;
    }

    fn start_searches(&mut self) {
        self.searches = self.secrets.automata().iter().map(|automaton| (Arc::clone(automaton), automaton.start())).collect();
    }

    /// Appends to `out` what can be said for sure after `bytes`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let before = self.pending.len();
        let mut followed = before;
        if !self.following.is_empty() {
            let end = before + self.following.follow(bytes);
            followed = end;
            match self.hits.ranges.last_mut().filter(|last| last.end == before) {
                Some(last) => last.end = end,
                None => self.masked = self.masked.max(end),
            }
        }
        self.search(bytes, followed);
        // No form that ends later can begin before this.
        let held = self.searches.iter().map(|(automaton, state)| automaton.depth(*state)).max().unwrap_or(0);
        let all = before + bytes.len();
        self.settle(bytes, all - held.min(all), out);
    }

    /// Finds what ends in `bytes`, which come after the pending ones. Up to `followed` a long secret has been followed.
    fn search(&mut self, bytes: &[u8], followed: usize) {
        let before = self.pending.len();
        self.found.clear();
        for (automaton, state) in &mut self.searches {
            let found = &mut self.found;
            automaton.scan(state, bytes, |end, length| found.push((before + end).saturating_sub(length)..before + end));
        }
        if self.found.is_empty() {
            return;
        }
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable_by_key(|hit| hit.end);
        if !self.secrets.known.long.is_empty() {
            self.follow_long_secrets(bytes, &mut found, followed);
            found.sort_unstable_by_key(|hit| hit.end);
        }
        found.drain(..).for_each(|hit| self.add(hit));
        self.found = found;
    }

    /// An occurrence that is an anchor of a long secret goes on as far as the secret does. In what has been followed all anchors are known.
    fn follow_long_secrets(&mut self, bytes: &[u8], found: &mut [Range<usize>], mut followed: usize) {
        let before = self.pending.len();
        let mut anchor = Vec::new();
        for hit in found {
            if hit.end <= followed {
                continue;
            }
            anchor.clear();
            copy(&self.pending, bytes, hit.clone(), &mut anchor);
            let mut following = Following::default();
            for long in &self.secrets.known.long {
                following.begin(long.places_behind(&anchor));
            }
            if !following.is_empty() {
                hit.end += following.follow(&bytes[hit.end - before..]);
                followed = hit.end;
                self.following.join(following);
            }
        }
    }

    /// An occurrence that overlaps the mask written last belongs to it; any other waits for its own. So does one of which a quiet moment
    /// showed the beginning behind that mask: without a mask in between, what was shown and what follows would join.
    fn add(&mut self, hit: Range<usize>) {
        self.hits.add(hit);
        if let [first] = self.hits.ranges.as_slice()
            && first.start < self.masked
            && self.released <= self.masked
        {
            self.masked = self.masked.max(first.end);
            self.hits.ranges.clear();
        }
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        self.pending.len() - self.written()
    }

    /// The stream was quiet for 50 ms: a held beginning of fewer than 4 bytes is released, so prompts appear. What follows is still
    /// masked if it completes the secret.
    pub fn quiet(&mut self, out: &mut Vec<u8>) {
        if self.pending.len() < SHOWN_WHEN_QUIET {
            out.extend_from_slice(&self.pending[self.written()..]);
            self.released = self.pending.len();
        }
    }

    /// The stream has ended: a held beginning of a secret is masked; one of fewer than 4 bytes is shown.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.pending.len() < SHOWN_WHEN_QUIET {
            return self.show(out);
        }
        if self.held() > 0 && self.masked == 0 {
            out.extend_from_slice(MASK.as_bytes());
        }
        self.start_again();
    }

    /// The text has ended and is whole: the beginning of a secret is none.
    pub(super) fn show(&mut self, out: &mut Vec<u8>) {
        self.settle(&[], self.pending.len(), out);
        self.start_again();
    }

    fn start_again(&mut self) {
        self.pending.clear();
        (self.released, self.masked) = (0, 0);
        self.hits.ranges.clear();
        self.following = Following::default();
        self.searches.iter_mut().for_each(|(automaton, state)| *state = automaton.start());
    }

    /// How many of the pending bytes have been shown or masked.
    fn written(&self) -> usize {
        self.released.max(self.masked)
    }

    /// Writes the first `decided` of the pending bytes and `bytes`, and keeps the rest as pending.
    fn settle(&mut self, bytes: &[u8], decided: usize, out: &mut Vec<u8>) {
        let mut written = self.written();
        let mut masks = 0;
        for hit in self.hits.ranges.iter().take_while(|hit| hit.start < decided) {
            copy(&self.pending, bytes, written..hit.start, out);
            out.extend_from_slice(MASK.as_bytes());
            (written, self.masked) = (hit.end, hit.end);
            masks += 1;
        }
        copy(&self.pending, bytes, written..decided, out);

        self.hits.ranges.drain(..masks);
        for hit in &mut self.hits.ranges {
            *hit = hit.start - decided..hit.end - decided;
        }
        self.released = self.released.saturating_sub(decided);
        self.masked = self.masked.saturating_sub(decided);
        match decided.checked_sub(self.pending.len()) {
            Some(skipped) => {
                self.pending.clear();
                self.pending.extend_from_slice(&bytes[skipped..]);
            }
            None => {
                self.pending.drain(..decided);
                self.pending.extend_from_slice(bytes);
            }
        }
    }
}

/// Appends a range of `head` followed by `tail`. Nothing for one that ends before it starts.
fn copy(head: &[u8], tail: &[u8], range: Range<usize>, out: &mut Vec<u8>) {
    if range.start < head.len().min(range.end) {
        out.extend_from_slice(&head[range.start..range.end.min(head.len())]);
    }
    let (start, end) = (range.start.saturating_sub(head.len()), range.end.saturating_sub(head.len()));
    if start < end {
        out.extend_from_slice(&tail[start..end]);
    }
}

/// Only how much is held back: nothing secret is ever printed.
impl fmt::Debug for StreamMasker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamMasker").field("secrets", &self.secrets).field("held", &self.held()).finish_non_exhaustive()
    }
}
