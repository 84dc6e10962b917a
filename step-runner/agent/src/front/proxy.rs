//! Standard input to the socket of a front, and the socket to standard output: how a caller reaches an agent through SSH or `docker exec`.
//!
//! The end of our input is passed on, and what still comes from the front then is delivered: only the end of that is the end.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Carries bytes until the front has no more.
/// # Errors
/// Nobody answers on the socket, or the output cannot be written. A caller that has left is no error: nobody wants the rest.
pub fn run(socket: &Path) -> io::Result<()> {
    let front = UnixStream::connect(socket)?;
    let mut to_front = front.try_clone()?;
    // It ends with the process: a caller may keep its end open for ever.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut to_front);
        let _ = to_front.shutdown(Shutdown::Write);
    });
    let mut output = io::stdout().lock();
    carry(&front, &mut output)
}

/// Piece by piece, each at once.
fn carry(mut from: &UnixStream, to: &mut impl io::Write) -> io::Result<()> {
    use io::Read as _;
    let mut buffer = vec![0; 256 << 10];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The front has gone: as good as its end.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        };
        match to.write_all(&buffer[..read]).and_then(|()| to.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A pipe whose reader has left.
    struct Left(io::ErrorKind);

    impl Write for Left {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_caller_that_has_left_is_no_fault_and_a_full_disk_is_one() {
        let carried = |kind| {
            let (mut front, ours) = UnixStream::pair().unwrap();
            front.write_all(b"late").unwrap();
            carry(&ours, &mut Left(kind)).map_err(|error| error.kind())
        };
        assert_eq!(carried(io::ErrorKind::BrokenPipe), Ok(()));
        assert_eq!(carried(io::ErrorKind::StorageFull), Err(io::ErrorKind::StorageFull));
    }
}
