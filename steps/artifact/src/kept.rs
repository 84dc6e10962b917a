//! Artifacts in a directory of this machine: `DIRECTORY/JOB/FILE`. What a person has put there is found too, packed or not.

use crate::content::Content;
use crate::progress::shown;
use crate::settings::{Download, Upload};
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use step_archive::pack::pack;
use step_archive::selection::{Wanted, select};
use step_archive::{Format, Level};
use step_sdk::{Failure, say};

/// # Errors
/// The directory cannot be written.
pub fn keep(directory: &Path, job: &str, upload: &Upload, content: &Content) -> Result<(), Failure> {
    let mut to = directory.join(name_of(job));
    // Reports beside the archive may have its name.
    if !matches!(upload.kind.as_str(), "" | "archive") {
        to.push(name_of(&upload.kind));
    }
    let fault = |error: io::Error| Failure::step(format!("could not keep the artifacts in `{}`: {error}", to.display()));
    fs::create_dir_all(&to).map_err(fault)?;
    let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(&to).map_err(fault)?;
    io::copy(&mut content.file.reopen().map_err(fault)?, &mut new).map_err(fault)?;
    new.as_file().sync_all().map_err(fault)?;
    let path = to.join(&content.filename);
    new.persist(&path).map_err(|error| fault(error.error))?;
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(fault)?;
    say(&format!("Kept {} ({} files, {})", path.display(), content.files, shown(content.size)));
    Ok(())
}

/// The archive of an earlier job.
/// # Errors
/// There is none; the message says where it was looked for.
pub fn find(directory: &Path, download: &Download) -> Result<File, Failure> {
    let job = name_of(&download.name);
    let own = directory.join(&job);
    let candidates = candidates(directory, &job, &download.filename);
    for path in &candidates {
        match File::open(path) {
            Ok(file) if file.metadata().is_ok_and(|found| found.is_file()) => {
                say(&format!("Taken from {}", path.display()));
                return Ok(file);
            }
            _ => {}
        }
    }
    if own.is_dir() {
        if let Some(archive) = only_archive(&own) {
            say(&format!("Taken from {}", archive.display()));
            return File::open(&archive).map_err(|error| Failure::step(format!("could not read `{}`: {error}", archive.display())));
        }
        say(&format!("Taken from the files in {}", own.display()));
        return packed(&own).map_err(|why| Failure::step(format!("could not take the files in `{}`: {why}", own.display())));
    }
    Err(Failure::step(format!("there are no artifacts of `{}` in `{}`", download.name, directory.display()))
        .with_hint(format!("put its archive there as `{job}.zip`, or its files into `{job}/`; or run that job first with `--artifacts`")))
}

fn candidates(directory: &Path, job: &str, filename: &str) -> Vec<PathBuf> {
    let named = (!filename.is_empty()).then(|| directory.join(job).join(name_of(filename)));
    named.into_iter().chain([directory.join(format!("{job}.zip")), directory.join(job).join("artifacts.zip")]).collect()
}

/// The archive that lies there alone, whatever it is called.
fn only_archive(dir: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut archives =
        paths.filter(|path| path.is_file() && ["zip", "zst"].iter().any(|end| path.extension().is_some_and(|found| found == *end)));
    let first = archives.next()?;
    archives.next().is_none().then_some(first)
}

/// Files that lie there as they are go the way that archives go.
fn packed(dir: &Path) -> Result<File, String> {
    let files = select(dir, &Wanted { paths: vec!["**".into()], ..Wanted::default() }).map_err(|error| error.to_string())?.files;
    let mut file = tempfile::tempfile().map_err(|error| error.to_string())?;
    let mut to = BufWriter::new(&file);
    pack(dir, &files, Format::TarZstd, Level::Fastest, &mut to).map_err(|fault| fault.to_string())?;
    to.flush().map_err(|error| error.to_string())?;
    drop(to);
    file.rewind().map_err(|error| error.to_string())?;
    Ok(file)
}

/// A name as the name of one file.
pub fn name_of(text: &str) -> String {
    let name: String = text.chars().map(|letter| if matches!(letter, '/' | '\\') || letter.is_control() { '_' } else { letter }).collect();
    match name.as_str() {
        "" => "job".to_owned(),
        "." | ".." => name.replace('.', "_"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_job_is_the_name_of_one_file() {
        assert_eq!(["test: [a, b]", "a/b", "..", "", "..."].map(name_of), ["test: [a, b]", "a_b", "__", "job", "..."]);
    }
}
