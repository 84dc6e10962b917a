//! What the runner core costs: a job from its offer to its end on a ready instance of this machine, many at once, memory, and how soon jobs are followed
//! again after a kill. The server is our own; the agents are real.
//!
//! `RUNNER_BENCH_JOBS` says how many jobs are in flight where the goal says 1,000.

use ci_tests::measure::{Figure, durations, median, milliseconds};
use ci_tests::program::{Started, path};
use ci_tests::workshop::Workshop;
use runner_mock_gitlab::scenario::Seconds;
use runner_mock_gitlab::world::World;
use runner_mock_gitlab::{Burst, Scenario, Server};
use rustix::process::{Signal, kill_process};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TOKEN: &str = "glrt-benchmark-token";
const LONGEST: Duration = Duration::from_secs(600);

fn main() {
    if ["RUNNER_CORE", "STEP_RUNNER", "FLEETING_PLUGIN_LOCAL"].iter().any(|variable| std::env::var_os(variable).is_none()) {
        println!(
            "RUNNER_CORE, STEP_RUNNER and FLEETING_PLUGIN_LOCAL are not set: run the benchmarks by ./bench, which builds the programs first"
        );
        return;
    }
    one_after_the_other();
    many_at_once();
    a_live_log();
    in_flight();
}

/// A server, a runner with one ready instance for many jobs, and what both need.
struct Scene {
    server: Arc<Server>,
    workshop: Workshop,
    runner: Option<Started>,
    _serving: tokio::sync::oneshot::Sender<()>,
}

impl Scene {
    fn new(concurrent: u32) -> Self {
        let scenario = Scenario { trace_interval: Seconds(0.0), long_poll: Seconds(50.0), ..Scenario::with_jobs(TOKEN, 0) };
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            runtime().block_on(async {
                let address = SocketAddr::from(([127, 0, 0, 1], 0));
                let server = Arc::new(Server::listen(scenario, address, None).await.expect("a server"));
                sender.send(server).expect("somebody waits for it");
                drop(ended.await);
            });
        });
        let server = receiver.recv().expect("a server");
        let workshop = Workshop::new();
        let (agents, builds) = (workshop.path("agents"), workshop.path("builds"));
        std::fs::create_dir_all(&agents).expect("a directory");
        workshop.file(
            "config.toml",
            format!(
                "concurrent = {concurrent}\ncheck_interval = 1\n\n[[runners]]\nname = \"bench\"\nid = 1\nurl = \"{}\"\ntoken = \"{TOKEN}\"\nexecutor = \"instance\"\n\
                 request_concurrency = 4\nbuilds_dir = \"{}\"\n[runners.autoscaler]\nplugin = \"local\"\ncapacity_per_instance = {concurrent}\nmax_instances = 1\n\
                 update_interval = \"1s\"\nupdate_interval_when_expecting = \"50ms\"\n[runners.autoscaler.plugin_config]\ndirectory = \"{}\"\nprogram = \"{}\"\n\
                 [[runners.autoscaler.policy]]\nidle_count = 1\nidle_time = \"1h\"\n",
                server.url(),
                builds.display(),
                agents.display(),
                path("STEP_RUNNER").display()
            ),
        );
        let mut scene = Self { server, workshop, runner: None, _serving: end };
        scene.start();
        scene
    }

    fn start(&mut self) {
        let plugins = path("FLEETING_PLUGIN_LOCAL").parent().expect("a directory").to_path_buf();
        let search = format!("{}:{}", plugins.display(), std::env::var("PATH").unwrap_or_default());
        let invocation = self.workshop.runner_core(&["run", "--config", "config.toml", "--log-level", "error"]).env("PATH", search);
        self.runner = Some(invocation.limit(LONGEST).start());
    }

    fn pid(&self) -> u32 {
        self.runner.as_ref().expect("it runs").pid
    }

    fn until(&self, is_so: impl FnMut(&World) -> bool) {
        let waited = runtime().block_on(async { tokio::time::timeout(LONGEST, self.server.until(is_so)).await });
        assert!(waited.is_ok(), "{}", self.server.report());
    }

    /// Offers the jobs and waits for the end of each: how long each took.
    fn run(&self, count: u64, script: &str) -> Vec<Duration> {
        let began = Instant::now();
        let keys = self.server.plan(&burst(count, script));
        let mut ends = BTreeMap::new();
        self.until(|world| {
            for key in &keys {
                if world.jobs()[key].ended.is_some() {
                    ends.entry(*key).or_insert_with(|| began.elapsed());
                }
            }
            ends.len() == keys.len()
        });
        let mut all: Vec<Duration> = ends.into_values().collect();
        all.sort_unstable();
        all
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(runner) = self.runner.take() {
            runner.signal(Signal::KILL);
            drop(runner.finish());
        }
        // Agents outlive the runner on purpose.
        for entry in std::fs::read_dir(self.workshop.path("agents")).into_iter().flatten().filter_map(Result::ok) {
            let Ok(stream) = std::os::unix::net::UnixStream::connect(entry.path().join("step-runner.sock")) else { continue };
            let Ok(agent) = rustix::net::sockopt::socket_peercred(&stream) else { continue };
            for _ in 0..2 {
                let _gone = kill_process(agent.pid, Signal::TERM);
                std::thread::sleep(Duration::from_millis(300));
            }
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn burst(count: u64, script: &str) -> Burst {
    Burst { count, script: vec![script.to_owned()], variables: [("GIT_STRATEGY".to_owned(), "none".to_owned())].into(), ..Burst::default() }
}

/// What a shell needs for nothing.
fn shell() -> Duration {
    let spawn = || Command::new("/bin/sh").args(["-c", "true"]).stdin(Stdio::null()).status().expect("a shell");
    median(&durations(50, || assert!(spawn().success())))
}

fn one_after_the_other() {
    let scene = Scene::new(8);
    scene.run(5, "true");
    let floor = shell();
    let mut all: Vec<Duration> = (0..40).flat_map(|_| scene.run(1, "true")).collect();
    all.sort_unstable();
    let value = median(&all);
    print(
        "a no-op job alone, median",
        milliseconds(value),
        milliseconds(floor),
        Some(value.as_secs_f64() / floor.as_secs_f64()),
        "25 ms",
        value <= Duration::from_millis(25),
    );
}

fn many_at_once() {
    let scene = Scene::new(100);
    scene.run(20, "true");
    let floor = shell();
    let all = scene.run(100, "true");
    let late = all[all.len() * 99 / 100];
    print("100 no-op jobs at once, p99", milliseconds(late), milliseconds(floor), None, "150 ms", late <= Duration::from_millis(150));
    let (before, began) = (cpu(scene.pid()), Instant::now());
    scene.run(1000, "true");
    let per_second = 1000.0 / began.elapsed().as_secs_f64();
    let shells = 1.0 / floor.as_secs_f64();
    print("no-op jobs a second", format!("{per_second:.0}"), format!("{shells:.0}"), Some(shells / per_second), "150", per_second >= 150.0);
    let each = (cpu(scene.pid()) - before) / 1000;
    print("CPU of the runner for each", milliseconds(each), String::new(), None, "1 ms", each <= Duration::from_millis(1));
}

/// A job that writes 20 MB/s for 3 seconds: how far the server is behind at the end.
fn a_live_log() {
    let scene = Scene::new(2);
    scene.workshop.file("line", format!("{}\n", "x".repeat(199)).repeat(5000));
    let script = format!("for i in $(seq 1 60); do cat {0}; sleep 0.05; done; date +%s%N >{0}.end", scene.workshop.path("line").display());
    let config = scene.workshop.read("config.toml").replace("executor =", "output_limit = 200000\nexecutor =");
    scene.workshop.file("config.toml", config);
    std::thread::sleep(Duration::from_secs(4));
    scene.run(1, &script);
    let ended = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
    let written: u128 = scene.workshop.read("line.end").trim().parse().expect("a time");
    let behind = Duration::from_nanos(u64::try_from(ended.saturating_sub(written)).unwrap_or(u64::MAX));
    print(
        "60 MB of log at 20 MB/s: the end on the server after",
        milliseconds(behind),
        String::new(),
        None,
        "1000 ms",
        behind <= Duration::from_secs(1),
    );
}

fn in_flight() {
    let count: u64 = std::env::var("RUNNER_BENCH_JOBS").map_or(200, |count| count.parse().expect("a number"));
    let mut scene = Scene::new(u32::try_from(count).expect("a small number") + 8);
    scene.run(20, "true");
    let idle = memory(scene.pid());
    print("memory of the idle runner", format!("{:.1} MB", idle as f64 / 1e6), String::new(), None, "20 MB", idle <= 20_000_000);
    let keys = scene.server.plan(&burst(count, "echo begun; sleep 600"));
    let has_begun = |world: &World| keys.iter().all(|key| world.jobs()[key].trace.windows(6).any(|window| window == b"begun\n"));
    scene.until(has_begun);
    let each = memory(scene.pid()).saturating_sub(idle) / count;
    print("memory for each job in flight", format!("{:.0} KB", each as f64 / 1e3), String::new(), None, "50 KB", each <= 50_000);
    let runner = scene.runner.take().expect("it runs");
    runner.signal(Signal::KILL);
    drop(runner.finish());
    let began = Instant::now();
    scene.start();
    let socket = scene.workshop.path(".runner-core/runner-core.sock");
    while followed(&scene, &socket) < count && began.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = began.elapsed();
    let goal = if count >= 1000 { "1000 ms" } else { "1000 ms for 1,000" };
    print(
        "all jobs are followed again after a kill",
        format!("{count} in {}", milliseconds(took)),
        String::new(),
        None,
        goal,
        took <= Duration::from_secs(1),
    );
    for key in keys {
        scene.server.cancel(key, true);
    }
}

/// How many jobs run, as the runner says.
fn followed(scene: &Scene, socket: &std::path::Path) -> u64 {
    if !socket.exists() {
        return 0;
    }
    let said = scene.workshop.runner_core(&["jobs", "--config", "config.toml", "--json"]).finish();
    let jobs: serde_json::Value = serde_json::from_str(&said.stdout()).unwrap_or_default();
    jobs.as_array().into_iter().flatten().filter(|job| job["phase"] == "running").count() as u64
}

fn print(name: &'static str, value: String, floor: String, ratio: Option<f64>, goal: &'static str, met: bool) {
    Figure { name, value, floor, ratio, goal, met }.print();
}

/// User and system time of a process.
fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<u64> = stat.rsplit(") ").next().unwrap_or_default().split(' ').filter_map(|field| field.parse().ok()).collect();
    // Fields 14 and 15 of proc(5), in ticks of 10 ms; the letter of the state is no number.
    let ticks = fields.get(10).zip(fields.get(11)).map_or(0, |(user, system)| user + system);
    Duration::from_millis(ticks * 10)
}

/// Memory that nobody else has, and its share of the rest, in bytes.
fn memory(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) * 1024
}
