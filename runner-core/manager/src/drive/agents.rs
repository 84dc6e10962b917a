//! Speaking to agents: connecting, delivering jobs, following and ending them.

use super::World;
use crate::connect;
use crate::dispatch::{self, Added};
use crate::follow;
use crate::kept::FoundJob;
use runner_control::effect::CancelHow;
use runner_control::event::{DispatchFault, Event, FollowEnd, Found, Refusal};
use runner_control::id::{EffectId, InstanceId, JobId};
use runner_control::report::{Outcome, OutcomeKind};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use step_client::{AgentClient, CallFailed, Code, JobStatus};

/// The agents that were reached.
#[derive(Debug, Default)]
pub struct Agents(Mutex<BTreeMap<InstanceId, AgentClient>>);

impl Agents {
    fn all(&self) -> MutexGuard<'_, BTreeMap<InstanceId, AgentClient>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, instance: &InstanceId) -> Option<AgentClient> {
        self.all().get(instance).cloned()
    }

    pub fn drop(&self, instance: &InstanceId) {
        self.all().remove(instance);
    }
}

/// Under which an agent knows a job.
pub fn id_at_agent(job: &JobId) -> String {
    job.number.to_string()
}

impl World {
    pub(super) fn connect(self: &Arc<Self>, id: EffectId, instance: InstanceId) {
        let world = self.clone();
        tokio::spawn(async move {
            let outcome = world.reach(&instance).await;
            world.tell(Event::Connected { id, instance, outcome });
        });
    }

    /// Proves that the agent answers, and asks what it holds.
    async fn reach(&self, instance: &InstanceId) -> Result<Vec<Found>, Refusal> {
        let refused = |reason: String, is_final| Refusal { reason, is_final };
        let runner = self.runner(&instance.runner).ok_or_else(|| refused(format!("there is no runner {}", instance.runner), true))?;
        let info = runner.group.connect_info(&instance.name.as_str().into()).await;
        let info = info.map_err(|failure| refused(failure.to_string(), false))?;
        let agent = connect::agent(&info).map_err(|no_way| refused(no_way.to_string(), true))?;
        let jobs = agent.jobs().await.map_err(|failed| refused(failed.to_string(), !failed.may_pass()))?;
        self.agents.all().insert(instance.clone(), agent);
        Ok(jobs.iter().filter_map(|status| self.found(instance, status)).collect())
    }

    /// A job that the agent holds. `None`: it is no runner's, but of somebody who uses the same agent.
    fn found(&self, instance: &InstanceId, status: &JobStatus) -> Option<Found> {
        let job = JobId::new(&instance.runner, status.id.parse().ok()?);
        let opened = self.runner(&instance.runner)?.open(&status.owner_record, &super::records::key(&job));
        let opened = opened.inspect_err(|fault| tracing::warn!(%job, "the record beside the job cannot be read: {fault}")).ok();
        let record = opened.and_then(|opened| FoundJob::of_bytes(&opened).ok()).map(|found| {
            self.find_again(&found, &status.owner_record);
            Box::new(found.record)
        });
        Some(Found { job, record })
    }

    pub(super) fn dispatch(self: &Arc<Self>, id: EffectId, job: JobId, instance: InstanceId, time_limit: Duration) {
        let world = self.clone();
        tokio::spawn(async move {
            let outcome = world.deliver(&job, &instance, time_limit).await;
            world.tell(Event::Dispatched { id, job, outcome });
        });
    }

    async fn deliver(&self, job: &JobId, instance: &InstanceId, time_limit: Duration) -> Result<(), DispatchFault> {
        let unreachable = || DispatchFault::Unreachable { reason: "there is no connection to the instance".to_owned() };
        let agent = self.agents.get(instance).ok_or_else(unreachable)?;
        let refused = |message: &str| DispatchFault::Refused {
            outcome: Outcome::Failure { kind: OutcomeKind::Internal, exit_code: None, message: message.to_owned() },
        };
        let job = self.job(job).ok_or_else(|| refused("the job is not known here any more"))?;
        let translation = job.translation.as_ref().ok_or_else(|| refused("the payload of the job is not known here any more"))?;
        let added = Added {
            id: id_at_agent(&job.id),
            build_dir: job.build_dir.clone(),
            owner_record: job.owner_record(),
            time_limit: Some(time_limit),
        };
        agent.run(dispatch::request(translation, added)).await.map_err(dispatch_fault)
    }

    pub(super) fn follow(self: &Arc<Self>, id: EffectId, job: JobId, instance: InstanceId) {
        let world = self.clone();
        tokio::spawn(async move {
            let end = match (world.agents.get(&instance), world.job(&job), world.runner(&job.runner)) {
                (Some(agent), Some(known), Some(runner)) => {
                    let progress = |bytes| world.tell(Event::Progressed { job: job.clone(), bytes });
                    follow::to_end(&agent, &known, &*runner.source, &progress).await
                }
                (None, ..) => FollowEnd::Broken { reason: "there is no connection to the instance".to_owned() },
                _ => FollowEnd::Broken { reason: "the job is not known here any more".to_owned() },
            };
            world.tell(Event::Followed { id, job, end });
        });
    }

    pub(super) fn cancel(self: &Arc<Self>, id: EffectId, job: JobId, instance: InstanceId, how: CancelHow) {
        let agent = self.agents.get(&instance);
        let world = self.clone();
        tokio::spawn(async move {
            let outcome = match agent {
                Some(agent) => end(&agent, &id_at_agent(&job), how).await.map_err(|failed| failed.to_string()),
                None => Err("there is no connection to the instance".to_owned()),
            };
            world.tell(Event::CancelSent { id, job, outcome });
        });
    }

    pub(super) fn close(self: &Arc<Self>, id: EffectId, job: JobId, instance: InstanceId) {
        let agent = self.agents.get(&instance);
        let world = self.clone();
        tokio::spawn(async move {
            let outcome = match agent {
                Some(agent) => agent.close(&id_at_agent(&job)).await.map_err(|failed| failed.to_string()),
                None => Err("there is no connection to the instance".to_owned()),
            };
            world.tell(Event::Closed { id, job, outcome });
        });
    }
}

/// An agent that cannot cancel (GitLab's before v0.44) can only end a job at once.
async fn end(agent: &AgentClient, id: &str, how: CancelHow) -> Result<(), CallFailed> {
    match how {
        CancelHow::Gracefully => match agent.cancel(id).await {
            Err(CallFailed::Missing { .. }) => agent.close(id).await,
            outcome => outcome,
        },
        CancelHow::AtOnce => agent.close(id).await,
    }
}

fn dispatch_fault(failed: CallFailed) -> DispatchFault {
    match failed {
        CallFailed::NotConnected { .. } | CallFailed::Lost { .. } => DispatchFault::Unreachable { reason: failed.to_string() },
        // Machine refused, or leaving.
        CallFailed::Refused { code: Code::Unavailable, .. } => DispatchFault::Busy { reason: failed.to_string() },
        CallFailed::Refused { .. } | CallFailed::Missing { .. } => {
            let outcome = Outcome::Failure { kind: OutcomeKind::BadInput, exit_code: None, message: failed.to_string() };
            DispatchFault::Refused { outcome }
        }
    }
}
