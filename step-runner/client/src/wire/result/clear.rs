//! A result message as protobuf JSON with its values in clear: what a handover gives back to the host that asked for it, and nobody else.

use ci_proto::step_runner::StepResult;
use prost::Message as _;
use prost_reflect::DynamicMessage;
use serde_json::Value as Json;

/// The tree as one value, with the names that protobuf gives them.
pub fn clear_json(mut result: StepResult) -> Json {
    // Node by node, so that the depth of the tree does not count against the depth of its values.
    let children = std::mem::take(&mut result.sub_step_results);
    let mut json = one_node(&result);
    if let (Json::Object(fields), false) = (&mut json, children.is_empty()) {
        fields.insert("subStepResults".to_owned(), children.into_iter().map(clear_json).collect());
    }
    json
}

fn one_node(result: &StepResult) -> Json {
    let description = ci_proto::message("StepResult");
    let dynamic = description.and_then(|description| DynamicMessage::decode(description, &result.encode_to_vec()[..]).ok());
    // What was encoded a moment ago is decoded again, and its description is our own.
    dynamic.and_then(|dynamic| serde_json::to_value(dynamic).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ci_proto::step_runner::Step;
    use ci_proto::step_runner::step_result::Status;

    #[test]
    fn a_tree_is_read_again_as_it_was_written() {
        let named = |name: &str, sub_step_results| StepResult {
            step: Some(Step { name: name.into(), ..Step::default() }),
            status: Status::Success.into(),
            sub_step_results,
            outputs: [("a".to_owned(), prost_types::Value { kind: Some(prost_types::value::Kind::StringValue("1".into())) })].into(),
            sensitive_outputs: vec!["a".into()],
            ..StepResult::default()
        };
        let json = clear_json(named("outer", vec![named("inner", Vec::new())]));
        assert_eq!(json["subStepResults"][0]["step"]["name"], "inner");
        assert_eq!((&json["outputs"]["a"], &json["status"], &json["sensitiveOutputs"][0]), (&"1".into(), &"success".into(), &"a".into()));
        assert!(super::super::read(&json.to_string()).is_ok());
    }
}
