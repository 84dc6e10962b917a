//! Masks a stream of bytes as it comes, in pieces of any size.

use super::automaton::Automaton;
use super::{Hits, MASK, Secrets};
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
    /// `None`: there is nothing to mask.
    automaton: Option<Arc<Automaton>>,
    state: StateID,
    pending: Vec<u8>,
    /// How many of the pending bytes were shown by [`StreamMasker::quiet`].
    released: usize,
    /// How many of the pending bytes a mask stands for that has been written.
    masked: usize,
    /// Occurrences in the pending bytes whose masks have not been written.
    hits: Hits,
}

impl StreamMasker {
    pub fn new(secrets: &Secrets) -> Self {
        let mut masker = Self {
            secrets: secrets.clone(),
            automaton: None,
            state: StateID::default(),
            pending: Vec::new(),
            released: 0,
            masked: 0,
            hits: Hits::default(),
        };
        masker.use_automaton();
        masker
    }

    /// Takes newly known secrets into account, also for what is held back.
    pub fn update(&mut self, secrets: &Secrets) {
        if Arc::ptr_eq(&self.secrets.known, &secrets.known) {
            return;
        }
        self.secrets = secrets.clone();
        self.use_automaton();
    }

    fn use_automaton(&mut self) {
        self.automaton = self.secrets.automaton().cloned();
        let Some(automaton) = &self.automaton else { return };
        self.state = automaton.start();
        let (hits, masked) = (&mut self.hits, &mut self.masked);
        automaton.scan(&mut self.state, &self.pending, |end, length| add(hits, masked, end.saturating_sub(length)..end));
    }

    /// Appends to `out` what can be said for sure after `bytes`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let before = self.pending.len();
        let all = before + bytes.len();
        let Some(automaton) = &self.automaton else {
            self.settle(bytes, all, out);
            return;
        };
        let (hits, masked) = (&mut self.hits, &mut self.masked);
        automaton.scan(&mut self.state, bytes, |end, length| add(hits, masked, (before + end).saturating_sub(length)..before + end));
        // No form that ends later can begin before this.
        let decided = all - automaton.depth(self.state).min(all);
        self.settle(bytes, decided, out);
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
        let held = self.written()..self.pending.len();
        if self.pending.len() < SHOWN_WHEN_QUIET {
            out.extend_from_slice(&self.pending[held]);
        } else if !held.is_empty() && self.masked == 0 {
            out.extend_from_slice(MASK.as_bytes());
        }
        self.pending.clear();
        (self.released, self.masked) = (0, 0);
        self.hits.ranges.clear();
        if let Some(automaton) = &self.automaton {
            self.state = automaton.start();
        }
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

/// An occurrence that overlaps the mask written last belongs to it; any other waits for its own.
fn add(hits: &mut Hits, masked: &mut usize, hit: Range<usize>) {
    hits.add(hit);
    if let [first] = hits.ranges.as_slice()
        && first.start < *masked
    {
        *masked = (*masked).max(first.end);
        hits.ranges.clear();
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
