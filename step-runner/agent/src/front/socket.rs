//! The socket of a front, and the lock that says whose the jobs of a directory are.

use crate::system_error;
use rustix::fs::Mode;
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LOCK: &str = ".step-runner.lock";
/// How long a front may take to leave when another one is to take its place.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);

/// Why a front cannot listen. The first half of each message is the original's.
#[derive(Debug, thiserror::Error)]
pub enum SocketFault {
    #[error("listen unix {}: bind: address already in use", .0.display())]
    InUse(PathBuf),
    #[error("listen unix {}: bind: address already in use: it is no socket", .0.display())]
    NoSocket(PathBuf),
    #[error("listen unix {}: bind: invalid argument: the path has {} bytes, that of a socket may have {LONGEST}", .0.display(), .0.as_os_str().len())]
    TooLong(PathBuf),
    #[error("listen unix {}: bind: {}", .path.display(), system_error::text(.source))]
    System { path: PathBuf, source: io::Error },
    #[error("the front that serves `{}` does not leave", .0.display())]
    Stays(PathBuf),
}

/// Of the path of a socket, in bytes: what fits into its address.
const LONGEST: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The right to serve the jobs of a directory. Given up when it is dropped.
#[derive(Debug)]
pub struct Tenure {
    _lock: File,
}

impl Tenure {
    /// `replace`: has the front that is there leave its jobs, and waits for that. `socket`: for the message.
    /// # Errors
    /// Another front is there, or the lock cannot be made.
    pub fn take(directory: &Path, socket: &Path, replace: bool) -> Result<Self, SocketFault> {
        let path = directory.join(LOCK);
        let fault = |source| SocketFault::System { path: path.clone(), source };
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut lock = options.open(&path).map_err(fault)?;
        let until = Instant::now() + PATIENCE;
        let mut asked = None;
        while let Err(refused) = lock.try_lock() {
            match refused {
                std::fs::TryLockError::Error(error) => return Err(fault(error)),
                std::fs::TryLockError::WouldBlock if !replace => return Err(SocketFault::InUse(socket.to_path_buf())),
                std::fs::TryLockError::WouldBlock if Instant::now() > until => return Err(SocketFault::Stays(directory.to_path_buf())),
                std::fs::TryLockError::WouldBlock => {}
            }
            // Whoever holds the lock has written its number first thing; it may be a third one by now.
            let holder = number_in(&mut lock);
            if holder.is_some() && holder != asked {
                asked = holder;
                let _ = holder.map(|holder| rustix::process::kill_process(holder, Signal::USR2));
            }
            std::thread::sleep(LOOK);
        }
        let written = lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| write!(lock, "{}", std::process::id()));
        written.map_err(fault)?;
        Ok(Self { _lock: lock })
    }
}

fn number_in(lock: &mut File) -> Option<Pid> {
    let mut text = String::new();
    lock.rewind().ok()?;
    lock.take(20).read_to_string(&mut text).ok()?;
    Pid::from_raw(text.trim().parse().ok()?)
}

/// A socket that only the user may connect to. One that nobody answers is removed.
/// # Errors
/// Somebody answers, something else is there, or the system refuses.
pub fn listen(path: &Path) -> Result<UnixListener, SocketFault> {
    if path.as_os_str().len() > LONGEST {
        return Err(SocketFault::TooLong(path.to_path_buf()));
    }
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(SocketFault::NoSocket(path.to_path_buf()));
        }
        match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => drop(std::fs::remove_file(path)),
            _ => return Err(SocketFault::InUse(path.to_path_buf())),
        }
    }
    // Never open to others, not even for a moment. Only one thread is there.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    listener.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => SocketFault::InUse(path.to_path_buf()),
        _ => SocketFault::System { path: path.to_path_buf(), source },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_socket_that_nobody_answers_is_replaced_and_one_that_is_used_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.sock");
        drop(listen(&path).unwrap());
        assert!(path.exists(), "it is stale now");
        let _listener = listen(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let refused = listen(&path).unwrap_err().to_string();
        assert_eq!(refused, format!("listen unix {}: bind: address already in use", path.display()));
    }

    #[test]
    fn what_is_no_socket_stays_and_a_path_that_is_too_long_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "precious").unwrap();
        assert!(matches!(listen(&path), Err(SocketFault::NoSocket(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        let long = directory.path().join("x".repeat(120));
        assert!(listen(&long).unwrap_err().to_string().ends_with(" bytes, that of a socket may have 107"));
    }

    #[test]
    fn two_fronts_never_have_the_same_jobs() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s.sock");
        let tenure = Tenure::take(directory.path(), &socket, false).unwrap();
        assert!(matches!(Tenure::take(directory.path(), &socket, false), Err(SocketFault::InUse(_))));
        drop(tenure);
        Tenure::take(directory.path(), &socket, false).unwrap();
    }
}
