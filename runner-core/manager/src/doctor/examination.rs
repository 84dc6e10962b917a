//! One runner, looked at from its entry to a job.

use super::borrowed::{Borrowed, Found};
use super::job;
use super::sheet::{Check, Outcome, Sheet, Trouble};
use crate::config_command::client;
use crate::connect;
use crate::run::connector;
use runner_config::settings::{Executor, Runner};
use runner_fleeting::{Hosted, InstanceGroup as _, InstanceId, Locate, NotFound, Options, Settings, locate};
use runner_gitlab::Token;
use runner_gitlab::answer::Verified;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use step_client::{AgentClient, CallFailed};
use step_console::tree::in_words;
use tempfile::TempDir;

/// Between two attempts to reach an agent that may just begin.
const KNOCKS: Duration = Duration::from_millis(200);

pub struct Examination<T> {
    entry: Runner,
    refused: Vec<String>,
    directory: PathBuf,
    is_served: bool,
    wait: Duration,
    tell: T,
    pub sheet: Sheet,
    began: Instant,
    borrowed: Option<Borrowed>,
    agent: Option<AgentClient>,
    /// Of a group that is made for this alone.
    _own: Option<TempDir>,
}

impl<T: Fn(&Check)> Examination<T> {
    /// `tell` hears of each check when it is done. `is_served`: a runner serves the configuration now.
    pub fn new(entry: Runner, refused: Vec<String>, directory: PathBuf, is_served: bool, wait: Duration, tell: T) -> Self {
        let executor = entry.executor.map_or("", Executor::name).to_owned();
        let sheet = Sheet { runner: entry.shown_name(), url: entry.url.clone(), executor, checks: Vec::new() };
        Self { entry, refused, directory, is_served, wait, tell, sheet, began: Instant::now(), borrowed: None, agent: None, _own: None }
    }

    /// Everything, one after the other.
    pub async fn run(&mut self) {
        let entry = self.entry();
        let is_good = entry.is_ok();
        self.note("entry", entry);
        if !self.entry.url.is_empty() && !self.entry.token.is_blank() {
            self.server().await;
        }
        if is_good && let Some(instance) = self.instance().await {
            self.try_instance(&instance).await;
        }
        for skipped in self.sheet.skipped() {
            self.add(skipped);
        }
        self.sheet.checks.sort_by_key(|check| super::sheet::CHECKS.iter().position(|(name, _)| *name == check.name));
    }

    /// Removes what was made. Returns what is left, in words. Can be called whatever was reached.
    pub async fn clean_up(&mut self) -> Option<String> {
        if let Some(agent) = self.agent.take() {
            // The job may not be there: an unknown one is no error, and an agent that is gone has none.
            let _ = tokio::time::timeout(Duration::from_secs(5), agent.reconnecting(Duration::ZERO).close(&job::id())).await;
        }
        match self.borrowed.as_mut() {
            Some(borrowed) => borrowed.give_back().await,
            None => None,
        }
    }

    /// Notes a check. Returns whether it is good.
    fn note(&mut self, name: &'static str, outcome: Result<String, Trouble>) -> bool {
        let outcome = match outcome {
            Ok(what) => Outcome::Good(what),
            Err(trouble) => Outcome::Bad(trouble),
        };
        let is_good = matches!(outcome, Outcome::Good(_));
        self.add(Check { name, outcome, took: self.began.elapsed() });
        is_good
    }

    fn add(&mut self, check: Check) {
        (self.tell)(&check);
        self.sheet.checks.push(check);
        self.began = Instant::now();
    }

    fn entry(&self) -> Result<String, Trouble> {
        match self.refused.as_slice() {
            [] => Ok(format!("executor {}", self.sheet.executor)),
            reasons => Err(Trouble::new(reasons.join("\n"), "`runner-core config check` shows the place of each mistake")),
        }
    }

    async fn server(&mut self) {
        let verified = match client(&self.entry.url, &self.sheet.executor, &self.entry.tls, &self.directory) {
            Ok(client) => client.verify(&Token::new(self.entry.token.expose())).await,
            Err(stop) => Verified::Unknown { why: stop.to_string() },
        };
        let answers = format!("{} answers", self.entry.url);
        match verified {
            Verified::Good(account) => {
                self.note("server", Ok(answers));
                let number = account.map(|account| format!(" as number {}", account.id)).unwrap_or_default();
                self.note("token", Ok(format!("the server knows this runner{number}")));
            }
            Verified::Bad => {
                self.note("server", Ok(answers));
                let hint = "the runner was removed, or its token renewed: `runner-core register` gives it another one";
                self.note("token", Err(Trouble::new("the server does not know this token", hint)));
            }
            Verified::Unknown { why } => {
                let hint = server_hint(&why);
                self.note("server", Err(Trouble::new(why, hint)));
            }
        }
    }

    async fn instance(&mut self) -> Option<InstanceId> {
        let group = self.group().await;
        let borrowed = match group {
            Ok((group, what)) => {
                self.note("plugin", Ok(what));
                self.borrowed.insert(Borrowed::of(group))
            }
            Err(trouble) => {
                self.note("plugin", Err(trouble));
                return None;
            }
        };
        // A group of its own is nobody else's.
        let may_make = !self.is_served || self._own.is_some();
        match borrowed.instance(may_make, self.wait).await {
            Ok(Found::There(id)) => self.note("instance", Ok(format!("`{id}` is there"))).then_some(id),
            Ok(Found::Made(id)) => {
                let took = in_words(self.began.elapsed());
                self.note("instance", Ok(format!("`{id}` was made in {took}, and is removed afterwards"))).then_some(id)
            }
            Ok(Found::Nothing) => {
                let why =
                    "none is there, and a runner that serves this configuration now would take one that is made; ask again when it has one";
                self.add(Check { name: "instance", outcome: Outcome::Skipped(why.to_owned()), took: Duration::ZERO });
                None
            }
            Err(trouble) => {
                self.note("instance", Err(trouble));
                None
            }
        }
    }

    /// The plugin, taken up, and what it says of itself.
    async fn group(&mut self) -> Result<(Hosted, String), Trouble> {
        let (name, config) = match (&self.entry.autoscaler, self.entry.executor) {
            (Some(autoscaler), Some(Executor::Instance | Executor::DockerAutoscaler)) => {
                (autoscaler.plugin.clone(), autoscaler.plugin_config.expose().clone())
            }
            (_, Some(Executor::Shell | Executor::Docker)) => {
                let own = tempfile::Builder::new().prefix("rc-doctor-").tempdir();
                let own = own.map_err(|fault| {
                    Trouble::new(
                        format!("no directory can be made: {}", step_console::given::words(&fault)),
                        "free some space, or set TMPDIR",
                    )
                })?;
                let config = serde_json::json!({"name": "doctor", "directory": own.path()});
                self._own = Some(own);
                ("local".to_owned(), config)
            }
            (_, executor) => {
                let executor = executor.map_or("", Executor::name);
                return Err(Trouble::new(
                    format!("the executor `{executor}` is not supported yet"),
                    "`instance`, `docker-autoscaler`, `shell` and `docker` are",
                ));
            }
        };
        let beside = std::env::current_exe().ok().and_then(|program| program.parent().map(std::path::Path::to_path_buf));
        let places = Locate { directories: beside.into_iter().collect(), path: std::env::var_os("PATH") };
        let program = locate(&name, &places).map_err(|missing| Trouble::new(missing.to_string(), NotFound::HINT))?;
        let shown = program.display().to_string();
        let connector = connector(&self.entry).map_err(|why| Trouble::new(why, "check `[runners.autoscaler.connector_config]`"))?;
        let hosted = Hosted::new(program, Options::named(name));
        match hosted.init(&config, &Settings { connector }).await {
            Ok(info) => Ok((hosted, format!("{shown} {}: group `{}`, at most {} instances", info.version, info.id, info.max_size))),
            Err(failure) => {
                hosted.end().await;
                Err(Trouble::new(
                    failure.to_string(),
                    "check `[runners.autoscaler.plugin_config]` and the credentials that the plugin finds",
                ))
            }
        }
    }

    async fn try_instance(&mut self, instance: &InstanceId) {
        let Some(info) = (match &self.borrowed {
            Some(borrowed) => Some(borrowed.group().connect_info(instance).await),
            None => None,
        }) else {
            return;
        };
        let way =
            info.map_err(|failure| Trouble::new(failure.to_string(), "check the rights of the plugin's credentials")).and_then(|info| {
                connect::agent(&info).map_err(|no_way| Trouble::new(no_way.to_string(), "check `[runners.autoscaler.connector_config]`"))
            });
        let agent = match way {
            Ok(agent) => agent.waiting(Duration::ZERO).reconnecting(Duration::ZERO),
            Err(trouble) => {
                self.note("login", Err(trouble));
                return;
            }
        };
        let place = agent.place().to_owned();
        let reached = match self.reach(&agent).await {
            Ok(jobs) => Ok(format!("{place} answers; {jobs} jobs there")),
            Err(failed) => Err(Trouble::new(format!("{place}: {failed}"), "the agent did not start, or something keeps connections away")),
        };
        if !self.note("login", reached) {
            return;
        }
        let version = match agent.inspect("").await {
            Ok(inspected) => Ok(format!("step-runner {}: {}", inspected.version, inspected.capabilities.join(", "))),
            Err(CallFailed::Missing { .. }) => Ok("an agent of GitLab's: there are no results".to_owned()),
            Err(failed) => Err(Trouble::new(failed.to_string(), "put the step-runner there that came with this program")),
        };
        if !self.note("agent", version) {
            return;
        }
        self.agent = Some(agent.clone());
        let ran = job::run(&agent).await.map(|()| format!("a job of one step ran in {}", in_words(self.began.elapsed())));
        self.note("job", ran);
    }

    /// How many jobs the agent holds. Asks until it answers.
    async fn reach(&self, agent: &AgentClient) -> Result<usize, CallFailed> {
        loop {
            match agent.jobs().await {
                Ok(jobs) => return Ok(jobs.len()),
                Err(failed) if failed.may_pass() && self.began.elapsed() < self.wait => tokio::time::sleep(KNOCKS).await,
                Err(failed) => return Err(failed),
            }
        }
    }
}

/// The way out of what a call to a server says.
fn server_hint(why: &str) -> &'static str {
    let why = why.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if says(&["certificate", "issuer", "tls"]) {
        "name the server's authority in `tls-ca-file`, or put it into `certs/HOST.crt` beside the configuration"
    } else if says(&["dns", "name or service", "lookup", "resolve"]) {
        "check the name in `url`, and the name server of this machine"
    } else if says(&["refused", "unreachable", "no answer", "timed out"]) {
        "check host and port in `url`, and that nothing keeps connections away; HTTPS_PROXY names a proxy"
    } else {
        "check `url`: it is the address of GitLab itself, without `/api/v4`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_has_its_way_out() {
        assert!(server_hint("GET https://x: invalid peer certificate: UnknownIssuer").contains("tls-ca-file"));
        assert!(server_hint("connection refused").contains("host and port"));
        assert!(server_hint("dns error: failed to lookup address").contains("name server"));
        assert!(server_hint("it answered 404").contains("`url`"));
    }
}
