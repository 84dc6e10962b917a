//! From a document to a plan: asks for every definition that is named, checks all of them, and marks the holes.
//!
//! Definitions are loaded once each, whoever names them. When all are there, the plan is built from the root downwards; a definition that several
//! steps name is planned once (twice, if one of them stands where an earlier step may change it and another does not).

mod build;
mod stand_in;

pub use stand_in::{StandIn, StandIns};

use crate::effect::{Effect, LoadId, LoadedDefinition};
use crate::event::{LoadFault, LoadFaultKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::builtin::{Builtins, UnknownBuiltin};
use step_model::diagnostic::Problem;
use step_model::document::raw::{self, Reading};
use step_model::document::{Action, Body, Dialect, Spec, Step, StepDocument, ValueTemplate, handover};
use step_model::expression::Template;
use step_model::plan::{PlannedDocument, Provenance};
use step_model::reference::{Digest, LocalReference, StepReference};
use step_model::result::{Failure, FailureKind};

/// How deep steps may nest (compatibility.md, limits).
pub const MAXIMUM_NESTING: usize = 64;

/// A document on its way to a plan.
#[derive(Debug)]
pub struct Resolver {
    root: Arc<StepDocument>,
    dir: Arc<str>,
    builtins: Builtins,
    /// The file whose text the root was read from, where it is a part of one.
    file: Arc<str>,
    /// The root runs in another environment.
    is_inner: bool,
    definitions: BTreeMap<Location, Definition>,
    /// What each reference led to. `None`: still asked for.
    found: BTreeMap<Named, Option<Result<Location, LoadFault>>>,
    open: BTreeMap<LoadId, Open>,
    /// Steps that may hand over steps to what each reference leads to.
    callers: BTreeMap<Named, Vec<Giver>>,
    loads: u32,
    stand_ins: StandIns,
}

/// Directory and file of a definition: its identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Location {
    dir: Arc<str>,
    file: Arc<str>,
}

/// A reference as seen from a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    from: Arc<str>,
    path: Vec<Arc<str>>,
    file: Option<Arc<str>>,
}

#[derive(Debug)]
struct Open {
    named: Named,
    /// How many documents lie between the root and this one, at least.
    depth: usize,
}

/// A step with inputs that its callee may take as steps.
#[derive(Debug, Clone)]
struct Giver {
    step: Arc<Step>,
    holder: Arc<StepDocument>,
    dir: Arc<str>,
    depth: usize,
}

/// A definition that was loaded.
#[derive(Debug)]
struct Definition {
    reading: Reading,
    text: Arc<str>,
    digest: Digest,
    provenance: Option<Provenance>,
}

/// Problems of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentProblems {
    /// Directory and file, as in messages; empty for the job itself.
    pub file: Arc<str>,
    /// The text of the file, to show the place; `None` for the job itself.
    pub text: Option<Arc<str>>,
    pub problems: Vec<Problem>,
}

/// What a step asks for, as far as the engine cares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted<'a> {
    Script,
    ScriptLegacy,
    Local(&'a LocalReference),
    Dynamic(&'a Template),
    /// By name. Whether there is one is for the registry to say.
    Builtin(&'a str),
    Remote(Remote),
}

/// What would have to be fetched, in words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Remote {
    Repository(String),
    /// What the original bundles.
    Bundled(String),
}

impl Resolver {
    /// Begins with the job itself (or a definition file), whose relative references are relative to `dir`.
    pub fn start(root: Arc<StepDocument>, dir: Arc<str>, builtins: Builtins) -> (Self, Vec<Effect>) {
        Self::begin(root, dir, "".into(), builtins, false, LoadId(0))
    }

    /// Begins with steps that are handed over: a part of `file` in `dir`. Loads are numbered from `first`.
    pub(crate) fn start_inner(
        root: Arc<StepDocument>,
        dir: Arc<str>,
        file: Arc<str>,
        builtins: Builtins,
        first: LoadId,
    ) -> (Self, Vec<Effect>) {
        Self::begin(root, dir, file, builtins, true, first)
    }

    fn begin(
        root: Arc<StepDocument>,
        dir: Arc<str>,
        file: Arc<str>,
        builtins: Builtins,
        is_inner: bool,
        first: LoadId,
    ) -> (Self, Vec<Effect>) {
        let mut resolver = Self {
            root: Arc::clone(&root),
            dir: Arc::clone(&dir),
            builtins,
            file,
            is_inner,
            definitions: BTreeMap::new(),
            found: BTreeMap::new(),
            open: BTreeMap::new(),
            callers: BTreeMap::new(),
            loads: first.0,
            stand_ins: StandIns::default(),
        };
        let effects = resolver.ask_for_references(&root, &dir, 0);
        (resolver, effects)
    }

    /// Puts something else in the place of steps. Their definitions are loaded all the same, for what they take and give.
    pub fn with_stand_ins(self, stand_ins: StandIns) -> Self {
        Self { stand_ins, ..self }
    }

    /// The outcome of a `Load`; more loads may follow. Complete when there are none and [`Resolver::is_complete`]. An outcome that nobody waits for
    /// is ignored.
    pub fn on_loaded(&mut self, load: LoadId, outcome: Result<LoadedDefinition, LoadFault>) -> Vec<Effect> {
        let Some(Open { named, depth }) = self.open.remove(&load) else { return Vec::new() };
        let definition = match outcome {
            Ok(definition) => definition,
            Err(fault) => {
                self.found.insert(named, Some(Err(fault)));
                return Vec::new();
            }
        };
        let location = Location { dir: definition.dir, file: definition.file };
        self.found.insert(named.clone(), Some(Ok(location.clone())));
        if self.definitions.contains_key(&location) {
            return self.ask_for_what_is_given(&named, &location);
        }
        let reading = raw::read(&definition.text, &location.file);
        let draft = reading.draft.clone();
        let known = Definition { reading, text: Arc::from(definition.text), digest: definition.digest, provenance: definition.provenance };
        self.definitions.insert(location.clone(), known);
        let mut effects = draft.map(|document| self.ask_for_references(&document, &location.dir, depth)).unwrap_or_default();
        effects.extend(self.ask_for_what_is_given(&named, &location));
        effects
    }

    /// The number of the load that would be asked for next.
    pub(crate) fn next_load(&self) -> LoadId {
        LoadId(self.loads)
    }

    /// The references in what steps hand over to a definition that is known now.
    fn ask_for_what_is_given(&mut self, named: &Named, location: &Location) -> Vec<Effect> {
        let draft = self.definitions.get(location).and_then(|definition| definition.reading.draft.clone());
        let Some(callee) = draft.filter(|callee| callee.spec.takes_steps()) else { return Vec::new() };
        let givers = self.callers.remove(named).unwrap_or_default();
        givers.iter().flat_map(|giver| self.ask_for_inner(giver, &callee.spec)).collect()
    }

    fn ask_for_inner(&mut self, giver: &Giver, callee: &Spec) -> Vec<Effect> {
        let caller = handover::Caller { document: &giver.holder, is_file: false, text: None };
        let inner = handover::read(&giver.step, callee, caller).and_then(|inner| inner.document);
        inner.map(|inner| self.ask_for_references(&inner, &giver.dir, giver.depth + 1)).unwrap_or_default()
    }

    /// Whether every load has its outcome.
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    /// The planned document, and every problem of every document that was reached (warnings too). A reference whose load has no outcome yet is a
    /// hole.
    /// # Errors
    /// The problems, when one of them is an error.
    pub fn finish(self) -> Result<(Arc<PlannedDocument>, Vec<DocumentProblems>), Vec<DocumentProblems>> {
        build::plan(&self)
    }

    /// How a job would end that ran into the first error, in the words of the original: `step "a": failed to load: ...`. For a status message of
    /// what [`Resolver::finish`] refuses; `None` where it does not.
    pub fn refusal(&self) -> Option<Failure> {
        let message = build::refusal(self)?;
        Some(Failure { kind: FailureKind::BadInput, message })
    }

    fn ask_for_references(&mut self, document: &Arc<StepDocument>, dir: &Arc<str>, depth: usize) -> Vec<Effect> {
        let Body::Sequence(sequence) = &document.definition.body else { return Vec::new() };
        if depth >= MAXIMUM_NESTING {
            return Vec::new();
        }
        let mut effects = Vec::new();
        for step in &sequence.steps {
            let giver = || Giver { step: Arc::clone(step), holder: Arc::clone(document), dir: Arc::clone(dir), depth };
            let reference = match wanted(&step.action) {
                Wanted::Local(reference) => reference,
                Wanted::Builtin(name) => {
                    if let Some(callee) = self.builtins.get(name).ok().filter(|callee| callee.document.spec.takes_steps()).cloned() {
                        effects.extend(self.ask_for_inner(&giver(), &callee.document.spec));
                    }
                    continue;
                }
                _ => continue,
            };
            let named = Named::from(dir, reference);
            if may_give_steps(step) {
                self.callers.entry(named.clone()).or_default().push(giver());
            }
            if let Some(found) = self.found.get(&named) {
                if let Some(Ok(location)) = found.clone() {
                    effects.extend(self.ask_for_what_is_given(&named, &location));
                }
                continue;
            }
            let load = LoadId(self.loads);
            self.loads = self.loads.wrapping_add(1);
            self.found.insert(named.clone(), None);
            self.open.insert(load, Open { named, depth: depth + 1 });
            effects.push(Effect::Load { load, from: Arc::clone(dir), reference: reference.clone() });
        }
        effects
    }
}

/// Whether the step gives a list, which its callee may take unexpanded.
fn may_give_steps(step: &Step) -> bool {
    step.inner.is_some() || step.inputs.iter().any(|(_, value)| matches!(value, ValueTemplate::Array(_)))
}

impl Named {
    fn from(dir: &Arc<str>, reference: &LocalReference) -> Self {
        // Seen from anywhere, an absolute path is the same.
        let is_absolute = reference.path.first().is_some_and(|part| &**part == "/");
        let from = if is_absolute { Arc::from("/") } else { Arc::clone(dir) };
        Self { from, path: reference.path.clone(), file: reference.file.clone() }
    }
}

/// What the action of a step asks for.
pub(crate) fn wanted(action: &Action) -> Wanted<'_> {
    match action {
        Action::Script(_) => Wanted::Script,
        Action::ScriptLegacy(_) => Wanted::ScriptLegacy,
        Action::Reference(reference) => wanted_by_reference(reference),
    }
}

pub(crate) fn wanted_by_reference(reference: &StepReference) -> Wanted<'_> {
    match reference {
        StepReference::Local(local) => Wanted::Local(local),
        StepReference::Dynamic(template) => Wanted::Dynamic(template),
        StepReference::Builtin { name } if &**name == "script" => Wanted::Script,
        StepReference::Builtin { name } if &**name == "script_legacy" => Wanted::ScriptLegacy,
        StepReference::Dist { path } if matches!(&path[..], [name] if &**name == "script") => Wanted::Script,
        StepReference::Builtin { name } => Wanted::Builtin(name),
        StepReference::Dist { path } => Wanted::Remote(Remote::Bundled(path.join("/"))),
        StepReference::Git(git) => Wanted::Remote(Remote::Repository(format!("{}@{}", git.url.source(), git.revision))),
        StepReference::Oci(oci) => {
            let prefix = if oci.registry.source().is_empty() { String::new() } else { format!("{}/", oci.registry.source()) };
            Wanted::Remote(Remote::Repository(format!("{prefix}{}:{}", oci.repository.source(), oci.tag.source())))
        }
    }
}

/// A reference that became known only now.
/// # Errors
/// It is none of the forms.
pub(crate) fn parse_reference(text: &str, dialect: Dialect) -> Result<StepReference, String> {
    StepReference::parse(text, dialect).map_err(|error| format!("compiling reference: {error}"))
}

impl std::fmt::Display for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Repository(what) => write!(f, "`{what}` is not on this machine, and this build does not fetch remote steps yet"),
            Self::Bundled(name) => write!(f, "`dist://{name}` is not among the steps of this program"),
        }
    }
}

impl Remote {
    fn hint(&self, builtins: &Builtins) -> String {
        match self {
            Self::Bundled(name) if builtins.get(name).is_ok() => format!("it is called `builtin://{name}`"),
            _ => "copy the step into the repository and refer to its directory: `./steps/name`".into(),
        }
    }
}

/// With the way out, where there is no other place for it.
pub(crate) fn no_builtin(fault: &UnknownBuiltin) -> String {
    format!("{fault}: {}", fault.hint)
}

/// Where steps run that were handed over, nothing is computed that names a definition: nobody there could fetch or verify it.
pub fn dynamic_inside(source: &str) -> String {
    format!("`{source}` is computed, and inside of another environment nothing is fetched: resolve it in an earlier step outside")
}

pub(crate) fn remote_inside(what: &Remote) -> String {
    format!("{what}, and inside of another environment nothing is fetched: resolve it in an earlier step outside")
}

pub(crate) fn nests_too_deep() -> String {
    format!("steps nest deeper than {MAXIMUM_NESTING} levels")
}

/// `path` begins and ends with the same definition.
pub(crate) fn refers_to_itself(path: &[String]) -> String {
    format!("the definition refers to itself: {}", path.join(" > "))
}

/// Directory and file of a planned document; empty for the job itself.
pub(crate) fn file_name(planned: &PlannedDocument) -> String {
    if planned.file.is_empty() { String::new() } else { format!("{}/{}", planned.dir, planned.file) }
}

/// Plans a definition that the run has reached: everything that it refers to lies behind a step that has run.
pub(crate) fn plan_alone(definition: LoadedDefinition, builtins: &Builtins) -> (Option<Arc<PlannedDocument>>, Vec<Problem>) {
    let reading = raw::read(&definition.text, &definition.file);
    let mut problems = reading.problems;
    let Some(document) = reading.document else { return (None, problems) };
    problems.extend(build::refused_references(&document, builtins));
    let planned = PlannedDocument {
        targets: build::holes(&document, builtins),
        file: definition.file,
        digest: Some(definition.digest),
        provenance: definition.provenance,
        ..PlannedDocument::of_job(document, definition.dir)
    };
    (Some(Arc::new(planned)), problems)
}

/// The input that a job itself would need and cannot get: `failed to parse spec definition: input "x" required, but not defined`. A caller that has
/// to answer before the run begins asks here; a run of such a document fails with the same text.
pub fn missing_input(root: &StepDocument) -> Option<crate::run::MissingInput> {
    crate::run::missing_input(&root.spec)
}

impl LoadFault {
    fn is_not_found(&self) -> bool {
        self.kind == LoadFaultKind::NotFound
    }
}

#[cfg(test)]
mod tests;
