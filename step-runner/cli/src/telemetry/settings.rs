//! What the `OTEL_*` variables ask for. Source: the OpenTelemetry specification, "Environment Variable Specification" and "OTLP Exporter
//! Configuration". Headers, compression and what describes the program are read by the exporter itself, under the same names.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a collector may take, unless the environment says otherwise. Somebody waits for the end of the program.
const PATIENCE: Duration = Duration::from_secs(5);
const GRPC: &str = "http://localhost:4317";
const HTTP: &str = "http://localhost:4318";

/// What becomes of the spans of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Export {
    Off,
    To(Destination),
    /// They are wanted in a way that is not there. Says which, and what is.
    Impossible(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub protocol: Protocol,
    /// With the path, where the protocol has one.
    pub endpoint: String,
    /// For everything: connecting and sending.
    pub limit: Duration,
    /// A file of certificates (PEM) that a collector's is signed by, besides those of the system.
    pub certificates: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Grpc,
    HttpProtobuf,
}

impl Destination {
    /// The endpoint without a user's name and password.
    pub fn shown(&self) -> String {
        let Some((scheme, rest)) = self.endpoint.split_once("://") else { return self.endpoint.clone() };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        if path.is_empty() { format!("{scheme}://{host}") } else { format!("{scheme}://{host}/{path}") }
    }
}

/// Spans are sent when an endpoint or the exporter `otlp` is named.
pub fn of(env: &BTreeMap<String, String>) -> Export {
    let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    // Those of traces go before those of all signals.
    let otlp = |name: &str| get(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}")).or_else(|| get(&format!("OTEL_EXPORTER_OTLP_{name}")));
    if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Export::Off;
    }
    let is_named = match get("OTEL_TRACES_EXPORTER") {
        None => false,
        Some("none") => return Export::Off,
        Some("otlp") => true,
        Some(other) => return Export::Impossible(format!("OTEL_TRACES_EXPORTER is `{other}`; there are `otlp` and `none`")),
    };
    if otlp("ENDPOINT").is_none() && !is_named {
        return Export::Off;
    }
    let port = otlp("ENDPOINT").and_then(|endpoint| endpoint.trim_end_matches('/').rsplit_once(':')).map(|(_, port)| port);
    let protocol = match (otlp("PROTOCOL"), port) {
        (Some("grpc"), _) => Protocol::Grpc,
        (Some("http/protobuf"), _) => Protocol::HttpProtobuf,
        (Some(other), _) => {
            return Export::Impossible(format!("OTEL_EXPORTER_OTLP_PROTOCOL is `{other}`; there are `grpc` and `http/protobuf`"));
        }
        // The port that the specification gives to HTTP.
        (None, Some(port)) if port.split('/').next() == Some("4318") => Protocol::HttpProtobuf,
        (None, _) => Protocol::Grpc,
    };
    let endpoint = match (protocol, get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), get("OTEL_EXPORTER_OTLP_ENDPOINT")) {
        (_, Some(own), _) => own.to_owned(),
        (Protocol::Grpc, None, all) => all.unwrap_or(GRPC).to_owned(),
        (Protocol::HttpProtobuf, None, all) => format!("{}/v1/traces", all.unwrap_or(HTTP).trim_end_matches('/')),
    };
    if protocol == Protocol::HttpProtobuf && !endpoint.starts_with("http://") {
        let why = format!("`{endpoint}` wants http/protobuf over TLS; there are http/protobuf over http:// and grpc, also over TLS");
        return Export::Impossible(why);
    }
    let limit = otlp("TIMEOUT").and_then(|milliseconds| milliseconds.parse().ok()).map_or(PATIENCE, Duration::from_millis);
    Export::To(Destination { protocol, endpoint, limit, certificates: otlp("CERTIFICATE").map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(variables: &[(&str, &str)]) -> Export {
        of(&variables.iter().map(|(name, value)| (format!("OTEL_{name}"), (*value).to_owned())).collect())
    }

    fn to(protocol: Protocol, endpoint: &str) -> Export {
        Export::To(Destination { protocol, endpoint: endpoint.to_owned(), limit: PATIENCE, certificates: None })
    }

    #[test]
    fn nothing_is_sent_unless_somebody_asks() {
        assert_eq!(asked(&[]), Export::Off);
        assert_eq!(asked(&[("EXPORTER_OTLP_ENDPOINT", "")]), Export::Off);
        assert_eq!(asked(&[("EXPORTER_OTLP_ENDPOINT", "http://c"), ("SDK_DISABLED", "True")]), Export::Off);
        assert_eq!(asked(&[("EXPORTER_OTLP_ENDPOINT", "http://c"), ("TRACES_EXPORTER", "none")]), Export::Off);
        assert_eq!(asked(&[("TRACES_EXPORTER", "otlp")]), to(Protocol::Grpc, "http://localhost:4317"));
    }

    #[test]
    fn what_is_named_for_traces_goes_before_what_is_named_for_all() {
        let both = [("EXPORTER_OTLP_ENDPOINT", "http://all:1"), ("EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:2/x")];
        assert_eq!(asked(&both), to(Protocol::Grpc, "http://own:2/x"));
        assert_eq!(asked(&both[..1]), to(Protocol::Grpc, "http://all:1"));
        let http = ("EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        assert_eq!(asked(&[both[0], http]), to(Protocol::HttpProtobuf, "http://all:1/v1/traces"));
        assert_eq!(asked(&[both[0], both[1], http]), to(Protocol::HttpProtobuf, "http://own:2/x"));
        assert_eq!(asked(&[both[0], http, ("EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")]), to(Protocol::Grpc, "http://all:1"));
    }

    #[test]
    fn without_a_protocol_the_port_of_http_decides() {
        assert_eq!(asked(&[("EXPORTER_OTLP_ENDPOINT", "http://c:4318/")]), to(Protocol::HttpProtobuf, "http://c:4318/v1/traces"));
        assert_eq!(asked(&[("EXPORTER_OTLP_ENDPOINT", "http://c:4317")]), to(Protocol::Grpc, "http://c:4317"));
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let why = |variables: &[(&str, &str)]| match asked(variables) {
            Export::Impossible(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(why(&[("TRACES_EXPORTER", "zipkin")]), "OTEL_TRACES_EXPORTER is `zipkin`; there are `otlp` and `none`");
        let json = [("TRACES_EXPORTER", "otlp"), ("EXPORTER_OTLP_PROTOCOL", "http/json")];
        assert_eq!(why(&json), "OTEL_EXPORTER_OTLP_PROTOCOL is `http/json`; there are `grpc` and `http/protobuf`");
        assert!(why(&[("EXPORTER_OTLP_ENDPOINT", "https://c:4318")]).contains("over TLS"));
    }

    #[test]
    fn the_limit_is_that_of_the_environment_and_a_password_is_not_shown() {
        let env = [("EXPORTER_OTLP_ENDPOINT", "http://ann:hunter2@c:1/p"), ("EXPORTER_OTLP_TIMEOUT", "1500")];
        let Export::To(destination) = asked(&env) else { panic!("it is sent") };
        assert_eq!((destination.limit, &*destination.shown()), (Duration::from_millis(1500), "http://c:1/p"));
    }
}
