//! From paths to files: each definition is read once, whoever names it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use step_agent::definitions::Loader;
use step_engine::effect::LoadedDefinition;
use step_engine::event::LoadFaultKind;
use step_engine::resolve::MAXIMUM_NESTING;
use step_model::builtin::Builtins;
use step_model::diagnostic::{Place, Problem, Verdict};
use step_model::document::raw::{self, Reading};
use step_model::document::{Action, Body, Sequence, Spec, Step, StepDocument, handover, interface};
use step_model::plan::PlannedDocument;
use step_model::reference::{Digest, LocalReference, StepReference};

/// A file that was looked at.
#[derive(Debug)]
pub struct CheckedFile {
    /// As the reader would name it: relative to where they are, if it lies below.
    pub name: String,
    /// `None`: it could not be read.
    pub text: Option<String>,
    /// In the order of the text.
    pub problems: Vec<Problem>,
}

/// More problems of one file than that help nobody.
const MOST_PROBLEMS: usize = 1000;

/// Where a file is: its position among those that were read.
type Number = usize;

pub struct Walk {
    here: PathBuf,
    loader: Loader,
    builtins: Builtins,
    files: Vec<File>,
    known: BTreeMap<(Arc<str>, Arc<str>), Number>,
    /// What was asked for and cannot be read.
    unreadable: Vec<CheckedFile>,
}

struct File {
    name: String,
    dir: Arc<str>,
    text: String,
    reading: Reading,
    /// What each step refers to, in its order; empty for an exec.
    callees: Vec<Callee>,
    /// What its steps hand over.
    inner: Vec<Number>,
    /// This is what a step of that file hands over: a part of its text.
    part_of: Option<Number>,
    /// Problems that need other files.
    problems: Vec<Problem>,
}

/// What a step refers to, as far as it is at hand.
#[derive(Debug, Clone)]
enum Callee {
    File(Number),
    Builtin(Arc<PlannedDocument>),
    /// Not local, or nothing that can be read.
    Unknown,
}

impl Walk {
    /// Relative paths, and references of files that lie below, are those of `here`.
    pub fn from(here: &Path, builtins: Builtins) -> Self {
        let here = here.canonicalize().unwrap_or_else(|_| here.to_path_buf());
        let loader = Loader::new(&here.to_string_lossy(), false);
        Self { here, loader, builtins, files: Vec::new(), known: BTreeMap::new(), unreadable: Vec::new() }
    }

    /// Reads what a path names, and all that it refers to.
    pub fn begin(&mut self, path: &Path) {
        let absolute = self.here.join(path);
        let is_directory = absolute.is_dir();
        let Some(reference) = reference_to(&absolute, is_directory) else {
            return self.give_up(path, "its path is not UTF-8");
        };
        match self.loader.load("/", &reference) {
            Ok(definition) => {
                let first = self.files.len();
                self.add(definition);
                for number in first.. {
                    if number >= self.files.len() {
                        break;
                    }
                    self.follow(number);
                }
            }
            Err(fault) if fault.kind == LoadFaultKind::NotFound && is_directory => {
                self.give_up(path, "there is no `func.yml` and no `step.yml` in it")
            }
            Err(fault) if fault.kind == LoadFaultKind::NotFound => self.give_up(path, "there is no such file"),
            Err(fault) => self.give_up(path, &fault.message),
        }
    }

    /// As [`Walk::begin`] for a file whose text is not the one on disk: somebody is typing it.
    pub fn begin_typed(&mut self, path: &Path, text: &str) {
        let dir = path.parent().unwrap_or(Path::new("/"));
        let (Some(dir), Some(file)) = (dir.to_str(), path.file_name().and_then(|file| file.to_str())) else { return };
        let digest = Digest::of(text.as_bytes());
        let first = self.files.len();
        self.add(LoadedDefinition { text: text.to_owned(), digest, dir: dir.into(), file: file.into(), provenance: None });
        let mut number = first;
        while number < self.files.len() {
            self.follow(number);
            number += 1;
        }
    }

    /// Every file that was read, in the order in which it was named, and what is wrong with each.
    pub fn finish(mut self) -> Vec<CheckedFile> {
        for number in 0..self.files.len() {
            let problems = self.problems_of_calls(number);
            self.files[number].problems.extend(problems);
        }
        Cycles::default().look_for(&mut self.files);
        for number in (0..self.files.len()).rev() {
            if let Some(whole) = self.files[number].part_of {
                let problems = std::mem::take(&mut self.files[number].problems);
                self.files[whole].problems.extend(problems);
            }
        }
        let checked = |file: File| {
            let mut problems = file.reading.problems;
            problems.extend(file.problems);
            problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span.start));
            CheckedFile { name: file.name, text: Some(file.text), problems }
        };
        let files = self.files.into_iter().filter(|file| file.part_of.is_none());
        self.unreadable.into_iter().chain(files.map(checked)).collect()
    }

    fn give_up(&mut self, path: &Path, why: &str) {
        let problem = Problem::error("unreadable", format!("could not read the definition: {why}"), None);
        self.unreadable.push(CheckedFile { name: path.display().to_string(), text: None, problems: vec![problem] });
    }

    /// The number of a definition, which is read if it is new.
    fn add(&mut self, definition: LoadedDefinition) -> Number {
        let LoadedDefinition { text, dir, file, .. } = definition;
        if let Some(number) = self.known.get(&(Arc::clone(&dir), Arc::clone(&file))) {
            return *number;
        }
        let reading = raw::read(&text, &file);
        let path = Path::new(&*dir).join(&*file);
        let name = path.strip_prefix(&self.here).unwrap_or(&path).display().to_string();
        let number = self.files.len();
        self.files.push(File {
            name,
            dir: Arc::clone(&dir),
            text,
            reading,
            callees: Vec::new(),
            inner: Vec::new(),
            part_of: None,
            problems: Vec::new(),
        });
        self.known.insert((dir, file), number);
        number
    }

    /// Reads what the steps of a file refer to.
    fn follow(&mut self, number: Number) {
        let Some(document) = self.files[number].reading.draft.clone() else { return };
        let Some(sequence) = sequence(&document) else { return };
        let dir = Arc::clone(&self.files[number].dir);
        let mut named: BTreeMap<Vec<Arc<str>>, Option<Number>> = BTreeMap::new();
        for (position, step) in sequence.steps.iter().enumerate() {
            let callee = match &step.action {
                Action::Reference(StepReference::Local(reference)) => {
                    let name: Vec<Arc<str>> = reference.path.iter().chain(&reference.file).cloned().collect();
                    let known = named.get(&name).copied();
                    let found = known.unwrap_or_else(|| self.load(number, &dir, step, position, reference));
                    named.insert(name, found);
                    found.map_or(Callee::Unknown, Callee::File)
                }
                Action::Reference(StepReference::Builtin { name }) => self.builtin(number, step, name),
                Action::Reference(StepReference::Dynamic(template)) if self.files[number].part_of.is_some() => {
                    let message = step_engine::resolve::dynamic_inside(template.source());
                    let problem = Problem::error("dynamic-inside", message, self.place_of(number, step));
                    self.files[number].problems.push(problem);
                    Callee::Unknown
                }
                _ => Callee::Unknown,
            };
            self.files[number].callees.push(callee.clone());
            self.look_inside(number, &document, step, &callee);
        }
    }

    fn builtin(&mut self, caller: Number, step: &Step, name: &str) -> Callee {
        if matches!(name, "script" | "script_legacy") {
            return Callee::Unknown;
        }
        match self.builtins.get(name) {
            Ok(planned) => Callee::Builtin(Arc::clone(planned)),
            Err(fault) => {
                let problem = Problem::error("unknown-builtin", fault.to_string(), self.place_of(caller, step)).with_hint(&fault.hint);
                self.files[caller].problems.push(problem);
                Callee::Unknown
            }
        }
    }

    /// What a step hands over is looked at like a file of its own, whose problems are those of the file that it stands in.
    fn look_inside(&mut self, number: Number, document: &StepDocument, step: &Step, callee: &Callee) {
        let Some(spec) = self.spec(callee).filter(|spec| spec.takes_steps()).cloned() else { return };
        let file = &self.files[number];
        let caller = handover::Caller { document, is_file: true, text: Some(&file.text) };
        let Some(inner) = handover::read(step, &spec, caller) else { return };
        let is_known = |problem: &Problem| file.reading.problems.contains(problem);
        let problems: Vec<Problem> = inner.problems.into_iter().filter(|problem| !is_known(problem)).collect();
        let document = inner.document;
        let part = inner.draft.map(|draft| File {
            name: file.name.clone(),
            dir: Arc::clone(&file.dir),
            text: file.text.clone(),
            reading: Reading { draft: Some(draft), document, problems: Vec::new(), conditional: inner.conditional },
            callees: Vec::new(),
            inner: Vec::new(),
            part_of: Some(number),
            problems: Vec::new(),
        });
        self.files[number].problems.extend(problems);
        if let Some(part) = part {
            let inner = self.files.len();
            self.files[number].inner.push(inner);
            self.files.push(part);
        }
    }

    fn load(&mut self, caller: Number, dir: &str, step: &Step, position: usize, reference: &LocalReference) -> Option<Number> {
        let fault = match self.loader.load(dir, reference) {
            Ok(definition) => return Some(self.add(definition)),
            Err(fault) => fault,
        };
        let place = self.place_of(caller, step);
        let problem = Problem::error("not-loaded", format!("failed to load: {}", fault.message), place);
        // what an earlier step may write is looked for when the run comes to it
        let problem = match fault.kind {
            LoadFaultKind::NotFound if position > 0 => {
                Problem { verdict: Verdict::Warning, ..problem }.with_hint("an earlier step has to write it before this one is reached")
            }
            LoadFaultKind::NotFound => problem.with_hint("a reference is relative to the directory of the file that holds it"),
            LoadFaultKind::Refused => problem,
        };
        self.files[caller].problems.push(problem);
        None
    }

    /// Whether the steps of a file fit what they call.
    fn problems_of_calls(&self, number: Number) -> Vec<Problem> {
        let file = &self.files[number];
        let Some(document) = &file.reading.draft else { return Vec::new() };
        let Some(sequence) = sequence(document) else { return Vec::new() };
        let oddity = interface::oddity(document.dialect, true);
        let callees: Vec<Option<&Spec>> = file.callees.iter().map(|callee| self.spec(callee)).collect();
        // Where what is handed over says its outputs, these are what is read.
        let given = |(step, callee): (&Arc<Step>, &Option<&Spec>)| handover::seen_from_outside(step, (*callee)?);
        let given: Vec<Option<Spec>> = sequence.steps.iter().zip(&callees).map(given).collect();
        let seen: Vec<Option<&Spec>> = given.iter().zip(&callees).map(|(given, callee)| given.as_ref().or(*callee)).collect();
        let mut problems = interface::check_reads(sequence, &seen, oddity, Some(&file.text));
        for (position, (step, callee)) in sequence.steps.iter().zip(&callees).enumerate() {
            let Some(callee) = callee else { continue };
            // a place takes a while to find
            let text = (problems.len() < MOST_PROBLEMS).then_some(file.text.as_str());
            problems.extend(interface::check(step, callee, oddity, text));
            // in a draft steps may be missing, and positions are others
            if file.reading.document.is_some() {
                problems.extend(file.reading.problems_unless_template(position, callee).cloned());
            }
        }
        let unlisted = problems.split_off(problems.len().min(MOST_PROBLEMS));
        if let Some(worst) = unlisted.iter().map(|problem| problem.verdict).max() {
            let message = format!("{} more problems are not listed", unlisted.len());
            problems.push(Problem { verdict: worst, ..Problem::error("more-problems", message, None) });
        }
        problems
    }

    fn spec<'a>(&'a self, callee: &'a Callee) -> Option<&'a Spec> {
        match callee {
            Callee::File(number) => self.files.get(*number)?.reading.document.as_deref().map(|document| &document.spec),
            Callee::Builtin(planned) => Some(&planned.document.spec),
            Callee::Unknown => None,
        }
    }

    fn place_of(&self, number: Number, step: &Step) -> Option<Place> {
        self.files[number].place_of_reference(step)
    }
}

impl File {
    fn place_of_reference(&self, step: &Step) -> Option<Place> {
        let whole = step.place.as_ref()?;
        Some(interface::place_of_reference(&self.text, whole).unwrap_or_else(|| whole.clone()))
    }
}

/// Definitions that lead back to themselves: each circle is told once, where it closes.
#[derive(Default)]
struct Cycles {
    path: Vec<Number>,
    finished: Vec<bool>,
}

impl Cycles {
    fn look_for(mut self, files: &mut [File]) {
        self.finished = vec![false; files.len()];
        for number in 0..files.len() {
            self.visit(number, files);
        }
    }

    fn visit(&mut self, number: Number, files: &mut [File]) {
        if self.finished[number] {
            return;
        }
        self.path.push(number);
        for position in 0..files[number].callees.len() {
            let Callee::File(callee) = files[number].callees[position] else { continue };
            if let Some(start) = self.path.iter().position(|earlier| *earlier == callee) {
                let names: Vec<&str> = self.path[start..].iter().chain([&callee]).map(|file| files[*file].name.as_str()).collect();
                let message = format!("the definition refers to itself: {}", names.join(" > "));
                report(files, number, position, Problem::error("cycle", message, None));
            } else if self.path.len() >= MAXIMUM_NESTING {
                let message = format!("steps nest deeper than {MAXIMUM_NESTING} levels");
                report(files, number, position, Problem::error("too-deep", message, None));
            } else {
                self.visit(callee, files);
            }
        }
        for inner in files[number].inner.clone() {
            self.visit(inner, files);
        }
        self.path.pop();
        self.finished[number] = true;
    }
}

/// Puts a problem where a step names another.
fn report(files: &mut [File], number: Number, position: usize, problem: Problem) {
    let file = &mut files[number];
    let document = file.reading.draft.clone();
    let step = document.as_deref().and_then(sequence).and_then(|sequence| sequence.steps.get(position));
    let place = step.and_then(|step| file.place_of_reference(step));
    file.problems.push(Problem { place, ..problem });
}

fn sequence(document: &StepDocument) -> Option<&Sequence> {
    match &document.definition.body {
        Body::Sequence(sequence) => Some(sequence),
        Body::Exec(_) => None,
    }
}

/// An absolute path as a reference. `None`: it is not UTF-8.
fn reference_to(path: &Path, is_directory: bool) -> Option<LocalReference> {
    let mut parts: Vec<Arc<str>> = vec!["/".into()];
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir => parts.push("..".into()),
            Component::Prefix(prefix) => parts.push(prefix.as_os_str().to_str()?.into()),
            Component::Normal(name) => parts.push(name.to_str()?.into()),
        }
    }
    let file = if is_directory { None } else { parts.pop_if(|last| **last != *"/") };
    Some(LocalReference { path: parts, file })
}
