//! Restores the first of some keys that has something.

use crate::retry::{self, Trouble};
use crate::settings::{Key, Settings};
use crate::store::Store;
use std::fs::File;
use std::path::Path;
use step_archive::unpack::unpack;
use step_sdk::{Failure, Step, say};

/// # Errors
/// Something was there and could not be had; a later key is tried first.
pub async fn restore(settings: &Settings, root: &Path, store: &Store, step: &Step) -> Result<(), Failure> {
    let mut failure = None;
    for (index, key) in settings.keys.iter().enumerate() {
        say(&format!("Checking cache for {}...", key.as_str()));
        match fetch(settings, store, key).await {
            Ok(None) => say(&format!("No cache found for {}", key.as_str())),
            Ok(Some(archive)) => match extract(settings, archive, root) {
                Ok(()) => return tell(step, Some(key), index == 0),
                Err(trouble) => failure = Some(said(key, &trouble)),
            },
            Err(trouble) => failure = Some(said(key, &trouble)),
        }
    }
    tell(step, None, false)?;
    failure.map_or(Ok(()), Err)
}

async fn fetch(settings: &Settings, store: &Store, key: &Key) -> Result<Option<File>, Trouble> {
    let mut tried = 1;
    loop {
        let trouble = match store.fetch(key).await {
            Ok(found) => return Ok(found),
            Err(trouble) => trouble,
        };
        let Some(pause) = retry::pause(tried, settings.attempts, &trouble) else { return Err(trouble) };
        say(&format!("WARNING: {trouble}; trying again"));
        tokio::time::sleep(pause).await;
        tried += 1;
    }
}

fn extract(settings: &Settings, archive: File, root: &Path) -> Result<(), Trouble> {
    let size = archive.metadata().map_or(0, |found| found.len());
    let unpacked = unpack(archive, root, settings.outside_links).map_err(|fault| Trouble::lasting(fault.to_string()))?;
    unpacked.said.iter().for_each(|line| say(line));
    say(&format!("Successfully extracted cache: {} files, {}", unpacked.files, crate::save::shown(size)));
    Ok(())
}

fn said(key: &Key, trouble: &Trouble) -> Failure {
    say(&format!("WARNING: could not restore the cache {}: {trouble}", key.as_str()));
    Failure::step(format!("could not restore the cache `{}`: {trouble}", key.as_str()))
        .with_hint("the job can do without: it only takes longer; a key that is new does without what is broken")
}

fn tell(step: &Step, key: Option<&Key>, hit: bool) -> Result<(), Failure> {
    step.output("key", key.map(Key::as_str).unwrap_or_default())?;
    step.output("hit", hit)
}
