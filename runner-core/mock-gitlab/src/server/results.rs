//! The results service, beside the API on the same address: gRPC, plain or with TLS.

use super::{Shared, broken};
use crate::world::ResultAnswer;
use axum::body::Body;
use axum::http;
use bytes::Bytes;
use ci_proto::results::report_request::Part;
use ci_proto::results::results_server::{Results, ResultsServer};
use ci_proto::results::{ReportRequest, ReportResponse};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::{Code, Request, Response, Status, Streaming};
use tower::Service as _;

/// A larger tree is refused: no message of a job is larger either.
const LARGEST_TREE: usize = 64 << 20;

pub fn is_meant(path: &str) -> bool {
    path.starts_with("/runner_core.results.v1.Results/")
}

pub async fn answer<B>(request: http::Request<B>, shared: Arc<Shared>) -> Result<http::Response<Body>, io::Error>
where
    B: axum::body::HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let is_broken = Arc::new(Mutex::new(false));
    let mut service = ResultsServer::new(Taking { shared, is_broken: Arc::clone(&is_broken) });
    let response = match service.call(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    if *is_broken.lock().unwrap_or_else(PoisonError::into_inner) {
        return Err(broken());
    }
    Ok(response.map(Body::new))
}

struct Taking {
    shared: Arc<Shared>,
    /// The connection is to break in place of an answer.
    is_broken: Arc<Mutex<bool>>,
}

#[tonic::async_trait]
impl Results for Taking {
    async fn report(&self, request: Request<Streaming<ReportRequest>>) -> Result<Response<ReportResponse>, Status> {
        let mut parts = request.into_inner();
        let (mut head, mut tree) = (None, Vec::new());
        while let Some(message) = parts.message().await? {
            match (message.part, &head) {
                (Some(Part::Head(first)), None) => head = Some(first),
                (Some(Part::Tree(bytes)), Some(_)) if tree.len() + bytes.len() <= LARGEST_TREE => tree.extend_from_slice(&bytes),
                (Some(Part::Tree(_)), Some(_)) => return Err(Status::resource_exhausted("the tree has more than 64 MiB")),
                _ => return Err(Status::invalid_argument("the head comes first, once, and pieces of the tree after it")),
            }
        }
        let head = head.ok_or_else(|| Status::invalid_argument("there is no head"))?;
        let now = self.shared.now();
        let answer = self.shared.world().take_result(head, tree, now);
        self.shared.changed.send_modify(|count| *count += 1);
        match answer {
            ResultAnswer::Kept { known } => Ok(Response::new(ReportResponse { known })),
            ResultAnswer::Late { known, wait } => {
                tokio::time::sleep(wait).await;
                Ok(Response::new(ReportResponse { known }))
            }
            ResultAnswer::Status(status) => Err(Status::new(code(status), format!("answered as {status} on purpose"))),
            ResultAnswer::Never => std::future::pending().await,
            ResultAnswer::Broken => {
                *self.is_broken.lock().unwrap_or_else(PoisonError::into_inner) = true;
                Err(Status::aborted("the connection breaks"))
            }
        }
    }
}

/// As the gRPC documentation maps the statuses of HTTP ("HTTP to gRPC Status Code Mapping").
fn code(status: u16) -> Code {
    match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 | 501 => Code::Unimplemented,
        413 => Code::ResourceExhausted,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}
