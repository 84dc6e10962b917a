//! Linux: ends are told by pidfd, orphans are adopted (subreaper) and found in `/proc`.

use super::unix::{Leftover, has_ended};
use super::{Start, StartFault, confined};
use procfs::process::Stat;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// `ru_maxrss` counts kibibytes. It is never less than what we ourselves used when we started the program: the kernel counts the memory
/// that a program had before exec, which with posix_spawn is ours.
pub const PEAK_MEMORY_UNIT: u64 = 1024;

/// `ru_inblock` and `ru_oublock` count these many bytes: the kernel keeps bytes (`/proc/PID/io`, `read_bytes` and `write_bytes`) and divides
/// them. So they cost nothing here, and hold what children did that were waited for.
pub const BLOCK: Option<u64> = Some(512);

/// Where a program that confines itself says what was refused. `None`: it is not confined.
pub type Link = Option<confined::Link>;

pub fn confined(start: &Start<'_>) -> io::Result<Option<(Command, Link)>> {
    let Some(confinement) = start.confinement else { return Ok(None) };
    let (command, link) = confined::Link::instead(start, confinement)?;
    Ok(Some((command, Some(link))))
}

pub fn wait_until_it_runs(link: Link) -> Result<(), StartFault> {
    link.map_or(Ok(()), confined::Link::wait).map_err(|(stage, error)| match stage {
        confined::Stage::Exec => StartFault::Program(error),
        stage => StartFault::Confinement(stage, error),
    })
}

/// Orphans of the job become our children, whatever group or session they have moved to.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// A megabyte is what anybody may have; what a user may have in all pipes together is limited too, so a refusal is no fault.
pub fn enlarge(pipe: &impl AsFd) {
    let _ = [1 << 20, 1 << 18].into_iter().find(|size| rustix::pipe::fcntl_setpipe_size(pipe, *size).is_ok());
}

/// Tells when a child has ended.
#[derive(Debug)]
pub enum End {
    Pidfd(AsyncFd<OwnedFd>),
    /// Where pidfds are not there (before Linux 5.3, or forbidden): every end of a child is a reason to look.
    Signals(Pid, Signals),
}

impl End {
    pub fn of(pid: Pid) -> io::Result<Self> {
        let watched = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from).and_then(watched);
        match watched {
            Ok(pidfd) => Ok(Self::Pidfd(pidfd)),
            Err(_) => Ok(Self::Signals(pid, signal(SignalKind::child())?)),
        }
    }

    pub async fn reached(&mut self) {
        match self {
            Self::Pidfd(pidfd) => drop(pidfd.readable().await),
            Self::Signals(pid, signals) => {
                while !has_ended(*pid) {
                    signals.recv().await;
                }
            }
        }
    }
}

#[expect(unsafe_code, reason = "tokio cannot see that the descriptor is ours for as long as it is watched")]
fn watched(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, owned by what is made here, and not exchanged.
    Ok(unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?)
}

/// Every process of the system that could be read, but for those that have ended.
fn processes() -> Vec<Stat> {
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    all.flatten().filter_map(|process| process.stat().ok()).filter(|stat| !matches!(stat.state, 'Z' | 'X')).collect()
}

pub fn group_has_others(leader: Pid) -> bool {
    let leader = leader.as_raw_nonzero().get();
    processes().iter().any(|stat| stat.pgrp == leader && stat.pid != leader)
}

/// Whatever a program leaves behind is found from us.
pub fn before_reaping(_pid: Pid) {}

/// The start of a process counts ticks since boot: number and start together are not used again, so nobody else is hit.
pub fn signal_leftover(process: &Leftover, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty());
    if procfs::process::Process::new(process.pid).and_then(|found| found.stat()).is_ok_and(|stat| stat.starttime == process.start) {
        let _ = match pidfd {
            Ok(pidfd) => rustix::process::pidfd_send_signal(pidfd, signal),
            Err(_) => rustix::process::kill_process(pid, signal),
        };
    }
}

/// Whether there is any child at all. Where there is none, there is nothing deeper either: we would have adopted it.
pub fn children_left() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(rustix::process::waitid(WaitId::All, look), Err(rustix::io::Errno::CHILD))
}

/// What descends from us and runs, outside of our own process group. What is in our group was started by our own program for itself,
/// `git` for example.
pub fn leftovers() -> Vec<Leftover> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let own_group = rustix::process::getpgrp().as_raw_nonzero().get();
    let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
    for stat in processes() {
        children.entry(stat.ppid).or_default().push(stat);
    }
    let mut left = Vec::new();
    let mut open = vec![own];
    while let Some(parent) = open.pop() {
        for stat in children.remove(&parent).unwrap_or_default() {
            open.push(stat.pid);
            if stat.pgrp != own_group {
                left.push(Leftover { pid: stat.pid, start: stat.starttime });
            }
        }
    }
    left
}

/// Processes of our own user with this word in their environment, which a program shows as it was when it began.
pub fn marked(marker: &str) -> Vec<Leftover> {
    let own = std::process::id();
    let user = rustix::process::geteuid().as_raw();
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    let others = all.flatten().filter(|process| process.pid.unsigned_abs() != own && process.uid().is_ok_and(|uid| uid == user));
    let ours = others.filter(|process| {
        let environment = std::fs::read(format!("/proc/{}/environ", process.pid));
        environment.is_ok_and(|environment| crate::job_process::is_marked(&environment, marker))
    });
    let found = ours.filter_map(|process| process.stat().ok()).filter(|stat| !matches!(stat.state, 'Z' | 'X'));
    found.map(|stat| Leftover { pid: stat.pid, start: stat.starttime }).collect()
}

/// Reaps orphans that have ended. `ours` are children whose outcome somebody waits for.
pub fn reap_adopted(ours: &HashSet<u32>) {
    let own_group = rustix::process::getpgrp();
    while let Some(pid) = an_ended_child() {
        // It would be the first to be shown again; what is behind it waits for the next time.
        if ours.contains(&pid.as_raw_nonzero().get().unsigned_abs())
            || rustix::process::getpgid(Some(pid)).is_ok_and(|group| group == own_group)
        {
            return;
        }
        if rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG).is_err() {
            return;
        }
    }
}

/// A child that has ended, and stays to be reaped.
#[expect(unsafe_code, reason = "rustix does not tell which child waitid has found")]
fn an_ended_child() -> Option<Pid> {
    let mut found = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the pointer is to a value of ours; all zeros are a valid `siginfo_t`, and its pid stays zero when no child has ended.
    let pid = unsafe {
        let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        if libc::waitid(libc::P_ALL, 0, found.as_mut_ptr(), options) != 0 {
            return None;
        }
        found.assume_init_ref().si_pid()
    };
    Pid::from_raw(pid)
}
