//! The program `runner-core`: reads the command line, and ends with the exit code of what it did.

mod agent_program;
mod command_line;
mod config_command;
mod connect;
mod dispatch;
mod doctor;
mod drive;
mod follow;
mod host_zone;
mod kept;
mod local_group;
mod mock;
mod operations;
mod ports;
mod results;
mod run;
mod seal;
mod source;
mod state;
mod telemetry;
mod trial;
mod why;

use clap::Parser as _;
use command_line::{Command, CommandLine};
use std::process::ExitCode;
use step_console::exit::Exit;
use step_console::{complaint, manual};

fn main() -> ExitCode {
    let line = CommandLine::parse();
    line.color.choose();
    complaint::ended(carry_out(line.command))
}

fn carry_out(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Try(arguments) => trial::run(&arguments),
        Command::Status(arguments) => operations::status(&arguments),
        Command::Jobs(arguments) => operations::jobs(&arguments),
        Command::Why(arguments) => why::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Result(arguments) => results::result(&arguments),
        Command::Payload(arguments) => results::payload(&arguments),
        Command::Config(arguments) => config_command::run(&arguments),
        Command::Register(arguments) => config_command::register(&arguments),
        Command::Verify(arguments) => config_command::verify(&arguments),
        Command::Unregister(arguments) => config_command::unregister(&arguments),
        Command::List(which) => config_command::list(&which),
        Command::MockGitlab(arguments) => mock::run(&arguments),
        Command::Completion { shell } => manual::completion::<CommandLine>(shell),
        Command::Man { command } => manual::page::<CommandLine>(command.as_deref()),
    }
}
