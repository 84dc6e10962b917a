//! What a taskscaler is told, what it asks for, and what holds for its group.

use super::line::Owner;
use super::policy::Scaling;
use super::pool::Bounds;
use super::required::Limits;
use std::time::Duration;

/// What holds for a whole group.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub scaling: Scaling,
    /// Tasks at once on an instance. Zero is one.
    pub capacity_per_instance: u32,
    /// Tasks of an instance before it is removed. Zero is any number.
    pub max_use_count: u32,
    /// Instances in whatever state; [`u32::MAX`] is no limit.
    pub max_instances: u32,
    /// Heartbeats in a row that may fail before an instance is replaced.
    pub failure_threshold: u32,
    /// How long an instance may take to appear, and then to become ready.
    pub creation_timeout: Duration,
    /// When a removal that had no effect is asked for again.
    pub deletion_retry_interval: Duration,
}

/// What happened. `I` names instances, `T` tasks.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<I, T> {
    /// A task wants a slot. One that is known already changes nothing.
    Wanted {
        task: T,
        owner: Owner,
        priority: i32,
    },
    /// A task is over, or does not want its slot or its reservation any more. One that is unknown changes nothing.
    Released {
        task: T,
    },
    /// A task keeps its slot and does nothing there for a while.
    Suspended {
        task: T,
    },
    /// A suspended task wants to go on. It does with [`Effect::Resume`].
    Resumed {
        task: T,
    },
    /// So many tasks are known to come. The latest word counts.
    Announced {
        tasks: u32,
    },
    /// Of [`Effect::Grow`]: so many are coming.
    Granted {
        count: u32,
    },
    /// Of [`Effect::Grow`]: none is coming; it is asked again after a while.
    Refused,
    /// There is an instance. Whoever can only list all of them tells [`Event::Listed`].
    Appeared {
        instance: I,
    },
    /// These are all instances that there are.
    Listed {
        instances: Vec<I>,
    },
    /// Of [`Effect::Prepare`] and [`Effect::Wake`]: tasks can run there.
    Ready {
        instance: I,
    },
    /// Of the same: they never will.
    Unusable {
        instance: I,
    },
    /// A heartbeat was answered, or not.
    Beaten {
        instance: I,
        is_healthy: bool,
    },
    /// An instance is not there any more, wanted or not.
    Gone {
        instance: I,
    },
    Reconfigured {
        settings: Box<Settings>,
    },
    /// Remove everything that holds no task, and ask for nothing more.
    Stopped,
    /// Time has passed: due no later than [`next_deadline`](super::Taskscaler::next_deadline).
    Woken,
}

/// What should happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<I, T> {
    /// Make so many more instances. Answered by `Granted` or `Refused`.
    Grow {
        count: u32,
    },
    /// Remove these; no task is on them. They are forgotten with `Gone`, or when a list does not name them.
    Remove {
        instances: Vec<I>,
    },
    /// Make it usable, and prove it.
    Prepare {
        instance: I,
    },
    /// The task has this slot.
    Assign {
        task: T,
        instance: I,
        slot: u32,
    },
    /// The instance of the task is gone: `instance unexpectedly removed`. The task is forgotten.
    Lose {
        task: T,
        instance: I,
    },
    /// All tasks there are suspended.
    Sleep {
        instance: I,
    },
    Wake {
        instance: I,
    },
    /// A suspended task goes on where it was.
    Resume {
        task: T,
        instance: I,
        slot: u32,
    },
}

/// Why a task cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCapacity {
    /// No slot is free now; one could be made.
    NotNow,
    /// No slot is free, and none can be made.
    AtAll,
}

impl Settings {
    /// As many as its policies say, up to `max_instances`; GitLab's defaults else.
    pub fn new(scaling: Scaling, max_instances: u32) -> Self {
        Self {
            scaling,
            capacity_per_instance: 1,
            max_use_count: 0,
            max_instances,
            failure_threshold: 3,
            creation_timeout: Duration::from_secs(15 * 60),
            deletion_retry_interval: Duration::from_secs(60),
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds { capacity: self.capacity_per_instance.max(1), uses: if self.max_use_count == 0 { u32::MAX } else { self.max_use_count } }
    }

    pub(super) fn limits(&self) -> Limits {
        let growth = match &self.scaling {
            Scaling::Machines(machines) => machines.max_growth_rate.unwrap_or(u32::MAX),
            Scaling::Fixed | Scaling::Slots(_) => u32::MAX,
        };
        Limits { capacity: self.bounds().capacity, most: self.max_instances, growth }
    }
}
