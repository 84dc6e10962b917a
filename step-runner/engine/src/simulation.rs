//! Random jobs in a random world: steps nest, fail, delegate, time out and are cancelled; outcomes come late, twice, or for nobody. The invariants
//! hold after every event, and every job ends.
//!
//! A failure prints its seed; `SIM_SEED=21 cargo test -p step-engine simulation` plays it again, and prints every event.

#![expect(clippy::disallowed_macros, reason = "a simulation that fails says how to see it again; the crate prints nothing")]

mod host;
mod job;

use crate::effect::Effect;
use crate::event::Event;
use crate::invariants::Watch;
use crate::run::{Run, Seed};
use crate::world::at;
use host::Host;
use std::sync::Arc;
use step_model::document::{AllowFailure, Body, Step, When};
use step_model::result::{FailureKind, ResultTree, Status, StepId};

/// SplitMix64 (Steele, Lea and Flood 2014): small, and every seed is as good as any other.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From zero to below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// What happened over many seeds: a simulation that never meets a case proves nothing about it.
#[derive(Debug, Default)]
struct Tally {
    steps: u64,
    events: u64,
    success: u64,
    failure: u64,
    cancelled: u64,
    timeout: u64,
    kills: u64,
    loads: u64,
    allowed: u64,
}

/// Says which seed to type when a test ends badly.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to see it again: SIM_SEED={} cargo test -p step-engine simulation -- --nocapture", self.0);
        }
    }
}

fn simulate(seed: u64, is_replay: bool, tally: &mut Tally) {
    let _guard = SeedOnPanic(seed);
    let mut dice = Dice::new(seed);
    let plan = job::plan(&mut dice);
    let mut host = Host::new(u64::try_from(plan.grace_period.as_millis()).unwrap(), &mut dice);
    let mut asked = Asked::default();
    let mut watch = Watch::default();
    let (mut run, effects) = Run::start(plan, Seed(seed), at(0));
    watch.check(&run, &effects);
    host.carry_out(&run, effects, 0, &mut dice);
    let mut events = 0;
    while let Some((now, event)) = host.next_event(&run, &mut dice) {
        if is_replay {
            println!("{now:>6} {event:?}");
        }
        asked.note(&event);
        let is_stale = host.is_stale(&event) && run.next_deadline().is_none_or(|deadline| !deadline.has_passed(host::moment(now)));
        let effects = run.on(event, host::moment(now));
        assert!(!is_stale || effects.is_empty(), "an outcome that nobody waits for changes nothing: {effects:?}");
        asked.check(&run, &effects);
        if is_replay {
            effects.iter().for_each(|effect| println!("       -> {effect:?}"));
        }
        watch.check(&run, &effects);
        host.carry_out(&run, effects, now, &mut dice);
        events += 1;
        assert!(events < 100_000, "the job ends");
    }
    assert!(run.is_finished(), "nothing will happen any more, and the job has not ended");
    assert_eq!(host.alive(), 0, "no process is left");
    watch.check_tree(&run);
    assert_eq!(run.on(Event::Cancel, at(1_000_000)), [], "nothing happens after the end");
    check_outcome(&run);
    tally.events += events;
    tally.kills += host.kills;
    tally.loads += host.loads;
    count(&run, tally);
}

/// What somebody asked for, and what must not happen any more.
#[derive(Default)]
struct Asked {
    end: bool,
    end_of_everything: bool,
}

impl Asked {
    fn note(&mut self, event: &Event) {
        self.end |= matches!(event, Event::Cancel);
        self.end_of_everything |= matches!(event, Event::CancelNow | Event::LogFailed { .. });
    }

    fn check(&self, run: &Run, effects: &[Effect]) {
        for effect in effects {
            let Effect::Started { step } = effect else { continue };
            if came_back(run, *step) {
                continue;
            }
            assert!(!self.end_of_everything, "{step:?} begins after the end of everything");
            assert!(!self.end || self.always_runs(run, *step), "{step:?} begins after a cancel");
        }
    }

    /// The step, or one that it stands in, runs whatever happens.
    fn always_runs(&self, run: &Run, mut id: StepId) -> bool {
        let tree = run.result();
        loop {
            let is_always = tree.node(id).step.is_some_and(|step| step.when == When::Always);
            match tree.headline(id).parent {
                _ if is_always => return true,
                Some(parent) => id = parent,
                None => return false,
            }
        }
    }
}

/// Whether a step ran in another environment: it stands below one that is a process.
fn came_back(run: &Run, mut id: StepId) -> bool {
    let tree = run.result();
    while let Some(parent) = tree.headline(id).parent {
        if tree.node(parent).exec.is_some() {
            return true;
        }
        id = parent;
    }
    false
}

/// A job succeeds when every failure in it was allowed, and only then.
fn check_outcome(run: &Run) {
    let tree = run.result();
    let mut open = vec![(StepId::ROOT, false)];
    while let Some((id, excused)) = open.pop() {
        let headline = tree.headline(id);
        if let Some(failure) = &headline.failure {
            assert!(!headline.allowed_to_fail || !matches!(failure.kind, FailureKind::Cancelled | FailureKind::Internal));
            let excused = excused || headline.allowed_to_fail;
            assert!(excused || run.status() != Status::Success, "{id:?} failed, nobody allowed it, and the job succeeded");
        }
        let excused = excused || headline.allowed_to_fail;
        open.extend(tree.children(id).into_iter().map(|child| (child, excused)));
        let node = tree.node(id);
        assert_eq!(node.status, headline.status);
        if let (Status::Success, Some(document)) = (node.status, &node.document)
            && let Body::Sequence(sequence) = &document.definition.body
        {
            let children = tree.children(id);
            let ran = |step: &Arc<Step>| children.iter().any(|child| tree.node(*child).step.is_some_and(|ran| Arc::ptr_eq(&ran, step)));
            let needed = |step: &&Arc<Step>| step.when != When::OnFailure && step.allow_failure == AllowFailure::No;
            assert!(sequence.steps.iter().filter(needed).all(ran), "{id:?} succeeded without one of its steps");
        }
    }
    if let Some(step) = run.failed_step() {
        assert!(tree.headline(step).failure.is_some(), "the step that failed the job failed");
    }
}

fn count(run: &Run, tally: &mut Tally) {
    let tree = run.result();
    let mut open = vec![StepId::ROOT];
    while let Some(id) = open.pop() {
        tally.steps += 1;
        tally.allowed += u64::from(tree.headline(id).allowed_to_fail);
        open.extend(tree.children(id));
    }
    match (run.status(), run.failure().map(|failure| failure.kind)) {
        (Status::Success, _) => tally.success += 1,
        (Status::Cancelled, _) => tally.cancelled += 1,
        (_, Some(FailureKind::Timeout)) => tally.timeout += 1,
        _ => tally.failure += 1,
    }
}

#[test]
fn the_invariants_hold_in_ten_thousand_random_jobs() {
    let mut tally = Tally::default();
    // Known when this is compiled: a pure crate does not look at its environment, and cargo builds anew when the variable changes.
    if let Some(seed) = option_env!("SIM_SEED") {
        return simulate(seed.parse().expect("SIM_SEED is a number"), true, &mut tally);
    }
    for seed in 0..10_000 {
        simulate(seed, false, &mut tally);
    }
    println!("{tally:?}");
    for (what, count) in [
        ("success", tally.success),
        ("failure", tally.failure),
        ("cancelled", tally.cancelled),
        ("timeout", tally.timeout),
        ("kills", tally.kills),
        ("loads", tally.loads),
        ("allowed", tally.allowed),
    ] {
        assert!(count >= 300, "{what} happened {count} times only: the simulation does not look there");
    }
}

/// A host that keeps no promise at all.
#[test]
fn any_event_at_any_time_is_legal() {
    for seed in 0..5_000 {
        let _guard = SeedOnPanic(seed);
        let mut dice = Dice::new(seed);
        let mut watch = Watch::default();
        let (mut run, effects) = Run::start(job::plan(&mut dice), Seed(seed), at(0));
        watch.check(&run, &effects);
        let mut now = 0;
        for _ in 0..60 {
            now += dice.below(3_000);
            let effects = run.on(host::any_event(&mut dice), host::moment(now));
            watch.check(&run, &effects);
        }
        if run.is_finished() {
            watch.check_tree(&run);
        }
    }
}
