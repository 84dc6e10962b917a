//! The configuration is read again when it changes, and on SIGHUP. Running jobs are not touched.

use super::configuration::Configuration;
use super::entries::Entries;
use crate::drive::World;
use runner_config::reload::TakesEffect;
use runner_control::event::Event;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// GitLab's runner looks so often.
const INTERVAL: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub struct Reload {
    configuration: Configuration,
    entries: Entries,
}

impl Reload {
    pub fn new(configuration: Configuration, entries: Entries) -> Self {
        Self { configuration, entries }
    }

    pub fn detaches_on_term(&self) -> bool {
        self.configuration.settings.global.detach_on_term
    }

    /// Returns when the file is another one.
    pub async fn when_changed(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if self.configuration.has_changed() {
                return;
            }
        }
    }

    /// What has changed, runner by runner; no secret is in it.
    fn tell(&self, new: &runner_config::Settings) {
        let reload = runner_config::reload::compare(&self.configuration.settings, new);
        for changed in &reload.changed {
            let Some(runner) = new.runners.get(changed.new).map(runner_config::settings::Runner::shown_name) else { continue };
            for change in &changed.changes {
                match change.effect {
                    TakesEffect::WithNewPlugin => {
                        tracing::warn!(runner, "{}: not before this program starts again: {change}", change.key);
                    }
                    TakesEffect::AtOnce | TakesEffect::WithTheNextJob => tracing::info!(runner, "{change}"),
                }
            }
        }
    }

    /// A file that cannot be used changes nothing, and is not read again before it changes.
    pub async fn now(&mut self, world: &World, events: &UnboundedSender<Event>) {
        match self.configuration.again() {
            Ok(configuration) => {
                configuration.tell();
                self.tell(&configuration.settings);
                let (change, settings) = self.entries.begin(&configuration.settings).await;
                world.serve_also(change.new);
                for (id, runner, was) in change.renewed {
                    world.renew(id, runner, was.as_ref());
                }
                tracing::info!(runners = settings.runners.len(), concurrent = settings.concurrent, "the configuration was read again");
                let _ = events.send(Event::Reloaded { settings: Box::new(settings) });
                self.configuration = configuration;
            }
            Err(stop) => {
                tracing::error!("the configuration stays as it was: {stop}");
                self.configuration.modified = std::fs::metadata(&self.configuration.path).and_then(|file| file.modified()).ok();
            }
        }
    }
}
