//! The program `step-runner`: reads the command line, and ends with the exit code of what it did.

mod builtins;
mod check;
mod ci;
mod command_line;
mod complain;
mod doc;
mod exit;
mod fmt;
mod lsp;
mod manual;
mod new;
mod remote;
mod report;
mod run;
mod schema;
mod serve;
mod show;
mod telemetry;
mod test;
mod tree;

use clap::Parser;
use command_line::{Color, Command, CommandLine, Steps};
use exit::{Exit, Stop};
use report::words::plain;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    step_agent::static_program::pin_name_services();
    #[cfg(target_os = "linux")]
    if let Some(code) = step_agent::take_over() {
        return code;
    }
    let line = CommandLine::parse();
    match line.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    #[cfg(feature = "docker")]
    match &line.command {
        Command::Docker { words } => return step_docker::main(words),
        Command::Service { words } => return step_service::main(words),
        _ => {}
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
