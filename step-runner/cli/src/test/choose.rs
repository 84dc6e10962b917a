//! Which cases are run.

use step_console::exit::Stop;
use step_testing::suite_file::SuiteFile;

/// The positions of file and case, in order.
/// # Errors
/// No case has one of the texts: a filter with a slip would pass for success.
pub fn chosen(files: &[SuiteFile], filter: &[String]) -> Result<Vec<(usize, usize)>, Stop> {
    let mut chosen = Vec::new();
    for (number, file) in files.iter().enumerate() {
        for (position, case) in file.suite.cases.iter().enumerate() {
            let whole = format!("{}: {}", file.name, case.name);
            if filter.is_empty() || filter.iter().any(|text| whole.contains(text.as_str())) {
                chosen.push((number, position));
            }
        }
    }
    if chosen.is_empty() && !filter.is_empty() && files.iter().any(|file| !file.suite.cases.is_empty()) {
        let texts = filter.join("`, `");
        return Err(Stop::bad_input(format!("no case has `{texts}` in its name")).with_hint("`step-runner test --list` prints the names"));
    }
    Ok(chosen)
}
