//! The connection to a plugin: HTTP/2 over its socket, in the clear or in TLS.

use crate::handshake::Address;
use crate::stream::Stream;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};

/// For the socket and TLS; both ends are on this machine.
const LIMIT: Duration = Duration::from_secs(10);

/// Windows that no local connection outgrows.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// # Errors
/// Nobody listens there, or it is not who it should be.
pub async fn connect(address: &Address, tls: Option<ClientConfig>) -> Result<Channel, String> {
    let (address, tls) = (address.clone(), tls.map(Arc::new));
    // The name is what Go hosts send; no socket of a plugin has one.
    let endpoint =
        Endpoint::from_static("http://unused").initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    let connecting = endpoint.connect_with_connector(tower::service_fn(move |_: Uri| {
        let (address, tls) = (address.clone(), tls.clone());
        async move {
            let opened = tokio::time::timeout(LIMIT, open(&address, tls)).await;
            opened.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut))).map(TokioIo::new)
        }
    }));
    match tokio::time::timeout(LIMIT, connecting).await {
        Ok(connected) => connected.map_err(|error| root(&error)),
        Err(_) => Err(format!("no answer within {LIMIT:?}")),
    }
}

async fn open(address: &Address, tls: Option<Arc<ClientConfig>>) -> io::Result<Stream> {
    let plain = match address {
        #[cfg(unix)]
        Address::Unix(path) => Stream::new(tokio::net::UnixStream::connect(path).await?),
        #[cfg(not(unix))]
        Address::Unix(_) => return Err(io::Error::from(io::ErrorKind::Unsupported)),
        Address::Tcp(address) => {
            let stream = tokio::net::TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Stream::new(stream)
        }
    };
    let Some(tls) = tls else { return Ok(plain) };
    let name = ServerName::try_from(crate::certificate::NAME).map_err(io::Error::other)?;
    Ok(Stream::new(TlsConnector::from(tls).connect(name, plain).await?))
}

/// What is at the bottom of an error says most.
pub fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
