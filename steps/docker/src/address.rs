//! Where the engine is, as `DOCKER_HOST` says.

use std::fmt;
use std::path::PathBuf;

const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// A way to an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    /// Host and port. With certificates: over TLS.
    Tcp {
        authority: String,
        certificates: Option<PathBuf>,
    },
    /// What `ssh` takes as its destination, and the port.
    Ssh {
        destination: String,
        port: Option<u16>,
    },
    Pipe(String),
}

/// Why a text is no address of an engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`DOCKER_HOST` is `{0}`, expected `unix://PATH`, `tcp://HOST:PORT` or `ssh://USER@HOST`")]
pub struct NoAddress(pub String);

impl Address {
    /// The engine that the variables of the environment name: `DOCKER_HOST`, `DOCKER_TLS_VERIFY`, `DOCKER_CERT_PATH`.
    /// # Errors
    /// `DOCKER_HOST` names none.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, NoAddress> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let Some(host) = set("DOCKER_HOST") else { return Ok(Self::default()) };
        let certificates = set("DOCKER_TLS_VERIFY").and_then(|_| {
            set("DOCKER_CERT_PATH").map(PathBuf::from).or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".docker")))
        });
        Self::parse(&host, certificates).ok_or(NoAddress(host))
    }

    /// `certificates`: the directory of `ca.pem`, `cert.pem` and `key.pem`.
    pub fn parse(host: &str, certificates: Option<PathBuf>) -> Option<Self> {
        let (scheme, rest) = host.split_once("://")?;
        let rest = if scheme == "unix" { rest } else { rest.trim_end_matches('/') };
        Some(match scheme {
            "unix" if rest.is_empty() => Self::Unix(DEFAULT_SOCKET.into()),
            "unix" => Self::Unix(rest.into()),
            "npipe" => Self::Pipe(rest.to_owned()),
            "tcp" | "http" | "https" if rest.is_empty() || rest.contains('/') => return None,
            "tcp" | "http" | "https" => {
                let port = if certificates.is_some() { 2376 } else { 2375 };
                let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
                let authority = if has_port { rest.to_owned() } else { format!("{rest}:{port}") };
                Self::Tcp { authority, certificates }
            }
            "ssh" if rest.is_empty() || rest.starts_with('-') => return None,
            "ssh" => match rest.rsplit_once(':') {
                Some((destination, port)) => Self::Ssh { destination: destination.to_owned(), port: Some(port.parse().ok()?) },
                None => Self::Ssh { destination: rest.to_owned(), port: None },
            },
            _ => return None,
        })
    }

    /// The engine runs on this machine, as far as its address says: it sees the files that we see.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_) | Self::Pipe(_))
    }

    pub fn certificates(&self) -> Option<&PathBuf> {
        match self {
            Self::Tcp { certificates, .. } => certificates.as_ref(),
            _ => None,
        }
    }
}

#[cfg(unix)]
impl Default for Address {
    fn default() -> Self {
        Self::Unix(DEFAULT_SOCKET.into())
    }
}

#[cfg(not(unix))]
impl Default for Address {
    fn default() -> Self {
        Self::Pipe("//./pipe/docker_engine".into())
    }
}

/// As `DOCKER_HOST` has it.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { authority, .. } => write!(f, "tcp://{authority}"),
            Self::Ssh { destination, port: Some(port) } => write!(f, "ssh://{destination}:{port}"),
            Self::Ssh { destination, port: None } => write!(f, "ssh://{destination}"),
            Self::Pipe(name) => write!(f, "npipe://{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &str) -> Option<String> {
        Address::parse(host, None).map(|address| format!("{address} {}", address.is_local()))
    }

    #[test]
    fn an_address_is_read_as_docker_reads_it() {
        assert_eq!(of("unix:///run/user/1/docker.sock").as_deref(), Some("unix:///run/user/1/docker.sock true"));
        assert_eq!(of("tcp://10.0.0.1").as_deref(), Some("tcp://10.0.0.1:2375 false"));
        assert_eq!(of("ssh://me@host:2222").as_deref(), Some("ssh://me@host:2222 false"));
        assert_eq!([of("host"), of("tcp://"), of("ssh://-oProxyCommand=x"), of("fd://")], [None, None, None, None]);
    }

    #[test]
    fn certificates_change_the_port() {
        let variables = |name: &str| match name {
            "DOCKER_HOST" => Some("tcp://engine".to_owned()),
            "DOCKER_TLS_VERIFY" => Some("1".to_owned()),
            "DOCKER_CERT_PATH" => Some("/certs".to_owned()),
            _ => None,
        };
        let address = Address::of(variables).unwrap();
        assert_eq!((address.to_string(), address.certificates()), ("tcp://engine:2376".into(), Some(&"/certs".into())));
        assert_eq!(Address::of(|_| None), Ok(Address::default()));
        assert_eq!(
            Address::of(|_| Some("x".into())).unwrap_err().to_string(),
            "`DOCKER_HOST` is `x`, expected `unix://PATH`, `tcp://HOST:PORT` or `ssh://USER@HOST`"
        );
    }
}
