//! `runner-core run`: jobs from a server to agents of this machine and back, whoever is killed on the way.

use ci_tests::program::{Invocation, Started, path};
use ci_tests::workshop::Workshop;
use runner_mock_gitlab::scenario::{Cancel, CancelWhen, Seconds};
use runner_mock_gitlab::world::World;
use runner_mock_gitlab::{Burst, JobKey, Report, Scenario, Server};
use rustix::process::{Pid, Signal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub const TOKEN: &str = "glrt-journey-runner-token";

/// A server, a workshop with a configuration for it, and a place for its agents.
pub struct Scene {
    pub server: Arc<Server>,
    pub workshop: Workshop,
    /// Dropped, it ends the thread of the server.
    _serving: tokio::sync::oneshot::Sender<()>,
}

/// On a thread of its own, until the other end is dropped.
fn serve(scenario: Scenario) -> (Arc<Server>, tokio::sync::oneshot::Sender<()>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let server = Arc::new(Server::start(scenario).await.expect("a server"));
            sender.send(server).expect("somebody waits for it");
            drop(ended.await);
        });
    });
    (receiver.recv().expect("a server"), end)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub fn jobs(count: u64, script: &[&str]) -> Burst {
    let script = script.iter().map(|line| (*line).to_owned()).collect();
    Burst { count, script, variables: [("GIT_STRATEGY".to_owned(), "none".to_owned())].into(), ..Burst::default() }
}

impl Scene {
    pub fn new(bursts: Vec<Burst>) -> Self {
        Self::with(bursts, |_| {})
    }

    pub fn with(bursts: Vec<Burst>, change: impl FnOnce(&mut Scenario)) -> Self {
        let mut scenario = Scenario { bursts, trace_interval: Seconds(0.2), long_poll: Seconds(1.0), ..Scenario::with_jobs(TOKEN, 0) };
        change(&mut scenario);
        let (server, serving) = serve(scenario);
        let workshop = Workshop::new();
        let scene = Self { server, workshop, _serving: serving };
        scene.configure(4);
        scene
    }

    pub fn configure(&self, concurrent: u32) {
        self.configure_with(concurrent, "");
    }

    /// `entry`: more of the entry's keys, and its tables.
    pub fn configure_with(&self, concurrent: u32, entry: &str) {
        self.workshop.file("config.toml", configuration(&self.server.url(), &self.workshop, concurrent, entry));
    }

    pub fn run(&self) -> Started {
        self.run_with(&[])
    }

    pub fn run_with(&self, environment: &[(&str, &str)]) -> Started {
        let plugins = path("FLEETING_PLUGIN_LOCAL").parent().expect("a directory").to_path_buf();
        let search = format!("{}:{}", plugins.display(), std::env::var("PATH").unwrap_or_default());
        let arguments = ["run", "--config", "config.toml", "--log-level", "debug"];
        let invocation = self.workshop.runner_core(&arguments).env("PATH", search).limit(Duration::from_secs(120));
        Invocation::start(environment.iter().fold(invocation, |invocation, (name, value)| invocation.env(name, value)))
    }

    /// Waits until this is so on the server, as long as a busy machine may need.
    pub fn until(&self, is_so: impl FnMut(&World) -> bool) {
        let waited = runtime().block_on(async { tokio::time::timeout(Duration::from_secs(100), self.server.until(is_so)).await });
        assert!(waited.is_ok(), "{}\n{:#?}", self.server.report(), self.server.look(|world| world.record().to_vec()));
    }

    pub fn until_all_ended(&self) {
        self.until(|world| {
            let report = world.report();
            report.open.is_empty() && report.waiting.is_empty()
        });
    }

    /// The agents that answer, as processes.
    pub fn agents(&self) -> Vec<Pid> {
        let entries = std::fs::read_dir(self.workshop.path("agents")).into_iter().flatten().filter_map(Result::ok);
        entries.filter_map(|entry| who_listens(&entry.path().join("step-runner.sock"))).collect()
    }

    pub fn trace(&self, id: u64) -> String {
        self.server.look(|world| String::from_utf8_lossy(&world.jobs()[&JobKey { cell: 1, id }].trace).into_owned())
    }

    fn ids(&self) -> Vec<u64> {
        self.server.look(|world| world.jobs().keys().map(|key| key.id).collect())
    }

    /// Ends the runner as an operator does, and what it started.
    pub fn end(self, runner: Started, report: impl FnOnce(Report) -> Report) {
        runner.signal(Signal::QUIT);
        runner.finish().exits(0);
        let report = report(self.server.report());
        assert!(report.is_clean(), "{report}");
    }
}

impl Drop for Scene {
    /// Agents outlive the runner on purpose: in a test they end by the end of their directories.
    fn drop(&mut self) {
        let agents = self.workshop.path("agents");
        for entry in std::fs::read_dir(agents).into_iter().flatten().filter_map(Result::ok) {
            let socket = entry.path().join("step-runner.sock");
            end_agent(&socket);
        }
    }
}

/// Who listens on a socket is asked to end its jobs and itself.
fn end_agent(socket: &Path) {
    let Some(pid) = who_listens(socket) else { return };
    for _ in 0..2 {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

/// The process of a front.
pub fn who_listens(socket: &Path) -> Option<Pid> {
    let stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    Some(rustix::net::sockopt::socket_peercred(&stream).ok()?.pid)
}

fn configuration(url: &str, workshop: &Workshop, concurrent: u32, entry: &str) -> String {
    let (agents, agent) = (workshop.path("agents"), path("STEP_RUNNER"));
    std::fs::create_dir_all(&agents).expect("a directory");
    format!(
        "concurrent = {concurrent}\ncheck_interval = 1\n\n[[runners]]\nname = \"journey\"\nid = 1\nurl = \"{url}\"\ntoken = \"{TOKEN}\"\nexecutor = \"instance\"\n\
         request_concurrency = 4\nbuilds_dir = \"{}\"\n{entry}\n[runners.autoscaler]\nplugin = \"local\"\ncapacity_per_instance = 2\nmax_instances = 2\n\
         update_interval = \"1s\"\nupdate_interval_when_expecting = \"100ms\"\n\n[runners.autoscaler.plugin_config]\ndirectory = \"{}\"\nprogram = \"{}\"\n\n\
         [[runners.autoscaler.policy]]\nidle_count = 0\n",
        workshop.path("builds").display(),
        agents.display(),
        agent.display()
    )
}

#[test]
fn jobs_of_a_server_run_and_their_logs_and_ends_arrive() {
    let scene = Scene::new(vec![jobs(3, &["echo hello from $CI_JOB_ID", "echo aside >&2"])]);
    let runner = scene.run();
    scene.until_all_ended();
    for id in scene.ids() {
        let trace = scene.trace(id);
        assert!(
            trace.contains(&format!("01O hello from {id}\n")) && trace.contains("01E aside\n") && trace.contains("Job succeeded"),
            "{trace}"
        );
        assert_eq!(trace.matches("Running with runner-core").count(), 1, "{trace}");
    }
    scene.end(runner, |report| report);
}

#[test]
fn a_failed_script_is_reported_with_its_exit_code_and_reason() {
    let scene = Scene::new(vec![jobs(1, &["echo before", "exit 7"])]);
    let runner = scene.run();
    scene.until_all_ended();
    let [id] = scene.ids()[..] else { panic!("one job") };
    let ended = scene.server.look(|world| world.jobs()[&JobKey { cell: 1, id }].ended.clone()).expect("an end");
    assert_eq!((ended.status, ended.reason.as_deref(), ended.exit_code), ("failed", Some("script_failure"), 7));
    assert!(scene.trace(id).contains("ERROR: Job failed: exit code 7"), "{}", scene.trace(id));
    scene.end(runner, |report| report);
}

#[test]
fn a_cancelled_job_ends_at_once_and_says_so() {
    let cancel = Cancel { when: CancelWhen::Trace, after: Seconds(0.0), hard: false };
    let scene = Scene::new(vec![Burst { cancel: Some(cancel), ..jobs(1, &["echo begun", "exec sleep 600"]) }]);
    let runner = scene.run();
    scene.until_all_ended();
    scene.end(runner, |report| report);
}

#[test]
fn a_runner_that_is_killed_goes_on_with_its_jobs_at_the_exact_byte() {
    let script = ["for i in $(seq 1 40); do echo line $i; sleep 0.1; done", "echo done"];
    let scene = Scene::new(vec![jobs(3, &script)]);
    let runner = scene.run();
    scene.until(|world| world.jobs().values().all(|job| job.trace.windows(7).any(|window| window == b"line 5\n")));
    runner.signal(Signal::KILL);
    drop(runner.finish());
    let runner = scene.run();
    scene.until_all_ended();
    check_lines(&scene);
    scene.end(runner, Report::without_offsets);
}

#[test]
fn a_runner_whose_state_is_gone_finds_its_jobs_through_their_agents() {
    let script = ["for i in $(seq 1 40); do echo line $i; sleep 0.1; done", "echo done"];
    let scene = Scene::new(vec![jobs(2, &script)]);
    let runner = scene.run();
    scene.until(|world| world.jobs().values().all(|job| job.trace.windows(7).any(|window| window == b"line 5\n")));
    runner.signal(Signal::KILL);
    drop(runner.finish());
    std::fs::remove_dir_all(scene.workshop.path(".runner-core")).expect("the state is removed");
    let runner = scene.run();
    scene.until_all_ended();
    check_lines(&scene);
    scene.end(runner, Report::without_offsets);
}

#[test]
fn a_runner_that_detaches_leaves_its_jobs_and_the_next_one_ends_them() {
    let script = ["for i in $(seq 1 40); do echo line $i; sleep 0.1; done", "echo done"];
    let scene = Scene::new(vec![jobs(2, &script)]);
    let runner = scene.run();
    scene.until(|world| world.jobs().values().all(|job| job.trace.windows(7).any(|window| window == b"line 5\n")));
    runner.signal(Signal::USR2);
    runner.finish().exits(0);
    let runner = scene.run();
    scene.until_all_ended();
    check_lines(&scene);
    scene.end(runner, Report::without_offsets);
}

#[test]
fn a_new_token_counts_from_then_on_and_jobs_of_the_old_one_are_found_after_a_kill() {
    const SECOND: &str = "glrt-second-runner-token";
    let second = runner_mock_gitlab::scenario::Runner { token: SECOND.to_owned(), id: 2, cell: 1, paused: false };
    let scene = Scene::with(Vec::new(), |scenario| scenario.runners.push(second));
    let wait = format!("until [ -e {} ]; do sleep 0.1; done", scene.workshop.path("go").display());
    scene.server.plan(&jobs(1, &["for i in $(seq 1 40); do echo line $i; sleep 0.05; done", &wait, "echo done"]));
    let runner = scene.run();
    scene.until(|world| world.jobs().values().all(|job| job.trace.windows(7).any(|window| window == b"line 5\n")));
    let config = scene.workshop.read("config.toml").replace(TOKEN, SECOND);
    scene.workshop.file("config.toml", config.replace("builds_dir = \"", "builds_dir = \"/tmp/../"));
    runner.signal(Signal::HUP);
    let keys = scene.server.plan(&Burst { runner: Some(SECOND.to_owned()), ..jobs(1, &["echo at $CI_BUILDS_DIR"]) });
    scene.until(|world| world.jobs()[&keys[0]].ended.is_some());
    assert!(scene.trace(keys[0].id).contains("01O at /tmp/../"), "{}", scene.trace(keys[0].id));
    runner.signal(Signal::KILL);
    drop(runner.finish());
    scene.server.runner_died();
    let runner = scene.run();
    scene.workshop.file("go", "");
    scene.until_all_ended();
    check_lines_of(&scene, 1);
    scene.end(runner, Report::without_offsets);
}

#[test]
fn case_196_sigquit_takes_no_more_jobs_and_lets_those_that_run_finish() {
    let scene = Scene::new(Vec::new());
    let go = scene.workshop.path("go");
    let wait = format!("until [ -e {} ]; do sleep 0.1; done", go.display());
    scene.server.plan(&jobs(2, &["echo begun", &wait, "echo done"]));
    // While both run there is no place for a third one, so nobody asks for it.
    scene.configure(2);
    let runner = scene.run();
    scene.until(|world| world.jobs().values().all(|job| job.trace.windows(6).any(|window| window == b"begun\n")));
    scene.server.plan(&Burst { at: Seconds(0.0), ..jobs(1, &["echo never"]) });
    runner.signal(Signal::QUIT);
    runner.signal(Signal::QUIT);
    scene.workshop.file("go", "");
    runner.finish().exits(0);
    let report = scene.server.report();
    assert_eq!((report.ended.get("success"), report.open.len()), (Some(&2), 0), "{report}");
}

/// Every line once, in order.
pub fn check_lines(scene: &Scene) {
    scene.ids().into_iter().for_each(|id| check_lines_of(scene, id));
}

fn check_lines_of(scene: &Scene, id: u64) {
    let trace = scene.trace(id);
    let lines: Vec<&str> = trace.lines().filter_map(|line| line.get(32..)).filter(|line| line.starts_with("line ")).collect();
    let expected: Vec<String> = (1..=40).map(|number| format!("line {number}")).collect();
    assert_eq!(lines, expected, "{trace}");
    assert!(trace.contains("Job succeeded"), "{trace}");
}
