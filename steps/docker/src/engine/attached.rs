//! The standard streams of a container as one byte stream, with standard error led away.

use bollard::container::{AttachContainerResults, LogOutput};
use bytes::Bytes;
use futures::Stream;
use std::fmt;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// Reads the container's standard output and writes its standard input. What comes from its standard error is ours too.
pub struct Attached {
    output: Output,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Arrived, and not read yet.
    pending: Bytes,
}

impl Attached {
    pub(super) fn new(results: AttachContainerResults) -> Self {
        Self { output: results.output, input: results.input, pending: Bytes::new() }
    }
}

impl AsyncRead for Attached {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.pending.is_empty() {
            match std::task::ready!(self.output.as_mut().poll_next(context)) {
                None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, error))),
                Some(Ok(LogOutput::StdErr { message })) => {
                    // Whoever closed the log also cancels the step.
                    let _unread = io::stderr().write_all(&message);
                }
                Some(Ok(LogOutput::StdOut { message } | LogOutput::Console { message })) => self.pending = message,
                Some(Ok(LogOutput::StdIn { .. })) => {}
            }
        }
        let count = self.pending.len().min(buffer.remaining());
        buffer.put_slice(&self.pending.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Attached {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.input.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.as_mut().poll_shutdown(context)
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attached")
    }
}
