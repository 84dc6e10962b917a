//! A result as one page: a timeline for a browser that needs nothing but the file.
//!
//! The page is written by three files beside this one (page.html, page.css, page.js) and a JSON text that holds the steps in the order of the
//! tree. Environments are written as what differs from the step before, so that ten thousand steps do not repeat them.

use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_console::tree::{self, node as told};
use step_model::document::{Action, Body};
use step_model::limits::AppliedLimit;
use step_model::result::{Means, ResultTree, Status, StepId, StepResult, Traffic, Usage};
use step_model::time::Timestamp;
use step_model::value::Value;

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// The page. What is secret in the tree was redacted when the result was written. `last`: where a job is that has no end.
pub fn page(tree: &dyn ResultTree, title: &str, last: Option<&str>) -> String {
    let mut steps = Steps { tree, start: tree.node(StepId::ROOT).start, env: BTreeMap::new(), written: Vec::new(), latest: 0.0 };
    steps.add(StepId::ROOT, None, 0);
    let root = &steps.written[0];
    let data = json!({
        "title": title,
        "last": last,
        "began": steps.start.map(|start| start.to_string()),
        "took": root.get("end").cloned().unwrap_or(json!(steps.latest)),
        "steps": steps.written,
    });
    // In one pass: what stands for one part may stand in the text of another.
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + 4096);
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once('@') {
        page.push_str(before);
        let (name, after) = after.split_once('@').unwrap_or((after, ""));
        match name {
            "TITLE" => page.push_str(&escaped(title)),
            "STYLE" => page.push_str(STYLE),
            "DATA" => page.push_str(&for_a_script(&data)),
            _ => page.push_str(SCRIPT),
        }
        rest = after;
    }
    page.push_str(rest);
    page
}

/// For the content of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// JSON in which nothing can end the element that holds it, or begin a comment in it.
fn for_a_script(json: &Json) -> String {
    json.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

struct Steps<'a> {
    tree: &'a dyn ResultTree,
    start: Option<Timestamp>,
    /// Of the step that was written last.
    env: BTreeMap<Arc<str>, Value>,
    written: Vec<Json>,
    /// Milliseconds from the start of the job to the last time that is known.
    latest: f64,
}

impl Steps<'_> {
    /// A step and what is below it.
    fn add(&mut self, id: StepId, parent: Option<usize>, depth: usize) {
        let node = self.tree.node(id);
        let number = self.written.len();
        let step = self.step(&node, parent, depth);
        self.written.push(step);
        for child in self.tree.children(id) {
            self.add(child, Some(number), depth + 1);
        }
    }

    fn step(&mut self, node: &StepResult, parent: Option<usize>, depth: usize) -> Json {
        let line = told::line(node, parent.is_none(), tree::Detail::Outputs);
        let (start, end) = (self.after_start(node.start), self.after_start(node.end));
        let message = line.failure.as_ref().map(|failure| tree::without_steps(&failure.message)).filter(|message| !message.is_empty());
        let mut step = Map::new();
        let mut set = |name: &str, value: Json| {
            if !is_nothing(&value) {
                step.insert(name.to_owned(), value);
            }
        };
        set("name", json!(line.name));
        set("depth", json!(depth));
        set("parent", json!(parent));
        set("look", json!(look(node, &line)));
        set("word", json!(line.word()));
        set("start", json!(start));
        set("end", json!(end));
        set("message", json!(message));
        let script = script_of(node);
        set("script", json!(script.is_some()));
        set("command", json!(script.or_else(|| command_of(node))));
        set("process", pairs(process(node)));
        set("inputs", values(&node.inputs));
        set("outputs", values(&node.outputs));
        set("exports", values(&node.exports));
        set("usage", node.usage.as_ref().map_or(Json::Null, usage));
        set("limits", pairs(limits(node)));
        set("filtered", json!(node.filtered.as_deref()));
        set("definition", pairs(definition(node)));
        set("env", self.environment(node));
        Json::Object(step)
    }

    /// Milliseconds from the start of the job. Steps of another machine may seem to have begun before it.
    fn after_start(&mut self, time: Option<Timestamp>) -> Option<f64> {
        let milliseconds = time?.since(self.start?).as_secs_f64() * 1000.0;
        self.latest = self.latest.max(milliseconds);
        Some(milliseconds)
    }

    /// What differs from the environment of the step before.
    fn environment(&mut self, node: &StepResult) -> Json {
        let env = if node.env.is_empty() { &node.given_env } else { &node.env };
        let set = env.iter().filter(|(name, value)| self.env.get(*name) != Some(*value));
        let set: Map<String, Json> = set.map(|(name, value)| (name.to_string(), json!(plain(value)))).collect();
        let gone: Vec<&str> = self.env.keys().filter(|name| !env.contains_key(*name)).map(|name| &**name).collect();
        let mut change = Map::new();
        if !set.is_empty() {
            change.insert("set".to_owned(), Json::Object(set));
        }
        if !gone.is_empty() {
            change.insert("gone".to_owned(), json!(gone));
        }
        self.env.clone_from(env);
        Json::Object(change)
    }
}

/// What is left out: a reader takes an absent member for it.
fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(value) => !value,
        Json::String(_) | Json::Number(_) => false,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
    }
}

/// One of the five looks of the page.
fn look(node: &StepResult, line: &tree::Line) -> &'static str {
    match (node.status, line.word()) {
        (Status::Success, _) => "ok",
        (Status::Running, _) => "run",
        (_, "cancelled" | "not begun") => "odd",
        _ if node.allowed_to_fail => "allowed",
        _ => "bad",
    }
}

/// The text of a script, which people know; its command is a shell with flags.
fn script_of(node: &StepResult) -> Option<String> {
    let action = node.step.as_deref().map(|step| &step.action)?;
    match action {
        Action::ScriptLegacy(script) => Some(script.lines.join("\n")),
        Action::Script(_) => node.inputs.iter().find(|(name, _)| **name == *"script").map(|(_, text)| plain(text)),
        Action::Reference(_) => None,
    }
}

fn command_of(node: &StepResult) -> Option<String> {
    let exec = node.exec.as_ref().filter(|exec| !exec.command.is_empty())?;
    Some(exec.command.iter().map(told::word).collect::<Vec<_>>().join(" "))
}

fn process(node: &StepResult) -> Vec<(&'static str, String)> {
    let Some(exec) = &node.exec else { return Vec::new() };
    let mut process = vec![("directory", plain(&exec.work_dir))];
    match (exec.signal, exec.exit_code) {
        (Some(signal), _) => process.push(("ended by", format!("signal {signal}"))),
        (None, -1) => process.push(("ended by", "a signal, or never started".into())),
        (None, code) => process.push(("exit code", code.to_string())),
    }
    process
}

fn definition(node: &StepResult) -> Vec<(&'static str, String)> {
    let mut definition = Vec::new();
    if let Some(Action::Reference(reference)) = node.step.as_deref().map(|step| &step.action) {
        definition.push(("reference", told::reference_text(reference)));
    }
    if let Some(Body::Sequence(sequence)) = node.document.as_deref().map(|document| &document.definition.body) {
        definition.push(("kind", format!("a sequence of {} steps", sequence.steps.len())));
    }
    definition.extend(node.digest.map(|digest| ("digest", digest.to_string())));
    if let Some(provenance) = &node.provenance {
        let changed = if provenance.dirty { ", and the directory differs from it" } else { "" };
        definition.push(("commit", format!("{}{changed}", provenance.commit)));
    }
    definition.extend(node.trace.map(|trace| ("span", trace.to_string())));
    definition
}

fn limits(node: &StepResult) -> Vec<(&'static str, String)> {
    let limit = |limit: &AppliedLimit| {
        let reached = if limit.reached { "; the step came to it" } else { "" };
        (limit.name.as_str(), format!("{} ({}{reached})", limit.value, limit.means))
    };
    node.limits.iter().map(limit).collect()
}

fn usage(usage: &Usage) -> Json {
    let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    let traffic = |traffic: Traffic| [traffic.incoming, traffic.outgoing];
    json!({
        "cpu": milliseconds(usage.cpu_user + usage.cpu_system),
        "user": milliseconds(usage.cpu_user),
        "system": milliseconds(usage.cpu_system),
        "memory": usage.peak_memory,
        "disk": usage.disk.map(traffic),
        "network": usage.network.map(traffic),
        "means": match usage.means {
            Means::Process => "the process and the children that it waited for",
            Means::Container => "the container, with everything in it",
            Means::Cgroup => "the control group, with everything in it",
        },
    })
}

fn pairs(pairs: Vec<(&'static str, String)>) -> Json {
    json!(pairs)
}

fn values(values: &[(Arc<str>, Value)]) -> Json {
    Json::Object(values.iter().map(|(name, value)| (name.to_string(), value.to_json())).collect())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_json().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_client::wire::result::{OwnedTree, read};

    fn tree(json: &str) -> OwnedTree {
        read(json).expect("a result")
    }

    #[test]
    fn nothing_of_a_result_becomes_a_part_of_the_page() {
        let hostile = r#"{"step":{},"status":"failure","failureKind":"step_failure","failureMessage":"</script><script>alert(1)</script>","subStepResults":[
            {"step":{"name":"</script><!--<script>","inputs":{"<b>":"</script>"},"env":{"X":"@SCRIPT@ @DATA@"}},"status":"success"}]}"#;
        let page = page(&tree(hostile), "<img onerror=x>@DATA@", None);
        let count = |text: &str| page.matches(text).count();
        assert_eq!((count("</script>"), count("alert(1)"), count("<!--"), count("<img"), count("<b>")), (2, 1, 0, 0, 0));
        assert_eq!((count("use strict"), count("@SCRIPT@")), (1, 1), "marks of places in a result stay text");
        let data = page.split(r#"type="application/json">"#).nth(1).and_then(|rest| rest.split("</script>").next()).expect("the data");
        let data: Json = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["steps"][1]["name"], "</script><!--<script>");
        assert_eq!(data["title"], "<img onerror=x>@DATA@");
    }

    #[test]
    fn environments_are_written_as_differences() {
        let result = r#"{"step":{},"status":"success","subStepResults":[
            {"step":{"name":"a","env":{"A":"1","B":"2"}},"status":"success"},
            {"step":{"name":"b","env":{"A":"1","B":"2"}},"status":"success"},
            {"step":{"name":"c","env":{"A":"3"}},"status":"success"}]}"#;
        let tree = tree(result);
        let mut steps = Steps { tree: &tree, start: None, env: BTreeMap::new(), written: Vec::new(), latest: 0.0 };
        steps.add(StepId::ROOT, None, 0);
        let changes: Vec<_> = steps.written.iter().map(|step| step["env"].clone()).collect();
        assert_eq!(changes, [Json::Null, json!({"set": {"A": "1", "B": "2"}}), Json::Null, json!({"set": {"A": "3"}, "gone": ["B"]})]);
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        let page = page(&tree(r#"{"step":{},"status":"success"}"#), "job", None);
        for outside in ["http://", "https://", "src=", "@import", "url(", "fetch(", "innerHTML", "eval("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
