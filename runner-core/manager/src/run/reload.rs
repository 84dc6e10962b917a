//! The configuration is read again when it changes, and on SIGHUP. Running jobs are not touched.

use super::configuration::Configuration;
use super::entries::Entries;
use crate::drive::World;
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

    /// A file that cannot be used changes nothing, and is not read again before it changes.
    pub async fn now(&mut self, world: &World, events: &UnboundedSender<Event>) {
        match self.configuration.again() {
            Ok(configuration) => {
                configuration.tell();
                let (runners, settings) = self.entries.begin(&configuration.settings).await;
                world.serve_also(runners);
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
