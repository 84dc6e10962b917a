//! A plan before it runs: what would run, what it would see, and what would be contacted; as text for people, as an object for programs.
//! Values of variables are never shown.

use super::job::Job;
use super::plan::Directories;
use serde::Serialize;
use std::fmt::{self, Write as _};
use step_console::complaint::plain;
use step_model::document::{Action, Body, Step, StepDocument};
use step_model::limits::Limits;
use step_model::plan::{PlannedDocument, Target};
use step_model::reference::StepReference;

/// What `--dry-run` tells. As JSON: `docs/reference/events.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanOutline {
    #[serde(flatten)]
    work: Work,
    directory: String,
    variables: Vec<VariableOutline>,
    /// Names.
    environment: Vec<String>,
    /// Of every step, as they are typed.
    limits: Vec<String>,
    missing_values: Vec<String>,
    not_done: Vec<NotDoneOutline>,
    contacts: Vec<String>,
}

/// What a definition does: a command, or steps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
struct Work {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StepOutline>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct StepOutline {
    name: String,
    /// A reference as a person would write it, or a script in one line.
    action: String,
    read: Read,
    /// Of its own, besides those of the job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<String>,
    #[serde(flatten)]
    work: Work,
}

/// When the definition of a step is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Read {
    /// It will run as it is.
    Now,
    /// As it is now; read again when the run reaches it.
    NowAndAgain,
    /// Not before the run reaches it.
    Later,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct VariableOutline {
    name: String,
    file: bool,
    masked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct NotDoneOutline {
    part: &'static str,
    what: String,
    way_out: String,
}

/// The plan, for `--dry-run`.
pub fn of(job: &Job, root: &PlannedDocument, directories: &Directories, limits: Limits) -> PlanOutline {
    let work = match (&root.document.definition.body, &root.targets[..]) {
        (Body::Sequence(sequence), [target]) if job.is_wrapped => {
            let step = sequence.steps.first().map(|first| step(&job.title, &first.action, target));
            Work { command: None, steps: step.into_iter().collect() }
        }
        _ => work(root),
    };
    let outline = |variable: &step_model::request::Variable| VariableOutline {
        name: variable.key.to_string(),
        file: variable.file,
        masked: variable.masked,
    };
    let mut variables: Vec<VariableOutline> = job.request.variables.iter().map(outline).collect();
    variables.sort();
    variables.dedup();
    let mut environment: Vec<String> = job.request.env.keys().map(|name| name.to_string()).collect();
    if let (Body::Sequence(sequence), true) = (&root.document.definition.body, job.is_wrapped) {
        environment.extend(sequence.steps.iter().flat_map(|step| &step.env).map(|(name, _)| name.source().to_owned()));
    }
    let not_done =
        |part: &step_payload::NotDone| NotDoneOutline { part: part.part, what: part.what.clone(), way_out: part.way_out.clone() };
    let mut contacts = Vec::new();
    remote(root, &mut contacts);
    contacts.sort();
    contacts.dedup();
    PlanOutline {
        work,
        directory: directories.work_dir.to_string(),
        variables,
        environment,
        limits: written(limits),
        missing_values: job.missing.clone(),
        not_done: job.not_done.iter().map(not_done).collect(),
        contacts,
    }
}

fn written(limits: Limits) -> Vec<String> {
    limits.each().map(|(name, value)| format!("{name}={value}")).collect()
}

/// The steps of a sequence, or the command of an exec.
fn work(planned: &PlannedDocument) -> Work {
    match &planned.document.definition.body {
        Body::Exec(exec) => Work { command: Some(exec.command.iter().map(|word| word.source().to_owned()).collect()), steps: Vec::new() },
        Body::Sequence(sequence) => {
            let steps = sequence.steps.iter().zip(&planned.targets);
            let outline = |(position, (it, target)): (usize, (&std::sync::Arc<Step>, &Target))| {
                let outline = StepOutline { limits: written(it.limits), ..step(&it.name, &it.action, target) };
                match planned.handovers.get(&position) {
                    // What runs is what it hands over.
                    Some(inner) => StepOutline { work: work(inner), ..outline },
                    None => outline,
                }
            };
            Work { command: None, steps: steps.enumerate().map(outline).collect() }
        }
    }
}

fn step(name: &str, what: &Action, target: &Target) -> StepOutline {
    let (read, work) = match target {
        Target::Script => (Read::Now, Work::default()),
        Target::Document(planned) => (Read::Now, work(planned)),
        Target::Hole { seen: Some(planned) } => (Read::NowAndAgain, work(planned)),
        Target::Hole { seen: None } => (Read::Later, Work::default()),
    };
    StepOutline { name: name.to_owned(), action: action(what), read, limits: Vec::new(), work }
}

impl fmt::Display for PlanOutline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from("steps:\n");
        work_lines(&mut text, 0, &self.work);
        section(&mut text, "directory", [self.directory.clone()]);
        let mut variables: Vec<String> = self
            .variables
            .iter()
            .map(|VariableOutline { name, file, masked }| match (file, masked) {
                (true, _) => format!("{name} (file)"),
                (false, true) => format!("{name} (masked)"),
                (false, false) => name.clone(),
            })
            .collect();
        variables.dedup();
        section(&mut text, "job variables", variables);
        section(&mut text, "environment", self.environment.iter().cloned());
        section(&mut text, "limits of each step", self.limits.iter().cloned());
        section(&mut text, "missing values", self.missing_values.iter().cloned());
        section(&mut text, "not done here", self.not_done.iter().map(|part| format!("{}; {}", part.what, part.way_out)));
        if self.contacts.is_empty() {
            section(&mut text, "contacts", ["nothing".to_owned()]);
        } else {
            section(&mut text, "contacts", self.contacts.iter().cloned());
        }
        f.write_str(&text)
    }
}

fn section(text: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_some() {
        let _ = writeln!(text, "{title}:");
        lines.for_each(|line| text.push_str(&format!("  {}\n", plain(&line))));
    }
}

fn line(text: &mut String, depth: usize, name: &str, what: &str) {
    let _ = writeln!(text, "{:width$}{}: {}", "", plain(name), plain(what), width = 2 * depth);
}

fn work_lines(text: &mut String, depth: usize, work: &Work) {
    if let Some(command) = &work.command {
        line(text, depth + 1, "exec", &command.join(" "));
    }
    for step in &work.steps {
        let later = match step.read {
            Read::Now => "",
            Read::NowAndAgain => " (as it is now; read again when the run reaches it)",
            Read::Later => " (read when the run reaches it)",
        };
        let limits = if step.limits.is_empty() { String::new() } else { format!(" (at most {})", step.limits.join(", ")) };
        line(text, depth + 1, &step.name, &format!("{}{limits}{later}", step.action));
        work_lines(text, depth + 1, &step.work);
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
