//! What a step costs over its process: beside a bare posix_spawn-and-wait of the same program with the same environment, in the same run.
//!
//! `cargo bench -p step-agent --bench spawn`

mod job;

use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use step_agent::job_process::{Audience, Settings, Stream};
use step_engine::run::{Headline, Kind};
use step_model::result::StepId;
use step_model::time::Timestamp;

/// Steps and bare processes by turns, so that a slow moment of the machine hits both.
const TURNS: usize = 8;
const STEPS: usize = 250;

fn main() {
    let directory = tempfile::tempdir().expect("there is a directory for temporary files");
    let place = directory.path().canonicalize().expect("it was just made");
    std::fs::create_dir(place.join("true")).expect("it is new");
    std::fs::write(place.join("true/step.yml"), "{}\n---\nexec: {command: [/bin/true]}\n").expect("it is new");
    steps(&place);
    scripts(&place);
    many(&place);
    journal(&place);
}

/// The processor time that the journal needs for a step, and whether it grows with the number of steps.
fn journal(place: &Path) {
    let per_step = |count: usize, is_kept: bool| {
        let plan = job::plan(place, &sequence("step: ./true", count));
        let directory = tempfile::tempdir().expect("there is a directory for temporary files");
        let journal = is_kept.then(|| directory.path().to_path_buf());
        let before = cpu();
        job::run(plan, Settings { journal, ..job::settings() }, Ends::default());
        (cpu() - before).as_secs_f64() * 1e6 / f64::from(u32::try_from(count).expect("a job is not that long"))
    };
    per_step(100, true);
    let [mut short, mut long, mut without] = [f64::MAX; 3];
    for _ in 0..3 {
        without = without.min(per_step(1_000, false));
        short = short.min(per_step(1_000, true));
        long = long.min(per_step(10_000, true));
    }
    let figure = |time: f64| format!("{time:.1} us");
    let (cost, floor) = (short - without, without);
    job::print(
        "CPU of the journal for a step, beside the step's own",
        &figure(cost),
        &figure(floor),
        cost / floor,
        "at most 50 us",
        cost <= 50.0,
    );
    job::print(
        "CPU per step with its journal, 10,000 steps beside 1,000",
        &figure(long),
        &figure(short),
        long / short,
        "at most 1.10",
        long / short <= 1.1,
    );
}

fn steps(place: &Path) {
    let (ours, floor) = by_turns(place, "step: ./true", &["/bin/true"]);
    let over = |share: f64| (at(&ours, share) - at(&floor, share), at(&floor, share));
    let (median, median_floor) = over(0.5);
    let ratio = at(&ours, 0.5) / median_floor;
    job::print("an exec step over its process, median", &ms(median), &ms(median_floor), ratio, "at most 0.15 ms", median <= 0.15);
    let (slow, slow_floor) = over(0.99);
    let ratio = at(&ours, 0.99) / slow_floor;
    job::print("an exec step over its process, 99 of 100", &ms(slow), &ms(slow_floor), ratio, "at most 1 ms", slow <= 1.0);
}

fn scripts(place: &Path) {
    let shell = ["/usr/local/bin/bash", "/usr/bin/bash", "/bin/bash", "/bin/sh"].into_iter().find(|shell| Path::new(shell).exists());
    let (ours, floor) = by_turns(place, "script: 'true'", &[shell.expect("every machine has a shell"), "-c", "true"]);
    let over = at(&ours, 0.5) - at(&floor, 0.5);
    let ratio = at(&ours, 0.5) / at(&floor, 0.5);
    job::print("a script `true` over its shell, median", &ms(over), &ms(at(&floor, 0.5)), ratio, "at most 0.2 ms", over <= 0.2);
}

/// The processor time that we ourselves need for a step, in a short and in a long job.
fn many(place: &Path) {
    let per_step = |count: usize| {
        let plan = job::plan(place, &sequence("step: ./true", count));
        let before = cpu();
        job::run(plan, job::settings(), Ends::default());
        (cpu() - before) / u32::try_from(count).expect("a job is not that long")
    };
    per_step(100);
    // By turns and over about the same time: how fast a processor is depends on what else goes on.
    let (mut short, mut long) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..3 {
        short += (0..10).map(|_| per_step(1_000)).sum::<Duration>() / 30;
        long += per_step(10_000) / 3;
    }
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    let figure = |time: Duration| format!("{:.1} us", time.as_secs_f64() * 1e6);
    job::print("CPU per step, 10,000 steps beside 1,000", &figure(long), &figure(short), ratio, "at most 1.10", ratio <= 1.1);
}

fn sequence(action: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "- {{name: s{number}, {action}}}").expect("a text takes everything");
        text
    })
}

/// Milliseconds of each, sorted.
fn by_turns(place: &Path, action: &str, command: &[&str]) -> (Vec<f64>, Vec<f64>) {
    let plan = job::plan(place, &sequence(action, STEPS));
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let ended = job::run(plan.clone(), job::settings(), Ends::default());
        let ends = ended.audience.expect("it does nothing that could last").ends;
        ours.extend(ends.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64() * 1e3));
        floor.extend((0..STEPS).map(|_| bare(command)));
    }
    ours.sort_by(f64::total_cmp);
    floor.sort_by(f64::total_cmp);
    (ours, floor)
}

fn bare(command: &[&str]) -> f64 {
    let start = Instant::now();
    let mut process = Command::new(command[0]);
    process.args(&command[1..]).env_clear().envs(job::environment()).process_group(0);
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    process.status().expect("the program is there");
    start.elapsed().as_secs_f64() * 1e3
}

fn at(sorted: &[f64], share: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a few thousand figures")]
    let index = (sorted.len() as f64 * share) as usize;
    sorted[index.min(sorted.len() - 1)]
}

fn ms(milliseconds: f64) -> String {
    format!("{milliseconds:.3} ms")
}

/// Of all our threads.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// When the steps ended.
#[derive(Debug, Default)]
struct Ends {
    ends: Vec<Timestamp>,
}

impl Audience for Ends {
    fn started(&mut self, _: StepId, _: &Headline) {}
    fn output(&mut self, _: StepId, _: Stream, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
    fn said(&mut self, _: StepId, _: &str, _: bool) {}
    fn ended(&mut self, _: StepId, headline: &Headline, _: &[u8]) {
        if headline.what != Kind::Sequence {
            self.ends.extend(headline.end);
        }
    }
}
