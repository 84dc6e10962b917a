//! How fast a stream is masked, beside its floor: copying the same bytes, measured in the same run.
//!
//! `cargo bench -p step-model --bench masking`

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; the crate does neither"
)]

use std::hint::black_box;
use std::time::Instant;
use step_model::masking::{Secrets, StreamMasker};

/// Each measured often, and the best taken: the machine has other things to do.
const ROUNDS: usize = 9;
const TEXT: usize = 16 << 20;
/// The masked path of a log.
const GOAL: f64 = 200.0;

fn main() {
    let log = log();
    let tokens: Vec<String> = (0..20).map(|number| noise(number, 20 + number as usize % 13)).collect();
    let key: Vec<String> = (0..26).map(|line| noise(100 + line, 64)).collect();
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", key.join("\n"));
    let starts: String = tokens.iter().map(|token| format!("{} ", &token[..token.len() - 1])).collect();
    let near = starts.repeat(TEXT / starts.len());

    let none = Secrets::default();
    let twenty = known(tokens.iter().map(String::as_str));
    let with_key = known(tokens.iter().map(String::as_str).chain([key.as_str()]));
    row("no secret", &none, &log, 64 << 10);
    row("20 secrets", &twenty, &log, 64 << 10);
    row("20 secrets, pieces of 4 KiB", &twenty, &log, 4 << 10);
    row("20 secrets, line by line", &twenty, &log, 90);
    row("20 secrets, beginnings of them only", &twenty, near.as_bytes(), 64 << 10);
    row("20 secrets and a private key", &with_key, &log, 64 << 10);

    let started = Instant::now();
    let mut growing = Secrets::default();
    let mut masker = StreamMasker::new(&growing);
    let mut out = Vec::new();
    for number in 0..1000 {
        growing.add(&noise(1000 + number, 32)).expect("long enough");
        masker.update(&growing);
        masker.push(b"a line of output\n", &mut out);
    }
    let each = started.elapsed().as_secs_f64();
    let verdict = if each <= 5.0 { "met" } else { "MISSED" };
    println!("bench: masking: a secret that is born, each of 1,000 | {each:.2} ms | | | at most 5 ms | {verdict}");
}

fn row(name: &str, secrets: &Secrets, text: &[u8], piece: usize) {
    let mut out = Vec::with_capacity(TEXT * 2);
    let floor = best(text.len(), || {
        out.clear();
        text.chunks(piece).for_each(|piece| out.extend_from_slice(black_box(piece)));
    });
    let figure = best(text.len(), || {
        out.clear();
        let mut masker = StreamMasker::new(secrets);
        text.chunks(piece).for_each(|piece| masker.push(black_box(piece), &mut out));
        masker.finish(&mut out);
    });
    let verdict = if figure >= GOAL { "met" } else { "MISSED" };
    println!("bench: masking: {name} | {figure:.0} MB/s | {floor:.0} MB/s | {:.2} | at least {GOAL:.0} MB/s | {verdict}", floor / figure);
}

/// Megabytes per second, of the best round.
fn best(bytes: usize, mut work: impl FnMut()) -> f64 {
    let seconds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    #[expect(clippy::cast_precision_loss, reason = "a few millions")]
    let megabytes = bytes as f64 / 1e6;
    megabytes / seconds.fold(f64::INFINITY, f64::min)
}

fn known<'s>(all: impl Iterator<Item = &'s str>) -> Secrets {
    let mut secrets = Secrets::default();
    all.for_each(|secret| secrets.add(secret).expect("they are long enough"));
    secrets
}

/// What compilers and tests print.
fn log() -> Vec<u8> {
    let mut log = String::with_capacity(TEXT + 200);
    let mut number = 0;
    while log.len() < TEXT {
        log.push_str(&format!("[{number:>6}] Compiling crate-{number} v0.{}.1 (/builds/group/project/src/{number})\n", number % 17));
        log.push_str(&format!("test module_{}::does_what_it_says ... ok   {:x}\n", number % 91, number * 2_654_435_761_u64));
        number += 1;
    }
    log.into_bytes()
}

fn noise(seed: u64, length: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[(state >> 32) as usize % LETTERS.len()])
    };
    (0..length).map(letter).collect()
}
