//! A plugin over all its processes: it is started when it is needed, and started again when it has failed.

use super::vigil::{Seen, Verdict, Vigil};
use super::{Options, Plugin};
use crate::instance_group::{
    Answer, Change, Changed, ConnectInfo, Failure, Health, Instance, InstanceGroup, InstanceId, ProviderInfo, Settings,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A plugin as a group that is always there: while its process is not, calls fail at once and say when it will be started again.
///
/// What `init` was given is kept, and given to every later process before it is asked anything else.
#[derive(Debug)]
pub struct Hosted {
    program: PathBuf,
    options: Options,
    begun: Instant,
    vigil: Mutex<Vigil>,
    /// Held while a process is started, so that there is only ever one.
    running: tokio::sync::Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    plugin: Option<Arc<Plugin>>,
    init: Option<(serde_json::Value, Settings)>,
}

impl Hosted {
    /// Nothing is started before the first call.
    pub fn new(program: PathBuf, options: Options) -> Self {
        Self { program, options, begun: Instant::now(), vigil: Mutex::default(), running: tokio::sync::Mutex::default() }
    }

    /// Ends the process, if there is one. A later call would start another.
    pub async fn end(&self) {
        let plugin = self.running.lock().await.plugin.take();
        if let Some(plugin) = plugin.and_then(Arc::into_inner) {
            plugin.end().await;
        }
    }

    fn see(&self, seen: Seen) -> Verdict {
        let now = self.begun.elapsed();
        self.vigil.lock().unwrap_or_else(PoisonError::into_inner).on(seen, now)
    }

    fn wait(&self) -> Option<Duration> {
        let now = self.begun.elapsed();
        let wait = self.vigil.lock().unwrap_or_else(PoisonError::into_inner).wait(now);
        Some(wait).filter(|wait| !wait.is_zero())
    }

    /// The plugin, which is started if need be.
    async fn plugin(&self) -> Result<Arc<Plugin>, Failure> {
        let mut running = self.running.lock().await;
        if let Some(plugin) = &running.plugin {
            return Ok(Arc::clone(plugin));
        }
        let plugin = self.start().await?;
        if let Some((config, settings)) = &running.init
            && let Err(failure) = plugin.init(config, settings).await
        {
            // It took the same before; without it, it is of no use.
            self.see(Seen::DidNotStart);
            return Err(Failure::Gone { reason: format!("it does not take up its group again: {failure}"), again: self.wait() });
        }
        running.plugin = Some(Arc::clone(&plugin));
        Ok(plugin)
    }

    async fn start(&self) -> Result<Arc<Plugin>, Failure> {
        if let Some(again) = self.wait() {
            return Err(Failure::Gone { reason: "it has failed a moment ago".to_owned(), again: Some(again) });
        }
        match Plugin::start(&self.program, &self.options).await {
            Ok(plugin) => {
                self.see(Seen::Started);
                Ok(Arc::new(plugin))
            }
            Err(fault) => {
                self.see(Seen::DidNotStart);
                Err(Failure::Gone { reason: fault.to_string(), again: self.wait() })
            }
        }
    }

    async fn call<T>(&self, call: impl AsyncFnOnce(&Plugin) -> Result<T, Failure>) -> Result<T, Failure> {
        let plugin = self.plugin().await?;
        let answer = call(&plugin).await;
        let answer = self.judge(&plugin, answer).await;
        if answer.as_ref().is_err_and(|failure| matches!(failure, Failure::Gone { .. })) {
            self.forget(&plugin).await;
        }
        answer
    }

    /// What an answer says about the plugin. One that is to be replaced is gone for the caller.
    async fn judge<T>(&self, plugin: &Plugin, answer: Result<T, Failure>) -> Result<T, Failure> {
        let seen = match &answer {
            Ok(_) | Err(Failure::Refused { .. } | Failure::NotSupported { .. }) => Seen::Answered,
            Err(Failure::Late { .. }) => Seen::Late { healthy: plugin.health().await.is_ok() },
            Err(Failure::Wrong { .. }) => Seen::Wrong,
            Err(Failure::Gone { .. }) => Seen::Broken,
        };
        match (self.see(seen), answer) {
            (Verdict::Replace, Err(failure)) => {
                let reason = match failure {
                    Failure::Gone { reason, .. } => reason,
                    other => other.to_string(),
                };
                tracing::warn!(target: "fleeting", plugin = self.options.name, reason, "the plugin is replaced");
                Err(Failure::Gone { reason, again: self.wait() })
            }
            (_, answer) => answer,
        }
    }

    /// This one is not asked again, and calls that still wait for it fail: two processes must not have one group.
    async fn forget(&self, plugin: &Arc<Plugin>) {
        let mut running = self.running.lock().await;
        if running.plugin.as_ref().is_some_and(|there| Arc::ptr_eq(there, plugin)) {
            running.plugin = None;
            plugin.kill();
        }
    }
}

impl InstanceGroup for Hosted {
    fn init<'a>(&'a self, config: &'a serde_json::Value, settings: &'a Settings) -> Answer<'a, ProviderInfo> {
        Box::pin(async move {
            let info = self.call(async |plugin: &Plugin| plugin.init(config, settings).await).await?;
            self.running.lock().await.init = Some((config.clone(), settings.clone()));
            Ok(info)
        })
    }

    fn update(&self) -> Answer<'_, Vec<Instance>> {
        Box::pin(self.call(async |plugin: &Plugin| plugin.update().await))
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        Box::pin(self.call(async move |plugin: &Plugin| plugin.change(change).await))
    }

    fn connect_info<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, ConnectInfo> {
        Box::pin(self.call(async |plugin: &Plugin| plugin.connect_info(instance).await))
    }

    fn heartbeat<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, Health> {
        Box::pin(self.call(async |plugin: &Plugin| plugin.heartbeat(instance).await))
    }

    /// Ends the process as well.
    fn shutdown(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            if self.running.lock().await.plugin.is_none() {
                return Ok(());
            }
            let answer = self.call(async |plugin: &Plugin| plugin.shutdown().await).await;
            if let Err(failure) = &answer {
                // There are plugins that crash or hang here; nothing is lost by it.
                tracing::debug!(target: "fleeting", plugin = self.options.name, %failure, "the plugin has not shut down well");
            }
            self.end().await;
            Ok(())
        })
    }
}
