//! The plugin's side: an [`InstanceGroup`] becomes a program that hosts load, GitLab's runner among them.

mod command_line;
mod go_plugin;
mod listener;
mod output;
mod service;

use crate::certificate::Identity;
use crate::handshake::{self, Line};
use crate::instance_group::InstanceGroup;
use crate::records::Subscriber;
pub use command_line::platform;

use command_line::Typed;
use listener::Listener;
use output::Output;
use service::Service;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_stream::wrappers::ReceiverStream;

/// After it was asked to end, for answers that are on their way. The Go library takes 5 to 11 ms.
const FAREWELL: Duration = Duration::from_millis(100);
/// How often it is looked whether the host is still there. One that was killed says nothing.
#[cfg(unix)]
const LOOK_FOR_HOST: Duration = Duration::from_secs(2);
/// Word for word the Go library's, which people look up.
const MISUSED: &str = "\
This binary is a plugin. These are not meant to be executed directly.
Please execute the program that consumes these plugins, which will
load any plugins automatically
";

/// What a plugin says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    pub name: &'static str,
    pub version: &'static str,
    /// The commit it was built from, the branch, and when; empty: not known.
    pub revision: &'static str,
    pub reference: &'static str,
    pub built_at: &'static str,
}

impl About {
    pub const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version, revision: "", reference: "", built_at: "" }
    }

    /// As hosts log it.
    pub fn build_info(&self) -> String {
        let Self { revision, reference, built_at, .. } = self;
        let (os, arch) = command_line::platform();
        format!("sha={revision}; ref={reference}; built_at={built_at}; os_arch={os}/{arch}")
    }
}

/// Why a plugin does not serve.
#[derive(Debug, thiserror::Error)]
enum ServeFault {
    #[error("plugin init error: {what}: {source}")]
    System { what: &'static str, source: io::Error },
    #[error("plugin init error: the path of the socket has {length} bytes, it may have {longest}: {path}")]
    SocketPath { path: String, length: usize, longest: usize },
    #[error("plugin init error: there is no group `{0}` for the socket")]
    NoGroup(String),
    #[error("plugin init error: {0}")]
    Tls(#[from] crate::certificate::TlsFault),
    #[error("plugin init error: {0}")]
    Reflection(String),
    #[error("the plugin has stopped serving: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// The whole program of a plugin: what `main` returns.
///
/// Without arguments it serves the host that has started it. What the group logs with `tracing` goes to the host's log, what it prints as well.
pub fn serve(about: About, group: impl InstanceGroup + 'static) -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    match command_line::read(&arguments, &about) {
        Typed::Serve => {}
        Typed::Say { out, err, code } => {
            print!("{out}");
            eprint!("{err}");
            return ExitCode::from(code);
        }
    }
    if std::env::var(handshake::COOKIE.0).as_deref() != Ok(handshake::COOKIE.1) {
        eprint!("{MISUSED}");
        return ExitCode::FAILURE;
    }
    match run(&about, Arc::new(group)) {
        Ok(()) => ExitCode::SUCCESS,
        Err((output, fault)) => {
            output.complain(&fault.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run(about: &About, group: Arc<dyn InstanceGroup>) -> Result<(), (Output, ServeFault)> {
    let system = |what| move |source| ServeFault::System { what, source };
    let output = Output::take().map_err(|error| (Output::as_it_is(), system("taking the output")(error)))?;
    let told = output.clone();
    std::panic::set_hook(Box::new(move |panic| told.complain(&format!("panic: {panic}"))));
    if let Ok(log) = output.log() {
        // Another may be there in tests; then that one has the log.
        let _ = tracing::subscriber::set_global_default(Subscriber { output: log, own: about.name.replace('-', "_") });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| (output.clone(), system("starting")(error)))?;
    let served = runtime.block_on(answer_host(group, &output));
    runtime.shutdown_background();
    served.map_err(|fault| (output, fault))
}

async fn answer_host(group: Arc<dyn InstanceGroup>, output: &Output) -> Result<(), ServeFault> {
    let offered = std::env::var(handshake::VERSIONS).ok();
    let (app, unreadable) = handshake::negotiate(offered.as_deref(), &[handshake::APP]);
    for version in unreadable {
        tracing::warn!("server sent invalid plugin version {version:?}");
    }
    let host = std::env::var(handshake::CLIENT_CERTIFICATE).ok().filter(|certificate| !certificate.is_empty());
    let identity = if host.is_some() { Some(Identity::generate()?) } else { None };
    let tls = match (&identity, &host) {
        (Some(identity), Some(host)) => Some(identity.server(host)?),
        _ => None,
    };
    let listener = Listener::bind()?;
    let line = Line { app, address: listener.address()?, certificate: identity.map(|identity| identity.der().to_vec()) };
    tracing::debug!(address = ?line.address, tls = tls.is_some(), "plugin address");
    let multiplexing = std::env::var(handshake::MULTIPLEX).is_ok_and(|asked| !asked.is_empty());
    output.say(&line.render(multiplexing)).map_err(|source| ServeFault::System { what: "telling the host", source })?;

    let (end, ended) = watch::channel(false);
    let routes = routes(group, output, &end, &ended).await?;
    let (connections, incoming) = tokio::sync::mpsc::channel(16);
    let accepting = tokio::spawn(listener.accept(tls, connections));
    let incoming = tokio_stream::StreamExt::map(ReceiverStream::new(incoming), Ok::<_, io::Error>);
    let server = tonic::transport::Server::builder()
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(8 << 20)
        .serve_with_incoming_shutdown(routes.prepare(), incoming, until_ended(ended.clone()));
    let mut server = Box::pin(server);
    tokio::spawn(signals());
    let leaving = tokio::select! {
        served = &mut server => return Ok(served?),
        () = until_ended(ended.clone()) => "its host has ended it",
        () = host_gone() => "its host is gone",
    };
    tracing::debug!("the plugin ends: {leaving}");
    end.send_replace(true);
    // In-flight calls are not waited for: the host does not either.
    let _ = tokio::time::timeout(FAREWELL, server).await;
    accepting.abort();
    // The socket file goes with the listener.
    let _ = accepting.await;
    Ok(())
}

async fn routes(
    group: Arc<dyn InstanceGroup>,
    output: &Output,
    end: &watch::Sender<bool>,
    ended: &watch::Receiver<bool>,
) -> Result<tonic::service::Routes, ServeFault> {
    use ci_proto::fleeting::FILE_DESCRIPTOR_SET;
    use ci_proto::fleeting::go_plugin::grpc_broker_server::GrpcBrokerServer;
    use ci_proto::fleeting::go_plugin::grpc_controller_server::GrpcControllerServer;
    use ci_proto::fleeting::go_plugin::grpc_stdio_server::GrpcStdioServer;
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("plugin", tonic_health::ServingStatus::Serving).await;
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let unreadable = |error: tonic_reflection::server::Error| ServeFault::Reflection(error.to_string());
    let mut routes = tonic::service::Routes::new(Service::new(group).server());
    routes = routes
        .add_service(GrpcControllerServer::new(go_plugin::Controller::new(end.clone())))
        .add_service(GrpcStdioServer::new(go_plugin::Stdio::new(output.printed(), ended.clone())))
        .add_service(GrpcBrokerServer::new(go_plugin::Broker::new(ended.clone())))
        .add_service(health_service)
        .add_service(reflection().build_v1().map_err(unreadable)?)
        .add_service(reflection().build_v1alpha().map_err(unreadable)?);
    Ok(routes)
}

async fn until_ended(mut ended: watch::Receiver<bool>) {
    if ended.wait_for(|ended| *ended).await.is_err() {
        std::future::pending().await
    }
}

/// A terminal's Ctrl-C is meant for the host, which still needs us to clean up; and a service manager that ends everything at once must not end us
/// first. The second SIGTERM counts.
#[cfg(unix)]
async fn signals() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else { return };
    let mut asked = 0;
    loop {
        tokio::select! {
            _ = interrupt.recv() => tracing::trace!("plugin received interrupt signal, ignoring"),
            _ = terminate.recv() => {
                asked += 1;
            }
        }
        match asked {
            0 => {}
            1 => tracing::info!("the plugin ends with its host; a second SIGTERM ends it now"),
            _ => std::process::exit(128 + 15),
        }
    }
}

#[cfg(not(unix))]
async fn signals() {
    while tokio::signal::ctrl_c().await.is_ok() {
        tracing::trace!("plugin received interrupt signal, ignoring");
    }
}

/// Who has lost its parent serves nobody. A first process of a container never had one.
#[cfg(unix)]
async fn host_gone() {
    let host = rustix::process::getppid();
    if host.is_none_or(|host| host.is_init()) {
        std::future::pending::<()>().await;
    }
    while rustix::process::getppid() == host {
        tokio::time::sleep(LOOK_FOR_HOST).await;
    }
}

#[cfg(not(unix))]
async fn host_gone() {
    std::future::pending().await
}
