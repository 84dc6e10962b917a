//! What the program says about itself: completion scripts and manual pages.

use crate::exit::{Exit, Stop};
use anyhow::Context as _;
use clap::CommandFactory;
use std::io::Write as _;

/// Prints the completion script of the program.
/// # Errors
/// Standard output cannot be written.
pub fn completion<Line: CommandFactory>(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    let mut command = Line::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(&script)
}

/// Prints the manual page of the program, or of one command, in roff.
/// # Errors
/// There is no such command, or standard output cannot be written.
pub fn page<Line: CommandFactory>(name: Option<&str>) -> anyhow::Result<Exit> {
    let mut command = Line::command();
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
