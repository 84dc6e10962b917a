//! The file beside the configuration that tells managers of one token apart: `.runner_system_id`.

use aws_lc_rs::{hmac, rand};
use runner_gitlab::SystemId;
use std::io::Write as _;
use std::path::Path;
use step_console::exit::{Exit, Stop};
use step_console::given::words;

/// Reads the file; one that is missing or holds something else is written anew.
/// # Errors
/// It cannot be read or written.
pub fn of_directory(directory: &Path) -> Result<SystemId, Stop> {
    let path = directory.join(".runner_system_id");
    let fault = |fault: &std::io::Error| Stop::new(Exit::Fault, format!("could not use `{}`: {}", path.display(), words(fault)));
    match std::fs::read(&path) {
        Ok(bytes) => {
            if let Some(known) = std::str::from_utf8(&bytes).ok().and_then(SystemId::parse) {
                return Ok(known);
            }
        }
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {}
        Err(other) => return Err(fault(&other)),
    }
    let made = made();
    let write = || {
        let mut aside = tempfile::Builder::new().prefix(".runner_system_id.").tempfile_in(directory)?;
        aside.write_all(made.as_str().as_bytes())?;
        aside.as_file().sync_all()?;
        aside.persist(&path).map(drop).map_err(|fault| fault.error)
    };
    write().map_err(|error| fault(&error))?;
    Ok(made)
}

/// Of the machine where it has an id, so that a new installation is the same manager.
fn made() -> SystemId {
    let machine = ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().find_map(|path| std::fs::read_to_string(path).ok());
    match machine.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
        Some(id) => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, id.as_bytes());
            SystemId::of_machine(hmac::sign(&key, b"gitlab-runner").as_ref())
        }
        None => {
            let mut dice = [0; 12];
            // Without randomness all managers of this kind are one: it is a name and no secret.
            let _ = rand::fill(&mut dice);
            SystemId::of_chance(&dice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(content: Option<&[u8]>) -> (String, String) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(".runner_system_id");
        if let Some(content) = content {
            std::fs::write(&path, content).expect("written");
        }
        let id = of_directory(directory.path()).expect("an id").as_str().to_owned();
        (id, std::fs::read_to_string(path).expect("written"))
    }

    #[test]
    fn case_193_a_system_id_is_kept_or_made_anew() {
        let (kept, _) = with(Some(b"  s_0123456789ab\n"));
        assert_eq!(kept, "s_0123456789ab");
        for wrong in [None, Some(&b""[..]), Some(b"s_0123456789abc"), Some(b"garbage s_0123456789ab"), Some(b"\xff\xfe")] {
            let (made, written) = with(wrong);
            assert!((made.starts_with("s_") || made.starts_with("r_")) && made.len() == 14, "{made}");
            assert_eq!(made, written);
        }
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join(".runner_system_id")).expect("made");
        assert!(of_directory(directory.path()).is_err());
    }
}
