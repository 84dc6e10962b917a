//! Problems on standard output: for people, or for editors.

use super::walk::CheckedFile;
use crate::complain;
use serde::Serialize;
use std::io::{self, Write};
use step_model::diagnostic::{Lines, Problem};

/// Every problem with its place underlined, and how many there are.
/// # Errors
/// The stream cannot be written.
pub fn text(out: &mut dyn Write, files: &[CheckedFile], strict: bool) -> io::Result<()> {
    for file in files {
        for problem in &file.problems {
            writeln!(out, "{}", complain::shown(problem, &file.name, file.text.as_deref(), strict))?;
        }
    }
    let errors = files.iter().flat_map(|file| &file.problems).filter(|problem| problem.is_error() || strict).count();
    let warnings = files.iter().map(|file| file.problems.len()).sum::<usize>() - errors;
    let found = match (errors, warnings) {
        (0, 0) => "no problems".to_owned(),
        (errors, 0) => counted(errors, "error"),
        (0, warnings) => counted(warnings, "warning"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    };
    writeln!(out, "checked {}: {found}", counted(files.len(), "file"))
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A problem for editors. Lines and columns are counted from 1, columns in characters; the end is behind the last one.
#[derive(Serialize)]
struct Record<'a> {
    file: &'a str,
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(flatten)]
    place: Option<RecordedPlace>,
}

#[derive(Serialize)]
struct RecordedPlace {
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    /// Bytes of the file.
    start: usize,
    end: usize,
}

/// A line of JSON for each problem.
/// # Errors
/// The stream cannot be written.
pub fn json(out: &mut dyn Write, files: &[CheckedFile], strict: bool) -> io::Result<()> {
    for file in files {
        let lines = file.text.as_deref().map(|text| (text, Lines::of(text)));
        for problem in &file.problems {
            serde_json::to_writer(&mut *out, &record(problem, file, lines.as_ref(), strict))?;
            writeln!(out)?;
        }
    }
    Ok(())
}

fn record<'a>(problem: &'a Problem, file: &'a CheckedFile, lines: Option<&(&str, Lines)>, strict: bool) -> Record<'a> {
    let place = problem.place.as_ref().map(|place| {
        let end = lines.map(|(text, lines)| lines.place(text, place.span.end..place.span.end));
        RecordedPlace {
            line: place.line,
            column: place.column,
            end_line: end.as_ref().map_or(place.line, |end| end.line),
            end_column: end.as_ref().map_or(place.column, |end| end.column),
            start: place.span.start,
            end: place.span.end,
        }
    });
    Record {
        file: &file.name,
        severity: if problem.is_error() || strict { "error" } else { "warning" },
        code: problem.code,
        message: &problem.message,
        hint: problem.hint.as_deref(),
        place,
    }
}
