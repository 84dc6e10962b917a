//! Linux: control groups first, else the process itself; what the system refuses is not tried twice.

use crate::around;
use crate::job_process::Streams;
use crate::job_process::command::{Command, NotStarted};
use crate::limits::{self, Means, Offer, Planned};
use crate::system::cgroup::{self, Controller, Group, Places};
use crate::system::confined::{Confinement, Stage};
use crate::system::{Running, Spawner};
use crate::system_error;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_engine::event::{Exit, SpawnFault};
use step_model::limits::{AppliedLimit, LimitName, Limits};
use step_model::result::{StepId, Usage};

/// In the directory of the journal: the groups of the job, each in a line that ends in a zero byte. Written before they are made.
const RECORD: &str = "groups";
/// A file grew beyond what it may (`SIGXFSZ`), and how a shell tells it.
const TOO_LARGE: i32 = libc::SIGXFSZ;

/// What holds the limits of the steps of a job.
#[derive(Debug)]
pub struct Confiner {
    marker: String,
    record: Option<PathBuf>,
    /// Looked for when the first limit is asked for.
    found: Option<Found>,
    /// Steps whose processes have limits.
    live: HashMap<StepId, Live>,
    /// Groups in which something still runs that a step has left.
    left: Vec<Group>,
}

#[derive(Debug)]
struct Found {
    places: Places,
    offer: Offer,
}

#[derive(Debug)]
struct Live {
    group: Option<Group>,
    limits: Limits,
}

impl Confiner {
    /// `journal`: where the groups are written down, so that they are removed also when this process is killed.
    pub fn new(journal: Option<&Path>, marker: &str) -> Self {
        let record = journal.map(|directory| directory.join(RECORD));
        Self { marker: marker.to_owned(), record, found: None, live: HashMap::new(), left: Vec::new() }
    }

    /// Starts the process of a step under its limits, and tells what became of each.
    /// # Errors
    /// As [`Command::start`].
    pub fn start(
        &mut self,
        step: StepId,
        limits: &Limits,
        command: &Command<'_>,
        spawner: &Spawner,
        streams: Streams,
    ) -> Result<(Running, Vec<AppliedLimit>), SpawnFault> {
        if limits.is_empty() {
            return command.start(spawner, streams).map(|running| (running, Vec::new()));
        }
        // Each round that fails takes something from what is offered, so this ends.
        loop {
            let found = self.found.get_or_insert_with(Found::look);
            let planned = limits::plan(limits, &found.offer);
            let group = found.group(&planned, &cgroup::name_of(&self.marker, step.0));
            if let Some(group) = &group
                && let Err((limit, error)) =
                    record(self.record.as_deref(), group).map_err(|error| (None, error)).and_then(|()| group.make(limits))
            {
                undo(Some(group));
                found.refuse_group(limit, &error);
                continue;
            }
            let confinement = confinement(&planned, limits, group.as_ref());
            match command.start_confined(spawner, streams, &confinement) {
                Ok(running) => {
                    self.live.insert(step, Live { group, limits: *limits });
                    return Ok((running, planned.iter().map(Planned::told).collect()));
                }
                Err(NotStarted::Confinement(stage, error)) => {
                    undo(group.as_ref());
                    found.refuse(stage, &error);
                }
                Err(NotStarted::Fault(fault)) => {
                    undo(group.as_ref());
                    return Err(fault);
                }
            }
        }
    }

    /// A process of ours has ended. Adds what its group has counted, and tells which limits it came to.
    pub fn ended(&mut self, step: StepId, exit: Exit, usage: &mut Usage) -> Vec<LimitName> {
        let Some(Live { group, limits }) = self.live.remove(&step) else { return Vec::new() };
        let mut reached = Vec::new();
        if let Some(group) = group {
            let counters = group.counters();
            *usage = counters.over(*usage);
            reached.extend(counters.reached);
            if !group.remove_if_empty() {
                self.left.push(group);
            }
        }
        let is_too_large = matches!(exit, Exit::Signal(TOO_LARGE)) || exit == Exit::Code(128 + TOO_LARGE);
        if limits.disk.is_some() && is_too_large {
            reached.push(LimitName::Disk);
        }
        reached
    }

    /// Nothing of the job runs any more: no group of it stays. Says what could not be removed.
    pub fn sweep(&mut self) -> Option<String> {
        let groups = self.live.drain().filter_map(|(_, live)| live.group).chain(self.left.drain(..));
        let stay: Vec<String> = groups
            .filter(|group| !group.remove())
            .flat_map(|group| group.directories().map(|directory| directory.display().to_string()).collect::<Vec<_>>())
            .filter(|directory| Path::new(directory).exists())
            .collect();
        if stay.is_empty() {
            if let Some(record) = &self.record {
                let _ = std::fs::remove_file(record);
            }
            return None;
        }
        Some(format!("control groups of the job cannot be removed: {}", stay.join(", ")))
    }
}

/// A job that does not come to its end leaves no group either.
impl Drop for Confiner {
    fn drop(&mut self) {
        self.sweep();
    }
}

impl Found {
    fn look() -> Self {
        let places = Places::find(Path::new("/"));
        let processors = std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX));
        let mut offer = Offer {
            network: Ok(()),
            rlimits: Ok(()),
            affinity: Ok(()),
            processors,
            is_root: rustix::process::geteuid().is_root(),
            held_around: around::held(),
            ..Offer::nothing("")
        };
        offer.offer_groups(&places);
        Self { places, offer }
    }

    /// The group that holds what the plan wants a group to hold, and counts what can be counted.
    fn group(&self, planned: &[Planned], name: &str) -> Option<Group> {
        let is_wanted = planned.iter().any(|planned| matches!(planned.means, Means::Cgroup(_)));
        is_wanted.then(|| Group::planned(&self.places, name))
    }

    fn refuse_group(&mut self, limit: Option<LimitName>, error: &io::Error) {
        match limit {
            Some(LimitName::Memory) => self.places.give_up(Controller::Memory, error),
            Some(LimitName::Pids) => self.places.give_up(Controller::Pids, error),
            Some(LimitName::Cpu) => self.places.give_up(Controller::Cpu, error),
            _ => self.places.give_up_all(error),
        }
        self.offer.offer_groups(&self.places);
    }

    fn refuse(&mut self, stage: Stage, error: &io::Error) {
        let why: Arc<str> = system_error::text(error).into();
        match stage {
            Stage::Group | Stage::Exec => self.refuse_group(None, error),
            Stage::Network => self.offer.network = Err(format!("no namespace of the network can be made: {why}").into()),
            Stage::Cores => self.offer.affinity = Err(why),
            Stage::Limit => self.offer.rlimits = Err(why),
        }
    }
}

impl Offer {
    fn offer_groups(&mut self, places: &Places) {
        self.cpu = places.version(Controller::Cpu);
        self.memory = places.version(Controller::Memory);
        self.pids = places.version(Controller::Pids);
    }
}

fn confinement(planned: &[Planned], limits: &Limits, group: Option<&Group>) -> Confinement {
    let by_rlimit = |name| planned.iter().any(|planned| planned.name == name && matches!(planned.means, Means::Rlimit(_)));
    Confinement {
        entrances: group.map(Group::entrances).unwrap_or_default(),
        no_network: planned.iter().any(|planned| planned.means == Means::Namespace),
        cores: planned.iter().find_map(|planned| if let Means::Affinity(cores) = planned.means { Some(cores) } else { None }),
        data: limits.memory.filter(|_| by_rlimit(LimitName::Memory)),
        processes: limits.pids.filter(|_| by_rlimit(LimitName::Pids)),
        file_size: limits.disk.filter(|_| by_rlimit(LimitName::Disk)),
    }
}

/// Before anything is made: whoever comes after a kill must know of it.
fn record(file: Option<&Path>, group: &Group) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let mut lines = Vec::new();
    for directory in group.directories() {
        lines.extend_from_slice(directory.as_os_str().as_bytes());
        lines.push(0);
    }
    File::options().append(true).create(true).open(file)?.write_all(&lines)
}

/// Removes the groups of a job whose process has died, with whatever runs in them.
pub fn remove_recorded(inner: &Path, marker: &str) {
    let record = inner.join(RECORD);
    let Ok(lines) = std::fs::read(&record) else { return };
    for directory in lines.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        cgroup::remove_marked(Path::new(&std::ffi::OsString::from_vec(directory.to_vec())), marker);
    }
    let _ = std::fs::remove_file(record);
}

/// What cannot be removed now goes with the job.
fn undo(group: Option<&Group>) {
    if let Some(group) = group {
        group.remove();
    }
}
