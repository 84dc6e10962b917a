//! The command line of `run` as it was typed; nothing is checked here but the spelling of the flags.
//!
//! GitLab's own flags stand in a group of their own (original.md S 2.1): they work as they do there.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Exit codes: 0 done; 1 a step failed; 2 wrong usage; 3 bad input; 4 refused; 70 a fault of step-runner or the machine;\n\
124 timed out; 129, 130, 143 cancelled by SIGHUP, SIGINT, SIGTERM.\n\n\
Standard output carries what the steps write, and nothing else."
)]
pub struct RunArguments {
    /// A run request, a GitLab job payload or a definition (a file, or `-` for standard input), a directory with
    /// a definition, text beginning `step:` or `func:`, or a reference.
    #[arg(value_name = "WHAT")]
    pub what: Option<String>,
    /// The job of a `.gitlab-ci.yml`.
    #[arg(value_name = "JOB")]
    pub job_name: Option<String>,

    /// An input of the step; the value is read by the type that the step declares.
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub input: Vec<String>,
    /// Environment variables from a file of NAME=VALUE lines.
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
    /// Values of masked and secret variables: NAME=VALUE lines or a JSON object. They are masked in everything written.
    #[arg(long, value_name = "FILE")]
    pub secrets: Vec<PathBuf>,
    /// End the job after this time, `90s`, `5m`, `1h30m`.
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// What each step may use at most: `cpu=1.5`, `memory=512MiB`, `pids=100`, `disk=1GiB`, `network=none`; several with commas.
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub limit: Vec<String>,
    /// How long a step may take to end after it was asked to, before it is killed. [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub grace: Option<String>,
    /// The release of GitLab's step-runner whose texts are used. [default: 0.44]
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub level: Option<TypedLevel>,
    /// Refuse what would only be warned of.
    #[arg(long)]
    pub strict: bool,
    /// Print the plan and run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Run on this machine although the job names an image.
    #[arg(long)]
    pub ignore_image: bool,
    /// Fetch the commit of the job into `.step-runner/checkout` and run it there, in place of the current directory.
    #[arg(long)]
    pub checkout: bool,
    /// Take this step in place of `builtin://checkout`, `builtin://cache` or `builtin://artifact`: `cache=./my-cache`.
    #[arg(long, value_name = "NAME=REFERENCE")]
    pub step: Vec<String>,
    /// Restore and save the caches of the job. [default DIR: .step-runner/cache]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    pub cache: Option<String>,
    /// Take the artifacts of earlier jobs from a directory, and keep those of this job in `.step-runner/artifacts`, which
    /// is also the default of DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    pub artifacts: Option<String>,

    /// Keep the files of the steps and the journal, and say where they are.
    #[arg(long)]
    pub keep: bool,
    /// When a step fails, open a shell in its directory with its environment.
    #[arg(long)]
    pub shell: bool,
    /// Say nothing but errors; what the steps write is not touched.
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: commands, directories, resources.
    #[arg(short, long)]
    pub verbose: bool,
    /// The form of the report: `text` for people, `json` for programs (a line per event, on standard output).
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Output::Text, hide_default_value = true)]
    pub output: Output,
    /// Write the result tree to this file.
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
    /// End with the exit code of the step that failed.
    #[arg(long)]
    pub pass_exit_code: bool,

    #[command(flatten)]
    pub theirs: GitLabArguments,
}

/// The flags of GitLab's step-runner.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "As in GitLab's step-runner")]
pub struct GitLabArguments {
    /// Inputs of the step, read as YAML.
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub inputs: Vec<String>,
    /// Environment variables of the step, or of the job.
    #[arg(short, long, value_name = "NAME=VALUE,...")]
    pub env: Vec<String>,
    /// Job variables: `job.NAME`, `vars.NAME`.
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub job: Vec<String>,
    /// The repository of a step.
    #[arg(long, value_name = "URL")]
    pub git_url: Option<String>,
    /// Branch, tag or commit.
    #[arg(long, value_name = "REVISION")]
    pub git_rev: Option<String>,
    /// Directory of the step in the repository.
    #[arg(long, value_name = "DIR")]
    pub git_dir: Option<String>,
    /// The registry of a step.
    #[arg(long, value_name = "REGISTRY")]
    pub oci_registry: Option<String>,
    #[arg(long, value_name = "REPOSITORY", help = "The repository of a step in the registry")]
    pub oci_repository: Option<String>,
    #[arg(long, value_name = "TAG", help = "The tag of a step in the registry")]
    pub oci_tag: Option<String>,
    /// Directory of the step in the image.
    #[arg(long, value_name = "DIR")]
    pub oci_dir: Option<String>,
    /// File of the step in the image.
    #[arg(long, value_name = "FILE")]
    pub oci_filename: Option<String>,
    /// A definition as protobuf text.
    #[arg(long, value_name = "FILE")]
    pub text_proto_step_file: Option<PathBuf>,
    /// Write the result tree, without our own fields, to `step-results.json` or `step-results.txtpb`.
    #[arg(long)]
    pub write_steps_results: bool,
    /// The same, to this file.
    #[arg(long, value_name = "FILE")]
    pub step_results_file: Option<PathBuf>,
    /// `json` or `prototext`. [default: json]
    #[arg(long, value_name = "FORMAT")]
    pub step_results_format: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TypedLevel {
    #[value(name = "0.12")]
    V0_12,
    #[value(name = "0.44")]
    V0_44,
}

/// The form of what is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    #[default]
    Text,
    Json,
}
