//! A group of instances on this machine, each an agent process of its own: what `try` runs jobs on.
//!
//! The agents belong to this process: they end with it.

use runner_fleeting::{
    Answer, Change, Changed, ConnectInfo, ConnectorConfig, Failure, Health, Instance, InstanceGroup, InstanceId, ProviderInfo, Settings,
    State, protocol,
};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use step_console::given::words;
use tokio::process::{Child, Command};

/// The name of an agent's socket in its directory.
const SOCKET: &str = "step-runner.sock";
/// What an agent says of itself, in its directory.
const SAID: &str = "agent.log";

/// Agents in directories below one of ours.
#[derive(Debug)]
pub struct LocalGroup {
    /// `step-runner`.
    agent: PathBuf,
    directory: PathBuf,
    /// Where jobs run that name no directory.
    work_dir: PathBuf,
    instances: Mutex<Instances>,
}

#[derive(Debug, Default)]
struct Instances {
    running: BTreeMap<InstanceId, Child>,
    next: u32,
    /// The last words of an agent that ended before it served anybody: the next one would do the same.
    failed: Option<String>,
}

impl LocalGroup {
    pub fn new(agent: PathBuf, directory: PathBuf, work_dir: PathBuf) -> Self {
        Self { agent, directory, work_dir, instances: Mutex::default() }
    }

    fn instances(&self) -> MutexGuard<'_, Instances> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the agent of an instance has its socket, its jobs, and what it says.
    fn directory_of(&self, instance: &InstanceId) -> PathBuf {
        self.directory.join(&instance.0)
    }

    fn start(&self, instance: &InstanceId) -> io::Result<Child> {
        let directory = self.directory_of(instance);
        std::fs::create_dir_all(&directory)?;
        let said = std::fs::File::create(directory.join(SAID))?;
        let mut command = Command::new(&self.agent);
        command.arg("serve").arg("--keep-finished").arg("1h").arg(&directory).current_dir(&self.work_dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).kill_on_drop(true);
        // The interrupt of a terminal is for us: we ask the jobs to end.
        #[cfg(unix)]
        command.process_group(0);
        command.spawn()
    }

    fn increase(&self, count: u32) -> Result<Changed, Failure> {
        let mut instances = self.instances();
        if let Some(words) = instances.failed.take() {
            return Err(Failure::refused(format!("the agent `{}` does not serve: {words}", self.agent.display())));
        }
        for done in 0..count {
            let id = InstanceId(format!("local-{}", instances.next + 1));
            match self.start(&id) {
                Ok(child) => {
                    instances.next += 1;
                    instances.running.insert(id, child);
                }
                Err(fault) => {
                    let message = format!("could not start `{}`: {}", self.agent.display(), words(&fault));
                    return if done == 0 { Err(Failure::refused(message)) } else { Ok(Changed::count(done).with_trouble(message)) };
                }
            }
        }
        Ok(Changed::count(count))
    }

    fn decrease(&self, ids: Vec<InstanceId>) -> Changed {
        let mut instances = self.instances();
        for id in &ids {
            if let Some(mut child) = instances.running.remove(id) {
                let _ = child.start_kill();
            }
        }
        Changed::instances(ids)
    }

    fn report(&self) -> Vec<Instance> {
        let Instances { running, failed, .. } = &mut *self.instances();
        running.retain(|id, child| {
            let lives = matches!(child.try_wait(), Ok(None));
            if !lives && !self.serves(id) {
                *failed = Some(last_words(&self.directory_of(id)).unwrap_or_else(|| "it said nothing".to_owned()));
            }
            lives
        });
        let state = |id: &InstanceId| if self.serves(id) { State::Running } else { State::Creating };
        running.keys().map(|id| Instance { id: id.clone(), state: state(id) }).collect()
    }

    fn serves(&self, instance: &InstanceId) -> bool {
        self.directory_of(instance).join(SOCKET).exists()
    }
}

/// What an agent that is gone said last.
fn last_words(directory: &Path) -> Option<String> {
    let said = std::fs::read_to_string(directory.join(SAID)).ok()?;
    said.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
}

impl InstanceGroup for LocalGroup {
    fn init<'a>(&'a self, _config: &'a serde_json::Value, _settings: &'a Settings) -> Answer<'a, ProviderInfo> {
        Box::pin(async { Ok(ProviderInfo { id: "local".to_owned(), max_size: u32::MAX, ..ProviderInfo::default() }) })
    }

    fn update(&self) -> Answer<'_, Vec<Instance>> {
        Box::pin(async { Ok(self.report()) })
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        Box::pin(async {
            match change {
                Change::Increase(count) => self.increase(count),
                Change::Decrease(ids) => Ok(self.decrease(ids)),
                Change::Suspend(_) | Change::Resume(_) => Err(Failure::not_supported(ProviderInfo::SUSPEND_RESUME)),
            }
        })
    }

    fn connect_info<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, ConnectInfo> {
        Box::pin(async {
            let socket = self.directory_of(instance).join(SOCKET);
            let connector = ConnectorConfig {
                os: std::env::consts::OS.to_owned(),
                arch: std::env::consts::ARCH.to_owned(),
                protocol: protocol::AGENT_SOCKET.to_owned(),
                ..ConnectorConfig::default()
            };
            let internal_address = socket.to_string_lossy().into_owned();
            Ok(ConnectInfo { id: instance.clone(), connector, external_address: String::new(), internal_address, expires: None })
        })
    }

    fn heartbeat<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, Health> {
        Box::pin(async {
            let mut instances = self.instances();
            let lives = instances.running.get_mut(instance).is_some_and(|child| matches!(child.try_wait(), Ok(None)));
            Ok(if lives { Health::Healthy } else { Health::Unhealthy { reason: "the agent has ended".to_owned() } })
        })
    }

    fn shutdown(&self) -> Answer<'_, ()> {
        Box::pin(async {
            for child in self.instances().running.values_mut() {
                let _ = child.start_kill();
            }
            Ok(())
        })
    }
}
