//! Result files: written aside, flushed to the disk and renamed, so that a file of that name is a whole result or none.

use super::settings::ResultFile;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use tempfile::NamedTempFile;

/// GitLab's step-runner gives its report this mode.
#[cfg(unix)]
const MODE: u32 = 0o640;

/// A place that can be written to, found before the first step.
#[derive(Debug)]
pub struct Prepared {
    pub file: ResultFile,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// Beside the file, to be renamed.
    Aside(NamedTempFile),
    /// A pipe or a device: nothing can be renamed over it.
    Direct(File),
}

impl Prepared {
    /// # Errors
    /// There is no such directory, or it cannot be written to.
    pub fn new(file: &ResultFile) -> Result<Self, Stop> {
        let target = prepare(&file.path).map_err(|fault| could_not_write(&file.path, &fault))?;
        Ok(Self { file: file.clone(), target })
    }

    /// Writes the result. What was there before stays until the new one is whole.
    /// # Errors
    /// The disk is full, for example; there is no new file then.
    pub fn write(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop> {
        let path = self.file.path;
        let outcome = match self.target {
            Target::Direct(file) => fill(&file, content),
            Target::Aside(aside) => fill(aside.as_file(), content)
                .and_then(|()| aside.as_file().sync_all())
                .and_then(|()| aside.persist(&path).map(drop).map_err(|fault| fault.error)),
        };
        outcome.map_err(|fault| could_not_write(&path, &fault))
    }
}

fn prepare(path: &Path) -> io::Result<Target> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        Ok(found) if !found.is_file() => return File::options().write(true).open(path).map(Target::Direct),
        _ => {}
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let aside = tempfile::Builder::new().prefix(".step-runner-result-").tempfile_in(dir)?;
    #[cfg(unix)]
    std::fs::set_permissions(aside.path(), std::os::unix::fs::PermissionsExt::from_mode(MODE))?;
    Ok(Target::Aside(aside))
}

fn fill(file: &File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(64 * 1024, file);
    content(&mut writer)?;
    writer.flush()
}

fn could_not_write(path: &Path, fault: &io::Error) -> Stop {
    Stop::new(Exit::Fault, format!("could not write the result to `{}`: {}", path.display(), words(fault)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::settings::ResultFormat;

    fn file(path: &Path) -> ResultFile {
        ResultFile { path: path.into(), format: ResultFormat::Json, our_fields: true }
    }

    #[test]
    fn a_result_replaces_an_older_one_when_it_is_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("r.json");
        std::fs::write(&path, "old").expect("a file can be written");
        let broken = Prepared::new(&file(&path)).expect("a place").write(|out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(broken.is_err_and(|stop| stop.exit == Exit::Fault));
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "old");
        Prepared::new(&file(&path)).expect("a place").write(|out| out.write_all(b"new")).expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "new");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&path.metadata().expect("a file").permissions()) & 0o777, MODE);
        assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 1, "nothing is left aside");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_found_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let told = |path: &Path| {
            let stop = Prepared::new(&file(path)).expect_err("no place");
            stop.to_string().replace(&*dir.path().to_string_lossy(), "DIR")
        };
        insta::assert_snapshot!(told(dir.path()), @"could not write the result to `DIR`: it is a directory");
        insta::assert_snapshot!(told(&dir.path().join("none/r.json")), @"could not write the result to `DIR/none/r.json`: no such file or directory");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_stays_what_it_is() {
        Prepared::new(&file(Path::new("/dev/null"))).expect("a place").write(|out| out.write_all(b"x")).expect("written");
        assert!(!Path::new("/dev/null").metadata().expect("a device").is_file());
    }
}
