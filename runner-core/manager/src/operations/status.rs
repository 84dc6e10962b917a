//! What runs where, since when, and why something waits: a view of the controller as it is told to others.

use runner_control::view::{InstanceView, JobPhase, JobView, RunnerView};
use runner_control::why::Why;
use runner_control::{Controller, HeldBack};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub runners: Vec<Runner>,
    pub instances: Vec<Instance>,
    pub jobs: Vec<Job>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    pub id: String,
    pub name: String,
    pub jobs: u32,
    pub waiting: u32,
    pub polls: u32,
    pub instances: u32,
    pub free: u32,
    /// Why no job is asked for now. Empty: nothing holds it back.
    pub held_back: String,
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub id: String,
    pub runner: String,
    /// `creating`, `running`, `deleting`.
    pub state: String,
    pub is_reachable: bool,
    pub jobs: Vec<u64>,
    pub uses: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub number: u64,
    pub runner: String,
    pub phase: JobPhase,
    pub instance: Option<String>,
    /// RFC 3339.
    pub since: String,
    pub offered_at: String,
    pub is_accepted: bool,
    pub log_bytes: u64,
    pub trouble: Option<String>,
    /// What it waits for and what would move it, in words. Empty: nothing, it runs.
    #[serde(default)]
    pub why: String,
}

impl Status {
    pub fn of(controller: &Controller) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runners: controller.runners().map(runner).collect(),
            instances: controller.instances().map(instance).collect(),
            jobs: controller.jobs().map(|view| job(controller, view)).collect(),
        }
    }

    /// As a person reads it.
    pub fn shown(&self) -> String {
        let mut text = format!("runner-core {}\n", self.version);
        for runner in &self.runners {
            let _ = writeln!(
                text,
                "runner {}: {} jobs ({} waiting), {} instances, {} places free, {} polls open",
                runner.name, runner.jobs, runner.waiting, runner.instances, runner.free, runner.polls
            );
            if !runner.held_back.is_empty() {
                let _ = writeln!(text, "  asks for no job: {}", runner.held_back);
            }
            if let Some(trouble) = &runner.trouble {
                let _ = writeln!(text, "  trouble: {trouble}");
            }
        }
        for instance in &self.instances {
            let reached = if instance.is_reachable { "reached" } else { "not reached" };
            let _ = writeln!(
                text,
                "instance {} of {}: {}, {reached}, {} jobs, {} uses",
                instance.id,
                instance.runner,
                instance.state,
                instance.jobs.len(),
                instance.uses
            );
        }
        for job in &self.jobs {
            text.push_str(&job.line());
        }
        text
    }
}

impl Job {
    /// `job 7 of https://gitlab.example#1: running on i-a since 2026-11-20T17:53:54Z, 1024 bytes of log`
    pub fn line(&self) -> String {
        let place = self.instance.as_ref().map(|instance| format!(" on {instance}")).unwrap_or_default();
        let why = if self.why.is_empty() { String::new() } else { format!("; {}", self.why) };
        format!(
            "job {} of {}: {}{place} since {}, {} bytes of log{why}\n",
            self.number,
            self.runner,
            word(self.phase),
            self.since,
            self.log_bytes
        )
    }
}

fn word(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Waiting => "waits for an instance",
        JobPhase::Placed => "has a place",
        JobPhase::Dispatching => "is delivered",
        JobPhase::Running => "running",
        JobPhase::OutOfContact => "out of contact",
        JobPhase::Ended => "is reported",
    }
}

fn runner(view: RunnerView) -> Runner {
    Runner {
        id: view.runner.to_string(),
        name: view.name,
        jobs: view.jobs,
        waiting: view.waiting,
        polls: view.polls,
        instances: view.instances,
        free: view.free,
        held_back: view.held_back.as_ref().map(held_back).unwrap_or_default(),
        trouble: view.trouble,
    }
}

/// Why no job is asked for, in words.
fn held_back(why: &HeldBack) -> String {
    let and = |trouble: &Option<String>| trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
    match why {
        HeldBack::Ending => "the runner is ending".to_owned(),
        HeldBack::Removed => "the configuration does not have it any more".to_owned(),
        HeldBack::Refused { why } => format!("it cannot be served: {why}"),
        HeldBack::Unhealthy { reason } => format!("the server refused it again and again: {reason}"),
        HeldBack::Recovering => "jobs of the process before are looked for first".to_owned(),
        HeldBack::Pause { trouble } => format!("`check_interval` has not passed since the last answer{}", and(trouble)),
        HeldBack::Limit { limit } => format!("`limit` is {limit}"),
        HeldBack::RequestConcurrency { allowed } => format!("{allowed} requests are open, which is what `request_concurrency` allows now"),
        HeldBack::Capacity { trouble } => format!("no instance has a free place or can be asked for{}", and(trouble)),
        HeldBack::Concurrent { concurrent } => format!("`concurrent` is {concurrent}"),
    }
}

fn instance(view: InstanceView) -> Instance {
    Instance {
        id: view.instance.name.to_string(),
        runner: view.instance.runner.to_string(),
        state: format!("{:?}", view.state).to_lowercase(),
        is_reachable: view.is_reachable,
        jobs: view.jobs.iter().map(|job| job.number).collect(),
        uses: view.uses,
    }
}

fn job(controller: &Controller, view: JobView) -> Job {
    let why = controller.why(&view.job).filter(|why| *why != Why::Nothing).map(|why| why.to_string()).unwrap_or_default();
    Job {
        why,
        number: view.job.number,
        runner: view.job.runner.to_string(),
        phase: view.phase,
        instance: view.instance.map(|name| name.to_string()),
        since: view.since.to_string(),
        offered_at: view.offered_at.to_string(),
        is_accepted: view.is_accepted,
        log_bytes: view.bytes,
        trouble: view.trouble,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_told_in_one_line() {
        let job = Job {
            number: 7,
            runner: "https://gitlab.example#1".to_owned(),
            phase: JobPhase::Running,
            instance: Some("i-a".to_owned()),
            since: "2026-11-20T17:53:54Z".to_owned(),
            offered_at: "2026-11-20T17:53:50Z".to_owned(),
            is_accepted: true,
            log_bytes: 1024,
            trouble: None,
            why: String::new(),
        };
        assert_eq!(job.line(), "job 7 of https://gitlab.example#1: running on i-a since 2026-11-20T17:53:54Z, 1024 bytes of log\n");
        let waiting = Job { why: "waits for a place behind 2 jobs".to_owned(), phase: JobPhase::Waiting, instance: None, ..job };
        assert!(
            waiting.line().ends_with("since 2026-11-20T17:53:54Z, 1024 bytes of log; waits for a place behind 2 jobs\n"),
            "{}",
            waiting.line()
        );
    }
}
