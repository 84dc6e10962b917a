//! A world behind a socket, plain or with TLS. Nothing is decided here.

mod results;

use crate::checker::Report;
use crate::message::{Delivery, Reply, Request};
use crate::scenario::{Fault, Scenario};
use crate::tls::Certificates;
use crate::world::{JobKey, Turn, World};
use axum::body::Body;
use axum::http;
use bytes::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    certificates: Option<Certificates>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    began: Instant,
    /// Counts changes: whoever holds a request looks again.
    changed: watch::Sender<u64>,
}

/// The largest body that is taken.
const LARGEST_BODY: usize = 256 << 20;

impl Server {
    /// On a free port of this machine.
    /// # Errors
    /// There is none.
    pub async fn start(scenario: Scenario) -> io::Result<Self> {
        Self::listen(scenario, SocketAddr::from(([127, 0, 0, 1], 0)), None).await
    }

    /// The same with TLS. The certificate is made for `localhost` and `127.0.0.1`, by an authority of its own.
    /// # Errors
    /// There is no free port.
    pub async fn start_with_tls(scenario: Scenario) -> io::Result<Self> {
        Self::listen(scenario, SocketAddr::from(([127, 0, 0, 1], 0)), Some(Certificates::new())).await
    }

    /// # Errors
    /// The address cannot be listened on.
    pub async fn listen(scenario: Scenario, address: SocketAddr, certificates: Option<Certificates>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let url = url(address, certificates.is_some());
        let world = Mutex::new(World::new(scenario, url));
        let shared = Arc::new(Shared { world, began: Instant::now(), changed: watch::Sender::new(0) });
        let acceptor = certificates.as_ref().map(|certificates| TlsAcceptor::from(certificates.config()));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared), acceptor));
        let ticking = tokio::spawn(tick(Arc::clone(&shared)));
        Ok(Self { address, shared, certificates, tasks: vec![accepting, ticking] })
    }

    /// What stands as `url` in a configuration.
    pub fn url(&self) -> String {
        url(self.address, self.certificates.is_some())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificates, to be changed while it runs.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// A look at everything.
    pub fn look<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        let now = self.shared.now();
        let mut world = self.shared.world();
        if world.next_change().is_some_and(|at| at <= now) {
            world.tick(now);
            self.shared.changed.send_modify(|count| *count += 1);
        }
        look(&world)
    }

    pub fn report(&self) -> Report {
        self.look(World::report)
    }

    /// Somebody presses the button.
    pub fn cancel(&self, key: JobKey, hard: bool) {
        self.change(|world, now| world.cancel(key, hard, now));
    }

    /// Somebody killed the runner now.
    pub fn runner_died(&self) {
        self.change(World::runner_died);
    }

    pub fn add_fault(&self, fault: Fault) {
        self.change(|world, _| world.add_fault(fault));
    }

    /// Adds jobs.
    pub fn plan(&self, burst: &crate::scenario::Burst) -> Vec<JobKey> {
        self.change(|world, now| world.plan(burst, now))
    }

    fn change<T>(&self, change: impl FnOnce(&mut World, Duration) -> T) -> T {
        let out = change(&mut self.shared.world(), self.shared.now());
        self.shared.changed.send_modify(|count| *count += 1);
        out
    }

    /// Comes back when this is true of the world, however it came to be so.
    pub async fn until(&self, mut is_so: impl FnMut(&World) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        while !self.look(&mut is_so) {
            // The sender lives as long as this value.
            let _ = changed.changed().await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

fn url(address: SocketAddr, is_tls: bool) -> String {
    // A name, since certificates are made for names.
    if is_tls { format!("https://localhost:{}", address.port()) } else { format!("http://{address}") }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, acceptor: Option<TlsAcceptor>) {
    loop {
        // An error here is that of one connection.
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(connection(stream, Arc::clone(&shared), acceptor.clone()));
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, acceptor: Option<TlsAcceptor>) {
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => speak(stream, shared).await,
        Some(acceptor) => {
            // Who does not like the certificate goes away.
            if let Ok(stream) = acceptor.accept(stream).await {
                speak(stream, shared).await;
            }
        }
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, shared: Arc<Shared>) {
    let service = tower::service_fn(move |request| answer(request, Arc::clone(&shared)));
    // A connection that breaks is what a runner has to live with.
    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
}

async fn answer<B>(request: http::Request<B>, shared: Arc<Shared>) -> Result<http::Response<Body>, io::Error>
where
    B: axum::body::HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    if results::is_meant(request.uri().path()) {
        return results::answer(request, shared).await;
    }
    let arrived = shared.now();
    let request = read(request).await?;
    let mut changed = shared.changed.subscribe();
    let mut now = arrived;
    let reply = loop {
        let turn = shared.world().on(&request, arrived, now);
        shared.changed.send_if_modified(|count| {
            *count += u64::from(matches!(turn, Turn::Answer(_)));
            matches!(turn, Turn::Answer(_))
        });
        match turn {
            Turn::Answer(reply) => break reply,
            Turn::Hold { until } => {
                let _ = tokio::time::timeout(until.saturating_sub(shared.now()), changed.changed()).await;
                now = shared.now();
            }
        }
    };
    deliver(reply).await
}

async fn read<B>(request: http::Request<B>) -> io::Result<Request>
where
    B: axum::body::HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(Body::new(body), LARGEST_BODY).await.map_err(io::Error::other)?;
    let path = head.uri.path();
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(Request {
        method: head.method.to_string(),
        path: path.strip_prefix("/api/v4/").unwrap_or(path).to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
        body,
    })
}

async fn deliver(reply: Reply) -> Result<http::Response<Body>, io::Error> {
    match reply.delivery {
        Delivery::Lost => return Err(broken()),
        Delivery::Never => return std::future::pending().await,
        Delivery::Late(wait) => tokio::time::sleep(wait).await,
        Delivery::Whole | Delivery::Half => {}
    }
    let mut response = http::Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    let body = if reply.delivery == Delivery::Half {
        response = response.header("content-length", reply.body.len().max(1).to_string());
        let half = reply.body.slice(..reply.body.len() / 2);
        Body::from_stream(futures::stream::iter([Ok(half), Err(broken())]))
    } else {
        Body::from(reply.body)
    };
    response.body(body).map_err(io::Error::other)
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection is broken on purpose")
}

/// Moves what time moves.
async fn tick(shared: Arc<Shared>) {
    let mut changed = shared.changed.subscribe();
    loop {
        changed.borrow_and_update();
        let next = shared.world().next_change();
        let wait = next.map_or(Duration::from_secs(3600), |at| at.saturating_sub(shared.now()));
        if tokio::time::timeout(wait, changed.changed()).await.is_err() {
            shared.world().tick(shared.now());
            shared.changed.send_modify(|count| *count += 1);
        }
    }
}
