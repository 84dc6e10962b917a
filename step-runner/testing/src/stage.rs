//! Carries out what the engine wants for one case: fakes and stubs by itself, everything else as a process. The directories of a case are made
//! when something needs them.

mod props;

use crate::outcome::{Call, Outcome};
use crate::plan::{Directories, fake_of};
use crate::process::{Happened, Running, sweep};
use crate::stub::{Program, Reply, recorded};
use crate::subject::in_words;
use props::{copy, found, put_text};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use step_agent::definitions::Loader;
use step_agent::process::{self, Command, Places};
use step_engine::effect::{Effect, Process, StepFiles};
use step_engine::event::{Event, Exit, FileContent, SpawnFault, SpawnFaultKind};
use step_engine::run::{Run, Seed};
use step_model::document::Outputs;
use step_model::expression::Template;
use step_model::masking::{Secrets, StreamMasker};
use step_model::plan::Plan;
use step_model::result::{ResultTree as _, StepId, Usage};
use step_model::testing::Contexts;
use step_model::testing::suite::{Answer, Case, Content, Fake, Given, Source};
use step_model::time::{Now, Timestamp};
use step_model::value::{Data, Value};

/// More of a log than this is cut off: a test that writes it by mistake should not fill the memory.
const LOG_LIMIT: usize = 16 << 20;

/// How often a case that waits looks whether it is cancelled.
const CANCEL_LOOK: Duration = Duration::from_millis(50);

/// Where and with what a case runs.
#[derive(Debug)]
pub struct Stage<'a> {
    pub case: &'a Case,
    pub directories: &'a Directories,
    /// Everything of the case lies below. Not made unless it is needed.
    pub top: &'a Path,
    /// Of the test file: `from` of files is relative to it.
    pub test_dir: &'a Path,
    /// `func_dir` in expressions of the case.
    pub step_dir: &'a str,
    /// Whether real steps and programs are refused, also where the case does not say so.
    pub hermetic: bool,
    /// The exit code of the tested step's own process, whatever it was: for mutants.
    pub ignores_exit: bool,
    /// Somebody wants to end at once.
    pub cancelled: &'a AtomicBool,
}

struct Performance<'a> {
    stage: &'a Stage<'a>,
    outcome: Outcome,
    programs: Vec<Program>,
    is_set: bool,
    stubs_are_set: bool,
    loader: Loader,
    live: Option<(StepId, Running)>,
    /// What the fake that ended last gives.
    given: Option<(Vec<u8>, Vec<u8>)>,
    secrets: Secrets,
    masker: StreamMasker,
    log: Vec<u8>,
    recorded: usize,
    /// The run knows that somebody wants to end.
    is_cancelled: bool,
}

/// Runs a case to its end.
pub fn perform(stage: &Stage<'_>, plan: Plan) -> Outcome {
    let start = Instant::now();
    let mut secrets = Secrets::default();
    for value in plan.variables.values().filter(|value| value.is_sensitive()) {
        let _short_ones_are_not_masked = value.as_str().map(|text| secrets.add(text));
    }
    let mut performance = Performance {
        stage,
        outcome: Outcome::default(),
        programs: Vec::new(),
        is_set: false,
        stubs_are_set: false,
        loader: Loader::new(&plan.places.build_dir, false),
        live: None,
        given: None,
        masker: StreamMasker::new(&secrets),
        secrets,
        log: Vec::new(),
        recorded: 0,
        is_cancelled: false,
    };
    performance.programs = stage.case.stubs.iter().map(|stub| Program::new(stub, performance.replies(&stub.answers))).collect();
    if !stage.case.files.is_empty() || stage.case.variables.iter().any(|given| given.value.file) {
        performance.set();
    }
    let run = performance.play(plan, start);
    performance.close(&run, start)
}

impl Performance<'_> {
    fn play(&mut self, plan: Plan, start: Instant) -> Run {
        let now = || {
            let wall = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
            Now { monotonic: start.elapsed(), wall: Timestamp::from_nanoseconds(wall) }
        };
        let (mut run, effects) = Run::start(plan, Seed(0), now());
        let mut effects = VecDeque::from(effects);
        loop {
            while let Some(effect) = effects.pop_front() {
                for event in self.carry_out(effect, &run) {
                    effects.extend(run.on(event, now()));
                }
            }
            if run.is_finished() {
                return run;
            }
            let until = run.next_deadline().map(|deadline| Instant::now() + deadline.remaining(now()).min(Duration::from_secs(3600)));
            let event = self.wait(until);
            effects.extend(run.on(event, now()));
        }
    }

    fn wait(&mut self, until: Option<Instant>) -> Event {
        // Once: what was killed has to be waited for.
        if self.stage.cancelled.load(Ordering::Relaxed) && !std::mem::replace(&mut self.is_cancelled, true) {
            return Event::CancelNow;
        }
        let soon = Instant::now() + CANCEL_LOOK;
        let until = Some(until.map_or(soon, |until| until.min(soon)));
        let Some((step, running)) = &mut self.live else {
            // Nothing runs and nothing is asked for: only time can move the run.
            std::thread::sleep(until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now())));
            return Event::Woken;
        };
        let step = *step;
        loop {
            match running.wait(until) {
                Happened::Wrote(bytes) => write(&mut self.masker, &mut self.log, &bytes),
                Happened::Nothing => return Event::Woken,
                Happened::Ended(exit) => {
                    let rest = running.rest();
                    write(&mut self.masker, &mut self.log, &rest);
                    self.live = None;
                    self.take_recorded();
                    let exit = if self.stage.ignores_exit { Exit::Code(0) } else { exit };
                    return Event::Exited { step, exit, usage: Usage::default() };
                }
            }
        }
    }

    fn carry_out(&mut self, effect: Effect, run: &Run) -> Vec<Event> {
        match effect {
            Effect::PrepareFiles { step, files } => {
                self.set();
                vec![match process::prepare(&files) {
                    Ok(()) => Event::FilesPrepared { step },
                    Err(fault) => Event::FilesNotPrepared { step, fault },
                }]
            }
            Effect::Spawn { step, process } => self.spawn(step, &process, run),
            Effect::ReadOutputs { step, files, .. } => vec![self.read_outputs(step, &files)],
            Effect::RemoveFiles { files, .. } => {
                if self.is_set {
                    process::remove(&files);
                }
                Vec::new()
            }
            Effect::Load { load, from, reference } => vec![Event::Loaded { load, outcome: self.loader.load(&from, &reference) }],
            Effect::Terminate { step } => self.urge(step, Running::ask),
            Effect::Kill { step } => self.urge(step, Running::kill),
            Effect::Mask { value } => {
                self.mask(&value);
                self.masker.update(&self.secrets);
                Vec::new()
            }
            Effect::Say { .. } | Effect::Started { .. } | Effect::Ended { .. } | Effect::Finished => Vec::new(),
        }
    }

    fn urge(&mut self, step: StepId, urge: fn(&mut Running)) -> Vec<Event> {
        if let Some((_, running)) = self.live.as_mut().filter(|(live, _)| *live == step) {
            urge(running);
        }
        Vec::new()
    }

    fn mask(&mut self, value: &Value) {
        match value.data() {
            Data::String(text) => drop(self.secrets.add(text)),
            Data::Array(items) => items.iter().for_each(|item| self.mask(item)),
            Data::Object(object) => object.values().for_each(|member| self.mask(member)),
            Data::Number(_) => drop(self.secrets.add(&value.to_json().to_string())),
            Data::Null | Data::Boolean(_) => {}
        }
    }

    fn spawn(&mut self, step: StepId, process: &Process, run: &Run) -> Vec<Event> {
        let case = self.stage.case;
        if let Some((index, fake)) = fake_of(&process.command).and_then(|index| Some((index, case.fakes.get(index)?))) {
            let exit = self.play_fake(index, fake, step, process, run);
            return ended(step, exit);
        }
        if let Some(exit) = self.play_stub(process) {
            return ended(step, exit);
        }
        if self.stage.hermetic {
            let what = run.result().headline(step).description();
            let name = run.result().headline(step).name;
            let fault = if name.is_empty() {
                format!("the case is hermetic, and the step itself would run: {what}")
            } else {
                format!("the case is hermetic, and step `{name}` would run: {what}")
            };
            self.outcome.faults.push(fault.clone());
            return vec![Event::NotSpawned { step, fault: SpawnFault { kind: SpawnFaultKind::Step, message: fault } }];
        }
        match self.start(process, step) {
            Ok(running) => {
                self.outcome.processes += 1;
                self.live = Some((step, running));
                vec![Event::Spawned { step }]
            }
            Err(fault) => vec![Event::NotSpawned { step, fault }],
        }
    }

    fn start(&mut self, process: &Process, step: StepId) -> Result<Running, SpawnFault> {
        self.set();
        self.set_stubs();
        if let Some(files) = &process.files {
            process::prepare(files).map_err(|message| SpawnFault { kind: SpawnFaultKind::Machine, message })?;
        }
        let directories = self.stage.directories;
        let places = Places { work_dir: PathBuf::from(&*directories.work), files_dir: PathBuf::from(&*directories.files) };
        Command::of(process, &places, &format!("script-{}", step.0))?.start_by(Running::start)
    }

    /// A fake's texts see what the step is given.
    fn play_fake(&mut self, index: usize, fake: &Fake, step: StepId, process: &Process, run: &Run) -> i32 {
        *self.outcome.fakes.entry(index).or_default() += 1;
        let node = run.result().node(step);
        let mut inputs = node.inputs;
        for (name, input) in node.document.iter().flat_map(|document| &document.spec.inputs) {
            if let (false, Some(default)) = (inputs.iter().any(|(known, _)| known == name), &input.default) {
                inputs.push((Arc::clone(name), default.clone()));
            }
        }
        let env = Value::object(process.env.iter().map(|(name, value)| (Arc::clone(name), value.clone())));
        let scope = self.scope().with("inputs", Value::object(inputs)).with("env", env);
        let delegates = node.document.as_ref().is_some_and(|document| document.spec.outputs == Outputs::Delegate);
        let mut output = Vec::new();
        let mut results = serde_json::Map::new();
        for given in &fake.outputs {
            match given.value.evaluate(&scope) {
                Ok(value) if delegates => drop(results.insert(given.name.to_string(), value.to_json())),
                Ok(value) => line(&mut output, &given.name, &value),
                Err(error) => self.outcome.faults.push(format!("fake `{}`: output `{}`: {error}", fake.name, given.name)),
            }
        }
        if delegates {
            output = serde_json::json!({ "outputs": results }).to_string().into_bytes();
        }
        let mut export = Vec::new();
        for given in &fake.exports {
            if let Some(text) = self.text(&given.value, &scope, &format!("fake `{}`: export `{}`", fake.name, given.name)) {
                line(&mut export, &given.name, &text.into());
            }
        }
        if let Some(text) = fake.log.as_ref().and_then(|log| self.text(log, &scope, &format!("fake `{}`: log", fake.name))) {
            self.write_line(&text);
        }
        if !fake.files.is_empty() {
            self.set();
            let work_dir = process.work_dir.as_str().map_or_else(|| PathBuf::from(&*self.stage.directories.work), PathBuf::from);
            self.put(&fake.files, &work_dir, &scope);
        }
        self.given = Some((output, export));
        fake.exit
    }

    /// The exit code, when the command is a stub: there is no need to start its program.
    fn play_stub(&mut self, process: &Process) -> Option<i32> {
        let name = process.command.first()?.as_str()?;
        let program = self.programs.iter().find(|program| *program.name == *name)?;
        let words = process.command[1..].iter().map(|word| word.as_str().map_or_else(|| word.to_json().to_string(), str::to_owned));
        let dir = process.work_dir.as_str().unwrap_or_default();
        let call = Call { name: name.into(), args: words.map(Arc::from).collect(), dir: dir.into() };
        let reply = program.reply(&call.args, &self.outcome.calls).cloned();
        self.outcome.calls.push(call.clone());
        let Some(reply) = reply else {
            self.unanswered(&call);
            return Some(127);
        };
        write(&mut self.masker, &mut self.log, reply.stdout.as_bytes());
        write(&mut self.masker, &mut self.log, reply.stderr.as_bytes());
        for (path, content) in &reply.files {
            self.set();
            if let Err(error) = put_text(&Path::new(dir).join(&**path), content, false) {
                self.outcome.faults.push(format!("stub `{name}` could not write `{path}`: {}", in_words(&error)));
            }
        }
        self.given = Some((Vec::new(), Vec::new()));
        if self.stubs_are_set {
            self.count_on();
        }
        Some(reply.exit)
    }

    fn unanswered(&mut self, call: &Call) {
        let words: Vec<Arc<str>> = [&call.name].into_iter().chain(&call.args).cloned().collect();
        self.outcome.faults.push(format!("stub `{}` has no answer for `{}`", call.name, step_model::testing::in_words(&words)));
    }

    fn read_outputs(&mut self, step: StepId, files: &StepFiles) -> Event {
        if let Some((output, export)) = self.given.take() {
            return Event::Outputs { step, output: FileContent::Bytes(output), export: FileContent::Bytes(export) };
        }
        let (output, export) = process::take(files, false);
        Event::Outputs { step, output, export }
    }

    fn scope(&self) -> Contexts {
        crate::plan::scope(&self.stage.directories.work, self.stage.step_dir)
    }

    fn text(&mut self, template: &Template, scope: &Contexts, what: &str) -> Option<String> {
        match template.evaluate_text(scope) {
            Ok(value) => value.as_str().map(str::to_owned),
            Err(error) => {
                self.outcome.faults.push(format!("{what}: {error}"));
                None
            }
        }
    }

    /// What a fake logs is a line, as what a program prints.
    fn write_line(&mut self, text: &str) {
        write(&mut self.masker, &mut self.log, text.as_bytes());
        if !text.ends_with('\n') {
            write(&mut self.masker, &mut self.log, b"\n");
        }
    }

    fn replies(&mut self, answers: &[Answer]) -> Vec<Reply> {
        let scope = self.scope();
        let reply = |answer: &Answer| {
            let mut text = |template: &Option<Template>| {
                template.as_ref().and_then(|template| self.text(template, &scope, "stub")).unwrap_or_default()
            };
            let mut reply = Reply { exit: answer.exit, stdout: text(&answer.stdout), stderr: text(&answer.stderr), files: Vec::new() };
            for file in &answer.files {
                if let Some(content) = self.content(&file.value.content, &scope) {
                    reply.files.push((Arc::clone(&file.name), content));
                }
            }
            reply
        };
        answers.iter().map(reply).collect()
    }

    fn content(&mut self, content: &Content, scope: &Contexts) -> Option<String> {
        match content {
            Content::Text(template) => self.text(template, scope, "file"),
            Content::From(path) => {
                let read = fs::read(self.stage.test_dir.join(&**path));
                let text = read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                text.map_err(|error| self.outcome.faults.push(format!("could not read `{path}`: {}", in_words(&error)))).ok()
            }
        }
    }

    /// The directories of the case, and the files that are there before it begins.
    fn set(&mut self) {
        if std::mem::replace(&mut self.is_set, true) {
            return;
        }
        let directories = self.stage.directories;
        for dir in [&directories.work, &directories.home, &directories.temporary, &directories.files] {
            if let Err(error) = fs::create_dir_all(&**dir) {
                self.outcome.faults.push(format!("could not make `{dir}`: {}", in_words(&error)));
            }
        }
        let scope = self.scope();
        self.put(&self.stage.case.files, Path::new(&*directories.work), &scope);
        for given in self.stage.case.variables.iter().filter(|given| given.value.file) {
            if let Some(text) = self.text(&given.value.value, &scope, &given.name) {
                if given.value.masked {
                    let _short_ones_are_not_masked = self.secrets.add(&text);
                    self.masker.update(&self.secrets);
                }
                if let Err(error) = put_text(&Path::new(&*directories.variables).join(&*given.name), &text, false) {
                    self.outcome.faults.push(format!("could not write the variable `{}`: {}", given.name, in_words(&error)));
                }
            }
        }
    }

    fn put(&mut self, files: &[Given<Source>], dir: &Path, scope: &Contexts) {
        for file in files {
            let path = dir.join(&*file.name);
            let put = match &file.value.content {
                Content::From(from) => copy(&self.stage.test_dir.join(&**from), &path),
                Content::Text(template) => match self.text(template, scope, &file.name) {
                    Some(text) => put_text(&path, &text, file.value.executable),
                    None => continue,
                },
            };
            if let Err(error) = put {
                self.outcome.faults.push(format!("could not write `{}`: {}", file.name, in_words(&error)));
            }
        }
    }

    fn record(&self) -> PathBuf {
        self.stage.top.join("calls")
    }

    fn set_stubs(&mut self) {
        if self.programs.is_empty() || std::mem::replace(&mut self.stubs_are_set, true) {
            return;
        }
        let record = self.record();
        let record = record.to_string_lossy();
        for program in &self.programs {
            let counts = program.counts(&self.outcome.calls);
            let path = Path::new(&*self.stage.directories.stubs).join(&*program.name);
            if let Err(error) = put_text(&path, &program.script(&record, &counts), true) {
                self.outcome.faults.push(format!("could not write the stub `{}`: {}", program.name, in_words(&error)));
            }
        }
    }

    /// A stub was called without its program, which has to know.
    fn count_on(&mut self) {
        self.stubs_are_set = false;
        self.set_stubs();
    }

    /// What the programs of stubs wrote down since the last look.
    fn take_recorded(&mut self) {
        if !self.stubs_are_set {
            return;
        }
        let Ok(bytes) = fs::read(self.record()) else { return };
        let new = recorded(bytes.get(self.recorded..).unwrap_or_default());
        self.recorded = bytes.len();
        for call in new {
            let program = self.programs.iter().find(|program| program.name == call.name);
            if program.is_some_and(|program| program.reply(&call.args, &self.outcome.calls).is_none()) {
                self.unanswered(&call);
            }
            self.outcome.calls.push(call);
        }
    }

    fn close(mut self, run: &Run, start: Instant) -> Outcome {
        if let Some((_, mut running)) = self.live.take() {
            running.kill();
        }
        if self.outcome.processes > 0 {
            sweep(&format!("{}/", self.stage.top.display()));
            self.take_recorded();
        }
        let mut masker = std::mem::replace(&mut self.masker, StreamMasker::new(&Secrets::default()));
        masker.finish(&mut self.log);
        self.outcome.log = String::from_utf8_lossy(&self.log).into_owned();
        self.outcome.take(run);
        let work_dir = Path::new(&*self.stage.directories.work);
        for file in &self.stage.case.expect.files {
            self.outcome.files.insert(Arc::clone(&file.name), found(&work_dir.join(&*file.name), &file.value));
        }
        self.outcome.duration = start.elapsed();
        self.outcome
    }
}

fn ended(step: StepId, exit: i32) -> Vec<Event> {
    vec![Event::Spawned { step }, Event::Exited { step, exit: Exit::Code(exit), usage: Usage::default() }]
}

fn write(masker: &mut StreamMasker, log: &mut Vec<u8>, bytes: &[u8]) {
    if log.len() < LOG_LIMIT {
        masker.push(bytes, log);
    }
}

fn line(file: &mut Vec<u8>, name: &str, value: &Value) {
    file.extend(serde_json::json!({"name": name, "value": value.to_json()}).to_string().into_bytes());
    file.push(b'\n');
}
