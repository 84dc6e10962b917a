//! The results service, called over gRPC. The one door to the gRPC library here.

use ci_proto::results::report_request::Part;
use ci_proto::results::results_client::ResultsClient;
use ci_proto::results::{KeptResult, ReportRequest};
use runner_config::settings::Results as Settings;
use std::error::Error as _;
use std::time::Duration;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

/// A piece of a tree: far below what a server takes in one message (4 MiB), far above what a message costs.
const PIECE: usize = 256 << 10;

/// For connecting, and for one result of 64 MiB on a slow path.
const TO_CONNECT: Duration = Duration::from_secs(10);
const TO_REPORT: Duration = Duration::from_secs(120);

/// Why a result was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Nothing would be taken now.
    Away(String),
    /// This one, by itself.
    Unwanted(String),
}

#[derive(Clone)]
pub struct Service {
    channel: Channel,
    authorization: Option<MetadataValue<Ascii>>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

impl Service {
    /// Connects at the first call. Needs a runtime.
    /// # Errors
    /// It is no address, or its certificates cannot be read.
    pub fn of(address: &str, settings: &Settings) -> Result<Self, String> {
        let no_address = |fault: tonic::transport::Error| format!("the address of the results service: {}", innermost(&fault));
        let endpoint = Endpoint::from_shared(address.to_owned()).map_err(no_address)?;
        let mut endpoint = endpoint.connect_timeout(TO_CONNECT).timeout(TO_REPORT);
        if address.starts_with("https://") {
            endpoint = endpoint.tls_config(tls(settings)?).map_err(no_address)?;
        }
        let authorization = settings.token.as_ref().map(|token| format!("Bearer {}", token.expose()).parse());
        let authorization = authorization.transpose().map_err(|_| "the token of the results service cannot be sent".to_owned())?;
        let authorization = authorization.map(|mut value: MetadataValue<Ascii>| {
            value.set_sensitive(true);
            value
        });
        Ok(Self { channel: endpoint.connect_lazy(), authorization })
    }

    /// # Errors
    /// It was not taken, or the answer was lost.
    pub async fn report(&self, kept: KeptResult) -> Result<(), Why> {
        let head = kept.head.ok_or_else(|| Why::Unwanted("it has no head".to_owned()))?;
        let mut rest = kept.tree;
        let head = std::iter::once(Part::Head(head));
        let tree = std::iter::from_fn(move || (!rest.is_empty()).then(|| Part::Tree(rest.split_to(rest.len().min(PIECE)))));
        let parts = head.chain(tree).map(|part| ReportRequest { part: Some(part) });
        let mut request = Request::new(tokio_stream::iter(parts));
        if let Some(authorization) = &self.authorization {
            request.metadata_mut().insert("authorization", authorization.clone());
        }
        ResultsClient::new(self.channel.clone()).report(request).await.map(drop).map_err(|status| why(&status))
    }
}

fn tls(settings: &Settings) -> Result<ClientTlsConfig, String> {
    let config = ClientTlsConfig::new().with_native_roots();
    let Some(file) = &settings.tls_ca_file else { return Ok(config) };
    let pem = std::fs::read(file)
        .map_err(|fault| format!("`tls_ca_file` of the results service, `{file}`: {}", step_console::given::words(&fault)))?;
    Ok(config.ca_certificate(Certificate::from_pem(pem)))
}

/// What a status means for this result and for the others.
fn why(status: &Status) -> Why {
    let words = match status.source() {
        // It happened on this side: the innermost says what.
        Some(source) => innermost(source),
        None if status.message().is_empty() => format!("{:?}", status.code()),
        None => format!("{:?}: {}", status.code(), status.message()),
    };
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => Why::Unwanted(words),
        _ => Why::Away(words),
    }
}

fn innermost(mut fault: &(dyn std::error::Error + 'static)) -> String {
    while let Some(inner) = fault.source() {
        fault = inner;
    }
    fault.to_string().split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_about_this_result_sets_it_aside() {
        let of = |code| matches!(why(&Status::new(code, "x")), Why::Unwanted(_));
        assert!(of(Code::InvalidArgument));
        for away in [Code::Unavailable, Code::PermissionDenied, Code::Unimplemented, Code::Unknown, Code::DeadlineExceeded] {
            assert!(!of(away), "{away:?}");
        }
        assert_eq!(why(&Status::new(Code::Unavailable, "full")), Why::Away("Unavailable: full".to_owned()));
        assert_eq!(why(&Status::new(Code::Unavailable, "")), Why::Away("Unavailable".to_owned()));
    }
}
