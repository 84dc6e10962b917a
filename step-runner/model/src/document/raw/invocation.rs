//! One item of `run`: an invocation (original.md A.3, A.4).

use super::keys::{Fields, Shape, listed};
use super::reader::{Reader, Scrutiny};
use crate::diagnostic::{Problem, Verdict};
use crate::document::lint;
use crate::document::yaml::{Content, Node};
use crate::document::{Action, Dialect, Step, ValueTemplate};
use crate::expression::Template;
use crate::reference::{GitReference, StepReference};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What `action:` calls (original.md A.4). Whoever runs steps may put another in its place.
pub const ACTION_RUNNER_URL: &str = "https://gitlab.com/components/action-runner";

/// The revision of [`ACTION_RUNNER_URL`].
pub const ACTION_RUNNER_REVISION: &str = "main";

const ITEM: Shape = Shape {
    name: "a step of `run`",
    keys: &["name", "step", "func", "script", "action", "env", "inputs", "exec", "run", "outputs", "delegate"],
    synonyms: &[
        ("uses", "did you mean `func` (or `step`)?"),
        ("with", "did you mean `inputs`?"),
        ("variables", "did you mean `env`?"),
        ("environment", "did you mean `env`?"),
        ("steps", "nested steps stand in a definition file of their own, which an item names with `func: ./dir`"),
        ("type", "remove it"),
        ("image", "a step runs in a container with `func: builtin://docker`"),
        ("if", "steps have no conditions"),
        ("when", "steps have no conditions"),
        ("id", "did you mean `name`?"),
    ],
};

/// Keys of which an item has exactly one.
const KINDS: [&str; 6] = ["step", "func", "script", "action", "exec", "run"];

impl<'t> Reader<'t> {
    /// The list of a `run`, whose items were taken out of it: each is dropped when it was read, so that a long list is never there twice.
    pub(super) fn steps(&mut self, node: &Node<'t>, items: Option<Vec<Node<'t>>>, mut keep: impl FnMut(Step)) {
        let Some(items) = items else {
            let message =
                format!("`run` is a list of steps, not {}: cannot unmarshal {} into []schema.Step", node.kind_name(), node.yaml_name());
            match node.as_map() {
                Some(_) => self.error_with_hint("not-a-list", node, message, "begin each step with `- `"),
                None => self.error("not-a-list", node, message),
            }
            return;
        };
        let names = self.names_of(&items);
        self.around.set_steps(names);
        self.around.is_in_step = true;
        let mut first_lines: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (number, item) in items.into_iter().enumerate() {
            let item = &item;
            self.around.run_before = number;
            let Some(fields) = self.item(item) else { continue };
            let name = self.name(item, &fields);
            if let Some((name, node)) = name.as_ref().zip(fields.get("name")) {
                let line = self.line(node.span);
                if let Some(first) = first_lines.get(name) {
                    let message = format!("another step is called `{name}`, in line {first}");
                    self.report_duplicate_name(node, message);
                }
                first_lines.insert(Arc::clone(name), line);
            }
            if let Some(step) = self.step(item, &fields, name.unwrap_or_else(|| "".into())) {
                keep(step);
            }
        }
        self.around.run_before = self.around.steps().len();
        self.around.is_in_step = false;
    }

    /// Also of items that have other problems, so that those who read from them are spared.
    pub(super) fn names_of(&mut self, items: &[Node<'t>]) -> Vec<Arc<str>> {
        items.iter().map(|item| self.share(item.get("name").and_then(Node::source_text).unwrap_or_default())).collect()
    }

    /// One invocation that stands alone: it needs no name.
    pub(super) fn unnamed_step(&mut self, node: &Node<'t>) -> Option<Step> {
        let fields = self.item(node)?;
        let name = match fields.get("name") {
            Some(_) => self.name(node, &fields)?,
            None => "".into(),
        };
        self.step(node, &fields, name)
    }

    fn item<'n>(&mut self, node: &'n Node<'t>) -> Option<Fields<'n, 't>> {
        if node.is_null() {
            self.error("missing-reference", node, "the step is empty: missing properties: 'name', 'step'");
            return None;
        }
        self.fields(node, &ITEM, Verdict::Warning)
    }

    fn name(&mut self, item: &Node<'t>, fields: &Fields<'_, 't>) -> Option<Arc<str>> {
        let Some(node) = fields.get("name").filter(|node| node.source_text() != Some("")) else {
            let message = format!("the step in line {} has no name: missing properties: 'name'", self.line(item.span));
            self.error_with_hint("missing-name", first_key(item), message, "add `name: ...`");
            return None;
        };
        let name = self.string(node, "`name`")?;
        self.expect_identifier(node, &name, "the step name").then_some(name)
    }

    fn report_duplicate_name(&mut self, node: &Node<'t>, message: String) {
        let hint = "`steps.NAME` and `delegate` find only the last one; give each step a name of its own";
        self.odd("duplicate-name", node, message, Some(hint.into()));
    }

    fn step(&mut self, item: &Node<'t>, fields: &Fields<'_, 't>, name: Arc<str>) -> Option<Step> {
        for key in ["outputs", "delegate"] {
            if let Some((at, _)) = fields.entry(key).filter(|(_, value)| !value.is_null()) {
                let message = format!("`{key}` is not allowed in a step of `run`");
                self.error_with_hint("key-not-allowed", at, message, "it belongs to the definition of a step, beside its `run`");
            }
        }
        let action = self.action(item, fields);
        let env = fields.get("env").map_or_else(Vec::new, |node| self.env(node));
        let inputs = fields.get("inputs").map_or_else(Vec::new, |node| self.step_inputs(node, action.as_ref()));
        let (action, inputs) = match action? {
            Chosen::Action(action) => (action, inputs),
            Chosen::Github(text) => github_action(text, inputs),
        };
        Some(Step { env, inputs, place: Some(self.place(item.span)), ..Step::new(name, action) })
    }

    /// What the item runs. All that is wrong with the choice is reported.
    fn action(&mut self, item: &Node<'t>, fields: &Fields<'_, 't>) -> Option<Chosen> {
        let has = |key: &str| match fields.entry(key) {
            Some((_, value)) if matches!(key, "exec" | "run") => !value.is_null(),
            // `step:` with nothing behind it was meant, and is an error of its own
            Some((_, value)) => !value.is_null() || matches!(key, "step" | "func"),
            None => false,
        };
        let chosen: Vec<&str> = KINDS.into_iter().filter(|key| has(key)).collect();
        for key in ["exec", "run"].into_iter().filter(|key| chosen.contains(key)) {
            let (at, _) = fields.entry(key)?;
            let message = format!("compiling reference: unsupported type: <nil>: a step of `run` cannot hold `{key}`");
            self.error_with_hint(
                "key-not-allowed",
                at,
                message,
                "put it into a definition file of its own, and name that with `func: ./dir`",
            );
        }
        match chosen.as_slice() {
            [] => {
                let message = "the step runs nothing: missing properties: 'step'";
                self.error_with_hint("missing-reference", first_key(item), message, "add `func`, `step`, `script` or `action`");
                None
            }
            ["step" | "func", rest @ ..] if rest.iter().all(|key| matches!(*key, "exec" | "run")) => {
                let (key, node) = fields.entry(chosen[0])?;
                if node.is_null() {
                    let message = format!("`{}` names nothing: the reference is empty", chosen[0]);
                    self.error_with_hint(
                        "reference",
                        key,
                        message,
                        "write a directory (`./greet`), a Git revision (`host/project@v1`) or `builtin://script`",
                    );
                    return None;
                }
                self.reference(node).map(|reference| Chosen::Action(Action::Reference(reference)))
            }
            ["step", "func", ..] => {
                let (at, _) = fields.entry("func")?;
                self.error_with_hint("too-many-kinds", at, "only one of `step` or `func` may be provided", "remove `step`, the older name");
                None
            }
            ["script", rest @ ..] | ["step" | "func", "script", rest @ ..] => {
                let _ = rest;
                self.script(fields, &chosen)
            }
            ["action", ..] | ["step" | "func", "action", ..] => {
                let (at, node) = fields.entry("action")?;
                if let [first, "action", ..] = chosen.as_slice() {
                    self.error("too-many-kinds", at, format!("the `action` keyword cannot be used with the `{first}` keyword"));
                    return None;
                }
                if node.source_text() == Some("") {
                    self.error("empty-action", node, "`action` is empty: length must be >= 1");
                    return None;
                }
                Some(Chosen::Github(self.template(node, "`action`")?))
            }
            _ => None,
        }
    }

    fn script(&mut self, fields: &Fields<'_, 't>, chosen: &[&str]) -> Option<Chosen> {
        let (at, node) = fields.entry("script")?;
        let mut others: Vec<&str> = chosen.iter().copied().filter(|key| !matches!(*key, "script" | "exec" | "run")).collect();
        others.extend(fields.get("inputs").map(|_| "inputs"));
        if !others.is_empty() {
            let message = format!("the `script` keyword cannot be used with the {} keyword", listed(&others));
            let hint = if others == ["inputs"] { "a script takes values through `env`" } else { "make two steps of it" };
            self.error_with_hint("too-many-kinds", at, message, hint);
            return None;
        }
        if let Content::List(_) = node.content() {
            let message = format!("`script` is a text, not a list: cannot unmarshal {} into string", node.yaml_name());
            self.error_with_hint("not-a-text", node, message, "write the lines as one block: `script: |`");
            return None;
        }
        if node.source_text() == Some("") {
            self.error("empty-script", node, "`script` is empty: length must be >= 1");
            return None;
        }
        let script = self.template(node, "`script`")?;
        if let Some(finding) = lint::injected(&script) {
            let place = self.place_within(node, script.source(), finding.span);
            self.report(Problem::warning(finding.code, finding.message, Some(place)).with_hint(finding.hint));
        }
        Some(Chosen::Action(Action::Script(script)))
    }

    /// Names and texts, both as the dialect has it.
    pub(super) fn env(&mut self, node: &Node<'t>) -> Vec<(Template, Template)> {
        let named = self.named(node, "`env`", "the variable");
        let mut env = Vec::with_capacity(named.len());
        for (key, value) in named {
            if let Some(value) = self.template(value, "a variable of `env`") {
                env.push((key, value));
            }
        }
        env
    }

    fn step_inputs(&mut self, node: &Node<'t>, action: Option<&Chosen>) -> Vec<(Template, ValueTemplate)> {
        let named = self.named(node, "`inputs`", "the input");
        let mut inputs = Vec::with_capacity(named.len());
        for (key, value) in named {
            self.scrutiny = self.scrutiny_of(action, key.source(), value);
            let value = self.value_template(value);
            self.scrutiny = Scrutiny::Reported;
            inputs.push((key, value));
        }
        inputs
    }

    /// Whose names the expressions of an input read: ours, or those of the environment that it is handed to.
    fn scrutiny_of(&mut self, action: Option<&Chosen>, input: &str, value: &Node<'t>) -> Scrutiny {
        let Some(Chosen::Action(Action::Reference(reference))) = action else { return Scrutiny::Reported };
        let may_be_template = match reference {
            StepReference::Dist { .. } => false,
            StepReference::Builtin { name } => !matches!(&**name, "script" | "script_legacy"),
            _ => self.dialect == Dialect::Functions,
        };
        match value.content() {
            Content::List(_) | Content::Map(_) if may_be_template => {
                Scrutiny::UnlessTemplate { step: self.around.run_before, input: self.share(input) }
            }
            _ => Scrutiny::Reported,
        }
    }

    /// The entries of a map whose keys are names, or hold expressions where that is allowed.
    pub(super) fn named<'n>(&mut self, node: &'n Node<'t>, what: &str, one: &str) -> Vec<(Template, &'n Node<'t>)> {
        let Some(entries) = node.as_map() else {
            let message = format!("{what} is a map, not {}: cannot unmarshal {} into object", node.kind_name(), node.yaml_name());
            self.error("not-a-map", node, message);
            return Vec::new();
        };
        let mut named = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(name) = self.string(key, "a key") else { continue };
            let is_expression = self.dialect == Dialect::Functions && name.contains("${{");
            if is_expression || self.expect_identifier(key, &name, one) {
                named.push((self.key_template(name, key), value));
            }
        }
        named
    }
}

/// What an item runs, before its inputs are known.
enum Chosen {
    Action(Action),
    /// `action:` of GitHub.
    Github(Template),
}

/// A GitHub action is an input of the step that runs it, and so are its own inputs.
fn github_action(action: Template, inputs: Vec<(Template, ValueTemplate)>) -> (Action, Vec<(Template, ValueTemplate)>) {
    let runner =
        GitReference { url: Template::literal(ACTION_RUNNER_URL), revision: ACTION_RUNNER_REVISION.into(), path: Vec::new(), file: None };
    let inputs =
        vec![(Template::literal("action"), ValueTemplate::Text(action)), (Template::literal("inputs"), ValueTemplate::Object(inputs))];
    (Action::Reference(StepReference::Git(Box::new(runner))), inputs)
}

/// Where something is missing, its first line is what is shown.
fn first_key<'n, 't>(item: &'n Node<'t>) -> &'n Node<'t> {
    item.as_map().and_then(|entries| entries.first()).map_or(item, |(key, _)| key)
}
