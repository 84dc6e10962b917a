//! Entries of the configuration become runners: a source of jobs and a group of instances each.

use super::configuration::Configuration;
use super::{settings, system_id};
use crate::drive::Runner;
use crate::host_zone::host_zone;
use crate::results::Results;
use crate::seal::Seal;
use crate::source::gitlab::{EntrySettings, GitLabSource, Place};
use crate::telemetry::{RunnerLabels, Telemetry};
use runner_config::settings::{Executor, Runner as Entry};
use runner_control::event::Event;
use runner_control::id::RunnerId;
use runner_control::settings::Settings;
use runner_fleeting::{ConnectorConfig, Hosted, InstanceGroup as _, Locate, Options, Secret, locate};
use runner_gitlab::client::TlsFiles;
use runner_gitlab::trace::sending::SendingSettings;
use runner_gitlab::{Client, ClientSettings, RunnerInfo, ServerUrl, SystemId, Token};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use step_console::exit::Stop;
use tokio::sync::mpsc::UnboundedSender;

/// What entries have in common.
#[derive(Debug)]
pub struct Entries {
    config_directory: PathBuf,
    state: PathBuf,
    environment: BTreeMap<String, String>,
    system_id: SystemId,
    events: UnboundedSender<Event>,
    results: Arc<Results>,
    telemetry: Telemetry,
    /// Those that were begun: a reload begins only what is new, and renews what has changed.
    begun: Mutex<BTreeMap<RunnerId, Begun>>,
}

/// An entry that is served.
#[derive(Debug, Clone)]
struct Begun {
    entry: Entry,
    source: Arc<GitLabSource>,
    group: Arc<Hosted>,
    /// How large the group can be.
    size: u32,
}

/// What a configuration changes.
#[derive(Default)]
pub struct Change {
    pub new: BTreeMap<RunnerId, Runner>,
    /// With the token that each had before, if it has another one now.
    pub renewed: Vec<(RunnerId, Runner, Option<Token>)>,
}

impl Entries {
    /// # Errors
    /// The system has no id and none can be written.
    pub fn new(
        configuration: &Configuration,
        state: PathBuf,
        events: UnboundedSender<Event>,
        results: Arc<Results>,
        telemetry: Telemetry,
    ) -> Result<Self, Stop> {
        Ok(Self {
            system_id: system_id::of_directory(&configuration.directory)?,
            config_directory: configuration.directory.clone(),
            environment: configuration.environment.clone(),
            state,
            events,
            results,
            telemetry,
            begun: Mutex::default(),
        })
    }

    /// The runners that are new or others, and what the controller decides by. An entry whose plugin does not start takes no jobs, and says why.
    pub async fn begin(&self, config: &runner_config::Settings) -> (Change, Settings) {
        let mut decided = settings::controller(config, &self.environment, &host_zone(&self.environment));
        let mut change = Change::default();
        for entry in &config.runners {
            let id = settings::id(entry);
            let begun = self.begun().get(&id).cloned();
            let outcome = match begun {
                Some(begun) if begun.entry == *entry => Ok(()),
                Some(begun) => self.renewed(entry, &id, config, &begun).map(|(runner, was)| change.renewed.push((id.clone(), runner, was))),
                None => self.runner(entry, &id, config).await.map(|runner| drop(change.new.insert(id.clone(), runner))),
            };
            match outcome {
                Ok(()) => {
                    let size = self.begun().get(&id).map_or(u32::MAX, |begun| begun.size);
                    if let Some(settings) = decided.runners.get_mut(&id) {
                        settings.environments.max_instances = settings.environments.max_instances.min(size);
                    }
                }
                Err(why) => {
                    tracing::error!(runner = entry.shown_name(), "the runner takes no jobs: {why}");
                    if let Some(settings) = decided.runners.get_mut(&id) {
                        settings.refused = Some(why);
                    }
                }
            }
        }
        (change, decided)
    }

    fn begun(&self) -> MutexGuard<'_, BTreeMap<RunnerId, Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its plugin stays as it is, and its jobs in flight keep what they began with.
    fn renewed(
        &self,
        entry: &Entry,
        id: &RunnerId,
        config: &runner_config::Settings,
        begun: &Begun,
    ) -> Result<(Runner, Option<Token>), String> {
        let token = Token::new(entry.token.expose());
        let was = Some(begun.source.token().clone()).filter(|was| was.expose() != token.expose());
        let client = self.client(entry, config)?;
        let settings = self.entry_settings(entry, id, &token, &client)?;
        let source = Arc::new(begun.source.renewed(client, token.clone(), settings));
        let begun = Begun { entry: entry.clone(), source, group: begun.group.clone(), size: begun.size };
        Ok((self.serve(id, begun, &token), was))
    }

    fn serve(&self, id: &RunnerId, begun: Begun, token: &Token) -> Runner {
        let runner = Runner::new(begun.source.clone(), begun.group.clone(), Seal::of_token(token.expose()));
        self.begun().insert(id.clone(), begun);
        runner
    }

    async fn runner(&self, entry: &Entry, id: &RunnerId, config: &runner_config::Settings) -> Result<Runner, String> {
        let token = Token::new(entry.token.expose());
        let (group, size) = self.group(entry, token.short()).await?;
        let client = self.client(entry, config)?;
        let settings = self.entry_settings(entry, id, &token, &client)?;
        let source = GitLabSource::new(id.clone(), client, token.clone(), settings, self.events.clone());
        let begun = Begun { entry: entry.clone(), source: Arc::new(source), group: Arc::new(group), size };
        Ok(self.serve(id, begun, &token))
    }

    fn client(&self, entry: &Entry, config: &runner_config::Settings) -> Result<Client, String> {
        let url = ServerUrl::parse(&entry.url).map_err(|fault| fault.to_string())?;
        let executor = entry.executor.map_or("", Executor::name);
        let info = RunnerInfo { labels: entry.labels.clone(), ..RunnerInfo::of_this_program(executor, "bash") };
        let path = |file: &Option<String>| file.as_ref().map(PathBuf::from);
        let tls = TlsFiles {
            authority: path(&entry.tls.ca_file),
            certificate: path(&entry.tls.cert_file),
            key: path(&entry.tls.key_file),
            directory: Some(self.config_directory.join("certs")),
        };
        let mut settings = ClientSettings { tls, ..ClientSettings::new(url, info, self.system_id.clone()) };
        if let Some(age) = config.global.connection_max_age {
            settings.timeouts.connection_age = age;
        }
        Ok(Client::new(settings, self.telemetry.watch(self.labels(entry))))
    }

    fn labels(&self, entry: &Entry) -> RunnerLabels {
        RunnerLabels::new(Token::new(entry.token.expose()).short(), &entry.shown_name(), self.system_id.as_str())
    }

    /// The plugin of the entry, taken up, and the most instances that its group can have.
    async fn group(&self, entry: &Entry, short_token: &str) -> Result<(Hosted, u32), String> {
        let here = plugin_of_this_machine(entry, short_token, &self.environment);
        let (name, config) = match (&entry.autoscaler, entry.executor) {
            (Some(autoscaler), Some(Executor::Instance | Executor::DockerAutoscaler)) => {
                (autoscaler.plugin.as_str(), autoscaler.plugin_config.expose())
            }
            (_, Some(Executor::Shell | Executor::Docker)) => ("local", &here),
            (_, executor) => return Err(format!("the executor `{}` is not supported yet", executor.map_or("", Executor::name))),
        };
        let beside = std::env::current_exe().ok().and_then(|program| program.parent().map(std::path::Path::to_path_buf));
        let places = Locate { directories: beside.into_iter().collect(), path: std::env::var_os("PATH") };
        let program = locate(name, &places).map_err(|missing| missing.to_string())?;
        let hosted = Hosted::new(program, Options::named(name));
        let settings = runner_fleeting::Settings { connector: connector(entry)? };
        let info = hosted.init(config, &settings).await.map_err(|failure| format!("the plugin `{name}`: {failure}"))?;
        tracing::info!(
            runner = entry.shown_name(),
            plugin = name,
            group = info.id,
            max_size = info.max_size,
            version = info.version,
            "the plugin is ready"
        );
        Ok((hosted, info.max_size))
    }

    fn entry_settings(&self, entry: &Entry, id: &RunnerId, token: &Token, client: &Client) -> Result<EntrySettings, String> {
        let here = std::env::current_dir().map_err(|fault| fault.to_string())?;
        let place = Place::of(entry, token.short(), &here, authority(client));
        let tries = u32::try_from(entry.job_status_final_update_retry_limit).unwrap_or(u32::MAX);
        let sending =
            SendingSettings { tries: if tries == 0 { SendingSettings::default().tries } else { tries }, ..SendingSettings::default() };
        Ok(EntrySettings {
            place,
            output_limit: if entry.output_limit == 0 { runner_gitlab::trace::limit::DEFAULT_LIMIT } else { entry.output_limit },
            timestamps: entry.has_feature("FF_TIMESTAMPS", &self.environment),
            sending,
            asks_again: !entry.strict_check_interval,
            directory: self.state.join("jobs").join(file_name(id.as_str())),
            results: self.results.clone(),
            telemetry: self.telemetry.clone(),
            labels: self.labels(entry),
            system_id: self.system_id.as_str().to_owned(),
        })
    }
}

/// The configuration of the plugin `local` for jobs of this machine. Where its container engine is, the file says, else the environment.
fn plugin_of_this_machine(entry: &Entry, short_token: &str, environment: &BTreeMap<String, String>) -> serde_json::Value {
    let host = entry.docker.as_ref().and_then(|docker| docker.host.clone()).filter(|host| !host.is_empty());
    let host = host.or_else(|| environment.get("DOCKER_HOST").cloned()).map(|host| ("DOCKER_HOST", host));
    let agents = environment.get("STEP_RUNNER_AGENTS").map(|agents| ("STEP_RUNNER_AGENTS", agents.clone()));
    let has_containers = entry.executor.is_some_and(Executor::has_containers);
    let passed: BTreeMap<&str, String> = host.into_iter().chain(agents).filter(|_| has_containers).collect();
    serde_json::json!({"name": format!("runner-{short_token}"), "environment": passed})
}

/// What the runner trusts besides the system, for its jobs. It is read when an entry is taken up.
fn authority(client: &Client) -> Option<String> {
    let settings = client.settings();
    let file = settings.tls.for_host(settings.url.host()).authority.filter(|_| settings.url.is_tls())?;
    std::fs::read_to_string(file).ok()
}

/// What the entry says of how instances are reached.
pub fn connector(entry: &Entry) -> Result<ConnectorConfig, String> {
    let Some(given) = entry.autoscaler.as_ref().map(|autoscaler| &autoscaler.connector) else { return Ok(ConnectorConfig::default()) };
    let key = given
        .key_path
        .as_ref()
        .map(std::fs::read)
        .transpose()
        .map_err(|fault| format!("the key of the connector cannot be read: {fault}"))?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Ok(ConnectorConfig {
        os: text(&given.os),
        arch: text(&given.arch),
        protocol: text(&given.protocol),
        port: given.protocol_port.map_or(0, i64::from),
        username: text(&given.username),
        password: given.password.as_ref().map(|password| Secret::new(password.expose())).unwrap_or_default(),
        key: key.map(Secret::new).unwrap_or_default(),
        use_static_credentials: given.use_static_credentials,
        keepalive: given.keepalive.unwrap_or_default(),
        timeout: given.timeout.unwrap_or_default(),
    })
}

/// `https://gitlab.example#7` as one part of a path.
fn file_name(id: &str) -> String {
    id.chars().map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' }).collect()
}
