//! Bytes go to the end of a file, all of them or as many as can be read for themselves.

use super::Framing;
use std::fs::File;
use std::io::{self, Write};

/// A file that only grows, but for what nobody has been told of.
pub trait Append {
    /// How many of the bytes were written.
    /// # Errors
    /// As write(2).
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// # Errors
    /// As ftruncate(2).
    fn shorten(&mut self, length: u64) -> io::Result<()>;
}

impl Append for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn shorten(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// The file and how long it is.
#[derive(Debug)]
pub struct LogFile<F> {
    file: F,
    length: u64,
    last_byte: Option<u8>,
}

impl<F: Append> LogFile<F> {
    /// An empty file.
    pub fn new(file: F) -> Self {
        Self { file, length: 0, last_byte: None }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// `None`: it is empty.
    pub fn last_byte(&self) -> Option<u8> {
        self.last_byte
    }

    /// # Errors
    /// As write(2). What was written then is kept as far as it can be read for itself: lines with their headers, or all of it.
    pub fn append(&mut self, bytes: &[u8], framing: Framing) -> io::Result<()> {
        let (written, outcome) = self.write(bytes);
        let kept = match framing {
            _ if outcome.is_ok() => written,
            Framing::Raw => written,
            Framing::Stamped => memchr::memrchr(b'\n', &bytes[..written]).map_or(0, |end| end + 1),
        };
        self.keep(bytes, written, kept);
        outcome
    }

    /// # Errors
    /// As write(2). Nothing of it is kept then.
    pub fn append_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (written, outcome) = self.write(bytes);
        self.keep(bytes, written, if outcome.is_ok() { written } else { 0 });
        outcome
    }

    fn write(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.append(&bytes[written..]) {
                Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Nobody has been told of what goes again. Where it cannot go, it stays.
    fn keep(&mut self, bytes: &[u8], written: usize, kept: usize) {
        let is_kept = kept == written || self.file.shorten(self.length + kept as u64).is_ok();
        let kept = if is_kept { kept } else { written };
        self.length += kept as u64;
        self.last_byte = bytes[..kept].last().copied().or(self.last_byte);
    }
}
