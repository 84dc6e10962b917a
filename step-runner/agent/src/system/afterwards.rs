//! Linux: work that is done when this process has ended, however it ends.
//!
//! ```text
//! we --fork--> one in between, which ends at once --fork--> the one that stays: asleep until the pipe from us ends
//! ```

use super::detached::fork;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

/// While it is there, we have not ended.
#[derive(Debug)]
pub struct Life {
    _end: OwnedFd,
}

/// Has `work` done by a process that shares nothing with this one but its memory, as soon as what is returned is gone. That process is nobody's child of ours, has a session of its own, so that
/// it is not killed with our group, and none of our descriptors. To be called by a process of one thread.
/// # Errors
/// There is no process to be had.
pub fn do_afterwards(work: impl FnOnce()) -> io::Result<Life> {
    debug_assert_eq!(std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count), 1, "a process of one thread");
    let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    if let Some(between) = fork()? {
        rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(between), rustix::process::WaitOptions::empty()))?;
        return Ok(Life { _end: ours });
    }
    if let Ok(None) = fork() {
        drop(ours);
        stay(&theirs, work);
    }
    leave()
}

fn stay(life: &OwnedFd, work: impl FnOnce()) {
    let _ = rustix::process::setsid();
    // No directory is kept from being unmounted, and nobody waits for the end of an output that we hold too.
    let _ = rustix::process::chdir("/");
    let Ok(nothing) = std::fs::File::options().read(true).write(true).open("/dev/null") else { return };
    for stream in [rustix::stdio::dup2_stdin, rustix::stdio::dup2_stdout, rustix::stdio::dup2_stderr] {
        let _ = stream(&nothing);
    }
    close_all_but(life.as_raw_fd());
    signals_have_their_usual_meaning();
    while matches!(rustix::io::read(life, &mut [0; 8]), Err(Errno::INTR)) {}
    work();
}

/// A lock that we held would be held on.
#[expect(unsafe_code, reason = "what was inherited belongs to values that nobody uses in this process any more")]
fn close_all_but(life: RawFd) {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<RawFd> = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2 && *descriptor != life) {
        // SAFETY: the values that own them are never dropped here, and the directory that was read is closed already: closing it again does nothing.
        unsafe { libc::close(descriptor) };
    }
}

#[expect(unsafe_code, reason = "no safe way to give a signal its default meaning back")]
fn signals_have_their_usual_meaning() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD] {
        // SAFETY: the default meaning runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Ends a copy of a process without doing what the process itself does at its end, to write out its buffers for example.
#[expect(unsafe_code, reason = "every other way to end runs what was registered for it")]
fn leave() -> ! {
    // SAFETY: nothing of this process is needed any more.
    unsafe { libc::_exit(0) }
}
