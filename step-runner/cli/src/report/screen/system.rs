//! What differs per system about standard output and the terminal.

pub use imp::{Output, is_same_place, width};

/// What a terminal has that does not say.
const WIDTH: usize = 80;

#[cfg(unix)]
mod imp {
    use super::WIDTH;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use std::io;

    /// Standard output without a buffer of our own.
    #[derive(Debug, Default)]
    pub struct Output {}

    impl Output {
        /// Writes everything, also to a descriptor that somebody made non-blocking.
        /// # Errors
        /// Nobody reads any more, the disk is full, ...
        pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
            let output = io::stdout();
            while !bytes.is_empty() {
                match rustix::io::write(&output, bytes) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => bytes = &bytes[count..],
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => {
                        let _ = poll(&mut [PollFd::new(&output, PollFlags::OUT)], None);
                    }
                    Err(fault) => return Err(fault.into()),
                }
            }
            Ok(())
        }
    }

    /// Whether both standard streams are one file, pipe or terminal.
    pub fn is_same_place() -> bool {
        let place = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        match (rustix::fs::fstat(io::stdout()), rustix::fs::fstat(io::stderr())) {
            (Ok(output), Ok(error)) => place(output) == place(error),
            _ => false,
        }
    }

    pub fn width() -> usize {
        rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(WIDTH)
    }
}

#[cfg(not(unix))]
mod imp {
    use super::WIDTH;
    use std::io::{self, IsTerminal as _, Write as _};

    #[derive(Debug, Default)]
    pub struct Output {}

    impl Output {
        pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
            let mut output = io::stdout().lock();
            output.write_all(bytes)?;
            output.flush()
        }
    }

    pub fn is_same_place() -> bool {
        io::stdout().is_terminal() && io::stderr().is_terminal()
    }

    pub fn width() -> usize {
        WIDTH
    }
}
