//! The trace that a job is a part of, and where its spans go: a result tree is sent to a collector after the end, by the standard `OTEL_*`
//! variables. Without them nothing here costs anything.

#[cfg(feature = "otlp")]
mod otlp;
mod settings;
mod spans;

use settings::Export;
use std::collections::BTreeMap;
use step_client::wire::result::Redaction;
use step_model::result::ResultTree;
use step_model::trace::TraceContext;

/// The span of whoever called us (`TRACEPARENT`). `None`: nobody named one.
/// # Errors
/// What a person is told about one that is none; then there is no caller.
pub fn caller(env: &BTreeMap<String, String>) -> Result<Option<TraceContext>, String> {
    let Some(text) = env.get("TRACEPARENT").filter(|text| !text.is_empty()) else { return Ok(None) };
    let ignored = |fault| format!("TRACEPARENT is ignored, the job begins a trace of its own: {fault}");
    text.parse().map(Some).map_err(ignored)
}

/// Sends the spans of a job that has ended, where the environment asks for it. Takes no longer than the limit of the environment (5 s).
/// `parent` is the span that the job was joined to.
/// # Errors
/// What a person is told: the spans are lost, and the job is what it was.
pub fn export(
    env: &BTreeMap<String, String>,
    tree: &dyn ResultTree,
    parent: Option<TraceContext>,
    redaction: &Redaction,
) -> Result<(), String> {
    match settings::of(env) {
        Export::Off => Ok(()),
        Export::Impossible(why) => Err(format!("the spans of the job are not sent: {why}")),
        Export::To(destination) => {
            let spans = spans::of(tree, parent, redaction);
            // One that is not recorded by whoever began it has none.
            if spans.is_empty() {
                return Ok(());
            }
            let state = parent.and_then(|_| env.get("TRACESTATE")).map(String::as_str);
            send(spans, state, &destination)
                .map_err(|why| format!("the spans of the job could not be sent to {}: {why}", destination.shown()))
        }
    }
}

#[cfg(feature = "otlp")]
use otlp::send;

#[cfg(not(feature = "otlp"))]
fn send(_: Vec<spans::Span>, _: Option<&str>, _: &settings::Destination) -> Result<(), String> {
    Err("this program was built without it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_cannot_be_read_is_none_and_is_said() {
        let of = |text: &str| caller(&BTreeMap::from([("TRACEPARENT".to_owned(), text.to_owned())]));
        let context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(of(context).expect("one").expect("a caller").to_string(), context);
        assert_eq!((of(""), caller(&BTreeMap::new())), (Ok(None), Ok(None)));
        let said = "TRACEPARENT is ignored, the job begins a trace of its own: \
                    it is not `VERSION-TRACE-SPAN-FLAGS` of 2, 32, 16 and 2 lowercase hexadecimal digits";
        assert_eq!(of("yes"), Err(said.to_owned()));
    }
}
