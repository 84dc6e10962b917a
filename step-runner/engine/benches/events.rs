//! Events per second on values, beside their floor: the same events and environments moved through a queue without a decision, in the same run.
//! And what does not grow with the length of a job: time per step, memory per step.
//!
//! `cargo bench -p step-engine --bench events`

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; the crate does neither"
)]

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use step_engine::effect::{Effect, LoadedDefinition};
use step_engine::event::{Event, Exit, FileContent};
use step_engine::resolve::Resolver;
use step_engine::run::{Run, Seed};
use step_model::builtin::Builtins;
use step_model::document::{Dialect, Step, StepDocument, raw};
use step_model::plan::{Places, Plan};
use step_model::reference::Digest;
use step_model::result::{Status, StepId, Usage};
use step_model::time::{Now, Timestamp};
use step_model::value::Value;

/// Each measured often, and the best taken: the machine has other things to do.
const ROUNDS: usize = 25;
const STEPS: usize = 10_000;
const EVENTS_GOAL: f64 = 200_000.0;
const GROWTH_GOAL: f64 = 1.1;
const MEMORY_GOAL: f64 = 600.0;

/// One command that takes an input, writes an output and exports nothing.
const STEP: &str = "spec: {inputs: {n: {type: string}}, outputs: {o: {type: string}}}\n---\n\
                    exec: {command: [make, \"${{ inputs.n }}\", \"${{ output_file }}\"]}\n";
/// The same without files: most steps.
const SIMPLE: &str = "{}\n---\nexec: {command: [make, all, quietly]}\n";

fn main() {
    let floor = best_of_both(|| ((), floor_of(STEPS)), || ((), 0)).0;
    for (name, text, inputs) in [("exec", SIMPLE, ""), ("exec with an output", STEP, ", inputs: {n: \"${{ env.V1 }}\"}")] {
        let one = [plan(STEPS, text, inputs)];
        let ten: Vec<_> = (0..10).map(|_| plan(STEPS / 10, text, inputs)).collect();
        // All runs are kept until the clock is read, so both touch as much memory, and only the length of a job differs.
        let (one, ten) = best_of_both(|| driven_all(&one, text), || driven_all(&ten, text));
        let figures = (format!("{:.0}/s", one.events_per_second), format!("{:.0}/s", floor.events_per_second));
        let ratio = floor.events_per_second / one.events_per_second;
        line(&format!("{name}: events"), &figures, ratio, "at least 200000/s", one.events_per_second >= EVENTS_GOAL);
        let growth = one.per_step.as_secs_f64() / ten.per_step.as_secs_f64();
        let figures = (format!("{:.2} µs", micros(one.per_step)), format!("{:.2} µs", micros(ten.per_step)));
        line(&format!("{name}: a step of 10000 against one of 1000"), &figures, growth, "at most 1.1", growth <= GROWTH_GOAL);
    }
    let plan = plan(STEPS * 10, SIMPLE, "");
    let before = resident();
    let run = driven(plan, SIMPLE);
    let grown = (resident() - before) as f64 / (STEPS * 10) as f64;
    black_box(&run);
    line("memory of a run per step", &(format!("{grown:.0} B"), String::new()), f64::NAN, "at most 600 B", grown <= MEMORY_GOAL);
}

struct Figure {
    events_per_second: f64,
    per_step: Duration,
}

/// Turn by turn, so that whatever else the machine does hits both.
fn best_of_both<T>(one: impl Fn() -> (T, u64), other: impl Fn() -> (T, u64)) -> (Figure, Figure) {
    let rounds: Vec<_> = (0..ROUNDS).map(|_| (round(&one), round(&other))).collect();
    let best =
        |times: Vec<(Duration, u64)>| times.into_iter().min().map(|(time, events)| figure(time, events)).expect("at least one round");
    (best(rounds.iter().map(|both| both.0).collect()), best(rounds.iter().map(|both| both.1).collect()))
}

/// What the work gives is kept until the clock is read.
fn round<T>(work: impl Fn() -> (T, u64)) -> (Duration, u64) {
    let start = Instant::now();
    let (kept, events) = work();
    let time = start.elapsed();
    drop(black_box(kept));
    (time, events)
}

fn figure(time: Duration, events: u64) -> Figure {
    Figure { events_per_second: events as f64 / time.as_secs_f64(), per_step: time / u32::try_from(STEPS).unwrap_or(u32::MAX) }
}

/// A line of the table of `./bench`; `|` separates its columns.
fn line(name: &str, (figure, floor): &(String, String), ratio: f64, goal: &str, is_met: bool) {
    let ratio = if ratio.is_nan() { String::new() } else { format!("{ratio:.2}") };
    println!("bench: {name} | {figure} | {floor} | {ratio} | {goal} | {}", if is_met { "met" } else { "MISSED" });
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Of this process, in bytes; zero where the system does not say.
fn resident() -> i64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| text.split(' ').nth(1)?.parse::<i64>().ok());
    pages.unwrap_or(0) * 4096
}

fn variables() -> BTreeMap<Arc<str>, Value> {
    (0..40).map(|index| (Arc::from(format!("V{index}")), Value::string(format!("value {index}")))).collect()
}

fn definition(text: &str) -> LoadedDefinition {
    let digest = Digest::of(text.as_bytes());
    LoadedDefinition { text: text.into(), digest, dir: "/job/make".into(), file: "step.yml".into(), provenance: None }
}

fn plan(steps: usize, text: &str, inputs: &str) -> Plan {
    let (read, _) = raw::read_steps(&format!("- {{name: step, step: ./make{inputs}}}"), Some(Dialect::Steps));
    let named = |index| Step { name: Arc::from(format!("step_{index}")), ..read[0].clone() };
    let document = Arc::new(StepDocument::of_steps(Dialect::Steps, (0..steps).map(named)));
    let (mut resolver, mut effects) = Resolver::start(document, "/job".into(), Builtins::default());
    while let Some(effect) = effects.pop() {
        if let Effect::Load { load, .. } = effect {
            effects.extend(resolver.on_loaded(load, Ok(definition(text))));
        }
    }
    let (root, _) = resolver.finish().expect("the job can be planned");
    let places = Places { work_dir: "/job".into(), build_dir: "/job".into(), files_dir: "/files".into() };
    Plan { process_env: variables(), grace_period: Duration::from_secs(10), ..Plan::of(root, places) }
}

fn now() -> Now {
    Now { monotonic: Duration::ZERO, wall: Timestamp::default() }
}

fn driven_all(plans: &[Plan], text: &str) -> (Vec<Run>, u64) {
    let mut events = 0;
    let drive = |plan: &Plan| {
        let (run, count) = driven(plan.clone(), text);
        assert_eq!(run.status(), Status::Success, "{:?}", run.failure());
        events += count;
        run
    };
    (plans.iter().map(drive).collect(), events)
}

/// The whole of what a host would answer.
fn driven(plan: Plan, text: &str) -> (Run, u64) {
    let definition = definition(text);
    let (mut run, effects) = Run::start(plan, Seed(1), now());
    let mut open = VecDeque::from(effects);
    let mut events = 0;
    while let Some(effect) = open.pop_front() {
        let mut tell = |event| {
            events += 1;
            open.extend(run.on(event, now()));
        };
        match effect {
            Effect::Load { load, .. } => tell(Event::Loaded { load, outcome: Ok(definition.clone()) }),
            Effect::Spawn { step, process } => {
                black_box(&process);
                tell(Event::Spawned { step });
                tell(Event::Exited { step, exit: Exit::Code(0), usage: Usage::default() });
            }
            Effect::ReadOutputs { step, .. } => {
                let output = FileContent::Bytes(b"{\"name\":\"o\",\"value\":\"x\"}\n".to_vec());
                tell(Event::Outputs { step, output, export: FileContent::Bytes(Vec::new()) });
            }
            _ => {}
        }
    }
    (run, events)
}

/// Three events for each step, and an environment: what no engine can save.
fn floor_of(steps: usize) -> u64 {
    let env: Vec<_> = variables().into_iter().collect();
    let definition = definition(SIMPLE);
    let mut open = VecDeque::new();
    let mut events = 0;
    for index in 0..steps {
        let step = StepId(u32::try_from(index).unwrap_or(u32::MAX));
        open.push_back(Event::Loaded { load: step_engine::effect::LoadId(step.0), outcome: Ok(definition.clone()) });
        open.push_back(Event::Spawned { step });
        open.push_back(Event::Exited { step, exit: Exit::Code(0), usage: Usage::default() });
        black_box(env.clone());
        while let Some(event) = open.pop_front() {
            black_box(event);
            events += 1;
        }
    }
    events
}
