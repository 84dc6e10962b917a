//! Benchmarks: a figure, the floor that was measured in the same run, the ratio between them, and the goal.

use std::time::{Duration, Instant};

/// One line of the table that `./bench` prints.
#[derive(Debug)]
pub struct Figure {
    pub name: &'static str,
    /// With its unit.
    pub value: String,
    /// What the same machine needs at least, just now; empty where there is none.
    pub floor: String,
    /// Of the value to the floor.
    pub ratio: Option<f64>,
    pub goal: &'static str,
    pub met: bool,
}

impl Figure {
    /// Prints the line: `bench` collects lines that begin so.
    pub fn print(&self) {
        let ratio = self.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let verdict = if self.met { "met" } else { "MISSED" };
        println!("bench: {} | {} | {} | {ratio} | {} | {verdict}", self.name, self.value, self.floor, self.goal);
    }
}

/// How long each of `times` runs took, shortest first.
pub fn durations(times: usize, mut run: impl FnMut()) -> Vec<Duration> {
    let mut all: Vec<Duration> = (0..times).map(|_| duration(&mut run)).collect();
    all.sort_unstable();
    all
}

pub fn duration(mut run: impl FnMut()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

/// Of sorted durations.
pub fn median(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() / 2]
}

pub fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}
