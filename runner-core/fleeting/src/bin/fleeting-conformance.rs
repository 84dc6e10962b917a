//! Judges a fleeting plugin with a readable report.

use runner_fleeting::contract::{Trial, Weight};
use runner_fleeting::{Options, Settings, conformance};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
Usage: fleeting-conformance [OPTIONS] PLUGIN

Starts the plugin, leads it through a whole life, and says which claims hold. It makes real instances and removes them.

  PLUGIN             a path, `fleeting-plugin-NAME`, or NAME on PATH
  --config FILE      plugin_config as JSON; `-` is standard input [default: none]
  --instances N      how many instances to make, at least 2 [default: 2]
  --wait SECONDS     how long an instance may take to run or to go [default: 300]
  --verbose          the plugin's log, on standard error
  --version, --help

Exit codes: 0 everything that must hold does, 1 something does not, 2 usage, 3 bad input.
";

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    plugin: String,
    config: Option<String>,
    instances: u32,
    wait: Duration,
    verbose: bool,
}

/// What to do instead of examining a plugin.
#[derive(Debug, PartialEq, Eq)]
enum Instead {
    Say(String),
    Usage(String),
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<Typed, Instead> {
    let mut typed = Typed { plugin: String::new(), config: None, instances: 2, wait: Duration::from_secs(300), verbose: false };
    let wrong = |what: String| Instead::Usage(what);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| wrong(format!("`{argument}` needs a value")));
        match argument.as_str() {
            "--help" | "-h" => return Err(Instead::Say(USAGE.to_owned())),
            "--version" | "-V" => return Err(Instead::Say(format!("fleeting-conformance {}\n", env!("CARGO_PKG_VERSION")))),
            "--config" => typed.config = Some(value()?),
            "--instances" => {
                let text = value()?;
                let count = text.parse().ok().filter(|count| *count >= 2);
                typed.instances = count.ok_or_else(|| wrong(format!("`--instances {text}` is no whole number from 2 on")))?;
            }
            "--wait" => {
                let text = value()?;
                let seconds = text.parse().map_err(|_| wrong(format!("`--wait {text}` is no whole number of seconds")))?;
                typed.wait = Duration::from_secs(seconds);
            }
            "--verbose" => typed.verbose = true,
            flag if flag.starts_with('-') => return Err(wrong(format!("there is no `{flag}`"))),
            plugin if typed.plugin.is_empty() => plugin.clone_into(&mut typed.plugin),
            more => return Err(wrong(format!("one plugin at a time, not also `{more}`"))),
        }
    }
    if typed.plugin.is_empty() { Err(wrong("which plugin?".to_owned())) } else { Ok(typed) }
}

fn config(typed: &Typed) -> Result<serde_json::Value, String> {
    let Some(file) = &typed.config else { return Ok(serde_json::Value::Null) };
    let text = if file == "-" { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    let text = text.map_err(|error| format!("could not read `{file}`: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("could not read `{file}`: {error}"))
}

fn main() -> ExitCode {
    let typed = match read(std::env::args().skip(1)) {
        Ok(typed) => typed,
        Err(Instead::Say(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(Instead::Usage(problem)) => {
            eprint!("error: {problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&typed) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(3)
        }
    }
}

fn run(typed: &Typed) -> Result<ExitCode, String> {
    let places = runner_fleeting::Locate { directories: Vec::new(), path: std::env::var_os("PATH") };
    let program: PathBuf = runner_fleeting::locate(&typed.plugin, &places).map_err(|missing| {
        let hint = runner_fleeting::NotFound::HINT;
        format!("{missing}\n hint: {hint}")
    })?;
    let trial = Trial {
        config: config(typed)?,
        settings: Settings::default(),
        instances: typed.instances,
        patience: typed.wait,
        look: Duration::from_millis(50),
        early_shutdown: true,
    };
    let mut options = Options::named(typed.plugin.clone());
    let verbose = typed.verbose;
    options.log = std::sync::Arc::new(move |_: &str, record: &runner_fleeting::Record| {
        if verbose {
            eprintln!("  {:?} {} {}", record.level, record.message, serde_json::Value::Object(record.fields.clone()));
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let findings = runtime.block_on(conformance::examine(&program, &trial, &options));
    for finding in &findings {
        println!("{finding}");
    }
    let count = |weight| findings.iter().filter(|finding| finding.fault.is_some() && finding.weight == weight).count();
    let (failed, advised) = (count(Weight::Must), count(Weight::Should));
    println!("{} claims: {failed} failed, {advised} should be better", findings.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Result<Typed, Instead> {
        read(text.split_whitespace().map(ToOwned::to_owned))
    }

    #[test]
    fn options_are_read_and_the_rest_is_refused_with_its_reason() {
        let expected =
            Typed { plugin: "x".to_owned(), config: Some("c".to_owned()), instances: 3, wait: Duration::from_secs(9), verbose: true };
        assert_eq!(typed("--config c --instances 3 --wait 9 --verbose x"), Ok(expected));
        let wrong = |text| match typed(text) {
            Err(Instead::Usage(problem)) => problem,
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong("--instances 1 x"), "`--instances 1` is no whole number from 2 on");
        assert_eq!(wrong("--wait soon x"), "`--wait soon` is no whole number of seconds");
        assert_eq!(
            ["x y", "--nope", "--config", ""].map(wrong).join("; "),
            "one plugin at a time, not also `y`; there is no `--nope`; `--config` needs a value; which plugin?"
        );
    }
}
