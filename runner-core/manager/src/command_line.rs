//! What can be typed: the commands of `runner-core`.

use crate::config_command::{ConfigArguments, RegisterArguments, UnregisterArguments, VerifyArguments, WhichFile};
use crate::doctor::DoctorArguments;
use crate::mock::MockArguments;
use crate::operations::{JobsArguments, StatusArguments};
use crate::results::{PayloadArguments, ResultArguments};
use crate::run::RunArguments;
use crate::trial::TryArguments;
use crate::why::WhyArguments;
use clap::{Parser, Subcommand};
use step_console::output::Color;

/// Takes CI jobs, finds environments for them, has them run there by step-runner, and reports.
#[derive(Debug, Parser)]
#[command(name = "runner-core", version, arg_required_else_help = true)]
pub struct CommandLine {
    /// Whether messages have colours.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, global = true)]
    pub color: Color,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take jobs of the servers that a configuration names.
    Run(RunArguments),
    /// Run jobs on this machine, on the whole path that jobs of a server take.
    Try(TryArguments),
    /// Say what a runner of this machine does: runners, instances, jobs.
    Status(StatusArguments),
    /// Say what runs where, since when, and why something waits.
    Jobs(JobsArguments),
    /// Print the result of a job that has ended as a tree: what ran, and how it ended.
    Result(ResultArguments),
    /// Save the payload of a job that has ended, for `step-runner run`.
    Payload(PayloadArguments),
    /// Try out every runner of a configuration, from its server to a real job, and say what to do about what does not work.
    Doctor(DoctorArguments),
    /// Say what a job waits for, what would start it, and when.
    Why(WhyArguments),
    /// Look at a configuration.
    Config(ConfigArguments),
    /// Register a runner with a server and write it into the configuration.
    Register(Box<RegisterArguments>),
    /// Ask the servers of the runners whether they still know them.
    Verify(VerifyArguments),
    /// Remove runners from their servers and from the configuration.
    Unregister(UnregisterArguments),
    /// List the runners of the configuration.
    List(WhichFile),
    /// Serve jobs of a scenario as GitLab would, and judge what runners do with them.
    MockGitlab(MockArguments),
    /// Print a completion script.
    Completion { shell: clap_complete::Shell },
    /// Print the manual page of the program, or of one command.
    Man { command: Option<String> },
}
