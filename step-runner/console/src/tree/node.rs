//! What the tree says about a node of a result.

use super::{Detail, Line, in_words};
use step_model::document::Action;
use step_model::reference::StepReference;
use step_model::result::{StepResult, Usage};
use step_model::value::Value;

/// Longer values are cut, unless everything is asked for.
const WIDEST: usize = 100;

/// What the tree says about a node, in the detail that is asked for.
pub fn line(node: &StepResult, is_root: bool, detail: Detail) -> Line {
    Line {
        name: name(node, is_root),
        status: node.status,
        failure: node.failure.clone().or_else(|| failure_of_code(node)),
        allowed_to_fail: node.allowed_to_fail,
        duration: node.start.zip(node.end).map(|(start, end)| end.since(start)),
        details: super::details(&node.limits, node.filtered.as_deref()).into_iter().chain(details(node, detail)).collect(),
    }
}

/// A step without a name is called after what it runs.
pub fn name(node: &StepResult, is_root: bool) -> String {
    if !node.name.is_empty() {
        return node.name.to_string();
    }
    match node.step.as_deref().map(|step| &step.action) {
        Some(Action::Reference(reference)) => reference_text(reference),
        Some(Action::Script(_) | Action::ScriptLegacy(_)) => "script".into(),
        None if is_root => "job".into(),
        None => "step".into(),
    }
}

/// A reference as it could be written in a definition, without what is secret in it.
pub fn reference_text(reference: &StepReference) -> String {
    match reference {
        StepReference::Local(local) => {
            let path = local.path.join("/");
            let path = path.strip_prefix('/').filter(|rest| rest.starts_with('/')).unwrap_or(&path).to_owned();
            local.file.as_ref().map_or_else(|| path.clone(), |file| format!("{path}/{file}"))
        }
        StepReference::Git(git) => format!("{}@{}", git.url.source(), git.revision),
        StepReference::Oci(oci) => format!("{}/{}:{}", oci.registry.source(), oci.repository.source(), oci.tag.source()),
        StepReference::Dist { path } => format!("dist://{}", path.join("/")),
        StepReference::Builtin { name } => format!("builtin://{name}"),
        StepReference::Dynamic(template) => template.source().to_owned(),
    }
}

/// A result of GitLab's does not say why a step failed, but a process that ended badly has a code.
fn failure_of_code(node: &StepResult) -> Option<step_model::result::Failure> {
    use step_model::result::{Failure, FailureKind, Status};
    let exec = node.exec.as_ref().filter(|exec| node.status == Status::Failure && exec.exit_code != 0)?;
    let message = match (exec.exit_code, exec.signal) {
        (_, Some(signal)) => format!("exec: signal {signal}"),
        (-1, None) => "exec: killed by a signal or never started".into(),
        (code, None) => format!("exec: exit status {code}"),
    };
    Some(Failure { kind: FailureKind::StepFailure, message })
}

fn details(node: &StepResult, detail: Detail) -> Vec<String> {
    let mut details = Vec::new();
    if detail == Detail::Outcomes {
        return details;
    }
    let verbose = detail == Detail::Everything;
    if let Some(exec) = node.exec.as_ref().filter(|exec| verbose && !exec.command.is_empty()) {
        let command = exec.command.iter().map(word).collect::<Vec<_>>().join(" ");
        details.push(format!("command: {command}"));
        details.push(format!("directory: {}", plain(&exec.work_dir)));
    }
    for (name, value) in &node.outputs {
        details.push(shortened(format!("{name} = {}", value.to_json()), verbose));
    }
    if !verbose {
        return details;
    }
    details.extend(node.exports.iter().map(|(name, value)| format!("export {name}={}", plain(value))));
    details.extend(node.usage.as_ref().map(used));
    details.extend(node.digest.map(|digest| format!("definition: {digest}")));
    if let Some(provenance) = &node.provenance {
        let changed = if provenance.dirty { ", and the directory differs from it" } else { "" };
        details.push(format!("commit: {}{changed}", provenance.commit));
    }
    details
}

fn used(usage: &Usage) -> String {
    let (user, system) = (in_words(usage.cpu_user), in_words(usage.cpu_system));
    let mut used = format!("used: {user} of CPU time and {system} in the system; {} of memory at the peak", size(usage.peak_memory));
    if let Some(disk) = usage.disk {
        used += &format!("; disk: {} read, {} written", size(disk.incoming), size(disk.outgoing));
    }
    if let Some(network) = usage.network {
        used += &format!("; network: {} received, {} sent", size(network.incoming), size(network.outgoing));
    }
    used
}

/// With one digit behind the point: `4.8 MiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut tenths = bytes.saturating_mul(10) >> 10;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths >>= 10;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// An argument as it could be typed.
pub fn word(value: &Value) -> String {
    let text = plain(value);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,[]".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_json().to_string(), str::to_owned)
}

fn shortened(text: String, verbose: bool) -> String {
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) if !verbose => format!("{}… ({} bytes)", &text[..end], text.len()),
        _ => text,
    }
}
