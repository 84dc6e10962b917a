//! Where a plugin's output goes: the real streams are the host's, and what the plugin's code prints is sent over the wire.
//!
//! One line of somebody's library on the real standard output would break the handshake, so the descriptors are exchanged before anything runs.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// As the Go library cuts it.
const PIECE: usize = 1024;
/// What is kept while nobody listens; later pieces are lost. The plugin must never wait for its listener.
const KEPT: usize = 256;

/// The two streams that were there at the start.
#[derive(Debug, Clone)]
pub struct Output {
    streams: Arc<Streams>,
    printed: Arc<Mutex<Option<mpsc::Receiver<Printed>>>>,
}

#[derive(Debug)]
struct Streams {
    out: Option<File>,
    err: Option<File>,
}

/// A piece of what the plugin's code has printed.
#[derive(Debug)]
pub struct Printed {
    pub to_stderr: bool,
    pub bytes: Vec<u8>,
}

impl Output {
    /// Exchanges the descriptors 1 and 2. Called once, before anything else runs.
    /// # Errors
    /// There are no more descriptors.
    #[cfg(unix)]
    pub fn take() -> io::Result<Self> {
        use rustix::pipe::{PipeFlags, pipe_with};
        let out = File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?);
        let err = File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?);
        let (sender, receiver) = mpsc::channel(KEPT);
        let (out_reader, out_writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let (err_reader, err_writer) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::stdio::dup2_stdout(&out_writer)?;
        rustix::stdio::dup2_stderr(&err_writer)?;
        forward(File::from(out_reader), false, sender.clone());
        forward(File::from(err_reader), true, sender);
        let streams = Arc::new(Streams { out: Some(out), err: Some(err) });
        Ok(Self { streams, printed: Arc::new(Mutex::new(Some(receiver))) })
    }

    /// Nothing is exchanged here: whoever prints talks to the host's log.
    #[cfg(not(unix))]
    pub fn take() -> io::Result<Self> {
        Ok(Self::as_it_is())
    }

    pub fn as_it_is() -> Self {
        Self { streams: Arc::new(Streams { out: None, err: None }), printed: Arc::new(Mutex::new(None)) }
    }

    /// To whoever reads the handshake.
    /// # Errors
    /// Nobody does.
    pub fn say(&self, text: &str) -> io::Result<()> {
        match &self.streams.out {
            Some(file) => write_to(file, text.as_bytes()),
            None => io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()),
        }
    }

    /// In plain text, where the host reads logs. It may be gone.
    pub fn complain(&self, text: &str) {
        let line = format!("{text}\n");
        let _ = match &self.streams.err {
            Some(file) => write_to(file, line.as_bytes()),
            None => io::stderr().write_all(line.as_bytes()),
        };
    }

    /// Where records go.
    /// # Errors
    /// There are no more descriptors.
    pub fn log(&self) -> io::Result<Log> {
        self.streams.err.as_ref().map(File::try_clone).transpose().map(Log)
    }

    /// For the one who asks first.
    pub fn printed(&self) -> Option<mpsc::Receiver<Printed>> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The real standard error.
#[derive(Debug)]
pub struct Log(Option<File>);

impl io::Write for &Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Some(file) => write_to(file, bytes).map(|()| bytes.len()),
            None => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_to(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

/// A thread, since whoever prints may do so on the only other one.
#[cfg(unix)]
fn forward(mut from: File, to_stderr: bool, sender: mpsc::Sender<Printed>) {
    std::thread::spawn(move || {
        let mut buffer = [0; PIECE];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => drop(sender.try_send(Printed { to_stderr, bytes: buffer[..read].to_vec() })),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
}
