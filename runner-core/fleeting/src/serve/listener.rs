//! Where a plugin listens: a Unix socket of its own, or loopback TCP where those are not usual.

use super::ServeFault;
use crate::handshake::{self, Address};
use crate::stream::Stream;
use rustls::ServerConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// For the TLS handshake of one caller, which holds up no other.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Listening. A socket's file is removed when this is dropped.
pub struct Listener {
    #[cfg(unix)]
    socket: tempfile::NamedTempFile<tokio::net::UnixListener>,
    #[cfg(not(unix))]
    socket: tokio::net::TcpListener,
}

fn system(what: &'static str) -> impl Fn(io::Error) -> ServeFault {
    move |source| ServeFault::System { what, source }
}

#[cfg(unix)]
impl Listener {
    /// Listens before anybody is told where.
    /// # Errors
    /// The directory is not there, or its path is too long.
    pub fn bind() -> Result<Self, ServeFault> {
        let directory = std::env::var_os(handshake::SOCKET_DIRECTORY).filter(|directory| !directory.is_empty());
        let directory = directory.map_or_else(std::env::temp_dir, Into::into);
        let group = std::env::var(handshake::SOCKET_GROUP).ok().filter(|group| !group.is_empty());
        Self::bind_in(&directory, group.as_deref())
    }

    fn bind_in(directory: &std::path::Path, group: Option<&str>) -> Result<Self, ServeFault> {
        use std::os::unix::fs::PermissionsExt as _;
        const LONGEST: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
        const RANDOM: usize = 10;
        let length = directory.join("plugin").as_os_str().len() + RANDOM;
        if length > LONGEST {
            let path = directory.display().to_string();
            return Err(ServeFault::SocketPath { path, length, longest: LONGEST });
        }
        let mut named = tempfile::Builder::new();
        let made = named.prefix("plugin").rand_bytes(RANDOM).make_in(directory, |path| tokio::net::UnixListener::bind(path));
        let socket = made.map_err(system("listening"))?;
        let mode = match group {
            Some(name) => {
                let id = group_id(name).ok_or_else(|| ServeFault::NoGroup(name.to_owned()))?;
                std::os::unix::fs::chown(socket.path(), None, Some(id)).map_err(system("giving the socket to its group"))?;
                0o660
            }
            None => 0o600,
        };
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(socket.path(), mode).map_err(system("closing the socket to others"))?;
        Ok(Self { socket })
    }

    pub fn address(&self) -> Result<Address, ServeFault> {
        Ok(Address::Unix(self.socket.path().to_owned()))
    }

    async fn next(&self) -> io::Result<Stream> {
        self.socket.as_file().accept().await.map(|(stream, _)| Stream::new(stream))
    }
}

/// By number or by name.
#[cfg(unix)]
fn group_id(group: &str) -> Option<u32> {
    group.parse().ok().or_else(|| {
        let groups = std::fs::read_to_string("/etc/group").ok()?;
        let line = groups.lines().find(|line| line.split(':').next() == Some(group))?;
        line.split(':').nth(2)?.parse().ok()
    })
}

#[cfg(not(unix))]
impl Listener {
    /// # Errors
    /// None of the host's ports is free.
    pub fn bind() -> Result<Self, ServeFault> {
        let port = |name, default| std::env::var(name).ok().and_then(|port| port.parse().ok()).unwrap_or(default);
        let (first, last) = (port(handshake::MIN_PORT, 0), port(handshake::MAX_PORT, 0));
        let free = (first..=last).find_map(|port| std::net::TcpListener::bind(("127.0.0.1", port)).ok());
        let socket = free.ok_or_else(|| system("listening")(io::Error::from(io::ErrorKind::AddrInUse)))?;
        let socket = socket.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(socket));
        Ok(Self { socket: socket.map_err(system("listening"))? })
    }

    pub fn address(&self) -> Result<Address, ServeFault> {
        self.socket.local_addr().map(Address::Tcp).map_err(system("listening"))
    }

    async fn next(&self) -> io::Result<Stream> {
        let (stream, _) = self.socket.accept().await?;
        stream.set_nodelay(true)?;
        Ok(Stream::new(stream))
    }
}

impl Listener {
    /// Takes callers for ever. One that does not know how to speak is left; the next is none the worse for it.
    pub async fn accept(self, tls: Option<ServerConfig>, connections: mpsc::Sender<Stream>) {
        let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        loop {
            let stream = match self.next().await {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a caller could not be taken");
                    // No descriptors are left, most likely; some come back.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            let (tls, connections) = (tls.clone(), connections.clone());
            tokio::spawn(async move {
                if let Some(stream) = greet(tls, stream).await {
                    // The server has ended when nobody takes it.
                    let _ = connections.send(stream).await;
                }
            });
        }
    }
}

async fn greet(tls: Option<TlsAcceptor>, stream: Stream) -> Option<Stream> {
    let Some(tls) = tls else { return Some(stream) };
    match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(Stream::new(stream)),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a caller was refused");
            None
        }
        Err(_) => None,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn place(listener: &Listener) -> std::path::PathBuf {
        match listener.address() {
            Ok(Address::Unix(path)) => path,
            _ => panic!("it listens elsewhere"),
        }
    }

    #[tokio::test]
    async fn fls_10_the_socket_is_where_the_host_wants_it_for_this_user_or_a_group() {
        let directory = tempfile::tempdir().unwrap();
        let listener = Listener::bind_in(directory.path(), None).unwrap();
        let path = place(&listener);
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!((path.parent(), found.permissions().mode() & 0o777), (Some(directory.path()), 0o600));
        drop(listener);
        assert!(!path.exists(), "it goes with the listener");
        let listener = Listener::bind_in(directory.path(), Some(&found.gid().to_string())).unwrap();
        assert_eq!(std::fs::metadata(place(&listener)).unwrap().permissions().mode() & 0o777, 0o660);
        let nobody = Listener::bind_in(directory.path(), Some("no such group")).err().unwrap().to_string();
        assert_eq!(nobody, "plugin init error: there is no group `no such group` for the socket");
    }

    #[tokio::test]
    async fn a_path_that_no_socket_can_have_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("x".repeat(100));
        std::fs::create_dir(&deep).unwrap();
        let fault = Listener::bind_in(&deep, None).err().unwrap().to_string();
        assert!(fault.contains(" bytes, it may have 107: "), "{fault}");
    }
}
