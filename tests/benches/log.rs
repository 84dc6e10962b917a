//! What a long log costs in memory: through `run`, through the agent to a follower, and to one that stops reading. Flat means that a log which is sixteen times as long
//! takes no more. `LOG_BENCH_GIGABYTES=10 ./bench log` is the long one; its log needs as much room on the disk.

#[path = "agent/front.rs"]
#[expect(dead_code, reason = "what other benchmarks need of it")]
mod front;

use ci_tests::measure::Figure;
use ci_tests::program;
use ci_tests::workshop::Workshop;
use front::{Front, kilobytes, runtime};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use step_client::RunRequest;

/// What the allocator keeps of pieces of output differs from run to run.
const MORE: u64 = 2 << 10;
const LINE: &str = "0123456789012345678901234567890123456789012345678901234567890123456789012345678\n";
/// In a file that is written again and again.
const LINES: usize = 20_000;
/// The last step of a job tells the peak of the process that runs it.
const JOB: &str = "{}\n---\nrun:\n  - {name: write, func: ./write}\n  - {name: peak, func: ./peak}\n";

fn main() {
    if std::env::var_os("STEP_RUNNER").is_none() {
        println!("STEP_RUNNER is not set: run the benchmarks by ./bench, which builds the program first");
        return;
    }
    let gigabytes = std::env::var("LOG_BENCH_GIGABYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
    tell("run, a long log: peak memory", gigabytes, through_run);
    for framing in ["raw", "stamped"] {
        let name = if framing == "raw" { "serve, a long log to a follower: raw" } else { "serve, a long log to a follower: stamped" };
        tell(name, gigabytes, |megabytes| through_agent(megabytes, framing, Follower::Reads));
    }
    tell("serve, a long log to a follower that stops reading", gigabytes, |megabytes| through_agent(megabytes, "raw", Follower::Stops));
}

fn tell(name: &'static str, gigabytes: u64, peaks_of: impl Fn(u64) -> Peaks) {
    let (short, long) = (peaks_of(64), peaks_of(gigabytes * 1000));
    let met = long.job <= short.job + MORE && long.front <= short.front + MORE;
    let value = format!("{} ({gigabytes} GB, {:.0} s)", long.shown(), long.took.as_secs_f64());
    Figure { name, value, floor: format!("{} (64 MB)", short.shown()), ratio: None, goal: "flat: at most 2 MB more", met }.print();
}

/// In kB.
struct Peaks {
    job: u64,
    /// Zero: there is none.
    front: u64,
    took: Duration,
}

impl Peaks {
    fn shown(&self) -> String {
        let megabytes = |kilobytes: u64| format!("{:.1} MB", kilobytes as f64 / 1024.0);
        if self.front == 0 { megabytes(self.job) } else { format!("job {}, front {}", megabytes(self.job), megabytes(self.front)) }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Follower {
    Reads,
    Stops,
}

/// The steps of a job that writes as much.
fn steps(workshop: &Workshop, megabytes: u64) {
    workshop.file("lines", LINE.repeat(LINES));
    let times = megabytes * 1_000_000 / (LINE.len() * LINES) as u64;
    let write = format!("{{}}\n---\nexec: {{command: [sh, -c, \"for i in $(seq {times}); do cat lines; done\"]}}\n");
    workshop.file("write/func.yml", write);
    workshop.file("peak/func.yml", "{}\n---\nexec: {command: [sh, -c, \"grep VmHWM /proc/$PPID/status >told\"]}\n");
}

fn told(workshop: &Workshop) -> u64 {
    let line = workshop.read("told");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of kB")
}

fn through_run(megabytes: u64) -> Peaks {
    let workshop = Workshop::new();
    steps(&workshop, megabytes);
    workshop.file("job/func.yml", JOB.replace("./", "../"));
    let began = Instant::now();
    let mut command = Command::new(program::path("STEP_RUNNER"));
    command.args(["run", "./job", "--quiet"]).current_dir(workshop.dir()).env("TMPDIR", workshop.path("tmp"));
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("step-runner starts");
    assert!(status.success(), "{status}");
    Peaks { job: told(&workshop), front: 0, took: began.elapsed() }
}

fn through_agent(megabytes: u64, framing: &'static str, follower: Follower) -> Peaks {
    let front = Front::new(framing);
    steps(&front.workshop, megabytes);
    let request =
        RunRequest { id: "log".into(), work_dir: front.workshop.dir().display().to_string(), steps: JOB.into(), ..RunRequest::default() };
    let began = Instant::now();
    runtime().block_on(async {
        let agent = front.client();
        if follower == Follower::Reads {
            agent.run_to_end(request, |_| Ok(())).await.expect("it ends");
            return;
        }
        agent.run(request).await.expect("it is taken");
        let mut log = agent.follow("log", 0);
        log.next().await.expect("a log").expect("it has a beginning");
        // By another connection: what nobody reads fills the first one.
        let other = front.client();
        while other.status("log").await.expect("it is known").end.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop(log);
        other.close("log").await.expect("it is closed");
    });
    Peaks { job: told(&front.workshop), front: kilobytes(front.child.id(), "status", &["VmHWM:"]), took: began.elapsed() }
}
