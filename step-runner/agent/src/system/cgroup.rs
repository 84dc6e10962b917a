//! Control groups: which of them this process may divide, a group for one step, what it counted, and its end.
//!
//! ```text
//! v1   one tree for each controller        our group/step-runner-MARKER-STEP in each
//! v2   one tree; a group that has groups below it holds no processes, so we first move into a leaf, if all that is there is ours:
//!      our group/step-runner-main, then our group/step-runner-MARKER-STEP
//! ```
//!
//! Sources: Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst. The directories are those of the kernel, so a test copies them.

mod counters;
mod places;

pub use counters::Counters;
pub use places::{Controller, Places};

use crate::limits::Version;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use step_model::limits::{Cores, LimitName, Limits};

/// Groups of ours begin so.
const PREFIX: &str = "step-runner-";
/// Where we are ourselves, below a group of v2 that we divide.
const MAIN: &str = "step-runner-main";
/// Processes that were killed take a moment to leave their group.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);
/// In which time the kernel counts processor time: its own default, in microseconds.
const PERIOD: u64 = 100_000;

/// The group of one step: a directory in each tree that has a part in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    version: Version,
    controllers: BTreeSet<Controller>,
    directory: PathBuf,
}

/// The name of a step's group.
pub fn name_of(marker: &str, step: u32) -> String {
    format!("{PREFIX}{marker}-{step}")
}

impl Group {
    /// Where the group will be, so that it can be written down before it is there.
    pub fn planned(places: &Places, name: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for (controller, place) in places.each() {
            let directory = place.directory.join(name);
            match parts.iter_mut().find(|part| part.directory == directory) {
                Some(part) => drop(part.controllers.insert(controller)),
                None => parts.push(Part { version: place.version, controllers: [controller].into(), directory }),
            }
        }
        Self { parts }
    }

    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|part| part.directory.as_path())
    }

    /// Makes the group and gives it its limits. What was made before an error stays for [`Group::remove`].
    /// # Errors
    /// The kernel refuses; which limit it was for, where it was for one.
    pub fn make(&self, limits: &Limits) -> Result<(), (Option<LimitName>, io::Error)> {
        for part in &self.parts {
            match std::fs::create_dir(&part.directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(|error| (part.limit(), error))?,
            }
            part.limit_to(limits)?;
        }
        Ok(())
    }

    /// The files that a process writes `0` into to become a member.
    pub fn entrances(&self) -> Vec<PathBuf> {
        self.directories().map(|directory| directory.join("cgroup.procs")).collect()
    }

    /// What everything in the group has used, and which limits it came to.
    pub fn counters(&self) -> Counters {
        let parts = self.parts.iter().map(|part| Counters::read(&part.directory, part.version, &part.controllers));
        parts.fold(Counters::default(), Counters::and)
    }

    /// Kills what is in it and removes it. `false`: something is still there.
    pub fn remove(&self) -> bool {
        self.parts.iter().all(|part| remove(&part.directory))
    }

    /// Removes it if nothing is in it.
    pub fn remove_if_empty(&self) -> bool {
        self.parts.iter().all(|part| is_gone(std::fs::remove_dir(&part.directory)))
    }
}

impl Part {
    /// The limit that this part is there for, where it is one.
    fn limit(&self) -> Option<LimitName> {
        match (self.controllers.first(), self.controllers.len()) {
            (Some(Controller::Memory), 1) => Some(LimitName::Memory),
            (Some(Controller::Pids), 1) => Some(LimitName::Pids),
            (Some(Controller::Cpu), 1) => Some(LimitName::Cpu),
            _ => None,
        }
    }

    fn limit_to(&self, limits: &Limits) -> Result<(), (Option<LimitName>, io::Error)> {
        let write = |file: &str, text: String| std::fs::write(self.directory.join(file), text);
        let has = |controller| self.controllers.contains(&controller);
        if let Some(bytes) = limits.memory.filter(|_| has(Controller::Memory)) {
            let (limit, swap, none) = match self.version {
                Version::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes.to_string()),
                Version::V2 => ("memory.max", "memory.swap.max", "0".to_owned()),
            };
            write(limit, bytes.to_string()).map_err(|error| (Some(LimitName::Memory), error))?;
            // Not every kernel counts swap; then there mostly is none.
            let _ = write(swap, none);
        }
        if let Some(pids) = limits.pids.filter(|_| has(Controller::Pids)) {
            write("pids.max", pids.to_string()).map_err(|error| (Some(LimitName::Pids), error))?;
        }
        if let Some(cores) = limits.cpus.filter(|_| has(Controller::Cpu)) {
            self.limit_cpu(cores).map_err(|error| (Some(LimitName::Cpu), error))?;
        }
        Ok(())
    }

    fn limit_cpu(&self, cores: Cores) -> io::Result<()> {
        let quota = u64::from(cores.thousandths()) * PERIOD / 1000;
        match self.version {
            Version::V1 => {
                std::fs::write(self.directory.join("cpu.cfs_period_us"), PERIOD.to_string())?;
                std::fs::write(self.directory.join("cpu.cfs_quota_us"), quota.to_string())
            }
            Version::V2 => std::fs::write(self.directory.join("cpu.max"), format!("{quota} {PERIOD}")),
        }
    }
}

/// Removes a group that a job with this marker has made. Anything else stays.
pub fn remove_marked(directory: &Path, marker: &str) {
    let name = directory.file_name().map(|name| name.to_string_lossy());
    if !marker.is_empty() && name.is_some_and(|name| name.starts_with(&format!("{PREFIX}{marker}-"))) {
        remove(directory);
    }
}

fn remove(directory: &Path) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if is_gone(std::fs::remove_dir(directory)) {
            return true;
        }
        kill_all(directory);
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}

fn is_gone(removed: io::Result<()>) -> bool {
    removed.map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true)
}

fn kill_all(directory: &Path) {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    for pid in members(directory).into_iter().filter(|pid| *pid != own) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The processes in a group.
fn members(directory: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 0).collect()
}

#[cfg(test)]
mod tests;
