//! The first document: the face of a step (original.md A.2).

use super::described;
use super::keys::{Fields, Shape, is_identifier};
use super::reader::Reader;
use crate::diagnostic::Verdict;
use crate::document::yaml::{Node, boolean};
use crate::document::{Dialect, Input, Output, Outputs, Spec};
use crate::expression::nearest;
use crate::value::{Kind, Value};
use std::sync::Arc;

const FIRST_DOCUMENT: Shape = Shape { name: "the first document", keys: &["spec"], synonyms: &[] };

const SPEC: Shape = Shape {
    name: "`spec`",
    keys: &["inputs", "outputs"],
    synonyms: &[("type", "remove it: `exec:` or `run:` in the second document says what the step is")],
};

const INPUT: Shape = Shape {
    name: "an input",
    keys: &["type", "default", "sensitive", "description", "template"],
    synonyms: &[
        ("required", "an input without `default` is required"),
        ("value", "did you mean `default`?"),
        ("options", "the values of an input cannot be restricted"),
        ("regex", "the values of an input cannot be restricted"),
    ],
};

const OUTPUT: Shape = Shape {
    name: "an output",
    keys: &["type", "default", "sensitive", "description"],
    synonyms: &[("value", "the second document gives values: `outputs:` of a sequence, or the output file of an exec")],
};

/// What inputs and outputs have in common.
struct Declaration {
    kind: Kind,
    default: Option<Value>,
    sensitive: bool,
    description: Option<Arc<str>>,
}

impl<'t> Reader<'t> {
    /// `None` when it cannot be known what the step takes and gives.
    pub(super) fn spec(&mut self, root: &Node<'t>, is_alone: bool) -> Option<Spec> {
        let of_second = |(key, _): &&(Node<'t>, Node<'t>)| key.source_text().is_some_and(|key| matches!(key, "exec" | "run" | "steps"));
        if let Some((key, _)) = root.as_map().and_then(|entries| entries.iter().find(of_second)) {
            let second = key.source_text().unwrap_or_default();
            let hint = if is_alone {
                "a definition has two documents: put `{}` and a line `---` before it"
            } else {
                "the two documents are in the wrong order: `spec:` comes first"
            };
            let message = format!("field {second} not found in type schema.Spec: the first document holds nothing but `spec`");
            self.error_with_hint("documents-out-of-order", key, message, hint);
            return None;
        }
        if root.is_null() {
            let hint = "write `{}` when the step takes and gives nothing";
            self.warning("empty-spec", root, "the first document is empty: expected object, but got null", hint);
            return Some(Spec::default());
        }
        if root.as_map().is_none() {
            let message =
                format!("the first document is a map, not {}: cannot unmarshal {} into schema.Spec", root.kind_name(), root.yaml_name());
            self.error_with_hint("not-a-map", root, message, "write `{}` when the step takes and gives nothing");
            return None;
        }
        let fields = self.fields(root, &FIRST_DOCUMENT, Verdict::Error)?;
        let Some(spec) = fields.get("spec") else { return Some(Spec::default()) };
        let fields = self.fields(spec, &SPEC, Verdict::Warning)?;
        let inputs = fields.get("inputs").map_or(Some(Vec::new()), |node| self.inputs(node));
        let outputs = fields.get("outputs").map_or(Some(Outputs::default()), |node| self.outputs(node));
        Some(Spec { inputs: inputs?, outputs: outputs? })
    }

    fn inputs(&mut self, node: &Node<'t>) -> Option<Vec<(Arc<str>, Input)>> {
        let mut inputs = Vec::new();
        for (key, value) in self.declarations(node, "`inputs`", "input")? {
            let name = self.share(key.source_text().unwrap_or_default());
            let fields = self.fields(value, &INPUT, Verdict::Warning);
            let declaration = fields.as_ref().and_then(|fields| self.declaration(key, fields, "input"));
            let (Some(fields), Some(Declaration { kind, default, sensitive, description })) = (fields, declaration) else {
                self.broken_inputs.push(name);
                continue;
            };
            let template = self.is_template(&fields, kind);
            inputs.push((name, Input { kind, default, sensitive, description, template }));
        }
        Some(inputs)
    }

    fn outputs(&mut self, node: &Node<'t>) -> Option<Outputs> {
        if let Some(text) = node.source_text() {
            if text == "delegate" {
                return Some(Outputs::Delegate);
            }
            let message = format!("`outputs` is a map of outputs, or the word `delegate`, not `{text}`");
            match nearest(text, ["delegate"]) {
                Some(_) => self.error_with_hint("not-a-map", node, message, "did you mean `delegate`?"),
                None => self.error("not-a-map", node, message),
            }
            return None;
        }
        let mut outputs = Vec::new();
        for (key, value) in self.declarations(node, "`outputs`", "output")? {
            let Some(fields) = self.fields(value, &OUTPUT, Verdict::Warning) else { continue };
            let name = self.share(key.source_text().unwrap_or_default());
            let Some(Declaration { kind, default, sensitive, description }) = self.declaration(key, &fields, "output") else { continue };
            outputs.push((name, Output { kind, default, sensitive, description }));
        }
        Some(Outputs::Declared(outputs))
    }

    /// The entries of `inputs` or `outputs` whose names are names.
    fn declarations<'n>(&mut self, node: &'n Node<'t>, what: &str, one: &str) -> Option<Vec<(&'n Node<'t>, &'n Node<'t>)>> {
        let Some(entries) = node.as_map() else {
            self.error("not-a-map", node, format!("{what} is a map, not {}", node.kind_name()));
            return None;
        };
        let mut named = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match key.source_text() {
                Some(name) if is_identifier(name) => named.push((key, value)),
                Some(name) => {
                    self.expect_identifier(key, name, one);
                }
                None => self.error("not-a-text", key, format!("a key is a text, not {}", key.kind_name())),
            }
        }
        Some(named)
    }

    fn declaration(&mut self, key: &Node<'t>, fields: &Fields<'_, 't>, one: &str) -> Option<Declaration> {
        let kind = self.kind(key, fields, one);
        let default = self.default(fields, kind, one);
        let sensitive = fields.get("sensitive").is_some_and(|node| self.boolean(node, "`sensitive`"));
        let description = fields.get("description").and_then(|node| self.string(node, "`description`"));
        Some(Declaration { kind: kind?, default, sensitive, description })
    }

    fn kind(&mut self, key: &Node<'t>, fields: &Fields<'_, 't>, one: &str) -> Option<Kind> {
        const KINDS: [&str; 5] = ["string", "number", "boolean", "struct", "array"];
        let Some(node) = fields.get("type") else {
            let message = format!("missing {one} type: missing properties: 'type'");
            let hint = "add `type: string`, or `number`, `boolean`, `struct`, `array`";
            self.error_with_hint("missing-type", key, message, hint);
            return None;
        };
        let name = self.string(node, "`type`")?;
        if let Some(kind) = Kind::declared(&name) {
            return Some(kind);
        }
        let meant = match &*name {
            "int" | "integer" | "float" | "double" => Some("number"),
            "bool" => Some("boolean"),
            "str" | "text" | "raw_string" => Some("string"),
            "map" | "object" | "dict" | "hash" => Some("struct"),
            "list" | "sequence" => Some("array"),
            _ => nearest(&name, KINDS),
        };
        let message = format!("`{name}` is no type: value must be one of {}", KINDS.map(|kind| format!("\"{kind}\"")).join(", "));
        match (meant, &*name) {
            (_, "step_result") => self.error_with_hint("unknown-type", node, message, "write `outputs: delegate` instead"),
            (Some(meant), _) => self.error_with_hint("unknown-type", node, message, format!("did you mean `{meant}`?")),
            (None, _) => self.error("unknown-type", node, message),
        }
        None
    }

    fn default(&mut self, fields: &Fields<'_, 't>, kind: Option<Kind>, one: &str) -> Option<Value> {
        let (key, node) = fields.entry("default")?;
        if node.is_null() {
            self.warning("null-default", key, "a default of null is no default", "remove it, or give a value of the type");
            return None;
        }
        let value = self.value(node);
        if let Some(kind) = kind
            && kind != value.kind()
        {
            let message = format!("{one} type \"{kind}\" and default value type \"{}\" must match", value.kind());
            let is_scalar = node.as_list().is_none() && node.as_map().is_none();
            if kind == Kind::String && is_scalar {
                let text = node.source_text().unwrap_or_default();
                self.error_with_hint("default-of-other-type", node, message, format!("quote it: `\"{text}\"`"));
            } else {
                self.error("default-of-other-type", node, message);
            }
        } else if holds_expression(&value) {
            self.warning(
                "default-with-expression",
                node,
                "a default is never expanded: `${{` stays as it is",
                "give the value where the step is called",
            );
        }
        Some(value)
    }

    fn is_template(&mut self, fields: &Fields<'_, 't>, kind: Kind) -> bool {
        let Some((key, node)) = fields.entry("template") else { return false };
        let is_template = self.boolean(node, "`template`");
        if is_template && self.dialect == Dialect::Steps {
            let hint = "rename the file to `func.yml`, or remove the key";
            self.warning("template-in-steps-dialect", key, "`template` is ignored: it belongs to the functions dialect", hint);
            return false;
        }
        if is_template && !matches!(kind, Kind::Array | Kind::Struct) {
            let message = format!("an input with `template: true` is an array or a struct, not {}", described(kind));
            self.error("template-of-scalar", key, message);
        }
        is_template
    }

    fn boolean(&mut self, node: &Node<'t>, what: &str) -> bool {
        let boolean = node.source_text().filter(|_| !node.is_null()).and_then(boolean);
        boolean.unwrap_or_else(|| {
            let message = format!("{what} is true or false: cannot unmarshal {} into bool", node.yaml_name());
            self.error("not-a-boolean", node, message);
            false
        })
    }
}

fn holds_expression(value: &Value) -> bool {
    match value.data() {
        crate::value::Data::String(text) => text.contains("${{"),
        crate::value::Data::Array(items) => items.iter().any(holds_expression),
        crate::value::Data::Object(object) => object.values().any(holds_expression),
        _ => false,
    }
}
