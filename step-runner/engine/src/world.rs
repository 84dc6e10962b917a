//! A world of values for tests: definitions in a map, processes as a function, time that moves when it is told to.

use crate::effect::{Effect, LoadedDefinition, Process};
use crate::event::{Event, Exit, FileContent, LoadFault, LoadFaultKind, SpawnFault};
use crate::invariants::Watch;
use crate::resolve::{DocumentProblems, Resolver};
use crate::run::{Run, Seed};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use step_model::document::{Dialect, StepDocument, raw};
use step_model::plan::{Places, Plan, PlannedDocument};
use step_model::reference::{Digest, LocalReference};
use step_model::result::{Failure, ResultTree, StepId, StepResult, Usage};
use step_model::time::{Now, Timestamp};
use step_model::value::Value;

/// What a process of the world does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    /// `None`: it goes on until somebody ends it.
    pub exit: Option<i32>,
    pub fault: Option<SpawnFault>,
    pub output: String,
    pub export: String,
}

pub(crate) fn exits(code: i32) -> Reply {
    Reply { exit: Some(code), ..Reply::default() }
}

pub(crate) fn runs_on() -> Reply {
    Reply::default()
}

/// A process that writes these lines and succeeds.
pub(crate) fn writes(output: &str, export: &str) -> Reply {
    Reply { output: output.into(), export: export.into(), ..exits(0) }
}

pub(crate) fn at(seconds: u64) -> Now {
    let nanoseconds = i64::try_from(seconds).unwrap() * 1_000_000_000;
    Now { monotonic: Duration::from_secs(seconds), wall: Timestamp::from_nanoseconds(nanoseconds) }
}

/// What each process does, by the name of its step.
type Behaviour = Box<dyn FnMut(&str, &Process) -> Reply>;

pub(crate) struct World {
    pub files: BTreeMap<String, String>,
    pub plan: Plan,
    pub now: Now,
    behave: Behaviour,
    replies: BTreeMap<StepId, Reply>,
    pub run: Option<Run>,
    queue: VecDeque<Effect>,
    /// Everything that was asked for.
    pub effects: Vec<Effect>,
    pub watch: Watch,
}

/// The document of a job whose `run:` is this.
pub(crate) fn job(text: &str, dialect: Dialect) -> Arc<StepDocument> {
    let reading = raw::read_job(text, dialect);
    assert!(!reading.problems.iter().any(step_model::diagnostic::Problem::is_error), "{:?}", reading.problems);
    reading.document.unwrap()
}

pub(crate) fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<Arc<str>, Value> {
    pairs.iter().map(|(name, value)| (Arc::from(*name), Value::from(*value))).collect()
}

impl World {
    /// A job in `/job` whose processes all succeed.
    pub fn new(run: &str) -> Self {
        let dialect = if run.contains("func:") { Dialect::Functions } else { Dialect::Steps };
        Self::of(job(&format!("{{}}\n---\nrun:\n  {run}"), dialect))
    }

    pub fn of(root: Arc<StepDocument>) -> Self {
        let root = Arc::new(PlannedDocument::of_job(root, "/job".into()));
        let places = Places { work_dir: "/job".into(), build_dir: "/job".into(), files_dir: "/files".into() };
        Self {
            files: BTreeMap::new(),
            plan: Plan { grace_period: Duration::from_secs(10), ..Plan::of(root, places) },
            now: at(0),
            behave: Box::new(|_, _| exits(0)),
            replies: BTreeMap::new(),
            run: None,
            queue: VecDeque::new(),
            effects: Vec::new(),
            watch: Watch::default(),
        }
    }

    pub fn with_file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    pub fn with_plan(mut self, change: impl FnOnce(&mut Plan)) -> Self {
        change(&mut self.plan);
        self
    }

    /// What a process does, by the name of its step.
    pub fn behaving(mut self, behave: impl FnMut(&str, &Process) -> Reply + 'static) -> Self {
        self.behave = Box::new(behave);
        self
    }

    /// Resolves the job. Panics where it is refused.
    pub fn resolved(mut self) -> Self {
        match self.resolve() {
            Ok((planned, _)) => self.plan.root = planned,
            Err(problems) => panic!("{problems:#?}"),
        }
        self
    }

    pub fn resolve(&self) -> Result<(Arc<PlannedDocument>, Vec<DocumentProblems>), Vec<DocumentProblems>> {
        self.resolver().finish()
    }

    pub fn refusal(&self) -> Option<Failure> {
        self.resolver().refusal()
    }

    fn resolver(&self) -> Resolver {
        let (mut resolver, effects) = Resolver::start(Arc::clone(&self.plan.root.document), "/job".into(), self.plan.builtins.clone());
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let Effect::Load { load, from, reference } = effect else { panic!("{effect:?}") };
            queue.extend(resolver.on_loaded(load, self.load(&from, &reference)));
        }
        assert!(resolver.is_complete());
        resolver
    }

    /// Resolves and starts, and carries out effects until nothing happens by itself.
    pub fn started(self) -> Self {
        let mut world = self.unsettled();
        world.settle();
        world
    }

    /// Resolves and starts.
    pub fn unsettled(self) -> Self {
        let mut world = self.resolved();
        let (run, effects) = Run::start(world.plan.clone(), Seed(1), world.now);
        world.run = Some(run);
        world.take(effects);
        world
    }

    /// Runs to the end without having been resolved: every reference is a hole, so only the run itself looks at what is in it.
    pub fn hollow(mut self) -> Self {
        let (run, effects) = Run::start(self.plan.clone(), Seed(1), self.now);
        self.run = Some(run);
        self.take(effects);
        self.settle();
        assert!(self.run().is_finished());
        self
    }

    /// Runs to the end.
    pub fn finished(self) -> Self {
        let world = self.started();
        assert!(world.run().is_finished(), "still running: {:#?}", world.effects.last());
        world.watch.check_tree(world.run());
        world
    }

    pub fn run(&self) -> &Run {
        self.run.as_ref().unwrap()
    }

    pub fn on(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.run.as_mut().unwrap().on(event, self.now);
        self.take(effects.clone());
        effects
    }

    fn take(&mut self, effects: Vec<Effect>) {
        self.watch.check(self.run.as_ref().unwrap(), &effects);
        self.effects.extend(effects.iter().cloned());
        self.queue.extend(effects);
    }

    pub fn settle(&mut self) {
        while let Some(effect) = self.queue.pop_front() {
            for event in self.carry_out(effect) {
                self.on(event);
            }
        }
    }

    /// Moves time and wakes the run.
    pub fn wait_until(&mut self, seconds: u64) {
        self.now = at(seconds);
        self.on(Event::Woken);
        self.settle();
    }

    fn carry_out(&mut self, effect: Effect) -> Vec<Event> {
        match effect {
            Effect::PrepareFiles { step, .. } => vec![Event::FilesPrepared { step }],
            Effect::Spawn { step, process } => {
                let name = self.run().result().headline(step).name;
                let reply = (self.behave)(&name, &process);
                self.replies.insert(step, reply.clone());
                match (reply.fault, reply.exit) {
                    (Some(fault), _) => vec![Event::NotSpawned { step, fault }],
                    (None, None) => vec![Event::Spawned { step }],
                    (None, Some(code)) => {
                        vec![Event::Spawned { step }, Event::Exited { step, exit: Exit::Code(code), usage: Usage::default() }]
                    }
                }
            }
            Effect::ReadOutputs { step, .. } => {
                let reply = self.replies.get(&step).cloned().unwrap_or_default();
                let bytes = |text: String| FileContent::Bytes(text.into_bytes());
                vec![Event::Outputs { step, output: bytes(reply.output), export: bytes(reply.export) }]
            }
            Effect::Load { load, from, reference } => vec![Event::Loaded { load, outcome: self.load(&from, &reference) }],
            Effect::Terminate { .. }
            | Effect::Kill { .. }
            | Effect::RemoveFiles { .. }
            | Effect::Say { .. }
            | Effect::Mask { .. }
            | Effect::Started { .. }
            | Effect::Ended { .. }
            | Effect::Finished => Vec::new(),
        }
    }

    pub fn load(&self, from: &str, reference: &LocalReference) -> Result<LoadedDefinition, LoadFault> {
        let mut parts: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
        for part in &reference.path {
            match &**part {
                "/" => parts.clear(),
                "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let dir = format!("/{}", parts.join("/"));
        let names = reference.file.as_deref().map_or_else(|| vec!["func.yml", "step.yml"], |file| vec![file]);
        for name in &names {
            if let Some(text) = self.files.get(&format!("{dir}/{name}")) {
                let digest = Digest::of(text.as_bytes());
                return Ok(LoadedDefinition { text: text.clone(), digest, dir: dir.into(), file: Arc::from(*name), provenance: None });
            }
        }
        let path = format!("{dir}/{}", names.last().unwrap());
        let message = format!("loading file \"{path}\": reading file: open {path}: no such file or directory");
        Err(LoadFault { kind: LoadFaultKind::NotFound, message })
    }

    /// A node of the result, by the names on the way to it: `node("outer/inner")`.
    pub fn node(&self, path: &str) -> StepResult {
        let tree = self.run().result();
        let mut id = StepId::ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let named = |child: &StepId| *tree.headline(*child).name == *name;
            id = tree.children(id).into_iter().find(named).unwrap_or_else(|| panic!("no step {name}"));
        }
        tree.node(id)
    }

    pub fn output(&self, path: &str, name: &str) -> Option<Value> {
        self.node(path).outputs.into_iter().find(|(key, _)| **key == *name).map(|(_, value)| value)
    }

    pub fn message(&self) -> &str {
        self.run().failure().map_or("", |failure| &failure.message)
    }

    pub fn said(&self) -> Vec<&str> {
        self.effects.iter().filter_map(|effect| if let Effect::Say { line, .. } = effect { Some(line.as_str()) } else { None }).collect()
    }

    pub fn processes(&self) -> Vec<&Process> {
        self.effects.iter().filter_map(|effect| if let Effect::Spawn { process, .. } = effect { Some(process) } else { None }).collect()
    }

    /// The commands that ran, as text.
    pub fn commands(&self) -> Vec<String> {
        let text = |process: &&Process| process.command.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
        self.processes().iter().map(text).collect()
    }
}
