//! The trace that a job is a part of.

use std::collections::BTreeMap;
use step_model::trace::TraceContext;

/// The span of whoever called us (`TRACEPARENT`). `None`: nobody named one.
/// # Errors
/// What a person is told about one that is none; then there is no caller.
pub fn caller(env: &BTreeMap<String, String>) -> Result<Option<TraceContext>, String> {
    let Some(text) = env.get("TRACEPARENT").filter(|text| !text.is_empty()) else { return Ok(None) };
    let ignored = |fault| format!("TRACEPARENT is ignored, the job begins a trace of its own: {fault}");
    text.parse().map(Some).map_err(ignored)
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
