//! The process of a plugin: started with what it needs to know, read for ever, and ended for certain.

use super::{Options, output};
use crate::certificate::{Identity, TlsFault};
use crate::handshake::{self, Line, LineFault};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A first line that is longer is none.
const LONGEST_LINE: usize = 64 << 10;
/// For what a process that has ended wrote before: only something that it left behind can hold the pipe open longer.
const AFTER_END: Duration = Duration::from_secs(1);
/// After a kill: for the kernel to take the process away.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// For the pipes to close. A grandchild may hold them for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a plugin could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    #[error("could not start `{}`: {}", .program.display(), explained(.source))]
    Spawn { program: PathBuf, source: io::Error },
    #[error("plugin exited before we could connect ({status}): {}", .program.display())]
    Ended { program: PathBuf, status: ExitStatus },
    #[error("the program has closed its standard output without a word; is `{}` a fleeting plugin?", .program.display())]
    Silent { program: PathBuf },
    #[error("the first line of `{}` is longer than {LONGEST_LINE} bytes; is it a fleeting plugin?", .program.display())]
    Endless { program: PathBuf },
    #[error("timeout while waiting for plugin to start: `{}` has said nothing for {limit:?}", .program.display())]
    Late { program: PathBuf, limit: Duration },
    #[error("{fault}: {}", .program.display())]
    Line { program: PathBuf, fault: LineFault },
    #[error(transparent)]
    Tls(#[from] TlsFault),
    #[error("could not reach the plugin `{}`: {reason}", .program.display())]
    Connect { program: PathBuf, reason: String },
    #[error("the plugin `{}` says that it does not serve: {reason}", .program.display())]
    NotServing { program: PathBuf, reason: String },
}

/// With what to do about it.
fn explained(error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "; is it there, and its interpreter or loader, if it needs one?",
        io::ErrorKind::PermissionDenied => "; make it executable by `chmod +x`",
        _ if error.raw_os_error() == Some(8) => "; was it built for this machine?",
        _ => "",
    };
    format!("{error}{hint}")
}

/// A process that lives, or did. When this is dropped the process is killed.
#[derive(Debug)]
pub struct Process {
    program: PathBuf,
    kill: Mutex<Option<oneshot::Sender<()>>>,
    ended: watch::Receiver<Option<ExitStatus>>,
    readers: Vec<JoinHandle<()>>,
    /// Where its socket is. Removed with everything in it, whatever way the process ends.
    _directory: Option<tempfile::TempDir>,
}

impl Process {
    /// Starts the program and waits for its first line.
    /// # Errors
    /// See [`StartFault`]. Nothing is left running.
    pub async fn start(program: &Path, options: &Options, identity: Option<&Identity>) -> Result<(Self, Line), StartFault> {
        let directory = socket_directory();
        let mut command = command(program, options);
        if let Some(directory) = &directory {
            command.env(handshake::SOCKET_DIRECTORY, directory.path());
        }
        if let Some(identity) = identity {
            command.env(handshake::CLIENT_CERTIFICATE, identity.pem());
        }
        let spawned = command.spawn().map_err(|source| StartFault::Spawn { program: program.to_owned(), source });
        let mut child = spawned?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut readers = Vec::new();
        if let Some(stderr) = stderr {
            readers.push(tokio::spawn(output::follow(stderr, options.name.clone(), options.log.clone())));
        }
        let Some(mut stdout) = stdout else { return Err(StartFault::Silent { program: program.to_owned() }) };
        let (kill, killed) = oneshot::channel();
        let (tell_ended, ended) = watch::channel(None);
        tokio::spawn(keep(child, killed, tell_ended));
        let mut process = Self { program: program.to_owned(), kill: Mutex::new(Some(kill)), ended, readers, _directory: directory };
        let line = process.first_line(&mut stdout, options.start_limit).await?;
        // Whatever else it writes there is nobody's, but it must be taken.
        process.readers.push(tokio::spawn(drain(stdout)));
        let line = Line::parse(&line, identity.is_some());
        let line = line.map_err(|fault| StartFault::Line { program: program.to_owned(), fault })?;
        Ok((process, line))
    }

    async fn first_line(&self, stdout: &mut ChildStdout, limit: Duration) -> Result<String, StartFault> {
        let program = || self.program.clone();
        let mut reading = Box::pin(read_line(stdout));
        let read = tokio::select! {
            read = timeout(limit, &mut reading) => read.map_err(|_| StartFault::Late { program: program(), limit })?,
            _ = self.has_ended() => timeout(AFTER_END, &mut reading).await.unwrap_or(FirstLine::None),
        };
        match read {
            FirstLine::Line(line) => Ok(line),
            FirstLine::TooLong => Err(StartFault::Endless { program: program() }),
            FirstLine::None => match self.ended_within(AFTER_END).await {
                Some(status) => Err(StartFault::Ended { program: program(), status }),
                None => Err(StartFault::Silent { program: program() }),
            },
        }
    }

    async fn has_ended(&self) -> Option<ExitStatus> {
        let mut ended = self.ended.clone();
        let status = ended.wait_for(Option::is_some).await;
        status.ok().and_then(|status| *status)
    }

    /// How it has ended; waits for that no longer than so.
    pub async fn ended_within(&self, limit: Duration) -> Option<ExitStatus> {
        timeout(limit, self.has_ended()).await.ok().flatten()
    }

    /// At once, with whatever is in its process group.
    pub fn kill(&self) {
        drop(self.kill.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Waits so long for its end, then kills it and whatever is in its process group. Returns whether it ended by itself.
    pub async fn end(mut self, grace: Duration) -> bool {
        let by_itself = self.ended_within(grace).await.is_some();
        if !by_itself {
            self.kill();
            self.ended_within(AFTER_KILL).await;
        }
        let readers = std::mem::take(&mut self.readers);
        let all_read = async {
            for reader in &mut readers.into_iter() {
                let _ = reader.await;
            }
        };
        let _ = timeout(LAST_WORDS, all_read).await;
        by_itself
    }
}

/// Owns the child: tells how it ended, and kills it when nobody wants it any more.
async fn keep(mut child: Child, killed: oneshot::Receiver<()>, ended: watch::Sender<Option<ExitStatus>>) {
    let status = tokio::select! {
        status = child.wait() => status,
        _ = killed => {
            kill_all(&mut child);
            child.wait().await
        }
    };
    // That it could not be waited for means that it is gone.
    ended.send_replace(Some(status.unwrap_or_default()));
}

/// The whole group, so that no child of the plugin stays behind. The process is not yet reaped, so its number is still its own.
fn kill_all(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.start_kill();
}

enum FirstLine {
    Line(String),
    TooLong,
    None,
}

/// Bytes after the line are lost; they are nobody's.
async fn read_line(stdout: &mut ChildStdout) -> FirstLine {
    let mut read = Vec::new();
    let mut buffer = vec![0; 4096];
    loop {
        match stdout.read(&mut buffer).await {
            Ok(0) | Err(_) => return FirstLine::None,
            Ok(count) => read.extend_from_slice(&buffer[..count]),
        }
        if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            return FirstLine::Line(String::from_utf8_lossy(&read[..end]).into_owned());
        }
        if read.len() > LONGEST_LINE {
            return FirstLine::TooLong;
        }
    }
}

async fn drain(mut stdout: ChildStdout) {
    let _ = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await;
}

fn command(program: &Path, options: &Options) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // What a host above us said to us is not meant for our plugins.
    for name in handshake::ALL {
        command.env_remove(name);
    }
    command.envs(&options.environment);
    command.env(handshake::COOKIE.0, handshake::COOKIE.1);
    command.env(handshake::VERSIONS, handshake::APP.to_string());
    command.env(handshake::MIN_PORT, handshake::PORTS.0.to_string());
    command.env(handshake::MAX_PORT, handshake::PORTS.1.to_string());
    // A Ctrl-C for us is none for the plugin: it is still needed to clean up.
    #[cfg(unix)]
    command.process_group(0);
    command
}

/// For this user alone, so that nobody else can stand in for the plugin. `None`: the plugin chooses.
#[cfg(unix)]
fn socket_directory() -> Option<tempfile::TempDir> {
    /// The plugin adds `/plugin` and up to ten digits to the path, and a socket's has at most 107 bytes.
    const LONGEST: usize = 85;
    let make = |parent: &Path| tempfile::Builder::new().prefix("fleeting-").tempdir_in(parent).ok();
    let directory = make(&std::env::temp_dir()).filter(|directory| directory.path().as_os_str().len() <= LONGEST);
    directory.or_else(|| make(Path::new("/tmp")))
}

#[cfg(not(unix))]
fn socket_directory() -> Option<tempfile::TempDir> {
    None
}
