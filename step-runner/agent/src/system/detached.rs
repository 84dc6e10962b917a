//! Unix: processes of our own that owe nothing to the one that started them, and the pairs of sockets between.
//!
//! ```text
//! front --starts, once--> zygote --forks, for each link that it is given--> job process
//!   '---------------------------- link ---------------------------------------'
//! ```

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, IoSlice, IoSliceMut};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType,
};
use rustix::process::Pid;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What this process sees as its program when it starts itself: the image that runs, also when its file has been replaced meanwhile.
#[cfg(target_os = "linux")]
const OWN_IMAGE: &str = "/proc/self/exe";

/// Starts this very program again. Its standard input is one end of a pair of sockets, of which the other is returned; it has no
/// other descriptor of ours, and its output goes nowhere until it says otherwise.
/// # Errors
/// There is no process to be had.
pub fn start_own(arguments: &[&str], environment: &[(String, PathBuf)]) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(own_image()?);
    command.arg0("step-runner").args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
    let child = command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok((child, ours))
}

/// The program that runs, as a path to start it again.
#[cfg(target_os = "linux")]
pub(super) fn own_image() -> io::Result<PathBuf> {
    let image = Path::new(OWN_IMAGE);
    // A container may come without /proc.
    if image.exists() { Ok(image.to_path_buf()) } else { std::env::current_exe() }
}

#[cfg(not(target_os = "linux"))]
fn own_image() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Called first in a process that [`start_own`] has made: it leaves the session, and what was its standard input becomes the link to
/// whoever started it.
/// # Errors
/// Standard input is no socket: somebody else has started this process.
pub fn detach() -> io::Result<UnixStream> {
    let link = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::net::sockopt::socket_type(&link)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // The end of a terminal's or a remote session ends what belongs to it.
    let _ = rustix::process::setsid();
    keep_memory_private();
    Ok(UnixStream::from(link))
}

/// The far end of [`fork_over`], called by a process of one thread that [`start_own`] has made. Returns in each process that it forks, with the link of
/// that; and in this one, with `None`, when nobody can ask any more. `not_forked` is told of a link for which there is no process to be had.
/// # Errors
/// As recvmsg(2).
pub fn fork_for_each(asks: UnixStream, not_forked: impl Fn(UnixStream, io::Error)) -> io::Result<Option<UnixStream>> {
    debug_assert_eq!(std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count), 1, "a process of one thread");
    children_are_reaped_by_the_system(true);
    #[cfg(target_os = "linux")]
    {
        super::footprint::share_one_heap();
        super::footprint::let_go();
    }
    loop {
        let mut byte = [0];
        let (read, link) = receive_with(&asks, &mut byte)?;
        if read == 0 {
            return Ok(None);
        }
        let Some(link) = link.map(UnixStream::from) else { continue };
        match fork() {
            Ok(None) => {
                children_are_reaped_by_the_system(false);
                let _ = rustix::process::setsid();
                return Ok(Some(link));
            }
            Ok(Some(_)) => {}
            Err(error) => not_forked(link, error),
        }
    }
}

/// Has a process forked at the other end of `asks`. Returns the near end of its link.
/// # Errors
/// There are no sockets to be had, or nobody is at the other end.
pub fn fork_over(asks: &UnixStream) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    send_with(asks, &[0], &theirs)?;
    Ok(ours)
}

/// The number of the child; in the child, `None`.
#[expect(unsafe_code, reason = "rustix has no fork: it is sound only in a process of one thread")]
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: no other thread is there that could hold a lock or be in the middle of something.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Whether the outcome of a child is kept until somebody asks for it. Who forgets its children must not wait for them.
#[expect(unsafe_code, reason = "no safe way to set what a signal does by default")]
fn children_are_reaped_by_the_system(are: bool) {
    // SAFETY: neither meaning runs code of ours.
    unsafe { libc::signal(libc::SIGCHLD, if are { libc::SIG_IGN } else { libc::SIG_DFL }) };
}

/// No core file and no reading of our memory, which holds secrets: neither by the steps of a job nor by other processes of the user. What we
/// start is not affected.
pub fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Standard output and error go to this file from now on.
/// # Errors
/// As open(2) and dup2(2).
pub fn redirect_output(file: &Path) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let file = rustix::fs::open(file, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::stdio::dup2_stdout(&file)?;
    rustix::stdio::dup2_stderr(&file)?;
    Ok(())
}

/// Sends a few bytes, which must not be empty, and a descriptor with them.
/// # Errors
/// As sendmsg(2); also when not all of the bytes could be sent at once.
pub fn send_with(socket: &UnixStream, bytes: &[u8], descriptor: &impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let sent = rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty())?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives up to the length of `buffer`, and a descriptor if there is one. Zero bytes: the end.
/// # Errors
/// As recvmsg(2).
pub fn receive_with(socket: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    let received = rustix::io::retry_on_intr(|| rustix::net::recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, flags))?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    if let Some(descriptor) = &descriptor {
        rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    Ok((received.bytes, descriptor))
}

/// Listens on a socket in a directory, however long the directory's path is. Only the user may connect.
/// # Errors
/// As bind(2).
pub fn listen_in(directory: &Path, name: &str) -> io::Result<std::os::unix::net::UnixListener> {
    let directory = Reached::new(directory)?;
    let listener = std::os::unix::net::UnixListener::bind(directory.path.join(name))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to a socket in a directory, however long the directory's path is. Does not wait.
/// # Errors
/// As connect(2).
pub fn connect_in(directory: &Path, name: &str) -> io::Result<UnixStream> {
    let directory = Reached::new(directory)?;
    let address = rustix::net::SocketAddrUnix::new(directory.path.join(name))?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, own_flags(), None)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    rustix::net::connect(&stream, &address)?;
    Ok(stream)
}

#[cfg(target_os = "linux")]
fn own_flags() -> SocketFlags {
    SocketFlags::CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn own_flags() -> SocketFlags {
    SocketFlags::empty()
}

/// A directory by a path that is short: addresses of sockets have at most 107 bytes.
struct Reached {
    path: PathBuf,
    /// Keeps the path valid.
    _directory: Option<OwnedFd>,
}

impl Reached {
    fn new(directory: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if std::os::unix::ffi::OsStrExt::as_bytes(directory.as_os_str()).len() > 80 {
            use std::os::fd::AsRawFd as _;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::open(directory, flags, Mode::empty())?;
            return Ok(Self { path: format!("/proc/self/fd/{}", opened.as_raw_fd()).into(), _directory: Some(opened) });
        }
        Ok(Self { path: directory.to_path_buf(), _directory: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_travels_with_bytes() {
        let (near, far) = UnixStream::pair().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = File::create(directory.path().join("f")).unwrap();
        send_with(&near, b"abc", &file).unwrap();
        let mut buffer = [0; 16];
        let (read, descriptor) = receive_with(&far, &mut buffer).unwrap();
        assert_eq!(&buffer[..read], b"abc");
        std::io::Write::write_all(&mut File::from(descriptor.unwrap()), b"through it").unwrap();
        assert_eq!(std::fs::read(directory.path().join("f")).unwrap(), b"through it");
    }

    #[test]
    fn a_socket_is_reached_in_a_directory_with_a_long_path() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("x".repeat(200));
        std::fs::create_dir(&deep).unwrap();
        assert!(connect_in(&deep, "socket").is_err());
        let _listener = listen_in(&deep, "socket").unwrap();
        connect_in(&deep, "socket").unwrap();
    }
}
