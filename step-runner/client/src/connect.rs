//! Byte streams to an agent: a socket, the two ends of a command, or whatever a caller has at hand.

mod command;

pub use command::CommandStream;

use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};

/// What carries one connection: both directions, in order, nothing lost.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for T {}

/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;

/// The way to an agent. It is gone again after a connection was lost.
///
/// What an error's kind says decides whether trying again makes sense: `PermissionDenied`, `InvalidInput` and `Unsupported` will not pass by
/// themselves; all others may, when the agent has started.
pub trait Connector: Send + Sync + 'static {
    /// Makes a connection. Called for the first call, and again after one was lost.
    fn connect(&self) -> Connecting;
    /// What people call the place: `unix:/tmp/step-runner.sock`.
    fn place(&self) -> String;
}

/// A Unix socket.
#[derive(Debug, Clone)]
pub struct UnixSocket {
    path: PathBuf,
}

impl UnixSocket {
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_path_buf() }
    }
}

impl Connector for UnixSocket {
    #[cfg(unix)]
    fn connect(&self) -> Connecting {
        let path = self.path.clone();
        Box::pin(async move { Ok(Box::new(tokio::net::UnixStream::connect(path).await?) as Box<dyn ByteStream>) })
    }

    #[cfg(not(unix))]
    fn connect(&self) -> Connecting {
        Box::pin(async { Err(io::Error::new(io::ErrorKind::Unsupported, "there are no Unix sockets here")) })
    }

    fn place(&self) -> String {
        format!("unix:{}", self.path.display())
    }
}

/// One stream that is there already: an attached container, a channel of an SSH session. When it has ended there is no other.
pub struct Once {
    stream: Mutex<Option<Box<dyn ByteStream>>>,
    place: String,
}

impl Once {
    /// `place`: what people call it.
    pub fn new(stream: impl ByteStream, place: impl Into<String>) -> Self {
        Self { stream: Mutex::new(Some(Box::new(stream))), place: place.into() }
    }
}

impl Connector for Once {
    fn connect(&self) -> Connecting {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async { stream.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "the stream has ended, and there is no other")) })
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("place", &self.place).finish_non_exhaustive()
    }
}
