//! One request and its answer. No redirect is followed by itself: a token goes only where it is meant to.

use crate::message::message_of;
use crate::settings::Server;
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, Response, Url};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;
use step_sdk::Failure;

/// GitLab's limits for a connection (GitLab Runner v19.4, `network/client.go`).
const CONNECT: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_mins(10);

/// No message of a refusal is longer.
const LONGEST_BODY: usize = 64 * 1024;

/// What sets the token apart from all other headers.
const TOKEN: &str = "JOB-TOKEN";
/// By which the server's logs name a request: 32 hexadecimal digits, as GitLab's runner sends them.
const REQUEST_ID: &str = "X-Request-Id";

/// # Errors
/// The machine gives none, or the certificates cannot be read.
pub fn client(server: &Server, timeout: Duration) -> Result<Client, Failure> {
    // A second one is no fault: whoever was first has chosen.
    let _chosen = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .timeout(timeout)
        .user_agent(concat!("step-artifact ", env!("CARGO_PKG_VERSION")));
    if let Some(file) = &server.tls_ca_file {
        let fault = |why: String| Failure::step(format!("could not read the certificates in `{}`: {why}", file.display()));
        let text = std::fs::read(file).map_err(|error| fault(error.to_string()))?;
        for certificate in Certificate::from_pem_bundle(&text).map_err(|error| fault(error.to_string()))? {
            builder = builder.add_root_certificate(certificate);
        }
    }
    builder.build().map_err(|error| Failure::step(format!("could not make an HTTP client: {}", cause(&error))))
}

/// A request to the server that the token belongs to. Its name in the server's logs is new for each.
pub fn of_job(request: RequestBuilder, token: &str) -> RequestBuilder {
    let half = || RandomState::new().hash_one(());
    request.header(TOKEN, token).header(REQUEST_ID, format!("{:016x}{:016x}", half(), half()))
}

/// Where the answer sends to, from the address that was asked.
pub fn location(answer: &Response, asked: &Url) -> Option<Url> {
    let text = answer.headers().get(LOCATION)?.to_str().ok()?;
    asked.join(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// What the server says about a refusal.
pub async fn message(mut answer: Response) -> Option<String> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = answer.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST_BODY {
            return None;
        }
    }
    message_of(&String::from_utf8_lossy(&body))
}

/// The last of the reasons, which says it; without the address, which may be signed.
pub fn cause(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    if std::error::Error::source(error).is_none() { "the request could not be made".to_owned() } else { last.to_string() }
}
