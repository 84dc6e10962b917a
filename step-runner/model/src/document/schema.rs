//! JSON Schemas of the files (draft 2020-12), strict: a key that reading would only warn about is refused. For editors.
//!
//! Source: original.md A.1 to A.5 and B.1; the two dialects and a job's `run` differ in a few keys, so the schemas are put together here.

mod builtins;

pub use builtins::add_builtins;

use super::Dialect;
use serde_json::{Value as Json, json};

const NAME: &str = "^[a-zA-Z_][a-zA-Z0-9_]*$";

/// A name, or a text with an expression.
const NAME_OR_EXPRESSION: &str = r"^([a-zA-Z_][a-zA-Z0-9_]*|.*\$\{\{[\s\S]*)$";

/// Every document of a definition file: `spec`, then the definition. Editors hold each document of a file against the whole schema.
pub fn definition_file(dialect: Dialect) -> Json {
    let (file, title) = match dialect {
        Dialect::Steps => ("step", "A document of step.yml"),
        Dialect::Functions => ("func", "A document of func.yml"),
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:step-runner:{file}"),
        "title": title,
        "description": "A definition has two documents: what the step takes and gives, a line `---`, and what it does.",
        "anyOf": [{"$ref": "#/$defs/interface"}, {"$ref": "#/$defs/exec"}, {"$ref": "#/$defs/sequence"}],
        "$defs": definitions(Of::File(dialect)),
    })
}

/// The list behind `run:` of a job.
pub fn job_run() -> Json {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:step-runner:job-run",
        "title": "The run list of a job",
        "description": "Steps that run one after the other. A job has either `run` or `script`.",
        "type": "array",
        "items": {"$ref": "#/$defs/item"},
        "$defs": definitions(Of::Job),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    File(Dialect),
    Job,
}

impl Of {
    fn has_functions(self) -> bool {
        self != Self::File(Dialect::Steps)
    }
}

fn definitions(of: Of) -> Json {
    let mut definitions = json!({
        "item": item(of),
        "reference": reference(of),
        "env": {
            "description": "Environment variables. Values may hold expressions.",
            "type": "object",
            "propertyNames": {"pattern": name_pattern(of)},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
        "inputs": {
            "description": "Values for the inputs that the step declares. Texts may hold expressions.",
            "type": "object",
            "propertyNames": {"pattern": name_pattern(of)},
        },
    });
    if let Of::File(dialect) = of {
        definitions["interface"] = interface(dialect);
        definitions["exec"] = exec();
        definitions["sequence"] = sequence();
    }
    definitions
}

fn name_pattern(of: Of) -> &'static str {
    if of.has_functions() { NAME_OR_EXPRESSION } else { NAME }
}

/// An object with these properties and no others.
fn object(description: &str, required: &[&str], properties: Json) -> Json {
    json!({"description": description, "type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

fn interface(dialect: Dialect) -> Json {
    let outputs = json!({
        "description": "What the step gives: a map of outputs, or `delegate` to give what one of its steps gives.",
        "oneOf": [{"const": "delegate"}, declarations(declaration("An output.", dialect, &[]))],
    });
    let inputs = json!({
        "description": "What the step takes.",
        "oneOf": [{"type": "null"}, declarations(declaration("An input. With a default it may be left out.", dialect, &["template"]))],
    });
    let spec = json!({"description": "The face of the step.", "oneOf": [
        {"type": "null"},
        object("What the step takes and gives.", &[], json!({"inputs": inputs, "outputs": outputs})),
    ]});
    object("The first document: what the step takes and gives. `{}` for nothing.", &[], json!({"spec": spec}))
}

fn declarations(one: Json) -> Json {
    json!({"type": "object", "propertyNames": {"pattern": NAME}, "additionalProperties": one})
}

/// The kind of a default is that of its type.
fn declaration(description: &str, dialect: Dialect, more: &[&str]) -> Json {
    let kinds = [("string", "string"), ("number", "number"), ("boolean", "boolean"), ("struct", "object"), ("array", "array")];
    let mut properties = json!({
        "type": {"description": "The type of the value.", "enum": kinds.map(|(kind, _)| kind)},
        "default": {"description": "The value when none is given. It is taken as it is: expressions in it are not evaluated."},
        "sensitive": {"description": "The value is a secret, and masked in everything written for people.", "type": "boolean"},
    });
    if dialect == Dialect::Functions {
        properties["description"] = json!({"description": "What it is for, for those who call the step.", "type": "string"});
        if more.contains(&"template") {
            let text = "The value is handed over unexpanded, to be evaluated in another environment. For arrays and structs.";
            properties["template"] = json!({"description": text, "type": "boolean"});
        }
    }
    let mut declaration = object(description, &["type"], properties);
    let agree = |(kind, json_type): (&str, &str)| {
        json!({
            "if": {"properties": {"type": {"const": kind}}},
            "then": {"properties": {"default": {"type": json_type}}},
        })
    };
    declaration["allOf"] = kinds.map(agree).to_vec().into();
    declaration
}

fn exec() -> Json {
    let exec = object(
        "A command that is executed as it stands; no shell is involved.",
        &["command"],
        json!({
            "command": {
                "description": "The program and its arguments. Each may hold expressions.",
                "type": "array",
                "minItems": 1,
                "items": {"type": ["string", "number", "boolean"]},
            },
            "work_dir": {"description": "Where the command runs; without it, the work directory of the job.", "type": "string"},
        }),
    );
    object("The second document of a step that executes a command.", &["exec"], json!({"env": {"$ref": "#/$defs/env"}, "exec": exec}))
}

fn sequence() -> Json {
    object(
        "The second document of a step that runs other steps.",
        &["run"],
        json!({
            "env": {"$ref": "#/$defs/env"},
            "run": {
                "description": "Steps that run one after the other; the first failure ends the sequence.",
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/item"},
            },
            "outputs": {
                "description": "The outputs of the sequence, evaluated after its last step: `${{ steps.NAME.outputs.KEY }}`.",
                "type": "object",
                "propertyNames": {"pattern": NAME},
            },
            "delegate": {"description": "The step whose outputs become those of the sequence. With `spec: {outputs: delegate}`.", "type": "string"},
        }),
    )
}

fn item(of: Of) -> Json {
    let name = json!({"description": "How later steps refer to this one: `steps.NAME.outputs`.", "type": "string", "pattern": NAME});
    let env = json!({"$ref": "#/$defs/env"});
    let inputs = json!({"$ref": "#/$defs/inputs"});
    let reference = json!({"$ref": "#/$defs/reference"});
    let called = |key: &str, description: &str| {
        object(description, &["name", key], json!({"name": name, "env": env, "inputs": inputs, key: reference}))
    };
    let mut shapes = vec![called("step", "Runs a step that is defined elsewhere.")];
    if of.has_functions() {
        shapes.insert(0, called("func", "Runs a function that is defined elsewhere."));
    }
    let text = json!({"description": "A text for the shell. Expressions are evaluated first; values are better passed through `env`.", "type": "string", "minLength": 1});
    shapes.push(object("Runs a script in a shell.", &["name", "script"], json!({"name": name, "env": env, "script": text})));
    if of != Of::Job {
        let action = json!({"description": "Owner, repository and version: `owner/name@v1`.", "type": "string", "minLength": 1});
        let properties = json!({"name": name, "env": env, "inputs": inputs, "action": action});
        shapes.push(object("Runs a GitHub action.", &["name", "action"], properties));
    }
    json!({"oneOf": shapes})
}

fn reference(of: Of) -> Json {
    let text = |description: &str| json!({"description": description, "type": "string", "minLength": 1});
    let dir = text("The directory of the definition.");
    let file = text("The definition file; without it, `func.yml` or `step.yml`.");
    let git = object(
        "A directory in a Git repository.",
        &["url", "rev"],
        json!({"url": text("The repository. May hold an expression."), "rev": text("A branch, a tag or a commit."), "dir": dir, "file": file}),
    );
    let oci = object(
        "An image in a registry.",
        &["registry", "repository", "tag"],
        json!({
            "registry": text("The host of the registry."),
            "repository": text("The repository in it."),
            "tag": text("A tag, or a digest: `sha256:...`."),
            "dir": dir,
            "file": file,
        }),
    );
    let short = if of.has_functions() {
        "A directory (`./greet`), an image (`registry.example/greet:1`), a Git revision (`host/project@v1`) or `builtin://NAME`."
    } else {
        "A directory (`./greet`), a Git revision (`host/project@v1`) or `dist://NAME`."
    };
    json!({"description": "Where the definition of a step is found.", "oneOf": [
        text(short),
        object("Where the definition of a step is found.", &["git"], json!({"git": git})),
        object("Where the definition of a step is found.", &["oci"], json!({"oci": oci})),
    ]})
}
