//! Where callers come from: a socket that many connect to, or our own standard streams, which are the one connection there is.

use rustix::fs::OFlags;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tonic::transport::server::Connected;

/// One caller's bytes, in both directions.
#[derive(Debug)]
pub enum Connection {
    Socket(UnixStream),
    Streams(StandardStreams),
}

/// Standard input and output of this process.
#[derive(Debug)]
pub struct StandardStreams {
    input: AsyncFd<OwnedFd>,
    output: AsyncFd<OwnedFd>,
    /// The input has ended.
    ended: Arc<Notify>,
}

impl StandardStreams {
    /// `ended` is notified when the input ends, or nobody takes our output.
    /// # Errors
    /// They are files: nobody is at the other end.
    pub fn take(ended: Arc<Notify>) -> io::Result<Self> {
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        // What we write by mistake must not get between the messages, and children have no part in them.
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        for stream in [&input, &output] {
            let flags = rustix::fs::fcntl_getfl(stream)?;
            rustix::fs::fcntl_setfl(stream, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self { input: watched(input)?, output: watched(output)?, ended })
    }

    fn poll_input(&self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.input.poll_read_ready(context))?;
            let read = ready.try_io(|input| Ok(rustix::io::read(input.get_ref(), buffer.initialize_unfilled())?));
            match read {
                Ok(Ok(0)) => {
                    self.ended.notify_one();
                    return Poll::Ready(Ok(()));
                }
                Ok(Ok(read)) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => {
                    self.ended.notify_one();
                    return Poll::Ready(Err(error));
                }
                Err(_would_block) => {}
            }
        }
    }

    fn poll_output(&self, context: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.output.poll_write_ready(context))?;
            match ready.try_io(|output| Ok(rustix::io::writev(output.get_ref(), buffers)?)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => {
                    self.ended.notify_one();
                    return Poll::Ready(Err(error));
                }
                Ok(written) => return Poll::Ready(written),
                Err(_would_block) => {}
            }
        }
    }
}

#[expect(unsafe_code, reason = "tokio cannot see that the descriptor is ours for as long as it is watched")]
fn watched(stream: impl Into<OwnedFd> + AsFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, owned by what is made here, and not exchanged.
    Ok(unsafe { AsyncFd::register(stream.into()) }?)
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Streams(streams) => streams.poll_input(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Streams(streams) => streams.poll_output(context, &[IoSlice::new(bytes)]),
        }
    }

    fn poll_write_vectored(self: Pin<&mut Self>, context: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_write_vectored(context, buffers),
            Self::Streams(streams) => streams.poll_output(context, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_flush(context),
            Self::Streams(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_shutdown(context),
            // Closed when it is dropped.
            Self::Streams(_) => Poll::Ready(Ok(())),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}
