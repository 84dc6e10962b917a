//! The words of the report for people: pure functions of what a step or a job has come to.

use crate::run::signals::Signal;
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use step_console::complaint::plain;
use step_console::tree::{in_words, without_steps};
use step_engine::run::{Headline, Kind};
use step_model::masking::MASK;
use step_model::result::{Failure, FailureKind, Status, Traffic, Usage};
use step_model::value::{Data, Value};
use step_payload::NotDone;

pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();

/// How many lines of a script are shown.
const FIRST_LINES: usize = 10;

/// How many of the last lines of a failed step are shown.
const LAST_LINES: usize = 10;

/// `step build/compile: failed in 1.24s: exit status 7`
pub fn ended(path: &str, headline: &Headline, verbose: bool) -> String {
    let mut line = format!("{DIM}step{DIM:#} {BOLD}{path}{BOLD:#}{DIM}:{DIM:#} {}", outcome(headline));
    if verbose && let Some(usage) = &headline.usage {
        let _ = write!(line, " {DIM}({}){DIM:#}", used(usage));
    }
    line.push('\n');
    line
}

/// `cpu 920ms, memory 12 MB, disk 4 kB read and 20 MB written`
fn used(usage: &Usage) -> String {
    let mut text = format!("cpu {}, memory {}", in_words(usage.cpu_user + usage.cpu_system), bytes(usage.peak_memory));
    // Most steps touch no disk: what they read is in memory already.
    for (what, traffic, incoming, outgoing) in [("disk", usage.disk, "read", "written"), ("network", usage.network, "received", "sent")] {
        if let Some(traffic) = traffic.filter(|traffic| *traffic != Traffic::default()) {
            let _ = write!(text, ", {what} {} {incoming} and {} {outgoing}", bytes(traffic.incoming), bytes(traffic.outgoing));
        }
    }
    text
}

/// `failed in 1.24s: exit status 7`
fn outcome(headline: &Headline) -> String {
    let (style, word) = status(headline.status, headline.failure.as_ref());
    let style = if headline.allowed_to_fail && headline.status == Status::Failure { WARNING } else { style };
    let mut text = format!("{style}{word}{style:#}");
    if let (Some(start), Some(end)) = (headline.start, headline.end) {
        let _ = write!(text, " in {}", in_words(end.since(start)));
    }
    if let Some(reason) = reason(headline) {
        let _ = write!(text, ": {reason}");
    }
    if headline.allowed_to_fail && headline.status == Status::Failure {
        text.push_str(" (allowed to fail)");
    }
    text
}

/// The word for a status, and how it looks.
fn status(status: Status, failure: Option<&Failure>) -> (Style, &'static str) {
    match (status, failure.map(|failure| failure.kind)) {
        (Status::Success, _) => (GOOD, "ok"),
        (_, Some(FailureKind::Timeout)) => (BAD, "timed out"),
        (_, Some(FailureKind::Interrupted)) => (BAD, "interrupted"),
        (_, Some(FailureKind::Refused)) => (BAD, "refused"),
        (Status::Cancelled, _) | (_, Some(FailureKind::Cancelled)) => (WARNING, "cancelled"),
        (Status::Failure, _) => (BAD, "failed"),
        (Status::Running, _) => (WARNING, "running"),
        (Status::Unspecified, _) => (WARNING, "not run"),
    }
}

/// Why a step that executes something failed: in its own words, without the names of the steps around it. A sequence only passes a failure on.
pub fn reason(headline: &Headline) -> Option<String> {
    if headline.status == Status::Success {
        return None;
    }
    if let (Some(failure), true) = (&headline.failure, headline.limits.iter().any(|limit| limit.reached)) {
        let inner = without_steps(&failure.message);
        return Some(plain(inner.strip_prefix("exec: ").unwrap_or(inner)));
    }
    if let Some(signal) = headline.signal {
        return Some(signal_name(signal));
    }
    if let Some(code) = headline.exit_code.filter(|code| *code > 0) {
        return Some(format!("exit status {code}"));
    }
    let failure = headline.failure.as_ref()?;
    let inner = without_steps(&failure.message);
    let passed_on = headline.what == Kind::Sequence && inner != failure.message;
    (!passed_on && !inner.is_empty()).then(|| plain(inner))
}

/// `signal 9 (SIGKILL)`
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// Why the job failed, in the original's words, and what is known about the step that failed.
pub fn failure(message: &str, circumstances: Option<&str>) -> String {
    format!("{BAD}error{BAD:#}: {}\n{}", plain(message), circumstances.unwrap_or_default())
}

/// ` hint: a step is a directory`
pub fn hint(hint: &str) -> String {
    format!(" hint: {}\n", plain(hint))
}

/// What is known about a step that failed: its path, command, directory and last lines.
pub fn circumstances(path: &str, headline: &Headline, tail: &[u8]) -> String {
    let mut text = format!("  step: {path}\n{}", command_and_directory(headline));
    let lines = last_lines(tail);
    if !lines.is_empty() {
        text.push_str("  last lines:\n");
        for line in lines {
            let _ = writeln!(text, "    {DIM}|{DIM:#} {line}");
        }
    }
    text
}

/// What was executed and where, as far as the step came. Nothing for a sequence.
pub fn command_and_directory(headline: &Headline) -> String {
    let mut text = String::new();
    match headline.what {
        _ if headline.command.is_empty() => {}
        Kind::Script => script(&headline.command, &mut text),
        _ => _ = writeln!(text, "  command: {}", command(&headline.command)),
    }
    if let Some(directory) = headline.work_dir.as_ref().and_then(Value::as_str) {
        let _ = writeln!(text, "  directory: {}", plain(directory));
    }
    text
}

/// The first lines of a script as they stand.
fn script(entries: &[Value], text: &mut String) {
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| if entry.holds_sensitive() { MASK } else { entry.as_str().unwrap_or_default() })
        .flat_map(|entry| entry.lines().map(plain))
        .filter(|line| !line.trim().is_empty())
        .collect();
    if let [line] = &lines[..] {
        let _ = writeln!(text, "  script: {line}");
        return;
    }
    text.push_str("  script:\n");
    for line in lines.iter().take(FIRST_LINES) {
        let _ = writeln!(text, "    {DIM}|{DIM:#} {line}");
    }
    if lines.len() > FIRST_LINES {
        let _ = writeln!(text, "    {DIM}| and {} lines more{DIM:#}", lines.len() - FIRST_LINES);
    }
}

/// `not done: the cache `objects` is not fetched; ...`
pub fn not_done(part: &NotDone) -> String {
    format!("{WARNING}not done{WARNING:#}: {}; {}\n", plain(&part.what), plain(&part.way_out))
}

/// `SIGINT: the steps are asked to end; again, and they are killed`
pub fn asked(signal: Signal, insists: bool) -> String {
    let what = if insists { "once more: the steps are killed" } else { "the steps are asked to end; once again, and they are killed" };
    format!("{WARNING}{}{WARNING:#}: {what}\n", signal.name())
}

/// `sh -c 'echo "$HOME"'`: what a person can paste into a shell. What is sensitive is not shown.
pub fn command(words: &[Value]) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        let text = match word.data() {
            _ if word.holds_sensitive() => MASK.to_owned(),
            Data::String(text) => quoted(text),
            _ => quoted(&word.to_json().to_string()),
        };
        line.push_str(&text);
    }
    line
}

fn quoted(word: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || "_-./:=,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(harmless) { word.to_owned() } else { format!("'{}'", plain(word).replace('\'', r"'\''")) }
}

/// The last lines as they look on a terminal: after a carriage return only what was written last, and nothing that it would obey.
fn last_lines(tail: &[u8]) -> Vec<String> {
    let text = anstream::adapter::strip_bytes(tail).into_vec();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let first = lines.len().saturating_sub(LAST_LINES);
    lines[first..].iter().map(|line| plain(line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default())).collect()
}

/// `512 B`, `1.4 MB`: powers of ten, as disks and logs count.
fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1_000;
        unit += 1;
    }
    let point = if tenths < 1_000 { format!(".{}", tenths % 10) } else { String::new() };
    format!("{}{point} {}", tenths / 10, UNITS[unit])
}

/// `job failed in 1.40s`
pub fn job(status: Status, failure: Option<&Failure>, took: Option<std::time::Duration>, usage: Option<&Usage>) -> String {
    let used = usage.map(|usage| format!(" {DIM}({}){DIM:#}", used(usage))).unwrap_or_default();
    let after = took.map(|took| format!(" in {}", in_words(took))).unwrap_or_default() + &used;
    let (style, word) = match self::status(status, failure) {
        (style, "ok") => (style, "succeeded"),
        (style, word @ ("cancelled" | "interrupted" | "refused")) => return format!("job was {style}{word}{style:#}{after}\n"),
        other => other,
    };
    format!("job {style}{word}{style:#}{after}\n")
}

#[cfg(test)]
mod tests;
