//! Jobs for the benchmarks, and the lines of their table.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use step_agent::definitions;
use step_agent::job_process::{self, Audience, Ended, Settings, Streams};
use step_engine::run::Seed;
use step_model::builtin::Builtins;
use step_model::document::{Dialect, raw};
use step_model::masking::Secrets;
use step_model::plan::{Places, Plan};
use step_model::result::Status;
use step_model::value::Value;

/// What a laptop's shell has in its environment, about.
pub fn environment() -> Vec<(String, String)> {
    let filler = (0..40).map(|number| (format!("VARIABLE_{number}"), "a value of usual length".to_owned()));
    filler.chain([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]).collect()
}

/// A plan whose `run:` is this, in a directory of its own.
pub fn plan(directory: &Path, run: &str) -> Plan {
    let reading = raw::read_job(&format!("{{}}\n---\nrun:\n{run}"), Dialect::Steps);
    let place: Arc<str> = directory.to_str().expect("the directory was made from text").into();
    let (root, _) = definitions::resolve(reading.document.expect("the job is written right"), &place, false, &Builtins::default())
        .expect("its steps are there");
    let places = Places { work_dir: place.clone(), build_dir: place.clone(), files_dir: place };
    let process_env = environment().into_iter().map(|(name, value)| (name.into(), Value::from(value))).collect();
    Plan { process_env, grace_period: Duration::from_secs(1), ..Plan::of(root, places) }
}

/// A job that keeps nothing.
pub fn settings() -> Settings {
    Settings { seed: Seed(1), secrets: Secrets::default(), streams: Streams::Shared, journal: None, provenance: false, keep_files: false }
}

/// Runs a plan that must succeed.
pub fn run<A: Audience>(plan: Plan, settings: Settings, audience: A) -> Ended<A> {
    let (_asks, receiver) = tokio::sync::mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime needs a few descriptors");
    let ended = runtime.block_on(job_process::run(plan, settings, audience, receiver)).expect("the system gives a thread");
    assert_eq!(ended.run.status(), Status::Success, "{:?}", ended.run.failure());
    ended
}

/// A line of the table of `./bench`; `|` separates its columns.
pub fn print(name: &str, figure: &str, floor: &str, ratio: f64, goal: &str, is_met: bool) {
    let verdict = if is_met { "met" } else { "MISSED" };
    println!("bench: {name} | {figure} | {floor} | {ratio:.2} | {goal} | {verdict}");
}
