//! What it costs to have a step run in a container, beside `docker run` of the same image.

use ci_tests::docker::Engine;
use ci_tests::measure::{self, Figure};
use ci_tests::workshop::Workshop;
use std::process::{Command, Stdio};
use std::time::Duration;

/// As many runs of each, one after the other, so that both meet the same machine.
const PAIRS: usize = 15;
/// What delegation may cost above `docker run`.
const GOAL: Duration = Duration::from_millis(10);

const JOB: &str = "{}\n---\nrun:\n  - name: box\n    func: builtin://docker\n    inputs:\n      image: ci/busybox:1\n      run:\n        - {name: nothing, func: ./nothing}\n";

fn main() {
    if std::env::var_os("STEP_RUNNER").is_none() || std::env::var_os("STEP_AGENT").is_none() {
        println!("STEP_RUNNER or STEP_AGENT is not set: run the benchmarks by ./bench, which builds the programs first");
        return;
    }
    let Some(engine) = Engine::shared() else { return println!("skipped: no engine") };
    if engine.images(&["busybox"]).is_none() {
        return println!("skipped: no image");
    }
    let workshop = Workshop::new();
    workshop.file("job/nothing/func.yml", "{}\n---\nexec: {command: [\"true\"]}\n");
    let delegated = || drop(engine.run(&workshop, JOB, &[]).finish().exits(0));
    // The first one fills the volume of the agent.
    delegated();
    let mut above = Vec::new();
    let mut both = [Vec::new(), Vec::new()];
    for _ in 0..PAIRS {
        let ours = measure::duration(delegated);
        let floor = measure::duration(|| docker_run(&engine.host));
        above.push(ours.as_secs_f64() - floor.as_secs_f64());
        both[0].push(ours);
        both[1].push(floor);
    }
    both.iter_mut().for_each(|durations| durations.sort_unstable());
    above.sort_by(f64::total_cmp);
    let (ours, floor) = (measure::median(&both[0]), measure::median(&both[1]));
    Figure {
        name: "a step in a container, above docker run (median of pairs)",
        value: format!("{:+.1} ms ({})", above[above.len() / 2] * 1e3, measure::milliseconds(ours)),
        floor: measure::milliseconds(floor),
        ratio: Some(ours.as_secs_f64() / floor.as_secs_f64()),
        goal: "10 ms",
        met: above[above.len() / 2] <= GOAL.as_secs_f64(),
    }
    .print();
}

fn docker_run(host: &str) {
    let status = Command::new("docker")
        .args(["run", "--rm", "ci/busybox:1", "true"])
        .env("DOCKER_HOST", host)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "docker run failed");
}
