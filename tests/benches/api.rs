//! What the agent's service costs its callers: jobs a second, logs a second, memory of a job, and how soon a front serves. Each figure with the
//! floor of the same moment.

#[path = "agent/front.rs"]
mod front;

use ci_tests::measure::{Figure, duration, durations, median, milliseconds};
use ci_tests::workshop::Workshop;
use front::{Front, job, job_processes, kilobytes, processes_of, runtime, spawn, to_end};
use std::process::Command;
use std::time::{Duration, Instant};
use step_client::RunRequest;

fn main() {
    if std::env::var_os("STEP_RUNNER").is_none() {
        println!("STEP_RUNNER is not set: run the benchmarks by ./bench, which builds the program first");
        return;
    }
    start();
    one_at_a_time();
    eight_at_a_time();
    log_path("raw", 400);
    log_path("stamped", 200);
    thousand_at_once();
    new_front();
}

/// A step that is one program and no shell.
fn one_step(workshop: &Workshop, id: &str) -> RunRequest {
    let dir = workshop.dir().display().to_string();
    RunRequest { id: id.into(), work_dir: dir, steps: "{}\n---\nrun:\n  - {name: s, func: ./true}\n".into(), ..RunRequest::default() }
}

fn true_step(front: &Front) {
    front.workshop.file("true/func.yml", "{}\n---\nexec: {command: [/bin/true]}\n");
}

/// What a job of one step cannot do without.
fn true_program() {
    assert!(Command::new("/bin/true").status().expect("it runs").success());
}

fn floor_of_a_spawn() -> Duration {
    median(&durations(200, true_program))
}

fn start() {
    let workshop = Workshop::new();
    let socket = workshop.path("tmp/step-runner.sock");
    let mut all: Vec<Duration> = (0..20)
        .map(|_| {
            let _ = std::fs::remove_file(&socket);
            let began = Instant::now();
            let mut child = spawn(&workshop, "raw");
            while std::os::unix::net::UnixStream::connect(&socket).is_err() {
                std::hint::spin_loop();
            }
            let took = began.elapsed();
            child.kill().and_then(|()| child.wait()).expect("it can be killed");
            took
        })
        .collect();
    all.sort_unstable();
    let (took, floor) = (median(&all), floor_of_a_spawn());
    Figure {
        name: "serve, cold start to serving",
        value: milliseconds(took),
        floor: milliseconds(floor),
        ratio: Some(took.as_secs_f64() / floor.as_secs_f64()),
        goal: "at most 5 ms",
        met: took <= Duration::from_millis(5),
    }
    .print();
    let front = Front::new("raw");
    // The zygote comes a moment after the front: one job makes sure that it was there.
    runtime().block_on(async { to_end(&front.client(), job("warm", "true")).await });
    std::thread::sleep(Duration::from_millis(500));
    let resident: u64 = processes_of(front.child.id()).iter().map(|pid| kilobytes(*pid, "status", &["VmRSS:"])).sum();
    Figure {
        name: "serve, idle with its zygote: resident",
        value: format!("{:.1} MB", resident as f64 / 1024.0),
        floor: String::new(),
        ratio: None,
        goal: "at most 7 MB",
        met: resident <= 7 << 10,
    }
    .print();
}

fn one_at_a_time() {
    let front = Front::new("raw");
    true_step(&front);
    let runtime = runtime();
    let agent = runtime.block_on(async { front.client() });
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    // Alternating, so that a slow moment of the machine hits both.
    for number in 0..300 {
        let request = one_step(&front.workshop, &format!("j{number}"));
        ours.push(duration(|| runtime.block_on(to_end(&agent, request.clone()))));
        floor.push(duration(true_program));
    }
    ours.sort_unstable();
    floor.sort_unstable();
    let (took, floor) = (median(&ours), median(&floor));
    Figure {
        name: "serve, a job of one step: run, follow, status, close",
        value: milliseconds(took),
        floor: milliseconds(floor),
        ratio: Some(took.as_secs_f64() / floor.as_secs_f64()),
        goal: "at most 1.5 ms",
        met: took <= Duration::from_micros(1500),
    }
    .print();
}

fn eight_at_a_time() {
    const EACH: usize = 150;
    let front = Front::new("raw");
    true_step(&front);
    let took = duration(|| {
        runtime().block_on(async {
            let worker = async |worker: usize| {
                let agent = front.client();
                for number in 0..EACH {
                    to_end(&agent, one_step(&front.workshop, &format!("w{worker}-{number}"))).await;
                }
            };
            futures::future::join_all((0..8).map(worker)).await
        });
    });
    let floor = duration(|| {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..EACH).for_each(|_| true_program()));
            }
        });
    });
    let a_second = |took: Duration| 8.0 * EACH as f64 / took.as_secs_f64();
    Figure {
        name: "serve, jobs of one step a second, eight at a time",
        value: format!("{:.0}", a_second(took)),
        floor: format!("{:.0}", a_second(floor)),
        ratio: Some(took.as_secs_f64() / floor.as_secs_f64()),
        goal: "at least 900",
        met: a_second(took) >= 900.0,
    }
    .print();
}

/// A live log of lines of 80 bytes, from the step that writes it to a follower.
fn log_path(framing: &'static str, goal: u64) {
    const SIZE: u64 = 256 << 20;
    let front = Front::new(framing);
    let line = format!("{}\n", "0123456789".repeat(8).get(..79).expect("long enough"));
    let lines = line.repeat(usize::try_from(SIZE).expect("small") / line.len());
    let file = front.workshop.file("lines", &lines);
    let runtime = runtime();
    let agent = runtime.block_on(async { front.client() });
    let cat = format!("cat {}", file.display());
    let mut came = 0;
    let took = duration(|| {
        came = runtime.block_on(async { agent.run_to_end(job("log", &cat), |_| Ok(())).await.expect("it ends").log_bytes });
    });
    assert!(came >= lines.len() as u64, "{came} bytes of {} came", lines.len());
    let floor = duration(|| {
        let status = Command::new("sh").args(["-c", &format!("{cat} | cat > /dev/null")]).status();
        assert!(status.expect("it runs").success());
    });
    let rate = |took: Duration| lines.len() as f64 / 1e6 / took.as_secs_f64();
    Figure {
        name: if framing == "raw" { "log of a live job to a follower, raw" } else { "log of a live job to a follower, stamped" },
        value: format!("{:.0} MB/s", rate(took)),
        floor: format!("{:.0} MB/s", rate(floor)),
        ratio: Some(took.as_secs_f64() / floor.as_secs_f64()),
        goal: if framing == "raw" { "at least 400 MB/s" } else { "at least 200 MB/s" },
        met: rate(took) >= goal as f64,
    }
    .print();
}

fn thousand_at_once() {
    const JOBS: usize = 1000;
    let front = Front::new("raw");
    front.workshop.file("sleep/func.yml", "{}\n---\nexec: {command: [sleep, \"1000\"]}\n");
    runtime().block_on(async {
        let agent = front.client();
        for number in 0..JOBS {
            let dir = front.workshop.dir().display().to_string();
            let steps = "{}\n---\nrun:\n  - {name: s, func: ./sleep}\n".into();
            agent.run(RunRequest { id: format!("s{number}"), work_dir: dir, steps, ..RunRequest::default() }).await.expect("it is taken");
        }
        loop {
            let jobs = agent.jobs().await.expect("all jobs");
            if jobs.iter().filter(|job| job.start.is_some()).count() == JOBS {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let jobs: Vec<u32> = job_processes(front.child.id());
    let private: u64 = jobs.iter().map(|pid| kilobytes(*pid, "smaps_rollup", &["Private_Clean:", "Private_Dirty:"])).sum();
    let each = private as f64 / 1024.0 / JOBS as f64;
    let of_front = kilobytes(front.child.id(), "status", &["VmRSS:"]);
    if jobs.is_empty() {
        println!("memory of job processes can only be read by root: they cannot be dumped");
        return;
    }
    assert!(jobs.len() >= JOBS, "{} job processes", jobs.len());
    Figure {
        name: "serve, 1,000 jobs at once: private memory of each",
        value: format!("{each:.2} MB"),
        floor: format!("front: {:.1} MB", of_front as f64 / 1024.0),
        ratio: None,
        goal: "at most 2 MB",
        met: each <= 2.0,
    }
    .print();
}

fn new_front() {
    const JOBS: usize = 100;
    let mut front = Front::new("raw");
    runtime().block_on(async {
        let agent = front.client();
        for number in 0..JOBS {
            agent.run(job(&format!("n{number}"), "echo ready; sleep 1000")).await.expect("it is taken");
            let mut log = agent.follow(format!("n{number}"), 0);
            while let Some(bytes) = log.next().await.expect("a log") {
                if bytes.ends_with(b"ready\n") {
                    break;
                }
            }
        }
    });
    front.kill();
    let runtime = runtime();
    let began = Instant::now();
    front.child = spawn(&front.workshop, front.framing);
    front.wait_until_it_serves();
    let serves = began.elapsed();
    runtime.block_on(async {
        let agent = front.client();
        let first = async |number: usize| {
            let bytes = agent.follow(format!("n{number}"), 0).next().await;
            bytes.expect("a log").expect("it has a beginning")
        };
        futures::future::join_all((0..JOBS).map(first)).await
    });
    let took = began.elapsed();
    Figure {
        name: "serve, a new front serves the logs of 100 running jobs",
        value: milliseconds(took),
        floor: milliseconds(serves),
        ratio: None,
        goal: "at most 100 ms",
        met: took <= Duration::from_millis(100),
    }
    .print();
}
