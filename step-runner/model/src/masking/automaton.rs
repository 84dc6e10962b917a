//! One automaton for all forms of all secrets: a byte at a time, it knows which forms end here, and how much of one may have begun.
//!
//! The search is of the standard kind, not leftmost-longest: its state then stands for the longest end of the text that begins a form,
//! so what must be held back is the depth of the state, exactly. Overlapping occurrences are joined by the caller.

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::{Anchored, MatchKind, StartKind, dfa, nfa::contiguous};
use std::collections::BTreeSet;

/// A dense table is fastest (half a gigabyte a second) but grows by half a kilobyte per byte of a form; above this size the compact
/// automaton is used, which needs a few bytes instead.
const DENSE_LIMIT: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct Automaton {
    search: Search,
    start: StateID,
    /// How many bytes of a form each state stands for, sorted by state. The start is not in it.
    depths: Vec<(StateID, u32)>,
}

#[derive(Debug)]
enum Search {
    Dense(dfa::DFA),
    Compact(contiguous::NFA),
}

impl Automaton {
    /// `None` when there are no forms, or more than can be numbered (2^31 bytes).
    pub(super) fn of(forms: &BTreeSet<Vec<u8>>) -> Option<Self> {
        if forms.is_empty() {
            return None;
        }
        let search = Search::of(forms)?;
        let start = match &search {
            Search::Dense(dfa) => dfa.start_state(Anchored::No),
            Search::Compact(nfa) => nfa.start_state(Anchored::No),
        }
        .ok()?;
        let mut depths = match &search {
            Search::Dense(dfa) => depths(dfa, start, forms),
            Search::Compact(nfa) => depths(nfa, start, forms),
        };
        depths.sort_unstable();
        depths.dedup();
        Some(Self { search, start, depths })
    }

    pub(super) fn start(&self) -> StateID {
        self.start
    }

    /// How many of the last bytes may be the beginning of a form.
    pub(super) fn depth(&self, state: StateID) -> usize {
        self.depths.binary_search_by_key(&state, |(state, _)| *state).map_or(0, |at| self.depths[at].1 as usize)
    }

    /// Reads `bytes` and calls `hit` with the end (in `bytes`) and the length of the longest form that ends there.
    pub(super) fn scan(&self, state: &mut StateID, bytes: &[u8], hit: impl FnMut(usize, usize)) {
        match &self.search {
            Search::Dense(dfa) => scan(dfa, state, bytes, hit),
            Search::Compact(nfa) => scan(nfa, state, bytes, hit),
        }
    }
}

impl Search {
    fn of(forms: &BTreeSet<Vec<u8>>) -> Option<Self> {
        if dense_size(forms) <= DENSE_LIMIT {
            let mut builder = dfa::DFA::builder();
            builder.match_kind(MatchKind::Standard).start_kind(StartKind::Unanchored).prefilter(false);
            return builder.build(forms).ok().map(Self::Dense);
        }
        let mut builder = contiguous::NFA::builder();
        builder.match_kind(MatchKind::Standard).prefilter(false);
        builder.build(forms).ok().map(Self::Compact)
    }
}

/// An upper bound, known before anything is built: a row of the table for each byte of each form.
fn dense_size(forms: &BTreeSet<Vec<u8>>) -> usize {
    let mut seen = [false; 256];
    forms.iter().flatten().for_each(|byte| seen[usize::from(*byte)] = true);
    let classes = seen.iter().filter(|seen| **seen).count() + 2;
    let states: usize = forms.iter().map(Vec::len).sum();
    states.saturating_mul(classes.next_power_of_two() * size_of::<u32>())
}

/// A form read from the start leads through the states of its own beginnings.
fn depths(search: &impl aho_corasick::automaton::Automaton, start: StateID, forms: &BTreeSet<Vec<u8>>) -> Vec<(StateID, u32)> {
    let mut depths = Vec::new();
    for form in forms {
        let mut state = start;
        for (depth, byte) in (1..).zip(form) {
            state = search.next_state(Anchored::No, state, *byte);
            depths.push((state, depth));
        }
    }
    depths
}

fn scan(search: &impl aho_corasick::automaton::Automaton, state: &mut StateID, bytes: &[u8], mut hit: impl FnMut(usize, usize)) {
    let mut current = *state;
    for (at, byte) in bytes.iter().enumerate() {
        current = search.next_state(Anchored::No, current, *byte);
        if search.is_special(current) && search.is_match(current) {
            let longest = (0..search.match_len(current)).map(|index| search.pattern_len(search.match_pattern(current, index))).max();
            hit(at + 1, longest.unwrap_or(0));
        }
    }
    *state = current;
}
