//! One automaton for many forms: a byte at a time, it knows which forms end here, and how much of one may have begun.
//!
//! Secrets that are born while a job runs would have it built anew each time, a cost that grows with the square of their number. So there
//! are several once they are large, each at least four times the size of the next: a form is moved into a larger one only a few times.
//!
//! The search is of the standard kind, not leftmost-longest: its state then stands for the longest end of the text that begins a form,
//! so what must be held back is the depth of the state, exactly. Overlapping occurrences are joined by the caller.
//!
//! In the start state nothing has begun, and a filter tells how far nothing will: the automaton is then not asked. So its states, and all that it
//! finds, are the same as without.

use super::filter::Filter;
use aho_corasick::automaton::Automaton as Steps;
use aho_corasick::automaton::StateID;
use aho_corasick::{Anchored, MatchKind, StartKind, dfa, nfa::contiguous};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// A dense table is fastest (half a gigabyte a second) but grows by half a kilobyte per byte of a form; above this size the compact
/// automaton is used, which needs a few bytes instead.
const DENSE_LIMIT: usize = 2 << 20;

/// Automata of together this many bytes of forms are made into one: that takes some two milliseconds.
const SMALL: usize = 16 << 10;
/// No automaton is made of more: building one needs some forty bytes of memory for each.
const LARGE: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct Automaton {
    forms: BTreeSet<Vec<u8>>,
    /// Bytes of all forms.
    size: usize,
    search: Search,
    /// `None`: it would rule out too little.
    filter: Option<Filter>,
    start: StateID,
    /// How many bytes of a form each state stands for, sorted by state. The start is not in it.
    depths: Vec<(StateID, u32)>,
}

#[derive(Debug)]
enum Search {
    Dense(dfa::DFA),
    Compact(contiguous::NFA),
}

/// Automata for the forms of these and for `young` ones, the larger ones first.
pub(super) fn with(automata: &[Arc<Automaton>], young: &BTreeSet<Vec<u8>>) -> Vec<Arc<Automaton>> {
    let mut automata = automata.to_vec();
    if young.is_empty() {
        return automata;
    }
    let mut forms = young.clone();
    let mut size: usize = forms.iter().map(Vec::len).sum();
    while let Some(last) = automata.pop_if(|last| {
        let together = last.size + size;
        together <= LARGE && (together <= SMALL || last.size < size * 4)
    }) {
        forms.extend(last.forms.iter().cloned());
        size = forms.iter().map(Vec::len).sum();
    }
    automata.push(Arc::new(Automaton::of(forms, size)));
    automata
}

impl Automaton {
    /// # Panics
    /// There are more forms than can be numbered: 2^31 bytes of them, far beyond what one secret has and what is made into one.
    fn of(forms: BTreeSet<Vec<u8>>, size: usize) -> Self {
        let search = Search::of(&forms);
        let (start, mut depths) = match &search {
            Search::Dense(dfa) => depths(dfa, &forms),
            Search::Compact(nfa) => depths(nfa, &forms),
        };
        depths.sort_unstable();
        depths.dedup();
        let filter = Filter::of(&forms);
        Self { forms, size, search, filter, start, depths }
    }

    #[cfg(test)]
    pub(super) fn forms(&self) -> &BTreeSet<Vec<u8>> {
        &self.forms
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
            Search::Dense(dfa) => self.scan_with(dfa, state, bytes, hit),
            Search::Compact(nfa) => self.scan_with(nfa, state, bytes, hit),
        }
    }

    fn scan_with(&self, search: &impl Steps, state: &mut StateID, bytes: &[u8], mut hit: impl FnMut(usize, usize)) {
        let Some(filter) = &self.filter else {
            *state = scan(search, *state, bytes, 0..bytes.len(), None, &mut hit).1;
            return;
        };
        let mut at = 0;
        while at < bytes.len() {
            let mut until = at;
            if *state == self.start {
                let skipped = filter.skip(bytes, at);
                (at, until) = (skipped.begin, skipped.until);
            }
            (at, *state) = scan(search, *state, bytes, at..until, Some(self.start), &mut hit);
        }
    }
}

impl Search {
    fn of(forms: &BTreeSet<Vec<u8>>) -> Self {
        const NUMBERED: &str = "less than 2^31 bytes of forms in one automaton";
        if dense_size(forms) <= DENSE_LIMIT {
            let mut builder = dfa::DFA::builder();
            builder.match_kind(MatchKind::Standard).start_kind(StartKind::Unanchored).prefilter(false);
            return Self::Dense(builder.build(forms).expect(NUMBERED));
        }
        let mut builder = contiguous::NFA::builder();
        builder.match_kind(MatchKind::Standard).prefilter(false);
        Self::Compact(builder.build(forms).expect(NUMBERED))
    }
}

/// Known before anything is built: a row of the table for each byte of each form, counting common beginnings once.
fn dense_size(forms: &BTreeSet<Vec<u8>>) -> usize {
    let mut seen = [false; 256];
    let mut states = 2;
    let mut before: &[u8] = &[];
    for form in forms {
        form.iter().for_each(|byte| seen[usize::from(*byte)] = true);
        states += form.len() - before.iter().zip(form).take_while(|(one, other)| one == other).count();
        before = form;
    }
    let classes = seen.iter().filter(|seen| **seen).count() + 2;
    states.saturating_mul(classes.next_power_of_two() * size_of::<u32>())
}

/// The start, and the depths of all other states: a form read from the start leads through the states of its own beginnings.
fn depths(search: &impl Steps, forms: &BTreeSet<Vec<u8>>) -> (StateID, Vec<(StateID, u32)>) {
    let start = search.start_state(Anchored::No).expect("built for searches that are not anchored");
    let mut depths = Vec::new();
    for form in forms {
        let mut state = start;
        for (depth, byte) in (1..).zip(form) {
            state = search.next_state(Anchored::No, state, *byte);
            depths.push((state, depth));
        }
    }
    (start, depths)
}

/// Reads the bytes of `range`, and those behind it until it is in state `rest`. Returns where it stopped, and in which state.
fn scan(
    search: &impl Steps,
    mut state: StateID,
    bytes: &[u8],
    range: Range<usize>,
    rest: Option<StateID>,
    hit: &mut impl FnMut(usize, usize),
) -> (usize, StateID) {
    let mut at = range.start;
    for byte in &bytes[range.start..] {
        if at >= range.end && rest == Some(state) {
            break;
        }
        state = search.next_state(Anchored::No, state, *byte);
        at += 1;
        if search.is_special(state) && search.is_match(state) {
            let longest = (0..search.match_len(state)).map(|index| search.pattern_len(search.match_pattern(state, index))).max();
            hit(at, longest.unwrap_or(0));
        }
    }
    (at, state)
}
