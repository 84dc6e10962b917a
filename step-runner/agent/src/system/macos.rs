//! macOS, and any Unix that is not Linux: ends are told by `SIGCHLD`; a process that left its group and its parents is not found again.

use super::unix::{Leftover, has_ended};
use super::{Start, StartFault};
use rustix::process::{Pid, Signal};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use sysinfo::{ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// `ru_maxrss` counts bytes.
/// `ru_inblock` and `ru_oublock` count operations there, whatever their size.
pub const BLOCK: Option<u64> = None;

pub const PEAK_MEMORY_UNIT: u64 = 1;

/// There is no such thing here: an orphan belongs to the first process.
#[expect(clippy::unnecessary_wraps, reason = "the same face on every system")]
pub fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Programs are not confined here.
pub type Link = ();

#[expect(clippy::unnecessary_wraps, reason = "the same face on every system")]
pub fn confined(_start: &Start<'_>) -> io::Result<Option<(Command, Link)>> {
    Ok(None)
}

#[expect(clippy::unnecessary_wraps, reason = "the same face on every system")]
pub fn wait_until_it_runs(_link: Link) -> Result<(), StartFault> {
    Ok(())
}

/// Not atomic here: a program that another thread starts right in between inherits both ends.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe()?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::CLOEXEC)?;
    Ok((ours, theirs))
}

/// Pipes grow by themselves here.
pub fn enlarge(_pipe: &impl AsFd) {}

/// Tells when a child has ended: every end of a child is a reason to look.
#[derive(Debug)]
pub struct End {
    pid: Pid,
    signals: Signals,
}

impl End {
    pub fn of(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, signals: signal(SignalKind::child())? })
    }

    pub async fn reached(&mut self) {
        while !has_ended(self.pid) {
            self.signals.recv().await;
        }
    }
}

/// Every process of the system that has not ended, with its group.
fn processes() -> Vec<(Leftover, Option<i32>, Option<Pid>)> {
    let Ok(mut system) = System::new() else { return Vec::new() };
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, ProcessRefreshKind::nothing());
    let running = system.processes().values().filter(|process| process.status() != ProcessStatus::Zombie);
    running
        .filter_map(|process| {
            let pid = i32::try_from(process.pid().as_u32()).ok()?;
            let parent = process.parent().and_then(|parent| i32::try_from(parent.as_u32()).ok());
            let group = rustix::process::getpgid(Pid::from_raw(pid)).ok();
            Some((Leftover { pid, start: process.start_time() }, parent, group))
        })
        .collect()
}

/// Asked of a group whose leader has ended and was not reaped: what has ended may not be signalled.
pub fn group_has_others(leader: Pid) -> bool {
    rustix::process::test_kill_process_group(leader).is_ok()
}

/// Groups in which a program has left others behind.
static GROUPS: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// Nothing else leads from an orphan to us: its group is remembered. The number may be used again when the last of them has ended.
pub fn before_reaping(pid: Pid) {
    if group_has_others(pid) {
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(pid.as_raw_nonzero().get());
    }
}

/// The start of a process counts seconds here, and it is not looked at again: it was read a moment ago.
pub fn signal_leftover(process: &Leftover, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Orphans are not our children here, so there is always a reason to look.
pub fn children_left() -> bool {
    true
}

/// What descends from us or is in a group that we started, and runs, outside of our own process group. What is in our group was started
/// by our own program for itself.
pub fn leftovers() -> Vec<Leftover> {
    let own_group = rustix::process::getpgrp();
    let all = processes();
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
    let in_groups = all.iter().filter(|(_, _, group)| group.is_some_and(|group| groups.contains(&group.as_raw_nonzero().get())));
    let mut left: Vec<Leftover> = in_groups.map(|(process, _, _)| *process).collect();
    let mut open = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = open.pop() {
        for (process, _, group) in all.iter().filter(|(_, of, _)| *of == Some(parent)) {
            open.push(process.pid);
            if *group != Some(own_group) {
                left.push(*process);
            }
        }
    }
    left
}

/// Environments of others are not shown here.
pub fn marked(_marker: &str) -> Vec<Leftover> {
    Vec::new()
}

/// The first process reaps orphans here.
pub fn reap_adopted(_ours: &HashSet<u32>) {}
