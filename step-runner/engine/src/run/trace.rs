//! The spans of a run: the result tree is the span tree. A span is named by its step and the seed alone, so nothing is kept per step.

use crate::run::{Run, Seed};
use step_model::result::StepId;
use step_model::trace::{SpanId, TraceContext, TraceId};

/// Streams of numbers, one per kind, so that one more id of one kind shifts no other.
const TRACES: u64 = 0x7472_6163_6500_0000;
const SPANS: u64 = 0x7370_616e_0000_0000;

/// The trace of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trace {
    id: TraceId,
    is_sampled: bool,
    seed: u64,
}

impl Trace {
    /// That of the caller, or one of our own.
    pub fn begin(seed: Seed, caller: Option<TraceContext>) -> Self {
        let own = || {
            let half = |number| u128::from(mixed(mixed(seed.0 ^ TRACES).wrapping_add(number)));
            TraceId::from_number(half(1) << 64 | half(2))
        };
        Self {
            id: caller.map_or_else(own, |caller| caller.trace),
            is_sampled: caller.is_none_or(|caller| caller.is_sampled),
            seed: mixed(seed.0 ^ SPANS),
        }
    }

    /// The span of a step. No two steps of a run share one.
    pub fn of(self, step: StepId) -> TraceContext {
        let span = SpanId::from_number(mixed(self.seed.wrapping_add(u64::from(step.0))));
        TraceContext { trace: self.id, span, is_sampled: self.is_sampled }
    }
}

impl Run {
    pub(super) fn trace_of(&self, step: StepId) -> TraceContext {
        self.trace.of(step)
    }
}

/// A permutation of all numbers of 64 bits (the finalizer of splitmix64): different numbers stay different.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_steps_share_a_span_and_no_two_seeds_a_trace() {
        let trace = Trace::begin(Seed(7), None);
        let spans: BTreeSet<_> = (0..10_000).map(|step| trace.of(StepId(step)).span).collect();
        assert_eq!(spans.len(), 10_000);
        let traces: BTreeSet<_> = (0..1_000).map(|seed| Trace::begin(Seed(seed), None).of(StepId::ROOT).trace).collect();
        assert_eq!(traces.len(), 1_000);
    }

    #[test]
    fn a_caller_shares_its_trace_and_whether_it_is_recorded() {
        let caller: TraceContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00".parse().unwrap();
        let step = Trace::begin(Seed(7), Some(caller)).of(StepId(3));
        assert_eq!((step.trace, step.is_sampled), (caller.trace, false));
        assert_ne!(step.span, caller.span);
        assert!(Trace::begin(Seed(7), None).of(StepId(3)).is_sampled);
    }
}
