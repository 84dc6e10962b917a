//! A result tree as spans: one for the job, one for every step below it, also for those that came from another agent.
//!
//! The names of attributes are those that GitLab uses for functions, and those of OpenTelemetry where it has one.

use step_client::wire::result::Redaction;
use step_console::tree::node::{name, reference_text};
use step_model::document::{Action, Step};
use step_model::reference::{Digest, StepReference};
use step_model::result::{FailureKind, ResultTree, Status, StepId, StepResult, Usage};
use step_model::time::Timestamp;
use step_model::trace::{SpanId, TraceContext};
use step_model::value::Value;

/// One span. Nothing secret is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub context: TraceContext,
    pub parent: Option<SpanId>,
    /// The parent was made by somebody else.
    pub is_joined: bool,
    pub name: String,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Attribute)>,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    Text(String),
    Whole(i64),
    Real(f64),
    Flag(bool),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Open,
    Succeeded,
    Failed(String),
}

/// The spans of a tree, parents before children. None, when whoever began the trace does not record it, and for a tree without times.
pub fn of(tree: &dyn ResultTree, parent: Option<TraceContext>, redaction: &Redaction) -> Vec<Span> {
    let root = tree.node(StepId::ROOT);
    let (Some(context), Some(start)) = (root.trace, root.start) else { return Vec::new() };
    if !context.is_sampled {
        return Vec::new();
    }
    let mut spans = Spans { tree, redaction, end: root.end.unwrap_or(start), made: Vec::new() };
    spans.add(StepId::ROOT, &root, context, parent.map(|parent| parent.span), start);
    if let (Some(first), Some(_)) = (spans.made.first_mut(), parent) {
        first.is_joined = true;
    }
    spans.made
}

struct Spans<'a> {
    tree: &'a dyn ResultTree,
    redaction: &'a Redaction,
    /// Of the job: what has no end went on until then.
    end: Timestamp,
    made: Vec<Span>,
}

impl Spans<'_> {
    fn add(&mut self, id: StepId, node: &StepResult, context: TraceContext, parent: Option<SpanId>, latest: Timestamp) {
        let start = node.start.unwrap_or(latest);
        let is_root = id == StepId::ROOT;
        self.made.push(Span {
            context,
            parent,
            is_joined: false,
            name: self.text(&name(node, is_root)),
            start,
            end: node.end.unwrap_or(self.end).max(start),
            attributes: self.attributes(node),
            outcome: self.outcome(node),
        });
        for (index, child) in self.tree.children(id).into_iter().enumerate() {
            let node = self.tree.node(child);
            // A result of GitLab's names no spans; and one trace holds all, also what an agent did that knew of none.
            let span = node.trace.map_or_else(|| derived(context.span, index), |trace| trace.span);
            self.add(child, &node, TraceContext { span, ..context }, Some(context.span), start);
        }
    }

    fn outcome(&self, node: &StepResult) -> Outcome {
        match (node.status, &node.failure) {
            (Status::Success, _) => Outcome::Succeeded,
            (Status::Running | Status::Unspecified, None) => Outcome::Open,
            (_, Some(failure)) => Outcome::Failed(self.text(&failure.message)),
            (Status::Failure | Status::Cancelled, None) => Outcome::Failed(String::new()),
        }
    }

    fn attributes(&self, node: &StepResult) -> Vec<(&'static str, Attribute)> {
        let mut attributes = Vec::new();
        let text = |text: &str| Attribute::Text(self.text(text));
        if let Some(step) = &node.step {
            let (function, version) = function(step);
            attributes.push(("ci.function.name", text(&function)));
            attributes.extend(version.map(|version| ("ci.function.version", text(&version))));
            attributes.push(("ci.step.name", text(&node.name)));
        }
        attributes.push(("ci.function.status", Attribute::Text(status(node.status).to_owned())));
        attributes.extend(node.digest.map(|digest| ("ci.function.digest", Attribute::Text(digest.to_string()))));
        if let Some(provenance) = &node.provenance {
            attributes.push(("vcs.ref.head.revision", Attribute::Text(provenance.commit.to_string())));
        }
        if let Some(exec) = &node.exec {
            match exec.signal {
                Some(signal) => attributes.push(("ci.step.signal", Attribute::Whole(signal.into()))),
                None => attributes.push(("process.exit.code", Attribute::Whole(exec.exit_code.into()))),
            }
        }
        if let Some(failure) = &node.failure {
            attributes.push(("error.type", Attribute::Text(kind(failure.kind).to_owned())));
            attributes.push(("ci.step.allowed_to_fail", Attribute::Flag(node.allowed_to_fail)));
        }
        attributes.extend(node.usage.iter().flat_map(usage));
        attributes
    }

    fn text(&self, text: &str) -> String {
        self.redaction.text(&Value::from(text))
    }
}

/// The name of what a step refers to, and which version of it.
fn function(step: &Step) -> (String, Option<String>) {
    match &step.action {
        Action::Script(_) | Action::ScriptLegacy(_) => ("script".to_owned(), None),
        Action::Reference(reference) => {
            let version = match reference {
                StepReference::Git(git) => Some(git.revision.to_string()),
                StepReference::Oci(oci) => Some(oci.tag.source().to_owned()),
                _ => None,
            };
            let all = reference_text(reference);
            let function =
                version.as_deref().and_then(|version| all.strip_suffix(version)).map(|rest| rest.trim_end_matches(['@', ':']).to_owned());
            (function.unwrap_or(all), version)
        }
    }
}

fn usage(usage: &Usage) -> Vec<(&'static str, Attribute)> {
    let whole = |number: u64| Attribute::Whole(i64::try_from(number).unwrap_or(i64::MAX));
    let mut attributes = vec![
        ("ci.step.cpu_user_seconds", Attribute::Real(usage.cpu_user.as_secs_f64())),
        ("ci.step.cpu_system_seconds", Attribute::Real(usage.cpu_system.as_secs_f64())),
        ("ci.step.peak_memory_bytes", whole(usage.peak_memory)),
    ];
    for (traffic, incoming, outgoing) in [
        (usage.disk, "ci.step.disk_read_bytes", "ci.step.disk_written_bytes"),
        (usage.network, "ci.step.network_received_bytes", "ci.step.network_sent_bytes"),
    ] {
        attributes
            .extend(traffic.into_iter().flat_map(|traffic| [(incoming, whole(traffic.incoming)), (outgoing, whole(traffic.outgoing))]));
    }
    attributes
}

/// Always the same for the same place in the tree.
fn derived(parent: SpanId, index: usize) -> SpanId {
    let digest = Digest::of(&[parent.bytes().as_slice(), &index.to_be_bytes()].concat());
    let (number, _) = digest.bytes().split_first_chunk().expect("a digest has more than eight bytes");
    SpanId::from_number(u64::from_be_bytes(*number))
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Unspecified => "unspecified",
        Status::Running => "running",
        Status::Success => "success",
        Status::Failure => "failure",
        Status::Cancelled => "cancelled",
    }
}

/// As the enumeration of the wire names them.
fn kind(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::StepFailure => "step_failure",
        FailureKind::BadInput => "bad_input",
        FailureKind::Refused => "refused",
        FailureKind::Cancelled => "cancelled",
        FailureKind::Timeout => "timeout",
        FailureKind::Internal => "internal",
        FailureKind::Interrupted => "interrupted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_client::wire::result::{OwnedTree, read};
    use step_model::masking::Secrets;

    fn tree(flags: &str) -> OwnedTree {
        let json = r#"{"step":{},"status":"failure","startTime":"2023-11-14T22:13:20Z","endTime":"2023-11-14T22:13:29Z",
            "failureKind":"step_failure","failureMessage":"step \"a\": exec: exit status 7","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000001-FLAGS",
            "subStepResults":[
            {"step":{"name":"a","step":{"protocol":"git","url":"https://example.com/x","version":"v2"}},"status":"failure","execResult":{"exitCode":7},
             "startTime":"2023-11-14T22:13:21Z","endTime":"2023-11-14T22:13:22Z","failureKind":"step_failure","failureMessage":"hunter2: exit status 7",
             "failureAllowed":true,"usage":{"cpuUser":"0.5s","peakMemory":"4096","diskWritten":"512"},"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000002-01",
             "subStepResults":[{"step":{"name":"theirs"},"status":"success"},{"step":{"name":"theirs"},"status":"success"}]},
            {"step":{"name":"b","step":{"protocol":"dist","path":["script"]},"inputs":{"script":"true"}},"status":"running"}]}"#;
        read(&json.replace("FLAGS", flags)).expect("a result")
    }

    fn redaction() -> Redaction {
        let mut secrets = Secrets::default();
        secrets.add("hunter2").expect("long enough");
        Redaction::new(secrets, b"key".as_slice())
    }

    #[test]
    fn every_node_is_a_span_below_that_of_its_parent() {
        let caller: TraceContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().expect("a caller");
        let spans = of(&tree("01"), Some(caller), &redaction());
        let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| span.context.span).collect();
        assert_eq!((spans.len(), ids.len()), (5, 5), "no two are the same");
        let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
        assert_eq!(names, ["job", "a", "theirs", "theirs", "script"].map(|name| if name == "script" { "b" } else { name }));
        let parent = |index: usize| spans.iter().position(|span| Some(span.context.span) == spans[index].parent);
        assert_eq!([1, 2, 3, 4].map(parent), [Some(0), Some(1), Some(1), Some(0)]);
        assert_eq!((spans[0].parent, spans[0].is_joined, spans[1].is_joined), (Some(caller.span), true, false));
        assert!(spans.iter().all(|span| span.context.trace == caller.trace && span.end >= span.start));
        assert_eq!(spans[4].end, spans[0].end, "what has no end went on until the job ended");
    }

    #[test]
    fn a_span_says_what_ran_how_it_ended_and_nothing_secret() {
        let spans = of(&tree("01"), None, &redaction());
        assert_eq!(spans[1].outcome, Outcome::Failed("[MASKED]: exit status 7".into()));
        assert_eq!((&spans[2].outcome, &spans[4].outcome), (&Outcome::Succeeded, &Outcome::Open));
        let text = |text: &str| Attribute::Text(text.into());
        assert_eq!(
            spans[1].attributes,
            [
                ("ci.function.name", text("https://example.com/x")),
                ("ci.function.version", text("v2")),
                ("ci.step.name", text("a")),
                ("ci.function.status", text("failure")),
                ("process.exit.code", Attribute::Whole(7)),
                ("error.type", text("step_failure")),
                ("ci.step.allowed_to_fail", Attribute::Flag(true)),
                ("ci.step.cpu_user_seconds", Attribute::Real(0.5)),
                ("ci.step.cpu_system_seconds", Attribute::Real(0.0)),
                ("ci.step.peak_memory_bytes", Attribute::Whole(4096)),
                ("ci.step.disk_read_bytes", Attribute::Whole(0)),
                ("ci.step.disk_written_bytes", Attribute::Whole(512)),
            ]
        );
        assert_eq!(spans[4].attributes[0], ("ci.function.name", text("script")));
    }

    #[test]
    fn a_trace_that_nobody_records_has_no_spans() {
        assert_eq!(of(&tree("00"), None, &redaction()), []);
    }
}
