//! How many machines a runner can have at most and how that comes about, and which of its periods counts at a moment.

use crate::schedule::{self, NamedZone};
use crate::settings::{Autoscaler, Executor, Global, Machine, PeriodKind, Runner};
use step_model::time::Timestamp;

/// The largest number of machines of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MostMachines {
    pub count: u64,
    /// What it is made of, a sentence each.
    pub how: Vec<String>,
}

/// What is kept idle at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Counting {
    /// Which table of the file counts.
    pub which: String,
    /// What it says.
    pub figures: String,
}

/// Jobs of a runner at once, and which key says so.
fn busy(global: &Global, runner: &Runner) -> (u64, String) {
    match runner.limit {
        Some(limit) if limit < global.concurrent => {
            (limit, format!("at most {limit} jobs at once: `limit` is less than `concurrent = {}`", global.concurrent))
        }
        Some(limit) => (global.concurrent, format!("at most {} jobs at once: `concurrent` (`limit = {limit}`)", global.concurrent)),
        None => (global.concurrent, format!("at most {} jobs at once: `concurrent` (there is no `limit`)", global.concurrent)),
    }
}

/// The largest number of machines that a runner can have at once.
pub fn most_machines(global: &Global, runner: &Runner) -> MostMachines {
    match (runner.executor, &runner.machine, &runner.autoscaler) {
        (Some(Executor::Instance | Executor::DockerAutoscaler), _, Some(autoscaler)) => most_instances(global, runner, autoscaler),
        (Some(Executor::DockerMachine) | None, Some(machine), _) => most_docker_machines(global, runner, machine),
        (None, None, Some(autoscaler)) => most_instances(global, runner, autoscaler),
        (Some(Executor::Ssh), ..) => MostMachines { count: 1, how: vec!["the one machine of `[runners.ssh]`".to_owned()] },
        _ => MostMachines { count: 1, how: vec!["jobs run on this machine".to_owned()] },
    }
}

fn most_docker_machines(global: &Global, runner: &Runner, machine: &Machine) -> MostMachines {
    let (busy, why_busy) = busy(global, runner);
    let all = std::iter::once((&machine.idle, "[runners.machine]".to_owned()))
        .chain(machine.periods.iter().enumerate().map(|(index, period)| (&period.idle, name_of_period(machine, index, period.kind))));
    let (idle, whose) = all.map(|(figures, whose)| (figures.idle_beside(busy), whose)).max_by_key(|(idle, _)| *idle).unwrap_or_default();
    let mut how = vec![why_busy];
    match idle {
        0 => how.push("no idle machines: one is made when a job needs it".to_owned()),
        _ => how.push(format!("{idle} idle beside {busy} busy ones: `IdleCount` of {whose}")),
    }
    let wanted = busy.saturating_add(idle);
    let count = match runner.limit {
        Some(limit) if limit < wanted => {
            let left = limit.saturating_sub(busy);
            how.push(format!("`limit = {limit}` counts machines too: in the worst case {} busy and only {left} idle", busy.min(limit)));
            limit
        }
        _ => wanted,
    };
    MostMachines { count, how }
}

fn most_instances(global: &Global, runner: &Runner, autoscaler: &Autoscaler) -> MostMachines {
    let (busy, why_busy) = busy(global, runner);
    let policies = autoscaler.policies.iter().enumerate();
    let (idle, whose) = policies.map(|(index, policy)| (policy.idle_beside(busy), index)).max_by_key(|(idle, _)| *idle).unwrap_or_default();
    let mut how = vec![why_busy];
    match idle {
        0 => how.push("no idle slots: an instance is made when a job needs it".to_owned()),
        _ => how.push(format!("{idle} idle slots beside them: policy {} of {}", whose + 1, autoscaler.policies.len())),
    }
    let slots = busy.saturating_add(idle);
    let needed = slots.div_ceil(autoscaler.capacity_per_instance);
    if autoscaler.capacity_per_instance > 1 {
        how.push(format!("{slots} slots are {needed} instances: `capacity_per_instance = {}`", autoscaler.capacity_per_instance));
    }
    if autoscaler.max_use_count.is_some() {
        how.push("an instance that has had its last job counts until it is gone: `max_use_count`".to_owned());
    }
    let count = match autoscaler.max_instances {
        Some(most) if most < needed => {
            how.push(format!("`max_instances = {most}` is less: {} slots in all", most.saturating_mul(autoscaler.capacity_per_instance)));
            most
        }
        _ => needed,
    };
    MostMachines { count, how }
}

/// The period of a runner that counts at a moment; `None` where nothing is kept idle by the file.
pub fn counting_at(runner: &Runner, at: Timestamp, host: &NamedZone) -> Option<Counting> {
    match (runner.executor, &runner.machine, &runner.autoscaler) {
        (Some(Executor::DockerMachine) | None, Some(machine), _) => Some(machine_period(machine, at, host)),
        (Some(Executor::Instance | Executor::DockerAutoscaler) | None, _, Some(autoscaler)) => Some(policy(autoscaler, at, host)),
        _ => None,
    }
}

fn machine_period(machine: &Machine, at: Timestamp, host: &NamedZone) -> Counting {
    let active = schedule::active(machine.periods.iter().map(|period| &period.schedule), at, host);
    let (figures, which) = match active {
        Some(index) => {
            let period = &machine.periods[index];
            let patterns = period.schedule.periods().iter().map(|period| format!("`{period}`")).collect::<Vec<_>>().join(", ");
            (&period.idle, format!("{} ({patterns})", name_of_period(machine, index, period.kind)))
        }
        None => (&machine.idle, "[runners.machine], since no period matches".to_owned()),
    };
    let mut text = format!("{} for {} s", idle(figures.count, "machine"), figures.time.as_secs());
    if figures.scale_factor > 0.0 {
        text += &format!(", by a factor of {} and at least {}", figures.scale_factor, figures.count_min);
    }
    Counting { which, figures: text }
}

fn idle(count: u64, what: &str) -> String {
    if count == 1 { format!("1 idle {what}") } else { format!("{count} idle {what}s") }
}

fn name_of_period(machine: &Machine, index: usize, kind: PeriodKind) -> String {
    match kind {
        PeriodKind::Autoscaling => format!("[[runners.machine.autoscaling]] {} of {}", index + 1, machine.periods.len()),
        PeriodKind::OffPeak => "OffPeakPeriods".to_owned(),
    }
}

fn policy(autoscaler: &Autoscaler, at: Timestamp, host: &NamedZone) -> Counting {
    let policies = &autoscaler.policies;
    let Some(index) = schedule::active(policies.iter().map(|policy| &policy.schedule), at, host) else {
        return Counting { which: "no policy matches".to_owned(), figures: "0 idle slots for 300 s, on demand".to_owned() };
    };
    let policy = &policies[index];
    let patterns = policy.schedule.periods().iter().map(|period| format!("`{period}`")).collect::<Vec<_>>().join(", ");
    let mut text = format!("{} for {} s", idle(policy.idle_count, "slot"), policy.idle_time.as_secs());
    if policy.scale_factor > 0.0 {
        text += &format!(", or {} for each busy one", policy.scale_factor);
        text += &policy.scale_factor_limit.map(|limit| format!(" up to {limit}")).unwrap_or_default();
    }
    text +=
        if policy.preemptive_mode { ", jobs are asked for when a slot is free" } else { ", jobs are asked for when a slot can be made" };
    Counting { which: format!("[[runners.autoscaler.policy]] {} of {} ({patterns})", index + 1, policies.len()), figures: text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{IdleFigures, Policy};
    use std::collections::BTreeMap;

    fn most(text: &str) -> MostMachines {
        let settings = crate::parse(text, &BTreeMap::new()).settings.expect("settings");
        most_machines(&settings.global, settings.entries()[0])
    }

    fn autoscaler(global: &str, keys: &str) -> MostMachines {
        most(&format!("{global}\n[[runners]]\nexecutor = \"instance\"\n[runners.autoscaler]\nplugin = \"x\"\n{keys}\n"))
    }

    #[test]
    fn the_worked_examples_of_the_specification_hold() {
        // idle_count 5, max 10, capacity 1: 7 busy give 10.
        assert_eq!(autoscaler("concurrent = 7", "max_instances = 10\n[[runners.autoscaler.policy]]\nidle_count = 5").count, 10);
        // capacity 2, idle 4, max 5: 3 busy need 4.
        assert_eq!(
            autoscaler("concurrent = 3", "capacity_per_instance = 2\nmax_instances = 5\n[[runners.autoscaler.policy]]\nidle_count = 4")
                .count,
            4
        );
        // idle 2, factor 0.5, limit 10: 30 busy need 40.
        let policy = "[[runners.autoscaler.policy]]\nidle_count = 2\nscale_factor = 0.5\nscale_factor_limit = 10";
        assert_eq!([autoscaler("concurrent = 30", policy).count, autoscaler("concurrent = 3", policy).count], [40, 5]);
    }

    #[test]
    fn the_idle_target_of_machines_follows_the_published_table() {
        let figures = IdleFigures { count: 100, scale_factor: 1.1, count_min: 10, time: std::time::Duration::ZERO };
        assert_eq!([0, 10, 20, 90, 100].map(|busy| figures.idle_beside(busy)), [10, 11, 22, 99, 100]);
    }

    #[test]
    fn idle_slots_follow_their_factor() {
        let settings = crate::parse(
            "[[runners]]\nexecutor=\"instance\"\n[runners.autoscaler]\n[[runners.autoscaler.policy]]\nidle_count = 2\nscale_factor = 0.5\n",
            &BTreeMap::new(),
        );
        let settings = settings.settings.expect("settings");
        let policy = settings.entries()[0].autoscaler.clone().expect("an autoscaler").policies.remove(0);
        assert_eq!([0, 1, 3, 10].map(|busy| policy.idle_beside(busy)), [2, 2, 2, 5]);
        let limited = Policy { scale_factor_limit: Some(4), ..policy.clone() };
        assert_eq!([3, 10, 100].map(|busy| limited.idle_beside(busy)), [2, 4, 4]);
        let wider = Policy { scale_factor_limit: Some(6), ..policy };
        assert_eq!([4, 20].map(|busy| wider.idle_beside(busy)), [2, 6]);
    }
}
