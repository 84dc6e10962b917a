//! Unix: processes in groups, started by posix_spawn and reaped by wait4.
//!
//! Nothing here may take `Command` off the posix_spawn path (no `pre_exec`, no user or group, a program with a slash): fork copies the
//! page tables of a parent that may be large, 27 ms instead of 0.5 ms with 512 MiB.

#[cfg(target_os = "linux")]
use super::linux as kind;
#[cfg(not(target_os = "linux"))]
use super::macos as kind;

use super::{Missing, Running, Start, StartFault};
use crate::job_process::{Stream, Streams};
use rustix::fs::{Access, AtFlags, OFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use step_engine::event::Exit;
use step_model::result::{Traffic, Usage};
use tokio::net::unix::pipe::Receiver;

/// Starts programs.
#[derive(Debug)]
pub struct Spawner {
    /// `/dev/null`, opened once: the standard input of every program.
    nothing: File,
}

impl Spawner {
    /// # Errors
    /// `/dev/null` cannot be opened, or the system does not let us look after what becomes an orphan.
    pub fn new() -> io::Result<Self> {
        do_not_ignore_children();
        kind::adopt_orphans()?;
        Ok(Self { nothing: File::open("/dev/null")? })
    }

    /// # Errors
    /// The program does not run.
    pub fn start(&self, start: &Start<'_>) -> Result<Running, StartFault> {
        let (mut command, link) = self.command(start).map_err(StartFault::Machine)?;
        command.env_clear().envs(start.environment.iter().copied());
        command.current_dir(start.work_dir).process_group(0);
        let pipes = connect(&mut command, start.streams).map_err(StartFault::Machine)?;
        let pid = command.spawn().map_err(StartFault::Program)?.id();
        drop(command);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("the system numbers processes from 1");
        let child = Child { pid, end: None, reaped: false };
        kind::wait_until_it_runs(link)?;
        Ok(Running { child: child.watched().map_err(StartFault::Machine)?, pipes })
    }
}

impl Spawner {
    fn command(&self, start: &Start<'_>) -> io::Result<(Command, kind::Link)> {
        if let Some(confined) = kind::confined(start)? {
            return Ok(confined);
        }
        let mut command = Command::new(start.program);
        command.arg0(start.name).args(start.arguments).stdin(self.nothing.try_clone()?);
        Ok((command, Default::default()))
    }
}

fn connect(command: &mut Command, streams: Streams) -> io::Result<Vec<(Stream, Pipe)>> {
    match streams {
        Streams::Shared => {
            let (pipe, end) = Pipe::new()?;
            command.stdout(Stdio::from(end.try_clone()?)).stderr(end);
            Ok(vec![(Stream::Both, pipe)])
        }
        Streams::Separate => {
            let (output, output_end) = Pipe::new()?;
            let (error, error_end) = Pipe::new()?;
            command.stdout(output_end).stderr(error_end);
            Ok(vec![(Stream::Output, output), (Stream::Error, error)])
        }
    }
}

/// A program in a process group of its own, whose number is the program's.
///
/// Until it is reaped its number, and that of its group, belong to nobody else; so the group is only signalled before.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    end: Option<kind::End>,
    reaped: bool,
}

impl Child {
    /// Dropped, and thereby killed, when it cannot be watched.
    fn watched(mut self) -> io::Result<Self> {
        self.end = Some(kind::End::of(self.pid)?);
        Ok(self)
    }

    /// The number of the program, until it is reaped.
    pub fn number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the program has ended. May be dropped and called again.
    pub async fn ended(&mut self) {
        if let Some(end) = &mut self.end {
            end.reached().await;
        }
    }

    /// Asks the group to end. What was stopped goes on, so that it can.
    pub fn ask(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if !self.reaped {
            // It can fail when the group changed its user; then nobody can help.
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    /// Whether processes other than the program itself are in its group.
    pub fn group_has_others(&self) -> bool {
        !self.reaped && kind::group_has_others(self.pid)
    }

    /// Takes the outcome of a program that has ended.
    pub fn reap(&mut self) -> (Exit, Usage) {
        kind::before_reaping(self.pid);
        let waited = wait4(self.pid, 0);
        self.reaped = true;
        match waited {
            Ok(Some((status, usage))) => (exit_of(status), usage),
            // Somebody else in this process has waited for it: the outcome is lost.
            Ok(None) | Err(_) => (Exit::Code(-1), Usage::default()),
        }
    }
}

/// The job ends early: nothing of the group may go on.
impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            let _ = wait4(self.pid, libc::WNOHANG);
        }
    }
}

/// Whether a child has ended. It stays to be reaped.
pub(super) fn has_ended(pid: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(rustix::process::waitid(WaitId::Pid(pid), look), Ok(None))
}

/// A process that the job has left running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leftover {
    pub(super) pid: i32,
    /// Numbers are used again; number and start hardly are. In the system's own unit.
    pub(super) start: u64,
}

impl Leftover {
    pub fn ask(&self) {
        kind::signal_leftover(self, Signal::TERM);
        kind::signal_leftover(self, Signal::CONT);
    }

    pub fn kill(&self) {
        kind::signal_leftover(self, Signal::KILL);
    }
}

fn exit_of(status: libc::c_int) -> Exit {
    if libc::WIFSIGNALED(status) { Exit::Signal(libc::WTERMSIG(status)) } else { Exit::Code(libc::WEXITSTATUS(status)) }
}

/// `None`: it has not ended.
#[expect(unsafe_code, reason = "wait4 alone tells what a child has used, and rustix does not have it")]
fn wait4(pid: Pid, options: libc::c_int) -> io::Result<Option<(libc::c_int, Usage)>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to values of ours that live until the call returns.
        let waited = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, options, usage.as_mut_ptr()) };
        match waited {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => break,
        }
    }
    // SAFETY: all zeros are a valid `rusage`, and the call has filled it in.
    let usage = unsafe { usage.assume_init() };
    let usage = Usage {
        cpu_user: duration(usage.ru_utime),
        cpu_system: duration(usage.ru_stime),
        peak_memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) * kind::PEAK_MEMORY_UNIT,
        disk: kind::BLOCK.map(|block| {
            let bytes = |blocks: libc::c_long| u64::try_from(blocks).unwrap_or(0) * block;
            Traffic { incoming: bytes(usage.ru_inblock), outgoing: bytes(usage.ru_oublock) }
        }),
        ..Usage::default()
    };
    Ok(Some((status, usage)))
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// Who started us may have told the system to forget our children as they end (`SIGCHLD` ignored); then no outcome would ever be known.
#[expect(unsafe_code, reason = "no safe way to give a signal its default meaning back")]
fn do_not_ignore_children() {
    // SAFETY: only an ignored signal is changed, so no handler of anybody is lost; the default meaning runs no code.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init_ref().sa_sigaction == libc::SIG_IGN
        {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// What a program writes. We never block on it; the program does, while we do not read.
#[derive(Debug)]
pub struct Pipe {
    end: Receiver,
}

impl Pipe {
    /// The pipe, and the end that the program gets.
    fn new() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = kind::pipe()?;
        rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        Ok((Self { end: Receiver::from_owned_fd_unchecked(ours)? }, theirs))
    }

    /// Appends what there is to the spare room of `buffer`. Zero: the end.
    /// # Errors
    /// As read(2).
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.end.poll_read_ready(context))?;
            match self.end.try_read_buf(buffer) {
                // Not any more: it is told again when there is something.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return Poll::Ready(read),
            }
        }
    }

    /// As [`Pipe::poll_read`], but `None` when there is nothing now.
    /// # Errors
    /// As read(2).
    #[expect(clippy::unused_async, reason = "the same face on every system")]
    pub async fn read_now(&mut self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        // What the runtime has heard of the pipe may be older than what is in it.
        loop {
            match rustix::io::read(&self.end, rustix::buffer::spare_capacity(buffer)) {
                Ok(read) => return Ok(Some(read)),
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How many bytes have been written and not read.
    pub fn pending(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.end).unwrap_or(0)
    }

    /// Lets more be written before the program has to wait, where that is possible.
    pub fn enlarge(&self) {
        kind::enlarge(&self.end);
    }
}

/// The program that a command means. A name with a slash is a path already; any other is looked for in the directories of `path`, anew each time:
/// a step may have installed a program in a directory that comes first, and to find that out costs as much as to look.
/// # Errors
/// There is none.
pub fn find_program(name: &OsStr, path: Option<&OsStr>, work_dir: &Path) -> Result<PathBuf, Missing> {
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    for directory in path.unwrap_or_default().as_bytes().split(|byte| *byte == b':') {
        let directory = Path::new(OsStr::from_bytes(directory));
        if path.is_none_or(OsStr::is_empty) || name.is_empty() {
            break;
        }
        if directory.is_absolute() && is_program(&directory.join(name)) {
            return Ok(directory.join(name));
        }
        if !directory.is_absolute() && is_program(&work_dir.join(directory).join(name)) {
            return Err(Missing::Relative);
        }
    }
    Err(Missing::NotFound)
}

/// Whether we may execute it.
pub fn is_program(path: &Path) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok() && !path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_in_the_path_that_is_given() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("p");
        std::fs::write(&program, "").unwrap();
        let find = |path: &OsStr| find_program(OsStr::new("p"), Some(path), directory.path());
        assert_eq!(find(directory.path().as_os_str()), Err(Missing::NotFound), "not executable");
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(find(directory.path().as_os_str()), Ok(program));
        assert_eq!(find(OsStr::new("")), Err(Missing::NotFound));
        assert_eq!(find(OsStr::new(".")), Err(Missing::Relative));
        assert_eq!(find(OsStr::new("/nowhere::/tmp")), Err(Missing::Relative), "an empty part is the work directory");
        assert_eq!(find_program(OsStr::new("./p"), None, Path::new("/")), Ok("./p".into()));
        assert_eq!(find_program(OsStr::new("p"), None, directory.path()), Err(Missing::NotFound));
    }
}
