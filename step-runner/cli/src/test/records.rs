//! A line of JSON for each case, and one for the end.

use super::tell::Summary;
use serde_json::{Value as Json, json};
use std::io::{self, Write};
use std::time::Duration;
use step_testing::compare::Finding;
use step_testing::suite_file::SuiteFile;
use step_testing::workers::Report;

/// # Errors
/// The stream cannot be written.
pub fn case(out: &mut dyn Write, file: &SuiteFile, case: usize, report: Option<&Report>) -> io::Result<()> {
    let case = &file.suite.cases[case];
    let mut record = json!({"event": "case", "file": file.name, "line": case.place.line, "name": &*case.name, "status": status(report)});
    match report {
        Some(report) => {
            record["seconds"] = report.outcome.duration.as_secs_f64().into();
            if !report.findings.is_empty() {
                record["findings"] = report.findings.iter().map(finding).collect();
                record["log"] = report.outcome.log.as_str().into();
            }
        }
        None => record["reason"] = case.skip.as_deref().into(),
    }
    writeln!(out, "{record}")
}

pub fn status(report: Option<&Report>) -> &'static str {
    match report {
        None => "skipped",
        Some(report) if report.findings.is_empty() => "passed",
        Some(_) => "failed",
    }
}

fn finding(finding: &Finding) -> Json {
    let mut record = json!({"line": finding.place.line, "column": finding.place.column, "message": finding.message});
    if let Some(difference) = &finding.difference {
        record["expected"] = difference.expected.as_str().into();
        record["got"] = difference.got.as_str().into();
    }
    if let Some(hint) = &finding.hint {
        record["hint"] = hint.as_str().into();
    }
    record
}

/// # Errors
/// The stream cannot be written.
pub fn end(out: &mut dyn Write, summary: &Summary, refused: usize, elapsed: Duration) -> io::Result<()> {
    let record = json!({
        "event": "end",
        "passed": summary.passed,
        "failed": summary.failed,
        "skipped": summary.skipped,
        "files_not_run": refused,
        "seconds": elapsed.as_secs_f64(),
    });
    writeln!(out, "{record}")
}
