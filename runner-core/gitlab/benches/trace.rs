//! How fast an agent's log becomes a trace on disk: sanitised, cut, counted, written. Beside the floor of the same run: writing the same bytes.
//!
//! `cargo bench -p runner-gitlab --bench trace`

use runner_gitlab::trace::framed::{Framed, Headers, State};
use runner_gitlab::trace::sanitise::Prefixes;
use runner_gitlab::trace::spool::{Trace, TraceSettings};
use std::fmt::Write as _;
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;
use step_model::masking::Secrets;

/// Each measured often, and the best taken: the machine has other things to do.
const ROUNDS: usize = 7;
const TEXT: usize = 32 << 20;
const PIECE: usize = 64 << 10;

fn main() {
    let directory = tempfile::tempdir().expect("a directory");
    row("a trace without hits", &log(|_| ""), 300.0, directory.path());
    row(
        "a trace with a hit in every line",
        &log(|number| if number % 2 == 0 { " glpat-abcdefghijklmnopqrst" } else { " https://s3.example/x?X-Amz-Signature=abcdef&y" }),
        150.0,
        directory.path(),
    );
    pure("of that, what is sanitised without hits", &log(|_| ""));
}

fn row(name: &str, log: &[u8], goal: f64, directory: &Path) {
    let floor = best(log.len(), || {
        let mut file = File::create(directory.join("floor")).expect("a file");
        log.chunks(PIECE).for_each(|piece| file.write_all(piece).expect("written"));
    });
    let figure = best(log.len(), || {
        for name in ["trace", "trace.mark"] {
            // The first round has none.
            let _ = std::fs::remove_file(directory.join(name));
        }
        let settings = TraceSettings { limit: u64::MAX, headers: Headers::Full, prefixes: Prefixes::new(&[]), secrets: Secrets::default() };
        let mut trace = Trace::open(directory, settings).expect("a trace");
        log.chunks(PIECE).for_each(|piece| trace.push(piece).expect("written"));
        assert_eq!(trace.agent_offset(), log.len() as u64);
    });
    print(name, figure, floor, goal);
}

fn pure(name: &str, log: &[u8]) {
    let mut out = Vec::with_capacity(PIECE * 2);
    let floor = best(log.len(), || {
        for piece in log.chunks(PIECE) {
            out.clear();
            out.extend_from_slice(black_box(piece));
        }
    });
    let figure = best(log.len(), || {
        let mut framed = Framed::new(Headers::Full, Prefixes::new(&[]), State::default());
        for piece in log.chunks(PIECE) {
            out.clear();
            framed.push(black_box(piece), &mut out);
        }
    });
    print(name, figure, floor, 300.0);
}

fn print(name: &str, figure: f64, floor: f64, goal: f64) {
    let verdict = if figure >= goal { "met" } else { "MISSED" };
    println!("bench: {name} | {figure:.0} MB/s | {floor:.0} MB/s | {:.2} | at least {goal:.0} MB/s | {verdict}", floor / figure);
}

/// Megabytes per second, of the best round.
fn best(bytes: usize, mut work: impl FnMut()) -> f64 {
    let seconds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    bytes as f64 / 1e6 / seconds.fold(f64::INFINITY, f64::min)
}

/// What compilers and tests print, as an agent stamps it.
fn log(hit: impl Fn(usize) -> &'static str) -> Vec<u8> {
    let mut log = String::with_capacity(TEXT + 200);
    let mut number = 0;
    while log.len() < TEXT {
        let line = format_args!(
            "Compiling crate-{number} v0.{}.1 (/builds/group/project/src/{number}) ... ok   {:x}",
            number % 17,
            number * 2_654_435_761
        );
        writeln!(log, "2021-01-01T01:00:00.{:06}Z 01O {line}{}", number % 1_000_000, hit(number)).expect("a string takes everything");
        number += 1;
    }
    log.into_bytes()
}
