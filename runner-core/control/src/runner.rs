//! One entry of the configuration at work: its polls, its queue, its environments.

use crate::concurrency::RequestConcurrency;
use crate::fleet::Fleet;
use crate::health::ServerHealth;
use crate::id::{EffectId, JobId};
use crate::settings::{RunnerSettings, Shape};
use crate::taskscaler::policy::Scaling;
use crate::taskscaler::required::{Figures, Limits};
use std::collections::{BTreeMap, BTreeSet};
use step_model::time::{Deadline, Now};

#[derive(Debug)]
pub(crate) struct Runner {
    pub settings: RunnerSettings,
    pub intake: Intake,
    /// Jobs that wait for a slot, the earliest first.
    pub queue: BTreeMap<u64, JobId>,
    /// Jobs that are not over.
    pub jobs: u32,
    pub fleet: Fleet,
    /// Jobs that are known to come and are not ready to run, and until when that is believed.
    pub announced: u32,
    pub announced_until: Option<Deadline>,
    /// The configuration no longer has it: it takes nothing and goes when its last job has gone.
    pub is_removed: bool,
    /// It waits in line for `concurrent`.
    pub is_hungry: bool,
    /// Until then it takes no job before everything that was found at the start is settled.
    pub settle_by: Deadline,
}

#[derive(Debug)]
pub(crate) struct Intake {
    pub open: BTreeSet<EffectId>,
    pub concurrency: RequestConcurrency,
    pub health: ServerHealth,
    /// When it is polled again though there may be nothing. `None`: it is due.
    pub next: Option<Deadline>,
    /// The last poll brought a job: there may be more, and no pause is kept.
    pub is_flowing: bool,
    /// Polls in a row that did not reach the server.
    pub failures: u32,
    pub trouble: Option<String>,
}

/// What holds back the next poll of a runner, in the order in which it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldBack {
    /// The process is ending, or leaving.
    Ending,
    /// The configuration has no such runner any more.
    Removed,
    /// The entry cannot work.
    Refused { why: String },
    /// Its environments of before are being looked for.
    Recovering,
    /// The server refused it several times.
    Unhealthy { reason: String },
    /// `check_interval`, or the server was not reached.
    Pause { trouble: Option<String> },
    /// `limit`: so many jobs and open polls are allowed.
    Limit { limit: u32 },
    /// So many polls may be open.
    RequestConcurrency { allowed: u32 },
    /// No environment has, or can get, a place for one more job.
    Capacity { trouble: Option<String> },
    /// `concurrent`, over all runners.
    Concurrent { concurrent: u32 },
}

impl Runner {
    pub fn new(settings: RunnerSettings, next: Option<Deadline>, settle_by: Deadline) -> Self {
        Self {
            settings,
            intake: Intake {
                open: BTreeSet::new(),
                concurrency: RequestConcurrency::default(),
                health: ServerHealth::default(),
                next,
                is_flowing: false,
                failures: 0,
                trouble: None,
            },
            queue: BTreeMap::new(),
            jobs: 0,
            fleet: Fleet::default(),
            announced: 0,
            announced_until: None,
            is_removed: false,
            is_hungry: false,
            settle_by,
        }
    }

    /// Nothing of it is left.
    pub fn is_over(&self) -> bool {
        self.is_removed && self.jobs == 0 && self.intake.open.is_empty() && self.fleet.is_empty() && self.fleet.asked_for.is_empty()
    }

    /// Polls that are open.
    pub fn open(&self) -> u32 {
        u32::try_from(self.intake.open.len()).unwrap_or(u32::MAX)
    }

    /// Jobs that could still be given a place, above those that wait for one and the polls that may bring one.
    pub fn spare_capacity(&self) -> u32 {
        let environments = &self.settings.environments;
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        let (places, taken) = match environments.shape {
            Shape::Group => {
                let counts = self.fleet.counts;
                let possible = if self.only_when_ready() { 0 } else { counts.coming.saturating_add(self.possible()) };
                (counts.free.saturating_add(possible), waiting)
            }
            // What is there belongs to a job; each that waits without one will make one more.
            Shape::PerJob => {
                let places = environments.max_instances.saturating_sub(self.fleet.len());
                (if self.fleet.is_refused() { 0 } else { places }, waiting.saturating_sub(self.fleet.counts.awaited))
            }
        };
        let spare = places.saturating_sub(taken).saturating_sub(self.open());
        spare.min(self.reservable(waiting).saturating_sub(self.open()))
    }

    /// Polls that may be open while slots are idle: those of one instance are left free, so that the polls of an empty runner do not hold them all.
    fn reservable(&self, waiting: u32) -> u32 {
        let environments = &self.settings.environments;
        let is_throttled = matches!(&environments.scaling, Scaling::Slots(slots) if slots.reservation_throttling);
        let idle = self.fleet.counts.free.saturating_sub(waiting);
        if is_throttled && idle > 0 { idle.saturating_sub(environments.capacity()).max(1) } else { u32::MAX }
    }

    /// Whether jobs are taken only where something that is ready waits for them.
    fn only_when_ready(&self) -> bool {
        match self.fleet.scaler.current() {
            Some(target) => target.is_preemptive(),
            None => self.settings.environments.only_when_ready,
        }
    }

    /// What is counted before it is decided how many instances there should be.
    pub fn figures(&self) -> Figures {
        let (counts, requested) = (self.fleet.counts, self.fleet.requested);
        Figures {
            instances: counts.live.saturating_add(requested),
            total: self.fleet.len().saturating_add(requested),
            creating: counts.creating.saturating_add(requested),
            in_use: counts.in_use,
            acquired: counts.acquired,
            unavailable: counts.unavailable,
            pending: u32::try_from(self.queue.len()).unwrap_or(u32::MAX),
            announced: self.announced,
        }
    }

    pub fn limits(&self) -> Limits {
        let environments = &self.settings.environments;
        let growth = match &environments.scaling {
            Scaling::Machines(machines) => machines.max_growth_rate.unwrap_or(u32::MAX),
            Scaling::Fixed | Scaling::Slots(_) => u32::MAX,
        };
        Limits { capacity: environments.capacity(), most: environments.max_instances, growth }
    }

    /// Places of instances that have been or can be asked for. None while the provider refuses.
    fn possible(&self) -> u32 {
        let environments = &self.settings.environments;
        let room = environments.max_instances.saturating_sub(self.fleet.len()).saturating_sub(self.fleet.requested);
        // Some of those that an open request is about may be listed already.
        let asked = self.fleet.increasing.min(self.fleet.requested);
        let growth = self.limits().growth.saturating_sub(self.fleet.counts.creating).saturating_sub(self.fleet.requested);
        let room = if self.fleet.is_on_trial() { room.min(growth).min(1) } else { room.min(growth) };
        let hoped = if self.fleet.is_refused() { 0 } else { asked.saturating_add(room) };
        let instances = (self.fleet.requested - asked).saturating_add(hoped);
        instances.saturating_mul(environments.capacity().min(environments.uses()))
    }

    /// Whether what was found at the start is still being looked for.
    pub fn is_recovering(&self, now: Now) -> bool {
        let is_settled = self.fleet.is_known && self.fleet.unsettled.is_empty();
        !is_settled && !self.settle_by.has_passed(now)
    }

    pub fn due(&self, now: Now) -> Option<Deadline> {
        let later = |deadline: &Deadline| !deadline.has_passed(now);
        let fleet = &self.fleet;
        [
            self.intake.next,
            self.intake.health.due(),
            fleet.increase.due(),
            fleet.update.due(),
            fleet.decrease.due(),
            fleet.requested_until,
            fleet.scale_at,
            self.announced_until,
            self.is_recovering(now).then_some(self.settle_by),
        ]
        .into_iter()
        .flatten()
        .filter(later)
        .min()
    }
}
