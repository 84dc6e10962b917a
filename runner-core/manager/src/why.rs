//! `why JOB`: what a job waits for, what would start it, and when.

use crate::operations::{StatusArguments, answer, print};
use clap::Args;
use runner_control::Controller;
use runner_control::why::Why;
use serde::{Deserialize, Serialize};
use step_console::exit::Exit;

#[derive(Debug, Clone, Args)]
pub struct WhyArguments {
    /// The number of the job, as the server shows it.
    #[arg(value_name = "JOB")]
    pub job: u64,
    #[command(flatten)]
    pub which: StatusArguments,
}

/// What a runner says of jobs with one number: several servers may have one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub jobs: Vec<Reason>,
    /// For a job that no runner has: why none is asked for now. By runner.
    pub runners: Vec<Held>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    pub runner: String,
    /// In words: what it waits for, what would start it, and when.
    pub text: String,
    pub why: Why,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    pub runner: String,
    /// Empty: nothing holds it back.
    pub held_back: String,
}

impl Answer {
    pub fn of(controller: &Controller, number: u64) -> Self {
        let jobs = controller.jobs().filter(|view| view.job.number == number).filter_map(|view| {
            let why = controller.why(&view.job)?;
            Some(Reason { runner: view.job.runner.to_string(), text: why.to_string(), why })
        });
        let runners = controller
            .runners()
            .map(|view| Held { runner: view.name, held_back: view.held_back.map(|held| held.to_string()).unwrap_or_default() });
        Self { jobs: jobs.collect(), runners: runners.collect() }
    }

    fn shown(&self, number: u64) -> String {
        if !self.jobs.is_empty() {
            return self.jobs.iter().map(|job| format!("job {number} of {}: {}\n", job.runner, job.text)).collect();
        }
        let mut text = format!("job {number} is not here: it waits in the queue of its server, has ended, or belongs to another runner\n");
        for runner in &self.runners {
            let held = if runner.held_back.is_empty() { "jobs are asked for" } else { "no job is asked for" };
            let why = if runner.held_back.is_empty() { String::new() } else { format!(": {}", runner.held_back) };
            text += &format!("  {}: {held}{why}\n", runner.runner);
        }
        text
    }
}

/// # Errors
/// No runner answers, or no runner has such a job.
pub fn run(arguments: &WhyArguments) -> anyhow::Result<Exit> {
    let found: Answer = answer(&arguments.which, &format!("/why/{}", arguments.job))?;
    let is_known = !found.jobs.is_empty();
    print(&if arguments.which.json { serde_json::to_string(&found)? + "\n" } else { found.shown(arguments.job) })?;
    Ok(if is_known { Exit::Done } else { Exit::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_not_here_says_what_keeps_jobs_away() {
        let held = |runner: &str, held_back: &str| Held { runner: runner.to_owned(), held_back: held_back.to_owned() };
        let answer = Answer { jobs: Vec::new(), runners: vec![held("a", "`concurrent` is 1, over all runners"), held("b", "")] };
        let text = "job 7 is not here: it waits in the queue of its server, has ended, or belongs to another runner\n  \
                    a: no job is asked for: `concurrent` is 1, over all runners\n  b: jobs are asked for\n";
        assert_eq!(answer.shown(7), text);
    }
}
