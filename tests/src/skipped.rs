//! What could not be tested on this machine: said with its reason, and counted as skipped, never as passed.

use std::io::Write as _;

/// Notes that the calling test has not tested anything; it returns next. `reason`: what is missing, and how to get it.
///
/// `./test` names a file in `SKIPPED_TESTS`, prints what is in it and counts its lines. Without it the reason is only printed.
/// # Panics
/// The file cannot be written: the test would count as passed.
pub fn because(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {}\n", thread.name().unwrap_or("a test"), reason.replace('\n', " "));
    eprint!("SKIPPED {line}");
    if let Some(file) = std::env::var_os("SKIPPED_TESTS") {
        // One write each, appended: tests of several processes do not cut each other's lines.
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(&file);
        opened
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("could not write to {}: {error}", file.display()));
    }
}
