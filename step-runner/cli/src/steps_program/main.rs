//! The program `step-runner-steps`: the steps that GitLab's jobs have around their own. It lies beside `step-runner`, which starts it; its first
//! word says which step it is.

use std::process::ExitCode;

/// Exit codes as `step-runner` has them: see `docs/compatibility.md`.
const USAGE: u8 = 2;

const HELP: &str = "\
Carries out the steps builtin://checkout, builtin://cache and builtin://artifact, for step-runner, which starts it.

Usage: step-runner-steps STEP

Steps:
  checkout   Bring a work tree to a commit
  cache      Restore and save what a later job can use again
  artifact   Upload what a job made, download what earlier jobs did

Options:
  -h, --help     Print help
  -V, --version  Print version
";

fn main() -> ExitCode {
    step_agent::static_program::pin_name_services();
    // A word that is no text names no step either.
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match words.split_first() {
        Some((step, rest)) if step == "artifact" => step_artifact::main(rest),
        Some((step, rest)) if step == "cache" => step_cache::main(rest),
        Some((step, rest)) if step == "checkout" => step_checkout::main(rest),
        Some((word, [])) if matches!(word.as_str(), "-h" | "--help" | "help") => say(HELP),
        Some((word, [])) if matches!(word.as_str(), "-V" | "--version") => {
            say(concat!("step-runner-steps ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        Some((word, _)) => misused(&format!("there is no step `{word}` here")),
        None => misused("a step is missing"),
    }
}

fn say(text: &str) -> ExitCode {
    use std::io::Write as _;
    // Whoever asked and left needs no answer.
    let _unread = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn misused(what: &str) -> ExitCode {
    eprintln!("error: {what}\n hint: `step-runner-steps --help` lists the steps");
    USAGE.into()
}
