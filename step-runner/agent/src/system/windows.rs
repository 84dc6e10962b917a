//! Windows, as far as it goes without calls of its own: `taskkill` ends a program and what it started, pipes are read on threads. A program
//! cannot be asked to end here unless it has a window, what it used is not known, and processes whose parents have ended are not found.

use super::{Missing, Running, Start, StartFault};
use crate::job_process::{Stream, Streams};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::future::poll_fn;
use std::io::{self, Read};
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use step_engine::event::Exit;
use step_model::result::Usage;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use tokio::sync::mpsc;

/// Ctrl-C on our console is ours alone (process creation flags of the Windows API).
const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;

/// Starts programs.
#[derive(Debug)]
pub struct Spawner;

impl Spawner {
    /// # Errors
    /// Never here.
    #[expect(clippy::unnecessary_wraps, reason = "the same face on every system")]
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// # Errors
    /// The program does not run.
    pub fn start(&self, start: &Start<'_>) -> Result<Running, StartFault> {
        let mut command = Command::new(start.program);
        command.args(start.arguments).env_clear().envs(start.environment.iter().copied());
        command.current_dir(start.work_dir).stdin(Stdio::null()).creation_flags(CREATE_NEW_PROCESS_GROUP);
        let pipes = connect(&mut command, start.streams).map_err(StartFault::Machine)?;
        let mut command = tokio::process::Command::from(command);
        let process = command.kill_on_drop(true).spawn().map_err(StartFault::Program)?;
        let pid = process.id().unwrap_or(0);
        Ok(Running { child: Child { pid, process, exit: None }, pipes })
    }
}

fn connect(command: &mut Command, streams: Streams) -> io::Result<Vec<(Stream, Pipe)>> {
    match streams {
        Streams::Shared => {
            let (ours, theirs) = io::pipe()?;
            command.stdout(theirs.try_clone()?).stderr(theirs);
            Ok(vec![(Stream::Both, Pipe::of(ours)?)])
        }
        Streams::Separate => {
            let (output, output_end) = io::pipe()?;
            let (error, error_end) = io::pipe()?;
            command.stdout(output_end).stderr(error_end);
            Ok(vec![(Stream::Output, Pipe::of(output)?), (Stream::Error, Pipe::of(error)?)])
        }
    }
}

/// A program, and what it has started.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    process: tokio::process::Child,
    exit: Option<Exit>,
}

impl Child {
    /// The number of the program, until it has ended.
    pub fn number(&self) -> u32 {
        self.pid
    }

    /// Waits until the program has ended. May be dropped and called again.
    pub async fn ended(&mut self) {
        let status = self.process.wait().await;
        self.exit = Some(Exit::Code(status.ok().and_then(|status| status.code()).unwrap_or(-1)));
    }

    /// Asks the program and what it started to end, which works where they have a window.
    pub fn ask(&self) {
        self.taskkill(&["/T"]);
    }

    pub fn kill(&self) {
        self.taskkill(&["/T", "/F"]);
    }

    fn taskkill(&self, how: &[&str]) {
        if self.exit.is_none() {
            let quiet = || Stdio::null();
            let _ = Command::new("taskkill").args(how).arg("/PID").arg(self.pid.to_string()).stdout(quiet()).stderr(quiet()).status();
        }
    }

    /// Groups as on Unix are not there.
    pub fn group_has_others(&self) -> bool {
        false
    }

    /// Takes the outcome of a program that has ended.
    pub fn reap(&mut self) -> (Exit, Usage) {
        (self.exit.unwrap_or(Exit::Code(-1)), Usage::default())
    }
}

/// What a program writes, read by a thread that waits while we do not take it.
#[derive(Debug)]
pub struct Pipe {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
}

impl Pipe {
    fn of(mut end: io::PipeReader) -> io::Result<Self> {
        let (sender, pieces) = mpsc::channel(2);
        let read = move || {
            loop {
                let mut piece = vec![0; 1 << 16];
                let read = end.read(&mut piece);
                let is_last = !matches!(read, Ok(1..));
                let sent = sender.blocking_send(read.map(|length| {
                    piece.truncate(length);
                    piece
                }));
                if is_last || sent.is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("pipe".to_owned()).spawn(read)?;
        Ok(Self { pieces })
    }

    /// Appends what there is to `buffer`. Zero: the end.
    /// # Errors
    /// As the system reports them.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let Some(piece) = ready!(self.pieces.poll_recv(context)).transpose()? else { return Poll::Ready(Ok(0)) };
        buffer.extend_from_slice(&piece);
        Poll::Ready(Ok(piece.len()))
    }

    /// As [`Pipe::poll_read`], but `None` when there is nothing now. The thread may be about to hand over what it has read: it gets a moment.
    /// # Errors
    /// As the system reports them.
    pub async fn read_now(&mut self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let read = poll_fn(|context| self.poll_read(context, buffer));
        tokio::time::timeout(Duration::from_millis(50), read).await.ok().transpose()
    }

    /// Not known here: as much as can be read.
    pub fn pending(&self) -> u64 {
        u64::MAX
    }

    /// Not on this system.
    pub fn enlarge(&self) {}
}

/// What may be left out of the name of a program.
const EXTENSIONS: [&str; 5] = ["", ".exe", ".com", ".bat", ".cmd"];

/// The program that a command means. A name with a separator is a path already; any other is looked for in the directories of `path`.
/// # Errors
/// There is none.
pub fn find_program(name: &OsStr, path: Option<&OsStr>, work_dir: &Path) -> Result<PathBuf, Missing> {
    if Path::new(name).components().count() != 1 {
        return Ok(PathBuf::from(name));
    }
    for directory in std::env::split_paths(path.unwrap_or_default()) {
        for extension in EXTENSIONS {
            let mut file = name.to_owned();
            file.push(extension);
            if !is_program(&work_dir.join(&directory).join(&file)) {
                continue;
            }
            return if directory.is_absolute() { Ok(directory.join(&file)) } else { Err(Missing::Relative) };
        }
    }
    Err(Missing::NotFound)
}

/// Whether there is such a file: nothing says of a file here that it may be executed.
pub fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// A process that the job has left running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leftover {
    pid: u32,
    /// In seconds. Numbers are used again; number and start hardly are.
    start: u64,
}

impl Leftover {
    /// Not on this system.
    pub fn ask(&self) {}

    pub fn kill(&self) {
        let pid = Pid::from_u32(self.pid);
        let system = processes(ProcessesToUpdate::Some(&[pid]));
        if let Some(process) = system.as_ref().and_then(|system| system.process(pid)).filter(|process| process.start_time() == self.start) {
            process.kill();
        }
    }
}

fn processes(which: ProcessesToUpdate<'_>) -> Option<System> {
    let mut system = System::new().ok()?;
    system.refresh_processes_specifics(which, true, ProcessRefreshKind::nothing());
    Some(system)
}

/// Nobody adopts orphans here, so there is always a reason to look.
pub fn children_left() -> bool {
    true
}

/// What descends from us and runs. A number may have been used again: a child is not older than its parent.
pub fn leftovers() -> Vec<Leftover> {
    let Some(system) = processes(ProcessesToUpdate::All) else { return Vec::new() };
    let Some(own) = system.process(Pid::from_u32(std::process::id())) else { return Vec::new() };
    let mut left = Vec::new();
    let mut open = vec![(own.pid(), own.start_time())];
    while let Some((parent, parent_start)) = open.pop() {
        for process in system.processes().values() {
            if process.parent() == Some(parent) && process.start_time() >= parent_start && process.pid() != parent {
                open.push((process.pid(), process.start_time()));
                left.push(Leftover { pid: process.pid().as_u32(), start: process.start_time() });
            }
        }
    }
    left
}

/// Environments of others are not shown here.
pub fn marked(_marker: &str) -> Vec<Leftover> {
    Vec::new()
}

/// Nothing is reaped here.
pub fn reap_adopted(_ours: &HashSet<u32>) {}
