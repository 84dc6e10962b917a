//! Documents as text, as the original writes them: indented by four, struct keys in alphabetical order, empty keys left out.
//!
//! Source: original.md A.1 (`WriteSteps`, Go's yaml.v3). A document that was written so is read and written again byte for byte.

mod emit;

use super::raw::{ACTION_RUNNER_REVISION, ACTION_RUNNER_URL};
use super::{Action, Body, Definition, Dialect, Input, Outputs, Spec, Step, StepDocument, ValueTemplate};
use crate::expression::Template;
use crate::reference::{GitReference, LocalReference, OciReference, StepReference};
use crate::value::{Data, Kind, Value};
use emit::{Tree, emit};
use std::sync::Arc;

/// Both documents of a definition.
pub fn to_yaml(document: &StepDocument) -> String {
    let mut text = emit(&spec(&document.spec));
    text.push_str("---\n");
    text.push_str(&emit(&definition(&document.definition, document.dialect)));
    text
}

/// What a run request carries: no interface, and a list of steps.
pub fn steps_to_yaml<'s>(steps: impl IntoIterator<Item = &'s Step>, dialect: Dialect) -> String {
    let run = Tree::List(steps.into_iter().map(|one| step(one, dialect)).collect());
    format!("{{}}\n---\n{}", emit(&Tree::Map(vec![("run".into(), run)])))
}

/// The inputs of a step, under the key `inputs`.
pub(crate) fn inputs_to_yaml(step: &Step) -> String {
    let inputs = step.inputs.iter().map(|(name, value)| (name.source().to_owned(), value_template(value)));
    emit(&Tree::Map(vec![("inputs".into(), Tree::Map(inputs.collect()))]))
}

fn spec(spec: &Spec) -> Tree {
    let mut fields = Fields::default();
    fields.map("inputs", spec.inputs.iter().map(|(name, input)| (name.to_string(), declaration(input.into()))));
    match &spec.outputs {
        Outputs::Delegate => fields.text("outputs", "delegate"),
        Outputs::Declared(outputs) => {
            let declared = |output: &super::Output| {
                declaration(Declared {
                    kind: output.kind,
                    default: output.default.as_ref(),
                    sensitive: output.sensitive,
                    description: output.description.as_deref(),
                    template: false,
                })
            };
            fields.map("outputs", outputs.iter().map(|(name, output)| (name.to_string(), declared(output))));
        }
    }
    if fields.0.is_empty() { Tree::Map(Vec::new()) } else { Tree::Map(vec![("spec".into(), Tree::Map(fields.0))]) }
}

struct Declared<'d> {
    kind: Kind,
    default: Option<&'d Value>,
    sensitive: bool,
    description: Option<&'d str>,
    template: bool,
}

impl<'d> From<&'d Input> for Declared<'d> {
    fn from(input: &'d Input) -> Self {
        let Input { kind, default, sensitive, description, template } = input;
        Self { kind: *kind, default: default.as_ref(), sensitive: *sensitive, description: description.as_deref(), template: *template }
    }
}

fn declaration(declared: Declared<'_>) -> Tree {
    let mut fields = Fields::default();
    if let Some(default) = declared.default {
        fields.put("default", value(default));
    }
    if let Some(description) = declared.description {
        fields.text("description", description);
    }
    for (key, is_set) in [("sensitive", declared.sensitive), ("template", declared.template)] {
        if is_set {
            fields.put(key, Tree::Plain("true".into()));
        }
    }
    fields.text("type", declared.kind.name());
    Tree::Map(fields.0)
}

fn definition(definition: &Definition, dialect: Dialect) -> Tree {
    let mut fields = Fields::default();
    match &definition.body {
        Body::Exec(exec) => {
            fields.map("env", definition.env.iter().map(text_entry));
            let mut inner = Fields::default();
            inner.put("command", Tree::List(exec.command.iter().map(text).collect()));
            if let Some(work_dir) = &exec.work_dir {
                inner.put("work_dir", text(work_dir));
            }
            fields.put("exec", Tree::Map(inner.0));
        }
        Body::Sequence(sequence) => {
            if let Some(delegate) = &sequence.delegate {
                fields.text("delegate", delegate);
            }
            fields.map("env", definition.env.iter().map(text_entry));
            fields.map("outputs", sequence.outputs.iter().map(|(name, output)| (name.to_string(), value_template(output))));
            fields.put("run", Tree::List(sequence.steps.iter().map(|one| step(one, dialect)).collect()));
        }
    }
    Tree::Map(fields.0)
}

fn step(step: &Step, dialect: Dialect) -> Tree {
    let mut fields = Fields::default();
    let action = as_github_action(step);
    if let Some((action, _)) = action {
        fields.put("action", text(action));
    }
    fields.map("env", step.env.iter().map(text_entry));
    match (&step.action, action) {
        (_, Some((_, inputs))) => {
            fields.map("inputs", inputs.iter().map(|(name, value)| (name.source().to_owned(), value_template(value))))
        }
        (Action::ScriptLegacy(script), _) => {
            let mut inputs = Fields::default();
            for (key, is_set) in [("debug_trace", script.debug_trace), ("echo", script.echo)] {
                if is_set {
                    inputs.put(key, Tree::Plain("true".into()));
                }
            }
            inputs.put("script", Tree::List(script.lines.iter().map(|line| Tree::Text(line.to_string())).collect()));
            fields.put("inputs", Tree::Map(inputs.0));
        }
        _ => fields.map("inputs", step.inputs.iter().map(|(name, value)| (name.source().to_owned(), value_template(value)))),
    }
    if !step.name.is_empty() {
        fields.text("name", &step.name);
    }
    let key = if dialect == Dialect::Functions { "func" } else { "step" };
    match &step.action {
        Action::Script(script) => fields.put("script", text(script)),
        Action::ScriptLegacy(_) => fields.text(key, "builtin://script_legacy"),
        Action::Reference(_) if action.is_some() => {}
        Action::Reference(named) => fields.put(key, reference(named, dialect)),
    }
    // `func` is older than its name in this order: it sorts as `step` does
    Tree::Map(fields.0)
}

/// The action and its inputs, where the step is what `action:` is read as.
fn as_github_action(step: &Step) -> Option<(&Template, &[(Template, ValueTemplate)])> {
    let Action::Reference(StepReference::Git(git)) = &step.action else { return None };
    let is_runner = git.url.source() == ACTION_RUNNER_URL && *git.revision == *ACTION_RUNNER_REVISION && git.path.is_empty();
    match step.inputs.as_slice() {
        [(first, ValueTemplate::Text(action)), (second, ValueTemplate::Object(inputs))]
            if is_runner && first.source() == "action" && second.source() == "inputs" =>
        {
            Some((action, inputs))
        }
        _ => None,
    }
}

fn reference(reference: &StepReference, dialect: Dialect) -> Tree {
    match reference {
        StepReference::Local(LocalReference { path, file }) => Tree::Text(local_path(path, file.as_deref())),
        StepReference::Dist { path } => Tree::Text(format!("dist://{}", path.join("/"))),
        StepReference::Builtin { name } => Tree::Text(format!("builtin://{name}")),
        StepReference::Dynamic(template) => text(template),
        StepReference::Git(git) => match short_git(git) {
            Some(short) => Tree::Text(short),
            None => {
                located("git", [("rev", Tree::Text(git.revision.to_string())), ("url", text(&git.url))], &git.path, git.file.as_deref())
            }
        },
        StepReference::Oci(oci) => match short_oci(oci).filter(|_| dialect == Dialect::Functions) {
            Some(short) => Tree::Text(short),
            None => {
                let parts = [("registry", text(&oci.registry)), ("repository", text(&oci.repository)), ("tag", text(&oci.tag))];
                located("oci", parts, &oci.path, oci.file.as_deref())
            }
        },
    }
}

fn located<const N: usize>(kind: &str, parts: [(&str, Tree); N], path: &[Arc<str>], file: Option<&str>) -> Tree {
    let mut fields = Fields::default();
    if !path.is_empty() {
        fields.text("dir", &path.join("/"));
    }
    if let Some(file) = file {
        fields.text("file", file);
    }
    for (key, part) in parts {
        fields.put(key, part);
    }
    Tree::Map(vec![(kind.into(), Tree::Map(fields.0))])
}

fn local_path(path: &[Arc<str>], file: Option<&str>) -> String {
    let parts: Vec<&str> = path.iter().map(|part| &**part).chain(file).collect();
    match parts.split_first() {
        Some((&"/", rest)) => format!("/{}", rest.join("/")),
        _ => parts.join("/"),
    }
}

/// Only what the short form puts into the directory `steps` of a repository.
fn short_git(git: &GitReference) -> Option<String> {
    let (first, inside) = git.path.split_first()?;
    let url = git.url.source();
    let is_plain = **first == *"steps" && !url.contains("${{") && !url.contains("/-/");
    let inside: Vec<&str> = inside.iter().map(|part| &**part).chain(git.file.as_deref()).collect();
    let inside = if inside.is_empty() { String::new() } else { format!("/-/{}", inside.join("/")) };
    is_plain.then(|| format!("{}{inside}@{}", url.strip_prefix("https://").unwrap_or(url), git.revision))
}

fn short_oci(oci: &OciReference) -> Option<String> {
    let parts = [&oci.registry, &oci.repository, &oci.tag].map(Template::source);
    let [registry, repository, tag] = parts;
    if parts.iter().any(|part| part.contains("${{")) {
        return None;
    }
    let registry = if registry.is_empty() { String::new() } else { format!("{registry}/") };
    let divider = if tag.contains(':') { '@' } else { ':' };
    let inside: Vec<&str> = oci.path.iter().map(|part| &**part).chain(oci.file.as_deref()).collect();
    let inside = if inside.is_empty() { String::new() } else { format!(" {}", inside.join("/")) };
    let short = format!("{registry}{repository}{divider}{tag}{inside}");
    // what is read as something else is written as a map
    matches!(StepReference::parse(&short, Dialect::Functions), Ok(StepReference::Oci(read)) if *read == *oci).then_some(short)
}

fn text(template: &Template) -> Tree {
    Tree::Text(template.source().to_owned())
}

fn text_entry((name, value): &(Template, Template)) -> (String, Tree) {
    (name.source().to_owned(), text(value))
}

fn value(value: &Value) -> Tree {
    match value.data() {
        Data::Null => Tree::Plain("null".into()),
        Data::Boolean(boolean) => Tree::Plain(boolean.to_string()),
        Data::Number(number) => Tree::Plain(emit::number(*number)),
        Data::String(text) => Tree::Text(text.to_string()),
        Data::Array(items) => Tree::List(items.iter().map(self::value).collect()),
        Data::Object(object) => Tree::Map(object.iter().map(|(key, member)| (key.to_string(), self::value(member))).collect()),
    }
}

fn value_template(template: &ValueTemplate) -> Tree {
    match template {
        ValueTemplate::Scalar(scalar) => value(scalar),
        ValueTemplate::Text(template) => text(template),
        ValueTemplate::Array(items) => Tree::List(items.iter().map(value_template).collect()),
        ValueTemplate::Object(entries) => {
            Tree::Map(entries.iter().map(|(key, member)| (key.source().to_owned(), value_template(member))).collect())
        }
    }
}

/// Keys in the order in which they are put; empty maps are left out.
#[derive(Default)]
struct Fields(Vec<(String, Tree)>);

impl Fields {
    fn put(&mut self, key: &str, tree: Tree) {
        self.0.push((key.into(), tree));
    }

    fn text(&mut self, key: &str, text: &str) {
        self.put(key, Tree::Text(text.into()));
    }

    fn map(&mut self, key: &str, entries: impl Iterator<Item = (String, Tree)>) {
        let entries: Vec<_> = entries.collect();
        if !entries.is_empty() {
            self.put(key, Tree::Map(entries));
        }
    }
}

#[cfg(test)]
mod tests;
