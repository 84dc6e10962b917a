//! Asking groups for instances, and about them.

use super::World;
use runner_control::effect::Ask;
use runner_control::event::{Event, Granted, Health, InstanceState, Refusal};
use runner_control::id::{EffectId, InstanceId, InstanceName, RunnerId};
use runner_fleeting::{Change, Failure, InstanceGroup, State};
use std::sync::Arc;

type Listed = Vec<(InstanceName, InstanceState)>;

impl World {
    fn group(&self, runner: &RunnerId) -> Option<Arc<dyn InstanceGroup>> {
        self.runner(runner).map(|runner| runner.group.clone())
    }

    pub(super) fn increase(self: &Arc<Self>, id: EffectId, runner: RunnerId, ask: Ask) {
        let Some(group) = self.group(&runner) else { return };
        let world = self.clone();
        tokio::spawn(async move {
            let outcome = match ask {
                Ask::Count(count) => group.change(Change::Increase(count)).await.map(|changed| Granted::Count(changed.count)),
                Ask::ForJob { .. } => Err(Failure::not_supported("an environment for one job")),
            };
            world.tell(Event::Increased { id, runner, outcome: outcome.map_err(|failure| refusal(&failure)) });
        });
    }

    pub(super) fn decrease(self: &Arc<Self>, id: EffectId, runner: RunnerId, instances: Vec<InstanceName>) {
        let Some(group) = self.group(&runner) else { return };
        let world = self.clone();
        tokio::spawn(async move {
            let instances = instances.iter().map(|name| runner_fleeting::InstanceId::from(name.as_str())).collect();
            let changed = group.change(Change::Decrease(instances)).await;
            let outcome = changed.map(|changed| changed.instances.iter().map(|instance| InstanceName::new(&instance.0)).collect());
            world.tell(Event::Decreased { id, runner, outcome: outcome.map_err(|failure| refusal(&failure)) });
        });
    }

    pub(super) fn update(self: &Arc<Self>, id: EffectId, runner: RunnerId) {
        let Some(group) = self.group(&runner) else { return };
        let world = self.clone();
        tokio::spawn(async move {
            let outcome = list(&*group).await.map_err(|failure| failure.to_string());
            world.tell(Event::Updated { id, runner, outcome });
        });
    }

    pub(super) fn inspect(self: &Arc<Self>, id: EffectId, instance: InstanceId) {
        let Some(group) = self.group(&instance.runner) else { return };
        let world = self.clone();
        tokio::spawn(async move {
            let health = health(&*group, &instance).await;
            world.tell(Event::Inspected { id, instance, health });
        });
    }
}

async fn list(group: &dyn InstanceGroup) -> Result<Listed, Failure> {
    let listed = group.update().await?;
    Ok(listed.iter().filter_map(|instance| Some((InstanceName::new(&instance.id.0), state(instance.state)?))).collect())
}

/// `None`: it is no more.
fn state(state: State) -> Option<InstanceState> {
    match state {
        // What sleeps or wakes up is there, and cannot be used yet.
        State::Creating | State::Suspending | State::Suspended | State::Resuming => Some(InstanceState::Creating),
        State::Running | State::Unknown(_) => Some(InstanceState::Running),
        State::Deleting => Some(InstanceState::Deleting),
        State::Deleted | State::Timeout => None,
    }
}

async fn health(group: &dyn InstanceGroup, instance: &InstanceId) -> Health {
    let is_there = match list(group).await {
        Ok(listed) => listed.iter().any(|(name, state)| *name == instance.name && *state != InstanceState::Deleting),
        Err(failure) => return Health::Unknown { reason: failure.to_string() },
    };
    if !is_there {
        return Health::Gone { cause: "the instance does not exist any more".to_owned() };
    }
    match group.heartbeat(&instance.name.as_str().into()).await {
        // A plugin from before heartbeats: that it lists the instance has to do.
        Ok(runner_fleeting::Health::Healthy) | Err(Failure::NotSupported { .. }) => Health::Alive,
        Ok(runner_fleeting::Health::Unhealthy { reason }) => Health::Gone { cause: reason },
        Err(failure) => Health::Unknown { reason: failure.to_string() },
    }
}

fn refusal(failure: &Failure) -> Refusal {
    Refusal { reason: failure.to_string(), is_final: matches!(failure, Failure::NotSupported { .. }) }
}
