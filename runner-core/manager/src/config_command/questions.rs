//! What a person is asked on a terminal when it was not given.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use step_console::exit::Stop;

/// The value that was given; else the answer of a person; else the default.
/// # Errors
/// There is none of them: what flag to give.
pub fn value(given: Option<&str>, question: &str, flag: &str, default: Option<&str>, asks: bool) -> Result<String, Stop> {
    if let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) {
        return Ok(given.to_owned());
    }
    let answer = if asks && std::io::stdin().is_terminal() { ask(question, default) } else { None };
    let found = answer.filter(|answer| !answer.is_empty()).or_else(|| default.map(str::to_owned));
    found.ok_or_else(|| Stop::usage(format!("there is no {flag}")).with_hint(format!("give it by `--{flag}`")))
}

fn ask(question: &str, default: Option<&str>) -> Option<String> {
    let shown = default.map(|default| format!(" [{default}]")).unwrap_or_default();
    let mut out = anstream::stderr();
    // Where nobody can be asked, the flag is named.
    write!(out, "{question}{shown}: ").and_then(|()| out.flush()).ok()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    Some(line.trim().to_owned())
}
