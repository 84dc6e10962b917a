//! What the cases reached, as text, as JSON, and as one page.

use super::tell::Summary;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;
use step_console::complaint::plain;
use step_console::exit::Stop;
use step_testing::coverage::{Coverage, Covered, Item, ItemKind};
use step_testing::suite_file::SuiteFile;

/// Gathered from the reports of all cases.
pub fn gathered(files: &[SuiteFile], summary: &Summary, here: &Path) -> Vec<Covered> {
    let mut coverage = Coverage::default();
    for file in files {
        for planned in &file.plans {
            coverage.know(planned, file.subject.digest, &file.subject.file);
        }
    }
    for report in summary.reports.iter().filter_map(|(_, report)| report.as_ref()) {
        coverage.add(&report.outcome);
    }
    let here = here.canonicalize().unwrap_or_else(|_| here.to_path_buf());
    let mut covered = coverage.finish(|path| fs::read_to_string(path).ok());
    for definition in &mut covered {
        if let Ok(near) = Path::new(&definition.path).strip_prefix(&here) {
            definition.path = near.display().to_string();
        }
    }
    covered
}

/// A line for each definition, and one for each item that no case reached.
/// # Errors
/// The stream cannot be written.
pub fn text(out: &mut dyn Write, covered: &[Covered]) -> Result<(), Stop> {
    let mut text = String::from("\ncoverage:\n");
    for definition in covered {
        let (reached, all) = definition.counts();
        let _ = writeln!(text, "  {:>4} {}: {reached} of {all}", percent(reached, all), plain(&definition.path));
        for item in definition.items.iter().filter(|item| item.hits == 0) {
            let _ = writeln!(text, "         {}:{}: {}", plain(&definition.path), item.line, missing(item));
        }
    }
    let (reached, all) = total(covered);
    let _ = writeln!(text, "  {:>4} of all: {reached} of {all}", percent(reached, all));
    out.write_all(text.as_bytes()).map_err(super::not_written)
}

fn missing(item: &Item) -> String {
    let name = plain(&item.name);
    match item.kind {
        ItemKind::Step => format!("step `{name}` never ran"),
        ItemKind::Failure => format!("step `{name}` never failed"),
        ItemKind::Expression => format!("`{name}` was never evaluated"),
        ItemKind::Output => format!("output `{name}` was never given"),
    }
}

fn total(covered: &[Covered]) -> (usize, usize) {
    covered.iter().map(Covered::counts).fold((0, 0), |(reached, all), (more, most)| (reached + more, all + most))
}

fn percent(reached: usize, all: usize) -> String {
    format!("{}%", (reached * 100).checked_div(all).unwrap_or(100))
}

/// As lcov has it, in JSON: lines with their hits, and the items that they stand for.
/// # Errors
/// The file cannot be written.
pub fn write_json(path: &Path, covered: &[Covered]) -> Result<(), Stop> {
    let definitions: Vec<Json> = covered.iter().map(record).collect();
    let (reached, all) = total(covered);
    let record = json!({"version": 1, "reached": reached, "all": all, "definitions": definitions});
    super::write_aside(path, &format!("{record:#}\n"))
}

fn record(definition: &Covered) -> Json {
    let (reached, all) = definition.counts();
    let items = definition.items.iter();
    let items: Vec<Json> =
        items.map(|item| json!({"kind": item.kind.name(), "name": &*item.name, "line": item.line, "hits": item.hits})).collect();
    let lines: serde_json::Map<String, Json> = definition.lines().into_iter().map(|(line, hits)| (line.to_string(), hits.into())).collect();
    json!({"file": definition.path, "reached": reached, "all": all, "lines": lines, "items": items})
}

const STYLE: &str = "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;color:#1b1f24;background:#fff}\
table{border-collapse:collapse;font:13px/1.5 ui-monospace,monospace;width:100%}td{padding:0 .6em;white-space:pre-wrap;vertical-align:top}\
td:first-child,td:nth-child(2){text-align:right;color:#6a737d;width:3em}.hit{background:#e6f6e6}.miss{background:#fbe3e4}\
.note{color:#a40e26;font-style:italic}h2{margin-top:2em}";

/// One page that needs nothing else.
/// # Errors
/// The file cannot be written.
pub fn write_page(path: &Path, covered: &[Covered]) -> Result<(), Stop> {
    let (reached, all) = total(covered);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Coverage of steps</title><style>{STYLE}</style>\n<h1>Coverage: {} ({reached} of {all})</h1>\n",
        percent(reached, all)
    );
    for definition in covered {
        let (reached, all) = definition.counts();
        let _ = writeln!(page, "<h2>{}: {} ({reached} of {all})</h2>\n<table>", escaped(&definition.path), percent(reached, all));
        let lines = definition.lines();
        for (index, line) in definition.text.lines().enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let hits = lines.get(&number);
            let class = hits.map_or("", |hits| if *hits > 0 { "hit" } else { "miss" });
            let hits = hits.map_or_else(String::new, ToString::to_string);
            let missed = definition.items.iter().filter(|item| item.line == number && item.hits == 0);
            let notes: Vec<String> = missed.map(missing).collect();
            let note =
                if notes.is_empty() { String::new() } else { format!("  <span class=\"note\">{}</span>", escaped(&notes.join(", "))) };
            let _ = writeln!(page, "<tr class=\"{class}\"><td>{number}</td><td>{hits}</td><td>{}{note}</td></tr>", escaped(line));
        }
        page.push_str("</table>\n");
    }
    super::write_aside(path, &(page + "</html>\n"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What is said when fewer items were reached than wanted.
pub fn at_least(covered: &[Covered], wanted: u8) -> Option<String> {
    let (reached, all) = total(covered);
    let is_enough = reached * 100 >= usize::from(wanted) * all;
    (!is_enough).then(|| format!("{} were reached, and {wanted}% are wanted", percent(reached, all)))
}
