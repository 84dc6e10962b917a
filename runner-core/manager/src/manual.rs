//! What the program says about itself: completion scripts and manual pages.

use crate::command_line::CommandLine;
use crate::exit::{Exit, Stop};
use anyhow::Context as _;
use clap::CommandFactory as _;
use std::io::Write as _;

/// Prints the completion script.
/// # Errors
/// Standard output cannot be written.
pub fn completion(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "runner-core", &mut script);
    print(&script)
}

/// Prints the manual page of the program, or of one command, in roff.
/// # Errors
/// There is no such command, or standard output cannot be written.
pub fn page(name: Option<&str>) -> anyhow::Result<Exit> {
    let mut command = CommandLine::command();
    command.build();
    if let Some(name) = name {
        let Some(found) = command.find_subcommand(name) else {
            return Err(Stop::usage(format!("there is no command `{name}`")).into());
        };
        command = found.clone();
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    print(&page)
}

fn print(bytes: &[u8]) -> anyhow::Result<Exit> {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).context("could not write to standard output")?;
    Ok(Exit::Done)
}
