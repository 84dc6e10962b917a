//! A program that is confined before it begins: a step with limits is started by way of this program itself, which confines itself and then becomes it.
//!
//! ```text
//! we --posix_spawn--> step-runner exec-shim --reads what to do--> joins groups, leaves the network, lowers limits --exec--> the program
//!                           '--------------- what the system refused <----------------------'  the end of the link: it runs
//! ```
//!
//! What has to be done between fork and exec would take the spawn off its fast path, which costs a copy of our page tables (27 ms with 512 MiB); this
//! costs one more exec, half a millisecond, and only for steps with limits.

use super::Start;
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsString};
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// The first argument of a program that is to confine itself.
const WORD: &str = "exec-shim";

/// What is done before a program begins. In this order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Files that `0` is written into, to become a member of a control group.
    pub entrances: Vec<PathBuf>,
    pub no_network: bool,
    /// On so many cores.
    pub cores: Option<u32>,
    /// Bytes that the process may allocate.
    pub data: Option<u64>,
    /// Processes of the user besides those that there are.
    pub processes: Option<u64>,
    /// Bytes of each file that it writes.
    pub file_size: Option<u64>,
}

/// What the system refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    Group,
    Network,
    Cores,
    Limit,
    Exec,
}

#[derive(Debug, Serialize, Deserialize)]
struct Refusal {
    stage: Stage,
    error: i32,
}

/// The near end of the link to a program that confines itself.
#[derive(Debug)]
pub struct Link(UnixStream);

impl Link {
    /// Turns a command that starts a program into one that confines it first. Everything else that the command was told holds for the program too.
    /// # Errors
    /// There is no link to be had, or a path is not UTF-8.
    pub fn instead(start: &Start<'_>, confinement: &Confinement) -> io::Result<(Command, Self)> {
        let (mut near, far) = UnixStream::pair()?;
        // The kernel keeps far more than that for us.
        near.write_all(&serde_json::to_vec(confinement).map_err(io::Error::other)?)?;
        near.shutdown(Shutdown::Write)?;
        let mut command = Command::new(super::detached::own_image()?);
        command
            .arg0("step-runner")
            .arg(WORD)
            .arg(start.program)
            .arg(start.name)
            .args(start.arguments)
            .stdin(Stdio::from(OwnedFd::from(far)));
        Ok((command, Self(near)))
    }

    /// Waits until the program runs. The command must be gone: it holds the far end.
    /// # Errors
    /// What was refused, and why. The process ends by itself.
    pub fn wait(mut self) -> Result<(), (Stage, io::Error)> {
        let mut said = Vec::new();
        let read = self.0.read_to_end(&mut said);
        match serde_json::from_slice::<Refusal>(&said) {
            Ok(refusal) => Err((refusal.stage, io::Error::from_raw_os_error(refusal.error))),
            // It runs; or it was killed before it could, which its exit tells.
            Err(_) => read.map(drop).map_err(|error| (Stage::Exec, error)),
        }
    }
}

/// To be called first in every program that starts steps: `None`, unless it was started to confine itself and become another.
pub fn take_over() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    let (Ok(link), [program, name, arguments @ ..]) = (link(), &words[..]) else {
        eprintln!("error: `{WORD}` is how step-runner starts steps with limits; nobody types it");
        return Some(ExitCode::from(2));
    };
    let Refusal { stage, error } = become_program(&link, program, name, arguments);
    let said = serde_json::to_vec(&Refusal { stage, error }).unwrap_or_default();
    let _ = (&link).write_all(&said);
    Some(ExitCode::from(126))
}

/// The link was our standard input, which the program does not get.
fn link() -> io::Result<UnixStream> {
    let link = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::net::sockopt::socket_type(&link)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(UnixStream::from(link))
}

/// Returns only if it fails.
fn become_program(mut link: &UnixStream, program: &OsString, name: &OsString, arguments: &[OsString]) -> Refusal {
    let mut told = Vec::new();
    let refused = |stage| move |error: io::Error| Refusal { stage, error: error.raw_os_error().unwrap_or(libc::EIO) };
    let confinement = link.read_to_end(&mut told).and_then(|_| Ok(serde_json::from_slice::<Confinement>(&told)?));
    let outcome = confinement.map_err(refused(Stage::Exec)).and_then(|confinement| {
        confinement.join().map_err(refused(Stage::Group))?;
        confinement.leave_network().map_err(refused(Stage::Network))?;
        confinement.keep_to_cores().map_err(refused(Stage::Cores))?;
        confinement.lower_limits().map_err(refused(Stage::Limit))
    });
    match outcome {
        Ok(()) => refused(Stage::Exec)(exec(program, name, arguments)),
        Err(refusal) => refusal,
    }
}

impl Confinement {
    fn join(&self) -> io::Result<()> {
        self.entrances.iter().try_for_each(|entrance| std::fs::OpenOptions::new().write(true).open(entrance)?.write_all(b"0"))
    }

    /// A namespace of the network with nothing but a loopback device. Without the right to make one, in a user namespace, in which we stay who we are.
    fn leave_network(&self) -> io::Result<()> {
        if !self.no_network {
            return Ok(());
        }
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if let Err(error) = unshare(libc::CLONE_NEWNET) {
            if error.raw_os_error() != Some(libc::EPERM) {
                return Err(error);
            }
            unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)?;
            std::fs::write("/proc/self/setgroups", "deny")?;
            std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        }
        loopback_up()
    }

    /// Steps that run at the same time are not all put onto the same core.
    fn keep_to_cores(&self) -> io::Result<()> {
        let Some(wanted) = self.cores else { return Ok(()) };
        let ours = rustix::thread::sched_getaffinity(None)?;
        let cores: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| ours.is_set(*core)).collect();
        let first = usize::try_from(std::process::id()).unwrap_or(0);
        let mut chosen = rustix::thread::CpuSet::new();
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(cores.len());
        (0..wanted).for_each(|at| chosen.set(cores[(first + at) % cores.len()]));
        Ok(rustix::thread::sched_setaffinity(None, &chosen)?)
    }

    fn lower_limits(&self) -> io::Result<()> {
        let processes = self.processes.map(|more| more.saturating_add(processes_of_user()));
        for (resource, wanted) in [(Resource::Data, self.data), (Resource::Nproc, processes), (Resource::Fsize, self.file_size)] {
            let Some(wanted) = wanted else { continue };
            // What we may not have we cannot give.
            let most = rustix::process::getrlimit(resource).maximum.map_or(wanted, |most| most.min(wanted));
            rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        Ok(())
    }
}

/// Processes and threads, as the kernel counts them for `RLIMIT_NPROC`.
#[cfg(target_os = "linux")]
fn processes_of_user() -> u64 {
    let user = rustix::process::getuid().as_raw();
    let Ok(all) = procfs::process::all_processes() else { return 0 };
    let ours = all.flatten().filter(|process| process.uid().is_ok_and(|uid| uid == user));
    ours.filter_map(|process| process.stat().ok()).map(|stat| u64::try_from(stat.num_threads).unwrap_or(1)).sum()
}

#[expect(unsafe_code, reason = "the kernel gives a namespace to the calling thread, the only one here")]
fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is involved, and no other thread is there to be surprised.
    if unsafe { libc::unshare(flags) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Programs talk to themselves over it.
#[expect(unsafe_code, reason = "no library of ours knows these two requests")]
fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd());
    // SAFETY: all zeros are a valid `ifreq`, the name fits and ends in zero, and the kernel writes only into it.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
            *to = from.cast_signed();
        }
        if libc::ioctl(descriptor, libc::SIOCGIFFLAGS as _, &raw mut request) != 0 {
            return Err(io::Error::last_os_error());
        }
        request.ifr_ifru.ifru_flags |= (libc::IFF_UP as libc::c_short) | (libc::IFF_RUNNING as libc::c_short);
        if libc::ioctl(descriptor, libc::SIOCSIFFLAGS as _, &raw mut request) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// As the system would have started it for us: nobody's shell takes over a file that is no program.
#[expect(unsafe_code, reason = "the standard library looks for programs that have no slash, and runs what is none by a shell")]
fn exec(program: &OsString, name: &OsString, arguments: &[OsString]) -> io::Error {
    let text = |word: &OsString| CString::new(word.clone().into_vec());
    let words: Result<Vec<CString>, _> = std::iter::once(name).chain(arguments).map(text).collect();
    let (Ok(program), Ok(words)) = (CString::new(program.as_bytes()), words) else { return io::ErrorKind::InvalidInput.into() };
    let pointers: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: every pointer is to a text that ends in zero and lives until the call returns, and the list ends in null. Our runtime ignores broken
    // pipes; a program expects to end by them.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execv(program.as_ptr(), pointers.as_ptr());
    }
    io::Error::last_os_error()
}
