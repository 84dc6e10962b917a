//! What an operator chose: how much is kept idle, when, and how fast a group may grow.

use super::schedule::{self, NamedZone, Schedule};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use step_model::time::Timestamp;

/// How many instances a group has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// As many as there may be, all the time.
    Fixed,
    /// As `[[runners.autoscaler.policy]]` says: idle slots for jobs.
    Slots(SlotScaling),
    /// As `[runners.machine]` says: idle machines.
    Machines(MachineScaling),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotScaling {
    /// The last that matches counts. None matching: nothing is kept idle.
    pub policies: Vec<Policy>,
    pub throttle: ScaleThrottle,
    /// While slots are idle, reservations leave those of one instance free.
    pub reservation_throttling: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineScaling {
    /// What counts while no period matches.
    pub idle: IdleFigures,
    /// The last that matches counts.
    pub periods: Vec<MachinePeriod>,
    /// Machines that are being made at once. `None`: any number.
    pub max_growth_rate: Option<u32>,
}

/// A bucket of tokens, full at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleThrottle {
    Unlimited,
    Limited {
        /// Instances a second.
        limit: u64,
        /// Instances at once.
        burst: u64,
    },
}

/// How many idle slots there are while one of the periods matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub schedule: Schedule,
    /// Jobs that find a free slot at once.
    pub idle_count: u64,
    pub idle_time: Duration,
    /// Idle slots for each busy one, where that is more than `idle_count`.
    pub scale_factor: f64,
    /// Most idle slots by the factor. `None`: any number.
    pub scale_factor_limit: Option<u64>,
    /// Jobs are asked for only when a slot is free now.
    pub preemptive_mode: bool,
}

/// How many machines are idle, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IdleFigures {
    pub count: u64,
    /// Idle machines for each busy one, at most `count`. 0: always `count`.
    pub scale_factor: f64,
    /// Least idle machines where there is a factor.
    pub count_min: u64,
    pub time: Duration,
}

/// Other figures for a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachinePeriod {
    pub schedule: Schedule,
    pub kind: PeriodKind,
    pub idle: IdleFigures,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeriodKind {
    /// `[[runners.machine.autoscaling]]`
    Autoscaling,
    /// `OffPeakPeriods`
    OffPeak,
}

/// What counts at one moment.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    Slots(Policy),
    Machines(IdleFigures),
}

/// What counts while no policy matches, as in the Kubernetes executor of GitLab's runner 19.4 (`pause_pod_manager.go`).
const IDLE_TIME: Duration = Duration::from_secs(5 * 60);

impl Policy {
    /// Nothing is kept idle: instances are made for jobs, and stay a while.
    pub fn on_demand() -> Self {
        Self {
            schedule: Schedule::always(),
            idle_count: 0,
            idle_time: IDLE_TIME,
            scale_factor: 0.0,
            scale_factor_limit: None,
            preemptive_mode: false,
        }
    }

    /// Idle slots that are wanted beside so many busy ones. `idle_count` is the least, also above the limit of the factor.
    pub fn idle_beside(&self, busy: u64) -> u64 {
        if self.scale_factor <= 0.0 {
            return self.idle_count;
        }
        let scaled = scaled(busy, self.scale_factor, f64::ceil);
        self.idle_count.max(self.scale_factor_limit.map_or(scaled, |limit| scaled.min(limit)))
    }
}

impl IdleFigures {
    /// Idle machines that are wanted beside so many busy ones: runner documentation, autoscaling with a factor.
    pub fn idle_beside(&self, busy: u64) -> u64 {
        if self.scale_factor <= 0.0 {
            return self.count;
        }
        self.count.min(self.count_min.max(scaled(busy, self.scale_factor, f64::floor)))
    }
}

/// A number of things times a factor.
fn scaled(busy: u64, factor: f64, round: fn(f64) -> f64) -> u64 {
    let busy = u32::try_from(busy).unwrap_or(u32::MAX);
    let product = round(f64::from(busy) * factor);
    // Through text, since numbers with a point have no checked way to whole ones.
    if product < 1.0 { 0 } else { format!("{product:.0}").parse().unwrap_or(u64::MAX) }
}

impl Scaling {
    fn schedules(&self) -> Vec<&Schedule> {
        match self {
            Self::Fixed => Vec::new(),
            Self::Slots(slots) => slots.policies.iter().map(|policy| &policy.schedule).collect(),
            Self::Machines(machines) => machines.periods.iter().map(|period| &period.schedule).collect(),
        }
    }

    /// What counts at this moment, and until when it does at least. `None`: the number is fixed.
    pub fn target(&self, at: Timestamp) -> Option<(Target, Timestamp)> {
        // Whoever reads a configuration has settled which zone is the host's.
        let (schedules, host) = (self.schedules(), NamedZone::utc());
        let active = schedule::active(schedules.iter().copied(), at, &host);
        let target = match self {
            Self::Fixed => return None,
            Self::Slots(slots) => {
                let policy = active.and_then(|index| slots.policies.get(index)).cloned();
                Target::Slots(policy.unwrap_or_else(Policy::on_demand))
            }
            Self::Machines(machines) => {
                Target::Machines(active.and_then(|index| machines.periods.get(index)).map_or(machines.idle, |period| period.idle))
            }
        };
        Some((target, schedule::next_change(schedules, at, &host)))
    }
}

impl Target {
    /// Jobs are only taken where something that is ready waits for them.
    pub fn is_preemptive(&self) -> bool {
        match self {
            Self::Slots(policy) => policy.preemptive_mode,
            Self::Machines(figures) => figures.count > 0,
        }
    }

    pub fn idle_time(&self) -> Duration {
        match self {
            Self::Slots(policy) => policy.idle_time,
            Self::Machines(figures) => figures.time,
        }
    }

    /// The same without anything that is kept idle.
    pub fn on_demand(self) -> Self {
        match self {
            Self::Slots(policy) => Self::Slots(Policy { idle_count: 0, scale_factor: 0.0, ..policy }),
            Self::Machines(figures) => Self::Machines(IdleFigures { count: 0, scale_factor: 0.0, count_min: 0, ..figures }),
        }
    }
}
