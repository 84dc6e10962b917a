//! The program `runner-core`: reads the command line, and ends with the exit code of what it did.

mod agent_program;
mod command_line;
mod config_command;
mod connect;
mod dispatch;
mod drive;
mod exit;
mod follow;
mod given;
mod kept;
mod local_group;
mod manual;
mod mock;
mod operations;
mod pipeline;
mod ports;
mod run;
mod seal;
mod source;
mod state;
mod trial;

use clap::Parser as _;
use command_line::{Color, Command, CommandLine};
use exit::{Exit, Stop};
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = CommandLine::parse();
    match line.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    match carry_out(line.command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let _ = write!(anstream::stderr(), "{}", complaint(&error));
            error.downcast_ref::<Stop>().map_or(Exit::Fault, |stop| stop.exit).into()
        }
    }
}

fn carry_out(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Try(arguments) => trial::run(&arguments),
        Command::Status(arguments) => operations::status(&arguments),
        Command::Jobs(arguments) => operations::jobs(&arguments),
        Command::Config(arguments) => config_command::run(&arguments),
        Command::Register(arguments) => config_command::register(&arguments),
        Command::Verify(arguments) => config_command::verify(&arguments),
        Command::Unregister(arguments) => config_command::unregister(&arguments),
        Command::List(which) => config_command::list(&which),
        Command::MockGitlab(arguments) => mock::run(&arguments),
        Command::Completion { shell } => manual::completion(shell),
        Command::Man { command } => manual::page(command.as_deref()),
    }
}

/// An error as a person reads it: what, why, and the way out. What was typed may be a part of it, and a terminal obeys none of it.
fn complaint(error: &anyhow::Error) -> String {
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let Some(stop) = error.downcast_ref::<Stop>() else {
        return format!("{red}error{red:#}: {}\n", plain(&format!("{error:#}")));
    };
    let mut text = String::new();
    for problem in &stop.problems {
        text.push_str(&format!("{red}error{red:#}: {}\n", plain(&problem.message)));
        for hint in &problem.hints {
            text.push_str(&format!(" hint: {}\n", plain(hint)));
        }
    }
    text
}

/// Nothing that a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\n' { letter.escape_default().to_string() } else { letter.to_string() })
        .collect()
}
