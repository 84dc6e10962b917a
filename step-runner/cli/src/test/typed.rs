//! The command line of `test` as it was typed.

use clap::{Args, ValueEnum};
use std::num::NonZero;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Exit codes: 0 every case passed; 1 a case failed; 2 wrong usage; 3 a test or a definition is wrong, or there is none;\n\
70 a fault of step-runner or the machine; 130, 143 ended by SIGINT, SIGTERM."
)]
pub struct TestArguments {
    /// Tests (`step_test.yml`), definitions, or directories below which all tests are run; the current directory when there is none.
    #[arg(value_name = "PATH")]
    pub path: Vec<PathBuf>,
    /// Run only cases with this text in their name, or in `FILE: NAME`. Several: any of them.
    #[arg(short, long, value_name = "TEXT")]
    pub filter: Vec<String>,
    /// Print the cases and run none.
    #[arg(long)]
    pub list: bool,
    /// Refuse to run any real step or program: all have a fake or a stub.
    #[arg(long)]
    pub hermetic: bool,
    /// Write what came out into golden files.
    #[arg(long)]
    pub update: bool,
    /// Run again when a file changes, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,
    /// How many cases run side by side. [default: the number of processors]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
    /// The limit of a case that has none of its own. [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// Print the N slowest cases.
    #[arg(long, value_name = "N")]
    pub slow: Option<usize>,
    /// Name only the cases that fail.
    #[arg(short, long)]
    pub quiet: bool,
    /// `json`: a line of JSON for each case, and one for the end.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Text, hide_default_value = true)]
    pub output: Form,
    /// Write a JUnit report to this file.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print which steps, failures of steps, expressions and outputs the cases reached.
    #[arg(long)]
    pub coverage: bool,
    /// Write the coverage as JSON: lines with their hits, and what they stand for.
    #[arg(long, value_name = "FILE")]
    pub coverage_json: Option<PathBuf>,
    /// Write the coverage as one page of HTML.
    #[arg(long, value_name = "FILE")]
    pub coverage_page: Option<PathBuf>,
    /// End with 1 when less than this part is reached.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub coverage_at_least: Option<u8>,
    /// Change each definition in many ways, one at a time, and name the changes that no case notices.
    #[arg(long, conflicts_with_all = ["update", "watch", "list"])]
    pub mutate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Form {
    #[default]
    Text,
    Json,
}

impl TestArguments {
    /// Whether anybody wants to know what was reached.
    pub fn wants_coverage(&self) -> bool {
        self.coverage || self.coverage_json.is_some() || self.coverage_page.is_some() || self.coverage_at_least.is_some()
    }

    /// Files that each round writes.
    pub fn reports(&self) -> Vec<PathBuf> {
        [&self.junit, &self.coverage_json, &self.coverage_page].into_iter().flatten().cloned().collect()
    }

    /// What to look through.
    pub fn paths(&self) -> Vec<PathBuf> {
        if self.path.is_empty() { vec![PathBuf::from(".")] } else { self.path.clone() }
    }
}
