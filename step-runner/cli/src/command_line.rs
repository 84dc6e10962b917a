//! What can be typed: the commands of `step-runner`.

use crate::{check, ci, doc, fmt, new, remote, run, schema, serve, show, test};
use clap::{Parser, Subcommand};
use step_console::output::Color;

/// Runs jobs made of steps, here and now, as a fleet would.
#[derive(Debug, Parser)]
#[command(name = "step-runner", version, disable_help_subcommand = true, max_term_width = 110)]
pub struct CommandLine {
    /// When to use colour; `auto` follows the terminal, NO_COLOR, CLICOLOR_FORCE and TERM.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto, hide_default_value = true)]
    pub color: Color,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job, a payload or a step.
    Run(Box<run::RunArguments>),
    /// Run the steps in the variable STEPS, as GitLab's runner calls it in a job.
    Ci(ci::CiArguments),
    /// Run and look after jobs of an agent, here or elsewhere.
    Remote(remote::RemoteArguments),
    /// Read definitions and report every problem.
    Check(check::CheckArguments),
    /// Begin a step: its definition, a test, a README.
    New(new::NewArguments),
    /// Run the tests of steps.
    Test(test::TestArguments),
    /// Write what a step takes and gives into its README.
    Doc(doc::DocArguments),
    /// Bring definitions and tests into their usual form; comments stay.
    Fmt(fmt::FmtArguments),
    /// Serve an editor over standard input and output: problems as you type, hover, completion, definitions.
    Lsp,
    /// Print a result as a tree.
    Show(show::ShowArguments),
    /// Print the JSON Schemas of the files.
    Schema(schema::SchemaArguments),
    /// Answer callers of the gRPC service on a socket, and run their jobs.
    Serve(serve::ServeArguments),
    /// Carry standard input and output to the socket of an agent, and back.
    Proxy {
        /// The socket. [default: that of $TMPDIR]
        #[arg(long, value_name = "PATH")]
        socket: Option<std::path::PathBuf>,
    },
    /// Put this program into a directory.
    Bootstrap {
        #[arg(value_name = "DIR")]
        directory: std::path::PathBuf,
    },
    /// The same commands as GitLab's runner calls them.
    #[command(hide = true, subcommand)]
    Steps(Steps),
    /// One job of `serve`, which starts it.
    #[command(hide = true)]
    Job,
    /// Print the completion script for a shell.
    Completion {
        #[arg(value_name = "SHELL", value_enum)]
        shell: clap_complete::Shell,
    },
    /// What builtin://docker runs.
    #[cfg(feature = "docker")]
    #[command(hide = true)]
    Docker {
        #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// What builtin://service runs.
    #[cfg(feature = "docker")]
    #[command(hide = true)]
    Service {
        #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Print the manual page, of the program or of one command.
    Man {
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}

/// The commands of gitlab-runner-helper (original.md H.7).
#[derive(Debug, Subcommand)]
pub enum Steps {
    /// Serve on a socket; with a command, for as long as that runs.
    Serve {
        #[arg(long, value_name = "PATH")]
        socket: Option<std::path::PathBuf>,
        /// Runs when the first byte of standard input has come, which it reads.
        #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Carry standard input and output to the socket of an agent, and back.
    Proxy {
        #[arg(long, value_name = "PATH")]
        socket: Option<std::path::PathBuf>,
    },
    /// Put this program into place.
    Bootstrap {
        #[arg(value_name = "FILE")]
        file: std::path::PathBuf,
    },
}
