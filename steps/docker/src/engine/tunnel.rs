//! An engine behind SSH: each connection is a `docker system dial-stdio` on the other machine, as Docker's own program does it.

use std::io;
use std::path::{Path, PathBuf};

/// A socket whose connections end at the other engine. It is gone with the value.
#[derive(Debug)]
pub struct Tunnel {
    /// Removed at the end, with the socket in it.
    directory: tempfile::TempDir,
    #[cfg(unix)]
    task: tokio::task::JoinHandle<()>,
}

impl Tunnel {
    /// To be called inside the runtime.
    /// # Errors
    /// No socket can be made.
    #[cfg(unix)]
    pub fn new(destination: &str, port: Option<u16>) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("step-docker-").tempdir()?;
        let listener = tokio::net::UnixListener::bind(directory.path().join("socket"))?;
        let (destination, port) = (destination.to_owned(), port);
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let destination = destination.clone();
                tokio::spawn(async move {
                    if let Err(error) = carry(connection, &destination, port).await {
                        step_sdk::say(&format!("ssh {destination}: {error}"));
                    }
                });
            }
        });
        Ok(Self { directory, task })
    }

    #[cfg(not(unix))]
    pub fn new(_destination: &str, _port: Option<u16>) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "engines behind SSH are not reached from this system"))
    }

    pub fn socket(&self) -> PathBuf {
        self.path().join("socket")
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

#[cfg(unix)]
async fn carry(mut connection: tokio::net::UnixStream, destination: &str, port: Option<u16>) -> io::Result<()> {
    use std::process::Stdio;
    let mut command = tokio::process::Command::new("ssh");
    if let Some(port) = port {
        command.args(["-p", &port.to_string()]);
    }
    // Nobody is there to be asked for a password.
    command.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "--", destination, "docker", "system", "dial-stdio"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let (Some(mut to), Some(mut from)) = (child.stdin.take(), child.stdout.take()) else { return Ok(()) };
    let (mut reader, mut writer) = connection.split();
    let there = async {
        tokio::io::copy(&mut reader, &mut to).await?;
        // The end of our side is told, and what the other still sends is taken.
        drop(to);
        Ok::<(), io::Error>(())
    };
    let back = async {
        tokio::io::copy(&mut from, &mut writer).await?;
        tokio::io::AsyncWriteExt::shutdown(&mut writer).await
    };
    tokio::try_join!(there, back)?;
    child.wait().await.map(drop)
}

#[cfg(unix)]
impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
    }
}
