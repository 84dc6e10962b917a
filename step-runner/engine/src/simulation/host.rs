//! A random world that keeps the promises of a host and nothing more: each effect that can fail gets its outcome, some time, at least once.

use super::Dice;
use super::job::{ON_DISK, REWRITTEN};
use crate::effect::{Effect, LoadId, LoadedDefinition};
use crate::event::{Event, Exit, FileContent, LoadFault, LoadFaultKind, SpawnFault, SpawnFaultKind};
use crate::run::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use step_model::document::Outputs;
use step_model::limits::{AppliedLimit, LimitName};
use step_model::reference::Digest;
use step_model::result::{Failure, FailureKind, OwnedTree, ResultTree, Status, StepId, StepResult, Usage};
use step_model::time::{Deadline, Now, Timestamp};

/// Milliseconds since the start.
type Time = u64;

pub(super) fn moment(time: Time) -> Now {
    let wall = Timestamp::from_nanoseconds(i64::try_from(time).unwrap_or(0) * 1_000_000);
    Now { monotonic: Duration::from_millis(time), wall }
}

pub(super) struct Host {
    /// What will happen, in order of time.
    agenda: BTreeMap<(Time, u64), Event>,
    scheduled: u64,
    now: Time,
    processes: BTreeMap<StepId, Process>,
    /// Outcomes that have been told, by kind and number.
    told: BTreeSet<(u8, u32)>,
    latest_load: Option<LoadId>,
    grace_period: Time,
    pub kills: u64,
    pub loads: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unborn { asked: bool, killed: bool },
    Alive,
    Gone,
}

struct Process {
    state: State,
    /// Its own end, if nobody ends it before.
    ends_at: Time,
    exit: Exit,
    /// Ends when it is asked to.
    obeys: bool,
    key: Option<(Time, u64)>,
    /// When it was first asked to end, alive.
    asked_at: Option<Time>,
    was_killed: bool,
}

impl Host {
    pub fn new(grace_period: Time, dice: &mut Dice) -> Self {
        let mut host = Self {
            agenda: BTreeMap::new(),
            scheduled: 0,
            now: 0,
            processes: BTreeMap::new(),
            told: BTreeSet::new(),
            latest_load: None,
            grace_period,
            kills: 0,
            loads: 0,
        };
        // What comes from outside, whenever it likes.
        for (chance, event) in
            [(25, Event::Cancel), (8, Event::Cancel), (8, Event::CancelNow), (4, Event::LogFailed { fault: "full".into() })]
        {
            if dice.percent(chance) {
                let time = dice.below(40_000);
                host.schedule(time, event);
            }
        }
        // Outcomes of steps that may not even exist.
        for _ in 0..dice.below(4) {
            #[expect(clippy::cast_possible_truncation, reason = "below ten")]
            let step = StepId(dice.below(10) as u32);
            let none = || FileContent::Bytes(Vec::new());
            let event = match dice.below(6) {
                0 => Event::FilesPrepared { step },
                1 => Event::FilesNotPrepared { step: StepId(step.0 + 100), fault: "nobody asked".into() },
                2 => Event::Exited { step: StepId(step.0 + 100), exit: Exit::Code(1), usage: Usage::default() },
                3 => Event::Outputs { step, output: none(), export: none() },
                4 => Event::Loaded { load: LoadId(1000), outcome: Err(not_found()) },
                _ => Event::Spawned { step },
            };
            let time = dice.below(40_000);
            host.schedule(time, event);
        }
        host
    }

    pub fn alive(&self) -> usize {
        self.processes.values().filter(|process| process.state != State::Gone).count()
    }

    fn schedule(&mut self, time: Time, event: Event) -> (Time, u64) {
        self.scheduled += 1;
        let key = (time.max(self.now), self.scheduled);
        self.agenda.insert(key, event);
        key
    }

    /// An outcome, now and then twice, the second time late.
    fn answer(&mut self, dice: &mut Dice, event: Event) {
        let time = self.now + dice.below(50);
        if dice.percent(5) {
            self.schedule(time + dice.below(5_000), event.clone());
        }
        self.schedule(time, event);
    }

    /// What happens next; wakes the run when that is due before.
    pub fn next_event(&mut self, run: &Run, dice: &mut Dice) -> Option<(Time, Event)> {
        let next = self.agenda.keys().next().copied();
        let deadline = run.next_deadline().map(|deadline| self.time_of(deadline));
        let (time, event) = match (next, deadline) {
            (Some((time, _)), Some(due)) if due < time => (due + dice.below(3), Event::Woken),
            (None, Some(due)) => (due + dice.below(3), Event::Woken),
            (Some(key), _) => (key.0, self.agenda.remove(&key)?),
            (None, None) => return None,
        };
        self.now = self.now.max(time);
        match &event {
            Event::Spawned { step } => self.on_birth(*step, dice),
            Event::Exited { step, .. } | Event::NotSpawned { step, .. } => {
                let process = self.processes.get_mut(step).filter(|process| process.state != State::Gone);
                if let Some(process) = process {
                    process.state = State::Gone;
                    let patience = self.grace_period + 10;
                    let in_time = process.was_killed || process.asked_at.is_none_or(|asked| self.now <= asked + patience);
                    assert!(in_time, "{step:?} was asked to end, ran on, and was not killed");
                    if dice.percent(5) {
                        // The same again, when nobody waits for it any more.
                        self.schedule(self.now + dice.below(2_000), event.clone());
                    }
                }
            }
            _ => {}
        }
        Some((self.now, event))
    }

    /// Whether nobody can be waiting for this outcome: it was told before, or what was asked for was given up.
    pub fn is_stale(&mut self, event: &Event) -> bool {
        let key = match event {
            Event::FilesPrepared { step } | Event::FilesNotPrepared { step, .. } => (0, step.0),
            Event::NotSpawned { step, .. } | Event::Exited { step, .. } => (1, step.0),
            Event::Outputs { step, .. } => (2, step.0),
            Event::Loaded { load, .. } => (3, load.0),
            Event::Spawned { .. } => return true,
            Event::Limited { .. } | Event::LimitReached { .. } => return false,
            Event::LogFailed { .. } | Event::Cancel | Event::CancelNow | Event::Woken => return false,
        };
        let is_old = matches!(event, Event::Loaded { load, .. } if self.latest_load != Some(*load));
        let was_asked_for = !matches!(event, Event::FilesPrepared { .. } | Event::FilesNotPrepared { .. } | Event::Outputs { .. });
        // Outcomes that nobody asked for are told too; they may be taken for the answer when it is asked for later.
        (!self.told.insert(key) && was_asked_for) || is_old
    }

    fn time_of(&self, deadline: Deadline) -> Time {
        self.now + u64::try_from(deadline.remaining(moment(self.now)).as_millis()).unwrap_or(u64::MAX / 2)
    }

    fn on_birth(&mut self, step: StepId, dice: &mut Dice) {
        let Some(process) = self.processes.get_mut(&step) else { return };
        let State::Unborn { asked, killed } = process.state else { return };
        process.state = State::Alive;
        let (ends_at, exit) = (process.ends_at, process.exit);
        if dice.percent(10) {
            let limit = AppliedLimit { name: LimitName::Memory, value: "1GiB".into(), means: "none: not here".into(), reached: false };
            self.schedule(self.now, Event::Limited { step, limits: vec![limit] });
            self.schedule(self.now + dice.below(3_000), Event::LimitReached { step, limit: LimitName::Memory });
        }
        let key = self.schedule(ends_at, Event::Exited { step, exit, usage: Usage::default() });
        if let Some(process) = self.processes.get_mut(&step) {
            process.key = Some(key);
        }
        // What was asked before the birth is applied at birth.
        if killed {
            self.end(step, Exit::Signal(9));
        } else if asked {
            self.ask(step, dice);
        }
    }

    fn ask(&mut self, step: StepId, dice: &mut Dice) {
        let now = self.now;
        if let Some(process) = self.processes.get_mut(&step) {
            process.asked_at.get_or_insert(now);
        }
        if self.processes.get(&step).is_some_and(|process| process.obeys) {
            let exit = if dice.percent(50) { Exit::Signal(15) } else { Exit::Code(i32::try_from(dice.below(2)).unwrap_or(0)) };
            self.end(step, exit);
        }
    }

    /// The process ends soon, unless it would have ended before.
    fn end(&mut self, step: StepId, exit: Exit) {
        let soon = self.now + 1;
        let Some(process) = self.processes.get_mut(&step).filter(|process| process.state == State::Alive) else { return };
        if let Some(key) = process.key.filter(|key| key.0 > soon) {
            self.agenda.remove(&key);
            let key = self.schedule(soon, Event::Exited { step, exit, usage: Usage::default() });
            if let Some(process) = self.processes.get_mut(&step) {
                process.key = Some(key);
            }
        }
    }

    pub fn carry_out(&mut self, run: &Run, effects: Vec<Effect>, now: Time, dice: &mut Dice) {
        self.now = now;
        for effect in effects {
            match effect {
                Effect::PrepareFiles { step, .. } => {
                    let fault = "no space left on device".to_owned();
                    let event = if dice.percent(3) { Event::FilesNotPrepared { step, fault } } else { Event::FilesPrepared { step } };
                    self.answer(dice, event);
                }
                Effect::Spawn { step, .. } => self.spawn(step, dice),
                Effect::Terminate { step } => match self.processes.get_mut(&step).map(|process| &mut process.state) {
                    Some(State::Unborn { asked, .. }) => *asked = true,
                    _ => self.ask(step, dice),
                },
                Effect::Kill { step } => {
                    self.kills += 1;
                    if let Some(process) = self.processes.get_mut(&step) {
                        process.was_killed = true;
                    }
                    match self.processes.get_mut(&step).map(|process| &mut process.state) {
                        Some(State::Unborn { killed, .. }) => *killed = true,
                        _ => self.end(step, Exit::Signal(9)),
                    }
                }
                Effect::ReadOutputs { step, .. } => {
                    let declared = run.result().node(step).document.map(|document| document.spec.outputs.clone());
                    let event = Event::Outputs { step, output: output(dice, declared), export: export(dice) };
                    self.answer(dice, event);
                }
                Effect::Load { load, .. } => {
                    self.loads += 1;
                    self.latest_load = Some(load);
                    let outcome = load_outcome(dice);
                    self.answer(dice, Event::Loaded { load, outcome });
                }
                Effect::Ended { step } => {
                    let is_alive = self.processes.get(&step).is_some_and(|process| process.state != State::Gone);
                    assert!(!is_alive, "{step:?} ends after its process");
                }
                Effect::RemoveFiles { .. } | Effect::Say { .. } | Effect::Mask { .. } | Effect::Started { .. } | Effect::Finished => {}
            }
        }
    }

    fn spawn(&mut self, step: StepId, dice: &mut Dice) {
        let ends_at = self.now + if dice.percent(20) { 30_000 + dice.below(30_000) } else { dice.below(3_000) };
        let exit = match dice.below(20) {
            0 => Exit::Code(1),
            1 => Exit::Signal(11),
            _ => Exit::Code(0),
        };
        let state = State::Unborn { asked: false, killed: false };
        self.processes
            .insert(step, Process { state, ends_at, exit, obeys: dice.percent(60), key: None, asked_at: None, was_killed: false });
        let kind = if dice.percent(50) { SpawnFaultKind::Step } else { SpawnFaultKind::Machine };
        let fault = SpawnFault { kind, message: "exec: \"x\": executable file not found in $PATH".into() };
        let event = if dice.percent(2) { Event::NotSpawned { step, fault } } else { Event::Spawned { step } };
        self.answer(dice, event);
    }
}

/// Mostly what the step declares.
fn output(dice: &mut Dice, declared: Option<Outputs>) -> FileContent {
    let text = match (dice.below(40), declared) {
        (0, _) => "oops",
        (1, _) => return FileContent::Unreadable("is a directory".into()),
        (10..=25, Some(Outputs::Delegate)) => return FileContent::Result(Box::new(result(dice))),
        (2, Some(Outputs::Delegate)) => return FileContent::NoResult("it is none".into()),
        (_, Some(Outputs::Delegate)) => "{\"outputs\":{\"o\":\"whole\"},\"sensitiveOutputs\":[\"o\"]}",
        (_, Some(Outputs::Declared(declared))) if !declared.is_empty() => "{\"name\":\"o\",\"value\":\"born-secret\"}\n",
        _ => "",
    };
    FileContent::Bytes(text.into())
}

/// What another environment says, true or not.
fn result(dice: &mut Dice) -> OwnedTree {
    let mut tree = OwnedTree::of(result_node(dice, ""));
    let mut parents = vec![StepId::ROOT];
    for _ in 0..dice.below(6) {
        #[expect(clippy::cast_possible_truncation, reason = "a handful")]
        let parent = parents[dice.below(parents.len() as u64) as usize];
        let node = result_node(dice, "inner");
        parents.extend(tree.add(parent, node));
    }
    if dice.percent(3) {
        (0..70).fold(StepId::ROOT, |parent, _| tree.add(parent, result_node(dice, "deep")).unwrap_or(parent));
    }
    tree
}

fn result_node(dice: &mut Dice, name: &str) -> StepResult {
    let statuses =
        [Status::Success, Status::Success, Status::Success, Status::Failure, Status::Running, Status::Cancelled, Status::Unspecified];
    let status = statuses[usize::try_from(dice.below(7)).unwrap_or(0)];
    let failure =
        dice.percent(40).then(|| Failure { kind: FailureKind::StepFailure, message: "step \"inner\": exec: exit status 1".into() });
    StepResult {
        name: name.into(),
        step: None,
        document: None,
        inputs: Vec::new(),
        given_env: BTreeMap::new(),
        env: BTreeMap::new(),
        status,
        outputs: vec![("o".into(), "came-back".into())],
        exports: Vec::new(),
        exec: None,
        start: None,
        end: dice.percent(50).then(|| Timestamp::from_nanoseconds(5)),
        usage: None,
        digest: None,
        provenance: None,
        failure,
        allowed_to_fail: dice.percent(10),
        sensitive_outputs: if dice.percent(30) { vec!["o".into()] } else { Vec::new() },
        trace: None,
        limits: Vec::new(),
        filtered: None,
    }
}

fn export(dice: &mut Dice) -> FileContent {
    let text = match dice.below(20) {
        0 => "{\"name\":\"A\",\"value\":[]}",
        1..=4 => "{\"name\":\"A\",\"value\":\"exported\"}\n{\"name\":\"B\",\"value\":1}\n",
        _ => "",
    };
    FileContent::Bytes(text.into())
}

/// Whatever comes to mind.
pub(super) fn any_event(dice: &mut Dice) -> Event {
    #[expect(clippy::cast_possible_truncation, reason = "below eight")]
    let number = dice.below(8) as u32;
    let step = StepId(number);
    match dice.below(30) {
        0..=5 => Event::FilesPrepared { step },
        6 => Event::FilesNotPrepared { step, fault: "no space left on device".into() },
        7 => Event::Spawned { step },
        8 => Event::NotSpawned { step, fault: SpawnFault { kind: SpawnFaultKind::Step, message: "no".into() } },
        9..=15 => Event::Exited { step, exit: Exit::Code(0), usage: Usage::default() },
        16 => Event::Exited { step, exit: Exit::Signal(9), usage: Usage::default() },
        17..=21 => Event::Outputs { step, output: output(dice, None), export: export(dice) },
        22..=25 => Event::Loaded { load: LoadId(number), outcome: load_outcome(dice) },
        26 => Event::Cancel,
        27 if dice.percent(20) => Event::CancelNow,
        28 if dice.percent(20) => Event::LogFailed { fault: "full".into() },
        _ => Event::Woken,
    }
}

fn not_found() -> LoadFault {
    LoadFault { kind: LoadFaultKind::NotFound, message: "loading file: not there".into() }
}

fn load_outcome(dice: &mut Dice) -> Result<LoadedDefinition, LoadFault> {
    let (text, file) = match dice.below(20) {
        0 => return Err(not_found()),
        1 => ("{}\n---\nexec: {command: []}\n", "step.yml"),
        2 => (REWRITTEN, "step.yml"),
        3 => (ON_DISK, "func.yml"),
        _ => (ON_DISK, "step.yml"),
    };
    let digest = Digest::of(text.as_bytes());
    Ok(LoadedDefinition { text: text.into(), digest, dir: "/job".into(), file: file.into(), provenance: None })
}
