//! The output and export files of a step: created empty, read when the step is over, removed.
//!
//! The step owns them in between and may have put anything in their place, so reading never waits and never follows a link.

use crate::system_error;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use step_client::wire::result::{self, Unreadable};
use step_engine::effect::StepFiles;
use step_engine::event::FileContent;

/// What one file may hold. Ten times the largest output that is promised to work; it is read into memory.
pub const LIMIT: u64 = 64 * 1024 * 1024;

/// Makes the private directory in which the files of steps are, if it is not there.
/// # Errors
/// Why it cannot be made.
pub fn make_directory(path: &Path) -> Result<(), String> {
    match private(std::fs::DirBuilder::new()).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(format!("creating directory for step files: {}", system_error::text(&error)))
        }
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn private(mut builder: std::fs::DirBuilder) -> std::fs::DirBuilder {
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Directories have the access rules of the one that they are in.
#[cfg(not(unix))]
fn private(builder: std::fs::DirBuilder) -> std::fs::DirBuilder {
    builder
}

/// Creates both files, or neither.
/// # Errors
/// Which file, and why.
pub fn prepare(files: &StepFiles) -> Result<(), String> {
    create(Path::new(&*files.output), b"").map_err(|error| format!("creating output file: {}", system_error::text(&error)))?;
    create(Path::new(&*files.export), b"").map_err(|error| {
        let _ = std::fs::remove_file(&*files.output);
        format!("creating export file: {}", system_error::text(&error))
    })
}

/// Creates a file that is not there yet. The directory is private; the mode is the original's.
pub fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o660);
    options.open(path)?.write_all(content)
}

/// Reads both files. Those that are to go are removed.
pub fn take(files: &StepFiles, keep: bool) -> (FileContent, FileContent) {
    let contents = (read(Path::new(&*files.output)), read(Path::new(&*files.export)));
    if !keep {
        remove(files);
    }
    contents
}

/// An output file as a whole result. Bytes that are none of ours stay what they are: a file with nothing but `outputs` is legal too.
pub fn as_result(content: FileContent) -> FileContent {
    let FileContent::Bytes(bytes) = &content else { return content };
    let Ok(text) = std::str::from_utf8(bytes) else { return content };
    match result::read(text) {
        Ok(tree) => FileContent::Result(Box::new(tree)),
        Err(fault @ Unreadable::Field { .. }) => FileContent::NoResult(fault.to_string()),
        Err(Unreadable::Json(_) | Unreadable::NoResult(_)) => content,
    }
}

/// Removes both files, whatever is there now. What cannot be removed goes with its directory.
pub fn remove(files: &StepFiles) {
    for path in [&files.output, &files.export] {
        match std::fs::remove_file(&**path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => drop(std::fs::remove_dir_all(&**path)),
            _ => {}
        }
    }
}

fn read(path: &Path) -> FileContent {
    let unreadable = |why: String| FileContent::Unreadable(format!("{}: {why}", path.display()));
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return unreadable("the step has removed it".to_owned()),
        Err(error) => return unreadable(system_error::text(&error)),
    };
    if let Some(fault) = fault_of(&found) {
        return unreadable(fault);
    }
    if found.len() == 0 {
        return FileContent::Bytes(Vec::new());
    }
    match read_regular(path) {
        Ok(Ok(content)) => FileContent::Bytes(content),
        Ok(Err(fault)) => unreadable(fault),
        Err(error) => unreadable(system_error::text(&error)),
    }
}

/// Why something cannot be read as a file of a step, if so.
fn fault_of(found: &Metadata) -> Option<String> {
    let kind = found.file_type();
    if kind.is_symlink() {
        return Some("it is a symbolic link, not a regular file".to_owned());
    }
    if kind.is_dir() {
        return Some("it is a directory, not a regular file".to_owned());
    }
    if !kind.is_file() {
        return Some(format!("it is {}, not a regular file", special(kind)));
    }
    (found.len() > LIMIT).then(|| too_large(found.len()))
}

fn too_large(size: u64) -> String {
    format!("it has {size} bytes, the limit is {LIMIT} (64 MiB)")
}

#[cfg(unix)]
fn special(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn special(_kind: std::fs::FileType) -> &'static str {
    "something special"
}

/// It may have been replaced since the look at it, so what was opened is looked at again.
fn read_regular(path: &Path) -> io::Result<Result<Vec<u8>, String>> {
    let file = open(path)?;
    let found = file.metadata()?;
    if let Some(fault) = fault_of(&found) {
        return Ok(Err(fault));
    }
    let mut content = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    // It may grow while it is read.
    file.take(LIMIT + 1).read_to_end(&mut content)?;
    let size = content.len() as u64;
    Ok(if size > LIMIT { Err(too_large(size)) } else { Ok(content) })
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, how, rustix::fs::Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path) -> StepFiles {
        let path = |name: &str| directory.join(name).to_str().unwrap().into();
        StepFiles { output: path("output"), export: path("export") }
    }

    fn fault(path: &Path) -> String {
        match read(path) {
            FileContent::Unreadable(why) => why.replace(&*path.to_string_lossy(), "FILE"),
            other => panic!("it was read: {other:?}"),
        }
    }

    #[test]
    fn what_a_step_writes_is_read_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        prepare(&files).unwrap();
        std::fs::write(&*files.output, "{}\n").unwrap();
        assert_eq!(take(&files, false), (FileContent::Bytes(b"{}\n".to_vec()), FileContent::Bytes(Vec::new())));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_that_are_there_already_are_a_fault_and_stay() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        std::fs::write(&*files.export, "x").unwrap();
        assert_eq!(prepare(&files), Err("creating export file: file exists".to_owned()));
        assert!(!Path::new(&*files.output).exists());
        assert_eq!(std::fs::read(&*files.export).unwrap(), b"x");
    }

    #[test]
    fn what_is_no_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        assert_eq!(fault(&path), "FILE: the step has removed it");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(fault(&path), "FILE: it is a directory, not a regular file");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed_and_a_fifo_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert_eq!(fault(&link), "FILE: it is a symbolic link, not a regular file");
        let fifo = directory.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_eq!(fault(&fifo), "FILE: it is a FIFO, not a regular file");
        assert!(open(&fifo).is_ok(), "and a FIFO that took the place of a file in between does not block");
    }

    #[test]
    fn a_file_over_the_limit_names_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        File::create(&path).unwrap().set_len(1 << 30).unwrap();
        assert_eq!(fault(&path), "FILE: it has 1073741824 bytes, the limit is 67108864 (64 MiB)");
        File::create(&path).unwrap().set_len(10_000_000).unwrap();
        assert!(matches!(read(&path), FileContent::Bytes(content) if content.len() == 10_000_000));
    }

    #[test]
    fn whatever_took_the_place_of_the_files_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        std::fs::create_dir_all(format!("{}/deep/er", files.output)).unwrap();
        remove(&files);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
