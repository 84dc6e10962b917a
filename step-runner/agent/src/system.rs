//! What differs from one operating system to the next: one module each, all with the same face.
//!
//! - `Spawner::new` prepares this process once; `Spawner::start` starts a program in a process group of its own.
//! - `Child`: tells when the program has ended, asks and kills its group, and reaps it. Dropped before that, it kills the group.
//! - `Pipe`: what the program writes.
//! - `children_left`, `leftovers`, `reap_adopted`: what the job has started and not waited for, in whichever group or session it is.
//! - `marked`: the same of a job whose process has died, by what its processes have in their environment. Nothing, where that is not shown.

#[cfg(target_os = "linux")]
pub mod afterwards;
#[cfg(target_os = "linux")]
pub mod cgroup;
#[cfg(target_os = "linux")]
pub mod confined;
#[cfg(unix)]
pub mod detached;
#[cfg(target_os = "linux")]
pub mod footprint;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod macos;
#[cfg(target_os = "linux")]
pub mod network;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::{children_left, leftovers, marked, reap_adopted};
#[cfg(all(unix, not(target_os = "linux")))]
pub use macos::{children_left, leftovers, marked, reap_adopted};
#[cfg(unix)]
pub use unix::{Child, Leftover, Pipe, Spawner, find_program, is_program};
#[cfg(windows)]
pub use windows::{Child, Leftover, Pipe, Spawner, children_left, find_program, is_program, leftovers, marked, reap_adopted};

use crate::job_process::{Stream, Streams};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// A program to start. Its standard input is empty.
#[derive(Debug)]
pub struct Start<'a> {
    /// A path, absolute or relative to the work directory.
    pub program: &'a Path,
    /// What the program sees as its own name.
    #[cfg_attr(windows, expect(dead_code, reason = "a program is not told its name there"))]
    pub name: &'a OsStr,
    pub arguments: &'a [&'a OsStr],
    /// All of it: nothing is inherited.
    pub environment: &'a [(&'a OsStr, &'a OsStr)],
    pub work_dir: &'a Path,
    pub streams: Streams,
    /// What is done to it before it begins.
    #[cfg(target_os = "linux")]
    pub confinement: Option<&'a confined::Confinement>,
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    pub child: Child,
    pub pipes: Vec<(Stream, Pipe)>,
}

/// Why a program does not run.
#[derive(Debug)]
pub enum StartFault {
    /// The system refused the program, its directory or its arguments.
    Program(io::Error),
    /// The system could not give what any program needs: a pipe, a process.
    Machine(io::Error),
    /// The system refused this part of its confinement.
    #[cfg(target_os = "linux")]
    Confinement(confined::Stage, io::Error),
}

/// Why a name does not lead to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is in no directory of PATH.
    NotFound,
    /// PATH has it in a directory that is relative, which would let a work directory replace programs.
    Relative,
}
