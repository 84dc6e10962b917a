//! What a group has counted.

use super::Controller;
use crate::limits::Version;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use step_model::limits::LimitName;
use step_model::result::{Means, Traffic, Usage};

/// What everything in a group has used. `None`: it is not counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    cpu: Option<(Duration, Duration)>,
    peak_memory: Option<u64>,
    disk: Option<Traffic>,
    /// Limits that something in it came to and failed for.
    pub reached: BTreeSet<LimitName>,
}

impl Counters {
    pub(super) fn read(directory: &Path, version: Version, controllers: &BTreeSet<Controller>) -> Self {
        let text = |file: &str| std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        let number = |file: &str| text(file).trim().parse::<u64>().ok();
        let has = |controller| controllers.contains(&controller);
        let mut counters = match version {
            Version::V1 => Self {
                cpu: number("cpuacct.usage_user")
                    .zip(number("cpuacct.usage_sys"))
                    .map(|(user, system)| (Duration::from_nanos(user), Duration::from_nanos(system))),
                peak_memory: number("memory.max_usage_in_bytes"),
                disk: has(Controller::Io).then(|| disk_of_v1(&text("blkio.throttle.io_service_bytes"))),
                reached: BTreeSet::new(),
            },
            Version::V2 => Self {
                cpu: member(&text("cpu.stat"), "user_usec")
                    .zip(member(&text("cpu.stat"), "system_usec"))
                    .map(|(user, system)| (Duration::from_micros(user), Duration::from_micros(system))),
                peak_memory: number("memory.peak"),
                disk: has(Controller::Io).then(|| disk_of_v2(&text("io.stat"))),
                reached: BTreeSet::new(),
            },
        };
        let kills = match version {
            Version::V1 => member(&text("memory.oom_control"), "oom_kill"),
            Version::V2 => member(&text("memory.events"), "oom_kill"),
        };
        let was_reached = |count: Option<u64>| count.is_some_and(|count| count > 0);
        if has(Controller::Memory) && was_reached(kills) {
            counters.reached.insert(LimitName::Memory);
        }
        if has(Controller::Pids) && was_reached(member(&text("pids.events"), "max")) {
            counters.reached.insert(LimitName::Pids);
        }
        counters
    }

    /// Of two parts of the same group.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.reached.extend(other.reached);
        Self {
            cpu: self.cpu.or(other.cpu),
            peak_memory: self.peak_memory.or(other.peak_memory),
            disk: self.disk.or(other.disk),
            reached: self.reached,
        }
    }

    /// With what the system told when the process ended. The group also knows those that nobody waited for; it does not know what is still in memory
    /// and will be written. Of each the higher figure is true.
    pub fn over(&self, waited: Usage) -> Usage {
        let (user, system) = self.cpu.unwrap_or_default();
        let disk = match (self.disk, waited.disk) {
            (Some(one), Some(other)) => {
                Some(Traffic { incoming: one.incoming.max(other.incoming), outgoing: one.outgoing.max(other.outgoing) })
            }
            (one, other) => one.or(other),
        };
        Usage {
            cpu_user: user.max(waited.cpu_user),
            cpu_system: system.max(waited.cpu_system),
            peak_memory: self.peak_memory.unwrap_or(waited.peak_memory),
            disk,
            means: Means::Cgroup,
            ..waited
        }
    }
}

/// `name 12` on a line of its own.
fn member(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Lines `8:0 Read 4096`, one for each device and direction.
fn disk_of_v1(text: &str) -> Traffic {
    let sum = |direction: &str| {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.filter(|words| words.len() == 3 && words[1] == direction).filter_map(|words| words[2].parse::<u64>().ok()).sum()
    };
    Traffic { incoming: sum("Read"), outgoing: sum("Write") }
}

/// Lines `8:0 rbytes=4096 wbytes=0 ...`, one for each device.
fn disk_of_v2(text: &str) -> Traffic {
    let sum = |name: &str| text.split_whitespace().filter_map(|word| word.strip_prefix(name)?.parse::<u64>().ok()).sum();
    Traffic { incoming: sum("rbytes="), outgoing: sum("wbytes=") }
}
