//! One definition file: a regular file of a sensible size in UTF-8.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A megabyte of YAML is tens of thousands of lines and takes a tenth of a second to read.
const LIMIT: u64 = 4 * 1024 * 1024;

#[derive(Debug)]
pub enum Fault {
    System(io::Error),
    Refused(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Reads a file and never waits for it.
pub fn read(path: &Path) -> Result<String, Fault> {
    let file = open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(Fault::Refused("it is a directory, not a file".to_owned()));
    }
    if !found.is_file() {
        return Err(Fault::Refused("it is not a regular file".to_owned()));
    }
    let mut content = Vec::with_capacity(usize::try_from(found.len().min(LIMIT)).unwrap_or(0));
    file.take(LIMIT + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LIMIT {
        let size = found.len().max(content.len() as u64);
        return Err(Fault::Refused(format!("it has {size} bytes, the limit for a definition is {LIMIT} (4 MiB)")));
    }
    String::from_utf8(content).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..position].iter().filter(|byte| **byte == b'\n').count() + 1;
        Fault::Refused(format!("it is not UTF-8: byte {position}, in line {line}"))
    })
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, how, rustix::fs::Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
