//! What a service manager is told: that this process serves. Source: sd_notify(3) of systemd, whose unit has `Type=notify`.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says that jobs are taken and signals are listened to from now on. Without a service manager there is nobody to tell, and one that cannot be told
/// gives up by itself: that is no reason not to serve.
pub fn tell_ready() {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())
        && let Err(fault) = tell(&socket, b"READY=1")
    {
        tracing::warn!(error = %fault, "could not tell the service manager that this process serves");
    }
}

fn tell(socket: &OsStr, state: &[u8]) -> io::Result<()> {
    let datagram = UnixDatagram::unbound()?;
    datagram.send_to_addr(state, &address(socket)?).map(drop)
}

/// A path, or `@` and a name without one.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let [b'@', name @ ..] = std::os::unix::ffi::OsStrExt::as_bytes(socket) {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(listener: &UnixDatagram) -> Vec<u8> {
        let mut text = [0; 64];
        let length = listener.recv(&mut text).expect("a message");
        text[..length].to_vec()
    }

    #[test]
    fn a_service_manager_is_told_by_its_socket() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notify");
        let listener = UnixDatagram::bind(&path).expect("a socket");
        tell(path.as_os_str(), b"READY=1").expect("a listener");
        assert_eq!(received(&listener), b"READY=1");
        drop(listener);
        assert!(tell(path.as_os_str(), b"READY=1").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_without_a_path_begins_with_an_at() {
        let name = format!("runner-core-test-{}", std::process::id());
        let listener = UnixDatagram::bind_addr(&address(OsStr::new(&format!("@{name}"))).expect("an address")).expect("a socket");
        tell(OsStr::new(&format!("@{name}")), b"READY=1").expect("a listener");
        assert_eq!(received(&listener), b"READY=1");
    }
}
