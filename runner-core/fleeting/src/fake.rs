//! A group that exists only in memory, for tests and demonstrations. It does what it is told to, faults included.

use crate::config::Config;
use crate::instance_group::{
    Answer, Change, Changed, ConnectInfo, ConnectorConfig, Failure, Health, Instance, InstanceGroup, InstanceId, ProviderInfo, Settings,
    State,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const FAULTS: &str = "`refuse TEXT`, `hang`, `die`, `print COUNT` and `claim COUNT`";
const CALLS: [&str; 9] = ["Init", "Update", "Increase", "Decrease", "ConnectInfo", "Heartbeat", "Suspend", "Resume", "Shutdown"];

fn planned(text: &str) -> Option<(&'static str, Fault)> {
    let (call, fault) = text.split_once(": ")?;
    let call = CALLS.into_iter().find(|known| *known == call)?;
    let fault = match fault.split_once(' ').unwrap_or((fault, "")) {
        ("refuse", message) => Fault::Refuse(message.to_owned()),
        ("hang", "") => Fault::Hang,
        ("die", "") => Fault::Die,
        ("print", count) => Fault::Print(count.parse().ok()?),
        ("claim", count) => Fault::Claim(count.parse().ok()?),
        _ => return None,
    };
    Some((call, fault))
}

/// New instances are creating at the first update and running at the next; removed ones are deleting once, then gone.
#[derive(Debug, Default)]
pub struct FakeGroup {
    state: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    config: serde_json::Value,
    settings: Settings,
    instances: BTreeMap<InstanceId, State>,
    made: u64,
    calls: Vec<String>,
    planned: VecDeque<(&'static str, Fault)>,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Refuse(String),
    /// It never answers.
    Hang,
    /// The process ends in the middle of the call.
    Die,
    /// It prints so many lines before it answers.
    Print(u32),
    /// It says that it did so many.
    Claim(u32),
}

impl FakeGroup {
    /// The next call of this name (`Init`, `Update`, `Increase`, ...) goes wrong in this way.
    pub fn plan(&self, call: &'static str, fault: Fault) {
        self.lock().planned.push_back((call, fault));
    }

    /// Key `faults` of the configuration: a list of `CALL: FAULT`, such as `Increase: claim 5`.
    fn plan_all(&self, config: &serde_json::Value) -> Result<(), Failure> {
        let mut config = Config::of(config);
        for text in config.texts("faults").unwrap_or_default() {
            match planned(&text) {
                Some((call, fault)) => self.plan(call, fault),
                None => config.problem("faults", format!("`{text}` is not `CALL: FAULT`; faults are {FAULTS}")),
            }
        }
        config.finish()
    }

    /// What was called, in order.
    pub fn calls(&self) -> Vec<String> {
        self.lock().calls.clone()
    }

    /// What the last `init` was given.
    pub fn given(&self) -> (serde_json::Value, Settings) {
        let inner = self.lock();
        (inner.config.clone(), inner.settings.clone())
    }

    /// Somebody else has changed the group: an instance vanishes.
    pub fn lose(&self, id: &InstanceId) {
        self.lock().instances.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the call, and lets happen what was planned for it.
    async fn begin(&self, call: &'static str) -> Result<Option<u32>, Failure> {
        let fault = {
            let mut inner = self.lock();
            inner.calls.push(call.to_owned());
            let planned = inner.planned.iter().position(|(name, _)| *name == call);
            planned.and_then(|index| inner.planned.remove(index))
        };
        match fault.map(|(_, fault)| fault) {
            None => Ok(None),
            Some(Fault::Refuse(message)) => Err(Failure::refused(message)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Die) => std::process::abort(),
            Some(Fault::Print(count)) => {
                for line in 0..count {
                    println!("line {line}");
                    tracing::info!(line, "record");
                }
                Ok(None)
            }
            Some(Fault::Claim(count)) => Ok(Some(count)),
        }
    }

    fn carry_out(&self, change: &Change) -> Changed {
        let inner = &mut *self.lock();
        match change {
            Change::Increase(count) => {
                for _ in 0..*count {
                    inner.made += 1;
                    inner.instances.insert(InstanceId(format!("fake-{}", inner.made)), State::Creating);
                }
                Changed::count(*count)
            }
            Change::Decrease(ids) => {
                for id in ids {
                    inner.instances.entry(id.clone()).and_modify(|state| *state = State::Deleting);
                }
                Changed::instances(ids.clone())
            }
            Change::Suspend(ids) => Changed::instances(inner.turn(ids, &[State::Running], State::Suspending)),
            Change::Resume(ids) => Changed::instances(inner.turn(ids, &[State::Suspending, State::Suspended], State::Resuming)),
        }
    }
}

impl Inner {
    /// Those of them that are in one of these states go over to another.
    fn turn(&mut self, ids: &[InstanceId], from: &[State], to: State) -> Vec<InstanceId> {
        let mut turned = Vec::new();
        for id in ids {
            if let Some(state) = self.instances.get_mut(id).filter(|state| from.contains(state)) {
                *state = to;
                turned.push(id.clone());
            }
        }
        turned
    }

    /// What is reported now, and what has become of it by the next report.
    fn report(&mut self) -> Vec<Instance> {
        let report = self.instances.iter().map(|(id, state)| Instance { id: id.clone(), state: *state }).collect();
        self.instances.retain(|_, state| *state != State::Deleting);
        for state in self.instances.values_mut() {
            *state = match state {
                State::Creating | State::Resuming => State::Running,
                State::Suspending => State::Suspended,
                &mut other => other,
            };
        }
        report
    }
}

impl InstanceGroup for FakeGroup {
    fn init<'a>(&'a self, config: &'a serde_json::Value, settings: &'a Settings) -> Answer<'a, ProviderInfo> {
        Box::pin(async move {
            self.plan_all(config)?;
            self.begin("Init").await?;
            let mut inner = self.lock();
            inner.config = config.clone();
            inner.settings = settings.clone();
            Ok(ProviderInfo {
                id: "fake".to_owned(),
                max_size: 1000,
                version: "1.0".to_owned(),
                build_info: String::new(),
                capabilities: vec![ProviderInfo::SUSPEND_RESUME.to_owned()],
            })
        })
    }

    fn update(&self) -> Answer<'_, Vec<Instance>> {
        Box::pin(async move {
            self.begin("Update").await?;
            Ok(self.lock().report())
        })
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        Box::pin(async move {
            let claimed = self.begin(change.name()).await?;
            let changed = self.carry_out(&change);
            Ok(Changed { count: claimed.unwrap_or(changed.count), ..changed })
        })
    }

    fn connect_info<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, ConnectInfo> {
        Box::pin(async move {
            self.begin("ConnectInfo").await?;
            let inner = self.lock();
            if !inner.instances.contains_key(instance) {
                return Err(Failure::refused(format!("instance {instance} does not exist")));
            }
            let default = |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
            let given = &inner.settings.connector;
            let connector = ConnectorConfig {
                os: default(&given.os, "linux"),
                arch: default(&given.arch, "amd64"),
                protocol: default(&given.protocol, crate::protocol::SSH),
                keepalive: if given.keepalive.is_zero() { Duration::from_secs(30) } else { given.keepalive },
                ..given.clone()
            };
            let internal_address = format!("{instance}.fake.test:22");
            Ok(ConnectInfo { id: instance.clone(), connector, external_address: String::new(), internal_address, expires: None })
        })
    }

    fn heartbeat<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, Health> {
        Box::pin(async move {
            self.begin("Heartbeat").await?;
            let known = self.lock().instances.contains_key(instance);
            Ok(if known { Health::Healthy } else { Health::Unhealthy { reason: format!("instance {instance} does not exist") } })
        })
    }

    fn shutdown(&self) -> Answer<'_, ()> {
        Box::pin(async move { self.begin("Shutdown").await.map(drop) })
    }
}
