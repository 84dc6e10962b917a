//! The group: what its host asks for, carried out on directories and processes.

use crate::agent;
use crate::directory::{GroupDirectory, InstanceDirectory, Turn};
use crate::scope;
use crate::settings::{LocalSettings, Surroundings};
use runner_fleeting::{
    Answer, Change, Changed, ConnectInfo, ConnectorConfig, Failure, Health, Instance, InstanceGroup, InstanceId, ProviderInfo, Settings,
    State, protocol,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::process::Child;
use tokio::time::Instant;

/// How long an answer waits for agents that are starting: they take milliseconds, and whoever has asked would only ask again.
const START: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);
/// An agent that ends so many times without ever answering will not answer at all.
const TRIES: u32 = 3;

/// Agent processes on this machine. What it knows is in its directory; it can be dropped and made anew at any time.
#[derive(Debug, Default)]
pub struct LocalGroup {
    ready: Mutex<Option<Arc<Ready>>>,
}

#[derive(Debug)]
struct Ready {
    settings: LocalSettings,
    /// What is called before the program of an agent.
    before: Vec<String>,
    connector: ConnectorConfig,
    directory: GroupDirectory,
    memory: Mutex<BTreeMap<InstanceId, Memory>>,
    /// Those that have gone since the last report, which says so once: a host would else wait until it has missed them often enough.
    gone: Mutex<Vec<InstanceId>>,
}

/// What is only known while this process lives, and may be lost.
#[derive(Debug, Default)]
struct Memory {
    /// The agent, when it was started here.
    child: Option<Child>,
    tries: u32,
    /// Somebody is ending it.
    ending: bool,
    /// The host was told that it is nobody's business any more.
    given_up: bool,
}

impl LocalGroup {
    fn ready(&self) -> Result<Arc<Ready>, Failure> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.clone().ok_or_else(|| Failure::refused("the group is not initialized"))
    }

    fn take_up(&self, config: &serde_json::Value, settings: &Settings) -> Result<ProviderInfo, Failure> {
        let local = LocalSettings::read(config, &Surroundings::look())?;
        let directory = GroupDirectory::open(&local.directory).map_err(|error| {
            let shown = local.directory.display();
            Failure::refused(format!("plugin_config: directory: `{shown}` cannot be used: {error}; name one that this user may write to"))
        })?;
        let info = ProviderInfo {
            id: format!("local/{}", local.name),
            max_size: local.max_size,
            version: crate::ABOUT.version.to_owned(),
            build_info: crate::ABOUT.build_info(),
            capabilities: Vec::new(),
        };
        let ready = Ready {
            settings: local,
            before: scope::command_before(),
            connector: settings.connector.clone(),
            directory,
            memory: Mutex::default(),
            gone: Mutex::default(),
        };
        *self.ready.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(ready));
        Ok(info)
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::refused(format!("could not {what}: {error}"))
}

impl Ready {
    fn memory(&self) -> MutexGuard<'_, BTreeMap<InstanceId, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn turn(&self) -> Result<Turn, Failure> {
        self.directory.turn().await.map_err(system("lock the group's directory"))
    }

    /// Starts the agent of an instance, for the first time or again.
    fn start(&self, instance: &InstanceDirectory) -> io::Result<()> {
        let child = agent::start(instance, &self.settings, &self.before)?;
        let mut memory = self.memory();
        let memory = memory.entry(instance.id.clone()).or_default();
        memory.child = Some(child);
        memory.tries += 1;
        Ok(())
    }

    /// Ends one in the background. Whoever ends us in the middle leaves the mark, and the next look goes on.
    fn end(self: &Arc<Self>, instance: &InstanceDirectory) {
        if std::mem::replace(&mut self.memory().entry(instance.id.clone()).or_default().ending, true) {
            return;
        }
        let (group, instance) = (Arc::clone(self), instance.clone());
        tokio::spawn(async move {
            if let Err(error) = agent::end(&instance, group.settings.stop_timeout).await {
                tracing::error!(instance = %instance.id, %error, "the directory of an instance could not be removed");
            }
            let memory = group.memory().remove(&instance.id).unwrap_or_default();
            // One that had not yet come to its lock would serve nobody, in a directory that is gone.
            let _ = memory.child.map(|mut child| child.start_kill());
            if !memory.given_up {
                group.gone.lock().unwrap_or_else(PoisonError::into_inner).push(instance.id);
            }
        });
    }

    async fn wait_for_ends(&self) {
        let until = Instant::now() + self.settings.stop_timeout;
        while self.memory().values().any(|memory| memory.ending) && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What an instance is doing. One whose agent has died is helped up, or given up.
    fn look_at(self: &Arc<Self>, instance: &InstanceDirectory) -> State {
        if instance.is_ending() {
            self.end(instance);
            let given_up = self.memory().get(&instance.id).is_some_and(|memory| memory.given_up);
            return if given_up { State::Timeout } else { State::Deleting };
        }
        if instance.agent().is_some() {
            if !instance.answers() {
                return State::Creating;
            }
            self.memory().entry(instance.id.clone()).or_default().tries = 0;
            return State::Running;
        }
        if self.is_starting(&instance.id) {
            return State::Creating;
        }
        let tries = self.memory().get(&instance.id).map_or(0, |memory| memory.tries);
        if tries >= TRIES {
            tracing::error!(instance = %instance.id, "the agent does not stay: {}", instance.last_words());
            self.give_up(instance);
            return State::Timeout;
        }
        tracing::warn!(instance = %instance.id, "the agent has ended and is started again");
        match self.start(instance) {
            Ok(()) => State::Creating,
            Err(error) => {
                tracing::error!(instance = %instance.id, %error, "the agent cannot be started");
                self.give_up(instance);
                State::Timeout
            }
        }
    }

    fn give_up(self: &Arc<Self>, instance: &InstanceDirectory) {
        // Without a mark it would be helped up once more, and given up again.
        let _ = instance.mark_ending();
        self.memory().entry(instance.id.clone()).or_default().given_up = true;
        self.end(instance);
    }

    /// Its process is there, and has not yet come to its lock.
    fn is_starting(&self, id: &InstanceId) -> bool {
        let mut memory = self.memory();
        let child = memory.get_mut(id).and_then(|memory| memory.child.as_mut());
        child.is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    async fn update(self: &Arc<Self>) -> Result<Vec<Instance>, Failure> {
        let turn = self.turn().await?;
        let until = Instant::now() + START;
        loop {
            let found = self.directory.instances(&turn).map_err(system("read the group's directory"))?;
            let mut report: Vec<Instance> =
                found.iter().map(|instance| Instance { id: instance.id.clone(), state: self.look_at(instance) }).collect();
            let all_known = report.iter().all(|instance| instance.state != State::Creating);
            if all_known || Instant::now() >= until {
                let gone = std::mem::take(&mut *self.gone.lock().unwrap_or_else(PoisonError::into_inner));
                report.retain(|instance| !gone.contains(&instance.id));
                report.extend(gone.into_iter().map(|id| Instance { id, state: State::Deleted }));
                return Ok(report);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn increase(self: &Arc<Self>, wanted: u32) -> Result<Changed, Failure> {
        let turn = self.turn().await?;
        let there = self.directory.instances(&turn).map_err(system("read the group's directory"))?;
        let room = self.settings.max_size.saturating_sub(u32::try_from(there.len()).unwrap_or(u32::MAX));
        let mut made = 0;
        let mut trouble =
            (wanted > room).then(|| format!("there is room for {room} more instances: `max_size` is {}", self.settings.max_size));
        for _ in 0..wanted.min(room) {
            let instance = match self.directory.make(&turn) {
                Ok(instance) => instance,
                Err(error) => {
                    trouble = Some(format!("could not make a directory in `{}`: {error}", self.settings.directory.display()));
                    break;
                }
            };
            if let Err(error) = self.start(&instance) {
                trouble = Some(format!("could not start `{}`: {error}", self.settings.program.display()));
                let _ = instance.remove();
                break;
            }
            made += 1;
        }
        Ok(Changed { count: made, instances: Vec::new(), trouble })
    }

    async fn decrease(self: &Arc<Self>, ids: Vec<InstanceId>) -> Result<Changed, Failure> {
        let _turn = self.turn().await?;
        let (mut done, mut trouble) = (Vec::new(), None);
        for id in ids {
            if let Some(instance) = self.directory.find(&id) {
                if let Err(error) = instance.mark_ending() {
                    trouble = Some(format!("could not mark instance {id}: {error}"));
                    continue;
                }
                self.end(&instance);
            }
            done.push(id);
        }
        Ok(Changed { trouble, ..Changed::instances(done) })
    }

    fn instance(&self, id: &InstanceId) -> Option<InstanceDirectory> {
        self.directory.find(id).filter(|instance| !instance.is_ending())
    }

    fn connect_info(&self, id: &InstanceId) -> Result<ConnectInfo, Failure> {
        let Some(instance) = self.instance(id) else { return Err(Failure::refused(format!("instance {id} does not exist"))) };
        let (os, arch) = runner_fleeting::platform();
        let connector = ConnectorConfig {
            os: os.to_owned(),
            arch: arch.to_owned(),
            protocol: protocol::AGENT_SOCKET.to_owned(),
            port: 0,
            ..self.connector.clone()
        };
        let internal_address = instance.socket().display().to_string();
        Ok(ConnectInfo { id: id.clone(), connector, external_address: String::new(), internal_address, expires: None })
    }

    fn heartbeat(&self, id: &InstanceId) -> Health {
        let reason = match self.instance(id) {
            None => format!("instance {id} does not exist"),
            Some(instance) if instance.answers() => return Health::Healthy,
            Some(instance) => format!("the agent does not answer on `{}`", instance.socket().display()),
        };
        Health::Unhealthy { reason }
    }
}

impl InstanceGroup for LocalGroup {
    fn init<'a>(&'a self, config: &'a serde_json::Value, settings: &'a Settings) -> Answer<'a, ProviderInfo> {
        Box::pin(async move { self.take_up(config, settings) })
    }

    fn update(&self) -> Answer<'_, Vec<Instance>> {
        Box::pin(async move { self.ready()?.update().await })
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        Box::pin(async move {
            match change {
                Change::Increase(count) => self.ready()?.increase(count).await,
                Change::Decrease(ids) => self.ready()?.decrease(ids).await,
                Change::Suspend(_) | Change::Resume(_) => Err(Failure::not_supported(ProviderInfo::SUSPEND_RESUME)),
            }
        })
    }

    fn connect_info<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, ConnectInfo> {
        Box::pin(async move { self.ready()?.connect_info(instance) })
    }

    fn heartbeat<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, Health> {
        Box::pin(async move { Ok(self.ready()?.heartbeat(instance)) })
    }

    /// The instances stay: the next plugin finds them. Those that are ending are waited for.
    fn shutdown(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(ready) = ready {
                ready.wait_for_ends().await;
            }
            Ok(())
        })
    }
}
