//! The formulas: from what there is and what is wanted to how many instances are missing, or more than needed.

use super::policy::{IdleFigures, Policy, Target};
use serde::{Deserialize, Serialize};

/// What is counted before a decision: GitLab's runner logs the same under the name `capacity-info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Instances that are asked for, coming or usable. Those that are being removed are not among them.
    pub instances: u32,
    /// Instances in whatever state, those that are asked for and those that are being removed included.
    pub total: u32,
    /// Of `instances`: not ready so far.
    pub creating: u32,
    /// Of `instances`: with a job.
    pub in_use: u32,
    /// Slots that jobs hold.
    pub acquired: u32,
    /// Free slots that cannot be given out: the instance has had its jobs, or does not answer.
    pub unavailable: u32,
    /// Jobs that wait for a slot.
    pub pending: u32,
    /// Jobs that are known to come and are not ready to run.
    pub announced: u32,
}

/// What bounds a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Slots of an instance.
    pub capacity: u32,
    /// Instances in whatever state; [`u32::MAX`] is no limit.
    pub most: u32,
    /// Machines that are being made at once.
    pub growth: u32,
}

/// The difference between what there is and what there should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Required {
    /// Instances that are missing.
    pub grow: u32,
    /// Instances that may go when they have been idle for long enough.
    pub shrink: u32,
    /// Of those, how many go without waiting for that: there are more than there may be.
    pub at_once: u32,
}

impl Target {
    pub fn required(&self, figures: &Figures, limits: &Limits) -> Required {
        match self {
            Self::Slots(policy) => of_slots(policy, figures, limits),
            Self::Machines(idle) => of_machines(idle, figures, limits),
        }
    }
}

/// `ceil((acquired + unavailable + pending + idle) / capacity)`, at most `max_instances`, less what there is. Reservations are no demand: each poll makes one,
/// and an empty runner would buy an instance for it. Announced jobs are demand that comes a little later.
fn of_slots(policy: &Policy, figures: &Figures, limits: &Limits) -> Required {
    let [acquired, unavailable, pending, announced] =
        [figures.acquired, figures.unavailable, figures.pending, figures.announced].map(u64::from);
    let (instances, capacity) = (u64::from(figures.instances), u64::from(limits.capacity.max(1)));
    let slots = acquired.saturating_add(unavailable).saturating_add(pending).saturating_add(announced);
    let wanted = slots.saturating_add(policy.idle_beside(acquired)).div_ceil(capacity).min(u64::from(limits.most));
    // Instances have vanished, and the books do not know it yet.
    let is_settled = acquired + unavailable <= instances * capacity;
    let grow = if is_settled { small(wanted.saturating_sub(instances)) } else { 0 };
    Required {
        grow: grow.min(limits.most.saturating_sub(figures.total)),
        shrink: small(instances.saturating_sub(wanted)),
        at_once: figures.instances.saturating_sub(limits.most),
    }
}

/// As in docker+machine (`idle_limit_strategy.go` of GitLab's runner): machines that are free, coming or asked for are counted against the idle target. With a
/// target of none, a machine is made for each job that waits.
fn of_machines(idle: &IdleFigures, figures: &Figures, limits: &Limits) -> Required {
    let available = figures.instances.saturating_sub(figures.in_use);
    let target = if idle.count == 0 { figures.pending } else { small(idle.idle_beside(u64::from(figures.in_use))) };
    let target = target.saturating_add(figures.announced);
    let room = limits.most.saturating_sub(figures.total);
    let growth = limits.growth.saturating_sub(figures.creating);
    let too_many = figures.instances.saturating_sub(limits.most);
    Required {
        grow: target.saturating_sub(available).min(room).min(growth),
        shrink: available.saturating_sub(target).max(too_many.min(available)),
        at_once: too_many,
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn policy(idle_count: u64) -> Policy {
        Policy { idle_count, ..Policy::on_demand() }
    }

    fn limits(capacity: u32, most: u32) -> Limits {
        Limits { capacity, most, growth: u32::MAX }
    }

    /// With so many instances, all of them usable.
    fn of(instances: u32) -> Figures {
        Figures { instances, total: instances, ..Figures::default() }
    }

    /// Positive: missing; negative: too many.
    fn change(policy: &Policy, figures: Figures, limits: Limits) -> i64 {
        let required = Target::Slots(policy.clone()).required(&figures, &limits);
        assert!(required.grow == 0 || required.shrink == 0);
        i64::from(required.grow) - i64::from(required.shrink)
    }

    #[test]
    fn tsc_01_an_empty_group_is_made_as_large_as_its_idle_slots_need() {
        assert_eq!(change(&policy(8), of(0), limits(4, 5)), 2);
    }

    #[test]
    fn tsc_02_a_group_that_has_what_it_needs_does_not_change() {
        assert_eq!(change(&policy(8), of(2), limits(4, 5)), 0);
    }

    #[test]
    fn tsc_04_an_instance_is_added_when_fewer_slots_are_free_than_should_be_idle() {
        assert_eq!(change(&policy(5), Figures { acquired: 1, ..of(1) }, limits(5, u32::MAX)), 1);
    }

    #[test]
    fn tsc_05_each_job_that_waits_needs_its_slot() {
        assert_eq!(change(&policy(0), Figures { acquired: 1, pending: 3, ..of(1) }, limits(1, u32::MAX)), 3);
    }

    #[test]
    fn tsc_07_the_factor_is_limited() {
        let policy = Policy { scale_factor: 0.5, scale_factor_limit: Some(4), ..policy(2) };
        assert_eq!(policy.idle_beside(20), 4);
    }

    #[test]
    fn tsc_08_the_idle_count_is_the_least_also_above_the_limit_of_the_factor() {
        let policy = Policy { scale_factor: 1.0, scale_factor_limit: Some(3), ..policy(5) };
        assert_eq!(policy.idle_beside(10), 5);
    }

    #[test]
    fn tsc_10_books_that_do_not_fit_what_there_is_buy_nothing() {
        assert_eq!(change(&policy(5), Figures { acquired: 3, ..of(2) }, limits(1, u32::MAX)), 0);
    }

    #[test]
    fn tsc_11_an_instance_that_is_being_removed_needs_no_successor() {
        // Its slot was used up; it is in no figure but the total.
        assert_eq!(change(&policy(0), Figures { total: 1, ..of(0) }, limits(1, 5)), 0);
        // One that has had its jobs and runs its last: the job and the slot that cannot be given out are its own.
        assert_eq!(change(&policy(0), Figures { acquired: 1, unavailable: 1, ..of(1) }, limits(2, 5)), 0);
    }

    #[test]
    fn tsc_13_ten_thousand_jobs_without_a_limit_are_ten_thousand_instances() {
        assert_eq!(change(&policy(0), Figures { pending: 10_000, ..of(0) }, limits(1, u32::MAX)), 10_000);
        let huge = Figures { acquired: u32::MAX, pending: u32::MAX, unavailable: 0, ..of(u32::MAX) };
        assert_eq!(change(&Policy { scale_factor: 1e30, ..policy(u64::MAX) }, huge, limits(u32::MAX, u32::MAX)), 0);
    }

    #[test]
    fn the_worked_examples_of_the_specification_hold() {
        // Capacity, most, policy: busy slots and the instances that follow.
        let by_factor = Policy { scale_factor: 0.5, scale_factor_limit: Some(10), ..policy(2) };
        let examples = [
            (1, 10, policy(5), vec![(0, 5), (3, 8), (7, 10)]),
            (2, 5, policy(4), vec![(0, 2), (3, 4), (8, 5)]),
            (1, u32::MAX, by_factor, vec![(30, 40), (3, 5)]),
        ];
        for (capacity, most, policy, rows) in examples {
            for (acquired, expected) in rows {
                let instances = u32::div_ceil(acquired, capacity);
                let figures = Figures { acquired, in_use: instances, ..of(instances) };
                assert_eq!(
                    change(&policy, figures, limits(capacity, most)),
                    i64::from(expected) - i64::from(instances),
                    "{policy:?} {acquired}"
                );
            }
        }
    }

    #[test]
    fn reservations_and_what_is_not_there_yet_are_counted_as_they_should_be() {
        // Announced jobs are bought for, and do not bring an instance that idle slots would.
        assert_eq!(change(&policy(1), Figures { announced: 3, ..of(0) }, limits(1, u32::MAX)), 4);
        assert_eq!(change(&policy(1), Figures { announced: 0, ..of(4) }, limits(1, u32::MAX)), -3);
        // Instances that are being removed still count against the most that there may be.
        assert_eq!(change(&policy(0), Figures { pending: 3, total: 3, ..of(1) }, limits(1, 4)), 1);
    }

    fn machines(count: u64, count_min: u64, scale_factor: f64) -> Target {
        Target::Machines(IdleFigures { count, scale_factor, count_min, time: Duration::from_secs(600) })
    }

    #[test]
    fn machines_follow_the_published_table_with_a_factor() {
        // In use; the target; with 5 and with 100 idle.
        for (in_use, with_5, with_100) in [(0, 5, -90), (10, 6, -89), (20, 17, -78), (90, 94, -1), (100, 95, 0)] {
            for (idle, expected) in [(5, with_5), (100, with_100)] {
                let figures = Figures { in_use, acquired: in_use, ..of(in_use + idle) };
                let required = machines(100, 10, 1.1).required(&figures, &limits(1, 200));
                assert_eq!(i64::from(required.grow) - i64::from(required.shrink), expected, "{in_use} in use, {idle} idle");
            }
        }
    }

    #[test]
    fn machines_grow_no_faster_than_their_rate_and_no_further_than_their_limit() {
        let figures = Figures { creating: 3, ..of(3) };
        let at_rate = Limits { growth: 5, ..limits(1, 100) };
        assert_eq!(machines(50, 0, 0.0).required(&figures, &at_rate).grow, 2);
        assert_eq!(machines(50, 0, 0.0).required(&figures, &limits(1, 10)).grow, 7);
        // More than there may be go at once, idle or not for long.
        let over = machines(5, 0, 0.0).required(&Figures { in_use: 20, ..of(25) }, &limits(1, 22));
        assert_eq!((over.grow, over.shrink, over.at_once), (0, 3, 3));
    }

    #[test]
    fn without_an_idle_count_a_machine_is_made_for_each_job_that_waits() {
        let on_demand = machines(0, 0, 0.0);
        assert_eq!(on_demand.required(&Figures { pending: 3, creating: 1, ..of(1) }, &limits(1, 10)).grow, 2);
        assert_eq!(on_demand.required(&Figures { in_use: 2, ..of(4) }, &limits(1, 10)).shrink, 2);
        assert!(!on_demand.is_preemptive() && machines(1, 0, 0.0).is_preemptive());
    }
}
