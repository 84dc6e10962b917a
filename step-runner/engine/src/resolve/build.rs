//! The plan from the root downwards, once every definition is there.

use super::{DocumentProblems, Location, MAXIMUM_NESTING, Named, Resolver, StandIn, Wanted, nests_too_deep, refers_to_itself, wanted};
use crate::event::LoadFault;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use step_model::builtin::Builtins;
use step_model::diagnostic::{Problem, Verdict};
use step_model::document::raw::{Conditional, problems_unless_template};
use step_model::document::{Action, Body, Spec, Step, StepDocument, handover, interface};
use step_model::plan::{PlannedDocument, Target};
use step_model::reference::LocalReference;

/// Builds the plan.
/// # Errors
/// The problems, when one of them is an error.
pub(super) fn plan(resolver: &Resolver) -> Result<(Arc<PlannedDocument>, Vec<DocumentProblems>), Vec<DocumentProblems>> {
    let mut builder = Builder::new(resolver);
    let root = builder.root();
    let problems = builder.into_problems();
    let is_refused = problems.iter().flat_map(|document| &document.problems).any(Problem::is_error);
    if is_refused { Err(problems) } else { Ok((root.document, problems)) }
}

/// The first error, as a run would end with it.
pub(super) fn refusal(resolver: &Resolver) -> Option<String> {
    let mut builder = Builder::new(resolver);
    builder.root();
    builder.failure
}

/// The names of the steps around a definition, where something stands for a step in it.
type Way = Option<Vec<Arc<str>>>;

struct Builder<'a> {
    resolver: &'a Resolver,
    /// By location, whether an earlier step may change it, and the way to it where something stands for a step in it. `None`: it cannot be used.
    planned: BTreeMap<(Location, bool, Way), Option<Built>>,
    /// The definitions between the root and the one that is planned now.
    path: Vec<Location>,
    problems: BTreeMap<Option<Location>, Vec<Problem>>,
    /// Definitions whose problems have been told. What cannot change is reached first, so no error is told as a warning.
    said: BTreeSet<Location>,
    /// Inside a definition whose problems have been told.
    is_told: bool,
    /// The names of the steps between the root and the one that is planned now.
    names: Vec<Arc<str>>,
    /// The first error, as a run would end with it.
    failure: Option<String>,
}

#[derive(Clone)]
struct Built {
    document: Arc<PlannedDocument>,
    /// Levels of steps below it.
    height: usize,
}

impl<'a> Builder<'a> {
    fn new(resolver: &'a Resolver) -> Self {
        Self {
            resolver,
            planned: BTreeMap::new(),
            path: Vec::new(),
            problems: BTreeMap::new(),
            said: BTreeSet::new(),
            is_told: false,
            names: Vec::new(),
            failure: None,
        }
    }

    fn root(&mut self) -> Built {
        let resolver = self.resolver;
        let root = PlannedDocument {
            file: Arc::clone(&resolver.file),
            ..PlannedDocument::of_job(Arc::clone(&resolver.root), Arc::clone(&resolver.dir))
        };
        if let Some(missing) = super::missing_input(&self.resolver.root) {
            self.say(None, Problem::error("missing-input", missing.to_string(), None));
        }
        let built = self.finish(root, None, false, &[]);
        if resolver.is_inner {
            self.refuse_computed_references(&built.document, None);
        }
        built
    }

    /// Finds a target for every step. `changeable`: a step that runs earlier may rewrite what is here.
    fn finish(
        &mut self,
        mut planned: PlannedDocument,
        location: Option<&Location>,
        changeable: bool,
        conditional: &[Conditional],
    ) -> Built {
        let document = Arc::clone(&planned.document);
        let Body::Sequence(sequence) = &document.definition.body else {
            return Built { document: Arc::new(planned), height: 0 };
        };
        let mut height = 0;
        for (index, step) in sequence.steps.iter().enumerate() {
            let is_changeable_itself = changeable;
            let changeable = changeable || index > 0;
            if let Some(stand_in) = self.resolver.stand_ins.of(&self.names, step) {
                let target = self.stand_in(step, &stand_in, &planned, location);
                planned.targets.push(target);
                continue;
            }
            if let Some(problem) = refused_reference(step, &self.resolver.builtins) {
                self.say(location, problem);
            }
            let target = match wanted(&step.action) {
                Wanted::Script | Wanted::ScriptLegacy => Target::Script,
                Wanted::Dynamic(_) | Wanted::Remote(_) => Target::Hole { seen: None },
                Wanted::Builtin(name) => match self.resolver.builtins.get(name).cloned() {
                    Err(_) => Target::Hole { seen: None },
                    Ok(callee) => {
                        let verdict = |problem: Problem| problem;
                        self.check_inputs((index, step), &callee.document.spec, &planned, location, conditional, verdict);
                        let given = self.given((index, step), &callee.document.spec, &mut planned, location, is_changeable_itself);
                        height = height.max(given);
                        Target::Document(callee)
                    }
                },
                Wanted::Local(reference) => {
                    let seen = self.local((index, step), reference, &planned, location, changeable, conditional);
                    if let Some(callee) = seen.as_ref().map(|built| Arc::clone(&built.document)) {
                        let given = self.given((index, step), &callee.document.spec, &mut planned, location, changeable);
                        height = height.max(given);
                    }
                    height = height.max(seen.as_ref().map_or(0, |built| built.height));
                    match seen {
                        Some(built) if !changeable => Target::Document(built.document),
                        seen => Target::Hole { seen: seen.map(|built| built.document) },
                    }
                }
            };
            planned.targets.push(target);
        }
        self.check_reads(&planned, location, changeable);
        Built { document: Arc::new(planned), height: height + 1 }
    }

    /// Something stands for a step, in whatever state its definition is.
    fn stand_in(&mut self, step: &Step, stand_in: &StandIn, caller: &PlannedDocument, location: Option<&Location>) -> Target {
        let resolver = self.resolver;
        let real = match wanted(&step.action) {
            Wanted::Local(reference) => {
                let found = resolver.found.get(&Named::from(&caller.dir, reference)).and_then(Option::as_ref);
                let definition = found.and_then(|found| resolver.definitions.get(found.as_ref().ok()?));
                definition.and_then(|definition| Some(&definition.reading.document.as_ref()?.spec))
            }
            Wanted::Builtin(name) => resolver.builtins.get(name).ok().map(|planned| &planned.document.spec),
            _ => None,
        };
        let document = stand_in.document(step, real);
        let text = location.and_then(|location| resolver.definitions.get(location)).map(|definition| &*definition.text);
        if !matches!(step.action, Action::Script(_) | Action::ScriptLegacy(_)) {
            for problem in interface::check(step, &document.document.spec, oddity(caller), text) {
                self.say(location, problem);
            }
        }
        Target::Document(document)
    }

    /// Whether the outputs that a sequence reads are those that its steps declare.
    fn check_reads(&mut self, planned: &PlannedDocument, location: Option<&Location>, changeable: bool) {
        let Body::Sequence(sequence) = &planned.document.definition.body else { return };
        let callee = |target: &Target| match target {
            Target::Document(planned) | Target::Hole { seen: Some(planned) } => Some(Arc::clone(&planned.document)),
            Target::Script | Target::Hole { seen: None } => None,
        };
        let callees: Vec<_> = planned.targets.iter().map(callee).collect();
        // Where what is handed over says its outputs, these are what is read.
        let from_outside: Vec<_> =
            sequence.steps.iter().zip(&callees).map(|(step, callee)| handover::seen_from_outside(step, &callee.as_ref()?.spec)).collect();
        let specs: Vec<_> =
            from_outside.iter().zip(&callees).map(|(seen, callee)| seen.as_ref().or(callee.as_ref().map(|callee| &callee.spec))).collect();
        let text = location.and_then(|location| self.resolver.definitions.get(location)).map(|definition| &*definition.text);
        // What is seen of a step that has another one before it may still change, so nothing is certain there.
        let oddity = if changeable { Verdict::Warning } else { oddity(planned) };
        for problem in interface::check_reads(sequence, &specs, oddity, text) {
            self.say(location, problem);
        }
    }

    /// What a step hands over to a callee with this spec is planned as a document of its own. Returns its levels of steps.
    fn given(
        &mut self,
        (index, step): (usize, &Step),
        callee: &Spec,
        caller: &mut PlannedDocument,
        location: Option<&Location>,
        changeable: bool,
    ) -> usize {
        let definition = location.and_then(|location| self.resolver.definitions.get(location));
        let text = definition.map(|definition| &*definition.text);
        let holder = handover::Caller { document: &caller.document, is_file: !caller.file.is_empty(), text };
        let Some(inner) = handover::read(step, callee, holder) else { return 0 };
        let severity = if changeable { Verdict::Warning } else { Verdict::Error };
        let is_known = |problem: &Problem| definition.is_some_and(|definition| definition.reading.problems.contains(problem));
        for problem in inner.problems.into_iter().filter(|problem| !is_known(problem)) {
            self.say(location, Problem { verdict: problem.verdict.min(severity), ..problem });
        }
        let Some(document) = inner.document else { return 0 };
        let planned = PlannedDocument { file: Arc::clone(&caller.file), ..PlannedDocument::of_job(document, Arc::clone(&caller.dir)) };
        self.names.push(Arc::clone(&step.name));
        // What runs before the step may change what is read for it.
        let built = self.finish(planned, location, changeable || index > 0, &inner.conditional);
        self.refuse_computed_references(&built.document, location);
        self.names.pop();
        caller.handovers.insert(index, built.document);
        built.height
    }

    /// Nothing is fetched where inner steps run, so what they refer to must be known outside.
    fn refuse_computed_references(&mut self, inner: &PlannedDocument, location: Option<&Location>) {
        let Body::Sequence(sequence) = &inner.document.definition.body else { return };
        for (step, target) in sequence.steps.iter().zip(&inner.targets) {
            if let Wanted::Dynamic(template) = wanted(&step.action) {
                let message = in_step(step, &super::dynamic_inside(template.source()));
                self.say(location, Problem::error("dynamic-inside", message, step.place.clone()));
            }
            if let Target::Document(planned) = target {
                self.refuse_computed_references(planned, None);
            }
        }
    }

    /// The definition that a step refers to, if it is there and fits.
    fn local(
        &mut self,
        (index, step): (usize, &Step),
        reference: &LocalReference,
        caller: &PlannedDocument,
        caller_location: Option<&Location>,
        changeable: bool,
        conditional: &[Conditional],
    ) -> Option<Built> {
        let named = Named::from(&caller.dir, reference);
        let location = match self.resolver.found.get(&named)?.as_ref()? {
            Ok(location) => location.clone(),
            Err(fault) => {
                self.say_fault(step, fault, caller_location, changeable);
                return None;
            }
        };
        let severity = if changeable { Verdict::Warning } else { Verdict::Error };
        let problem =
            |code, message: String| Problem { verdict: severity, ..Problem::error(code, in_step(step, &message), step.place.clone()) };
        if let Some(start) = self.path.iter().position(|earlier| *earlier == location) {
            let path: Vec<_> = self.path.get(start..).unwrap_or_default().iter().chain([&location]).map(Location::to_string).collect();
            self.say(caller_location, problem("cycle", refers_to_itself(&path)));
            return None;
        }
        let verdict = |problem: Problem| Problem { verdict: problem.verdict.min(severity), ..problem };
        let resolver = self.resolver;
        if let Some(callee) = resolver.definitions.get(&location).and_then(|definition| definition.reading.draft.as_ref()) {
            self.check_inputs((index, step), &callee.spec, caller, caller_location, conditional, verdict);
        }
        self.names.push(Arc::clone(&step.name));
        let built = self.definition(&location, changeable);
        self.names.pop();
        let built = built?;
        // The depth of a level is the length of the path; the root's steps are at one.
        if self.path.len() + 1 + built.height > MAXIMUM_NESTING {
            self.say(caller_location, problem("too-deep", nests_too_deep()));
            return None;
        }
        Some(built)
    }

    /// Whether what a step gives fits what its definition takes, as far as that can be seen.
    fn check_inputs(
        &mut self,
        (index, step): (usize, &Step),
        callee: &Spec,
        caller: &PlannedDocument,
        caller_location: Option<&Location>,
        conditional: &[Conditional],
        verdict: impl Fn(Problem) -> Problem,
    ) {
        let definition = caller_location.and_then(|location| self.resolver.definitions.get(location));
        let text = definition.map(|definition| &*definition.text);
        let conditional = problems_unless_template(conditional, index, callee).cloned();
        for problem in interface::check(step, callee, oddity(caller), text).into_iter().chain(conditional).map(verdict) {
            if problem.is_error() {
                let prefix = if problem.code == "missing-input" { "failed to parse spec definition: " } else { "" };
                let message = in_step(step, &format!("{prefix}{}", problem.message));
                self.fail(message);
            }
            self.say(caller_location, problem);
        }
    }

    /// Keeps the first failure, with the names of the steps around it.
    fn fail(&mut self, message: String) {
        let names = self.names.iter().map(|name| format!("step \"{name}\": "));
        self.failure.get_or_insert_with(|| names.collect::<String>() + &message);
    }

    fn definition(&mut self, location: &Location, changeable: bool) -> Option<Built> {
        let way = self.resolver.stand_ins.are_below(&self.names).then(|| self.names.clone());
        let key = (location.clone(), changeable, way);
        if let Some(known) = self.planned.get(&key) {
            return known.clone();
        }
        let definition = self.resolver.definitions.get(location)?;
        let was_told = self.is_told;
        self.is_told = !self.said.insert(location.clone());
        for problem in &definition.reading.problems {
            // What an earlier step may still write may be right when the run comes to it.
            let verdict = if changeable { Verdict::Warning } else { problem.verdict };
            if verdict == Verdict::Error && !self.is_told {
                self.fail(format!("failed to load: {location}: {problem}"));
            }
            self.say(Some(location), Problem { verdict, ..problem.clone() });
        }
        // A document with errors is followed as far as it can be read, so that all problems are told at once. It is not used.
        let built = definition.reading.draft.as_ref().map(|document| {
            let planned = PlannedDocument {
                file: Arc::clone(&location.file),
                digest: Some(definition.digest),
                provenance: definition.provenance.clone(),
                ..PlannedDocument::of_job(Arc::clone(document), Arc::clone(&location.dir))
            };
            self.path.push(location.clone());
            let built = self.finish(planned, Some(location), changeable, &definition.reading.conditional);
            self.path.pop();
            built
        });
        self.is_told = was_told;
        let built = built.filter(|_| definition.reading.document.is_some());
        self.planned.insert(key, built.clone());
        built
    }

    /// What is not there may be written by an earlier step; if none runs, the step fails when the run reaches it. What must not be loaded stays so.
    fn say_fault(&mut self, step: &Step, fault: &LoadFault, caller: Option<&Location>, changeable: bool) {
        let problem = |code, message: &str| Problem::warning(code, in_step(step, message), step.place.clone());
        match (fault.is_not_found(), changeable) {
            (true, true) => {}
            (true, false) => self.say(caller, problem("not-found", &fault.message)),
            (false, true) => self.say(caller, problem("not-loaded", &fault.message)),
            (false, false) => self.say(caller, Problem { verdict: Verdict::Error, ..problem("not-loaded", &fault.message) }),
        }
    }

    fn say(&mut self, location: Option<&Location>, problem: Problem) {
        if self.is_told {
            return;
        }
        if problem.is_error() {
            self.fail(problem.message.clone());
        }
        self.problems.entry(location.cloned()).or_default().push(problem);
    }

    fn into_problems(self) -> Vec<DocumentProblems> {
        let resolver = self.resolver;
        let problems_of = |(location, problems): (Option<Location>, Vec<Problem>)| DocumentProblems {
            file: location.as_ref().map_or_else(|| Arc::from(""), |location| Arc::from(location.to_string())),
            text: location.and_then(|location| Some(Arc::clone(&resolver.definitions.get(&location)?.text))),
            problems,
        };
        self.problems.into_iter().map(problems_of).collect()
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.dir, self.file)
    }
}

/// References of a document that this build cannot follow.
pub(super) fn refused_references(document: &StepDocument, builtins: &Builtins) -> Vec<Problem> {
    let Body::Sequence(sequence) = &document.definition.body else { return Vec::new() };
    sequence.steps.iter().filter_map(|step| refused_reference(step, builtins)).collect()
}

fn refused_reference(step: &Step, builtins: &Builtins) -> Option<Problem> {
    let error = |code, message: String| Problem::error(code, in_step(step, &message), step.place.clone());
    match wanted(&step.action) {
        Wanted::Remote(remote) => Some(error("remote-step", remote.to_string()).with_hint(remote.hint(builtins))),
        Wanted::Builtin(name) => builtins.get(name).err().map(|fault| error("unknown-builtin", fault.to_string()).with_hint(fault.hint)),
        _ => None,
    }
}

/// The targets of a document of which nothing is known yet.
pub(super) fn holes(document: &StepDocument, builtins: &Builtins) -> Vec<Target> {
    let Body::Sequence(sequence) = &document.definition.body else { return Vec::new() };
    let target = |step: &Arc<Step>| match wanted(&step.action) {
        Wanted::Script | Wanted::ScriptLegacy => Target::Script,
        Wanted::Builtin(name) => builtins.get(name).map_or(Target::Hole { seen: None }, |planned| Target::Document(Arc::clone(planned))),
        Wanted::Local(_) | Wanted::Dynamic(_) | Wanted::Remote(_) => Target::Hole { seen: None },
    };
    sequence.steps.iter().map(target).collect()
}

/// A message as the run would end with it.
fn in_step(step: &Step, message: &str) -> String {
    format!("step \"{}\": failed to load: {message}", step.name)
}

fn oddity(planned: &PlannedDocument) -> Verdict {
    interface::oddity(planned.document.dialect, !planned.file.is_empty())
}
