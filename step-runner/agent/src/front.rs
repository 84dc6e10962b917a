//! The front: answers callers, and leaves the jobs to their own processes (docs/design/0005).
//!
//! ```text
//! callers --gRPC--> service --> registry <--told-- link, one task a job <--frames--> job process
//!                      '--> following: reads the log file                             (step-runner job)
//! ```
//!
//! One thread. Nothing in it waits for a job: what takes time goes to another process, or to the threads for blocking work.

mod birth;
mod discovery;
mod ending;
mod following;
mod link;
mod refusal;
mod registry;
mod service;
mod signals;
mod socket;

pub use socket::SocketFault;

use crate::job_process::Ask;
use birth::Nursery;
use registry::Registry;
use service::Service;
use socket::Tenure;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use step_model::plan::Level;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

/// The largest message, in either direction.
pub const LARGEST_MESSAGE: usize = 64 << 20;
/// What a caller may have on its way to it that it has not taken: a slow path needs more than the 64 KiB of HTTP/2.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
/// A connection whose other end is gone is noticed after these.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long callers may take to leave when the last job has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// What somebody wants from a front.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The directories of jobs are made here, and found again.
    pub directory: PathBuf,
    pub socket: PathBuf,
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
}

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

/// Serves until it is asked to leave. `ready` is called once callers can connect.
/// # Errors
/// It cannot listen.
pub fn serve(settings: Settings, ready: impl FnOnce()) -> Result<(), ServeFault> {
    let system = |what| move |source| ServeFault::System { what, source };
    crate::system::detached::keep_memory_private();
    let tenure = Tenure::take(&settings.directory, &settings.socket, settings.replace)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system("starting"))?;
    let served = runtime.block_on(async {
        let signals = signals::Signals::catch().map_err(system("listening to signals"))?;
        let nursery = Arc::new(nursery(&settings));
        let registry = Arc::new(Registry::default());
        discovery::take_up(&nursery, &registry).await;
        let listener = socket::listen(&settings.socket)?;
        let listener = UnixListener::from_std(listener).map_err(system("listening"))?;
        ready();
        nursery.prepare_spare();
        let served = answer(&settings, listener, signals, &nursery, registry).await;
        nursery.dismiss_spare();
        served
    });
    runtime.shutdown_background();
    drop(tenure);
    served
}

fn nursery(settings: &Settings) -> Nursery {
    Nursery::new(
        settings.directory.clone(),
        settings.work_dir.clone(),
        settings.level,
        settings.stamped,
        settings.grace_period,
        settings.job_timeout,
        settings.keep_finished,
        vec![("STEP_RUNNER_SOCKET".to_owned(), settings.socket.clone())],
    )
}

/// Answers callers until a signal, and what follows from it.
async fn answer(
    settings: &Settings,
    listener: UnixListener,
    mut signals: signals::Signals,
    nursery: &Arc<Nursery>,
    registry: Arc<Registry>,
) -> Result<(), ServeFault> {
    let is_leaving = Arc::new(AtomicBool::new(false));
    let service = Service { registry: Arc::clone(&registry), nursery: Arc::clone(nursery), is_leaving: Arc::clone(&is_leaving) };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = router(service).serve_with_incoming_shutdown(UnixListenerStream::new(listener), async { drop(stopped.await) });
    let mut serving = std::pin::pin!(serving);
    let leaving = async {
        let first = signals.next().await;
        // Nobody new finds us from here on.
        let _ = std::fs::remove_file(&settings.socket);
        if first == signals::Signal::LeaveJobs {
            return false;
        }
        eprintln!("received '{}' signal; shutting down.", first.name());
        is_leaving.store(true, Ordering::Relaxed);
        loop {
            tokio::select! {
                () = registry.until_idle() => return true,
                signal = signals.next() => match signal {
                    signals::Signal::LeaveJobs => return false,
                    _ => registry.ask_all(Ask::End),
                },
            }
        }
    };
    tokio::select! {
        served = &mut serving => return Ok(served?),
        is_idle = leaving => if !is_idle { return Ok(()) },
    }
    // Callers that follow the last log get its end, and what they ask then is answered for a moment.
    drop(stop);
    let _ = tokio::time::timeout(FAREWELL, serving).await;
    Ok(())
}

fn router(service: Service) -> tonic::transport::server::Router {
    use ci_proto::step_runner::step_runner_server::StepRunnerServer;
    let step_runner = StepRunnerServer::new(service).max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE);
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .add_service(step_runner)
}
