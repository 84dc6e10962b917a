//! The programs as things to run: with a limit, with both streams kept, and with nothing inherited that a test did not name.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long a program of a test may take unless the test says otherwise: a busy machine with two cores.
pub const LIMIT: Duration = Duration::from_secs(60);

/// After the end of a program its pipes must be closed too: whoever holds them longer is an orphan.
const LINGER: Duration = Duration::from_secs(5);

/// Where `./test` put the program that a variable names.
/// # Panics
/// The variable is not set: a guess at a build directory would test a stale program.
pub fn path(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from).unwrap_or_else(|| {
        panic!("{variable} is not set: run the tests by ./test, which builds the programs first and exports their paths")
    });
    assert!(path.is_file(), "{variable} names {}, which is not a file: run ./test", path.display());
    path
}

/// A program that has not been started yet.
#[derive(Debug)]
pub struct Invocation {
    command: Command,
    input: Option<Vec<u8>>,
    limit: Duration,
}

impl Invocation {
    /// `step-runner` with an empty environment but for PATH, HOME, TMPDIR and where the agents for containers lie.
    pub fn step_runner<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::of(&path("STEP_RUNNER"), arguments)
    }

    /// Any program, with the same small environment.
    pub fn of<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        for kept in ["PATH", "HOME", "TMPDIR", "LLVM_PROFILE_FILE", "STEP_RUNNER_AGENTS"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        Self { command, input: None, limit: LIMIT }
    }

    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// What the program reads from standard input; without it, nothing.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self.command.stdin(Stdio::piped());
        self
    }

    /// Where standard output goes in place of the test.
    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.command.stdout(stdout);
        self
    }

    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the program to its end.
    pub fn finish(self) -> Finished {
        self.start().finish()
    }

    /// Starts the program in a process group of its own, as a shell would.
    pub fn start(mut self) -> Started {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut self.command, 0);
        let shown = format!("{:?}", self.command);
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("could not start {shown}: {error}"));
        if let (Some(input), Some(mut pipe)) = (self.input, child.stdin.take()) {
            // A program that does not read all of it is no fault of the test.
            std::thread::spawn(move || drop(pipe.write_all(&input)));
        }
        let (sender, events) = channel();
        let mut open = 0;
        if let Some(pipe) = child.stdout.take() {
            open += 1;
            forward(pipe, sender.clone(), Happened::Stdout);
        }
        if let Some(pipe) = child.stderr.take() {
            open += 1;
            forward(pipe, sender.clone(), Happened::Stderr);
        }
        let pid = child.id();
        std::thread::spawn(move || sender.send(Happened::Ended(child.wait().expect("a child can be waited for"))));
        Started { shown, pid, events, open, ended: None, stdout: Vec::new(), stderr: Vec::new(), began: Instant::now(), limit: self.limit }
    }
}

enum Happened {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Closed,
    Ended(ExitStatus),
}

fn forward(mut pipe: impl Read + Send + 'static, to: Sender<Happened>, as_event: fn(Vec<u8>) -> Happened) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if to.send(as_event(buffer[..count].to_vec())).is_err() {
                return;
            }
        }
        drop(to.send(Happened::Closed));
    });
}

/// A program that runs.
#[derive(Debug)]
pub struct Started {
    shown: String,
    /// Also the number of its process group.
    pub pid: u32,
    events: Receiver<Happened>,
    /// Streams that have not been closed yet.
    open: usize,
    ended: Option<ExitStatus>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    began: Instant,
    limit: Duration,
}

impl std::fmt::Debug for Happened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Happened")
    }
}

impl Started {
    /// Waits until the program has written `text` to either stream.
    /// # Panics
    /// It ended, or its limit passed, without.
    pub fn wait_for(&mut self, text: &str) {
        while !contains(&self.stdout, text) && !contains(&self.stderr, text) {
            assert!(self.open > 0 || self.ended.is_none(), "{} ended and never wrote {text:?}\n{}", self.shown, self.so_far());
            self.next_event(self.limit);
        }
    }

    /// Sends a signal to the program alone.
    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
        rustix::process::kill_process(pid, signal).unwrap_or_else(|error| panic!("could not signal {}: {error}", self.shown));
    }

    /// Sends a signal to its process group, as a terminal does for Ctrl-C.
    #[cfg(unix)]
    pub fn signal_group(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
        rustix::process::kill_process_group(pid, signal).unwrap_or_else(|error| panic!("could not signal {}: {error}", self.shown));
    }

    /// Waits for the end of the program and of both streams.
    /// # Panics
    /// The limit passed, or a stream stayed open after the end: somebody was left behind.
    pub fn finish(mut self) -> Finished {
        while self.ended.is_none() {
            self.next_event(self.limit);
        }
        let elapsed = self.began.elapsed();
        let closed_by = elapsed + LINGER;
        while self.open > 0 {
            self.next_event(closed_by);
        }
        let status = self.ended.expect("it has ended");
        Finished { shown: self.shown, status, stdout: self.stdout, stderr: self.stderr, elapsed }
    }

    fn next_event(&mut self, limit: Duration) {
        match self.events.recv_timeout(limit.saturating_sub(self.began.elapsed())) {
            Ok(Happened::Stdout(bytes)) => self.stdout.extend(bytes),
            Ok(Happened::Stderr(bytes)) => self.stderr.extend(bytes),
            Ok(Happened::Closed) => self.open -= 1,
            Ok(Happened::Ended(status)) => self.ended = Some(status),
            Err(_) => {
                self.kill_group();
                panic!(
                    "{}: not over after {limit:?} (ended: {:?}, open streams: {})\n{}",
                    self.shown,
                    self.ended,
                    self.open,
                    self.so_far()
                );
            }
        }
    }

    #[cfg(unix)]
    fn kill_group(&self) {
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) {
            let _gone_already = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    fn kill_group(&self) {}

    fn so_far(&self) -> String {
        format!("--- stdout\n{}\n--- stderr\n{}", String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr))
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A program that ran.
#[derive(Debug)]
pub struct Finished {
    shown: String,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub elapsed: Duration,
}

impl Finished {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Asserts the exit code, and that nothing panicked on the way.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self}");
        assert!(!contains(&self.stderr, "panicked at") && !contains(&self.stdout, "panicked at"), "{self}");
        self
    }

    /// Asserts that standard error holds a text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(contains(&self.stderr, text), "standard error does not hold {text:?}\n{self}");
        self
    }

    /// Asserts that standard output holds a text.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert!(contains(&self.stdout, text), "standard output does not hold {text:?}\n{self}");
        self
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A log of a hundred megabytes is no help.
        let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(20_000)]).into_owned();
        writeln!(f, "{} ended with {} after {:?}", self.shown, self.status, self.elapsed)?;
        write!(f, "--- stdout\n{}\n--- stderr\n{}", shown(&self.stdout), shown(&self.stderr))
    }
}
