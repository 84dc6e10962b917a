//! A job in a directory of its own, and an audience that remembers.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use step_agent::definitions;
use step_agent::job_process::{self, Ask, Audience, Ended, Settings, Stream, Streams};
use step_engine::run::{Headline, Seed};
use step_model::builtin::Builtins;
use step_model::document::{Dialect, StepDocument, raw};
use step_model::masking::Secrets;
use step_model::plan::{Places, Plan};
use step_model::result::{ResultTree as _, Status, StepId};
use step_model::value::Value;
use tokio::sync::mpsc;

/// A job before it runs.
pub struct Job {
    directory: tempfile::TempDir,
    /// Where the job runs.
    pub work_dir: PathBuf,
    document: Arc<StepDocument>,
    pub settings: Settings,
    pub grace_period: Duration,
    pub timeout: Option<Duration>,
    pub env: BTreeMap<Arc<str>, Value>,
    pub builtins: Builtins,
    pub variables: BTreeMap<Arc<str>, Value>,
    pub file_variables: BTreeMap<Arc<str>, Arc<str>>,
}

/// What happened in a job.
pub struct Outcome {
    pub status: Status,
    /// Empty after a success.
    pub message: String,
    pub log: Log,
    pub ended: Ended<Recorder>,
}

/// What an audience was told.
#[derive(Debug, Clone, Default)]
pub struct Log {
    pub output: BTreeMap<(StepId, &'static str), Vec<u8>>,
    pub said: Vec<String>,
    pub ended: Vec<(Headline, Vec<u8>)>,
    /// In order: `start NAME`, `output NAME`, `end NAME`.
    pub order: Vec<String>,
}

/// Called before something is remembered: the name of the step, and what it wrote.
type React = Box<dyn FnMut(&str, &[u8]) -> io::Result<()> + Send>;

/// An audience that remembers.
pub struct Recorder {
    log: Arc<Mutex<Log>>,
    names: BTreeMap<StepId, String>,
    react: React,
}

impl Job {
    /// A job whose definition file says this after its first line.
    pub fn new(definition: &str) -> Self {
        let reading = raw::read_job(&format!("{{}}\n---\n{definition}"), Dialect::Steps);
        Self::of(reading.document.unwrap_or_else(|| panic!("{:?}", reading.problems)))
    }

    pub fn of(document: Arc<StepDocument>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("work")).unwrap();
        std::fs::create_dir(root.join("files")).unwrap();
        let path = std::env::var("PATH").unwrap();
        Self {
            work_dir: root.join("work"),
            directory,
            document,
            settings: Settings {
                seed: Seed(1),
                secrets: Secrets::default(),
                streams: Streams::Shared,
                journal: None,
                provenance: false,
                keep_files: false,
            },
            grace_period: Duration::from_secs(30),
            timeout: None,
            builtins: Builtins::default(),
            variables: BTreeMap::new(),
            file_variables: BTreeMap::new(),
            env: BTreeMap::from([("PATH".into(), Value::from(path))]),
        }
    }

    pub fn exec(command: &[&str]) -> Self {
        Self::new(&format!("exec: {{command: {}}}", serde_json::to_string(command).unwrap()))
    }

    /// One step `s` for each text.
    pub fn scripts(scripts: &[&str]) -> Self {
        let step = |(index, script): (usize, &&str)| {
            format!("- {}", serde_json::json!({"name": char::from(b'a' + u8::try_from(index).unwrap()).to_string(), "script": script}))
        };
        Self::new(&format!("run:\n{}", scripts.iter().enumerate().map(step).collect::<Vec<_>>().join("\n")))
    }

    pub fn script(script: &str) -> Self {
        Self::scripts(&[script])
    }

    pub fn with_file(self, name: &str, content: &str) -> Self {
        let path = self.work_dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub fn with_program(self, name: &str, content: &str) -> Self {
        let job = self.with_file(name, content);
        std::fs::set_permissions(job.work_dir.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        job
    }

    pub fn changed(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn files_dir(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("files")
    }

    pub fn plan(&self) -> Plan {
        let document = Arc::clone(&self.document);
        let work_dir: Arc<str> = self.work_dir.to_str().unwrap().into();
        let (root, _) = definitions::resolve(document, &work_dir, false, &self.builtins).unwrap();
        let places = Places { build_dir: work_dir.clone(), work_dir, files_dir: self.files_dir().to_str().unwrap().into() };
        Plan {
            process_env: self.env.clone(),
            timeout: self.timeout,
            grace_period: self.grace_period,
            builtins: self.builtins.clone(),
            variables: self.variables.clone(),
            file_variables: self.file_variables.clone(),
            ..Plan::of(root, places)
        }
    }

    /// Why the job cannot be planned.
    pub fn refused(&self) -> Vec<String> {
        let problems =
            definitions::resolve(Arc::clone(&self.document), self.work_dir.to_str().unwrap(), false, &self.builtins).unwrap_err();
        let said = problems.iter().flat_map(|document| &document.problems);
        said.map(|problem| format!("{}; {}", problem.message, problem.hint.as_deref().unwrap_or("-"))).collect()
    }

    pub fn run(&self) -> Outcome {
        self.run_with(|_, _, _| Ok(()))
    }

    /// Runs the job; `react` hears what is written and may ask for the end.
    pub fn run_with(&self, react: impl FnMut(&str, &[u8], &mpsc::UnboundedSender<Ask>) -> io::Result<()> + Send + 'static) -> Outcome {
        self.run_plan_with(self.plan(), react)
    }

    /// Runs a plan that came from elsewhere.
    pub fn run_plan(&self, plan: Plan) -> Outcome {
        self.run_plan_with(plan, |_, _, _| Ok(()))
    }

    fn run_plan_with(
        &self,
        plan: Plan,
        mut react: impl FnMut(&str, &[u8], &mpsc::UnboundedSender<Ask>) -> io::Result<()> + Send + 'static,
    ) -> Outcome {
        let (asks, receiver) = mpsc::unbounded_channel();
        let log = Arc::new(Mutex::new(Log::default()));
        let react: React = Box::new(move |name, bytes| react(name, bytes, &asks));
        let recorder = Recorder { log: Arc::clone(&log), names: BTreeMap::new(), react };
        let ended = runtime().block_on(job_process::run(plan, self.settings.clone(), recorder, receiver)).unwrap();
        let message = ended.run.failure().map(|failure| failure.message.clone()).unwrap_or_default();
        let message = message.replace(self.directory.path().canonicalize().unwrap().to_str().unwrap(), "/T");
        let log = log.lock().unwrap().clone();
        Outcome { status: ended.run.status(), message, log, ended }
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl Outcome {
    /// All output, of all steps.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.log.output.values().flatten().copied().collect::<Vec<_>>()).into_owned()
    }

    /// The same without what a shell says of a child that a signal has ended.
    pub fn text_of_the_script(&self) -> String {
        self.text().replace("Terminated\n", "")
    }

    /// An output of the step with this name.
    pub fn output_value(&self, step: &str, name: &str) -> Option<Value> {
        let tree = self.ended.run.result();
        let id = tree.children(StepId::ROOT).into_iter().find(|id| *tree.headline(*id).name == *step)?;
        tree.node(id).outputs.into_iter().find(|(output, _)| **output == *name).map(|(_, value)| value)
    }

    /// Both must be right for a job that succeeded.
    pub fn succeeded(self) -> Self {
        assert_eq!((self.status, &*self.message), (Status::Success, ""), "{}", self.text());
        self
    }
}

impl Audience for Recorder {
    fn started(&mut self, step: StepId, headline: &Headline) {
        self.names.insert(step, headline.name.to_string());
        self.log.lock().unwrap().order.push(format!("start {}", headline.name));
    }

    fn output(&mut self, step: StepId, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let name = self.names[&step].clone();
        (self.react)(&name, bytes)?;
        let stream = match stream {
            Stream::Both => "both",
            Stream::Output => "output",
            Stream::Error => "error",
        };
        let mut log = self.log.lock().unwrap();
        log.output.entry((step, stream)).or_default().extend_from_slice(bytes);
        let entry = format!("output {name}");
        if log.order.last() != Some(&entry) {
            log.order.push(entry);
        }
        Ok(())
    }

    fn said(&mut self, _step: StepId, line: &str, warning: bool) {
        self.log.lock().unwrap().said.push(if warning { format!("warning: {line}") } else { line.to_owned() });
    }

    fn ended(&mut self, _step: StepId, headline: &Headline, tail: &[u8]) {
        let mut log = self.log.lock().unwrap();
        log.order.push(format!("end {}", headline.name));
        log.ended.push((headline.clone(), tail.to_vec()));
    }
}

/// Whether the process whose number is in this file runs.
pub fn runs(file: &Path) -> bool {
    let number = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let state = std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
    // Without /proc this knows nothing; the process may then be a zombie too.
    !state.is_empty() && !state.rsplit(')').next().unwrap().starts_with(" Z")
}
