//! The JSON Schema of `step_test.yml` (draft 2020-12), for editors.

use serde_json::{Value as Json, json};

/// An object with these properties and no others.
fn object(description: &str, required: &[&str], properties: Json) -> Json {
    json!({"description": description, "type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

fn map_of(description: &str, value: Json) -> Json {
    json!({"description": description, "type": ["object", "null"], "additionalProperties": value})
}

fn referred(name: &str) -> Json {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// The whole file.
pub fn step_test() -> Json {
    let given = |more: Json| {
        let mut properties = json!({
            "inputs": map_of("What the step is given.", json!(true)),
            "env": map_of("Environment, over the clean one.", referred("scalar")),
            "variables": map_of("Job variables.", referred("variable")),
            "files": map_of("Files in the work directory before the step begins.", referred("source")),
            "fakes": map_of("What stands for steps: by the names on the way to one, or by reference.", referred("fake")),
            "stubs": map_of("Programs on PATH that answer and record their calls.", referred("stub")),
            "hermetic": {"description": "Nothing real may run.", "type": "boolean"},
            "timeout": {"description": "`500ms`, `10s`, `2m`.", "type": "string", "pattern": "^[1-9][0-9]*(ms|s|m)$"},
        });
        if let (Some(properties), Some(more)) = (properties.as_object_mut(), more.as_object()) {
            properties.extend(more.clone());
        }
        properties
    };
    let case = given(json!({
        "name": {"description": "What the case shows.", "type": "string"},
        "description": {"type": "string"},
        "skip": {"description": "Why it is not run.", "type": "string"},
        "table": {"description": "A case for each row.", "type": "array", "minItems": 1, "items": {"type": "object"}},
        "expect": referred("expect"),
    }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:step-runner:step-test",
        "title": "Cases of a step",
        "type": "object",
        "required": ["cases"],
        "additionalProperties": false,
        "properties": {
            "step": {"description": "The definition, where it is not the one beside the file.", "type": "string"},
            "defaults": object("What every case has unless it says otherwise.", &[], given(json!({}))),
            "cases": {"type": "array", "minItems": 1, "items": object("One run of the step.", &["name"], case)},
            "mutants": {"type": "array", "items": object("A change that no case needs to notice.", &["tolerate", "reason"], json!({"tolerate": {"type": "string"}, "reason": {"type": "string"}}))},
        },
        "$defs": definitions(),
    })
}

fn definitions() -> Json {
    let exit = json!({"type": "integer", "minimum": 0, "maximum": 255});
    // Of a table it may come from the row.
    let exit = json!({"anyOf": [exit, {"type": "string", "pattern": r"\$\{\{"}]});
    let texts = json!({"anyOf": [referred("scalar"), {"type": "array", "items": referred("scalar")}]});
    let conditions = object(
        "Conditions of a text; all hold.",
        &[],
        json!({"equals": texts, "contains": texts, "excludes": texts, "matches": texts, "golden": texts}),
    );
    let answer = object(
        "What a stub does.",
        &[],
        json!({"args": referred("words"), "exit": exit, "stdout": referred("scalar"), "stderr": referred("scalar"),
            "files": map_of("Files that it writes.", referred("source")), "optional": {"type": "boolean"}}),
    );
    let values = |what: &str| map_of(what, json!(true));
    json!({
        "scalar": {"type": ["string", "number", "boolean"]},
        "words": {"anyOf": [{"type": "string"}, {"type": "array", "items": referred("scalar")}]},
        "text": {"anyOf": [texts, conditions]},
        "variable": {"anyOf": [referred("scalar"), object("A variable.", &["value"], json!({"value": referred("scalar"), "masked": {"type": "boolean"}, "file": {"type": "boolean"}}))]},
        "source": {"anyOf": [referred("scalar"), object("A file.", &[], json!({"text": referred("scalar"), "from": {"type": "string"}, "executable": {"type": "boolean"}}))]},
        "fake": {"anyOf": [{"type": "null"}, object("What stands for a step.", &[], json!({
            "inputs": {"type": "array", "items": {"type": "string"}},
            "outputs": values("What it gives."), "exports": values("Variables for later steps."), "exit": exit, "log": referred("scalar"),
            "files": map_of("Files that it writes.", referred("source")), "optional": {"type": "boolean"},
        }))]},
        "stub": {"anyOf": [{"type": "null"}, referred("scalar"), answer, {"type": "array", "minItems": 1, "items": {"anyOf": [referred("scalar"), answer]}}]},
        "status": {"enum": ["success", "failure", "skipped"]},
        "expect": object("What has to come out.", &[], json!({
            "exit": exit, "failure": referred("text"), "outputs": values("By name."), "exports": values("By name."), "log": referred("text"),
            "files": map_of("By path in the work directory.", json!({"anyOf": [{"type": "null"}, referred("text")]})),
            "steps": map_of("By the names on the way to the step.", json!({"anyOf": [referred("status"), object("An expected step.", &[], json!({
                "status": referred("status"), "exit": exit, "inputs": values("By name."), "outputs": values("By name."), "exports": values("By name."), "env": values("By name."),
            }))]})),
            "calls": {"description": "The calls of all stubs, in order.", "type": "array", "items": referred("words")},
            "called": map_of("How often a fake or stub was used.", json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]})),
            "that": {"description": "Expressions that are true.", "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        })),
    })
}
