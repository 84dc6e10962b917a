//! The spans of a job, as a real collector gets them.

use ci_tests::kit::Component;
use ci_tests::workshop::{Ends, Workshop};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const JOB: &str = "spec: {inputs: {token: {type: string, sensitive: true}}}
---
run:
  - {name: outer, step: ../outer}
  - {name: last, script: 'echo $TRACEPARENT > span; echo $TRACESTATE > state; exit 7'}
";
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The spans that have arrived for this service, by name, once there are as many as expected.
fn arrived(collector: &Component, service: &str, expected: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(collector.get("OTLP_FILE")).unwrap_or_default();
        let mut spans = Vec::new();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            for resource in line["traces"]["resourceSpans"].as_array().into_iter().flatten() {
                if attributes(&resource["resource"]).get("service.name").is_some_and(|name| name == service) {
                    let scopes = resource["scopeSpans"].as_array().into_iter().flatten();
                    spans.extend(scopes.flat_map(|scope| scope["spans"].as_array().cloned().unwrap_or_default()));
                }
            }
        }
        if spans.len() >= expected {
            return spans;
        }
        // The collector sends what it has five times a second.
        assert!(began.elapsed() < Duration::from_secs(30), "{} of {expected} spans have arrived: {text}", spans.len());
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn attributes(of: &Value) -> BTreeMap<String, String> {
    let shown = |value: &Value| {
        value
            .as_object()
            .and_then(|value| value.values().next())
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let pairs = of["attributes"].as_array().into_iter().flatten();
    pairs.filter_map(|pair| Some((pair["key"].as_str()?.to_owned(), shown(&pair["value"])?))).collect()
}

/// As the sink writes bytes: base64.
fn hexadecimal(id: &Value) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = id.as_str().unwrap_or_default().trim_end_matches('=');
    let bits: Vec<u8> =
        text.bytes().map(|byte| u8::try_from(digits.iter().position(|digit| *digit == byte).expect("base64")).expect("small")).collect();
    let number = |bits: &[u8]| bits.iter().fold(0_u32, |number, six| number << 6 | u32::from(*six)) << (6 * (4 - bits.len()));
    bits.chunks(4).flat_map(|bits| number(bits).to_be_bytes()[1..bits.len()].to_vec()).map(|byte| format!("{byte:02x}")).collect()
}

fn exports(endpoint: &str, protocol: &str) {
    let Some(collector) = Component::start("otlp") else { return };
    let workshop = Workshop::new();
    workshop.file("outer/step.yml", "{}\n---\nrun: [{name: inner, script: 'true'}]\n");
    let finished = workshop
        .run_definition(JOB, &["--input", "token=hunter2-hunter2", "--result", "result.json"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.get(endpoint))
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        .env("OTEL_SERVICE_NAME", protocol)
        .env("OTEL_RESOURCE_ATTRIBUTES", "team=tools")
        .env("TRACEPARENT", CALLER)
        .env("TRACESTATE", "a=b")
        .ends(1);
    assert!(!finished.stderr().contains("could not be sent"), "{finished}");
    let spans = arrived(&collector, protocol, 5);
    let named: BTreeMap<&str, &Value> = spans.iter().map(|span| (span["name"].as_str().expect("a name"), span)).collect();
    assert_eq!(named.keys().copied().collect::<Vec<_>>(), ["./job", "inner", "job", "last", "outer"]);
    let (id, parent) = (|name: &str| hexadecimal(&named[name]["spanId"]), |name: &str| hexadecimal(&named[name]["parentSpanId"]));
    assert!(spans.iter().all(|span| hexadecimal(&span["traceId"]) == "4bf92f3577b34da6a3ce929d0e0e4736"));
    assert_eq!(parent("job"), "00f067aa0ba902b7");
    assert_eq!([parent("./job"), parent("outer"), parent("inner"), parent("last")], [id("job"), id("./job"), id("outer"), id("./job")]);
    assert_eq!(workshop.read("span").trim(), format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", id("last")), "what the process was told");
    assert_eq!(workshop.read("state").trim(), "a=b");

    let last = attributes(named["last"]);
    assert_eq!((&*last["ci.function.name"], &*last["ci.function.status"], &*last["process.exit.code"]), ("script", "failure", "7"));
    assert_eq!(
        (&named["last"]["status"]["code"], &named["last"]["status"]["message"]),
        (&"STATUS_CODE_ERROR".into(), &"exec: exit status 7".into())
    );
    assert_eq!(named["inner"]["status"]["code"], "STATUS_CODE_OK");
    let all = std::fs::read_to_string(collector.get("OTLP_FILE")).expect("the sink writes");
    assert!(!all.contains("hunter2") && all.contains("tools"), "{all}");
}

#[test]
fn the_spans_of_a_job_reach_a_collector_over_grpc() {
    exports("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc");
}

#[test]
fn the_spans_of_a_job_reach_a_collector_over_http() {
    exports("OTLP_HTTP_ENDPOINT", "http/protobuf");
}

#[test]
fn the_spans_of_a_job_that_ran_at_an_agent_are_joined_and_sent() {
    let Some(collector) = Component::start("otlp") else { return };
    let workshop = Workshop::new();
    workshop.file("job/step.yml", "{}\n---\nrun: [{name: there, script: 'echo $TRACEPARENT > span'}]\n");
    let script = "read line; exec \"$STEP_RUNNER\" remote run ./job --connect unix:s.sock";
    workshop
        .step_runner(&["steps", "serve", "--socket", "s.sock", "sh", "-c", script])
        .input("go\n")
        .env("STEP_RUNNER", ci_tests::program::path("STEP_RUNNER"))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.get("OTEL_EXPORTER_OTLP_ENDPOINT"))
        .env("OTEL_SERVICE_NAME", "there")
        .env("TRACEPARENT", CALLER)
        .ends(0);
    let spans = arrived(&collector, "there", 3);
    assert!(spans.iter().all(|span| hexadecimal(&span["traceId"]) == "4bf92f3577b34da6a3ce929d0e0e4736"));
    let there = spans.iter().find(|span| span["name"] == "there").expect("a span of the step");
    let told = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", hexadecimal(&there["spanId"]));
    assert_eq!(workshop.read("span").trim(), told, "the process was told the span that arrived");
    let job = spans.iter().find(|span| span["name"] == "job").expect("a span of the job");
    assert_eq!(hexadecimal(&job["parentSpanId"]), "00f067aa0ba902b7");
}

#[test]
fn a_collector_that_is_away_is_said_once_and_the_job_is_what_it_was() {
    let workshop = Workshop::new();
    // Nobody listens there: the port is taken by a socket that does not.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let endpoint = format!("http://ann:hunter2@{}", socket.local_addr().expect("it has one"));
    let job = |variables: &[(&str, &str)]| {
        let mut invocation = workshop.run_definition("{}\n---\nexec: {command: [echo, done]}\n", &[]);
        for (name, value) in variables {
            invocation = invocation.env(name, value);
        }
        invocation.ends(0).prints("done")
    };
    // It accepts and never answers.
    let silent = job(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("OTEL_EXPORTER_OTLP_TIMEOUT", "300")]);
    assert_eq!(silent.stderr().matches("warning: the spans of the job could not be sent to http://127.0.0.1:").count(), 1, "{silent}");
    assert!(!silent.stderr().contains("hunter2"), "{silent}");
    drop(socket);
    let away = job(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    assert_eq!(away.stderr().matches("warning: the spans").count(), 1, "{away}");
    let disabled = job(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("OTEL_SDK_DISABLED", "true")]);
    assert!(!disabled.stderr().contains("spans"), "{disabled}");
    let unknown = job(&[("OTEL_TRACES_EXPORTER", "zipkin")]);
    assert!(unknown.stderr().contains("warning: the spans of the job are not sent: OTEL_TRACES_EXPORTER is `zipkin`"), "{unknown}");
}
