//! What an operator can ask a runner: on a socket in its state, and over HTTP where the configuration has a `listen_address`.
//!
//! | path | answer |
//! |---|---|
//! | `/status` | runners, instances and jobs as JSON |
//! | `/why/7` | what job 7 waits for, what would start it, and when |
//! | `/metrics` | for Prometheus, with GitLab's names where it has them |
//! | `/health/ready` | 200 as soon as jobs are taken |
//! | `/debug/jobs/list` | a line per job, as GitLab's runner has it |

mod ask;
mod metrics;
mod status;

pub use ask::{JobsArguments, StatusArguments, answer, jobs, print, state_directory, status};

use crate::drive::Look;
use crate::telemetry::Telemetry;
use crate::why;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use runner_control::Controller;
use std::io;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// The name of the socket in the directory of the state, which only its user may enter.
pub const SOCKET: &str = "runner-core.sock";

/// Asks the controller, between two events.
#[derive(Clone)]
struct Asking(UnboundedSender<Look>, Telemetry);

impl Asking {
    async fn ask<T: Send + 'static>(&self, look: impl FnOnce(&Controller) -> T + Send + 'static) -> Result<T, StatusCode> {
        let (sender, answer) = oneshot::channel();
        let look: Look = Box::new(move |controller| drop(sender.send(look(controller))));
        self.0.send(look).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        answer.await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
    }
}

fn routes(looks: UnboundedSender<Look>, telemetry: Telemetry) -> Router {
    Router::new()
        .route("/status", get(get_status))
        .route("/metrics", get(get_metrics))
        .route("/why/{number}", get(get_why))
        .route("/health/ready", get(|| async { "ok\n" }))
        .route("/debug/jobs/list", get(get_jobs))
        .with_state(Asking(looks, telemetry))
}

async fn get_status(State(asking): State<Asking>) -> Result<Response, StatusCode> {
    let status = asking.ask(status::Status::of).await?;
    let text = serde_json::to_string(&status).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

async fn get_why(State(asking): State<Asking>, Path(number): Path<u64>) -> Result<Response, StatusCode> {
    let answer = asking.ask(move |controller| why::Answer::of(controller, number)).await?;
    let text = serde_json::to_string(&answer).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

async fn get_metrics(State(asking): State<Asking>) -> Result<Response, StatusCode> {
    let status = asking.ask(status::Status::of).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::text(&status) + &asking.1.text()).into_response())
}

async fn get_jobs(State(asking): State<Asking>) -> Result<Response, StatusCode> {
    let status = asking.ask(status::Status::of).await?;
    let lines: String = status.jobs.iter().map(status::Job::line).collect();
    Ok(([("x-list-version", "2")], lines).into_response())
}

/// Answers on the socket, and where the configuration says; as long as the process lives.
/// # Errors
/// An address cannot be listened on.
pub async fn serve(
    directory: &std::path::Path,
    listen_address: Option<&str>,
    looks: UnboundedSender<Look>,
    telemetry: Telemetry,
) -> io::Result<()> {
    let socket = directory.join(SOCKET);
    match std::fs::remove_file(&socket) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        // The lock of the state says that nobody else answers there.
        _ => {}
    }
    let listener = UnixListener::bind(&socket)?;
    tokio::spawn(axum::serve(listener, routes(looks.clone(), telemetry.clone())).into_future());
    if let Some(address) = listen_address {
        let listener =
            TcpListener::bind(address.strip_prefix(':').map_or_else(|| address.to_owned(), |port| format!("0.0.0.0:{port}"))).await?;
        tracing::info!(address, "metrics and health are served");
        tokio::spawn(axum::serve(listener, routes(looks, telemetry)).into_future());
    }
    Ok(())
}
