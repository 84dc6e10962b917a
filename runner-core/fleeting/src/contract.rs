//! What every group must do, whoever made it and wherever it runs. Fake, real and hosted ones are judged by the same claims.

use crate::instance_group::{Change, Failure, Health, Instance, InstanceGroup, InstanceId, ProviderInfo, Settings, State};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// What a group is tried with.
#[derive(Debug, Clone)]
pub struct Trial {
    pub config: serde_json::Value,
    pub settings: Settings,
    /// How many instances it may make, at least 2.
    pub instances: u32,
    /// How long an instance may take to run, or to go.
    pub patience: Duration,
    /// Between two looks.
    pub look: Duration,
    /// Whether `shutdown` is tried before `init`: there are plugins that die of it.
    pub early_shutdown: bool,
}

/// One claim, and whether it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub claim: &'static str,
    pub weight: Weight,
    /// Why not.
    pub fault: Option<String>,
}

/// How much a claim matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// No host could work with a group that does not.
    Must,
    /// Plugins of others get along without; ours do it.
    Should,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.fault, self.weight) {
            (None, _) => write!(formatter, "ok      {}", self.claim),
            (Some(fault), Weight::Must) => write!(formatter, "FAILED  {}\n          {fault}", self.claim),
            (Some(fault), Weight::Should) => write!(formatter, "should  {}\n          {fault}", self.claim),
        }
    }
}

/// Leads a group through a whole life. Stops early only where nothing further could be tried. Instances that it found are left alone.
pub async fn judge(group: &dyn InstanceGroup, trial: &Trial) -> Vec<Finding> {
    let mut judge = Judge { group, trial, findings: Vec::new(), before: BTreeSet::new() };
    judge.life().await;
    judge.findings
}

struct Judge<'a> {
    group: &'a dyn InstanceGroup,
    trial: &'a Trial,
    findings: Vec<Finding>,
    before: BTreeSet<InstanceId>,
}

/// `None`: it cannot go on. The finding is there.
type Step<T> = Option<T>;

impl Judge<'_> {
    fn find<T>(&mut self, claim: &'static str, outcome: Result<T, String>) -> Step<T> {
        self.weigh(claim, Weight::Must, outcome)
    }

    fn advise<T>(&mut self, claim: &'static str, outcome: Result<T, String>) -> Step<T> {
        self.weigh(claim, Weight::Should, outcome)
    }

    fn weigh<T>(&mut self, claim: &'static str, weight: Weight, outcome: Result<T, String>) -> Step<T> {
        let (found, fault) = match outcome {
            Ok(found) => (Some(found), None),
            Err(fault) => (None, Some(fault)),
        };
        self.findings.push(Finding { claim, weight, fault });
        found
    }

    async fn life(&mut self) -> Step<()> {
        if self.trial.early_shutdown {
            let early = self.group.shutdown().await;
            self.advise("a shutdown without init is fine", early.map_err(|failure| failure.to_string()));
        }
        let info = self.group.init(&self.trial.config, &self.trial.settings).await;
        let info = self.find("init takes up the group", info.map_err(|failure| failure.to_string()).and_then(sound))?;
        let again = self.group.init(&self.trial.config, &self.trial.settings).await;
        let same = again.map_err(|failure| failure.to_string()).and_then(|again| expect(&again.id, &info.id, "the name of the group"));
        self.advise("a second init gives the same group", same);
        let before = self.group.update().await.map_err(|failure| failure.to_string());
        let before = self.find("update reports the group", before.and_then(distinct))?;
        self.before = before.into_iter().map(|instance| instance.id).collect();

        let made = self.increase().await?;
        self.reach(&made).await;
        self.strangers().await;
        if info.can_suspend() {
            self.sleep_and_wake(&made).await;
        } else {
            self.cannot_sleep(&made).await;
        }
        self.decrease(&made).await;
        let end = self.group.shutdown().await;
        self.find("shutdown is fine", end.map_err(|failure| failure.to_string()))
    }

    async fn increase(&mut self) -> Step<Vec<InstanceId>> {
        let none = self.group.change(Change::Increase(0)).await.map_err(|failure| failure.to_string());
        self.advise("an increase by none makes none", none.and_then(|none| expect(&none.count, &0, "what was made")));
        let wanted = self.trial.instances;
        let done = self.group.change(Change::Increase(wanted)).await.map_err(|failure| failure.to_string());
        self.find("an increase says how many it has asked for", done.and_then(|done| expect(&done.count, &wanted, "what was made")))?;
        let running = self.wait(|now, before| {
            let new: Vec<&Instance> = now.iter().filter(|instance| !before.contains(&instance.id)).collect();
            let running = new.iter().filter(|instance| instance.state == State::Running).count();
            (running == wanted as usize && new.len() == running).then(|| new.iter().map(|instance| instance.id.clone()).collect())
        });
        let running = running.await;
        self.find("so many new instances run", running)
    }

    async fn reach(&mut self, made: &[InstanceId]) {
        let (mut reached, mut healthy) = (Ok(()), Ok(()));
        for id in made {
            match self.group.connect_info(id).await {
                Ok(info) if info.id != *id => reached = Err(format!("asked for {id}, told about {}", info.id)),
                Ok(info) if info.internal_address.is_empty() && info.external_address.is_empty() => {
                    reached = Err(format!("{id} has no address"));
                }
                Ok(_) => {}
                Err(failure) => reached = Err(failure.to_string()),
            }
            match self.group.heartbeat(id).await {
                Ok(Health::Healthy) => {}
                Ok(Health::Unhealthy { reason }) => healthy = Err(format!("{id} is unhealthy: {reason}")),
                Err(failure) => healthy = Err(failure.to_string()),
            }
        }
        self.find("an instance that runs can be reached", reached);
        self.find("an instance that runs is healthy", healthy);
    }

    async fn strangers(&mut self) {
        let stranger = InstanceId::from("no-such-instance");
        let info = match self.group.connect_info(&stranger).await {
            Err(Failure::Refused { .. }) => Ok(()),
            Err(other) => Err(format!("instead of a refusal: {other}")),
            Ok(_) => Err("it is told how to reach an instance that is not there".to_owned()),
        };
        self.find("nobody can reach an instance that is not there", info);
        let removed = self.group.change(Change::Decrease(vec![stranger.clone()])).await.map_err(|failure| failure.to_string());
        let removed = removed.and_then(|removed| expect(&removed.instances, &vec![stranger], "what was removed"));
        self.advise("an instance that is not there counts as removed", removed);
    }

    async fn cannot_sleep(&mut self, made: &[InstanceId]) {
        let refused = match self.group.change(Change::Suspend(made.to_vec())).await {
            Err(Failure::NotSupported { .. }) => Ok(()),
            other => Err(format!("instead of `not supported`: {other:?}")),
        };
        self.advise("a group that cannot suspend says so", refused);
    }

    async fn sleep_and_wake(&mut self, made: &[InstanceId]) -> Step<()> {
        let first = made.first()?;
        let one = vec![first.clone()];
        for (claim, change, goal) in [
            ("a suspended instance sleeps", Change::Suspend(one.clone()), State::Suspended),
            ("a resumed instance runs", Change::Resume(one.clone()), State::Running),
        ] {
            let done = self.group.change(change).await.map_err(|failure| failure.to_string());
            let done = done.and_then(|done| expect(&done.instances, &one, "what was changed"));
            let there = match done {
                Ok(()) => self.wait(|now, _| now.iter().any(|i| i.id == *first && i.state == goal).then_some(())).await,
                Err(fault) => Err(fault),
            };
            self.find(claim, there)?;
        }
        Some(())
    }

    async fn decrease(&mut self, made: &[InstanceId]) -> Step<()> {
        let (first, rest) = made.split_first()?;
        for (claim, ids) in [("one instance goes and the others stay", vec![first.clone()]), ("all that was made goes", rest.to_vec())] {
            let done = self.group.change(Change::Decrease(ids.clone())).await.map_err(|failure| failure.to_string());
            let told =
                done.and_then(|done| expect(&BTreeSet::from_iter(done.instances), &BTreeSet::from_iter(ids.clone()), "what was removed"));
            let gone = match told {
                Ok(()) => {
                    let left: BTreeSet<&InstanceId> =
                        if ids.len() == 1 && ids.first() == Some(first) { rest.iter().collect() } else { BTreeSet::new() };
                    self.wait(|now, before| {
                        let there = now.iter().filter(|i| !matches!(i.state, State::Deleted | State::Timeout) && !before.contains(&i.id));
                        (there.map(|i| &i.id).collect::<BTreeSet<_>>() == left).then_some(())
                    })
                    .await
                }
                Err(fault) => Err(fault),
            };
            self.find(claim, gone)?;
        }
        Some(())
    }

    /// Looks until it is so.
    async fn wait<T>(&self, mut so: impl FnMut(&[Instance], &BTreeSet<InstanceId>) -> Option<T>) -> Result<T, String> {
        let until = Instant::now() + self.trial.patience;
        loop {
            let now = self.group.update().await.map_err(|failure| failure.to_string())?;
            if let Some(found) = so(&now, &self.before) {
                return Ok(found);
            }
            if Instant::now() >= until {
                let states: Vec<String> = now.iter().map(|instance| format!("{} {}", instance.id, instance.state)).collect();
                return Err(format!("not within {:?}; there is: {}", self.trial.patience, states.join(", ")));
            }
            tokio::time::sleep(self.trial.look).await;
        }
    }
}

fn sound(info: ProviderInfo) -> Result<ProviderInfo, String> {
    match (info.id.is_empty(), info.max_size) {
        (true, _) => Err("the group has no name".to_owned()),
        (_, 0) => Err("there may be no instances".to_owned()),
        _ => Ok(info),
    }
}

fn distinct(instances: Vec<Instance>) -> Result<Vec<Instance>, String> {
    let names: BTreeSet<&InstanceId> = instances.iter().map(|instance| &instance.id).collect();
    if names.len() == instances.len() { Ok(instances) } else { Err("an instance is named twice".to_owned()) }
}

fn expect<T: PartialEq + fmt::Debug>(found: &T, expected: &T, what: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, it should be {expected:?}")) }
}
