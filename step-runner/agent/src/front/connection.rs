//! Where callers come from: a socket that many connect to, or our own standard streams, which are the one connection there is.
//!
//! A connection may end before its stream does: a caller says goodbye, and HTTP/2 reads no further. And a stream may end before its connection,
//! which has answers that nobody takes. A caller has left when either has ended.

use rustix::fs::OFlags;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tonic::transport::server::Connected;

/// How many callers are connected.
#[derive(Debug, Clone, Default)]
pub struct Callers {
    connected: Arc<watch::Sender<usize>>,
}

impl Callers {
    /// One more, until the value is dropped.
    fn come(&self) -> Caller {
        self.connected.send_modify(|connected| *connected += 1);
        Caller(self.clone())
    }

    /// Waits until nobody is connected.
    pub async fn are_gone(&self) {
        // The sender lives as long as we do.
        let _ = self.connected.subscribe().wait_for(|connected| *connected == 0).await;
    }
}

#[derive(Debug)]
struct Caller(Callers);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.connected.send_modify(|connected| *connected -= 1);
    }
}

/// One caller's bytes, in both directions.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    /// `None`: its stream has ended before it.
    caller: Option<Caller>,
}

#[derive(Debug)]
enum Stream {
    Socket(UnixStream),
    Standard(StandardStreams),
}

impl Connection {
    pub fn over_socket(socket: UnixStream, callers: &Callers) -> Self {
        Self { stream: Stream::Socket(socket), caller: Some(callers.come()) }
    }

    /// Over standard input and output, which are gone for everybody else.
    /// # Errors
    /// They are files: nobody is at the other end.
    pub fn over_standard_streams(callers: &Callers) -> io::Result<Self> {
        Ok(Self { stream: Stream::Standard(StandardStreams::take()?), caller: Some(callers.come()) })
    }
}

/// Standard input and output of this process.
#[derive(Debug)]
struct StandardStreams {
    input: AsyncFd<OwnedFd>,
    output: AsyncFd<OwnedFd>,
}

impl StandardStreams {
    fn take() -> io::Result<Self> {
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        // What we write by mistake must not get between the messages, and children have no part in them.
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        for stream in [&input, &output] {
            let flags = rustix::fs::fcntl_getfl(stream)?;
            rustix::fs::fcntl_setfl(stream, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self { input: watched(input)?, output: watched(output)? })
    }

    fn poll_input(&self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.input.poll_read_ready(context))?;
            let read = ready.try_io(|input| Ok(rustix::io::read(input.get_ref(), buffer.initialize_unfilled())?));
            match read {
                Ok(Ok(read)) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_output(&self, context: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.output.poll_write_ready(context))?;
            match ready.try_io(|output| Ok(rustix::io::writev(output.get_ref(), buffers)?)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
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
        let Self { stream, caller } = self.get_mut();
        let before = buffer.filled().len();
        let read = match stream {
            Stream::Socket(socket) => Pin::new(socket).poll_read(context, buffer),
            Stream::Standard(streams) => streams.poll_input(context, buffer),
        };
        let has_ended = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if has_ended {
            *caller = None;
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Socket(socket) => Pin::new(socket).poll_write(context, bytes),
            Stream::Standard(streams) => streams.poll_output(context, &[IoSlice::new(bytes)]),
        }
    }

    fn poll_write_vectored(self: Pin<&mut Self>, context: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Socket(socket) => Pin::new(socket).poll_write_vectored(context, buffers),
            Stream::Standard(streams) => streams.poll_output(context, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Socket(socket) => Pin::new(socket).poll_flush(context),
            Stream::Standard(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Socket(socket) => Pin::new(socket).poll_shutdown(context),
            // Closed when it is dropped.
            Stream::Standard(_) => Poll::Ready(Ok(())),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}
