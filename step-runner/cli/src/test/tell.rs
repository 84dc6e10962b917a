//! What is said about cases: a line each, and for those that fail what differs, where the case says what it expects.

use super::records;
use crate::complain;
use std::io::Write;
use std::time::Duration;
use step_console::complaint::plain;
use step_console::exit::Stop;
use step_console::tree::in_words;
use step_model::diagnostic::Problem;
use step_testing::compare::{Difference, Finding};
use step_testing::difference::{Line, lines};
use step_testing::suite_file::SuiteFile;
use step_testing::workers::Report;

/// Lines of a log that are shown of a case that fails.
const TAIL: usize = 20;
/// Cases that take longer are named at the end without being asked for.
const SLOW: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Text { quiet: bool },
    Json,
}

/// How all of it went.
#[derive(Debug, Default)]
pub struct Summary {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub updated: usize,
    /// `(file, case)` and the report; `None` for one that was skipped.
    pub reports: Vec<((usize, usize), Option<Report>)>,
}

/// Tells while cases run, in the order of the files.
pub struct Teller<'a> {
    out: &'a mut dyn Write,
    output: Output,
    files: &'a [SuiteFile],
    chosen: &'a [(usize, usize)],
    /// How many of `chosen` have been told.
    told: usize,
    file: Option<usize>,
    lost: Option<std::io::Error>,
}

impl<'a> Teller<'a> {
    pub fn new(out: &'a mut dyn Write, output: Output, files: &'a [SuiteFile], chosen: &'a [(usize, usize)]) -> Self {
        Self { out, output, files, chosen, told: 0, file: None, lost: None }
    }

    /// A case is over; skipped ones before it are told first.
    pub fn tell(&mut self, which: (usize, usize), report: Report, summary: &mut Summary) {
        self.skipped_before(Some(which), summary);
        self.told += 1;
        if report.findings.is_empty() {
            summary.passed += 1;
        } else {
            summary.failed += 1;
        }
        self.line(which, Some(&report));
        summary.reports.push((which, Some(report)));
    }

    /// What was skipped behind the last one that ran.
    pub fn rest(&mut self, summary: &mut Summary) {
        self.skipped_before(None, summary);
    }

    fn skipped_before(&mut self, which: Option<(usize, usize)>, summary: &mut Summary) {
        while let Some(next) = self.chosen.get(self.told).copied().filter(|next| Some(*next) != which) {
            if self.files[next.0].suite.cases[next.1].skip.is_none() {
                return;
            }
            self.told += 1;
            summary.skipped += 1;
            self.line(next, None);
            summary.reports.push((next, None));
        }
    }

    fn line(&mut self, (file, case): (usize, usize), report: Option<&Report>) {
        let written = match self.output {
            Output::Json => records::case(self.out, &self.files[file], case, report),
            Output::Text { quiet } => {
                let failed = report.is_some_and(|report| !report.findings.is_empty());
                if quiet && !failed { Ok(()) } else { self.text_line(file, case, report) }
            }
        };
        if let Err(error) = written {
            self.lost.get_or_insert(error);
        }
    }

    fn text_line(&mut self, file: usize, case: usize, report: Option<&Report>) -> std::io::Result<()> {
        if self.file.replace(file) != Some(file) {
            writeln!(self.out, "{}", plain(&self.files[file].name))?;
        }
        let case = &self.files[file].suite.cases[case];
        let name = plain(&case.name);
        match report {
            None => {
                let yellow = anstyle::AnsiColor::Yellow.on_default();
                writeln!(self.out, "  {yellow}skipped{yellow:#}          {name}: {}", plain(case.skip.as_deref().unwrap_or_default()))
            }
            Some(report) => {
                let duration = in_words(report.outcome.duration);
                let (word, color) = if report.findings.is_empty() {
                    ("ok", anstyle::AnsiColor::Green.on_default())
                } else {
                    ("FAILED", anstyle::AnsiColor::Red.on_default().bold())
                };
                writeln!(self.out, "  {color}{word:<7}{color:#} {duration:>8} {name}")
            }
        }
    }

    /// What differs in each case that failed.
    /// # Errors
    /// The stream cannot be written.
    pub fn failures(&mut self, summary: &Summary, update: bool) -> Result<(), Stop> {
        if let Some(error) = self.lost.take() {
            return Err(super::not_written(error));
        }
        if self.output == Output::Json {
            return Ok(());
        }
        for ((file, case), report) in &summary.reports {
            let Some(report) = report.as_ref().filter(|report| !report.findings.is_empty()) else { continue };
            let file = &self.files[*file];
            let name = &file.suite.cases[*case].name;
            // What is written into a golden file is told when that is done.
            let told = report.findings.iter().filter(|finding| !(update && is_golden(finding)));
            for finding in told {
                write!(self.out, "\n{}", failure(file, name, finding)).map_err(super::not_written)?;
            }
            if !update {
                self.out.write_all(tail(&report.outcome.log).as_bytes()).map_err(super::not_written)?;
            }
        }
        Ok(())
    }
}

/// Whether a finding is about a golden file.
pub fn is_golden(finding: &Finding) -> bool {
    finding.message.contains("golden file `")
}

fn failure(file: &SuiteFile, name: &str, finding: &Finding) -> String {
    let problem = Problem::error("case", format!("{name}: {}", finding.message), Some(finding.place.clone()));
    let mut text = complain::shown(&problem, &file.name, Some(&file.text), false);
    if let Some(difference) = &finding.difference {
        text.push_str(&shown(difference));
    }
    if let Some(hint) = &finding.hint {
        text.push_str(&format!(" hint: {}\n", plain(hint)));
    }
    text
}

fn shown(difference: &Difference) -> String {
    let (red, green) = (anstyle::AnsiColor::Red.on_default(), anstyle::AnsiColor::Green.on_default());
    let mut text = format!(" {red}- expected{red:#}, {green}+ got{green:#}\n");
    for line in lines(&difference.expected, &difference.got) {
        match line {
            Line::Same(line) => text.push_str(&format!("   {}\n", plain(line))),
            Line::Missing(line) => text.push_str(&format!(" {red}- {}{red:#}\n", plain(line))),
            Line::Surplus(line) => text.push_str(&format!(" {green}+ {}{green:#}\n", plain(line))),
            Line::Left(count) => text.push_str(&format!("   ({count} more lines)\n")),
        }
    }
    text
}

fn tail(log: &str) -> String {
    let all: Vec<&str> = log.lines().collect();
    if all.is_empty() {
        return String::new();
    }
    let first = all.len().saturating_sub(TAIL);
    let title = if first == 0 { "the log:".to_owned() } else { format!("the last {TAIL} of {} lines of the log:", all.len()) };
    let lines: String = all[first..].iter().map(|line| format!("   | {}\n", plain(line))).collect();
    format!(" {title}\n{lines}")
}

/// The slowest cases: as many as were asked for, else those that are really slow.
/// # Errors
/// The stream cannot be written.
pub fn slow(out: &mut dyn Write, output: Output, files: &[SuiteFile], summary: &Summary, wanted: Option<usize>) -> Result<(), Stop> {
    if output == Output::Json {
        return Ok(());
    }
    let mut reports: Vec<_> =
        summary.reports.iter().filter_map(|(which, report)| Some((*which, report.as_ref()?.outcome.duration))).collect();
    reports.sort_by_key(|(_, duration)| std::cmp::Reverse(*duration));
    let shown: Vec<_> = match wanted {
        Some(count) => reports.into_iter().take(count).collect(),
        None => reports.into_iter().take_while(|(_, duration)| *duration > SLOW).take(10).collect(),
    };
    if shown.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nslowest:").map_err(super::not_written)?;
    for ((file, case), duration) in shown {
        let name = plain(&files[file].suite.cases[case].name);
        writeln!(out, "  {:>8} {}: {name}", in_words(duration), plain(&files[file].name)).map_err(super::not_written)?;
    }
    Ok(())
}

/// The last line.
/// # Errors
/// The stream cannot be written.
pub fn end(out: &mut dyn Write, output: Output, summary: &Summary, refused: usize, elapsed: Duration) -> Result<(), Stop> {
    if output == Output::Json {
        return records::end(out, summary, refused, elapsed).map_err(super::not_written);
    }
    let Summary { passed, failed, skipped, updated, .. } = summary;
    let all = passed + failed + skipped;
    let mut parts = vec![format!("{passed} passed")];
    for (number, what) in [(*failed, "failed"), (*skipped, "skipped"), (*updated, "golden files updated")] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    if refused > 0 {
        parts.push(format!("{refused} file{} not run", if refused == 1 { "" } else { "s" }));
    }
    let cases = if all == 1 { "case" } else { "cases" };
    writeln!(out, "\n{all} {cases}: {} in {}", parts.join(", "), in_words(elapsed)).map_err(super::not_written)
}
