//! The second document: what a step does (original.md A.3).

use super::keys::{Fields, Shape};
use super::reader::Reader;
use crate::diagnostic::Verdict;
use crate::document::yaml::{Content, Node};
use crate::document::{Body, Definition, Exec, Sequence, Spec, ValueTemplate};
use std::sync::Arc;

const DEFINITION: Shape = Shape {
    name: "a definition",
    keys: &["env", "exec", "run", "outputs", "delegate", "name", "step", "func", "script", "action", "inputs"],
    synonyms: &[
        ("steps", "`steps` is now `run`"),
        ("type", "remove it: `exec` or `run` says what the step is"),
        ("spec", "`spec` stands in the first document"),
        ("command", "did you mean `exec: {command: [...]}`?"),
        ("work_dir", "`work_dir` stands inside `exec`"),
        ("variables", "did you mean `env`?"),
        ("environment", "did you mean `env`?"),
    ],
};

const EXEC: Shape = Shape {
    name: "`exec`",
    keys: &["command", "work_dir"],
    synonyms: &[
        ("args", "put the arguments into `command`"),
        ("working_directory", "did you mean `work_dir`?"),
        ("cwd", "did you mean `work_dir`?"),
        ("dir", "did you mean `work_dir`?"),
        ("env", "`env` stands beside `exec`"),
    ],
};

impl<'t> Reader<'t> {
    pub(super) fn definition(&mut self, mut root: Node<'t>, spec: Option<&Spec>) -> Option<Definition> {
        let items = root.get_mut("run").and_then(Node::take_items);
        let root = &root;
        if root.is_null() {
            let message = "the second document is empty: at least one of `script`, `action`, `run` or `exec` must be provided";
            self.error_with_hint("missing-kind", root, message, "add `exec:` or `run:`");
            return None;
        }
        let fields = self.fields(root, &DEFINITION, Verdict::Warning)?;
        let exec = fields.get("exec");
        let run = fields.get("run").filter(|_| items.as_ref().is_none_or(|items| !items.is_empty()));
        let names = items.as_ref().map_or_else(Vec::new, |items| self.names_of(items));
        self.around.set_steps(names);
        let env = fields.get("env").map_or_else(Vec::new, |node| self.env(node));
        let body = match (exec, run) {
            (Some(exec), None) => {
                self.refuse_beside(&fields, "exec", &["outputs", "delegate"]);
                self.exec(exec).map(Body::Exec)
            }
            (None, Some(run)) => {
                self.refuse_beside(&fields, "run", &[]);
                let sequence = self.sequence(run, items, &fields);
                if let Some(spec) = spec {
                    self.compare_outputs(&fields, run, &sequence, spec);
                }
                Some(Body::Sequence(sequence))
            }
            (Some(exec), Some(run)) => {
                let (at, _) = fields.entry("run")?;
                let message = "only one of `script`, `action`, `run` or `exec` may be provided. have 2";
                self.error_with_hint("too-many-kinds", at, message, "a step executes a command or runs other steps; make two of it");
                self.exec(exec);
                self.sequence(run, items, &fields);
                None
            }
            (None, None) => {
                self.report_missing_kind(root, &fields);
                None
            }
        };
        Some(Definition { env, body: body? })
    }

    /// Keys that belong to an item of `run`, or to the other shape.
    fn refuse_beside(&mut self, fields: &Fields<'_, 't>, shape: &str, more: &[&str]) {
        for key in ["name", "step", "func", "script", "action", "inputs"].iter().chain(more) {
            let Some((at, _)) = fields.entry(key).filter(|(_, value)| !value.is_null()) else { continue };
            let hint = match *key {
                "outputs" | "delegate" => {
                    "outputs of an exec are declared in the first document, and written to `${{ output_file }}` by the program"
                }
                "inputs" => "inputs are declared in the first document, under `spec`",
                "name" => "a step gets its name where it is called",
                _ => "it belongs to an item of `run`",
            };
            let message = format!("`{key}` is not allowed beside `{shape}`: additionalProperties '{key}' not allowed");
            self.error_with_hint("key-not-allowed", at, message, hint);
        }
    }

    fn report_missing_kind(&mut self, root: &Node<'t>, fields: &Fields<'_, 't>) {
        let message = "at least one of `script`, `action`, `run` or `exec` must be provided";
        let item = ["script", "action", "step", "func"].into_iter().find(|key| fields.get(key).is_some());
        let (at, hint) = match (item, fields.entry("run")) {
            (_, Some((key, _))) => (key, "`run` is empty: add a step".to_owned()),
            (Some(item), None) => {
                let hint = format!("a definition is `exec` or `run`: put `{item}` into an item of `run`");
                (fields.entry(item).map_or(root, |(key, _)| key), hint)
            }
            (None, None) => (root, "add `exec:` or `run:`".to_owned()),
        };
        let what = if item.is_some() { format!("{message} in a definition") } else { message.to_owned() };
        self.error_with_hint("missing-kind", at, what, hint);
    }

    fn exec(&mut self, node: &Node<'t>) -> Option<Exec> {
        let fields = self.fields(node, &EXEC, Verdict::Warning)?;
        let work_dir = fields.get("work_dir").filter(|node| node.source_text() != Some(""));
        let work_dir = work_dir.map(|node| self.template(node, "`work_dir`"));
        let Some(command) = fields.get("command") else {
            self.error_with_hint(
                "missing-command",
                node,
                "`exec` has no command: missing properties: 'command'",
                "add `command: [program, argument]`",
            );
            return None;
        };
        let items = match command.content() {
            Content::List(items) if !items.is_empty() => items,
            Content::List(_) => {
                self.error_with_hint(
                    "empty-command",
                    command,
                    "`command` is empty: minimum 1 items required",
                    "its first item is the program",
                );
                return None;
            }
            _ => {
                let message =
                    format!("`command` is a list, not {}: cannot unmarshal {} into []string", command.kind_name(), command.yaml_name());
                let hint = "write `[program, argument]`; no shell is involved: for a command line use `[sh, -c, \"...\"]`";
                self.error_with_hint("not-a-list", command, message, hint);
                return None;
            }
        };
        let templates: Vec<_> = items.iter().map(|item| self.template(item, "an item of `command`")).collect();
        let work_dir = match work_dir {
            None => None,
            Some(template) => Some(template?),
        };
        Some(Exec { command: templates.into_iter().collect::<Option<_>>()?, work_dir })
    }

    fn sequence(&mut self, run: &Node<'t>, items: Option<Vec<Node<'t>>>, fields: &Fields<'_, 't>) -> Sequence {
        let mut steps = Vec::with_capacity(items.as_ref().map_or(0, Vec::len));
        self.steps(run, items, |step| steps.push(Arc::new(step)));
        let outputs = fields.get("outputs").map_or_else(Vec::new, |node| self.sequence_outputs(node));
        let delegate = fields.get("delegate").and_then(|node| self.string(node, "`delegate`")).filter(|name| !name.is_empty());
        Sequence { steps, outputs, delegate }
    }

    pub(super) fn sequence_outputs(&mut self, node: &Node<'t>) -> Vec<(Arc<str>, ValueTemplate)> {
        let Some(entries) = node.as_map() else {
            let message = format!("`outputs` is a map, not {}: cannot unmarshal {} into object", node.kind_name(), node.yaml_name());
            self.error("not-a-map", node, message);
            return Vec::new();
        };
        let mut outputs = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(name) = self.string(key, "a key") else { continue };
            if self.expect_identifier(key, &name, "the output") {
                outputs.push((name, self.value_template(value)));
            }
        }
        outputs
    }
}
