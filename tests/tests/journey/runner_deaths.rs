//! Runner, plugin and agents are killed at moments that a seed chooses, under load: no byte, job or result is lost or repeated.
//!
//! A failure prints its seed: `RUNNER_SEED=7 ./test runner_deaths` plays it again, as far as processes can be played again. `RUNNER_SEED=1-50` plays
//! many, `RUNNER_JOBS=30` with more jobs.

use super::runner_run::{Scene, check_lines, jobs, who_listens};
use ci_tests::program::Started;
use runner_mock_gitlab::Report;
use runner_mock_gitlab::world::World;
use rustix::process::{Pid, Signal, kill_process};
use std::ops::RangeInclusive;

/// So many processes die in one journey.
const DEATHS: usize = 6;

/// The numbers of a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % most
    }
}

#[test]
fn nothing_is_lost_or_repeated_when_processes_die_at_any_moment() {
    let count = std::env::var("RUNNER_JOBS").map_or(8, |count| count.parse().expect("a number"));
    for seed in seeds() {
        println!("RUNNER_SEED={seed}");
        let mut dice = Dice(seed);
        let scene = Scene::new(vec![jobs(count, &["for i in $(seq 1 40); do echo line $i; sleep 0.1; done", "echo done"])]);
        let mut runner = scene.run();
        let mut written = 0;
        for _ in 0..DEATHS {
            written += 200 + dice.below(1500) as usize;
            scene.until(|world| bytes(world) >= written || is_over(world));
            match dice.below(3) {
                0 => {
                    runner.signal(Signal::KILL);
                    drop(runner.finish());
                    scene.server.runner_died();
                    runner = scene.run();
                }
                1 => kill(plugin(&runner)),
                _ => kill(agent(&scene, &mut dice)),
            }
        }
        scene.until_all_ended();
        check_lines(&scene);
        scene.end(runner, Report::without_offsets);
    }
}

/// `7`, or `1-50`.
fn seeds() -> RangeInclusive<u64> {
    let Ok(text) = std::env::var("RUNNER_SEED") else { return 1..=2 };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    first.parse().expect("a number")..=last.parse().expect("a number")
}

fn bytes(world: &World) -> usize {
    world.jobs().values().map(|job| job.trace.len()).sum()
}

fn is_over(world: &World) -> bool {
    let report = world.report();
    report.open.is_empty() && report.waiting.is_empty()
}

/// One that is gone already has died.
fn kill(pid: Option<Pid>) {
    if let Some(pid) = pid {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The plugin of a runner: its child of that name.
fn plugin(runner: &Started) -> Option<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", runner.pid)).ok()?;
    let is_plugin = |pid: &&str| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("fleeting-plugin"));
    children.split_whitespace().find(is_plugin).and_then(|pid| Pid::from_raw(pid.parse().ok()?))
}

/// The front of one of the agents that are there.
fn agent(scene: &Scene, dice: &mut Dice) -> Option<Pid> {
    let mut sockets: Vec<_> = std::fs::read_dir(scene.workshop.path("agents"))
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("step-runner.sock")))
        .filter(|socket| socket.exists())
        .collect();
    sockets.sort();
    let chosen = dice.below(sockets.len().max(1) as u64) as usize;
    who_listens(sockets.get(chosen)?)
}
