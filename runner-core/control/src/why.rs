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
use step_model::time::{Deadline, Now, Timestamp};

/// What one job waits for at this moment. `trouble`: what went wrong last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A place in an environment.
    Place {
        ahead: u32,
        booting: u32,
        full: u32,
        unreachable: u32,
        most: u32,
        obstacle: Obstacle,
        until: Option<String>,
        trouble: Option<String>,
    },
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

/// Why there is no place yet: the one thing that would have to change. Where it changes by itself at a known time, `until` says when (RFC 3339).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// The provider has not said what there is.
    NotListed,
    /// Instances for all that wait are on their way.
    Booting,
    /// The provider did not give what was asked for, and is asked again.
    Refused,
    /// Instances never became ready; the next is tried later.
    NeverReady,
    /// `scale_throttle`.
    Throttled,
    /// There are as many instances as there may be, and all are full.
    Most,
    /// What there is cannot be reached.
    Unreachable,
    /// It is about to be asked for.
    Asking,
}

impl Controller {
    /// `None`: there is no such job.
    pub fn why(&self, id: &JobId) -> Option<Why> {
        let job = self.get_job(id)?;
        let (_, runner) = self.all_runners().find(|(runner, _)| **runner == id.runner)?;
        Some(why(id, job, runner, self.now()))
    }
}

fn why(id: &JobId, job: &Job, runner: &Runner, now: Now) -> Why {
    let trouble = job.trouble.clone();
    match &job.phase {
        Phase::Waiting if job.save.durable.is_none() && trouble.is_some() => Why::Record { trouble },
        Phase::Waiting if runner.settings.environments.shape == Shape::PerJob => {
            Why::Environment { instance: runner.fleet.made_for(id).cloned(), trouble: trouble.or_else(|| runner.fleet.trouble.clone()) }
        }
        Phase::Waiting => for_a_place(job, runner, now),
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

fn for_a_place(job: &Job, runner: &Runner, now: Now) -> Why {
    let environments = &runner.settings.environments;
    let count = |is_so: &dyn Fn(&crate::fleet::instance::Instance) -> bool| {
        u32::try_from(runner.fleet.instances().filter(|(_, instance)| is_so(instance)).count()).unwrap_or(u32::MAX)
    };
    let ahead = u32::try_from(runner.queue.range(..job.arrival).count()).unwrap_or(u32::MAX);
    let (obstacle, due) = obstacle(runner, ahead, now);
    Why::Place {
        ahead,
        booting: count(&|instance| instance.contact == Contact::Never) + runner.fleet.requested,
        full: count(&|instance| instance.is_up() && instance.free(environments) == 0),
        unreachable: count(&|instance| matches!(instance.contact, Contact::Suspect { .. })),
        most: environments.max_instances,
        obstacle,
        until: due.map(|due| wall_time(due, now).to_string()),
        trouble: runner.fleet.trouble.clone().or_else(|| job.trouble.clone()),
    }
}

/// What stands between a job and a place, and when it ends by itself where that is known.
fn obstacle(runner: &Runner, ahead: u32, now: Now) -> (Obstacle, Option<Deadline>) {
    let (fleet, environments) = (&runner.fleet, &runner.settings.environments);
    let coming = fleet.counts.coming.saturating_add(fleet.requested.saturating_mul(environments.capacity()));
    let throttled = fleet.scaler.throttled_until(environments.scaling.throttle(), now);
    if !fleet.is_known {
        (Obstacle::NotListed, fleet.update.due())
    } else if coming > ahead {
        (Obstacle::Booting, None)
    } else if fleet.increase.due().is_some() {
        (Obstacle::Refused, fleet.increase.due())
    } else if let Some(rests) = fleet.scaler.rests_until(now) {
        (Obstacle::NeverReady, Some(rests))
    } else if throttled.is_some() {
        (Obstacle::Throttled, throttled)
    } else if runner.figures().total >= environments.max_instances {
        let is_cut_off = fleet.counts.acquired == 0 && fleet.counts.unavailable > 0;
        (if is_cut_off { Obstacle::Unreachable } else { Obstacle::Most }, None)
    } else {
        (Obstacle::Asking, fleet.scale_at)
    }
}

/// A moment of the monotonic clock, by the clock on the wall.
fn wall_time(due: Deadline, now: Now) -> Timestamp {
    let left = i64::try_from(due.remaining(now).as_nanos()).unwrap_or(i64::MAX);
    Timestamp::from_nanoseconds(now.wall.nanoseconds().saturating_add(left))
}

/// `waits for a place behind 2 jobs: 1 environment boots, 3 are full, of at most 4; it starts when one is ready or a job ends (the provider said: quota)`.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place { ahead, booting, full, unreachable, most, obstacle, until, .. } => {
                f.write_str("waits for a place")?;
                if *ahead > 0 {
                    write!(f, " behind {}", counted(*ahead, "job"))?;
                }
                write!(f, ": {} booting, {full} full, {unreachable} out of reach", counted(*booting, "environment"))?;
                if *most < u32::MAX {
                    write!(f, ", of at most {most}")?;
                }
                write!(f, "; {obstacle}")?;
                if let Some(until) = until {
                    write!(f, " (at {until})")?;
                }
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

/// What would start the job.
impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotListed => "the provider has not said what there is; it starts after that",
            Self::Booting => "it starts when one of those that boot is ready",
            Self::Refused => "the provider gave none; it starts after the provider is asked again and gives one",
            Self::NeverReady => "instances never became ready; it starts when the next one that is tried does",
            Self::Throttled => "`scale_throttle` holds the next request back; it starts when its instance is ready",
            Self::Most => "there are as many as there may be; it starts when a job ends or `max_instances` is raised",
            Self::Unreachable => "none can be reached; it starts when one answers again or is replaced",
            Self::Asking => "one is about to be asked for; it starts when that one is ready",
        })
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
    use crate::settings::{Environments, RunnerSettings};
    use crate::taskscaler::policy::{Policy, ScaleThrottle, Scaling, SlotScaling};
    use crate::taskscaler::schedule::NamedZone;
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
        let text = why.to_string();
        let expected = "waits for a place behind 1 job: 0 environments booting, 0 full, 0 out of reach, of at most 1; \
                        the provider gave none; it starts after the provider is asked again and gives one (at 1970-01-01T00:00:0";
        assert!(text.starts_with(expected) && text.ends_with("(last trouble: quota exceeded)"), "{text}");
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

    /// What the newest job waits for.
    fn named(world: &World, number: u64) -> (Obstacle, Option<String>) {
        match world.controller.why(&job(number)) {
            Some(Why::Place { obstacle, until, .. }) => (obstacle, until),
            other => panic!("{other:?}"),
        }
    }

    fn scaled(most: u32, throttle: ScaleThrottle) -> World {
        let policies = vec![Policy::on_demand()];
        let scaling = Scaling::Slots(SlotScaling { policies, throttle, reservation_throttling: true });
        let environments = Environments { scaling, ..Environments::new(Shape::Group, most) };
        let settings = RunnerSettings { request_concurrency: 20, is_adaptive: false, ..RunnerSettings::new("a", environments) };
        World::new(with(settings)).keeping(&["Follow"])
    }

    fn has_started(world: &World, number: u64) -> bool {
        world.controller.why(&job(number)) == Some(Why::Nothing)
    }

    /// Lets the time come that was named, and a moment for what follows.
    fn pass_until(world: &mut World, until: Option<String>) {
        let until = NamedZone::utc().moment(&until.expect("a time")).expect("a time");
        let left = until.since(world.now.wall);
        world.pass(left.as_secs() + 5);
    }

    #[test]
    fn a_job_starts_when_the_cause_that_was_named_is_taken_away() {
        // All are full: a job ends.
        let mut world = scaled(1, ScaleThrottle::Unlimited).offering(1..=1);
        world.run().pass(5);
        let mut limits = world.controller_settings(2);
        world.tell(Event::Reloaded { settings: Box::new(limits.clone()) });
        world.offers.extend([crate::testing::offer(2)]);
        world.kept_open.insert("Increase");
        world.pass(10);
        limits.runners.values_mut().for_each(|runner| runner.environments.max_instances = 1);
        world.tell(Event::Reloaded { settings: Box::new(limits) });
        let Effect::Increase { id, runner, .. } = world.take("Increase") else { panic!() };
        world.tell(Event::Increased { id, runner, outcome: Ok(crate::event::Granted::Count(0)) });
        world.pass(100);
        assert_eq!(named(&world, 2).0, Obstacle::Most);
        world.end(&job(1), crate::report::Outcome::Success).pass(5);
        assert!(has_started(&world, 2));
        // One boots: it becomes ready.
        let mut world = scaled(1, ScaleThrottle::Unlimited).keeping(&["Follow", "Connect"]).offering(1..=1);
        world.run().pass(5);
        assert_eq!(named(&world, 1), (Obstacle::Booting, None));
        world.kept_open.remove("Connect");
        assert!(has_started(
            &{
                world.run();
                world
            },
            1
        ));
        // The provider refuses: it is asked again at the time that was named.
        let mut world = scaled(1, ScaleThrottle::Unlimited).keeping(&["Follow", "Increase"]).offering(1..=1);
        world.run().pass(5);
        let Effect::Increase { id, runner, .. } = world.take("Increase") else { panic!() };
        world.tell(Event::Increased { id, runner, outcome: Err(Refusal { reason: "quota".into(), is_final: false }) });
        let (obstacle, until) = named(&world, 1);
        assert_eq!(obstacle, Obstacle::Refused);
        world.kept_open.remove("Increase");
        pass_until(&mut world, until);
        assert!(has_started(&world, 1));
        // The throttle: the time comes.
        let mut world = scaled(9, ScaleThrottle::Limited { limit: 1, burst: 1 }).keeping(&["Follow", "Update"]).offering(1..=4);
        world.kept_open.remove("Update");
        world.run().pass(1);
        let (obstacle, until) = named(&world, 4);
        assert_eq!(obstacle, Obstacle::Throttled);
        pass_until(&mut world, until);
        assert!(has_started(&world, 4));
    }
}
