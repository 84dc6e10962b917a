//! The program `step-runner`: reads the command line, and ends with the exit code of what it did.

mod builtins;
mod check;
mod ci;
mod command_line;
mod complain;
mod doc;
mod fmt;
mod lsp;
mod new;
mod remote;
mod report;
mod run;
mod schema;
mod serve;
mod show;
mod telemetry;
mod test;

use clap::Parser;
use command_line::{Command, CommandLine, Steps};
use std::process::ExitCode;
use step_console::exit::Exit;
use step_console::{complaint, manual};

fn main() -> ExitCode {
    step_agent::static_program::pin_name_services();
    #[cfg(target_os = "linux")]
    if let Some(code) = step_agent::take_over() {
        return code;
    }
    let line = CommandLine::parse();
    line.color.choose();
    #[cfg(feature = "docker")]
    match &line.command {
        Command::Docker { words } => return step_docker::main(words),
        Command::Service { words } => return step_service::main(words),
        _ => {}
    }
    complaint::ended(carry_out(line.command))
}

fn carry_out(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Ci(arguments) => ci::run(&arguments),
        Command::Remote(arguments) => remote::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::New(arguments) => new::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Doc(arguments) => doc::run(&arguments),
        Command::Fmt(arguments) => fmt::run(&arguments),
        Command::Lsp => lsp::run(),
        Command::Show(arguments) => show::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Proxy { socket } | Command::Steps(Steps::Proxy { socket }) => serve::proxy(socket),
        Command::Bootstrap { directory } => serve::bootstrap(&directory),
        Command::Steps(Steps::Bootstrap { file }) => serve::bootstrap_file(&file),
        Command::Steps(Steps::Serve { socket, command }) => serve::steps(socket, command),
        Command::Job => serve::job(),
        #[cfg(feature = "docker")]
        Command::Docker { .. } | Command::Service { .. } => Ok(Exit::Done),
        Command::Completion { shell } => manual::completion::<CommandLine>(shell),
        Command::Man { command } => manual::page::<CommandLine>(command.as_deref()),
    }
}
