//! The files between a host and a step.

use crate::Failure;
use serde_json::Value as Json;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::internal(format!("could not read `{}`: {error}", path.display())))
}

/// One line, in one write: what is killed in the middle leaves whole lines.
pub(super) fn append(path: &Path, value: &Json) -> Result<(), Failure> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let written = opened.and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()));
    written.map_err(|error| Failure::step(format!("could not write `{}`: {error}", path.display())))
}

/// The file is the host's, in a directory of the host's: it is written in place.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let written = File::create(path).and_then(|mut file| file.write_all(content));
    written.map_err(|error| Failure::step(format!("could not write `{}`: {error}", path.display())))
}
