//! One process of a case: its output through one pipe, its end, and whoever it leaves behind.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use step_engine::event::Exit;

/// How long the output of a process that has ended is waited for: a program in the background may hold the pipe open.
const LINGER: Duration = Duration::from_millis(200);
/// Looks at a process whose output is closed or silent, less often the longer it takes.
const FIRST_LOOK: Duration = Duration::from_micros(200);
const LAST_LOOK: Duration = Duration::from_millis(20);

/// A process that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    output: Receiver<Vec<u8>>,
}

/// What happened to it.
#[derive(Debug)]
pub enum Happened {
    Wrote(Vec<u8>),
    Ended(Exit),
    /// Nothing until now.
    Nothing,
}

impl Running {
    /// Both output streams go through one pipe, so their order is exact; there is nothing to read from standard input.
    /// # Errors
    /// The system does not start it.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (mut reader, writer) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = leftovers::spawn(&mut command)?;
        // Holds our ends of the pipe.
        drop(command);
        let (sender, output) = channel();
        std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            let mut buffer = [0; 16 * 1024];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { child, output })
    }

    /// Waits until something happens, but not longer than until `until`.
    pub fn wait(&mut self, until: Option<Instant>) -> Happened {
        let mut look = FIRST_LOOK;
        loop {
            let left = until.map_or(LAST_LOOK, |until| until.saturating_duration_since(Instant::now()));
            match self.output.recv_timeout(look.min(left)) {
                Ok(bytes) => return Happened::Wrote(bytes),
                // Silent, but perhaps not over.
                Err(RecvTimeoutError::Disconnected) if look > FIRST_LOOK => std::thread::sleep(look.min(left)),
                Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(exit) = self.ended() {
                return Happened::Ended(exit);
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Happened::Nothing;
            }
            look = (look * 2).min(LAST_LOOK);
        }
    }

    fn ended(&mut self) -> Option<Exit> {
        let status = self.child.try_wait().ok()??;
        leftovers::forget(self.child.id());
        Some(exit_of(status))
    }

    /// What is still in the pipe of a process that has ended.
    pub fn rest(&mut self) -> Vec<u8> {
        let until = Instant::now() + LINGER;
        let mut rest = Vec::new();
        while let Ok(bytes) = self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
            rest.extend(bytes);
        }
        rest
    }

    /// Asks it and its process group to end.
    pub fn ask(&mut self) {
        self.signal(false);
    }

    pub fn kill(&mut self) {
        self.signal(true);
    }

    #[cfg(unix)]
    fn signal(&mut self, kill: bool) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // It may have ended in this moment; it is ours until it is waited for, so its number is not another's.
            let _gone = kill_process_group(group, if kill { Signal::KILL } else { Signal::TERM });
        }
    }

    #[cfg(not(unix))]
    fn signal(&mut self, _kill: bool) {
        let _gone = self.child.kill();
    }
}

#[cfg(unix)]
fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal().map_or_else(|| Exit::Code(status.code().unwrap_or(-1)), Exit::Signal)
}

#[cfg(not(unix))]
fn exit_of(status: std::process::ExitStatus) -> Exit {
    Exit::Code(status.code().unwrap_or(-1))
}

pub use leftovers::{adopt, alone, sweep};

/// What a case left running, told by a path of the case in its environment. We are the subreaper: whoever loses its parent becomes our child.
#[cfg(target_os = "linux")]
mod leftovers {
    use rustix::process::{Pid, Signal, WaitOptions};
    use std::collections::BTreeSet;
    use std::process::{Child, Command};
    use std::sync::{Mutex, MutexGuard, Once, PoisonError};
    use std::{fs, io};

    /// Children that a [`super::Running`] waits for. Held while one is born: nobody else may wait for it.
    static OURS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

    fn ours() -> MutexGuard<'static, BTreeSet<u32>> {
        OURS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn adopt() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // Where it cannot be, only process groups are ended.
            let _not_possible = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        });
    }

    pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
        let mut ours = ours();
        let child = command.spawn()?;
        ours.insert(child.id());
        Ok(child)
    }

    pub(super) fn forget(pid: u32) {
        ours().remove(&pid);
    }

    /// Does something while no process is born.
    pub fn alone<T>(act: impl FnOnce() -> T) -> T {
        let _nobody_else = ours();
        act()
    }

    /// Ends every process that has `mark` in its environment and no parent but us, until there is none.
    pub fn sweep(mark: &str) {
        // A process that is killed leaves its children to us: generations, not time.
        for _ in 0..64 {
            let ours = ours();
            let mut found = false;
            for pid in children().into_iter().filter(|pid| !ours.contains(pid)) {
                let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
                if is_marked(pid, mark) {
                    found = true;
                    let _gone = rustix::process::kill_process(raw, Signal::KILL);
                    let _gone = rustix::process::waitpid(Some(raw), WaitOptions::empty());
                } else if is_dead(pid) {
                    let _gone = rustix::process::waitpid(Some(raw), WaitOptions::NOHANG);
                }
            }
            if !found {
                return;
            }
        }
    }

    fn children() -> Vec<u32> {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(Result::ok);
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
    }

    fn is_marked(pid: u32, mark: &str) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|window| window == mark.as_bytes())
    }

    fn is_dead(pid: u32) -> bool {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
    }
}

#[cfg(not(target_os = "linux"))]
mod leftovers {
    use std::process::{Child, Command};

    use std::sync::{Mutex, PoisonError};

    static BIRTH: Mutex<()> = Mutex::new(());

    pub fn alone<T>(act: impl FnOnce() -> T) -> T {
        let _nobody_else = BIRTH.lock().unwrap_or_else(PoisonError::into_inner);
        act()
    }

    pub fn adopt() {}
    pub fn sweep(_mark: &str) {}
    pub(super) fn spawn(command: &mut Command) -> std::io::Result<Child> {
        alone(|| command.spawn())
    }
    pub(super) fn forget(_pid: u32) {}
}
