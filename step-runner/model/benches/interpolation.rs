//! Simple interpolations per second, beside their floor: joining the same texts without a template, measured in the same run.
//!
//! `cargo bench -p step-model --bench interpolation`

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; the crate does neither"
)]

use serde_json::json;
use std::hint::black_box;
use std::time::Instant;
use step_model::document::Dialect;
use step_model::expression::{Scope, Template};
use step_model::testing::contexts;
use step_model::value::Value;

/// Each measured often, and the best taken: the machine has other things to do.
const ROUNDS: usize = 15;
const TIMES: u32 = 100_000;
const GOAL: f64 = 1_000_000.0;

fn main() {
    let scope = contexts(&json!({
        "inputs": {"who": "Ann Lee", "count": 3, "names": ["a", "b"]},
        "steps": {"build": {"outputs": {"path": "target/out"}}},
        "env": {"HOME": "/root"},
    }));
    let floor = best(|| drop(black_box(joined(black_box(&scope)))));
    for source in [
        "Hello ${{ inputs.who }}!",
        "${{ inputs.who }}",
        "${{ steps.build.outputs.path }}/x",
        "n=${{ inputs.count }}",
        "${{ inputs.names }}",
        "${{ inputs.nope || env.HOME }}",
        "${{ inputs.count + 1 == 4 && \"four\" }}",
    ] {
        let template = Template::parse(source, Dialect::Functions).expect("the texts above are of the language");
        let figure = best(|| drop(black_box(template.evaluate_text(black_box(&scope)))));
        print(source, figure, floor);
    }
    let source = "Hello ${{ inputs.who }}!";
    let reading = best(|| drop(black_box(Template::parse(black_box(source), Dialect::Functions))));
    print("reading `Hello ${{ inputs.who }}!`", reading, floor);
}

/// The text of the first template: the value is looked up and joined with what is around it.
fn joined(scope: &dyn Scope) -> Value {
    let who = scope.attribute("inputs", "who").unwrap_or(Value::NULL);
    Value::from(["Hello ", who.as_str().unwrap_or_default(), "!"].concat())
}

/// A line of the table of `./bench`; `|` separates its columns.
fn print(name: &str, per_second: f64, floor: f64) {
    let name = name.replace('|', "¦");
    let verdict = if per_second >= GOAL { "met" } else { "MISSED" };
    println!("bench: {name} | {per_second:.0}/s | {floor:.0}/s | {:.2} | at least {GOAL:.0}/s | {verdict}", floor / per_second);
}

/// How often in a second.
fn best(work: impl Fn()) -> f64 {
    let round = || {
        let start = Instant::now();
        (0..TIMES).for_each(|_| work());
        f64::from(TIMES) / start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}
