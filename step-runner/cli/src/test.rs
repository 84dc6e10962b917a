//! Runs the tests of steps: finds the files, runs the cases side by side, tells what differs.
//!
//! ```text
//! paths --find--> files --read, check--> cases --choose--> reports --tell--> text or JSON, JUnit, golden files, exit code
//! ```

mod choose;
mod coverage;
mod goldens;
mod interrupt;
mod junit;
mod mutants;
mod read;
mod records;
mod tell;
mod typed;
mod watch;

pub use typed::TestArguments;

use crate::builtins;
use crate::run::duration;
use crate::run::signals::Signal;
use interrupt::Interrupt;
use read::Tests;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;
use step_console::complaint;
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use step_testing::workers::{Grounds, Settings, run as run_cases};
use tell::{Output, Summary, Teller};
use typed::Form;

/// # Errors
/// There is nothing to test, or what was typed makes no sense.
pub fn run(arguments: &TestArguments) -> anyhow::Result<Exit> {
    let settings = settings(arguments)?;
    let interrupt = Interrupt::watch(settings.cancelled.clone())?;
    let here = std::env::current_dir().map_err(|error| Stop::bad_input(format!("could not find the current directory: {error}")))?;
    // What changes while the first round runs counts too.
    let watched = arguments.watch.then(|| watch::Watch::of(&arguments.paths(), &arguments.reports()));
    let mut exit = once(arguments, &settings, &here)?;
    if let Some(mut watched) = watched {
        while watched.wait_for_change(&settings.cancelled) {
            exit = round(arguments, &settings, &here);
        }
    }
    Ok(interrupt.first().map_or(exit, Signal::exit))
}

/// A round of `--watch`: files that are in the middle of being changed are no reason to end.
fn round(arguments: &TestArguments, settings: &Settings, here: &Path) -> Exit {
    once(arguments, settings, here).unwrap_or_else(|error| {
        let _ = write!(anstream::stderr(), "{}", complaint::shown(&error));
        Exit::BadInput
    })
}

fn settings(arguments: &TestArguments) -> Result<Settings, Stop> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into());
    let mut settings = Settings::new(path);
    settings.hermetic = arguments.hermetic;
    settings.builtins = builtins::all();
    if let Some(jobs) = arguments.jobs {
        settings.workers = jobs.get();
    }
    if let Some(text) = &arguments.timeout {
        settings.timeout = duration::parse(text).map_err(|why| Stop::usage(format!("--timeout `{text}` {why}")))?;
    }
    Ok(settings)
}

/// One round.
fn once(arguments: &TestArguments, settings: &Settings, here: &Path) -> anyhow::Result<Exit> {
    let start = Instant::now();
    let mut tests = Tests::read(&arguments.paths(), here)?;
    let mut out = anstream::stdout().lock();
    let chosen = choose::chosen(&tests.files, &arguments.filter)?;
    if arguments.list {
        for (file, case) in &chosen {
            let file = &tests.files[*file];
            writeln!(out, "{}:{}: {}", file.name, file.suite.cases[*case].place.line, file.suite.cases[*case].name).map_err(not_written)?;
        }
        return Ok(if tests.tell_refused(&mut out)? { Exit::BadInput } else { Exit::Done });
    }
    let grounds = Grounds::new().map_err(|error| Stop::new(Exit::Fault, format!("could not make a temporary directory: {error}")))?;
    let mut summary = Summary::default();
    let output = match arguments.output {
        Form::Text => Output::Text { quiet: arguments.quiet },
        Form::Json => Output::Json,
    };
    let runnable: Vec<(usize, usize)> =
        chosen.iter().copied().filter(|(file, case)| tests.files[*file].suite.cases[*case].skip.is_none()).collect();
    {
        let mut teller = Teller::new(&mut out, output, &tests.files, &chosen);
        run_cases(&tests.files, &runnable, settings, &grounds, |number, report| {
            if !settings.cancelled.load(Ordering::Relaxed) {
                teller.tell(runnable[number], report, &mut summary);
            }
        });
        teller.rest(&mut summary);
        teller.failures(&summary, arguments.update)?;
    }
    let was_refused = tests.tell_refused(&mut out)?;
    if arguments.update {
        goldens::update(&tests.files, &mut summary, &mut out)?;
    }
    if let Some(path) = &arguments.junit {
        junit::write(path, &tests.files, &summary)?;
    }
    tell::slow(&mut out, output, &tests.files, &summary, arguments.slow)?;
    let too_little = if arguments.wants_coverage() { tell_coverage(arguments, &tests, &summary, here, &mut out)? } else { false };
    let survived = arguments.mutate && mutants::run(&tests.files, &summary, settings, &grounds, output, &mut out)?;
    drop(grounds);
    tell::end(&mut out, output, &summary, tests.refused.len(), start.elapsed())?;
    out.flush().map_err(not_written)?;
    Ok(match (was_refused, summary.failed) {
        (true, _) => Exit::BadInput,
        (false, 1..) => Exit::Failed,
        (false, 0) if survived || too_little => Exit::Failed,
        (false, 0) => Exit::Done,
    })
}

/// Whether less was reached than is wanted.
fn tell_coverage(arguments: &TestArguments, tests: &Tests, summary: &Summary, here: &Path, out: &mut dyn Write) -> Result<bool, Stop> {
    let covered = coverage::gathered(&tests.files, summary, here);
    let is_text = arguments.output == Form::Text;
    if arguments.coverage && is_text {
        coverage::text(out, &covered)?;
    }
    if let Some(path) = &arguments.coverage_json {
        coverage::write_json(path, &covered)?;
    }
    if let Some(path) = &arguments.coverage_page {
        coverage::write_page(path, &covered)?;
    }
    let too_little = arguments.coverage_at_least.and_then(|wanted| coverage::at_least(&covered, wanted));
    if let (Some(message), true) = (&too_little, is_text) {
        writeln!(out, "coverage: {message}").map_err(not_written)?;
    }
    Ok(too_little.is_some())
}

/// Written aside and renamed: a reader sees all of it or nothing.
fn write_aside(path: &Path, text: &str) -> Result<(), Stop> {
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, path));
    written.map_err(|error| {
        let _nothing_there = std::fs::remove_file(&aside);
        Stop::new(Exit::Fault, format!("could not write `{}`: {}", path.display(), words(&error)))
    })
}

fn not_written(error: std::io::Error) -> Stop {
    Stop::new(Exit::Fault, format!("could not write to standard output: {error}"))
}
