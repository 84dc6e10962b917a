//! Saves the files of a job under a key.

use crate::retry::{self, Trouble};
use crate::settings::{Key, Settings};
use crate::store::Store;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use step_archive::pack::pack;
use step_archive::selection::{Wanted, select};
use step_archive::untracked::untracked;
use step_sdk::{Failure, Step, say};
use tempfile::NamedTempFile;

/// # Errors
/// The files cannot be read, or the store does not take the archive.
pub async fn save(settings: &Settings, root: &Path, store: &Store, step: &Step) -> Result<(), Failure> {
    let Some(key) = settings.keys.first() else { return Err(Failure::internal("a cache without a key")) };
    say(&format!("Creating cache {}...", key.as_str()));
    let failed = |trouble: Trouble| Failure::step(format!("could not save the cache `{}`: {trouble}", key.as_str()));
    let archive = match archive(settings, root, store, key).map_err(failed)? {
        Some(archive) => archive,
        None => {
            say("Nothing to save");
            step.output("key", "")?;
            return step.output("hit", false);
        }
    };
    upload(settings, store, key, &archive).await.map_err(failed)?;
    say("Created cache");
    step.output("key", key.as_str())?;
    step.output("hit", true)
}

/// `None`: there is no file that belongs into it.
fn archive(settings: &Settings, root: &Path, store: &Store, key: &Key) -> Result<Option<NamedTempFile>, Trouble> {
    let lasting = |error: std::io::Error| Trouble::lasting(error.to_string());
    let unknown = if settings.untracked { Some(untracked_of(root)) } else { None };
    let wanted = Wanted { paths: settings.paths.clone(), exclude: Vec::new(), untracked: unknown };
    let selection = select(root, &wanted).map_err(lasting)?;
    selection.said.iter().for_each(|line| say(line));
    if selection.files.is_empty() {
        return Ok(None);
    }
    let archive = store.new_file(key)?;
    let mut to = BufWriter::with_capacity(1 << 20, archive.as_file());
    let packed =
        pack(root, &selection.files, settings.format, settings.level, &mut to).map_err(|fault| Trouble::lasting(fault.to_string()))?;
    to.flush().map_err(lasting)?;
    drop(to);
    packed.said.iter().for_each(|line| say(line));
    let size = archive.as_file().metadata().map_err(lasting)?.len();
    say(&format!("{} files, {}", packed.files, shown(size)));
    match settings.max_size {
        Some(most) if size > most => {
            Err(Trouble::lasting(format!("its archive has {}, and {} is the most that is kept here", shown(size), shown(most))))
        }
        _ => Ok(Some(archive)),
    }
}

fn untracked_of(root: &Path) -> Vec<std::path::PathBuf> {
    untracked(root).unwrap_or_else(|error| {
        say(&format!("WARNING: untracked: {error}"));
        Vec::new()
    })
}

async fn upload(settings: &Settings, store: &Store, key: &Key, archive: &NamedTempFile) -> Result<(), Trouble> {
    let mut tried = 1;
    loop {
        let Err(trouble) = store.save(key, archive).await else { return Ok(()) };
        let Some(pause) = retry::pause(tried, settings.attempts, &trouble) else { return Err(trouble) };
        say(&format!("WARNING: {trouble}; trying again"));
        tokio::time::sleep(pause).await;
        tried += 1;
    }
}

/// A size as people read it.
#[expect(clippy::cast_precision_loss, reason = "a person reads two digits of it")]
pub fn shown(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return if unit == "bytes" { format!("{bytes} bytes") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_size_has_the_unit_that_people_read() {
        assert_eq!([0, 1023, 1024, 5 << 20, 3 << 40].map(shown), ["0 bytes", "1023 bytes", "1.0 KiB", "5.0 MiB", "3.0 TiB"]);
    }
}
