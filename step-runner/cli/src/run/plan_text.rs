//! A plan as text: what would run, what it would see, and what would be contacted. Values of variables are never shown.

use super::job::Job;
use super::plan::Directories;
use crate::report::words;
use std::fmt::Write as _;
use step_model::document::{Action, Body, StepDocument};
use step_model::plan::{PlannedDocument, Target};
use step_model::reference::StepReference;

/// The plan, for `--dry-run`.
pub fn of(job: &Job, root: &PlannedDocument, directories: &Directories) -> String {
    let mut text = String::from("steps:\n");
    match (&root.document.definition.body, &root.targets[..]) {
        (Body::Sequence(sequence), [target]) if job.is_wrapped => {
            let Some(step) = sequence.steps.first() else { return text };
            line(&mut text, 1, &job.title, &action(&step.action));
            target_lines(&mut text, 1, target);
        }
        _ => document_lines(&mut text, 0, root),
    }
    let _ = writeln!(text, "directory:\n  {}", directories.work_dir);
    let mut variables: Vec<String> = job
        .request
        .variables
        .iter()
        .map(|variable| match (variable.file, variable.masked) {
            (true, _) => format!("{} (file)", variable.key),
            (false, true) => format!("{} (masked)", variable.key),
            (false, false) => variable.key.to_string(),
        })
        .collect();
    variables.sort();
    variables.dedup();
    section(&mut text, "job variables", &variables);
    let mut env: Vec<String> = job.request.env.keys().map(|name| name.to_string()).collect();
    if let (Body::Sequence(sequence), true) = (&root.document.definition.body, job.is_wrapped) {
        env.extend(sequence.steps.iter().flat_map(|step| &step.env).map(|(name, _)| name.source().to_owned()));
    }
    section(&mut text, "environment", &env);
    section(&mut text, "missing values", &job.missing);
    let not_done: Vec<String> = job.not_done.iter().map(|part| format!("{}; {}", part.what, part.way_out)).collect();
    section(&mut text, "not done here", &not_done);
    let mut contacted = Vec::new();
    remote(root, &mut contacted);
    contacted.sort();
    contacted.dedup();
    if contacted.is_empty() {
        contacted.push("nothing".into());
    }
    section(&mut text, "contacts", &contacted);
    text
}

fn section(text: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        let _ = writeln!(text, "{title}:");
        lines.iter().for_each(|line| text.push_str(&format!("  {}\n", words::plain(line))));
    }
}

fn line(text: &mut String, depth: usize, name: &str, what: &str) {
    let _ = writeln!(text, "{:width$}{}: {}", "", words::plain(name), words::plain(what), width = 2 * depth);
}

/// The steps of a sequence, or the command of an exec, one level deeper.
fn document_lines(text: &mut String, depth: usize, planned: &PlannedDocument) {
    match &planned.document.definition.body {
        Body::Exec(exec) => {
            let words: Vec<&str> = exec.command.iter().map(|word| word.source()).collect();
            line(text, depth + 1, "exec", &words.join(" "));
        }
        Body::Sequence(sequence) => {
            for (step, target) in sequence.steps.iter().zip(&planned.targets) {
                let later = match target {
                    Target::Document(_) | Target::Script => "",
                    Target::Hole { seen: Some(_) } => " (as it is now; read again when the run reaches it)",
                    Target::Hole { seen: None } => " (read when the run reaches it)",
                };
                line(text, depth + 1, &step.name, &format!("{}{later}", action(&step.action)));
                target_lines(text, depth + 1, target);
            }
        }
    }
}

fn target_lines(text: &mut String, depth: usize, target: &Target) {
    match target {
        Target::Document(planned) | Target::Hole { seen: Some(planned) } => document_lines(text, depth, planned),
        Target::Script | Target::Hole { seen: None } => {}
    }
}

fn action(action: &Action) -> String {
    match action {
        Action::Reference(reference) => described(reference),
        Action::Script(text) => script(text.source().lines()),
        Action::ScriptLegacy(script_legacy) => script(script_legacy.lines.iter().flat_map(|entry| entry.lines())),
    }
}

fn script<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    format!("$ {}", lines.join("; "))
}

/// A reference as a person would write it.
fn described(reference: &StepReference) -> String {
    let with = |path: &[std::sync::Arc<str>], file: &Option<std::sync::Arc<str>>| {
        let parts: Vec<&str> = path.iter().map(|part| &**part).chain(file.as_deref()).collect();
        parts.join("/").replace("//", "/")
    };
    match reference {
        StepReference::Local(local) => with(&local.path, &local.file),
        StepReference::Git(git) => format!("{}@{} {}", git.url.source(), git.revision, with(&git.path, &git.file)),
        StepReference::Oci(oci) => {
            let image = format!("{}/{}:{}", oci.registry.source(), oci.repository.source(), oci.tag.source());
            format!("{image} {}", with(&oci.path, &oci.file)).trim_end().to_owned()
        }
        StepReference::Dist { path } => format!("dist://{}", with(path, &None)),
        StepReference::Builtin { name } => format!("builtin://{name}"),
        StepReference::Dynamic(template) => template.source().to_owned(),
    }
}

/// Everything that is not on this machine.
fn remote(planned: &PlannedDocument, found: &mut Vec<String>) {
    remote_of(&planned.document, found);
    for target in &planned.targets {
        match target {
            Target::Document(inner) | Target::Hole { seen: Some(inner) } => remote(inner, found),
            Target::Script | Target::Hole { seen: None } => {}
        }
    }
}

fn remote_of(document: &StepDocument, found: &mut Vec<String>) {
    let Body::Sequence(sequence) = &document.definition.body else { return };
    for step in &sequence.steps {
        if let Action::Reference(reference @ (StepReference::Git(_) | StepReference::Oci(_))) = &step.action {
            found.push(described(reference));
        }
    }
}

#[cfg(test)]
mod tests;
