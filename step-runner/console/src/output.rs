//! Standard output, as whoever reads it wants it: with colours on a terminal, and no complaint when it is closed early.

use crate::exit::{Exit, Stop};
use crate::given::words;
use std::io::{self, Write};

/// When to use colour, as `--color` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// From now on, for all that this process writes.
    pub fn choose(self) {
        match self {
            Self::Auto => {}
            Self::Always => anstream::ColorChoice::Always.write_global(),
            Self::Never => anstream::ColorChoice::Never.write_global(),
        }
    }
}

/// Gives `write` the standard output. That whoever reads has seen enough is no error.
/// # Errors
/// Standard output cannot be written.
pub fn to_standard_output(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop> {
    let mut out = io::BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()));
    match write(&mut out).and_then(|()| out.flush()) {
        Err(fault) if fault.kind() != io::ErrorKind::BrokenPipe => {
            Err(Stop::new(Exit::Fault, format!("could not write to standard output: {}", words(&fault))))
        }
        _ => Ok(()),
    }
}
