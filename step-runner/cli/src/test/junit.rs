//! The report that CI servers read: JUnit's XML, as GitLab takes it.

use super::tell::Summary;
use std::fmt::Write as _;
use std::path::Path;
use step_console::exit::Stop;
use step_testing::compare::Finding;
use step_testing::suite_file::SuiteFile;
use step_testing::workers::Report;

/// Written aside and renamed: a reader sees all of it or nothing.
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, files: &[SuiteFile], summary: &Summary) -> Result<(), Stop> {
    super::write_aside(path, &text(files, summary))
}

fn text(files: &[SuiteFile], summary: &Summary) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let seconds = |report: &Option<Report>| report.as_ref().map_or(0.0, |report| report.outcome.duration.as_secs_f64());
    let all: f64 = summary.reports.iter().map(|(_, report)| seconds(report)).sum();
    let tests = summary.reports.len();
    let _ =
        writeln!(xml, "<testsuites tests=\"{tests}\" failures=\"{}\" skipped=\"{}\" time=\"{all:.6}\">", summary.failed, summary.skipped);
    for (number, file) in files.iter().enumerate() {
        let of_file: Vec<_> = summary.reports.iter().filter(|((of, _), _)| *of == number).collect();
        if of_file.is_empty() {
            continue;
        }
        let failed = of_file.iter().filter(|(_, report)| report.as_ref().is_some_and(|report| !report.findings.is_empty())).count();
        let skipped = of_file.iter().filter(|(_, report)| report.is_none()).count();
        let time: f64 = of_file.iter().map(|(_, report)| seconds(report)).sum();
        let name = escaped(&file.name);
        let count = of_file.len();
        let _ =
            writeln!(xml, "  <testsuite name=\"{name}\" tests=\"{count}\" failures=\"{failed}\" skipped=\"{skipped}\" time=\"{time:.6}\">");
        for ((_, position), report) in of_file {
            let case = &file.suite.cases[*position];
            let title = escaped(&case.name);
            let line = case.place.line;
            let _ = write!(
                xml,
                "    <testcase name=\"{title}\" classname=\"{name}\" file=\"{name}\" line=\"{line}\" time=\"{:.6}\"",
                seconds(report)
            );
            match report {
                None => {
                    let reason = escaped(case.skip.as_deref().unwrap_or_default());
                    let _ = writeln!(xml, "><skipped message=\"{reason}\"/></testcase>");
                }
                Some(report) if report.findings.is_empty() => xml.push_str("/>\n"),
                Some(report) => {
                    xml.push_str(">\n");
                    for finding in &report.findings {
                        let _ = writeln!(
                            xml,
                            "      <failure message=\"{}\">{}</failure>",
                            escaped(&finding.message),
                            escaped(&body(file, finding))
                        );
                    }
                    if !report.outcome.log.is_empty() {
                        let _ = writeln!(xml, "      <system-out>{}</system-out>", escaped(&report.outcome.log));
                    }
                    xml.push_str("    </testcase>\n");
                }
            }
        }
        xml.push_str("  </testsuite>\n");
    }
    xml + "</testsuites>\n"
}

fn body(file: &SuiteFile, finding: &Finding) -> String {
    let mut text = format!("{}:{}:{}", file.name, finding.place.line, finding.place.column);
    if let Some(difference) = &finding.difference {
        let _ = write!(text, "\nexpected: {}\ngot: {}", difference.expected, difference.got);
    }
    if let Some(hint) = &finding.hint {
        let _ = write!(text, "\nhint: {hint}");
    }
    text
}

/// As XML 1.0 allows it: what it cannot hold at all becomes the sign for an unknown letter.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(escaped("a<b>&\"c\"\u{1b}[31m\n"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}[31m\n");
    }
}
