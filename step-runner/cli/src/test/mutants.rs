//! Mutants of the tested definitions: which changes no case notices.

use super::tell::{Output, Summary};
use crate::complain;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use step_console::complaint::plain;
use step_console::exit::Stop;
use step_model::diagnostic::Problem;
use step_testing::mutate::{Fate, Judgement, judge};
use step_testing::suite_file::SuiteFile;
use step_testing::workers::{Grounds, Settings};

/// Judges the mutants of all files and tells of them. Whether there is something to do.
/// # Errors
/// The stream cannot be written.
pub fn run(
    files: &[SuiteFile],
    summary: &Summary,
    settings: &Settings,
    grounds: &Grounds,
    output: Output,
    out: &mut dyn Write,
) -> Result<bool, Stop> {
    let failed: BTreeSet<usize> = summary
        .reports
        .iter()
        .filter(|(_, report)| report.as_ref().is_some_and(|report| !report.findings.is_empty()))
        .map(|((file, _), _)| *file)
        .collect();
    let mut has_findings = false;
    for (number, file) in files.iter().enumerate() {
        if failed.contains(&number) {
            if output != Output::Json {
                writeln!(out, "\nmutants of {}: not tried, since a case fails without any", plain(&file.name))
                    .map_err(super::not_written)?;
            }
            continue;
        }
        let judgement = judge(file, settings, grounds);
        has_findings |= !judgement.useless.is_empty() || judgement.mutants.iter().any(|judged| judged.fate == Fate::Unnoticed);
        let told = if output == Output::Json { records(out, file, &judgement) } else { text(out, file, &judgement) };
        told.map_err(super::not_written)?;
    }
    Ok(has_findings)
}

fn records(out: &mut dyn Write, file: &SuiteFile, judgement: &Judgement) -> std::io::Result<()> {
    for judged in &judgement.mutants {
        let mut record = json!({"event": "mutant", "file": file.name, "definition": &*file.subject.file, "name": judged.mutant.name, "line": judged.mutant.line});
        match &judged.fate {
            Fate::Noticed { case } => {
                record["fate"] = "noticed".into();
                record["case"] = (**case).into();
            }
            Fate::Unnoticed => record["fate"] = "unnoticed".into(),
            Fate::Tolerated { reason } => {
                record["fate"] = "tolerated".into();
                record["reason"] = (**reason).into();
            }
            Fate::Unsound => record["fate"] = "unsound".into(),
        }
        writeln!(out, "{record}")?;
    }
    for (index, why) in &judgement.useless {
        let line = file.suite.tolerated[*index].mutant.place.line;
        writeln!(out, "{}", json!({"event": "useless", "file": file.name, "line": line, "message": why}))?;
    }
    Ok(())
}

fn text(out: &mut dyn Write, file: &SuiteFile, judgement: &Judgement) -> std::io::Result<()> {
    let count = |wanted: fn(&Fate) -> bool| judgement.mutants.iter().filter(|judged| wanted(&judged.fate)).count();
    let noticed = count(|fate| matches!(fate, Fate::Noticed { .. } | Fate::Unsound));
    let tolerated = count(|fate| matches!(fate, Fate::Tolerated { .. }));
    let unnoticed = count(|fate| matches!(fate, Fate::Unnoticed));
    let mut parts = vec![format!("{noticed} noticed")];
    for (number, what) in [(tolerated, "tolerated"), (unnoticed, "not noticed")] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    writeln!(out, "\nmutants of {}: {}: {}", plain(&file.name), judgement.mutants.len(), parts.join(", "))?;
    let dir = file.name.rsplit_once('/').map_or_else(String::new, |(dir, _)| format!("{dir}/"));
    for judged in &judgement.mutants {
        let place = judged.mutant.line.map_or_else(String::new, |line| format!("{}{}:{line}: ", plain(&dir), file.subject.file));
        match &judged.fate {
            Fate::Unnoticed => writeln!(out, "  no case notices: {place}{}", plain(&judged.mutant.name))?,
            Fate::Tolerated { reason } => writeln!(out, "  tolerated: {place}{}: {}", plain(&judged.mutant.name), plain(reason))?,
            Fate::Noticed { .. } | Fate::Unsound => {}
        }
    }
    if unnoticed > 0 {
        writeln!(out, " hint: write a case that fails with the change, or list it under `mutants:` with the reason why none needs to")?;
    }
    for (index, why) in &judgement.useless {
        let problem = Problem::error("mutant", why.clone(), Some(file.suite.tolerated[*index].mutant.place.clone()));
        write!(out, "{}", complain::shown(&problem.with_hint("remove it from `mutants`"), &file.name, Some(&file.text), false))?;
    }
    Ok(())
}
