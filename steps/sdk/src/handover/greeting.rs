//! What stands before the agent's own bytes: an entrypoint or a login shell may print something first.
//!
//! An HTTP/2 server begins with a SETTINGS frame (RFC 9113, 3.4 and 6.5): three bytes of length, a multiple of six, then type 4, no flags and
//! stream 0. Text has no such bytes, so what comes before goes to the log.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const FRAME_HEADER: usize = 9;

/// Where the frame begins, if it is there.
fn settings_frame(bytes: &[u8]) -> Option<usize> {
    bytes.windows(FRAME_HEADER).position(|header| matches!(header, [0, _, length, 4, 0, 0, 0, 0, 0] if length % 6 == 0))
}

/// A stream whose first bytes are the agent's.
#[derive(Debug)]
pub(super) struct AfterGreeting<S> {
    stream: S,
    /// Undecided bytes, and then what came with the frame.
    pending: Vec<u8>,
    has_begun: bool,
}

impl<S> AfterGreeting<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, pending: Vec::new(), has_begun: false }
    }

    /// Gives what is certainly not the agent's.
    fn decide(&mut self) -> Vec<u8> {
        if let Some(at) = settings_frame(&self.pending) {
            self.has_begun = true;
            return self.pending.drain(..at).collect();
        }
        // The beginning of a frame may be there.
        let certain = self.pending.len().saturating_sub(FRAME_HEADER - 1);
        self.pending.drain(..certain).collect()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AfterGreeting<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while !self.has_begun {
            let mut bytes = [0; 4096];
            let mut read = ReadBuf::new(&mut bytes);
            std::task::ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
            let has_ended = read.filled().is_empty();
            self.pending.extend_from_slice(read.filled());
            let greeting = if has_ended { std::mem::take(&mut self.pending) } else { self.decide() };
            // A log that nobody reads loses a greeting.
            let _unread = io::stderr().write_all(&greeting);
            if has_ended {
                return Poll::Ready(Ok(()));
            }
        }
        if self.pending.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let count = self.pending.len().min(buffer.remaining());
        buffer.put_slice(&self.pending[..count]);
        self.pending.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AfterGreeting<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    const SETTINGS: [u8; 9] = [0, 0, 18, 4, 0, 0, 0, 0, 0];

    /// What the agent said, when its bytes come in pieces of `size`.
    async fn after(bytes: &[u8], size: usize) -> Vec<u8> {
        let mut builder = tokio_test_stream(bytes, size);
        let mut read = Vec::new();
        builder.read_to_end(&mut read).await.unwrap();
        read
    }

    fn tokio_test_stream(bytes: &[u8], size: usize) -> AfterGreeting<tokio::io::DuplexStream> {
        let (mut near, far) = tokio::io::duplex(size);
        let bytes = bytes.to_vec();
        tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut near, &bytes).await });
        AfterGreeting::new(far)
    }

    #[tokio::test]
    async fn only_what_comes_from_the_first_frame_on_is_the_agents() {
        for size in [1, 5, 4096] {
            let said = [b"Welcome!\n\0\0\x04".as_slice(), &SETTINGS, b"more"].concat();
            assert_eq!(after(&said, size).await, [SETTINGS.as_slice(), b"more"].concat(), "{size}");
            assert_eq!(after(&SETTINGS, size).await, SETTINGS, "{size}");
            assert_eq!(after(b"no agent here", size).await, b"", "{size}");
        }
    }
}
