//! What `step-runner run` and `check` cost, on the program that `./bench` built. Each figure with the floor of the same moment.

use ci_tests::measure::{Figure, duration, durations, median, milliseconds};
use ci_tests::program;
use ci_tests::workshop::Workshop;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn main() {
    if std::env::var_os("STEP_RUNNER").is_none() {
        println!("STEP_RUNNER is not set: run the benchmarks by ./bench, which builds the program first");
        return;
    }
    one_step();
    thousand_steps();
    hundred_scripts();
    thousand_files();
    large_output();
    log_path();
}

/// Prints the peak memory of its parent: of `step-runner`, while it still lives.
const PARENTS_PEAK: &str = "exec: {command: [sh, -c, \"grep VmHWM /proc/$PPID/status\"]}";

fn one_step() {
    let workshop = Workshop::new();
    workshop.file("true/step.yml", "{}\n---\nexec: {command: [/bin/true]}\n");
    workshop.file("peak/step.yml", format!("{{}}\n---\n{PARENTS_PEAK}\n"));
    run(&workshop, &["run", "./true"]);
    // Alternating, so that a slow moment of the machine hits both.
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        ours.push(duration(|| run(&workshop, &["run", "./true"])));
        floor.push(duration(|| quiet(Command::new("/bin/true"))));
    }
    ours.sort_unstable();
    floor.sort_unstable();
    let over = median(&ours).saturating_sub(median(&floor));
    Figure {
        name: "run, a job of one step: time over the program alone",
        value: milliseconds(over),
        floor: milliseconds(median(&floor)),
        ratio: Some(median(&ours).as_secs_f64() / median(&floor).as_secs_f64()),
        goal: "at most 3 ms",
        met: over <= Duration::from_millis(3),
    }
    .print();
    let peak = peak_memory(&workshop, "./peak");
    memory("run, a job of one step: peak memory", peak, 8 << 10, "at most 8 MiB");
}

/// `count` exec steps, and a last one that tells the peak.
fn sequence(workshop: &Workshop, name: &str, count: usize) {
    let mut text = "{}\n---\nrun:\n".to_owned();
    for index in 0..count {
        writeln!(text, "  - {{name: s{index}, step: ../true}}").expect("a string takes everything");
    }
    text += "  - {name: peak, step: ../peak}\n";
    workshop.file(&format!("{name}/step.yml"), text);
}

fn thousand_steps() {
    let workshop = Workshop::new();
    workshop.file("true/step.yml", "{}\n---\nexec: {command: [/bin/true]}\n");
    workshop.file("peak/step.yml", format!("{{}}\n---\n{PARENTS_PEAK}\n"));
    for (name, count) in [("ten", 10), ("thousand", 1000), ("four", 4000)] {
        sequence(&workshop, name, count);
    }
    memory("run, 1,000 steps: peak memory", peak_memory(&workshop, "./thousand"), 12 << 10, "at most 12 MiB");
    let growth = peak_memory(&workshop, "./four").saturating_sub(peak_memory(&workshop, "./thousand")) as f64 * 1024.0 / 3000.0;
    Figure {
        name: "run, memory of one step more",
        value: format!("{growth:.0} B"),
        floor: String::new(),
        ratio: None,
        goal: "at most 1,500 B",
        met: growth <= 1500.0,
    }
    .print();
    let ten = durations(9, || run(&workshop, &["run", "./ten", "--quiet"]));
    let thousand = durations(3, || run(&workshop, &["run", "./thousand", "--quiet"]));
    let floor = median(&durations(300, || quiet(Command::new("/bin/true"))));
    let each = (median(&thousand).saturating_sub(median(&ten))) / 990;
    let over = each.saturating_sub(floor);
    Figure {
        name: "run, each exec step: time over posix_spawn and wait",
        value: milliseconds(over),
        floor: milliseconds(floor),
        ratio: Some(each.as_secs_f64() / floor.as_secs_f64()),
        goal: "at most 0.15 ms",
        met: over <= Duration::from_micros(150),
    }
    .print();
}

fn hundred_scripts() {
    let workshop = Workshop::new();
    let steps: String = (0..100).map(|index| format!("  - {{name: s{index}, script: \"true\"}}\n")).collect();
    workshop.file("scripts/step.yml", format!("{{}}\n---\nrun:\n{steps}"));
    let shell = ["/usr/local/bin/bash", "/usr/bin/bash", "/bin/bash", "/usr/bin/sh", "/bin/sh"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .expect("a shell");
    let ours = median(&durations(9, || run(&workshop, &["run", "./scripts", "--quiet"])));
    let floor = median(&durations(9, || {
        for _ in 0..100 {
            let mut command = Command::new(shell);
            command.args(["-c", "true"]);
            quiet(command);
        }
    }));
    Figure {
        name: "run, 100 scripts that do nothing",
        value: milliseconds(ours),
        floor: milliseconds(floor),
        ratio: Some(ours.as_secs_f64() / floor.as_secs_f64()),
        goal: "at most 200 ms",
        met: ours <= Duration::from_millis(200),
    }
    .print();
}

fn thousand_files() {
    let workshop = Workshop::new();
    for index in 0..1000 {
        workshop.file(
            &format!("steps/s{index}/func.yml"),
            "spec:\n  inputs:\n    who: {type: string, default: world}\n    times: {type: number, default: 1}\n  outputs:\n    greeting: {type: string}\n---\nenv: {WHO: \"${{ inputs.who }}\"}\nexec:\n  command: [sh, -c, \"echo $WHO\", \"${{ inputs.times + 1 }}\", \"${{ output_file }}\"]\n",
        );
    }
    let directories: Vec<String> = (0..1000).map(|index| format!("steps/s{index}")).collect();
    let arguments: Vec<&str> = ["check"].into_iter().chain(directories.iter().map(String::as_str)).collect();
    let ours = median(&durations(5, || run(&workshop, &arguments)));
    let floor = median(&durations(5, || {
        for index in 0..1000 {
            std::fs::read(workshop.path(&format!("steps/s{index}/func.yml"))).expect("it was written");
        }
    }));
    Figure {
        name: "check, 1,000 files",
        value: milliseconds(ours),
        floor: milliseconds(floor),
        ratio: Some(ours.as_secs_f64() / floor.as_secs_f64()),
        goal: "at most 500 ms",
        met: ours <= Duration::from_millis(500),
    }
    .print();
}

fn large_output() {
    let workshop = Workshop::new();
    let line = format!("{{\"name\":\"value\",\"value\":\"{}\"}}\n", "x".repeat(10_000_000));
    workshop.file("line", line);
    workshop.file(
        "large/step.yml",
        "spec: {outputs: {value: {type: string}}}\n---\nexec: {command: [sh, -c, \"cat line >$1\", x, \"${{ output_file }}\"]}\n",
    );
    let ours = median(&durations(5, || run(&workshop, &["run", "./large", "--quiet"])));
    let floor = median(&durations(5, || {
        let mut command = Command::new("sh");
        command.args(["-c", "cat line >copy"]).current_dir(workshop.dir());
        quiet(command);
    }));
    Figure {
        name: "run, an output of 10 MB",
        value: milliseconds(ours),
        floor: milliseconds(floor),
        ratio: Some(ours.as_secs_f64() / floor.as_secs_f64()),
        goal: "works",
        met: true,
    }
    .print();
}

fn log_path() {
    let workshop = Workshop::new();
    workshop.file("log/step.yml", "{}\n---\nrun:\n  - {name: write, step: ../write}\n  - {name: peak, step: ../peak}\n");
    workshop.file("peak/step.yml", format!("{{}}\n---\n{PARENTS_PEAK} \n"));
    workshop.file("line", format!("{}\n", "0123456789".repeat(8)).repeat(20_000));
    let write = |times: usize| {
        workshop
            .file("write/step.yml", format!("{{}}\n---\nexec: {{command: [sh, -c, \"for i in $(seq {times}); do cat line; done\"]}}\n"));
    };
    write(600); // 972 MB
    let through = |command: &str| {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(workshop.dir())
            .env("STEP_RUNNER", program::path("STEP_RUNNER"))
            .env("TMPDIR", workshop.path("tmp"));
        median(&durations(3, || quiet_mut(&mut shell)))
    };
    let floor = through("for i in $(seq 600); do cat line; done | cat | cat >/dev/null");
    let ours = through("\"$STEP_RUNNER\" run ./log --quiet | cat >/dev/null");
    let rate = |duration: Duration| 972.0 / duration.as_secs_f64();
    Figure {
        name: "run, log without secrets",
        value: format!("{:.0} MB/s", rate(ours)),
        floor: format!("{:.0} MB/s (cat)", rate(floor)),
        ratio: Some(ours.as_secs_f64() / floor.as_secs_f64()),
        goal: "within a tenth of cat",
        met: ours.as_secs_f64() <= floor.as_secs_f64() * 1.1,
    }
    .print();
    let small = peak_memory(&workshop, "./log");
    write(1800);
    let growth = peak_memory(&workshop, "./log").saturating_sub(small);
    Figure {
        name: "run, memory after 3 GB of log over that after 1 GB",
        value: format!("{growth} KiB"),
        floor: String::new(),
        ratio: None,
        // What the allocator keeps of a few pieces of output differs from run to run; a leak of one byte in a thousand would be 2 MB.
        goal: "flat: at most 1 MiB",
        met: growth <= 1024,
    }
    .print();
}

fn memory(name: &'static str, kib: u64, at_most: u64, goal: &'static str) {
    Figure { name, value: format!("{:.1} MiB", kib as f64 / 1024.0), floor: String::new(), ratio: None, goal, met: kib <= at_most }.print();
}

/// In KiB, as the last step of the job sees it.
fn peak_memory(workshop: &Workshop, job: &str) -> u64 {
    let output = step_runner(workshop, &["run", job, "--quiet"]).stderr(Stdio::inherit()).output().expect("step-runner starts");
    let tail = &output.stdout[output.stdout.len().saturating_sub(200)..];
    let text = String::from_utf8_lossy(tail).into_owned();
    let line = text.lines().rev().find(|line| line.starts_with("VmHWM")).unwrap_or_else(|| panic!("no peak in {text:?}"));
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of KiB")
}

fn step_runner(workshop: &Workshop, arguments: &[&str]) -> Command {
    let mut command = Command::new(program::path("STEP_RUNNER"));
    command.args(arguments).current_dir(workshop.dir()).env("TMPDIR", workshop.path("tmp")).stdin(Stdio::null());
    command
}

fn run(workshop: &Workshop, arguments: &[&str]) {
    quiet(step_runner(workshop, arguments));
}

fn quiet(mut command: Command) {
    quiet_mut(&mut command);
}

fn quiet_mut(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(status.success(), "{command:?} ended with {status}");
}
