//! What the steps that are compiled into a program take, as a part of the schema of an item.

use crate::builtin::Builtins;
use crate::document::{Input, Spec};
use crate::value::Kind;
use serde_json::{Map, Value as Json, json};

/// Adds to a schema of files or of `run` what `builtin://NAME` takes, so that an editor knows it.
pub fn add_builtins(schema: &mut Json, builtins: &Builtins) {
    let item = &mut schema["$defs"]["item"];
    if !item.is_object() {
        return;
    }
    let keys: Vec<&str> = ["func", "step"].into_iter().filter(|key| item["oneOf"].to_string().contains(&format!("\"{key}\":"))).collect();
    let rules = builtins.iter().flat_map(|(name, planned)| keys.iter().map(move |key| rule(key, name, &planned.document.spec)));
    let rules: Vec<Json> = rules.collect();
    if !rules.is_empty() {
        item["allOf"] = rules.into();
    }
}

fn rule(key: &str, name: &str, spec: &Spec) -> Json {
    let inputs: Map<String, Json> = spec.inputs.iter().map(|(name, input)| (name.to_string(), given(input))).collect();
    let required: Vec<&str> = spec.inputs.iter().filter(|(_, input)| input.default.is_none()).map(|(name, _)| &**name).collect();
    let needed: &[&str] = if required.is_empty() { &[] } else { &["inputs"] };
    let inputs = json!({
        "properties": inputs,
        "required": required,
        // A name may hold an expression.
        "patternProperties": {r"\$\{\{": true},
        "additionalProperties": false,
    });
    json!({
        "if": {"properties": {key: {"const": format!("builtin://{name}")}}, "required": [key]},
        "then": {"properties": {"inputs": inputs}, "required": needed},
    })
}

/// A value of its kind, or a text with an expression that becomes one.
fn given(input: &Input) -> Json {
    let kind = match input.kind {
        Kind::String | Kind::Null => json!({"type": "string"}),
        Kind::Number => json!({"type": "number"}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Struct => json!({"type": "object"}),
        Kind::Array => json!({"type": "array"}),
    };
    let mut schema = match input.kind {
        Kind::String | Kind::Null => kind,
        _ => json!({"anyOf": [kind, {"type": "string", "pattern": r"\$\{\{"}]}),
    };
    if let Some(description) = &input.description {
        schema["description"] = description.to_string().into();
    }
    if let Some(default) = input.default.as_ref().filter(|_| !input.sensitive) {
        schema["default"] = default.to_json();
    }
    schema
}
