//! How fast output goes through us: beside `cat` between the same producer and the same consumer, in the same run; and what memory it takes.
//!
//! `cargo bench -p step-agent --bench log`; `LOG_BENCH_GIGABYTES=10` for the long one.

mod job;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use step_agent::job_process::{Audience, Stream};
use step_engine::run::Headline;
use step_model::result::StepId;

/// What the child processes are told; the benchmark is its own producer and consumer.
const ROLE: &str = "LOG_BENCH_ROLE";
const MEGABYTE: usize = 1 << 20;
const TURNS: usize = 5;

fn main() {
    match std::env::var(ROLE).as_deref().map(|role| role.split_once(' ')) {
        Ok(Some(("produce", megabytes))) => produce(megabytes.parse().expect("we wrote the number")),
        Ok(_) => consume(),
        Err(_) => measure(),
    }
}

/// Lines of eighty characters, in blocks as a compiler or `grep` writes them.
fn produce(megabytes: usize) {
    let line = format!("{}\n", "log line ".repeat(9));
    let block: Vec<u8> = line.bytes().cycle().take(1 << 16).collect();
    let mut output = io::stdout().lock();
    for _ in 0..megabytes * MEGABYTE / block.len() {
        output.write_all(&block).expect("somebody reads");
    }
}

fn consume() {
    let mut block = vec![0; 1 << 16];
    let mut input = io::stdin().lock();
    while input.read(&mut block).expect("a pipe can be read") > 0 {}
}

fn measure() {
    let gigabytes = std::env::var("LOG_BENCH_GIGABYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let megabytes = 512;
    ours(64);
    let (mut best, mut floor) = (f64::MAX, f64::MAX);
    for _ in 0..TURNS {
        best = best.min(ours(megabytes));
        floor = floor.min(cat(megabytes));
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let speed = |seconds: f64| megabytes as f64 / seconds;
    let text = |seconds| format!("{:.0} MB/s", speed(seconds));
    job::print("the log path beside `cat`", &text(best), &text(floor), best / floor, "at most 1.10", best / floor <= 1.1);
    let small = peak();
    ours(gigabytes * 1024);
    let large = peak();
    #[expect(clippy::cast_precision_loss, reason = "kibibytes")]
    let ratio = large as f64 / small as f64;
    let name = format!("peak memory after {gigabytes} GB of log beside half of one");
    job::print(&name, &format!("{large} kB"), &format!("{small} kB"), ratio, "grows by at most 1 MiB", large <= small + 1024);
}

/// Seconds that a job of one step needs.
fn ours(megabytes: usize) -> f64 {
    let directory = tempfile::tempdir().expect("there is a directory for temporary files");
    let place = directory.path().canonicalize().expect("it was just made");
    std::fs::create_dir(place.join("step")).expect("it is new");
    let program = std::env::current_exe().expect("we run from a file");
    let definition = serde_json::json!({"env": {ROLE: format!("produce {megabytes}")}, "exec": {"command": [program]}});
    std::fs::write(place.join("step/step.yml"), format!("{{}}\n---\n{definition}\n")).expect("it is new");
    let plan = job::plan(Path::new(&place), "- {name: produce, step: ./step}");
    let mut consumer = consumer();
    let sink = File::from(std::os::fd::OwnedFd::from(consumer.stdin.take().expect("it has a pipe")));
    let start = Instant::now();
    drop(job::run(plan, job::settings(), Sink(sink)));
    consumer.wait().expect("it was started");
    start.elapsed().as_secs_f64()
}

/// The same with `cat` in our place.
fn cat(megabytes: usize) -> f64 {
    let program = std::env::current_exe().expect("we run from a file");
    let mut consumer = consumer();
    let sink = consumer.stdin.take().expect("it has a pipe");
    let start = Instant::now();
    let mut producer = Command::new(program);
    producer.env(ROLE, format!("produce {megabytes}")).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut producer = producer.spawn().expect("the program is there");
    let output = producer.stdout.take().expect("it has a pipe");
    let mut cat = Command::new("cat").stdin(output).stdout(sink).spawn().expect("every machine has cat");
    for process in [&mut producer, &mut cat, &mut consumer] {
        process.wait().expect("it was started");
    }
    start.elapsed().as_secs_f64()
}

fn consumer() -> Child {
    let program = std::env::current_exe().expect("we run from a file");
    Command::new(program).env(ROLE, "consume").stdin(Stdio::piped()).spawn().expect("the program is there")
}

/// The peak of our own memory, in kibibytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Writes what it hears, as `step-runner run` does.
#[derive(Debug)]
struct Sink(File);

impl Audience for Sink {
    fn started(&mut self, _: StepId, _: &Headline) {}
    fn output(&mut self, _: StepId, _: Stream, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
    fn said(&mut self, _: StepId, _: &str, _: bool) {}
    fn ended(&mut self, _: StepId, _: &Headline, _: &[u8]) {}
}
