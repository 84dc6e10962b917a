//! The plan from the root downwards, once every definition is there.

use super::{DocumentProblems, Location, MAXIMUM_NESTING, Named, Resolver, Wanted, nests_too_deep, not_fetched, refers_to_itself, wanted};
use crate::event::LoadFault;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use step_model::diagnostic::{Problem, Verdict};
use step_model::document::{Body, Step, StepDocument};
use step_model::plan::{PlannedDocument, Target};
use step_model::reference::LocalReference;

/// Builds the plan.
/// # Errors
/// The problems, when one of them is an error.
pub(super) fn plan(resolver: &Resolver) -> Result<(Arc<PlannedDocument>, Vec<DocumentProblems>), Vec<DocumentProblems>> {
    let mut builder = Builder { resolver, planned: BTreeMap::new(), path: Vec::new(), problems: BTreeMap::new(), said: BTreeSet::new() };
    let root = PlannedDocument {
        document: Arc::clone(&resolver.root),
        dir: Arc::clone(&resolver.dir),
        file: Arc::from(""),
        digest: None,
        provenance: None,
        targets: Vec::new(),
    };
    if let Some(missing) = super::missing_input(&resolver.root) {
        builder.say(None, Problem::error("missing-input", missing.to_string(), None));
    }
    let root = builder.finish(root, None, false);
    let problems = builder.into_problems();
    let is_refused = problems.iter().flat_map(|document| &document.problems).any(Problem::is_error);
    if is_refused { Err(problems) } else { Ok((root.document, problems)) }
}

struct Builder<'a> {
    resolver: &'a Resolver,
    /// By location, and whether an earlier step may change it. `None`: it cannot be used.
    planned: BTreeMap<(Location, bool), Option<Built>>,
    /// The definitions between the root and the one that is planned now.
    path: Vec<Location>,
    problems: BTreeMap<Option<Location>, Vec<Problem>>,
    /// Definitions whose own problems have been told.
    said: BTreeSet<Location>,
}

#[derive(Clone)]
struct Built {
    document: Arc<PlannedDocument>,
    /// Levels of steps below it.
    height: usize,
}

impl Builder<'_> {
    /// Finds a target for every step. `changeable`: a step that runs earlier may rewrite what is here.
    fn finish(&mut self, mut planned: PlannedDocument, location: Option<&Location>, changeable: bool) -> Built {
        let document = Arc::clone(&planned.document);
        let Body::Sequence(sequence) = &document.definition.body else {
            return Built { document: Arc::new(planned), height: 0 };
        };
        let mut height = 0;
        for problem in refused_references(&document) {
            self.say(location, problem);
        }
        for (index, step) in sequence.steps.iter().enumerate() {
            let changeable = changeable || index > 0;
            let target = match wanted(&step.action) {
                Wanted::Script | Wanted::ScriptLegacy => Target::Script,
                Wanted::Dynamic(_) | Wanted::Remote(_) => Target::Hole { seen: None },
                Wanted::Local(reference) => {
                    let seen = self.local(step, reference, &planned, location, changeable);
                    height = height.max(seen.as_ref().map_or(0, |built| built.height));
                    match seen {
                        Some(built) if !changeable => Target::Document(built.document),
                        seen => Target::Hole { seen: seen.map(|built| built.document) },
                    }
                }
            };
            planned.targets.push(target);
        }
        Built { document: Arc::new(planned), height: height + 1 }
    }

    /// The definition that a step refers to, if it is there and fits.
    fn local(
        &mut self,
        step: &Step,
        reference: &LocalReference,
        caller: &PlannedDocument,
        caller_location: Option<&Location>,
        changeable: bool,
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
        let built = self.definition(&location, changeable)?;
        // The depth of a level is the length of the path; the root's steps are at one.
        if self.path.len() + 1 + built.height > MAXIMUM_NESTING {
            self.say(caller_location, problem("too-deep", nests_too_deep()));
            return None;
        }
        Some(built)
    }

    fn definition(&mut self, location: &Location, changeable: bool) -> Option<Built> {
        if let Some(known) = self.planned.get(&(location.clone(), changeable)) {
            return known.clone();
        }
        let definition = self.resolver.definitions.get(location)?;
        if self.said.insert(location.clone()) {
            for problem in &definition.problems {
                // What an earlier step may still write may be right when the run comes to it.
                let verdict = if changeable { Verdict::Warning } else { problem.verdict };
                self.say(Some(location), Problem { verdict, ..problem.clone() });
            }
        }
        let built = definition.document.as_ref().map(|document| {
            let planned = PlannedDocument {
                document: Arc::clone(document),
                dir: Arc::clone(&location.dir),
                file: Arc::clone(&location.file),
                digest: Some(definition.digest),
                provenance: definition.provenance.clone(),
                targets: Vec::new(),
            };
            self.path.push(location.clone());
            let built = self.finish(planned, Some(location), changeable);
            self.path.pop();
            built
        });
        self.planned.insert((location.clone(), changeable), built.clone());
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
        let problems = self.problems.entry(location.cloned()).or_default();
        if !problems.contains(&problem) {
            problems.push(problem);
        }
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
pub(super) fn refused_references(document: &StepDocument) -> Vec<Problem> {
    let Body::Sequence(sequence) = &document.definition.body else { return Vec::new() };
    let refused = |step: &Arc<Step>| match wanted(&step.action) {
        Wanted::Remote(what) => {
            let problem = Problem::error("remote-step", in_step(step, &not_fetched(&what)), step.place.clone());
            Some(problem.with_hint("copy the step into the repository and refer to its directory: `./steps/name`"))
        }
        _ => None,
    };
    sequence.steps.iter().filter_map(refused).collect()
}

/// The targets of a document of which nothing is known yet.
pub(super) fn holes(document: &StepDocument) -> Vec<Target> {
    let Body::Sequence(sequence) = &document.definition.body else { return Vec::new() };
    let target = |step: &Arc<Step>| match wanted(&step.action) {
        Wanted::Script | Wanted::ScriptLegacy => Target::Script,
        Wanted::Local(_) | Wanted::Dynamic(_) | Wanted::Remote(_) => Target::Hole { seen: None },
    };
    sequence.steps.iter().map(target).collect()
}

/// A message as the run would end with it.
fn in_step(step: &Step, message: &str) -> String {
    format!("step \"{}\": failed to load: {message}", step.name)
}
