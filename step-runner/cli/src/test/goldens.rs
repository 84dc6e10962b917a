//! Golden files are written anew: `--update`.

use super::tell::{Summary, is_golden};
use std::fs;
use std::io::Write;
use step_console::exit::{Exit, Stop};
use step_testing::suite_file::SuiteFile;

/// Writes what came out. A case that had no other finding counts as passed.
/// # Errors
/// A file cannot be written.
pub fn update(files: &[SuiteFile], summary: &mut Summary, out: &mut dyn Write) -> Result<(), Stop> {
    for ((file, _), report) in &mut summary.reports {
        let Some(report) = report.as_mut().filter(|report| !report.updates.is_empty()) else { continue };
        for (path, text) in std::mem::take(&mut report.updates) {
            let path = files[*file].dir().join(&*path);
            let fault = |error: std::io::Error| Stop::new(Exit::Fault, format!("could not write `{}`: {error}", path.display()));
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(fault)?;
            }
            let aside = path.with_extension(format!("{}.new", std::process::id()));
            fs::write(&aside, text).and_then(|()| fs::rename(&aside, &path)).map_err(fault)?;
            writeln!(out, "updated {}", path.strip_prefix(".").unwrap_or(&path).display()).map_err(super::not_written)?;
            summary.updated += 1;
        }
        report.findings.retain(|finding| !is_golden(finding));
        if report.findings.is_empty() {
            summary.failed -= 1;
            summary.passed += 1;
        }
    }
    Ok(())
}
