//! The front: answers callers, and leaves the jobs to their own processes (docs/design/0005).
//!
//! ```text
//! callers --gRPC--> service --> registry <--told-- link, one task a job <--frames--> job process
//!                      '--> following: reads the log file                             (step-runner job)
//! ```
//!
//! One thread. Nothing in it waits for a job: what takes time goes to another process, or to the threads for blocking work.

mod agent_service;
mod birth;
mod command;
mod connection;
mod discovery;
mod ending;
mod following;
mod link;
pub mod proxy;
mod refusal;
mod registry;
mod service;
mod serving;
mod signals;
mod socket;
mod spares;

pub use socket::SocketFault;

use birth::Nursery;
use connection::Connection;
use registry::Registry;
use serving::Serving;
use socket::Tenure;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use step_model::plan::Level;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_stream::{Stream, StreamExt as _};

/// The largest message, in either direction.
pub const LARGEST_MESSAGE: usize = 64 << 20;
/// What somebody wants from a front.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The directories of jobs are made here, and found again.
    pub directory: PathBuf,
    pub callers: Callers,
    /// Where a job runs that names no directory.
    pub work_dir: PathBuf,
    pub level: Level,
    /// Every line of a log begins with its time and stream; else the log has the bytes as they were written.
    pub stamped: bool,
    /// How long a step may take to end after it was asked to.
    pub grace_period: Duration,
    /// For jobs that name none.
    pub job_timeout: Option<Duration>,
    /// How long a job that nobody closes is known after its end.
    pub keep_finished: Duration,
    /// Takes the place of the front that is there.
    pub replace: bool,
    /// A command to run beside: when it ends, so do the jobs and the front. Empty: none.
    pub command: Vec<OsString>,
}

/// Where callers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callers {
    /// They connect to this socket.
    Socket(PathBuf),
    /// There is one, at the other end of our standard input and output. When it leaves, the jobs end.
    StandardStreams,
}

impl Settings {
    /// In this directory, as most want it.
    pub fn of(directory: PathBuf, work_dir: PathBuf) -> Self {
        Self {
            callers: Callers::Socket(directory.join(SOCKET)),
            directory,
            work_dir,
            level: Level::default(),
            stamped: true,
            grace_period: Duration::from_secs(30),
            job_timeout: None,
            keep_finished: Duration::from_secs(24 * 60 * 60),
            replace: false,
            command: Vec::new(),
        }
    }
}

impl Settings {
    /// The texts of v0.12 of the original.
    pub fn set_level_of_2025(&mut self) {
        self.level = Level::V0_12;
    }
}

/// The name of a front's socket in its directory.
pub const SOCKET: &str = "step-runner.sock";

/// Why a front does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeFault {
    #[error("serving step-runner: opening socket: {0}")]
    Socket(#[from] SocketFault),
    #[error("serving step-runner: {what}: {}", crate::system_error::text(.source))]
    System { what: &'static str, source: io::Error },
    #[error("serving step-runner: {0}")]
    Transport(#[from] tonic::transport::Error),
}

type Incoming = std::pin::Pin<Box<dyn Stream<Item = io::Result<Connection>>>>;

/// Serves until it is asked to leave. `ready` is called once callers can connect. Returns how the command beside it ended, if it ran.
/// # Errors
/// It cannot listen, or the command cannot be started.
pub fn serve(settings: &Settings, ready: impl FnOnce()) -> Result<Option<ExitStatus>, ServeFault> {
    let system = |what| move |source| ServeFault::System { what, source };
    crate::system::detached::keep_memory_private();
    let socket = match &settings.callers {
        Callers::Socket(path) => Some(path.as_path()),
        Callers::StandardStreams => None,
    };
    let tenure = Tenure::take(&settings.directory, socket.unwrap_or(&settings.directory), settings.replace)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system("starting"))?;
    let served = runtime.block_on(async {
        let signals = signals::Signals::catch().map_err(system("listening to signals"))?;
        let nursery = Arc::new(Nursery::new(settings, environment(socket)));
        let registry = Arc::new(Registry::default());
        if rustix::process::getpid().is_init() {
            tokio::spawn(serving::reap_orphans());
        }
        discovery::take_up(&nursery, &registry).await;
        let callers = connection::Callers::default();
        let incoming: Incoming = match socket {
            Some(path) => {
                let listener = UnixListener::from_std(socket::listen(path)?).map_err(system("listening"))?;
                let callers = callers.clone();
                Box::pin(UnixListenerStream::new(listener).map(move |caller| Ok(Connection::over_socket(caller?, &callers))))
            }
            None => {
                let one = Connection::over_standard_streams(&callers).map_err(system("serving on standard input and output"))?;
                // A stream that ends would end the connection that came from it.
                Box::pin(tokio_stream::once(Ok(one)).chain(tokio_stream::pending()))
            }
        };
        ready();
        nursery.prepare();
        let serving = Serving { nursery: Arc::clone(&nursery), registry, signals, socket, callers, command: &settings.command };
        let served = serving.answer(incoming).await;
        nursery.dismiss();
        served
    });
    runtime.shutdown_background();
    drop(tenure);
    served
}

/// Added to that of job processes: how a step finds its agent.
fn environment(socket: Option<&Path>) -> Vec<(String, PathBuf)> {
    socket.map(|path| ("STEP_RUNNER_SOCKET".to_owned(), path.to_path_buf())).into_iter().collect()
}

/// The directory of the jobs of a socket that was named: beside it, so that several fronts may be in one directory.
/// # Errors
/// It cannot be made.
pub fn directory_beside(socket: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut name = socket.file_name().unwrap_or_default().to_owned();
    name.push(".jobs");
    let directory = socket.with_file_name(name);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    directory.canonicalize()
}
