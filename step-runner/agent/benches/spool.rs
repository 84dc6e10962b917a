//! How fast a step's output becomes a log: from its pipe through masking and framing into the spool, beside `cat` from the same producer into
//! a file, in the same run.
//!
//! `cargo bench -p step-agent --bench spool`; `SPOOL_BENCH_GIGABYTES=10` for the long one.

mod job;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use step_agent::job_process::spool::{Framing, Spool, SpoolSettings};
use step_agent::job_process::{Settings, Streams};
use step_model::masking::Secrets;

/// What the child process is told; the benchmark is its own producer.
const ROLE: &str = "SPOOL_BENCH_ROLE";
const MEGABYTE: usize = 1 << 20;
const TURNS: usize = 3;
/// A secret that stands in every line where hits are measured.
const SECRET: &str = "glpat-hunter2hunter2";

fn main() {
    match std::env::var(ROLE).as_deref().map(|role| role.split_once(' ')) {
        Ok(Some((line, megabytes))) => produce(line, megabytes.parse().expect("we wrote the number")),
        _ => measure(),
    }
}

/// Lines of eighty characters, in blocks as a compiler or `grep` writes them.
fn produce(word: &str, megabytes: usize) {
    let line = format!("{:<79}\n", format!("log line {word} ").repeat(3));
    let block: Vec<u8> = line.bytes().cycle().take(line.len() * 800).collect();
    let mut output = io::stdout().lock();
    for _ in 0..megabytes * MEGABYTE / block.len() {
        output.write_all(&block).expect("somebody reads");
    }
}

fn measure() {
    let megabytes = 512;
    let floor = fastest(|| cat(megabytes));
    for (name, framing, secrets, word, goal) in [
        ("raw log into the spool", Framing::Raw, 0, "plain", 400.0),
        ("stamped log, 20 secrets, no hit", Framing::Stamped, 20, "plain", 200.0),
        ("stamped log, 20 secrets, a hit in every line", Framing::Stamped, 20, SECRET, 200.0),
    ] {
        let best = fastest(|| ours(megabytes, framing, secrets, word));
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let speed = |seconds: f64| megabytes as f64 / seconds;
        let text = |seconds| format!("{:.0} MB/s", speed(seconds));
        job::print(name, &text(best), &text(floor), best / floor, &format!("at least {goal} MB/s"), speed(best) >= goal);
    }
    let gigabytes = std::env::var("SPOOL_BENCH_GIGABYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let small = peak();
    ours(gigabytes * 1024, Framing::Stamped, 20, "plain");
    let large = peak();
    #[expect(clippy::cast_precision_loss, reason = "kibibytes")]
    let ratio = large as f64 / small as f64;
    let name = format!("peak memory after a log of {gigabytes} GB beside half of one");
    job::print(&name, &format!("{large} kB"), &format!("{small} kB"), ratio, "grows by at most 1 MiB", large <= small + 1024);
}

fn fastest(mut run: impl FnMut() -> f64) -> f64 {
    (0..TURNS).map(|_| run()).fold(f64::MAX, f64::min)
}

/// Seconds that a job of one step needs.
fn ours(megabytes: usize, framing: Framing, secrets: usize, word: &str) -> f64 {
    let directory = tempfile::tempdir().expect("there is a directory for temporary files");
    let place = directory.path().canonicalize().expect("it was just made");
    std::fs::create_dir(place.join("step")).expect("it is new");
    let program = std::env::current_exe().expect("we run from a file");
    let definition = serde_json::json!({"env": {ROLE: format!("{word} {megabytes}")}, "exec": {"command": [program]}});
    std::fs::write(place.join("step/step.yml"), format!("{{}}\n---\n{definition}\n")).expect("it is new");
    let plan = job::plan(Path::new(&place), "- {name: produce, step: ./step}");
    let mut known = Secrets::default();
    for number in 0..secrets {
        known.add(&if number == 0 { SECRET.to_owned() } else { format!("glpat-secret-{number}-of-twenty") }).expect("it is long enough");
    }
    let streams = if framing == Framing::Stamped { Streams::Separate } else { Streams::Shared };
    let settings = Settings { secrets: known, streams, ..job::settings() };
    let spool = SpoolSettings { framing, limit: u64::MAX };
    let spool = Spool::create(&place, &place, spool).expect("the directory is new");
    let start = Instant::now();
    drop(job::run(plan, settings, spool));
    start.elapsed().as_secs_f64()
}

/// The same with `cat` in our place, into a file.
fn cat(megabytes: usize) -> f64 {
    let program = std::env::current_exe().expect("we run from a file");
    let directory = tempfile::tempdir().expect("there is a directory for temporary files");
    let file = File::create(directory.path().join("log")).expect("the directory is new");
    let start = Instant::now();
    let mut producer = Command::new(program);
    producer.env(ROLE, format!("plain {megabytes}")).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut producer = producer.spawn().expect("the program is there");
    let output = producer.stdout.take().expect("it has a pipe");
    let mut cat = Command::new("cat").stdin(output).stdout(file).spawn().expect("every machine has cat");
    for process in [&mut producer, &mut cat] {
        process.wait().expect("it was started");
    }
    start.elapsed().as_secs_f64()
}

/// The peak of our own memory, in kibibytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}
