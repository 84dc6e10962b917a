//! Sends spans to a collector over OTLP. The one door to OpenTelemetry's crates.

use super::settings::{Destination, Protocol};
use super::spans::{Attribute, Outcome, Span};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use std::str::FromStr as _;
use std::time::{Duration, SystemTime};
use step_model::time::Timestamp;

/// Spans of one request: far below what a collector takes in one message (4 MiB).
const BATCH: usize = 500;

/// Sends all of it within the limit of the destination, or gives up. `state` is the caller's `tracestate`.
/// # Errors
/// Why not all of it arrived.
pub fn send(spans: Vec<Span>, state: Option<&str>, destination: &Destination) -> Result<(), String> {
    // On a thread of its own: the caller may be a part of a runtime, in which no other can be waited for.
    std::thread::scope(|scope| scope.spawn(|| send_here(spans, state, destination)).join())
        .unwrap_or_else(|_| Err("a fault of ours".to_owned()))
}

fn send_here(spans: Vec<Span>, state: Option<&str>, destination: &Destination) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|fault| fault.to_string())?;
    let outcome = runtime.block_on(async { tokio::time::timeout(destination.limit, send_all(spans, state, destination)).await });
    // Whatever still waits for a name server or a connection is not waited for.
    runtime.shutdown_background();
    outcome.unwrap_or_else(|_| Err(format!("no answer within {:?}", destination.limit)))
}

async fn send_all(spans: Vec<Span>, state: Option<&str>, destination: &Destination) -> Result<(), String> {
    let mut exporter = exporter(destination)?;
    exporter.set_resource(&resource());
    let scope = InstrumentationScope::builder("step-runner").with_version(env!("CARGO_PKG_VERSION")).build();
    let state = state.and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
    let mut spans = spans.into_iter().map(|span| data(span, &state, &scope)).peekable();
    while spans.peek().is_some() {
        let batch = spans.by_ref().take(BATCH).collect();
        exporter.export(batch).await.map_err(|fault| fault.to_string())?;
    }
    Ok(())
}

fn exporter(destination: &Destination) -> Result<SpanExporter, String> {
    let built = match destination.protocol {
        Protocol::Grpc => {
            let builder = SpanExporter::builder().with_tonic().with_endpoint(&destination.endpoint).with_timeout(destination.limit);
            if destination.endpoint.starts_with("https:") { builder.with_tls_config(tls(destination)?).build() } else { builder.build() }
        }
        Protocol::HttpProtobuf => {
            SpanExporter::builder().with_http().with_endpoint(&destination.endpoint).with_timeout(destination.limit).build()
        }
    };
    built.map_err(|fault| fault.to_string())
}

fn tls(destination: &Destination) -> Result<ClientTlsConfig, String> {
    let config = ClientTlsConfig::new().with_enabled_roots();
    let Some(file) = &destination.certificates else { return Ok(config) };
    let pem = std::fs::read(file).map_err(|fault| format!("the certificates in `{file}` cannot be read: {fault}"))?;
    Ok(config.ca_certificate(Certificate::from_pem(pem)))
}

/// `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, and our own name where they give none.
fn resource() -> Resource {
    let is_named = std::env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty())
        || std::env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|attributes| attributes.contains("service.name="));
    let builder = Resource::builder();
    let builder = if is_named { builder } else { builder.with_service_name("step-runner") };
    builder.build()
}

fn data(span: Span, state: &TraceState, scope: &InstrumentationScope) -> SpanData {
    let flags = if span.context.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
    let trace = TraceId::from_bytes(span.context.trace.bytes());
    let own = SpanId::from_bytes(span.context.span.bytes());
    SpanData {
        span_context: SpanContext::new(trace, own, flags, false, state.clone()),
        parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.bytes())),
        parent_span_is_remote: span.is_joined,
        span_kind: SpanKind::Internal,
        name: span.name.into(),
        start_time: system_time(span.start),
        end_time: system_time(span.end),
        attributes: span.attributes.into_iter().map(|(name, value)| KeyValue::new(name, value_of(value))).collect(),
        dropped_attributes_count: 0,
        events: Default::default(),
        links: Default::default(),
        status: match span.outcome {
            Outcome::Open => Status::Unset,
            Outcome::Succeeded => Status::Ok,
            Outcome::Failed(message) => Status::error(message),
        },
        instrumentation_scope: scope.clone(),
    }
}

fn value_of(attribute: Attribute) -> Value {
    match attribute {
        Attribute::Text(text) => text.into(),
        Attribute::Whole(number) => number.into(),
        Attribute::Real(number) => number.into(),
        Attribute::Flag(flag) => flag.into(),
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(time.nanoseconds()).unwrap_or(0))
}
