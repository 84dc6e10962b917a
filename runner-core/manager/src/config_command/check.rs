//! `config check`: what becomes of every key, all mistakes, how many machines there can be, and what counts at a moment.

use super::WhichFile;
use super::entry_file::EntryFile;
use crate::host_zone::host_zone;
use clap::Args;
use runner_config::machines::{counting_at, most_machines};
use runner_config::schedule::NamedZone;
use runner_config::{Look, Settings};
use std::io::Write as _;
use step_console::complaint::plain;
use step_console::exit::{Exit, Stop};
use step_model::time::Timestamp;

#[derive(Debug, Clone, Args)]
pub struct CheckArguments {
    #[command(flatten)]
    which: WhichFile,
    /// Also say which period of each runner counts at this moment: `now`, `2026-03-02T09:00:00Z`, `2026-03-02T09:00` on this machine's clock.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

/// # Errors
/// There is no such file, or the moment is none.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<Exit> {
    let file = EntryFile::read(&arguments.which)?;
    let host = host_zone(&file.variables);
    let at = arguments.at.as_deref().map(|text| moment(text, &host)).transpose()?;
    let mut out = anstream::stdout();
    write!(out, "{}", file.parsed.report(&file.shown(), &file.text, Look::Coloured))?;
    if let Some(settings) = &file.parsed.settings {
        write!(out, "{}", machines(settings, at, &host))?;
    }
    Ok(if file.parsed.has_findings() { Exit::Failed } else { Exit::Done })
}

/// For each entry the largest number of machines and how it comes about; for a moment what counts.
fn machines(settings: &Settings, at: Option<Timestamp>, host: &NamedZone) -> String {
    let mut text = String::new();
    for runner in settings.entries() {
        let most = most_machines(&settings.global, runner);
        text += &format!("\n{}: at most {} machine{}\n", plain(&runner.phrase()), most.count, if most.count == 1 { "" } else { "s" });
        for sentence in &most.how {
            text += &format!("  {sentence}\n");
        }
        if let Some((at, counting)) = at.and_then(|at| Some((at, counting_at(runner, at, host)?))) {
            text += &format!("  at {}: {}, by {}\n", host.show(at), counting.figures, counting.which);
        }
    }
    text
}

fn moment(text: &str, host: &NamedZone) -> Result<Timestamp, Stop> {
    let found = if text == "now" { Some(super::now()) } else { host.moment(text) };
    found.ok_or_else(|| {
        Stop::usage(format!("`{}` is no moment", plain(text))).with_hint("write `now`, `2026-03-02T09:00:00Z` or `2026-03-02T09:00`")
    })
}
