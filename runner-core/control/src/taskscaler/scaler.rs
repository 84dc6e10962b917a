//! What one group remembers between two decisions: which policy counts and until when, how fast it grew, and what failed.

use super::policy::{ScaleThrottle, Scaling, Target};
use super::throttle::Bucket;
use std::time::Duration;
use step_model::time::{Deadline, Now, Timestamp};

/// A burst of jobs is answered by one request for instances and not by one for each of them.
pub const SETTLE: Duration = Duration::from_millis(100);
/// After an instance that never became usable, the next is asked for so much later, and twice as much after each further one.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Clone, Default)]
pub struct Scaler {
    active: Option<Active>,
    bucket: Bucket,
    /// Instances in a row that never became usable.
    failures: u32,
    rest_until: Option<Deadline>,
    /// When a demand that has just begun is looked at.
    settles_at: Option<Deadline>,
}

#[derive(Debug, Clone)]
struct Active {
    target: Target,
    from: Timestamp,
    until: Timestamp,
}

impl Scaler {
    /// The policy that counts now. `None`: the number is fixed. Looked up again when the clock has left the time for which it holds, in either direction.
    pub fn target(&mut self, scaling: &Scaling, now: Now) -> Option<&Target> {
        let holds = self.active.as_ref().is_some_and(|active| (active.from..active.until).contains(&now.wall));
        if !holds {
            self.active = scaling.target(now.wall).map(|(target, until)| Active { target, from: now.wall, until });
        }
        self.current()
    }

    /// As it was last looked up.
    pub fn current(&self) -> Option<&Target> {
        self.active.as_ref().map(|active| &active.target)
    }

    /// Other settings hold from now on.
    pub fn reconfigured(&mut self) {
        self.active = None;
    }

    /// How many of these may be asked for now. Whatever is held back is due later.
    pub fn grow(&mut self, wanted: u32, throttle: ScaleThrottle, now: Now) -> u32 {
        if wanted == 0 {
            self.settles_at = None;
            return 0;
        }
        let settles_at = *self.settles_at.get_or_insert(Deadline::after(now, SETTLE));
        let is_resting = self.rest_until.is_some_and(|deadline| !deadline.has_passed(now));
        if is_resting || !settles_at.has_passed(now) {
            return 0;
        }
        // One is enough to see whether it works again.
        let wanted = if self.failures > 0 { 1 } else { wanted };
        wanted.min(self.bucket.level(throttle, now))
    }

    /// So many were asked for.
    pub fn asked(&mut self, count: u32, throttle: ScaleThrottle, now: Now) {
        self.bucket.take(count, throttle, now);
        self.settles_at = None;
        if self.failures > 0 {
            // The one that tries it out has a whole pause to become usable.
            self.rest_until = Some(Deadline::after(now, self.rest()));
        }
    }

    /// An instance never became usable.
    pub fn failed(&mut self, now: Now) {
        self.failures = self.failures.saturating_add(1);
        self.rest_until = Some(Deadline::after(now, self.rest()));
    }

    /// An instance became usable.
    pub fn succeeded(&mut self) {
        self.failures = 0;
        self.rest_until = None;
    }

    /// Instances never became usable: until when no other is tried.
    pub fn rests_until(&self, now: Now) -> Option<Deadline> {
        self.rest_until.filter(|deadline| self.failures > 0 && !deadline.has_passed(now))
    }

    /// When the throttle lets the next one through. `None`: it does now.
    pub fn throttled_until(&self, throttle: ScaleThrottle, now: Now) -> Option<Deadline> {
        self.bucket.due(throttle, now)
    }

    fn rest(&self) -> Duration {
        2_u32.checked_pow(self.failures.saturating_sub(1)).map_or(LONGEST_REST, |factor| (FIRST_REST * factor.min(1_000)).min(LONGEST_REST))
    }

    /// When something changes here by itself: `is_held`: something is wanted that was not asked for.
    pub fn due(&self, is_held: bool, throttle: ScaleThrottle, now: Now) -> Option<Deadline> {
        let held = [self.settles_at, self.rest_until, self.bucket.due(throttle, now)].into_iter().flatten();
        // What holds back longest says when it may go on.
        let held = held.filter(|deadline| !deadline.has_passed(now)).max().filter(|_| is_held);
        let changes = self.active.as_ref().map(|active| Deadline::after(now, active.until.since(now.wall)));
        held.into_iter().chain(changes).min()
    }
}

impl Scaling {
    /// How fast the group may grow. Machines have a growth rate of their own.
    pub fn throttle(&self) -> ScaleThrottle {
        match self {
            Self::Slots(slots) => slots.throttle,
            Self::Fixed | Self::Machines(_) => ScaleThrottle::Unlimited,
        }
    }
}
