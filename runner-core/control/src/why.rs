//! Why a job does not go on: what it waits for, and what would move it.

use crate::controller::Controller;
use crate::fleet::instance::Contact;
use crate::id::{InstanceName, JobId};
use crate::job::{Job, Phase};
use crate::record::Stage;
use crate::runner::{HeldBack, Runner};
use crate::settings::Shape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What one job waits for at this moment. `trouble`: what went wrong last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A place in an environment.
    Place { ahead: u32, booting: u32, full: u32, unreachable: u32, most: u32, trouble: Option<String> },
    /// The environment that is made for it.
    Environment { instance: Option<InstanceName>, trouble: Option<String> },
    /// Its record cannot be written.
    Record { trouble: Option<String> },
    /// The server's word that it may run.
    Acceptance { trouble: Option<String> },
    /// The agent that should take it, or may have taken it.
    Agent { instance: InstanceName, trouble: Option<String> },
    /// Contact with the agent that runs it.
    Contact { instance: InstanceName, is_alive: bool, trouble: Option<String> },
    /// Nothing: it runs.
    Nothing,
    /// It has ended, and the server has not taken the report.
    Report { trouble: Option<String> },
    /// It has ended, and the agent has not let go of it.
    Close { instance: InstanceName, trouble: Option<String> },
}

impl Controller {
    /// `None`: there is no such job.
    pub fn why(&self, id: &JobId) -> Option<Why> {
        let job = self.get_job(id)?;
        let (_, runner) = self.all_runners().find(|(runner, _)| **runner == id.runner)?;
        Some(why(id, job, runner))
    }
}

fn why(id: &JobId, job: &Job, runner: &Runner) -> Why {
    let trouble = job.trouble.clone();
    match &job.phase {
        Phase::Waiting if job.save.durable.is_none() && trouble.is_some() => Why::Record { trouble },
        Phase::Waiting if runner.settings.environments.shape == Shape::PerJob => {
            Why::Environment { instance: runner.fleet.made_for(id).cloned(), trouble: trouble.or_else(|| runner.fleet.trouble.clone()) }
        }
        Phase::Waiting => for_a_place(job, runner),
        Phase::Placed { instance, .. } if job.record.accepted => Why::Agent { instance: instance.clone(), trouble },
        Phase::Placed { instance, .. } => match job.save.durable {
            Some(Stage::Offered | Stage::Dispatching { .. }) => Why::Acceptance { trouble },
            None => Why::Record { trouble },
            Some(_) => Why::Agent { instance: instance.clone(), trouble },
        },
        Phase::Dispatching { instance } => Why::Agent { instance: instance.clone(), trouble },
        Phase::Running { .. } if job.follow.is_open() => Why::Nothing,
        Phase::Running { instance } => {
            let contact = runner.fleet.get(instance).map(|instance| instance.contact);
            Why::Contact { instance: instance.clone(), is_alive: contact == Some(Contact::Suspect { is_alive: true }), trouble }
        }
        Phase::Ended(ended) => match &ended.instance {
            Some(instance) if ended.report.is_none() => Why::Close { instance: instance.clone(), trouble },
            _ => Why::Report { trouble },
        },
    }
}

fn for_a_place(job: &Job, runner: &Runner) -> Why {
    let environments = &runner.settings.environments;
    let count = |is_so: &dyn Fn(&crate::fleet::instance::Instance) -> bool| {
        u32::try_from(runner.fleet.instances().filter(|(_, instance)| is_so(instance)).count()).unwrap_or(u32::MAX)
    };
    Why::Place {
        ahead: u32::try_from(runner.queue.range(..job.arrival).count()).unwrap_or(u32::MAX),
        booting: count(&|instance| instance.contact == Contact::Never) + runner.fleet.requested,
        full: count(&|instance| instance.is_up() && instance.free(environments) == 0),
        unreachable: count(&|instance| matches!(instance.contact, Contact::Suspect { .. })),
        most: environments.max_instances,
        trouble: runner.fleet.trouble.clone().or_else(|| job.trouble.clone()),
    }
}

/// `waits for a place behind 2 jobs: 1 environment boots, 3 are full, of at most 4; it starts when one is ready or a job ends (the provider said: quota)`.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place { ahead, booting, full, unreachable, most, .. } => {
                f.write_str("waits for a place")?;
                if *ahead > 0 {
                    write!(f, " behind {}", counted(*ahead, "job"))?;
                }
                write!(f, ": {} booting, {full} full, {unreachable} out of reach, of at most {most}", counted(*booting, "environment"))?;
                f.write_str("; it starts when one is ready or a job ends")?;
            }
            Self::Environment { instance: Some(instance), .. } => {
                write!(f, "waits for its environment `{instance}`; it starts when the agent there answers")?;
            }
            Self::Environment { instance: None, .. } => {
                f.write_str("waits for its environment; it starts when the provider has made it")?
            }
            Self::Record { .. } => f.write_str("waits for its record; it goes on when the state can be written")?,
            Self::Acceptance { .. } => f.write_str("waits for the server's word; it starts when the server has heard that it runs")?,
            Self::Agent { instance, .. } => write!(f, "waits for the agent of `{instance}`; it starts when the agent takes it")?,
            Self::Contact { instance, is_alive: true, .. } => {
                write!(f, "runs out of contact: `{instance}` lives and does not answer; it is tried again until its time limit")?;
            }
            Self::Contact { instance, is_alive: false, .. } => {
                write!(f, "runs out of contact with `{instance}`; it counts as lost when that is gone, or unknown for a minute")?;
            }
            Self::Nothing => f.write_str("runs")?,
            Self::Report { .. } => f.write_str("has ended; the server has not taken its report, and is asked again for a day")?,
            Self::Close { instance, .. } => write!(f, "has ended and is reported; the agent of `{instance}` has not let go of it")?,
        }
        match self.trouble() {
            Some(trouble) => write!(f, " (last trouble: {trouble})"),
            None => Ok(()),
        }
    }
}

impl Why {
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Self::Place { trouble, .. }
            | Self::Environment { trouble, .. }
            | Self::Record { trouble }
            | Self::Acceptance { trouble }
            | Self::Agent { trouble, .. }
            | Self::Contact { trouble, .. }
            | Self::Report { trouble }
            | Self::Close { trouble, .. } => trouble.as_deref(),
            Self::Nothing => None,
        }
    }
}

/// `no job is asked for: ...`, without the beginning.
impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let because = |f: &mut fmt::Formatter<'_>, trouble: &Option<String>| match trouble {
            Some(trouble) => write!(f, " ({trouble})"),
            None => Ok(()),
        };
        match self {
            Self::Ending => f.write_str("the runner is ending"),
            Self::Removed => f.write_str("the configuration has no such runner any more"),
            Self::Refused { why } => write!(f, "the entry cannot work: {why}"),
            Self::Recovering => f.write_str("the jobs of the process before are being found"),
            Self::Unhealthy { reason } => {
                write!(f, "the server refused it several times ({reason}); it is asked every minute whether it is served again")
            }
            Self::Pause { trouble } => {
                f.write_str("the next poll is after `check_interval`")?;
                because(f, trouble)
            }
            Self::Limit { limit } => write!(f, "runner limit met: `limit` is {limit}"),
            Self::RequestConcurrency { allowed } => {
                write!(f, "{} open, which is all there may be (`request_concurrency`)", counted(*allowed, "poll"))
            }
            Self::Capacity { trouble } => {
                f.write_str("no environment has a place for one more job")?;
                because(f, trouble)
            }
            Self::Concurrent { concurrent } => write!(f, "`concurrent` is {concurrent}, over all runners"),
        }
    }
}

fn counted(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;
    use crate::event::{Event, Refusal};
    use crate::testing::{World, job, runner, with};

    #[test]
    fn a_job_that_waits_says_for_what_and_what_would_start_it() {
        let mut settings = runner(1);
        settings.environments.capacity_per_instance = 2;
        let mut world = World::new(with(settings)).keeping(&["Follow", "Increase"]).offering(1..=2);
        world.run();
        let Effect::Increase { id, runner, .. } = world.take("Increase") else { panic!() };
        world.tell(Event::Increased { id, runner, outcome: Err(Refusal { reason: "quota exceeded".into(), is_final: false }) });
        let why = world.controller.why(&job(2)).unwrap();
        let text = "waits for a place behind 1 job: 0 environments booting, 0 full, 0 out of reach, of at most 1; \
                    it starts when one is ready or a job ends (last trouble: quota exceeded)";
        assert_eq!(why.to_string(), text);
        assert!(matches!(
            world.controller.runners().next().unwrap().held_back,
            Some(HeldBack::Capacity { .. } | HeldBack::RequestConcurrency { .. })
        ));
    }

    #[test]
    fn a_job_that_runs_waits_for_nothing_and_one_that_is_gone_is_unknown() {
        let mut world = World::new(with(runner(1))).keeping(&["Follow"]).offering(1..=1);
        world.run();
        assert_eq!(world.controller.why(&job(1)), Some(Why::Nothing));
        assert_eq!(world.controller.why(&job(2)), None);
    }

    #[test]
    fn a_job_without_a_word_of_the_server_says_so() {
        let mut world = World::new(with(runner(1))).keeping(&["Follow", "Accept"]).offering(1..=1);
        world.run();
        assert_eq!(world.controller.why(&job(1)), Some(Why::Acceptance { trouble: None }));
    }
}
