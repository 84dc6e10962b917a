//! Carries out effects: one at a time, at once, and each with the outcome that its description promises.

pub mod confinement;
mod network;
mod secrets;
mod watches;

use super::cleanup;
use super::command::{Command, Places};
use super::drive::Asks;
use super::journal::{Journal, Outcome};
use super::marker::{self, Marker};
use super::program_files::ProgramFiles;
use super::pump::{Message, Pump};
use super::random;
use super::step_files;
use super::watch::{Urgency, Watch};
use super::{Ask, Audience, Settings, Streams};
use crate::definitions::Loader;
use crate::system::{self, Leftover, Spawner};
use confinement::Confiner;
use network::Network;
use secrets::KnownSecrets;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use step_client::wire::result::Redaction;
use step_engine::effect::{Effect, LoadId, Process};
use step_engine::event::{Event, SpawnFault, SpawnFaultKind};
use step_engine::run::Run;
use step_model::plan::Plan;
use step_model::reference::LocalReference;
use step_model::result::StepId;
use tokio::sync::{mpsc, oneshot, watch};
use watches::Watches;

/// Rounds of looking what is left of a job: at first often, since most processes end at once.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LAST_LOOK: Duration = Duration::from_millis(100);
/// A process that a kill does not end within this time waits for a device; nobody can end it.
const UNKILLABLE: Duration = Duration::from_secs(10);

/// The processes, files and log of one job.
#[derive(Debug)]
pub struct Host {
    places: Places,
    has_files_dir: bool,
    /// Where steps leave commands that clean up behind them.
    cleanup: PathBuf,
    streams: Streams,
    keep_files: bool,
    spawner: Spawner,
    pump: Pump,
    events: mpsc::UnboundedSender<Event>,
    watches: Watches,
    live: HashMap<StepId, Live>,
    /// Asked for before the process was there: applied at its birth.
    early: HashMap<StepId, Urgency>,
    closing: watch::Sender<bool>,
    secrets: KnownSecrets,
    journal: Option<Journal>,
    redaction: Redaction,
    /// The journal could not be written, and that was said.
    has_complained: bool,
    /// What every process of the job has in its environment.
    marker: Marker,
    confiner: Confiner,
    network: Network,
    loader: Arc<Mutex<Loader>>,
    looks_up_provenance: bool,
    is_swept: bool,
}

/// A process whose end was not reported yet.
#[derive(Debug)]
struct Live {
    urgency: watch::Sender<Urgency>,
    number: u32,
    script_file: Option<PathBuf>,
    /// Removed with this value.
    _program: Option<ProgramFiles>,
}

impl Host {
    /// Also starts the audience's thread. The receiver gives the audience back after [`Host::end`].
    /// # Errors
    /// The system refuses what every job needs.
    pub fn start<A: Audience>(
        plan: &Plan,
        settings: &Settings,
        audience: A,
        events: mpsc::UnboundedSender<Event>,
    ) -> io::Result<(Self, oneshot::Receiver<A>)> {
        let spawner = Spawner::new()?;
        let (pump, audience) = Pump::start(audience, settings.secrets.clone(), events.clone())?;
        let places = Places { work_dir: PathBuf::from(&*plan.places.work_dir), files_dir: PathBuf::from(&*plan.places.files_dir) };
        let cleanup = settings.journal.as_deref().unwrap_or(&places.files_dir).join("cleanup");
        // Nobody needs to know it until results can be replayed.
        let mark_key = random::number().to_le_bytes();
        let marker = Marker::new(std::env::var(marker::VARIABLE).ok().as_deref());
        let mut host = Self {
            places,
            has_files_dir: false,
            cleanup,
            streams: settings.streams,
            keep_files: settings.keep_files,
            spawner,
            pump,
            events,
            watches: Watches::default(),
            live: HashMap::new(),
            early: HashMap::new(),
            closing: watch::Sender::new(false),
            secrets: KnownSecrets::new(settings.secrets.clone()),
            journal: None,
            redaction: Redaction::new(settings.secrets.clone(), mark_key),
            has_complained: false,
            network: Network::new(),
            confiner: Confiner::new(settings.journal.as_deref(), &marker.own),
            marker,
            loader: Arc::new(Mutex::new(Loader::new(&plan.places.build_dir, settings.provenance))),
            looks_up_provenance: settings.provenance,
            is_swept: false,
        };
        if let Some(directory) = &settings.journal {
            match Journal::open(directory) {
                Ok(journal) => host.journal = Some(journal),
                Err(error) => host.complain_of_journal(&error),
            }
            let (marker, is_stamped) = (host.marker.own.clone(), settings.streams == Streams::Separate);
            host.write_down(|journal, _| journal.begun(&marker, is_stamped));
        }
        Ok((host, audience))
    }

    /// The outcome, where the effect has one and it is known at once.
    pub fn carry_out(&mut self, effect: Effect, run: &Run) -> Option<Event> {
        match effect {
            Effect::PrepareFiles { step, files } => Some(match self.make_files_dir().and_then(|()| step_files::prepare(&files)) {
                Ok(()) => Event::FilesPrepared { step },
                Err(fault) => Event::FilesNotPrepared { step, fault },
            }),
            Effect::Spawn { step, process } => Some(match self.spawn(step, &process) {
                Ok(()) => Event::Spawned { step },
                Err(fault) => Event::NotSpawned { step, fault },
            }),
            Effect::ReadOutputs { step, files, result } => {
                let (output, export) = step_files::take(&files, self.keep_files);
                let output = if result { step_files::as_result(output) } else { output };
                Some(Event::Outputs { step, output, export })
            }
            Effect::Load { load, from, reference } => self.load(load, from, reference),
            Effect::Terminate { step } => self.urge(step, Urgency::Asked),
            Effect::Kill { step } => self.urge(step, Urgency::Killed),
            Effect::RemoveFiles { files, .. } => {
                if !self.keep_files {
                    step_files::remove(&files);
                }
                None
            }
            Effect::Say { step, line, warning } => self.tell(Message::Said { step, line, warning }),
            Effect::Mask { value } => self.mask(&value),
            Effect::Started { step } => {
                let headline = run.result().headline(step);
                self.write_down(|journal, redaction| journal.node_started(run.result(), step, redaction));
                self.tell(Message::Started { step, headline: Box::new(headline) })
            }
            Effect::Ended { step } => {
                let headline = run.result().headline(step);
                self.write_down(|journal, redaction| journal.node_ended(run.result(), step, redaction));
                self.tell(Message::Ended { step, headline: Box::new(headline) })
            }
            Effect::Finished => {
                self.write_down(|journal, redaction| journal.finished(&outcome_of(run), redaction.secrets()));
                None
            }
        }
    }

    fn tell(&self, message: Message) -> Option<Event> {
        self.pump.push(message);
        None
    }

    pub fn wake_audience(&self) {
        self.pump.wake();
    }

    fn spawn(&mut self, step: StepId, process: &Process) -> Result<(), SpawnFault> {
        if process.files.is_some() || process.script.is_some() {
            self.make_files_dir().map_err(|message| SpawnFault { kind: SpawnFaultKind::Machine, message })?;
        }
        let program = process.program.as_deref().map(|program| ProgramFiles::write(program, &self.cleanup)).transpose()?;
        let with_files = program.as_ref().map(|program| program.told(process));
        let process = with_files.as_ref().unwrap_or(process);
        let mut command = Command::of(process, &self.places, &format!("script-{}", step.0))?;
        let marker = self.marker.value.clone();
        command.set(marker::VARIABLE, &marker);
        let running = self.prepare_and_start(step, process, &command).inspect_err(|_| remove_script(command.script_file.as_deref()))?;
        let urgency = watch::Sender::new(self.early.remove(&step).unwrap_or_default());
        let watch = Watch::new(step, running, urgency.subscribe(), self.closing.subscribe(), self.pump.clone(), self.events.clone());
        self.live.insert(step, Live { urgency, number: watch.number(), script_file: command.script_file, _program: program });
        self.watches.start(watch.run());
        Ok(())
    }

    /// Many jobs need none: to make it and to remove it costs as much as a tenth of a process.
    fn make_files_dir(&mut self) -> Result<(), String> {
        if !self.has_files_dir {
            step_files::make_directory(&self.places.files_dir)?;
            self.has_files_dir = true;
        }
        Ok(())
    }

    fn prepare_and_start(&mut self, step: StepId, process: &Process, command: &Command<'_>) -> Result<system::Running, SpawnFault> {
        if let Some(files) = &process.files {
            step_files::prepare(files).map_err(|message| SpawnFault { kind: SpawnFaultKind::Machine, message })?;
        }
        let started = self.confiner.start(step, &process.limits, command, &self.spawner, self.streams).inspect_err(|_| {
            if let Some(files) = &process.files {
                step_files::remove(files);
            }
        });
        let (running, limits) = started?;
        if !limits.is_empty() {
            let _ = self.events.send(Event::Limited { step, limits });
        }
        Ok(running)
    }

    fn urge(&mut self, step: StepId, urgency: Urgency) -> Option<Event> {
        match self.live.get(&step) {
            Some(live) => drop(live.urgency.send_if_modified(|now| urgency > std::mem::replace(now, urgency.max(*now)))),
            None => drop(self.early.insert(step, urgency)),
        }
        None
    }

    fn load(&self, load: LoadId, from: Arc<str>, reference: LocalReference) -> Option<Event> {
        let loader = Arc::clone(&self.loader);
        let read = move || {
            let outcome = loader.lock().unwrap_or_else(PoisonError::into_inner).load(&from, &reference);
            Event::Loaded { load, outcome }
        };
        if !self.looks_up_provenance {
            return Some(read());
        }
        // git may take a while in a large repository.
        let events = self.events.clone();
        drop(tokio::task::spawn_blocking(move || drop(events.send(read()))));
        None
    }

    fn mask(&mut self, value: &step_model::value::Value) -> Option<Event> {
        if let Some(warning) = self.secrets.add(value) {
            self.tell(Message::Said { step: StepId::ROOT, line: warning, warning: true });
        }
        self.tell(Message::Secrets(self.secrets.all().clone()))
    }

    /// That the journal cannot be written is said once; the job goes on, and a later record may find room.
    fn write_down(&mut self, write: impl FnOnce(&mut Journal, &Redaction) -> io::Result<()>) {
        let Some(journal) = &mut self.journal else { return };
        self.redaction.update(self.secrets.all());
        if let Err(error) = write(journal, &self.redaction) {
            self.complain_of_journal(&error);
        }
    }

    fn complain_of_journal(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.has_complained, true) {
            let why = crate::system_error::text(error);
            let line = format!("the journal cannot be written, `show` will not know all of this run: {why}");
            self.tell(Message::Said { step: StepId::ROOT, line, warning: true });
        }
    }

    /// Takes note of what the machine is about to hear, and tells it what else belongs to that.
    pub fn note(&mut self, mut event: Event) -> Vec<Event> {
        let mut heard = Vec::new();
        if let Event::Exited { step, exit, usage } = &mut event {
            if let Some(live) = self.live.remove(step) {
                remove_script(live.script_file.as_deref());
            }
            system::reap_adopted(&self.numbers());
            usage.network = self.network.since();
            let reached = self.confiner.ended(*step, *exit, usage);
            heard.extend(reached.into_iter().map(|limit| Event::LimitReached { step: *step, limit }));
        }
        heard.push(event);
        heard
    }

    fn numbers(&self) -> HashSet<u32> {
        self.live.values().map(|live| live.number).collect()
    }

    /// Ends whatever the job has left running, in whichever group or session it is: asks, waits, kills.
    pub async fn sweep(&mut self, grace_period: Duration, asks: &mut Asks) {
        let kill_at = Instant::now() + grace_period;
        let mut killed_since = None;
        let mut asked: HashSet<Leftover> = HashSet::new();
        let mut pause = FIRST_LOOK;
        while system::children_left() {
            system::reap_adopted(&self.numbers());
            let left = system::leftovers();
            if left.is_empty() {
                break;
            }
            if asks.latest == Some(Ask::EndNow) || Instant::now() >= kill_at {
                killed_since.get_or_insert_with(Instant::now);
                left.iter().for_each(Leftover::kill);
            } else {
                left.iter().filter(|process| asked.insert(**process)).for_each(Leftover::ask);
            }
            if killed_since.is_some_and(|since| since.elapsed() >= UNKILLABLE) {
                let line = format!("{} processes of the job do not end, not even when they are killed", left.len());
                self.tell(Message::Said { step: StepId::ROOT, line, warning: true });
                break;
            }
            tokio::select! {
                biased;
                _ = asks.next() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LAST_LOOK);
        }
        if let Some(line) = self.confiner.sweep() {
            self.tell(Message::Said { step: StepId::ROOT, line, warning: true });
        }
        self.is_swept = true;
    }

    /// Reads what is left in the pipes. Nobody writes to them any more.
    pub async fn close(&mut self) {
        self.closing.send_replace(true);
        self.watches.all_have_ended().await;
    }

    /// Runs the commands that steps have left for it. They take as long as they take, each within its limit.
    pub async fn clean_up(&mut self) {
        if !self.cleanup.exists() {
            return;
        }
        let directory = self.cleanup.parent().map(PathBuf::from).unwrap_or_default();
        let run = tokio::task::spawn_blocking(move || {
            let output = std::fs::File::options().append(true).open(directory.join("output")).ok();
            cleanup::run(&directory, output.as_ref(), cleanup::LIMIT)
        });
        let failed = match run.await {
            Ok(Ok(failed)) => failed,
            Ok(Err(error)) => vec![format!("clean-up commands cannot be read: {}", crate::system_error::text(&error))],
            Err(_) => vec!["the part that runs clean-up commands has panicked".to_owned()],
        };
        for line in failed {
            self.tell(Message::Said { step: StepId::ROOT, line, warning: true });
        }
    }

    pub fn give_journal(&mut self) -> Option<Journal> {
        self.journal.take()
    }

    /// Nobody waits for output any more.
    pub fn give_up(&self) {
        self.pump.give_up();
    }

    pub fn redaction(&mut self) -> Redaction {
        self.redaction.update(self.secrets.all());
        self.redaction.clone()
    }

    pub fn secrets(&self) -> &step_model::masking::Secrets {
        self.secrets.all()
    }

    /// The last message.
    pub fn end(&self) {
        self.tell(Message::Finish);
        self.pump.wake();
    }
}

/// A job that does not come to its end leaves no process either: a panic, or a future that is dropped.
impl Drop for Host {
    fn drop(&mut self) {
        for _ in 0..100 {
            let left = if self.is_swept || !system::children_left() { Vec::new() } else { system::leftovers() };
            if left.is_empty() {
                break;
            }
            left.iter().for_each(Leftover::kill);
            std::thread::sleep(Duration::from_millis(2));
        }
        for live in self.live.values() {
            remove_script(live.script_file.as_deref());
        }
        self.pump.push(Message::Finish);
        self.pump.wake();
    }
}

fn outcome_of(run: &Run) -> Outcome {
    let failed_step = run.failed_step();
    Outcome {
        status: run.status(),
        failure: run.failure().cloned(),
        failed_step,
        exit_code: failed_step.and_then(|step| run.result().headline(step).exit_code),
        end: run.result().headline(StepId::ROOT).end,
    }
}

fn remove_script(file: Option<&std::path::Path>) {
    if let Some(file) = file {
        let _ = std::fs::remove_file(file);
    }
}
