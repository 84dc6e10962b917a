//! The result of a job as a tree that a person reads: one line per step, in fixed columns.
//!
//! ```text
//! failed       1.23s  build
//! ok           0.51s  ├─ checkout
//! failed       0.70s  └─ script: exit status 1
//! ```

use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use std::time::Duration;
use step_model::result::{Failure, FailureKind, ResultTree, Status, StepId, StepResult};

/// The tree below the root, which is called `title`. Styles are always written; the caller's stream drops them where nobody would see them.
pub fn shown(tree: &dyn ResultTree, title: &str) -> String {
    let mut text = String::new();
    step(&mut text, tree, StepId::ROOT, title, "", "");
    text
}

fn step(text: &mut String, tree: &dyn ResultTree, id: StepId, name: &str, branch: &str, below: &str) {
    let (node, children) = (tree.node(id), tree.children(id));
    let (word, style) = outcome(&node);
    let duration = node.start.zip(node.end).map(|(start, end)| in_words(end.since(start))).unwrap_or_default();
    let _ = write!(text, "{style}{word:<11}{style:#} {duration:>7}  {branch}{}", one_line(name));
    if let Some(reason) = reason(&node)
        && children.iter().all(|child| tree.node(*child).status == Status::Success)
    {
        let _ = write!(text, ": {}", one_line(&reason));
    }
    text.push_str(if node.allowed_to_fail && node.status == Status::Failure { " (allowed to fail)\n" } else { "\n" });
    for (at, child) in children.iter().enumerate() {
        let (branch, margin) = if at + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let name = tree.node(*child).name;
        let name = if name.is_empty() { "step" } else { &*name };
        step(text, tree, *child, name, &format!("{below}{branch}"), &format!("{below}{margin}"));
    }
}

/// The outcome in one or two words, and how it looks.
fn outcome(node: &StepResult) -> (&'static str, Style) {
    let (good, bad, odd) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default().bold(), AnsiColor::Yellow.on_default());
    match (node.status, node.failure.as_ref().map(|failure| failure.kind)) {
        (Status::Success, _) => ("ok", good),
        (Status::Running, _) => ("running", odd),
        (Status::Unspecified, None) => ("not begun", odd),
        (_, Some(FailureKind::Interrupted)) => ("interrupted", bad),
        (_, Some(FailureKind::Timeout)) => ("timed out", bad),
        (Status::Cancelled, _) | (_, Some(FailureKind::Cancelled)) => ("cancelled", odd),
        (_, Some(FailureKind::Refused)) => ("refused", bad),
        _ if node.allowed_to_fail => ("failed", odd),
        _ => ("failed", bad),
    }
}

/// Why it failed, without the steps that the message passed through: they are the tree.
fn reason(node: &StepResult) -> Option<String> {
    let Failure { message, .. } = node.failure.as_ref()?;
    let mut rest = message.as_str();
    while let Some(after) = rest.strip_prefix("step \"") {
        let Some((_, after)) = after.split_once("\": ") else { break };
        rest = after;
    }
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// A duration with three digits or so: `0.4ms`, `520ms`, `1.23s`, `2m05s`, `1h02m`.
pub fn in_words(duration: Duration) -> String {
    let (milliseconds, seconds) = (duration.as_secs_f64() * 1000.0, duration.as_secs());
    match seconds {
        0 if milliseconds < 9.95 => format!("{milliseconds:.1}ms"),
        0 if milliseconds < 999.5 => format!("{milliseconds:.0}ms"),
        0..60 => format!("{:.2}s", duration.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// What a step says may hold anything: a line break or an escape sequence would spoil the tree.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ci_proto::step_runner::step_result::Status as StatusMessage;
    use ci_proto::step_runner::{Step, StepResult as Message};
    use prost::Message as _;
    use prost_types::Timestamp;

    fn message(name: &str, status: StatusMessage, failure: &str, children: Vec<Message>) -> Message {
        Message {
            step: Some(Step { name: name.into(), ..Step::default() }),
            status: status.into(),
            start_time: Some(Timestamp { seconds: 1, nanos: 0 }),
            end_time: Some(Timestamp { seconds: 1, nanos: 250_000_000 }),
            failure_message: failure.into(),
            failure_kind: i32::from(!failure.is_empty()),
            sub_step_results: children,
            ..Message::default()
        }
    }

    #[test]
    fn a_failure_is_told_where_it_happened() {
        let failed = message("script", StatusMessage::Failure, "step \"script\": exec: exit status 1", Vec::new());
        let children = vec![message("checkout", StatusMessage::Success, "", Vec::new()), failed];
        let root = message("", StatusMessage::Failure, "step \"script\": exec: exit status 1", children);
        let tree = step_client::wire::result::read_message(&root.encode_to_vec()).expect("a tree");
        let shown = anstream::adapter::strip_str(&shown(&tree, "build")).to_string();
        insta::assert_snapshot!(shown, @r"
        failed        250ms  build
        ok            250ms  ├─ checkout
        failed        250ms  └─ script: exec: exit status 1
        ");
    }

    #[test]
    fn durations_have_three_digits_or_so() {
        let all = [400, 520_000, 1_230_000, 125_000_000, 3_720_000_000].map(|micros| in_words(Duration::from_micros(micros)));
        assert_eq!(all, ["0.4ms", "520ms", "1.23s", "2m05s", "1h02m"]);
    }
}
