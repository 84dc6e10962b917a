//! A result as a tree that a person reads. One line per step, in fixed columns, so that a pipe can grep it:
//!
//! ```text
//! failed       1.23s  job
//! ok           0.51s  ├─ build
//! ok           0.40s  │  └─ compile
//! failed       0.70s  └─ test: exit status 1
//! ```
//!
//! Styles are always written; the caller's stream ([`anstream`]) drops them where nobody would see them.

pub mod node;

use anstyle::{AnsiColor, Style};
use std::io::{self, Write};
use std::time::Duration;
use step_model::limits::AppliedLimit;
use step_model::result::{Failure, FailureKind, ResultTree, Status, StepId};

/// What the tree says about one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Empty for a step without a name; the root is then called `job`.
    pub name: String,
    pub status: Status,
    pub failure: Option<Failure>,
    /// The failure does not fail the job.
    pub allowed_to_fail: bool,
    /// `None`: it is not known.
    pub duration: Option<Duration>,
    /// More lines, printed below the step: outputs, usage.
    pub details: Vec<String>,
}

impl Line {
    /// The outcome in one or two words.
    pub fn word(&self) -> &'static str {
        self.outcome().0
    }

    /// The outcome in one or two words, and how it looks.
    fn outcome(&self) -> (&'static str, Style) {
        let (good, bad, odd) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default().bold(), AnsiColor::Yellow.on_default());
        let kind = self.failure.as_ref().map(|failure| failure.kind);
        match (self.status, kind) {
            (Status::Success, _) => ("ok", good),
            (Status::Running, _) => ("running", odd),
            (Status::Unspecified, None) => ("not begun", odd),
            (_, Some(FailureKind::Interrupted)) => ("interrupted", bad),
            (_, Some(FailureKind::Timeout)) => ("timed out", bad),
            (Status::Cancelled, _) | (_, Some(FailureKind::Cancelled)) => ("cancelled", odd),
            (_, Some(FailureKind::Refused)) => ("refused", bad),
            _ if self.allowed_to_fail => ("failed", odd),
            _ => ("failed", bad),
        }
    }
}

/// Writes the tree below `root`, which is at the left margin.
/// # Errors
/// As `out`.
pub fn write(out: &mut dyn Write, root: StepId, line: &dyn Fn(StepId) -> Line, children: &dyn Fn(StepId) -> Vec<StepId>) -> io::Result<()> {
    Tree { out, line, children }.step(root, "", "")
}

/// How much a tree says about each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// How it ended, and what became of its limits.
    Outcomes,
    /// Also what it gave.
    Outputs,
    /// Also commands, exports, used resources and where the definition came from; nothing is cut.
    Everything,
}

impl Detail {
    /// As the flag `--verbose` says, for a command that shows results.
    pub fn of_result(is_verbose: bool) -> Self {
        if is_verbose { Self::Everything } else { Self::Outputs }
    }
}

/// The whole tree of a result, whose root is called `title`.
pub fn shown(tree: &dyn ResultTree, title: &str, detail: Detail) -> String {
    let line = |id: StepId| {
        let line = node::line(&tree.node(id), id == StepId::ROOT, detail);
        if id == StepId::ROOT { Line { name: title.to_owned(), ..line } } else { line }
    };
    let mut drawn = Vec::new();
    let outcome = write(&mut drawn, StepId::ROOT, &line, &|id| tree.children(id));
    debug_assert!(outcome.is_ok(), "memory can be written to");
    String::from_utf8_lossy(&drawn).into_owned()
}

struct Tree<'a> {
    out: &'a mut dyn Write,
    line: &'a dyn Fn(StepId) -> Line,
    children: &'a dyn Fn(StepId) -> Vec<StepId>,
}

impl Tree<'_> {
    /// `branch` stands before the name, `below` before everything under it.
    fn step(&mut self, id: StepId, branch: &str, below: &str) -> io::Result<()> {
        let (line, children) = ((self.line)(id), (self.children)(id));
        let (word, style) = line.outcome();
        let name = if line.name.is_empty() { "job" } else { &line.name };
        let duration = line.duration.map(in_words).unwrap_or_default();
        write!(self.out, "{style}{word:<11}{style:#} {duration:>7}  {branch}{}", one_line(name))?;
        if let Some(failure) = line.failure.as_ref().filter(|failure| !failure.message.is_empty())
            && children.iter().all(|child| matches!((self.line)(*child).status, Status::Success))
        {
            write!(self.out, ": {}", one_line(without_steps(&failure.message)))?;
        }
        writeln!(self.out, "{}", if line.allowed_to_fail && line.status == Status::Failure { " (allowed to fail)" } else { "" })?;

        let dimmed = Style::new().dimmed();
        let margin = if children.is_empty() { "   " } else { "│  " };
        for detail in &line.details {
            writeln!(self.out, "{:21}{below}{margin}{dimmed}{}{dimmed:#}", "", one_line(detail))?;
        }
        for (at, child) in children.iter().enumerate() {
            let (branch, margin) = if at + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.step(*child, &format!("{below}{branch}"), &format!("{below}{margin}"))?;
        }
        Ok(())
    }
}

/// What a person should know of a step besides how it ended: what became of its limits, and what its results leave out.
pub fn details(limits: &[AppliedLimit], filtered: Option<&str>) -> Vec<String> {
    let limit = |limit: &AppliedLimit| {
        let reached = if limit.reached { ", reached" } else { "" };
        format!("{} {} ({}{reached})", limit.name, limit.value, limit.means)
    };
    let limits: Vec<String> = limits.iter().map(limit).collect();
    let limits = (!limits.is_empty()).then(|| format!("limits: {}", limits.join(", ")));
    limits.into_iter().chain(filtered.map(|filtered| format!("filtered: {filtered}"))).collect()
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

/// The message of a failure without the steps that it passed through: they are the tree.
pub fn without_steps(message: &str) -> &str {
    let mut rest = message;
    while let Some(after) = rest.strip_prefix("step \"") {
        let Some((_, after)) = after.split_once("\": ") else { break };
        rest = after;
    }
    rest
}

/// What a step says may hold anything: a line break or an escape sequence would spoil the tree.
fn one_line(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains(char::is_control) {
        return text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect::<String>().into();
    }
    text.into()
}

#[cfg(test)]
mod tests;
