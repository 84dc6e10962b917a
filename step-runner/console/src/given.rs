//! Texts that a person gives: files and standard input, with a limit.

use crate::exit::Stop;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest payload that is read: that of a message on the wire.
pub const LIMIT: u64 = 64 << 20;

/// A text and what it is called in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub name: String,
    pub text: String,
}

/// Reads a file.
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub fn file(path: &Path) -> Result<Given, Stop> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|fault| Stop::bad_input(format!("could not open `{name}`: {}", words(&fault))))?;
    given(name, file)
}

/// Reads standard input to its end.
/// # Errors
/// As for [`file`].
pub fn standard_input() -> Result<Given, Stop> {
    given("standard input".into(), io::stdin().lock())
}

fn given(name: String, from: impl Read) -> Result<Given, Stop> {
    let mut bytes = Vec::new();
    let refused = |why: &str| Stop::bad_input(format!("could not read `{name}`: {why}"));
    from.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|fault| refused(&words(&fault)))?;
    if bytes.len() as u64 > LIMIT {
        return Err(refused(&format!("it is larger than {} MiB", LIMIT >> 20)));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(refused("it is UTF-16").with_hint("save it as UTF-8; in PowerShell, `Out-File -Encoding utf8`"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Given { name, text }),
        Err(fault) => {
            let at = fault.utf8_error().valid_up_to();
            let before = &fault.as_bytes()[..at];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            Err(refused(&format!("it is not UTF-8: byte 0x{:02x} in line {line}", fault.as_bytes()[at])))
        }
    }
}

/// What the system says, without its number.
pub fn words(fault: &io::Error) -> String {
    let text = fault.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> String {
        given("job.json".into(), bytes).expect_err("a problem").to_string()
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        insta::assert_snapshot!(refused(b"{\n\"a\": \"\xff\"}"), @"could not read `job.json`: it is not UTF-8: byte 0xff in line 2");
        insta::assert_snapshot!(refused(b"\xff\xfe{\0}\0"), @"could not read `job.json`: it is UTF-16");
        let missing = file(Path::new("/nowhere/job.json")).expect_err("a problem");
        insta::assert_snapshot!(missing, @"could not open `/nowhere/job.json`: no such file or directory");
    }

    #[test]
    fn a_payload_has_a_limit() {
        insta::assert_snapshot!(refused(&vec![b' '; usize::try_from(LIMIT).expect("small") + 1]), @"could not read `job.json`: it is larger than 64 MiB");
    }
}
